-- Break a hold at one node of a redlock, as revoke.lua does at a single server.
-- KEYS  1 lock  2 record
-- ARGV  1 owner, or the SHA-1 of what a foreign client wrote  2 token; '0': a foreign holder's  3 who  4 why
--       5 '1': now
-- Answers {'revoked', ms that it may last, 1 if the node knows the hold by this token} or {'lost', why}.
-- include lib/keys.lua
-- include lib/broken.lua
-- include lib/revoke.lua
-- include lib/redlock_hold.lua
-- include lib/loss.lua
local now = ARGV[5] == '1'

if ARGV[2] == '0' then
    if redis.sha1hex(redis.call('GET', KEYS[1]) or '') ~= ARGV[1] then
        return {'lost', 'taken'}
    end
    return {'revoked', revoke('', '0', ARGV[3], ARGV[4], true), 1}
end
local known, _, broken = hold_of(ARGV[1], ARGV[2], true)
if known == false then
    return {'lost', 'taken'}
end
if not known then
    return loss(ARGV[2])
end
if broken and not now then
    return {'revoked', redis.call('PTTL', KEYS[1]), known}
end
return {'revoked', revoke(ARGV[1], ARGV[2], ARGV[3], ARGV[4], now), known}
