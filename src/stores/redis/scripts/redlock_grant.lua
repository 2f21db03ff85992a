-- One node's vote in a redlock: take the lock, and let the guess become the counter if that is sound.
-- KEYS  1 lock  2 record: "counter ttl flags owner label"
-- ARGV  1 owner  2 ttl in ms  3 incarnation  4 guess  5 window in us  6 the record, with the guess
-- Answers {'granted', counter before, 1 if the guess was applied, clock in us}, {'held', pttl, label},
-- {'new'}, {'replica'} or {'corrupt', 'record' or 'clock'}. Every call and every string costs the node
-- time that five of them spend for each acquire: the usual way has as few as there can be.
-- include lib/incarnation.lua
local TOKEN_END = 9007199254740991 -- 2^53 - 1: above it Lua's numbers are not exact

local changed = check_incarnation(ARGV[3])
if changed then
    return {changed}
end
if not call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then
    local label = match(call('GET', KEYS[2]) or '', '^q?%d+ %d+ %S+ %x+ (.*)$')
    return {'held', call('PTTL', KEYS[1]), label or ''}
end
local before = call('SET', KEYS[2], ARGV[6], 'GET')
local prev = before and tonumber(match(before, '^q?(%d+)')) or not before and 0
local guess, now, window = tonumber(ARGV[4]), clock_us(), tonumber(ARGV[5])
if not prev or prev >= TOKEN_END or now >= TOKEN_END then
    call('DEL', KEYS[1])
    if before then
        call('SET', KEYS[2], before)
    else
        call('DEL', KEYS[2])
    end
    return {'corrupt', prev and prev < TOKEN_END and 'clock' or 'record'}
end

-- The window keeps a client with a broken clock from moving the tokens.
if guess > prev and guess < TOKEN_END and guess <= now + window and guess >= now - window then
    return {'granted', prev, 1, now}
end
-- 'u': the counter is not what this owner's token will be.
local rest = string.gsub(string.sub(ARGV[6], #ARGV[4] + 1), '^( %d+ %S+)', '%1u')
call('SET', KEYS[2], format('%.0f', prev) .. rest)
return {'granted', prev, 0, now}
