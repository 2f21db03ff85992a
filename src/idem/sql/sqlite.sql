-- @section up
-- holdfast idempotency keys for SQLite: a request that comes twice has one effect, and the second gets
-- the answer of the first.
--
--     PRAGMA foreign_keys = ON;                               -- once per connection
--     BEGIN IMMEDIATE;
--     INSERT INTO holdfast_claim (scope, key, fingerprint) VALUES (...);
--     SELECT state, status, answer FROM holdfast_verdict WHERE scope = ... AND key = ...;
--     -- 'new': do the work here, then
--     INSERT INTO holdfast_finish (scope, key, status, answer) VALUES (...);
--     COMMIT;
--
-- The SELECT shows the verdict of the last call, so it belongs in the transaction of the INSERT, of start too.
-- The state is 'new', 'done' (with the stored status and answer), 'running' or 'mismatch'. Claimed but
-- not finished cannot commit: SQLITE_CONSTRAINT_FOREIGNKEY, and the transaction stays open.
-- Errors (SQLITE_CONSTRAINT_TRIGGER) start with "holdfast not claimed" or "holdfast invalid".
BEGIN;

-- A table or view with one of these names that belongs to somebody else stays as it is.
DROP TABLE IF EXISTS temp.holdfast_idem_settle;
CREATE TEMP TABLE holdfast_idem_settle (
    ours INTEGER NOT NULL CONSTRAINT "a table or view holdfast_idem, holdfast_claim, ... is there already, and not of holdfast" CHECK (ours)
);
INSERT INTO temp.holdfast_idem_settle
    SELECT sql LIKE '%holdfast idem%' FROM main.sqlite_master
     WHERE type IN ('table', 'view')
       AND name COLLATE NOCASE IN ('holdfast_idem', 'holdfast_idem_nothing', 'holdfast_idem_attempt',
            'holdfast_idem_said', 'holdfast_verdict', 'holdfast_claim', 'holdfast_finish', 'holdfast_start',
            'holdfast_finish_attempt', 'holdfast_release', 'holdfast_purge');
DROP TABLE temp.holdfast_idem_settle;

-- Always empty: nothing that points here can be committed.
CREATE TABLE IF NOT EXISTS holdfast_idem_nothing (id INTEGER PRIMARY KEY CHECK (id IS NULL) /* holdfast idem */);

CREATE TABLE IF NOT EXISTS holdfast_idem (
    scope       TEXT NOT NULL,
    key         TEXT NOT NULL,
    fingerprint TEXT NOT NULL,
    claimed     INTEGER CONSTRAINT claimed_but_not_finished
                REFERENCES holdfast_idem_nothing (id) DEFERRABLE INITIALLY DEFERRED,
    attempt     INTEGER, -- started, not claimed (holdfast idem)
    leased_till INTEGER, -- of that attempt; milliseconds since 1970, as all times here
    finished_at INTEGER, -- no index: it would cost each finish more than it saves a purge
    status      INTEGER,
    answer      BLOB,
    PRIMARY KEY (scope, key)
) WITHOUT ROWID;

-- Never counted per key: that would start again after a purge, and an old attempt could finish a new one.
CREATE TABLE IF NOT EXISTS holdfast_idem_attempt (last INTEGER NOT NULL /* holdfast idem */);
INSERT INTO holdfast_idem_attempt SELECT 0 WHERE NOT EXISTS (SELECT 1 FROM holdfast_idem_attempt);

-- What the last call said, in one row. It is a probe as well: are foreign keys enforced? Then probe follows
-- id. (Asking for the PRAGMA is not allowed to a trigger where trusted_schema is off.)
DROP TABLE IF EXISTS holdfast_idem_said;
CREATE TABLE holdfast_idem_said (
    id    INTEGER PRIMARY KEY,
    probe INTEGER REFERENCES holdfast_idem_said (id) ON UPDATE CASCADE, -- holdfast idem
    scope TEXT,
    key   TEXT,
    state TEXT
);
INSERT INTO holdfast_idem_said (id, probe) VALUES (1, 1);

DROP VIEW IF EXISTS holdfast_verdict;
CREATE VIEW holdfast_verdict (scope, key, state, attempt, remaining, status, answer) AS /* holdfast idem */
    SELECT s.scope, s.key, s.state,
           CASE WHEN s.state = 'new' THEN e.attempt END,
           CASE WHEN s.state = 'running' THEN
               max(1, coalesce(e.leased_till - CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER) + 999,
                               0) / 1000) END,
           CASE WHEN s.state = 'done' THEN e.status END,
           CASE WHEN s.state = 'done' THEN e.answer END
      FROM holdfast_idem_said AS s JOIN holdfast_idem AS e ON e.scope = s.scope AND e.key = s.key;

