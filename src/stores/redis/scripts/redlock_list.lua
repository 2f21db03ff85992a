-- What one node of a redlock knows about a lock.
-- KEYS  1 lock  2 record
-- Answers {owner ('' if free), pttl, counter (0: not its token), flags, label, clock in us, SHA-1 of what a
-- foreign client wrote, ttl (0: not known)}, and of a hold that was broken also when, by whom and why.
-- include lib/broken.lua
-- include lib/incarnation.lua
local holder = call('TYPE', KEYS[1]).ok == 'string' and call('GET', KEYS[1]) or ''
local record = call('GET', KEYS[2]) or ''
local counter, ttl, flags, owner, label = match(record, '^q?(%d+) (%d+) (%S+) (%x+) (.*)$')
local broken = owner and holder == owner .. '!'
if broken then
    holder = owner
end
if flags and find(flags, 'u', 1, true) then
    counter = '0' -- it is not the holder's token
end
local foreign = ''
if holder == '' or owner ~= holder then
    counter, ttl, flags, label = counter or '0', '0', '-', ''
    foreign = holder ~= '' and redis.sha1hex(holder) or ''
end
local answer = {holder, call('PTTL', KEYS[1]), counter, flags, label, format('%.0f', clock_us()), foreign, ttl}
if broken then
    local at, by, why = broken_by(match(call('GET', broken_key()) or '', '^%d+'))
    answer[9], answer[10], answer[11] = at or '0', by or '', why or ''
end
return answer
