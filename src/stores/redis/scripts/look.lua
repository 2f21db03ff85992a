-- Is the lock held by this owner, with this token?
-- KEYS  1 lock  2 record
-- ARGV  1 owner  2 token
-- Answers {'held', pttl, ttl on record} or {'lost', why}.
-- include lib/keys.lua
-- include lib/loss.lua
if redis.call('GET', KEYS[1]) ~= ARGV[1] then
    return loss(ARGV[2])
end
local record = redis.call('GET', KEYS[2])
if not record then
    return {'lost', 'forgotten'}
end
local token, ttl = string.match(record, '^q?(%d+) (%d+) ')
if token ~= ARGV[2] then
    return {'lost', 'taken'}
end
return {'held', redis.call('PTTL', KEYS[1]), ttl}
