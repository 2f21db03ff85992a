-- Version 1: the tables. Names, owners and labels are bytes: a lock's name need not be valid in the
-- database's encoding.

CREATE SCHEMA IF NOT EXISTS holdfast;

CREATE TABLE holdfast.version (
    version integer NOT NULL
);
INSERT INTO holdfast.version VALUES (0);

-- One row per lock. It stays when the lock is free, because it remembers the last token. Half of each
-- page is left empty, so that updates stay on it and no index is touched.
CREATE TABLE holdfast.lock (
    name     bytea PRIMARY KEY,
    token    bigint NOT NULL,      -- of the last hold
    owner    bytea,                -- NULL: free
    handed   boolean NOT NULL,     -- given to a waiter that has not confirmed it yet
    queued   boolean NOT NULL,     -- somebody may be waiting: look into holdfast.waiter
    detached boolean NOT NULL,
    ttl_ms   integer NOT NULL,
    taken    timestamptz NOT NULL,
    expires  timestamptz NOT NULL,
    label    bytea NOT NULL
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02);

-- Who waits, in the order of the tickets. Rows of a lock change only while its row in holdfast.lock
-- is locked, except for signs of life.
CREATE TABLE holdfast.waiter (
    lock        bytea NOT NULL,
    ticket      bigint GENERATED ALWAYS AS IDENTITY,
    owner       bytea NOT NULL UNIQUE,
    channel     text NOT NULL,        -- where it listens; '' if it does not
    passed      boolean NOT NULL,     -- was handed the lock and has not been heard of since
    alive_until timestamptz NOT NULL,
    PRIMARY KEY (lock, ticket)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02);

-- The server's life as its clients met it last: one row.
CREATE TABLE holdfast.met (
    one        boolean PRIMARY KEY DEFAULT true CHECK (one),
    id         text NOT NULL,
    since      timestamptz NOT NULL,  -- when this life began, or was first seen
    open_at    timestamptz NOT NULL,  -- when it grants
    max_ttl_ms bigint NOT NULL        -- no grant lasts longer
);
