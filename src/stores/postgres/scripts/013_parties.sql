-- Version 13: who waits for several locks at once has a row for each, all of one party.

ALTER TABLE holdfast.waiter ADD COLUMN IF NOT EXISTS party bytea; -- NULL: it waits for this lock alone
CREATE INDEX IF NOT EXISTS waiter_passed ON holdfast.waiter (party) WHERE passed;
