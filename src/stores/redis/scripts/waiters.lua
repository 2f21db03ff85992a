-- Who waits for a lock, the next one first.
-- KEYS  1 lock  2 record
-- ARGV  1 how many are enough
-- Answers for each of them how long it has waited, in ms, and its label; -1 and '' if that is not known.
-- include lib/keys.lua
-- include lib/incarnation.lua
-- include lib/party.lua
local now = clock_us()
local answer = {}
-- Some of them may be dead.
for _, owner in ipairs(call('ZRANGE', QUEUE, 0, 2 * ARGV[1])) do
    local single = tonumber(call('ZSCORE', LEASES, owner) or 0) > now / 1000
    local told = single and (call('GET', QUEUE .. ':' .. owner) or '') or party_of(owner)
    if told and #answer < 2 * ARGV[1] then
        local since, label = match(told, single and '^(%d+) (.*)$' or '^. (%d+) (.*)$')
        answer[#answer + 1] = since and format('%.0f', math.max(0, math.floor((now - since) / 1000))) or '-1'
        answer[#answer + 1] = label or ''
    end
end
return answer