-- A row with claimed is of this very transaction: no other can commit one.
DROP VIEW IF EXISTS holdfast_claim;
CREATE VIEW holdfast_claim (scope, key, fingerprint) AS /* holdfast idem */ SELECT NULL, NULL, NULL WHERE 0;
CREATE TRIGGER holdfast_claim_insert INSTEAD OF INSERT ON holdfast_claim
BEGIN
    SELECT RAISE(ABORT, 'holdfast invalid: a scope and a key are text of 1 to 255 bytes, without NUL')
     WHERE typeof(NEW.scope) <> 'text' OR typeof(NEW.key) <> 'text'
        OR length(CAST(NEW.scope AS BLOB)) NOT BETWEEN 1 AND 255 OR instr(NEW.scope, char(0))
        OR length(CAST(NEW.key AS BLOB)) NOT BETWEEN 1 AND 255 OR instr(NEW.key, char(0));
    SELECT RAISE(ABORT, 'holdfast invalid: a fingerprint is text of at most 64 bytes')
     WHERE typeof(NEW.fingerprint) <> 'text' OR length(CAST(NEW.fingerprint AS BLOB)) > 64;
    UPDATE holdfast_idem_said
       SET id = 3 - id, scope = NEW.scope, key = NEW.key,
           state = coalesce((SELECT CASE WHEN claimed IS NOT NULL THEN 'running'
                                         WHEN fingerprint <> NEW.fingerprint THEN 'mismatch'
                                         WHEN finished_at IS NULL THEN 'running' ELSE 'done' END
                               FROM holdfast_idem WHERE scope = NEW.scope AND key = NEW.key), 'new');
    SELECT RAISE(ABORT, 'holdfast invalid: a row of holdfast_idem_said is missing; run the migration again')
     WHERE changes() = 0;
    INSERT INTO holdfast_idem (scope, key, fingerprint, claimed)
        SELECT NEW.scope, NEW.key, NEW.fingerprint, CASE WHEN probe = id THEN 1 ELSE RAISE(ABORT,
               'holdfast invalid: PRAGMA foreign_keys = ON is needed in every connection') END
          FROM holdfast_idem_said WHERE state = 'new' OR probe <> id;
END;

DROP VIEW IF EXISTS holdfast_finish;
CREATE VIEW holdfast_finish (scope, key, status, answer) AS /* holdfast idem */ SELECT NULL, NULL, NULL, NULL WHERE 0;
CREATE TRIGGER holdfast_finish_insert INSTEAD OF INSERT ON holdfast_finish
BEGIN
    SELECT RAISE(ABORT, 'holdfast invalid: a status is an integer')
     WHERE typeof(NEW.status) <> 'integer';
    SELECT RAISE(ABORT, 'holdfast invalid: an answer has at most 1 MiB')
     WHERE length(CAST(NEW.answer AS BLOB)) > 1048576;
    UPDATE holdfast_idem
       SET claimed = NULL, status = NEW.status, answer = NEW.answer,
           finished_at = CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)
     WHERE scope = NEW.scope AND key = NEW.key AND claimed IS NOT NULL;
    SELECT RAISE(ABORT, 'holdfast not claimed: not in this transaction') WHERE changes() = 0;
END;

-- For an effect elsewhere: start, commit, the effect, finish_attempt, commit. The lease, in seconds, is
-- for liveness only.
DROP VIEW IF EXISTS holdfast_start;
CREATE VIEW holdfast_start (scope, key, fingerprint, lease) AS /* holdfast idem */ SELECT NULL, NULL, NULL, NULL WHERE 0;
CREATE TRIGGER holdfast_start_insert INSTEAD OF INSERT ON holdfast_start
BEGIN
    SELECT RAISE(ABORT, 'holdfast invalid: a lease is above 0, and at most 7 days')
     WHERE typeof(NEW.lease) NOT IN ('integer', 'real') OR NEW.lease <= 0 OR NEW.lease > 604800;
    -- As claim says, but for a lease that is over.
    INSERT INTO holdfast_claim (scope, key, fingerprint) VALUES (NEW.scope, NEW.key, NEW.fingerprint);
    UPDATE holdfast_idem_said
       SET state = 'new'
     WHERE state = 'running'
       AND EXISTS (SELECT 1 FROM holdfast_idem
                    WHERE scope = NEW.scope AND key = NEW.key
                      AND leased_till <= CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER));
    UPDATE holdfast_idem_attempt
       SET last = last + 1
     WHERE (SELECT state FROM holdfast_idem_said) = 'new';
    UPDATE holdfast_idem
       SET claimed = NULL, attempt = (SELECT last FROM holdfast_idem_attempt),
           leased_till = CAST((julianday('now') - 2440587.5) * 86400000 + NEW.lease * 1000 AS INTEGER)
     WHERE scope = NEW.scope AND key = NEW.key
       AND (SELECT state FROM holdfast_idem_said) = 'new';
