-- Take the lock, or confirm a hand-over, or queue.
-- KEYS  1 lock  2 record: "token ttl flags owner label", with a 'q' before it if somebody may wait
-- ARGV  1 owner  2 ttl in ms  3 'master_replid:ID', the incarnation  4 '1' to queue when busy
--       5 "ttl flags owner label"
-- Answers the token, {'busy', look again in ms, pttl, token, label, kind}, {'new'}, {'replica'}
-- or {'corrupt', 'record' or 'clock'}.
local TOKEN_END = 9007199254740991 -- 2^53 - 1: above it Lua's numbers are not exact
local call = redis.call
local owner, ttl = ARGV[1], ARGV[2]

-- What guard() and clock_us() do, written out: this is the path that everybody takes.
local info = call('INFO', 'replication')
if not string.find(info, 'role:master', 1, true) then
    return {'replica'}
end
if not string.find(info, ARGV[3], 1, true) then
    return {'new'}
end
local time = call('TIME')
local token = time[1] .. (#time[2] == 6 and time[2] or string.sub('00000' .. time[2], -6))

-- The common case in two steps: nobody holds it, nobody waits, the clock is ahead of the last token.
if call('SET', KEYS[1], owner, 'NX', 'PX', ttl) then
    local old = call('SET', KEYS[2], token .. ' ' .. ARGV[5], 'GET')
    -- From 2001 to 2255 tokens have 16 digits; between two of those the order as text is their order.
    if #token == 16 and token < '9007199254740991' and
        (not old or old < token and select(2, string.find(old, '^%d+ ')) == 17) then
        return token
    end
    -- Not so common after all: as if it had not been.
    call('DEL', KEYS[1])
    if old then
        call('SET', KEYS[2], old)
    else
        call('DEL', KEYS[2])
    end
end

-- include lib/keys.lua
-- include lib/guard.lua
-- include lib/queue.lua
local now = tonumber(token)
local record = call('GET', RECORD)
local last = tonumber(record and match(record, '^q?(%d+) ') or not record and 0)
if not last or last >= TOKEN_END then
    return {'corrupt', 'record'}
end
if now >= TOKEN_END then
    return {'corrupt', 'clock'}
end
token = format('%.0f', math.max(last + 1, now))

local holder = call('GET', KEYS[1])
local head = live_head(now)
if holder == owner or (not holder and (not head or head == owner)) then
    call('SET', KEYS[1], owner, 'PX', ttl)
    leave_queue(owner)
    local waited_for = call('EXISTS', QUEUE) == 1 and 'q' or ''
    call('SET', RECORD, waited_for .. token .. ' ' .. ARGV[5])
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
    record = record or '0 0 - 0 '
    if string.sub(record, 1, 1) ~= 'q' then
        call('SET', RECORD, 'q' .. record)
    end
    -- The next in line looks when the holder's time is up, the others sleep on.
    local first = call('ZRANGE', QUEUE, 0, 1)
    if left >= 0 and (first[1] == owner or (first[1] == holder and first[2] == owner)) then
        look = math.min(POLL_MS, left + 1)
    end
end

if record and match(record, '^q?%d+ %d+ %S+ (%x+) ') == holder then
    local last, label = match(record, '^q?(%d+) %d+ %S+ %x+ (.*)$')
    return {'busy', look, left, last, label, 'ours'}
end
return {'busy', look, left, '0', '', call('ZSCORE', QUEUE, holder) and 'waiter' or 'foreign'}
