-- Version 17: who waits, and since when; for people to look at.

ALTER TABLE holdfast.waiter ADD COLUMN IF NOT EXISTS label bytea NOT NULL DEFAULT '';
ALTER TABLE holdfast.waiter ADD COLUMN IF NOT EXISTS since timestamptz NOT NULL DEFAULT clock_timestamp();
