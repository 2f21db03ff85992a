-- Take the lock, or confirm a hand-over, or queue.
-- KEYS  1 lock  2 record: "token ttl flags owner label", with a 'q' before it if somebody may wait
-- ARGV  1 owner  2 ttl in ms  3 'master_replid:ID', the incarnation  4 '1' to queue when busy
--       5 "ttl flags owner label"  6 '' unless in a cluster: the shape() that is known to be settled
-- Answers the token, {'busy', ask again in ms, pttl, token, label, kind}, {'new'}, {'replica'},
-- {'unmet'}, {'twice'} or {'corrupt', 'record' or 'clock'}.
-- include lib/incarnation.lua
local lock, record, owner, text, ttl = KEYS[1], KEYS[2], ARGV[1], ARGV[5], ARGV[2]
local settled = ARGV[6] == ''

local changed = check_incarnation(ARGV[3])
if changed then
    return {changed}
end
local time = call('TIME')
local token = time[1] .. (#time[2] == 6 and time[2] or string.sub('00000' .. time[2], -6))
-- include lib/free.lua
if taken then
    return taken
end

-- include lib/keys.lua
-- include lib/shape.lua
-- include lib/party.lua
-- include lib/queue.lua
-- include lib/take.lua
local now = tonumber(token)
local wrong
local seen, holder = call('GET', RECORD), call('GET', LOCK)
taken, wrong, holder = take(owner, ttl, text, now, ARGV[6], holder, seen)
if taken or wrong then
    return taken or wrong
end
local again = POLL_MS
if ARGV[4] == '1' then
    purge(now)
    enqueue(owner, now, match(text, '^%d+ %S+ %x+ (.*)$') or '')
    mark_waited_for(RECORD, seen)
    again = ask_again(owner, holder)
end
return busy(again, holder, seen)
