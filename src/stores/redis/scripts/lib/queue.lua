-- The queue of a lock: QUEUE orders the waiters, LEASES holds until when each has shown signs of
-- life, LEASES:OWNER is the list on which one of them sleeps, QUEUE:OWNER since when it waits, and its label.
-- Who waits for one of several locks is a party: LEASES:OWNER:p names a key that is there from when one of
-- them was handed to it until it asks.
local LEASE_MS = 3000  -- a waiter that was silent for so long is dead
local WINDOW_MS = 1000 -- how long a hand-over waits for the waiter's own confirmation
local POLL_MS = 1000   -- how often a waiter asks, whatever it was told
local PURGE_MAX = 100  -- dead waiters removed in one go

local function leave_queue(owner)
    call('ZREM', QUEUE, owner)
    call('ZREM', LEASES, owner)
    call('DEL', LEASES .. ':' .. owner, QUEUE .. ':' .. owner, LEASES .. ':' .. owner .. ':p')
end

-- At the tail, unless it waits already; either way it lives. fresh: it certainly does not wait yet. Who
-- comes behind somebody leaves the time of the queue as it is: that lasts until it asks again.
local function enqueue(owner, now_us, label, fresh)
    local who = QUEUE .. ':' .. owner
    local tail
    if not fresh and call('ZSCORE', QUEUE, owner) then
        call('PEXPIRE', who, 2 * LEASE_MS)
    else
        tail = call('ZRANGE', QUEUE, -1, -1, 'WITHSCORES')[2]
        call('ZADD', QUEUE, format('%.0f', (tail or 0) + 1), owner)
        call('SET', who, format('%.0f ', now_us) .. label, 'PX', 2 * LEASE_MS)
    end
    call('ZADD', LEASES, format('%.0f', now_us / 1000 + LEASE_MS), owner)
    call('PEXPIRE', LEASES, 2 * LEASE_MS)
    if not tail then
        call('PEXPIRE', QUEUE, 2 * LEASE_MS)
    end
end

-- Was it handed another of the locks that it waits for? It is about to leave this queue; or it is dead,
-- and has cost one of them its time.
local function is_served(owner)
    local party = call('GET', LEASES .. ':' .. owner .. ':p')
    return party and call('EXISTS', party) == 1
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

-- The first waiter that still lives and waits, or nil.
local function live_head(now_us)
    local at = 0
    purge(now_us)
    local head = call('ZRANGE', QUEUE, at, at)[1]
    while head do
        if not call('ZSCORE', LEASES, head) then
            leave_queue(head)
        elseif is_served(head) then
            at = at + 1
        else
            return head
        end
        head = call('ZRANGE', QUEUE, at, at)[1]
    end
end

-- Gives the free lock to a waiter for the claim window and wakes it. Its lease in the queue ends with
-- the window, so that a waiter that died just before costs no more than that.
local function hand_over(owner, now_us)
    local wake = LEASES .. ':' .. owner
    call('SET', LOCK, owner, 'PX', WINDOW_MS)
    call('ZADD', LEASES, format('%.0f', now_us / 1000 + WINDOW_MS), owner)
    call('RPUSH', wake, '1')
    call('PEXPIRE', wake, WINDOW_MS)
    local party = call('GET', wake .. ':p')
    if party then
        call('SET', party, owner, 'PX', LEASE_MS)
    end
end

-- After the lock became free: to the next one, unless this server may have forgotten a holder.
local function pass_on(id)
    if check_incarnation(id) then
        return
    end
    local now = clock_us()
    local head = live_head(now)
    if head then
        hand_over(head, now)
    end
end

-- Was it another attempt of this owner, whose holds have other flags, that was granted the lock? A request
-- that came twice is two attempts.
local function is_of_another(owner, flags)
    local known, holder = match(call('GET', RECORD) or '', '^q?%d+ %d+ (%S+) (%x+) ')
    return holder == owner and known ~= flags
end

-- For whoever does not want the lock any more, or may have asked for it without hearing an answer: out of
-- the queue, what was handed over meanwhile is given back, and a free lock finds its next owner. flags: nil,
-- '', or those of this attempt.
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
