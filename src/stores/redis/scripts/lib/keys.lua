-- The keys beside a lock differ in their last letter. KEYS[2] is the one that a script needs on its
-- shortest path; the others are in the same slot and are named only when they are needed.
local STEM = string.sub(KEYS[2], 1, -2)
local RECORD, QUEUE, LEASES = STEM .. 't', STEM .. 'q', STEM .. 'w'
