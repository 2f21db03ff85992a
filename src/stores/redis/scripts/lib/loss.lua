-- Why the lock is not held by the one who asks, judged by the token on record. A hold that was broken is
-- {'lost', 'broken', at, who, why}.
local function loss(token)
    local at, by, why = broken_by(token)
    if at then
        return {'lost', 'broken', at, by, why}
    end
    if redis.call('EXISTS', KEYS[1]) == 1 then
        return {'lost', 'taken'}
    end
    local record = redis.call('GET', RECORD)
    local last = record and tonumber(string.match(record, '^q?(%d+)'))
    if not last or last < tonumber(token) then
        return {'lost', 'forgotten'}
    end
    return {'lost', last > tonumber(token) and 'taken' or 'expired'}
end
