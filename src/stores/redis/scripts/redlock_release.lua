-- End a hold at one node of a redlock. Nobody queues there, so nothing is passed on.
-- KEYS  1 lock  2 record
-- ARGV  1 owner  2 token; 0: whatever the owner holds  3 flags of the hold, if one attempt is undone: what another
--       attempt of the same owner holds stays; or ''
-- Answers 1, or {'lost', why}.
-- include lib/redlock_hold.lua
local known, record = hold_of(ARGV[1], ARGV[2], true)
if known and ARGV[3] ~= '' then
    local flags, holder = string.match(record, '^q?%d+ %d+ ([^ u]*)u? (%x+)')
    known = not (holder == ARGV[1] and flags ~= ARGV[3])
end
if known then
    return redis.call('DEL', KEYS[1])
end
if known == false then
    return {'lost', 'taken'}
end
-- include lib/keys.lua
-- include lib/broken.lua
-- include lib/loss.lua
return loss(ARGV[2])
