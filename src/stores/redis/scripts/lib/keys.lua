-- The keys beside a lock differ in their last letter. KEYS[2] is the one that a script needs on its
-- shortest path; the others are in the same slot and are named only when they are needed. A script about
-- several locks has a pair of keys for each, and means the one that it uses.
local LOCK, RECORD, QUEUE, LEASES
local function use(i)
    local stem = string.sub(KEYS[2 * i], 1, -2)
    LOCK, RECORD, QUEUE, LEASES = KEYS[2 * i - 1], stem .. 't', stem .. 'q', stem .. 'w'
end
use(1)
