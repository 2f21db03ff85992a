-- Taking one lock of those that are free, were handed to us, or have to be waited for.
local TOKEN_END = 9007199254740991 -- 2^53 - 1: above it Lua's numbers are not exact

-- now: the clock in us. text: "ttl flags owner label". settled: '' unless in a cluster, else the shape()
-- that is known to be settled. holder, record: what LOCK and RECORD hold. Answers the token; or nil and what
-- is wrong; or nil, nil and who holds the lock. {'twice'}: this owner holds it already.
local function take(owner, ttl, text, now, settled, holder, record)
    local last = tonumber(record and match(record, '^q?(%d+) ') or not record and 0)
    if not last or last >= TOKEN_END then
        return nil, {'corrupt', 'record'}
    end
    if now >= TOKEN_END then
        return nil, {'corrupt', 'clock'}
    end
    if holder == owner and record and match(record, '^q?%d+ %d+ %S+ (%x+) ') == owner then
        -- An owner holds a lock once. A second request must not take this hold for a grant of its own and
        -- give it back: it is the first one's.
        return nil, {'twice'}
    end
    local head, party
    if not holder then
        head, party = live_head(now)
    end
    if holder == owner or (not holder and (not head or head == owner)) then
        -- A slot that came with its data brought the records of its locks. A server of a cluster that took
        -- the slot over without the data knows nothing of a lock without a record.
        if last == 0 and settled ~= '' and redis.sha1hex(shape()) ~= settled then
            return nil, {'unmet'}
        end
        local token = format('%.0f', math.max(last + 1, now))
        call('SET', LOCK, owner, 'PX', ttl)
        leave_queue(owner)
        local waited_for = call('EXISTS', QUEUE) == 1 and 'q' or ''
        call('SET', RECORD, waited_for .. token .. ' ' .. text)
        return token
    end
    if not holder then
        hand_over(head, now, party)
        holder = head
    end
    return nil, nil, holder
end

-- Makes a release look for those who wait.
local function mark_waited_for(key, record)
    record = record or '0 0 - 0 '
    if string.sub(record, 1, 1) ~= 'q' then
        call('SET', key, 'q' .. record)
    end
end

-- In how many ms to ask again: the next in the queue when the holder's time is up, the others sleep on.
local function ask_again(owner, holder)
    local first = call('ZRANGE', QUEUE, 0, 1)
    if first[1] ~= owner and (first[1] ~= holder or first[2] ~= owner) then
        return POLL_MS
    end
    local left = call('PTTL', LOCK)
    return left >= 0 and math.min(POLL_MS, left + 1) or POLL_MS
end

local function busy(again, holder, record)
    local left = call('PTTL', LOCK)
    local last, known, label = match(record or '', '^q?(%d+) %d+ %S+ (%x+) (.*)$')
    if known and (holder == known or holder == known .. '!') then -- '!': it was broken
        return {'busy', again, left, last, label, 'ours'}
    end
    return {'busy', again, left, '0', '', call('ZSCORE', QUEUE, holder) and 'waiter' or 'foreign'}
end
