-- What there is to say about one lock.
-- KEYS  1 lock  2 record
-- Answers {held, pttl, token, age in ms, flags, label, waiters, kind, ttl (0: not known)}, and of a hold that was broken also
-- when, by whom and why.
-- include lib/keys.lua
-- include lib/broken.lua
-- include lib/incarnation.lua
-- include lib/party.lua
local now = clock_us()
local waiters = count_waiters(now)
local held = call('TYPE', KEYS[1]).ok
if held == 'none' then
    return {0, -1, '0', -1, '-', '', waiters, 'none', '0'}
end

local left = call('PTTL', KEYS[1])
local holder = held == 'string' and call('GET', KEYS[1])
local record = call('GET', RECORD)
if record and holder then
    local token, ttl, flags, owner, label = match(record, '^q?(%d+) (%d+) (%S+) (%x+) (.*)$')
    if owner and (holder == owner or holder == owner .. '!') then
        -- A token is the time it was given, in microseconds, unless the clock went back.
        local age = math.max(0, math.floor((now - token) / 1000))
        local answer = {1, left, token, age, flags, label, waiters, 'ours', ttl}
        if holder ~= owner then
            local at, by, why = broken_by(token)
            answer[10], answer[11], answer[12] = at or '0', by or '', why or ''
        end
        return answer
    end
end
local queued = holder and call('ZSCORE', QUEUE, holder)
return {1, left, '0', -1, '-', '', waiters, queued and 'waiter' or 'foreign', '0'}
