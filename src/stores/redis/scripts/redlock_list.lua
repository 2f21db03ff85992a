-- What one node of a redlock knows about a lock.
-- KEYS  1 lock  2 record
-- Answers {owner ('' if free), pttl, counter (0: not its token), flags, label, clock in us}.
-- include lib/incarnation.lua
local holder = call('TYPE', KEYS[1]).ok == 'string' and call('GET', KEYS[1]) or ''
local record = call('GET', KEYS[2]) or ''
local counter, flags, owner, label = match(record, '^q?(%d+) %d+ (%S+) (%x+) (.*)$')
if flags and find(flags, 'u', 1, true) then
    counter = '0' -- it is not the holder's token
end
if holder == '' or owner ~= holder then
    counter, flags, label = counter or '0', '-', ''
end
return {holder, call('PTTL', KEYS[1]), counter, flags, label, format('%.0f', clock_us())}
