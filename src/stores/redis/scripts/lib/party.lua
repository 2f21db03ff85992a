-- Whoever waits for one of several locks is a party: it stands in the queue of each, with owners that differ in
-- their last two digits only, and has one life and one list to sleep on for all of them. Its key "p" holds
-- "- since label" while it waits, and "+ since label" from when one of the locks was handed to it until it
-- asks; the key is there as long as the party lives. "w" is the list.
local EXISTS_MAX = 1000 -- keys that are looked for in one go

local function party_key(owner, kind)
    return 'holdfast:{' .. string.sub(owner, 1, -3) .. '}:' .. kind
end

-- What the key of this owner's party holds, or nil. There are none in a cluster, where the key would be in
-- another slot and may not be read.
local function party_of(owner)
    local party = redis.pcall('GET', party_key(owner, 'p'))
    return type(party) == 'string' and party or nil
end

-- How many live waiters the lock has.
local function count_waiters(now_us)
    local waiters = call('ZCOUNT', LEASES, format('(%.0f', now_us / 1000), '+inf')
    if call('ZCOUNT', QUEUE, '-inf', '+inf') == waiters then
        return waiters
    end
    local single, parties = {}, {}
    for _, owner in ipairs(call('ZRANGE', LEASES, 0, -1)) do
        single[owner] = true
    end
    for _, owner in ipairs(call('ZRANGE', QUEUE, 0, -1)) do
        if not single[owner] then
            parties[#parties + 1] = party_key(owner, 'p')
        end
    end
    for at = 1, #parties, EXISTS_MAX do
        local alive = redis.pcall('EXISTS', unpack(parties, at, math.min(at + EXISTS_MAX - 1, #parties)))
        waiters = waiters + (type(alive) == 'number' and alive or 0)
    end
    return waiters
end
