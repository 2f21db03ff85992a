-- Take the first of several locks that is free, or confirm a hand-over, and leave the other queues; or queue
-- for all of them.
-- KEYS  1 lock  2 record; and so on for each lock
-- ARGV  1 ttl in ms  2 flags  3 label  4 'master_replid:ID', the incarnation  5 '1' to queue when all are
--       busy  6 '1' if we may stand in the queues already  7 owner; and so on for each lock
-- Answers {'granted', which, token}, {'busy', ask again in ms, pttl, token, label, kind} of the first, {'new'},
-- {'replica'}, {'twice', '', which} or {'corrupt', 'record' or 'clock', which}.
-- include lib/incarnation.lua
local COUNT, OWNERS = #KEYS / 2, 6
local ttl = ARGV[1]

local changed = check_incarnation(ARGV[4])
if changed then
    return {changed}
end
local time = call('TIME')
local token = time[1] .. (#time[2] == 6 and time[2] or string.sub('00000' .. time[2], -6))

local function text(owner)
    return ttl .. ' ' .. ARGV[2] .. ' ' .. owner .. ' ' .. ARGV[3]
end

-- The common case, as in acquire.lua: one is free, and nobody waits for it. If it is not the first, they
-- are looked at all at once.
local fresh = ARGV[6] ~= '1'
local function all_held()
    local locks = {}
    for i = 1, COUNT do
        locks[i] = KEYS[2 * i - 1]
    end
    return call('EXISTS', unpack(locks)) == COUNT
end
for i = 1, fresh and COUNT or 0 do
    if i == 2 and all_held() then
        break
    end
    local lock, record, owner = KEYS[2 * i - 1], KEYS[2 * i], ARGV[OWNERS + i]
    if call('SET', lock, owner, 'NX', 'PX', ttl) then
        local old = call('SET', record, token .. ' ' .. text(owner), 'GET')
        if #token == 16 and token < '9007199254740991' and
            (not old or old < token and select(2, find(old, '^%d+ ')) == 17) then
            return {'granted', i, token}
        end
        call('DEL', lock)
        if old then
            call('SET', record, old)
        else
            call('DEL', record)
        end
    end
end

-- include lib/keys.lua
-- include lib/shape.lua
-- include lib/queue.lua
-- include lib/take.lua
local now = tonumber(token)
local party = LEASES .. ':' .. ARGV[OWNERS + 1] .. ':g'
if not fresh then
    call('DEL', party)
end
local wrong
local holders, records = {}, {}
for i = 1, COUNT do
    use(i)
    token, wrong, holders[i], records[i] = take(ARGV[OWNERS + i], ttl, text(ARGV[OWNERS + i]), now, '')
    if wrong then
        return {wrong[1], wrong[2] or '', i}
    end
    if token then
        -- What was handed to us besides, in this very moment, is for the next.
        for other = 1, fresh and 0 or COUNT do
            if other ~= i then
                use(other)
                leave_lock(ARGV[OWNERS + other], ARGV[4])
            end
        end
        return {'granted', i, token}
    end
end
local again = POLL_MS
for i = 1, ARGV[5] == '1' and COUNT or 0 do
    use(i)
    again = math.min(again, stand(ARGV[OWNERS + i], now, holders[i], records[i], ARGV[3], fresh))
    call('SET', LEASES .. ':' .. ARGV[OWNERS + i] .. ':p', party, 'PX', 2 * LEASE_MS)
end
use(1)
return busy(again, holders[1], records[1])
