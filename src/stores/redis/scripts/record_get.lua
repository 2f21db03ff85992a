-- Read a record.
-- KEYS  1 records
-- ARGV  1 key
-- Answers {the clock in ms, the record or nil}.
-- include lib/records.lua
return {format('%.0f', clock_ms()), call('HGET', KEYS[1], ARGV[1])}
