-- Does this owner hold the lock with this token at this node?
-- KEYS  1 lock  2 record
-- ARGV  1 owner  2 token
-- Answers {'held', pttl, ttl on record, 1 if the node knows the hold by this token, 'broken' if it was} or
-- {'lost', why}.
-- include lib/keys.lua
-- include lib/broken.lua
-- include lib/loss.lua
-- include lib/redlock_hold.lua
local known, record, broken = hold_of(ARGV[1], ARGV[2], true)
if known then
    return {'held', redis.call('PTTL', KEYS[1]), string.match(record, '^q?%d+ (%d+) ') or '0', known,
        broken and 'broken' or ''}
end
if known == false then
    return {'lost', 'taken'}
end
return loss(ARGV[2])
