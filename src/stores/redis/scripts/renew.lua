-- Extend a hold. Never creates.
-- KEYS  1 lock  2 record
-- ARGV  1 owner  2 ttl in ms  3 token
-- Answers 1, or {'lost', why}.
local record = redis.call('GET', KEYS[1]) == ARGV[1] and redis.call('GET', KEYS[2])
local token, ttl = string.match(record or '', '^q?(%d+) (%d+) ')
if token == ARGV[3] then
    redis.call('PEXPIRE', KEYS[1], ARGV[2])
    if ttl ~= ARGV[2] then
        redis.call('SET', KEYS[2], (string.gsub(record, '^(q?%d+) %d+', '%1 ' .. ARGV[2])))
    end
    return 1
end
-- include lib/keys.lua
-- include lib/broken.lua
-- include lib/loss.lua
return loss(ARGV[3])
