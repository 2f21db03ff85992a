-- The second round of a redlock: lift the counter of a node that granted, never lower it.
-- KEYS  1 lock  2 record: "counter ttl flags owner label"
-- ARGV  1 owner  2 token  3 incarnation
-- Answers 1, {'refused'}, {'new'} or {'replica'}.
-- include lib/incarnation.lua
local changed = check_incarnation(ARGV[3])
if changed then
    return {changed}
end
local record = call('GET', KEYS[1]) == ARGV[1] and call('GET', KEYS[2])
local counter = record and tonumber(match(record, '^q?(%d+)'))
if not counter or counter >= tonumber(ARGV[2]) then
    return {'refused'}
end
-- From here on the counter is the owner's token, whatever it was before.
call('SET', KEYS[2], (string.gsub(record, '^q?%d+( %d+ [^ u]*)u?', ARGV[2] .. '%1')))
return 1
