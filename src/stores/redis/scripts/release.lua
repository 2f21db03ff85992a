-- End a hold and pass the lock on. Deletes before it writes, so it works on a server without memory.
-- KEYS  1 lock  2 queue
-- ARGV  1 owner  2 token  3 incarnation; '' in quarantine: the lock is not passed on then
-- Answers 1, or {'lost', why}.
if redis.call('GET', KEYS[1]) == ARGV[1] then
    redis.call('DEL', KEYS[1])
    if redis.call('EXISTS', KEYS[2]) == 0 then
        return 1
    end
    -- include lib/keys.lua
    -- include lib/guard.lua
    -- include lib/queue.lua
    pass_on(ARGV[3])
    return 1
end
-- include lib/keys.lua
-- include lib/loss.lua
return loss(ARGV[2])
