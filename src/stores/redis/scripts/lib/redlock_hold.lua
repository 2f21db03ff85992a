-- Does this owner hold the lock at this node, and is the token right? A node that took the guess, or was
-- raised, knows the hold by its counter. One whose counter was above the guess does not ('u' among the
-- flags), nor does one that the raise never reached: their keys keep others out all the same. So a token
-- above the counter may well be the hold's, and one below is that of no hold.
-- Answers nil if not held by this owner, false for an older token; else 1 if the token is known here, 0
-- if not, the record, and whether it was broken. Token 0 fits whatever the owner holds. A hold that was
-- broken is found only with broken_too: a renewal must not find it.
local function hold_of(owner, token, broken_too)
    local holder = redis.call('GET', KEYS[1])
    local broken = false
    if holder ~= owner then
        broken = broken_too and holder == owner .. '!'
        if not broken then
            return nil
        end
    end
    local record = redis.call('GET', KEYS[2]) or ''
    local counter, flags, holder = string.match(record, '^q?(%d+) %d+ (%S+) (%x+)')
    if token == '0' or holder ~= owner or string.find(flags, 'u', 1, true) then
        return 0, record, broken
    end
    local apart = tonumber(counter) - tonumber(token)
    return apart <= 0 and (apart == 0 and 1 or 0), record, broken
end
