-- Is the lock held by this owner, with this token?
-- KEYS  1 lock  2 record
-- ARGV  1 owner  2 token
-- Answers {'held', pttl, ttl on record, 'broken' if it was} or {'lost', why}.
-- include lib/keys.lua
-- include lib/broken.lua
-- include lib/loss.lua
local holder = redis.call('GET', KEYS[1])
local broken = holder == ARGV[1] .. '!'
if holder ~= ARGV[1] and not broken then
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
return {'held', redis.call('PTTL', KEYS[1]), ttl, broken and 'broken' or ''}
