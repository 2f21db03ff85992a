-- Write a record: only for the one who holds the lock now, broken ('!') or not, and only what is newer than what is there.
-- KEYS  1 lock  2 token counter  3 records
-- ARGV  1 owner  2 token  3 number  4 key  5 how long to keep it, in ms; '0': for ever  6 value
-- Answers {'ok', replicas online, '1' if there is an append-only file}, {'stale'}, {'lost', why} or
-- {'corrupt'}.
-- include lib/keys.lua
-- include lib/records.lua
-- include lib/broken.lua
-- include lib/loss.lua
local SAMPLE = 8 -- how many records are checked for having expired
local token, number, key = ARGV[2], ARGV[3], ARGV[4]

local holder = call('GET', KEYS[1])
local record = (holder == ARGV[1] or holder == ARGV[1] .. '!') and call('GET', KEYS[2])
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

local old = call('HGET', KEYS[3], key)
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
call('HSET', KEYS[3], key, format('%s %s %.0f %.0f ', token, number, now, till) .. ARGV[6])

-- What this hold wrote stays, expired or not: it is what refuses a late copy of an earlier write.
for _, any in ipairs(call('HRANDFIELD', KEYS[3], SAMPLE)) do
    local writer, ends = match(call('HGET', KEYS[3], any), '^(%d+) %d+ %d+ (%d+) ')
    if writer and writer ~= token and ends ~= '0' and tonumber(ends) <= now then
        call('HDEL', KEYS[3], any)
    end
end
local _, replicas = string.gsub(replication, 'state=online', '')
return {'ok', replicas, match(call('INFO', 'persistence'), 'aof_enabled:(%d)')}
