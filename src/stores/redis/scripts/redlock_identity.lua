-- Which node this is, and of which redlock.
--
-- KEYS[1]  the node's own random text, as every Redis has it
-- KEYS[2]  the name of the redlock
-- ARGV[1]  a fresh random text, for a node that has none yet
-- ARGV[2]  a name; "": only ask
-- ARGV[3]  "new": for a node that has no name yet; "settled": a majority has it, so this node, too
--
-- Answers {own, the name or ""}.
redis.call('SET', KEYS[1], ARGV[1], 'NX')
if ARGV[3] == 'settled' then
    redis.call('SET', KEYS[2], ARGV[2])
elseif ARGV[2] ~= '' then
    redis.call('SET', KEYS[2], ARGV[2], 'NX')
end
return {redis.call('GET', KEYS[1]), redis.call('GET', KEYS[2]) or ''}
