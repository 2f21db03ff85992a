-- Does this owner hold the lock at this node? The counter may be another than the token: a node that
-- granted late counts for nothing in the token, but its key keeps others out all the same.
-- KEYS  1 lock  2 record
-- ARGV  1 owner  2 token
-- Answers {'held', pttl, ttl on record, counter} or {'lost', why}.
-- include lib/keys.lua
-- include lib/loss.lua
if redis.call('GET', KEYS[1]) ~= ARGV[1] then
    return loss(ARGV[2])
end
local counter, ttl = string.match(redis.call('GET', KEYS[2]) or '', '^q?(%d+) (%d+) ')
return {'held', redis.call('PTTL', KEYS[1]), ttl or '0', counter or '0'}
