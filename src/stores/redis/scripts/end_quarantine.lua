-- End a server's quarantine on the word of a person, and put down who, when and why.
-- KEYS  1 the server's record, as in handshake.lua
-- ARGV  1 'master_replid:ID', the incarnation that is meant  2 who  3 why
-- Answers {'opened', ms that were left}, {'open'} if there is no quarantine, {'new'} or {'replica'}.
-- include lib/guard.lua
local LOG_MAX = 4096 -- bytes of what is kept about earlier ones

local changed = guard(ARGV[1])
if changed then
    return {changed}
end
local now = math.floor(clock_us() / 1000)
local id, open_at, rest = match(call('GET', KEYS[1]) or '', '^(%x+) (%d+)( .*)$')
if not id or 'master_replid:' .. id ~= ARGV[1] then
    return {'new'}
end
local left = open_at - now
if left <= 0 then
    return {'open'}
end
call('SET', KEYS[1], format('%s %.0f%s', id, now, rest))
local log = KEYS[1] .. ':opened'
local entry = format('%.0f %s %s: %s\n', now, id, ARGV[2], ARGV[3])
call('SET', log, string.sub(entry .. (call('GET', log) or ''), 1, LOG_MAX))
return {'opened', left}
