-- The queue of a lock: QUEUE orders the waiters, LEASES holds until when each has shown signs of
-- life, LEASES:OWNER is the list on which one of them sleeps, QUEUE:OWNER since when it waits, and its label.
-- A waiter for one of several locks has only its place in QUEUE; the rest is its party's.
local LEASE_MS = 3000  -- a waiter that was silent for this long is dead
local WINDOW_MS = 1000 -- how long a hand-over waits for the waiter's own confirmation
local POLL_MS = 1000   -- how often a waiter asks, whatever it was told
local PURGE_MAX = 100  -- dead waiters removed in one go
local CROWD = 8        -- waiters that are looked at in one go

local function leave_queue(owner)
    call('ZREM', QUEUE, owner)
    if call('ZREM', LEASES, owner) == 1 then
        call('DEL', LEASES .. ':' .. owner, QUEUE .. ':' .. owner)
    end
end

-- Takes a waiter out of the queue if it is dead: purge() knows nothing of parties.
local function drop_dead(owner)
    if not call('ZSCORE', LEASES, owner) and not party_of(owner) then
        leave_queue(owner)
    end
end

-- Puts a waiter at the tail, unless it is in the queue. If it comes behind somebody, the expiry of the queue stays
-- as it is: that lasts until it asks again. True if it was not in the queue before.
local function line_up(owner)
    local place = call('ZSCORE', QUEUE, owner)
    local before
    if place then
        before = call('ZRANGE', QUEUE, '(' .. place, '-inf', 'BYSCORE', 'REV', 'LIMIT', 0, 1)[1]
        if before then
            drop_dead(before)
        end
    else
        before = call('ZRANGE', QUEUE, -1, -1, 'WITHSCORES')[2]
        call('ZADD', QUEUE, format('%.0f', (before or 0) + 1), owner)
    end
    if place or not before then
        call('PEXPIRE', QUEUE, 2 * LEASE_MS)
    end
    return not place
end

-- Puts one who waits for this lock alone in line, and notes that it lives.
local function enqueue(owner, now_us, label)
    local who = QUEUE .. ':' .. owner
    if line_up(owner) then
        call('SET', who, format('%.0f ', now_us) .. label, 'PX', 2 * LEASE_MS)
    else
        call('PEXPIRE', who, 2 * LEASE_MS)
    end
    call('ZADD', LEASES, format('%.0f', now_us / 1000 + LEASE_MS), owner)
    call('PEXPIRE', LEASES, 2 * LEASE_MS)
end

local function purge(now_us)
    local now_ms = format('%.0f', now_us / 1000)
    local dead
    repeat
        dead = call('ZRANGEBYSCORE', LEASES, '-inf', now_ms, 'LIMIT', 0, PURGE_MAX)
        for _, owner in ipairs(dead) do
            leave_queue(owner)
        end
    until #dead < PURGE_MAX
end

-- The first from this place on that still lives and waits, and what its party's key holds if it has one; or nil.
local function live_behind(at)
    local some = call('ZRANGE', QUEUE, at, at + CROWD - 1)
    local keys = {}
    for i, owner in ipairs(some) do
        keys[i] = party_key(owner, 'p')
    end
    local parties = keys[1] and redis.pcall('MGET', unpack(keys)) or {}
    for i, owner in ipairs(some) do
        if parties[i] and string.sub(parties[i], 1, 1) == '-' then
            return owner, parties[i]
        elseif not parties[i] and call('ZSCORE', LEASES, owner) then
            return owner
        elseif not parties[i] then
            leave_queue(owner)
            at = at - 1
        end
    end
    if #some == CROWD then
        return live_behind(at + CROWD)
    end
end

-- The first waiter that still lives and waits. A party that was handed another of its locks does not: it is
-- about to leave this queue; or it is dead, and one lock has already waited for it in vain.
local function live_head(now_us)
    purge(now_us)
    local head = call('ZRANGE', QUEUE, 0, 0)[1]
    if not head or call('ZSCORE', LEASES, head) then
        return head
    end
    return live_behind(0)
end

-- Gives the free lock to a waiter for the claim window and wakes it. Its lease in the queue ends with
-- the window, so that a waiter that died just before costs no more than that.
local function hand_over(owner, now_us, party)
    local wake
    call('SET', LOCK, owner, 'PX', WINDOW_MS)
    if party then
        wake = party_key(owner, 'w')
        call('SET', party_key(owner, 'p'), '+' .. string.sub(party, 2), 'PX', LEASE_MS)
    else
        wake = LEASES .. ':' .. owner
        call('ZADD', LEASES, format('%.0f', now_us / 1000 + WINDOW_MS), owner)
    end
    call('RPUSH', wake, '1')
    call('PEXPIRE', wake, WINDOW_MS)
end

-- After the lock became free: to the next one, unless this server may have forgotten a holder.
local function pass_on(id)
    if check_incarnation(id) then
        return
    end
    local now = clock_us()
    local head, party = live_head(now)
    if head then
        hand_over(head, now, party)
    end
end

-- Was it another attempt of this owner, whose holds have other flags, that was granted the lock? A request
-- that came twice is two attempts.
local function is_of_another(owner, flags)
    local known, holder = match(call('GET', RECORD) or '', '^q?%d+ %d+ (%S+) (%x+) ')
    return holder == owner and known ~= flags
end

-- For whoever does not want the lock any more, or may have asked for it without hearing an answer: leaves
-- the queue, gives back what was handed over meanwhile, and sees that a free lock finds its next owner.
-- flags: nil, '', or those of this attempt.
local function leave_lock(owner, id, flags)
    leave_queue(owner)
    local holder = call('GET', LOCK)
    if (holder == owner or holder == owner .. '!') and -- '!': it was broken
        not ((flags or '') ~= '' and is_of_another(owner, flags)) then
        call('DEL', LOCK)
        holder = false
    end
    if not holder and call('EXISTS', QUEUE) == 1 then
        pass_on(id)
    end
end
