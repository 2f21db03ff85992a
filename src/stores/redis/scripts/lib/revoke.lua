-- Breaking a hold, once it is sure which one.
local KEEP_MS = 3600000 -- how long after the end of a hold its holder may still hear of the break

-- Notes who broke it, and ends it at once, or marks it and leaves its time as it is. Answers how long it may last.
-- The hold comes first: what follows a write is allowed on a server without memory.
local function revoke(owner, token, by, why, now)
    local left = redis.call('PTTL', KEYS[1])
    if now then
        redis.call('DEL', KEYS[1])
    else
        redis.call('SET', KEYS[1], owner .. '!', 'KEEPTTL')
    end
    local time = redis.call('TIME')
    local at = time[1] .. string.sub('00000' .. time[2], -6, -4)
    local last = redis.call('GET', broken_key())
    local of = string.match(last or '', '^%d+')
    if of and of ~= token then
        redis.call('SET', broken_key(of), last, 'PX', KEEP_MS)
    end
    redis.call('SET', broken_key(), token .. ' ' .. at .. '\n' .. by .. '\n' .. why,
        'PX', string.format('%.0f', math.max(left, 0) + KEEP_MS))
    return now and 0 or left
end
