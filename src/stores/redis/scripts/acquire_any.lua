-- Take the first of several locks that is free, or confirm a hand-over, and leave the other queues; or queue
-- for all of them.
-- KEYS  1 lock  2 record, of the first
-- ARGV  1 to 5 as in acquire.lua, of the first  6 '' or, if we may stand in the queues already, 'again'
--       7 lock and record of each of the others, with a NUL behind each: in one word, because a server that
--       finds the first one free spends more on many words than on taking the lock  8 the last two digits of every
--       owner, by which they differ
-- Answers the token of the first, {'granted', which, token}, {'busy', ask again in ms, pttl, token, label, kind}
-- of the first, {'new'}, {'replica'}, {'twice', '', which} or {'corrupt', 'record' or 'clock', which}.
-- include lib/incarnation.lua
local lock, record, owner, text, ttl = KEYS[1], KEYS[2], ARGV[1], ARGV[5], ARGV[2]
local settled, fresh = true, ARGV[6] == ''

local changed = check_incarnation(ARGV[3])
if changed then
    return {changed}
end
local time = call('TIME')
local token = time[1] .. (#time[2] == 6 and time[2] or string.sub('00000' .. time[2], -6))
if fresh then
    -- include lib/free.lua
    if taken then
        return taken
    end
end

local COUNT = #ARGV[8] / 2
local KEYS = {KEYS[1], KEYS[2], struct.unpack(string.rep('s', 2 * COUNT - 2), ARGV[7])}
KEYS[2 * COUNT + 1] = nil -- not a key: where unpack stopped
local before_owner, label = match(ARGV[5], '^(%d+ %S+ )%x+ (.*)$')

local function owner_of(i)
    return string.sub(ARGV[1], 1, -3) .. string.sub(ARGV[8], 2 * i - 1, 2 * i)
end

local function text_of(owner)
    return before_owner .. owner .. ' ' .. label
end

-- Who holds each of them, and its record. Of the others, one may be just as free.
local found = call('MGET', unpack(KEYS))
for i = 2, fresh and COUNT or 0 do
    if not found[2 * i - 1] then
        lock, record, owner = KEYS[2 * i - 1], KEYS[2 * i], owner_of(i)
        text = text_of(owner)
        -- include lib/free.lua
        if taken then
            return {'granted', i, taken}
        end
    end
end

-- include lib/keys.lua
-- include lib/shape.lua
-- include lib/party.lua
-- include lib/queue.lua
-- include lib/take.lua
local now = tonumber(token)
local party = party_key(ARGV[1], 'p')
local owners, queues = {}, {}
for i = 1, COUNT do
    owners[i], queues[i] = owner_of(i), string.sub(KEYS[2 * i], 1, -2) .. 'q'
end

-- MGET passes over what is not a string; GET fails for it.
local function seen(key)
    found[key] = found[key] or call('GET', KEYS[key])
    return found[key]
end

-- Leaves the other queues. A lock that was handed to us at this very moment as well goes to the next in line.
local function leave_others(taken)
    for i = 1, COUNT do
        local owner, holder = owners[i], found[2 * i - 1]
        if i ~= taken and holder and string.sub(holder, 1, #owner) ~= owner then
            call('ZREM', queues[i], owner)
        elseif i ~= taken then
            use(i)
            leave_lock(owner, ARGV[3])
        end
    end
    call('DEL', party, party_key(ARGV[1], 'w'))
end

-- The answer, if the i-th can be taken, or something is wrong with it.
local function try(i)
    local owner, record, holder = owners[i], seen(2 * i), seen(2 * i - 1)
    if holder and holder ~= owner and (not record or find(record, '^q?%d+ ')) then
        return
    end
    use(i)
    local taken, wrong, other = take(owner, ttl, text_of(owner), now, '', holder, record)
    if wrong then
        return {wrong[1], wrong[2] or '', i}
    end
    if taken and not fresh then
        leave_others(i)
    end
    found[2 * i - 1] = other
    return taken and {'granted', i, taken}
end

-- Joins the tail of every queue: by the clock, or, if that was set back, behind the last one in the first queue.
-- True if there was a queue everywhere, and each lasts until we ask again.
local function line_up_everywhere()
    local last = call('ZRANGE', queues[1], -1, -1, 'WITHSCORES')[2]
    local place = format('%.0f', math.max(now, (last or 0) + 1))
    local lasting = call('EXISTS', unpack(queues)) == COUNT and call('PTTL', queues[1]) > LEASE_MS
    for i = 1, COUNT do
        call('ZADD', queues[i], place, owners[i])
        if not lasting then
            call('PEXPIRE', queues[i], 2 * LEASE_MS)
        end
    end
    return lasting
end

-- Queues for all of them, or stays in the queues. Returns in how many ms to ask again.
local function stand()
    local again, since = POLL_MS, nil
    local behind = fresh and line_up_everywhere()
    for i = 1, COUNT do
        local owner = owners[i]
        mark_waited_for(KEYS[2 * i], found[2 * i])
        if not behind then
            use(i)
            purge(now)
            line_up(owner)
            again = math.min(again, ask_again(owner, found[2 * i - 1]))
        end
    end
    if not fresh then
        since = match(party_of(ARGV[1]) or '', '^. (%d+) ')
    end
    call('SET', party, '- ' .. (since or format('%.0f', now)) .. ' ' .. label, 'PX', LEASE_MS)
    return again
end

-- A lock that was handed to us comes first.
local answer
for i = 1, fresh and 0 or COUNT do
    answer = answer or found[2 * i - 1] == owners[i] and try(i)
end
for i = 1, COUNT do
    answer = answer or try(i)
end
if answer then
    return answer
end
local again = ARGV[4] == '1' and stand() or POLL_MS
use(1)
return busy(again, found[1], found[2])
