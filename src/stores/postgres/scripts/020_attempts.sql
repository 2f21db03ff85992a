-- Version 20: a claim on behalf of others may come twice, by two clients, if somebody on the way repeats it: two
-- attempts of one owner. Each has a number, so that the one that goes away leaves the other what it has.

-- Which attempt holds it. 0: one that cannot come twice, or that has no number.
ALTER TABLE holdfast.lock ADD COLUMN IF NOT EXISTS attempt integer NOT NULL DEFAULT 0;
-- The attempts that wait in this one place of the queue.
ALTER TABLE holdfast.waiter ADD COLUMN IF NOT EXISTS attempts integer[] NOT NULL DEFAULT '{}';

-- The functions that follow take the number as one more parameter, which an older client leaves out.
DROP FUNCTION IF EXISTS holdfast.take_free(bytea, bytea, integer, bytea, boolean);
DROP FUNCTION IF EXISTS holdfast.hold(bytea, bytea, integer, bytea, boolean);
DROP FUNCTION IF EXISTS holdfast.acquire(bytea, bytea, integer, bytea, boolean, text, text, integer);
DROP FUNCTION IF EXISTS holdfast.leave(bytea, bytea, text, integer);
DROP FUNCTION IF EXISTS holdfast.take_any(bytea[], bytea[], integer, bytea, boolean);
DROP FUNCTION IF EXISTS holdfast.confirm_any(bytea[], bytea[], integer, bytea, boolean);
DROP FUNCTION IF EXISTS holdfast.queue_any(bytea[], bytea[], text, bytea);
DROP FUNCTION IF EXISTS holdfast.acquire_any(
    bytea[], bytea[], integer, bytea, boolean, text, text, integer, integer);
DROP FUNCTION IF EXISTS holdfast.leave_any(bytea[], bytea[], text, integer);
