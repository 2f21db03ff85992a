-- End a hold at one node of a redlock. Nobody queues there, so nothing is passed on.
-- KEYS  1 lock  2 record
-- ARGV  1 owner  2 token; 0: whatever the owner holds
-- Answers 1, or {'lost', why}.
-- include lib/redlock_hold.lua
local known = hold_of(ARGV[1], ARGV[2], true)
if known then
    return redis.call('DEL', KEYS[1])
end
if known == false then
    return {'lost', 'taken'}
end
-- include lib/keys.lua
-- include lib/broken.lua
-- include lib/loss.lua
return loss(ARGV[2])
