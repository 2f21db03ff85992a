-- Why the lock is not held by the one who asks, judged by the token on record.
local function loss(token)
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
