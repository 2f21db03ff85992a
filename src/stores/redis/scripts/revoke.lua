-- Break a hold: it is no longer renewed, and stays until it is released or its time is over. Or end it now.
-- KEYS  1 lock  2 record
-- ARGV  1 token; '0': a foreign holder's  2 who  3 why  4 '1': now  5 incarnation; '' in quarantine: the
--       lock is not passed on then
-- Answers {'revoked', ms that it may last, flags, label, kind, '1' if it was broken before}, {'not', why} or
-- {'replica'}.
-- include lib/keys.lua
-- include lib/incarnation.lua
-- include lib/party.lua
-- include lib/queue.lua
-- include lib/broken.lua
-- include lib/revoke.lua
local now = ARGV[4] == '1'

if not find(call('INFO', 'replication'), 'role:master', 1, true) then
    return {'replica'}
end
local type = call('TYPE', KEYS[1]).ok
local holder = type == 'string' and call('GET', KEYS[1]) or ''
local token, flags, owner, label = match(call('GET', RECORD) or '', '^q?(%d+) %d+ (%S+) (%x+) (.*)$')
local again = owner and holder == owner .. '!'
local kind = owner and (holder == owner or again) and 'ours' or 'foreign'

if type == 'none' then
    return {'not', 'free'}
end
if kind == 'foreign' then
    if call('ZSCORE', QUEUE, holder) then
        return {'not', 'waiter'}
    end
    token, flags, label = '0', '-', ''
end
if token ~= ARGV[1] then
    return {'not', kind}
end
if again and not now then
    return {'revoked', call('PTTL', KEYS[1]), flags, label, kind, '1'}
end
local left = revoke(owner, token, ARGV[2], ARGV[3], now)
if now and call('EXISTS', QUEUE) == 1 then
    pass_on(ARGV[5])
end
return {'revoked', left, flags, label, kind, again and '1' or ''}
