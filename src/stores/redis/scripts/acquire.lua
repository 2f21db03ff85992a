-- Take the lock, or confirm a hand-over, or queue.
-- KEYS  1 lock  2 record: "token ttl flags owner label", with a 'q' before it if somebody may wait
-- ARGV  1 owner  2 ttl in ms  3 'master_replid:ID', the incarnation  4 '1' to queue when busy
--       5 "ttl flags owner label"  6 '' unless in a cluster: the shape() that is known to be settled
-- Answers the token, {'busy', ask again in ms, pttl, token, label, kind}, {'new'}, {'replica'},
-- {'unmet'} or {'corrupt', 'record' or 'clock'}.
-- include lib/incarnation.lua
local TOKEN_END = 9007199254740991 -- 2^53 - 1: above it Lua's numbers are not exact
local owner, ttl = ARGV[1], ARGV[2]

local changed = check_incarnation(ARGV[3])
if changed then
    return {changed}
end
local time = call('TIME')
local token = time[1] .. (#time[2] == 6 and time[2] or string.sub('00000' .. time[2], -6))

-- The common case in two steps: nobody holds it, nobody waits, the clock is ahead of the last token.
if call('SET', KEYS[1], owner, 'NX', 'PX', ttl) then
    local old = call('SET', KEYS[2], token .. ' ' .. ARGV[5], 'GET')
    -- From 2001 to 2255 tokens have 16 digits; between two of those the order as text is their order.
    if #token == 16 and token < '9007199254740991' and
        (old and old < token and select(2, find(old, '^%d+ ')) == 17 or not old and ARGV[6] == '') then
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
-- include lib/shape.lua
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
if holder == owner and record and match(record, '^q?%d+ %d+ %S+ (%x+) ') == owner then
    -- An owner holds once: whoever asks a second time is told the same.
    call('PEXPIRE', KEYS[1], ttl)
    return format('%.0f', last)
end
if holder == owner or (not holder and (not head or head == owner)) then
    -- A slot that came with its data brought the records of its locks. Of a lock without one, a server
    -- of a cluster can know nothing if it took the slot over without the data.
    if last == 0 and ARGV[6] ~= '' and redis.sha1hex(shape()) ~= ARGV[6] then
        return {'unmet'}
    end
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
local again = POLL_MS
if ARGV[4] == '1' then
    enqueue(owner, now)
    record = record or '0 0 - 0 '
    if string.sub(record, 1, 1) ~= 'q' then
        call('SET', RECORD, 'q' .. record)
    end
    -- The next in the queue asks again when the holder's time is up, the others sleep on.
    local first = call('ZRANGE', QUEUE, 0, 1)
    if left >= 0 and (first[1] == owner or (first[1] == holder and first[2] == owner)) then
        again = math.min(POLL_MS, left + 1)
    end
end

local last, known, label = match(record or '', '^q?(%d+) %d+ %S+ (%x+) (.*)$')
if known and (holder == known or holder == known .. '!') then -- '!': it was broken
    return {'busy', again, left, last, label, 'ours'}
end
return {'busy', again, left, '0', '', call('ZSCORE', QUEUE, holder) and 'waiter' or 'foreign'}