END;

-- The same attempt with the same answer again is no error: a COMMIT whose reply was lost can be repeated.
DROP VIEW IF EXISTS holdfast_finish_attempt;
CREATE VIEW holdfast_finish_attempt (scope, key, attempt, status, answer) AS /* holdfast idem */
    SELECT NULL, NULL, NULL, NULL, NULL WHERE 0;
CREATE TRIGGER holdfast_finish_attempt_insert INSTEAD OF INSERT ON holdfast_finish_attempt
BEGIN
    SELECT RAISE(ABORT, 'holdfast invalid: a status is an integer')
     WHERE typeof(NEW.status) <> 'integer';
    SELECT RAISE(ABORT, 'holdfast invalid: an answer has at most 1 MiB')
     WHERE length(CAST(NEW.answer AS BLOB)) > 1048576;
    SELECT RAISE(ABORT, 'holdfast not claimed: not the current attempt')
     WHERE NOT EXISTS (SELECT 1 FROM holdfast_idem
                        WHERE scope = NEW.scope AND key = NEW.key AND attempt = NEW.attempt
                          AND (finished_at IS NULL OR status = NEW.status AND answer IS NEW.answer));
    UPDATE holdfast_idem
       SET status = NEW.status, answer = NEW.answer,
           finished_at = CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)
     WHERE scope = NEW.scope AND key = NEW.key AND attempt = NEW.attempt AND finished_at IS NULL;
END;

-- Only if the effect certainly did not happen: the next one starts at once.
DROP VIEW IF EXISTS holdfast_release;
CREATE VIEW holdfast_release (scope, key, attempt) AS /* holdfast idem */ SELECT NULL, NULL, NULL WHERE 0;
CREATE TRIGGER holdfast_release_insert INSTEAD OF INSERT ON holdfast_release
BEGIN
    SELECT RAISE(ABORT, 'holdfast not claimed: not the current attempt')
     WHERE NOT EXISTS (SELECT 1 FROM holdfast_idem
                        WHERE scope = NEW.scope AND key = NEW.key AND attempt = NEW.attempt
                          AND finished_at IS NULL);
    DELETE FROM holdfast_idem
     WHERE scope = NEW.scope AND key = NEW.key AND attempt = NEW.attempt AND finished_at IS NULL;
END;

-- Removes finished keys only, the oldest first. older_than is in seconds; NULL: what --keep said. A
-- purged key runs again.
DROP VIEW IF EXISTS holdfast_purge;
CREATE VIEW holdfast_purge (older_than, at_most) AS /* holdfast idem */ SELECT NULL, NULL WHERE 0;
CREATE TRIGGER holdfast_purge_insert INSTEAD OF INSERT ON holdfast_purge
BEGIN
    SELECT RAISE(ABORT, 'holdfast invalid: purge what is older than so many seconds, and at most so many')
     WHERE coalesce(NEW.older_than, 0) < 0 OR typeof(NEW.older_than) IN ('text', 'blob')
        OR typeof(NEW.at_most) <> 'integer' OR NEW.at_most < 1;
    DELETE FROM holdfast_idem
     WHERE (scope, key) IN (SELECT scope, key FROM holdfast_idem
                             WHERE finished_at < (julianday('now') - 2440587.5) * 86400000
                                                 - coalesce(NEW.older_than, @KEEP@) * 1000
                             ORDER BY finished_at LIMIT NEW.at_most);
END;
COMMIT;

-- @section down
BEGIN;
DROP VIEW holdfast_purge;
DROP VIEW holdfast_release;
DROP VIEW holdfast_finish_attempt;
DROP VIEW holdfast_start;
DROP VIEW holdfast_finish;
DROP VIEW holdfast_claim;
DROP VIEW holdfast_verdict;
DROP TABLE holdfast_idem_said;
DROP TABLE holdfast_idem_attempt;
DROP TABLE holdfast_idem;
DROP TABLE holdfast_idem_nothing;
COMMIT;
