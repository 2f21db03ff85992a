-- The records of a lock: a hash, so that they move as one in a cluster. Each key has "token number written
-- until value", the times in ms of this server's clock, until 0: for ever. The key of the hash is declared by
-- whoever calls: while its slot is on the move the server tells where it is, and not that there is none.
local call, match, format = redis.call, string.match, string.format

local function clock_ms()
    local time = call('TIME')
    return time[1] * 1000 + math.floor(time[2] / 1000)
end

-- What a replica has may be old, so it proves nothing.
local replication = call('INFO', 'replication')
if not string.find(replication, 'role:master', 1, true) then
    return {'replica'}
end
