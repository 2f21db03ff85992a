-- Read a record.
-- KEYS  1 lock  2 token record
-- ARGV  1 key
-- Answers {the clock in ms, the record or nil}.
-- include lib/keys.lua
-- include lib/records.lua
return {format('%.0f', clock_ms()), call('HGET', RECORDS, ARGV[1])}
