-- Meet a server: which incarnation is it, and may it grant?
-- KEYS  1 the server's record: "id open_at since max_ttl [new]", times in ms of the server's clock; in
--         a cluster then a line "time shape" for each shape() that was seen within max_ttl
-- ARGV  1 max_ttl in ms
--       2 in a cluster the second place of the record, else ''
--       3 in a cluster the slot of a lock without a record, '' if it is not about one
--       4 '1' for somebody who only reads: nothing is put on record, and the max_ttl there is believed
-- Answers {'open', id, policy, shape, 'all', '', 'first', replicas online} or
-- {'quarantine', id, policy, ms left, why, uptime in ms, 'first', replicas online} with why = 'new', 'restarted',
-- 'promoted' or 'slots' (locks without a record only), {'max_ttl', the one on record}, {'replica'} or
-- {'corrupt'}. shape: the hash of what is settled for the slot, for all slots
-- if 'all' is not ''. 'first' is '' if the server has met us before.
-- include lib/shape.lua
local KEEP_MS = 2592000000 -- a record that stayed behind in a slot that moved goes after 30 days
local SHAPES_PER_TTL = 8   -- how often a change of shape is put on record

local function field(text, name)
    return string.match(text, name .. ':([^\r\n]*)')
end

local mine, copy, slot, reads = tonumber(ARGV[1]), ARGV[2], tonumber(ARGV[3]), ARGV[4] == '1'
local info = redis.call('INFO', 'replication')
if field(info, 'role') ~= 'master' then
    return {'replica'}
end
local id = field(info, 'master_replid')
local memory = redis.call('INFO', 'memory')
local policy = field(memory, 'maxmemory') ~= '0' and field(memory, 'maxmemory_policy') or 'noeviction'

-- In a cluster a record can only be kept under a key, and keys move with their slots. So it stands in
-- two slots of the server: as long as one of the two stays, so does the record.
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local records = {redis.call('GET', KEYS[1])}
if copy ~= '' then
    local other = redis.pcall('GET', copy)
    records[2] = type(other) == 'string' and other
end
local record, seen, open_at, since, agreed, new
for i = 1, 2 do
    local line = string.match(records[i] or '', '^[^\n]*')
    local a, b, c, d, e = string.match(line, '^(%x+) (%d+) (%d+) (%d+)( ?%a*)$')
    if records[i] and not a then
        return {'corrupt'}
    end
    if a and (not seen or a == id) then
        record, seen, new = records[i], a, e
        open_at, since, agreed = tonumber(b), tonumber(c), tonumber(d)
    end
end

-- The max_ttl that was agreed on is not changed by one client: one that comes with another value is refused,
-- even while the server is in quarantine, and nobody else waits longer because of it.
if agreed and agreed ~= mine and not reads then
    return {'max_ttl', string.format('%.0f', agreed)}
end
mine = agreed or mine
local uptime = tonumber(field(redis.call('INFO', 'server'), 'uptime_in_seconds')) * 1000
local promoted = not string.match(field(info, 'master_replid2'), '^0+$')
local save = false
if seen ~= id then
    -- A life we have not met. It may have forgotten what was granted within max_ttl before it began.
    -- Without a second replication id it began with the process; when a promoted one began is not known.
    since = promoted and now or now - math.max(0, uptime - 1000)
    new = not seen and not promoted and not string.find(redis.call('INFO', 'keyspace'), 'keys=', 1, true) and
        ' new' or ''
    open_at, save = since + mine, true
end
if open_at > now + mine then
    -- The server's clock went back. No grant lives longer than this.
    since, open_at, save = now, now + mine, true
end

-- Which slots are settled: those that are in every shape seen within max_ttl, under the same epoch. The
-- epoch gives away a slot that came and went between two meetings.
local live, shapes = '', {}
local settled_at, all = now, true
if copy ~= '' and not reads then
    live = shape()
    if seen == id then
        for at, text in string.gmatch(record, '\n(%d+) ([^\n]*)') do
            shapes[#shapes + 1] = {tonumber(at), text}
        end
    end
    if #shapes > 0 and shapes[#shapes][1] > now then
        shapes = {}
    end
    local last = shapes[#shapes]
    if not last or last[2] ~= live and now - last[1] >= mine / SHAPES_PER_TTL then
        shapes[#shapes + 1], save = {now, live}, true
    end
    while shapes[2] and shapes[2][1] <= now - mine do
        table.remove(shapes, 1)
    end
    if shapes[1][1] > now - mine then
        settled_at, all = shapes[1][1] + mine, false
    end
    local function has(text)
        local found = false
        for leaving, first, last in string.gmatch(text, ' (!?)(%d+)%-?(%d*)') do
            if slot >= tonumber(first) and slot <= (tonumber(last) or tonumber(first)) then
                if leaving ~= '' then
                    return false
                end
                found = true
            end
        end
        return found
    end
    for i, seen_shape in ipairs(shapes) do
        local text = seen_shape[2]
        if text ~= live then
            all = false
            if string.match(text, '^%d*') ~= string.match(live, '^%d*') or slot and not has(text) then
                settled_at = math.max(settled_at, (shapes[i + 1] and shapes[i + 1][1] or now) + mine)
            end
        end
    end
    save = save or records[1] ~= records[2] or redis.call('PTTL', KEYS[1]) < KEEP_MS / 2
end
if save and not reads then
    local text = string.format('%s %.0f %.0f %.0f%s', id, open_at, since, mine, new)
    for _, seen_shape in ipairs(shapes) do
        text = text .. string.format('\n%.0f %s', seen_shape[1], seen_shape[2])
    end
    if copy == '' then
        redis.call('SET', KEYS[1], text)
    else
        redis.call('SET', KEYS[1], text, 'PX', KEEP_MS)
        redis.pcall('SET', copy, text, 'PX', KEEP_MS)
    end
end
local first = seen and '' or 'first'
local _, replicas = string.gsub(info, 'state=online', '')
if open_at > now then
    local why = promoted and 'promoted' or new ~= '' and 'new' or 'restarted'
    return {'quarantine', id, policy, open_at - now, why, uptime, first, replicas}
end
if slot and settled_at > now then
    return {'quarantine', id, policy, settled_at - now, 'slots', uptime, first, replicas}
end
local settled = live ~= '' and (slot or all) and redis.sha1hex(live) or ''
return {'open', id, policy, settled, all and 'all' or '', '', first, replicas}
