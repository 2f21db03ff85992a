-- One page of the records whose keys start with a prefix, in the order of the keys.
-- KEYS  1 lock  2 token record
-- ARGV  1 prefix  2 where the page before ended; '': this is the first
-- Answers {the clock in ms, where this page ended or '' if it is the last, key, record, key, record, ...}.
-- include lib/keys.lua
-- include lib/records.lua
local PAGE_KEYS = 500
local PAGE_BYTES = 1048576 -- from there on it is full
local first = ARGV[2] == '' and '[' .. ARGV[1] or '(' .. ARGV[2]
local last = '[' .. ARGV[1] .. string.rep('\255', 64) -- no key is longer
local page = {format('%.0f', clock_ms()), ''}
local bytes = 0
for i, key in ipairs(call('ZRANGEBYLEX', BY_KEY, first, last, 'LIMIT', 0, PAGE_KEYS)) do
    local record = call('HGET', RECORDS, key)
    if record then
        page[#page + 1] = key
        page[#page + 1] = record
        bytes = bytes + #record
    end
    if i == PAGE_KEYS or bytes >= PAGE_BYTES then
        page[2] = key
        break
    end
end
return page
