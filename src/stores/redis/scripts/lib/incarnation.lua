-- Is it the incarnation that is meant? A server that restarted or was promoted has another replication id, and may
-- have forgotten a grant: whoever still names the old id is told of the change, and nothing else. id is
-- 'master_replid:ID' as INFO shows it, or '' for one that does not know.
local call, find, match, format = redis.call, string.find, string.match, string.format

local function check_incarnation(id)
    local info = call('INFO', 'replication')
    if not find(info, 'role:master', 1, true) then
        return 'replica'
    end
    if id == '' or not find(info, id, 1, true) then
        return 'new'
    end
end

local function clock_us()
    local time = call('TIME')
    return time[1] * 1000000 + time[2]
end
