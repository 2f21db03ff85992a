-- Forget a lock that is free, with its last token and the dead waiters in its queue. Also for one node of a
-- redlock.
-- KEYS  1 lock  2 record
-- Answers 1, or 0 if it is held or waited for.
-- include lib/keys.lua
-- include lib/broken.lua
-- include lib/incarnation.lua
-- include lib/party.lua
-- include lib/queue.lua
if call('EXISTS', KEYS[1]) == 1 or count_waiters(clock_us()) > 0 then
    return 0
end
for _, owner in ipairs(call('ZRANGE', QUEUE, 0, -1)) do
    leave_queue(owner)
end
call('DEL', RECORD, QUEUE, LEASES, broken_key())
return 1
