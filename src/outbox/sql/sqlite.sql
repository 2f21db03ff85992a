-- @section up
-- holdfast outbox for SQLite: a message is written in the transaction that it is about, and sent after it.
--
--     BEGIN IMMEDIATE;
--     UPDATE orders ...;
--     INSERT INTO holdfast_outbox (topic, key, payload) VALUES ('orders', 'order-7', '...');
--     COMMIT;
--
-- holdfast outbox relay sends it, at least once. uid names the message to receivers. Messages of one key are
-- sent one after the other, in the order of id. Do not write to the other columns.
BEGIN;

-- A table of that name that belongs to somebody else stays as it is.
DROP TABLE IF EXISTS temp.holdfast_outbox_check;
CREATE TEMP TABLE holdfast_outbox_check (
    ours INTEGER NOT NULL CONSTRAINT "a table holdfast_outbox, or holdfast_outbox_..., is there already, and not of holdfast" CHECK (ours)
);
INSERT INTO temp.holdfast_outbox_check
    SELECT sql LIKE '%holdfast outbox%' FROM main.sqlite_master
     WHERE type IN ('table', 'view')
       AND name COLLATE NOCASE IN ('holdfast_outbox', 'holdfast_outbox_fence', 'holdfast_outbox_settled');
DROP TABLE temp.holdfast_outbox_check;

-- AUTOINCREMENT: without it the ids of sent messages would be used again, and the order would be lost.
CREATE TABLE IF NOT EXISTS holdfast_outbox (
    id         INTEGER PRIMARY KEY AUTOINCREMENT, -- the order; never a name (holdfast outbox)
    uid        TEXT NOT NULL DEFAULT (lower(hex(randomblob(16)))) -- the name
               CONSTRAINT uid_has_32_hex_digits CHECK (typeof(uid) = 'text' AND length(CAST(uid AS BLOB)) = 32
                                                       AND uid NOT GLOB '*[^0-9a-f]*'),
    topic      TEXT NOT NULL CONSTRAINT topic_has_1_to_255_bytes_and_no_nul
               CHECK (typeof(topic) = 'text' AND length(CAST(topic AS BLOB)) BETWEEN 1 AND 255
                      AND instr(CAST(topic AS BLOB), x'00') = 0),
    key        TEXT NOT NULL CONSTRAINT key_has_1_to_255_bytes_and_no_nul
               CHECK (typeof(key) = 'text' AND length(CAST(key AS BLOB)) BETWEEN 1 AND 255
                      AND instr(CAST(key AS BLOB), x'00') = 0),
    payload    BLOB NOT NULL CONSTRAINT payload_has_at_most_10_mib
               CHECK (length(CAST(payload AS BLOB)) <= 10485760),
    headers    TEXT NOT NULL DEFAULT '{}' CONSTRAINT headers_are_an_object_of_at_most_64_kib
               CHECK (json_valid(headers) AND json_type(headers) = 'object' AND length(headers) <= 65536),
    created    TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now')),
    attempts   INTEGER NOT NULL DEFAULT 0, -- that failed
    not_before TEXT NOT NULL DEFAULT '',   -- '9999': dead if attempts > 0, else parked
    error      TEXT
);

-- What a fetch reads; what is parked behind a message that failed is not in it.
CREATE INDEX IF NOT EXISTS holdfast_outbox_ready ON holdfast_outbox (id) WHERE not_before < '9999';
-- What failed, and what is parked: few, or not in a hurry.
CREATE INDEX IF NOT EXISTS holdfast_outbox_failed ON holdfast_outbox (key, id) WHERE attempts > 0;
CREATE INDEX IF NOT EXISTS holdfast_outbox_parked ON holdfast_outbox (key)
    WHERE attempts = 0 AND not_before = '9999';

-- The fence of the relay: one row, which admits no token below the highest.
CREATE TABLE IF NOT EXISTS holdfast_outbox_fence (
    only_one    INTEGER PRIMARY KEY CHECK (only_one = 1), -- holdfast outbox
    name        TEXT,                       -- of the relay
    token       INTEGER NOT NULL DEFAULT 0,
    issuer      TEXT,                       -- the store that issued the token
    admitted_at TEXT
);
INSERT INTO holdfast_outbox_fence (only_one) VALUES (1) ON CONFLICT DO NOTHING;

-- What people decided about dead messages.
CREATE TABLE IF NOT EXISTS holdfast_outbox_settled (
    at       TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now')), -- holdfast outbox
    by_role  TEXT,
    decision TEXT NOT NULL,
    uid      TEXT NOT NULL,
    topic    TEXT NOT NULL,
    key      TEXT NOT NULL,
    attempts INTEGER NOT NULL,
    error    TEXT,
    reason   TEXT NOT NULL CHECK (reason <> '')
);
COMMIT;

-- @section down
BEGIN;

-- Messages that wait are not removed by a migration.
DROP TABLE IF EXISTS temp.holdfast_outbox_check;
CREATE TEMP TABLE holdfast_outbox_check (
    waiting INTEGER NOT NULL CONSTRAINT "messages have not been sent" CHECK (waiting = 0)
);
INSERT INTO temp.holdfast_outbox_check SELECT count(*) FROM holdfast_outbox;
DROP TABLE temp.holdfast_outbox_check;

DROP TABLE holdfast_outbox_settled;
DROP TABLE holdfast_outbox_fence;
DROP TABLE holdfast_outbox;

-- @section down-end
COMMIT;
