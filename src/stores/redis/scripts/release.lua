-- End a hold and pass the lock on. Deletes before it writes, so it works on a server without memory.
-- KEYS  1 lock  2 record
-- ARGV  1 owner  2 token; '0': whatever this owner holds  3 incarnation; '' in quarantine: the lock is
--       not passed on then
-- Answers 1, or {'lost', why}.
local holder = redis.call('GET', KEYS[1])
if holder == ARGV[1] or holder == ARGV[1] .. '!' then -- '!': it was broken
    local record = redis.call('GET', KEYS[2])
    local token = record and string.match(record, '^q?(%d+) ')
    if ARGV[2] == '0' or not token or token == ARGV[2] then
        redis.call('DEL', KEYS[1])
        if record and string.sub(record, 1, 1) ~= 'q' then
            return 1
        end
        -- include lib/keys.lua
        -- include lib/incarnation.lua
        -- include lib/party.lua
        -- include lib/queue.lua
        if call('EXISTS', QUEUE) == 1 then
            pass_on(ARGV[3])
        end
        return 1
    end
end
-- include lib/keys.lua
-- include lib/broken.lua
-- include lib/loss.lua
return loss(ARGV[2])
