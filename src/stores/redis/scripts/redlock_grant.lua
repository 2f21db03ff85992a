-- One node's vote in a redlock: take the lock, and let the guess become the counter if that is sound.
-- KEYS  1 lock  2 record: "counter ttl flags owner label"
-- ARGV  1 owner  2 ttl in ms  3 incarnation  4 guess  5 window in us  6 "ttl flags owner label"
-- Answers {'granted', counter before, '1' if the guess was applied, clock in us},
-- {'held', pttl, label}, {'new'}, {'replica'} or {'corrupt'}.
-- include lib/guard.lua
local TOKEN_END = 9007199254740991 -- 2^53 - 1: above it Lua's numbers are not exact

local changed = guard(ARGV[3])
if changed then
    return {changed}
end
local record = call('GET', KEYS[2])
local prev = tonumber(match(record or '0', '^q?(%d+)'))
if not prev or prev >= TOKEN_END then
    return {'corrupt'}
end
if not call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then
    return {'held', call('PTTL', KEYS[1]), record and match(record, '^q?%d+ %d+ %S+ %x+ (.*)$') or ''}
end

-- The window keeps a client with a broken clock from moving the tokens.
local guess, now = tonumber(ARGV[4]), clock_us()
local applied = guess > prev and guess < TOKEN_END and math.abs(guess - now) <= tonumber(ARGV[5])
call('SET', KEYS[2], format('%.0f', applied and guess or prev) .. ' ' .. ARGV[6])
return {'granted', format('%.0f', prev), applied and 1 or 0, format('%.0f', now)}
