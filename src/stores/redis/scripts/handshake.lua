-- Meet a server: which incarnation is it, and may it grant?
-- KEYS  1 the server's record: "id open_at since max_ttl", times in ms of the server's clock
-- ARGV  1 max_ttl in ms; 0 for somebody who only looks: nothing is put on record
-- Answers {'open', id, policy}, {'quarantine', id, ms left, policy}, {'max_ttl', the one on record},
-- {'replica'} or {'corrupt'}.
local function field(text, name)
    return string.match(text, name .. ':([^\r\n]*)')
end

local mine = tonumber(ARGV[1])
local info = redis.call('INFO', 'replication')
if field(info, 'role') ~= 'master' then
    return {'replica'}
end
local id = field(info, 'master_replid')
local memory = redis.call('INFO', 'memory')
local policy = field(memory, 'maxmemory') ~= '0' and field(memory, 'maxmemory_policy') or 'noeviction'

if mine == 0 then
    return {'open', id, policy}
end

local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local record = redis.call('GET', KEYS[1])
local seen, open_at, since, agreed
if record then
    seen, open_at, since, agreed = string.match(record, '^(%x+) (%d+) (%d+) (%d+)$')
    if not seen then
        return {'corrupt'}
    end
    open_at, since, agreed = tonumber(open_at), tonumber(since), tonumber(agreed)
end

local save = false
if seen ~= id then
    -- A life we have not met. It may have forgotten what was granted within max_ttl before it began.
    -- Without a second replication id it began with the process; a promoted one began who knows when.
    if agreed and agreed ~= mine then
        return {'max_ttl', string.format('%.0f', agreed)}
    end
    since = now
    if string.match(field(info, 'master_replid2'), '^0+$') then
        local uptime = tonumber(field(redis.call('INFO', 'server'), 'uptime_in_seconds'))
        since = now - math.max(0, uptime - 1) * 1000
    end
    open_at = since + mine
    save = true
elseif agreed ~= mine then
    -- After the loss of all data the first client's word is as good as another's: until the server
    -- opens, the longest ttl counts.
    if open_at <= now or mine < agreed then
        return {'max_ttl', string.format('%.0f', agreed)}
    end
    open_at = since + mine
    save = true
end
if open_at > now + mine then
    -- The server's clock went back. No grant lives longer than this.
    since, open_at, save = now, now + mine, true
end
if save then
    redis.call('SET', KEYS[1], string.format('%s %.0f %.0f %.0f', id, open_at, since, mine))
end
if open_at > now then
    return {'quarantine', id, open_at - now, policy}
end
return {'open', id, policy}
