-- Who broke this lock last, as long as that is kept.
-- KEYS  1 lock  2 record
-- Answers {at, who, why}, or {} if it is not known.
-- include lib/broken.lua
local text = redis.call('GET', broken_key())
local at, by, why = string.match(text or '', '^%d+ (%d+)\n([^\n]*)\n([^\n]*)$')
return at and {at, by, why} or {}
