-- End a hold at one node of a redlock. Nobody queues there, so nothing is passed on.
-- KEYS  1 lock  2 record
-- ARGV  1 owner  2 token
-- Answers 1, or {'lost', why}.
if redis.call('GET', KEYS[1]) == ARGV[1] then
    return redis.call('DEL', KEYS[1])
end
-- include lib/keys.lua
-- include lib/loss.lua
return loss(ARGV[2])
