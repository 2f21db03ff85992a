-- The common case of taking a lock, in two steps: nobody holds it, nobody waits for it, and the clock is ahead of
-- its last token. Before: lock, record, owner, text ("ttl flags owner label"), ttl, token by the clock, and settled:
-- whether a lock without a record is really new. After: taken. Not a function, because a call would take longer.
local taken
if call('SET', lock, owner, 'NX', 'PX', ttl) then
    local old = call('SET', record, token .. ' ' .. text, 'GET')
    -- From 2001 to 2255 tokens have 16 digits; between two of those the order as text is their order.
    if #token == 16 and token < '9007199254740991' and
        (old and old < token and select(2, find(old, '^%d+ ')) == 17 or not old and settled) then
        taken = token
    else
        -- Not the common case after all: undone.
        call('DEL', lock)
        if old then
            call('SET', record, old)
        else
            call('DEL', record)
        end
    end
end
