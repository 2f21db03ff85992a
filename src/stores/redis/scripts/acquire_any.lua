-- Take the first of several locks that is free, or confirm a hand-over, and leave the other queues; or queue
-- for all of them.
-- KEYS  1 lock  2 record; and so on for each lock
-- ARGV  1 ttl in ms  2 flags  3 label  4 'master_replid:ID', the incarnation  5 '1' to queue when all are
--       busy  6 '1' if we may stand in the queues already  7 owner; and so on for each lock
-- Answers {'granted', which, token}, {'busy', ask again in ms, pttl, token, label, kind} of the first, {'new'},
-- {'replica'}, {'twice', '', which} or {'corrupt', 'record' or 'clock', which}.
-- include lib/incarnation.lua
local COUNT, OWNERS = #KEYS / 2, 6
local ttl = ARGV[1]

local changed = check_incarnation(ARGV[4])
if changed then
    return {changed}
end
local time = call('TIME')
local token = time[1] .. (#time[2] == 6 and time[2] or string.sub('00000' .. time[2], -6))

local function text(owner)
    return ttl .. ' ' .. ARGV[2] .. ' ' .. owner .. ' ' .. ARGV[3]
end

-- The common case, as in acquire.lua: one is free, and nobody waits for it. If it is not the first, they
-- are looked at all at once.
local fresh = ARGV[6] ~= '1'
local found -- who holds each of them, and its record
for i = 1, fresh and COUNT or 0 do
    local lock, record, owner = KEYS[2 * i - 1], KEYS[2 * i], ARGV[OWNERS + i]
    if not (found and found[2 * i - 1]) and call('SET', lock, owner, 'NX', 'PX', ttl) then
        local old = call('SET', record, token .. ' ' .. text(owner), 'GET')
        if #token == 16 and token < '9007199254740991' and
            (not old or old < token and select(2, find(old, '^%d+ ')) == 17) then
            return {'granted', i, token}
        end
        call('DEL', lock)
        if old then
            call('SET', record, old)
        else
            call('DEL', record)
        end
    end
    found = found or call('MGET', unpack(KEYS))
end

-- include lib/keys.lua
-- include lib/shape.lua
-- include lib/party.lua
-- include lib/queue.lua
-- include lib/take.lua
local now = tonumber(token)
local party = party_key(ARGV[OWNERS + 1], 'p')
local queues = {}
for i = 1, COUNT do
    queues[i] = string.sub(KEYS[2 * i], 1, -2) .. 'q'
end
found = found or call('MGET', unpack(KEYS))

-- What is no string, GET complains of.
local function seen(key)
    found[key] = found[key] or call('GET', KEYS[key])
    return found[key]
end

-- Out of the other queues. What was handed to us besides, in this very moment, is for the next.
local function leave_others(taken)
    for i = 1, COUNT do
        local owner, holder = ARGV[OWNERS + i], found[2 * i - 1]
        if i ~= taken and holder and string.sub(holder, 1, #owner) ~= owner then
            call('ZREM', queues[i], owner)
        elseif i ~= taken then
            use(i)
            leave_lock(owner, ARGV[4])
        end
    end
    call('DEL', party, party_key(ARGV[OWNERS + 1], 'w'))
end

-- The answer, if the i-th can be taken, or something is wrong with it.
local function try(i)
    local owner, record, holder = ARGV[OWNERS + i], seen(2 * i), seen(2 * i - 1)
    if holder and holder ~= owner and (not record or find(record, '^q?%d+ ')) then
        return
    end
    use(i)
    local taken, wrong, other = take(owner, ttl, text(owner), now, '', holder, record)
    if wrong then
        return {wrong[1], wrong[2] or '', i}
    end
    if taken and not fresh then
        leave_others(i)
    end
    found[2 * i - 1] = other
    return taken and {'granted', i, taken}
end

-- At the tail of every queue: by the clock, and behind whoever is in the first of them should that have been
-- set back. True if there was a queue everywhere, and each lasts until we ask again.
local function line_up_everywhere()
    local last = call('ZRANGE', queues[1], -1, -1, 'WITHSCORES')[2]
    local place = format('%.0f', math.max(now, (last or 0) + 1))
    local lasting = call('EXISTS', unpack(queues)) == COUNT and call('PTTL', queues[1]) > LEASE_MS
    for i = 1, COUNT do
        call('ZADD', queues[i], place, ARGV[OWNERS + i])
        if not lasting then
            call('PEXPIRE', queues[i], 2 * LEASE_MS)
        end
    end
    return lasting
end

-- Queues for all of them, or stays in the queues. In how many ms to ask again.
local function stand()
    local again, since = POLL_MS, nil
    local behind = fresh and line_up_everywhere()
    for i = 1, COUNT do
        local owner = ARGV[OWNERS + i]
        mark_waited_for(KEYS[2 * i], found[2 * i])
        if not behind then
            use(i)
            purge(now)
            line_up(owner)
            again = math.min(again, ask_again(owner, found[2 * i - 1]))
        end
    end
    if not fresh then
        since = match(party_of(ARGV[OWNERS + 1]) or '', '^. (%d+) ')
    end
    call('SET', party, '- ' .. (since or format('%.0f', now)) .. ' ' .. ARGV[3], 'PX', LEASE_MS)
    return again
end

-- One that was handed to us comes first.
local answer
for i = 1, fresh and 0 or COUNT do
    answer = answer or found[2 * i - 1] == ARGV[OWNERS + i] and try(i)
end
for i = 1, COUNT do
    answer = answer or try(i)
end
if answer then
    return answer
end
local again = ARGV[5] == '1' and stand() or POLL_MS
use(1)
return busy(again, found[1], found[2])
