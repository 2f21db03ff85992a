-- Write a record: only for the one who holds the lock now, and only what is newer than what is there.
-- KEYS  1 lock  2 token record
-- ARGV  1 owner  2 token  3 number  4 key  5 how long to keep it, in ms; '0': for ever  6 value
-- Answers {'ok', replicas online, '1' if there is an append-only file}, {'stale'}, {'lost', why} or
-- {'corrupt'}.
-- include lib/keys.lua
-- include lib/records.lua
-- include lib/loss.lua
local PURGE_MAX = 8 -- expired records removed in one go
local token, number, key = ARGV[2], ARGV[3], ARGV[4]

local record = call('GET', KEYS[1]) == ARGV[1] and call('GET', KEYS[2])
if not record or match(record, '^q?(%d+) ') ~= token then
    return loss(token)
end

-- As decimal strings, by length and then by bytes: a Lua number is exact only up to 2^53.
local function below(a, b)
    if #a ~= #b then
        return #a < #b
    end
    return a < b
end

local old = call('HGET', RECORDS, key)
if old then
    local old_token, old_number = match(old, '^(%d+) (%d+) %d+ %d+ ')
    if not old_token then
        return {'corrupt'}
    end
    if below(token, old_token) or token == old_token and not below(old_number, number) then
        return {'stale'}
    end
end

local now = clock_ms()
local till = ARGV[5] == '0' and 0 or now + ARGV[5]
call('HSET', RECORDS, key, format('%s %s %.0f %.0f ', token, number, now, till) .. ARGV[6])
call('ZADD', BY_KEY, 0, key)
if till > 0 then
    call('ZADD', BY_UNTIL, format('%.0f', till), key)
else
    call('ZREM', BY_UNTIL, key)
end

-- What this hold wrote stays, expired or not: it is what refuses a late copy of an earlier write.
for _, gone in ipairs(call('ZRANGEBYSCORE', BY_UNTIL, '-inf', format('%.0f', now), 'LIMIT', 0, PURGE_MAX)) do
    local value = call('HGET', RECORDS, gone)
    if not value or match(value, '^(%d+) ') ~= token then
        call('HDEL', RECORDS, gone)
        call('ZREM', BY_KEY, gone)
        call('ZREM', BY_UNTIL, gone)
    end
end
local _, replicas = string.gsub(replication, 'state=online', '')
return {'ok', replicas, match(call('INFO', 'persistence'), 'aof_enabled:(%d)')}
