-- Take the lock, or confirm a hand-over, or queue.
-- KEYS  1 lock  2 record: "token ttl flags owner label", with a 'q' before it if somebody may wait
-- ARGV  1 owner  2 ttl in ms  3 'master_replid:ID', the incarnation  4 '1' to queue when busy
--       5 "ttl flags owner label"  6 '' unless in a cluster: the shape() that is known to be settled
-- Answers the token, {'busy', ask again in ms, pttl, token, label, kind}, {'new'}, {'replica'},
-- {'unmet'}, {'twice'} or {'corrupt', 'record' or 'clock'}.
-- include lib/incarnation.lua
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
-- include lib/party.lua
-- include lib/queue.lua
-- include lib/take.lua
local now = tonumber(token)
local wrong
local record, holder = call('GET', RECORD), call('GET', LOCK)
token, wrong, holder = take(owner, ttl, ARGV[5], now, ARGV[6], holder, record)
if token or wrong then
    return token or wrong
end
local again = POLL_MS
if ARGV[4] == '1' then
    purge(now)
    enqueue(owner, now, match(ARGV[5], '^%d+ %S+ %x+ (.*)$') or '')
    mark_waited_for(RECORD, record)
    again = ask_again(owner, holder)
end
return busy(again, holder, record)
