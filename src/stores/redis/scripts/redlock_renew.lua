-- Extend a hold at one node of a redlock. Never creates.
-- KEYS  1 lock  2 record: "counter ttl flags owner label"
-- ARGV  1 owner  2 token  3 ttl in ms
-- Answers 1 if the node knows the hold by this token, 0 if it holds the owner's key only, {'lost', why}.
-- include lib/redlock_hold.lua
local known, record = hold_of(ARGV[1], ARGV[2])
if known then
    redis.call('PEXPIRE', KEYS[1], ARGV[3])
    if string.match(record, '^q?%d+ (%d+) ') ~= ARGV[3] and record ~= '' then
        redis.call('SET', KEYS[2], (string.gsub(record, '^(q?%d+) %d+', '%1 ' .. ARGV[3])))
    end
    return known
end
if known == false then
    return {'lost', 'taken'}
end
-- include lib/keys.lua
-- include lib/broken.lua
-- include lib/loss.lua
return loss(ARGV[2])
