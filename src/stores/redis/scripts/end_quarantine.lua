-- End a server's quarantine on the word of a person, and note who said so, when and why.
-- KEYS  1 the server's record, as in handshake.lua
-- ARGV  1 'master_replid:ID', the incarnation that is meant  2 in a cluster the second place of the record,
--       else ''  3 who  4 why
-- Answers {'opened', ms that were left}, {'open'} if there is no quarantine, {'new'} or {'replica'}.
-- include lib/incarnation.lua
local LOG_MAX = 4096 -- bytes of what is kept about earlier ones

local changed = check_incarnation(ARGV[1])
if changed then
    return {changed}
end
local now = math.floor(clock_us() / 1000)
local record = call('GET', KEYS[1])
local id, open_at, rest = match(record or '', '^(%x+) (%d+)( %d+ %d+[^\n]*)')
if not id or 'master_replid:' .. id ~= ARGV[1] then
    return {'new'}
end

-- What a server of a cluster knows of its slots counts as long settled, too.
local left = math.max(0, open_at - now)
local lines = {}
for at, shape in string.gmatch(record, '\n(%d+) ([^\n]*)') do
    lines[#lines + 1] = {at = tonumber(at), shape = shape}
end
local last = lines[#lines]
local max_ttl = tonumber(match(rest, '^ %d+ (%d+)'))
if last and (#lines > 1 or last.at > now - max_ttl) then
    left = math.max(left, last.at + max_ttl - now)
end
if left == 0 then
    return {'open'}
end
local text = format('%s %.0f%s', id, math.min(open_at, now), rest)
if last then
    text = text .. format('\n%.0f %s', math.min(last.at, now - max_ttl), last.shape)
end
call('SET', KEYS[1], text, 'KEEPTTL')
if ARGV[2] ~= '' then
    redis.pcall('SET', ARGV[2], text, 'KEEPTTL')
end
local log = KEYS[1] .. ':opened'
local entry = format('%.0f %s %s: %s\n', now, id, ARGV[3], ARGV[4])
call('SET', log, string.sub(entry .. (call('GET', log) or ''), 1, LOG_MAX))
return {'opened', left}
