-- Take the lock, or confirm a hand-over, or queue.
-- KEYS  1 lock  2 record: "token ttl flags owner label"  3 queue  4 waiters' leases
-- ARGV  1 owner  2 ttl in ms  3 incarnation  4 '1' to queue when busy  5 "ttl flags owner label"
-- Answers the token, {'busy', look again in ms, pttl, token, label, kind}, {'new'}, {'replica'}
-- or {'corrupt'}.
-- include lib/guard.lua
local TOKEN_END = 9007199254740991 -- 2^53 - 1: above it Lua's numbers are not exact
local owner, ttl = ARGV[1], ARGV[2]

local changed = guard(ARGV[3])
if changed then
    return {changed}
end

local now = clock_us()
local record = call('GET', KEYS[2])
local token = now
if record then
    local last = tonumber(match(record, '^%d+'))
    if not last or last >= TOKEN_END then
        return {'corrupt'}
    end
    if last >= now then
        token = last + 1
    end
end
token = format('%.0f', token)

-- The common case first: nobody waits, nobody holds it.
local queued = call('EXISTS', KEYS[3]) == 1
if not queued and call('SET', KEYS[1], owner, 'NX', 'PX', ttl) then
    call('SET', KEYS[2], token .. ' ' .. ARGV[5])
    return token
end

-- include lib/queue.lua
local holder = call('GET', KEYS[1])
local head = queued and live_head(now)
if holder == owner or (not holder and (not head or head == owner)) then
    call('SET', KEYS[1], owner, 'PX', ttl)
    call('SET', KEYS[2], token .. ' ' .. ARGV[5])
    leave_queue(owner)
    return token
end
if not holder then
    hand_over(head, now)
    holder = head
end

local left = call('PTTL', KEYS[1])
local look = POLL_MS
if ARGV[4] == '1' then
    enqueue(owner, now)
    -- The next in line looks when the holder's time is up, the others sleep on.
    local first = call('ZRANGE', KEYS[3], 0, 1)
    if left >= 0 and (first[1] == owner or (first[1] == holder and first[2] == owner)) then
        look = math.min(POLL_MS, left + 1)
    end
end

if record and match(record, '^%d+ %d+ %S+ (%x+) ') == holder then
    local last, label = match(record, '^(%d+) %d+ %S+ %x+ (.*)$')
    return {'busy', look, left, last, label, 'ours'}
end
return {'busy', look, left, '0', '', call('ZSCORE', KEYS[3], holder) and 'waiter' or 'foreign'}
