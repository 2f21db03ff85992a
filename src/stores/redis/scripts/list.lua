-- What there is to say about one lock.
-- KEYS  1 lock  2 record
-- Answers {held, pttl, token, age in ms, flags, label, waiters, kind}.
-- include lib/keys.lua
-- include lib/incarnation.lua
local now = clock_us()
local waiters = call('ZCOUNT', LEASES, format('(%.0f', now / 1000), '+inf')
local held = call('TYPE', KEYS[1]).ok
if held == 'none' then
    return {0, -1, '0', -1, '-', '', waiters, 'none'}
end

local left = call('PTTL', KEYS[1])
local holder = held == 'string' and call('GET', KEYS[1])
local record = call('GET', RECORD)
if record and holder then
    local token, flags, owner, label = match(record, '^q?(%d+) %d+ (%S+) (%x+) (.*)$')
    if owner == holder then
        -- A token is the time it was given, in microseconds, unless the clock went back.
        local age = math.max(0, math.floor((now - token) / 1000))
        return {1, left, token, age, flags, label, waiters, 'ours'}
    end
end
local queued = holder and call('ZSCORE', QUEUE, holder)
return {1, left, '0', -1, '-', '', waiters, queued and 'waiter' or 'foreign'}
