-- The records of a lock. RECORDS has under each key "token number written until value", the times in ms of
-- this server's clock, until 0: for ever. BY_KEY has the keys in the order of their bytes, BY_UNTIL those
-- that expire, by when.
local RECORDS, BY_KEY, BY_UNTIL = STEM .. 'r', STEM .. 'k', STEM .. 'x'
local call, match, format = redis.call, string.match, string.format

local function clock_ms()
    local time = call('TIME')
    return time[1] * 1000 + math.floor(time[2] / 1000)
end

-- What a replica has may be old, and says nothing.
local replication = call('INFO', 'replication')
if not string.find(replication, 'role:master', 1, true) then
    return {'replica'}
end
