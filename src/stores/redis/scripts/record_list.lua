-- One page of the records whose keys start with a prefix. Pages follow each other in the order of the keys'
-- hashes: nobody knows how a server's locale would order anything else.
-- KEYS  1 records
-- ARGV  1 prefix  2 where the page before ended; '': this is the first
-- Answers {the clock in ms, where this page ended or '' if it is the last, key, record, key, record, ...}.
-- include lib/records.lua
local PAGE_KEYS = 2000
local PAGE_BYTES = 1048576 -- from there on it is full
local prefix, after = ARGV[1], ARGV[2]
local hashes, key_of = {}, {}
for _, key in ipairs(call('HKEYS', KEYS[1])) do
    local hash = string.sub(key, 1, #prefix) == prefix and redis.sha1hex(key)
    if hash and hash > after then
        hashes[#hashes + 1] = hash
        key_of[hash] = key
    end
end
table.sort(hashes)

local page = {format('%.0f', clock_ms()), ''}
local bytes = 0
for i, hash in ipairs(hashes) do
    local record = call('HGET', KEYS[1], key_of[hash])
    page[#page + 1] = key_of[hash]
    page[#page + 1] = record
    bytes = bytes + #record
    if i < #hashes and (i == PAGE_KEYS or bytes >= PAGE_BYTES) then
        page[2] = hash
        break
    end
end
return page
