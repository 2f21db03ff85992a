-- What there is to say about one lock.
-- KEYS  1 lock  2 record  3 queue  4 waiters' leases
-- Answers {held, pttl, token, age in ms, flags, label, waiters, kind}.
-- include lib/guard.lua
local now = clock_us()
local waiters = call('ZCOUNT', KEYS[4], format('(%.0f', now / 1000), '+inf')
local held = call('TYPE', KEYS[1]).ok
if held == 'none' then
    return {0, -1, '0', -1, '-', '', waiters, 'none'}
end

local left = call('PTTL', KEYS[1])
local holder = held == 'string' and call('GET', KEYS[1])
local record = call('GET', KEYS[2])
if record and holder then
    local token, flags, owner, label = match(record, '^q?(%d+) %d+ (%S+) (%x+) (.*)$')
    if owner == holder then
        -- A token is the time it was given, in microseconds, unless the clock went back.
        local age = math.max(0, math.floor((now - token) / 1000))
        return {1, left, token, age, flags, label, waiters, 'ours'}
    end
end
local queued = holder and call('ZSCORE', KEYS[3], holder)
return {1, left, '0', -1, '-', '', waiters, queued and 'waiter' or 'foreign'}
