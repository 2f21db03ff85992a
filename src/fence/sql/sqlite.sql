-- @section up
-- holdfast fence for SQLite: a table refuses every write of a transaction that has not entered with a
-- token at least as high as the highest admitted.
--
--     PRAGMA foreign_keys = ON;                                             -- once per connection
--     BEGIN IMMEDIATE;
--     INSERT INTO holdfast_enter (resource, token) VALUES ('RESOURCE', 34); -- before the first read
--     INSERT INTO holdfast_enter (resource, key, token) VALUES ('RESOURCE', 'KEY', 34); -- per key
--     UPDATE ...;
--     DELETE FROM holdfast_entered;                                         -- leave
--     COMMIT;
--
-- A row in holdfast_entered says "this transaction has entered". Its foreign key points nowhere and is
-- checked at COMMIT: a transaction that forgets to leave cannot commit, so that no other transaction
-- ever sees such a row.
--
-- Errors (SQLITE_CONSTRAINT_TRIGGER) start with: "holdfast stale", "holdfast not entered",
-- "holdfast other store", "holdfast invalid". Run this with sqlite3 -bail, and again after an upgrade of
-- holdfast or a change of the table, which may take its triggers away.

-- @section up-begin
BEGIN;

-- @section up-shared
CREATE TABLE IF NOT EXISTS holdfast_fence (
    resource    TEXT PRIMARY KEY NOT NULL,
    token       INTEGER NOT NULL DEFAULT 0 CHECK (typeof(token) = 'integer' AND token >= 0),
    issuer      TEXT,   -- the store that issued the token
    admitted_at TEXT
) WITHOUT ROWID;

-- Per key: the mark of a key that has none yet is its resource's, the floor.
CREATE TABLE IF NOT EXISTS holdfast_fence_key (
    resource    TEXT NOT NULL,
    key         TEXT NOT NULL CHECK (typeof(key) = 'text' AND key <> ''),
    token       INTEGER NOT NULL CHECK (typeof(token) = 'integer' AND token > 0),
    admitted_at TEXT,
    PRIMARY KEY (resource, key)
) WITHOUT ROWID;

CREATE TABLE IF NOT EXISTS holdfast_keyed (resource TEXT PRIMARY KEY NOT NULL) WITHOUT ROWID;

CREATE TABLE IF NOT EXISTS holdfast_nothing (id INTEGER PRIMARY KEY CHECK (id IS NULL));

-- Empty except inside a transaction that has entered.
DROP TABLE IF EXISTS holdfast_entered;

CREATE TABLE holdfast_entered (
    resource TEXT NOT NULL,
    key      TEXT NOT NULL DEFAULT '',
    open     INTEGER NOT NULL DEFAULT 1
             REFERENCES holdfast_nothing (id) DEFERRABLE INITIALLY DEFERRED,
    probe    TEXT,
    PRIMARY KEY (resource, key),
    FOREIGN KEY (probe, key) REFERENCES holdfast_entered (resource, key) ON DELETE CASCADE
) WITHOUT ROWID;

CREATE TABLE IF NOT EXISTS holdfast_fence_reset (
    at         TEXT NOT NULL,
    resource   TEXT NOT NULL,
    old_token  INTEGER,
    old_issuer TEXT,
    reason     TEXT NOT NULL CHECK (reason <> '')
);

DROP VIEW IF EXISTS holdfast_fence_version;

CREATE VIEW holdfast_fence_version (version) AS SELECT 2;

DROP VIEW IF EXISTS holdfast_enter;

CREATE VIEW holdfast_enter (resource, token, issuer, key) AS
    SELECT NULL, NULL, NULL, NULL WHERE 0;

CREATE TRIGGER holdfast_enter_insert INSTEAD OF INSERT ON holdfast_enter
BEGIN
    -- Are foreign keys enforced? Then deleting the first of these rows takes the second along. (Asking
    -- for the PRAGMA is not allowed to a trigger where trusted_schema is off.) No resource is called so.
    INSERT INTO holdfast_entered (resource, probe) VALUES ('', NULL), (x'', '');
    DELETE FROM holdfast_entered WHERE resource = '';
    SELECT RAISE(ABORT, 'holdfast invalid: PRAGMA foreign_keys = ON is needed in every connection')
      FROM holdfast_entered WHERE resource = x'';
    -- A token is an integer, its digits as text, or a whole number that a double can tell from the next.
    SELECT RAISE(ABORT, 'holdfast invalid: a token is an integer above 0')
     WHERE NEW.token IS NULL OR CAST(NEW.token AS INTEGER) < 1
        OR CASE typeof(NEW.token)
           WHEN 'integer' THEN 0
           WHEN 'text' THEN CAST(CAST(NEW.token AS INTEGER) AS TEXT) <> NEW.token
           WHEN 'real' THEN NEW.token <> CAST(NEW.token AS INTEGER) OR NEW.token >= 9007199254740992
           ELSE 1 END;
    SELECT RAISE(ABORT, 'holdfast invalid: no fence for this resource')
     WHERE NOT EXISTS (SELECT 1 FROM holdfast_fence WHERE resource = NEW.resource);
    SELECT RAISE(ABORT, 'holdfast invalid: this resource is fenced per key: say the key')
      FROM holdfast_keyed WHERE resource = NEW.resource AND coalesce(NEW.key, '') = '';
    SELECT RAISE(ABORT, 'holdfast invalid: this resource is not fenced per key')
     WHERE NEW.key IS NOT NULL AND NOT EXISTS (SELECT 1 FROM holdfast_keyed WHERE resource = NEW.resource);
    SELECT RAISE(ABORT, 'holdfast other store: the fence follows tokens of another store; see holdfast_reset')
      FROM holdfast_fence WHERE resource = NEW.resource AND NEW.issuer <> '' AND issuer <> NEW.issuer;
    SELECT RAISE(ABORT, 'holdfast stale: a higher token was admitted')
      FROM holdfast_fence WHERE resource = NEW.resource AND token > CAST(NEW.token AS INTEGER);
    SELECT RAISE(ABORT, 'holdfast stale: a higher token was admitted to this key')
      FROM holdfast_fence_key
     WHERE resource = NEW.resource AND key = CAST(NEW.key AS TEXT) AND token > CAST(NEW.token AS INTEGER);
    UPDATE holdfast_fence
       SET admitted_at = CASE WHEN token < CAST(NEW.token AS INTEGER) THEN strftime('%Y-%m-%dT%H:%M:%fZ', 'now')
                              ELSE admitted_at END,
           token = CAST(NEW.token AS INTEGER)
     WHERE resource = NEW.resource AND NEW.key IS NULL AND token < CAST(NEW.token AS INTEGER);
    UPDATE holdfast_fence SET issuer = NEW.issuer
     WHERE resource = NEW.resource AND issuer IS NULL AND NEW.issuer <> '';
    INSERT INTO holdfast_fence_key (resource, key, token, admitted_at)
        SELECT NEW.resource, CAST(NEW.key AS TEXT), CAST(NEW.token AS INTEGER), strftime('%Y-%m-%dT%H:%M:%fZ', 'now')
         WHERE NEW.key IS NOT NULL
        ON CONFLICT (resource, key) DO UPDATE SET token = excluded.token, admitted_at = excluded.admitted_at
         WHERE token < excluded.token;
    INSERT INTO holdfast_entered (resource, key) VALUES (NEW.resource, coalesce(CAST(NEW.key AS TEXT), ''))
        ON CONFLICT DO NOTHING;
END;

CREATE TRIGGER IF NOT EXISTS holdfast_fence_rise BEFORE UPDATE ON holdfast_fence
WHEN NEW.token < OLD.token
BEGIN
    SELECT RAISE(ABORT, 'holdfast invalid: a mark only rises; see holdfast_reset');
END;

CREATE TRIGGER IF NOT EXISTS holdfast_fence_key_rise BEFORE UPDATE ON holdfast_fence_key
WHEN NEW.token < OLD.token
BEGIN
    SELECT RAISE(ABORT, 'holdfast invalid: a mark only rises; see holdfast_reset');
END;

-- INSERT INTO holdfast_reset (resource, issuer, reason) VALUES (...), for a change of stores or a
-- restored backup.
DROP VIEW IF EXISTS holdfast_reset;

CREATE VIEW holdfast_reset (resource, issuer, reason) AS
    SELECT NULL, NULL, NULL WHERE 0;

CREATE TRIGGER holdfast_reset_insert INSTEAD OF INSERT ON holdfast_reset
BEGIN
    SELECT RAISE(ABORT, 'holdfast invalid: no fence for this resource')
     WHERE NOT EXISTS (SELECT 1 FROM holdfast_fence WHERE resource = NEW.resource);
    INSERT INTO holdfast_fence_reset (at, resource, old_token, old_issuer, reason)
        SELECT strftime('%Y-%m-%dT%H:%M:%fZ', 'now'), resource,
               max(token, coalesce((SELECT max(token) FROM holdfast_fence_key AS k
                                     WHERE k.resource = NEW.resource), 0)), issuer, NEW.reason
          FROM holdfast_fence WHERE resource = NEW.resource;
    DELETE FROM holdfast_fence_key WHERE resource = NEW.resource;
    DELETE FROM holdfast_fence WHERE resource = NEW.resource;
    INSERT INTO holdfast_fence (resource, issuer) VALUES (NEW.resource, nullif(NEW.issuer, ''));
END;

-- INSERT INTO holdfast_purge (resource, below) VALUES (...) forgets the marks of keys below a token. From
-- then on no key admits a token below that one, so a late holder stays out; make sure that no live hold
-- has such a token.
DROP VIEW IF EXISTS holdfast_purge;

CREATE VIEW holdfast_purge (resource, below) AS SELECT NULL, NULL WHERE 0;

CREATE TRIGGER holdfast_purge_insert INSTEAD OF INSERT ON holdfast_purge
BEGIN
    SELECT RAISE(ABORT, 'holdfast invalid: no fence per key for this resource')
     WHERE NOT EXISTS (SELECT 1 FROM holdfast_keyed WHERE resource = NEW.resource);
    SELECT RAISE(ABORT, 'holdfast invalid: a token is an integer above 0')
     WHERE typeof(NEW.below) <> 'integer' OR NEW.below < 1;
    UPDATE holdfast_fence SET token = NEW.below WHERE resource = NEW.resource AND token < NEW.below;
    DELETE FROM holdfast_fence_key WHERE resource = NEW.resource AND token < NEW.below;
END;

DROP VIEW IF EXISTS holdfast_install;

CREATE VIEW holdfast_install (resource, keyed) AS SELECT NULL, NULL WHERE 0;

CREATE TRIGGER holdfast_install_insert INSTEAD OF INSERT ON holdfast_install
BEGIN
    SELECT RAISE(ABORT, 'holdfast invalid: a resource is fenced as a whole or per key: --down first')
      FROM holdfast_fence AS f WHERE f.resource = NEW.resource
       AND NEW.keyed <> EXISTS (SELECT 1 FROM holdfast_keyed AS k WHERE k.resource = f.resource);
    INSERT INTO holdfast_fence (resource) VALUES (NEW.resource) ON CONFLICT DO NOTHING;
    INSERT INTO holdfast_keyed (resource) SELECT NEW.resource WHERE NEW.keyed ON CONFLICT DO NOTHING;
END;

-- @section up-table
INSERT INTO holdfast_install VALUES (@RESOURCE@, 0);

DROP TRIGGER IF EXISTS @TRIGGER_INSERT@;

CREATE TRIGGER @TRIGGER_INSERT@ BEFORE INSERT ON @TABLE@
WHEN NOT EXISTS (SELECT 1 FROM holdfast_entered WHERE resource = @RESOURCE@ AND key = '')
BEGIN
    SELECT RAISE(ABORT, 'holdfast not entered: INSERT INTO holdfast_enter first, in the same transaction');
END;

DROP TRIGGER IF EXISTS @TRIGGER_UPDATE@;

CREATE TRIGGER @TRIGGER_UPDATE@ BEFORE UPDATE ON @TABLE@
WHEN NOT EXISTS (SELECT 1 FROM holdfast_entered WHERE resource = @RESOURCE@ AND key = '')
BEGIN
    SELECT RAISE(ABORT, 'holdfast not entered: INSERT INTO holdfast_enter first, in the same transaction');
END;

DROP TRIGGER IF EXISTS @TRIGGER_DELETE@;

CREATE TRIGGER @TRIGGER_DELETE@ BEFORE DELETE ON @TABLE@
WHEN NOT EXISTS (SELECT 1 FROM holdfast_entered WHERE resource = @RESOURCE@ AND key = '')
BEGIN
    SELECT RAISE(ABORT, 'holdfast not entered: INSERT INTO holdfast_enter first, in the same transaction');
END;

-- @section up-key-table
INSERT INTO holdfast_install VALUES (@RESOURCE@, 1);
-- After: what other triggers have made of the row is what counts.

DROP TRIGGER IF EXISTS @TRIGGER_INSERT@;

CREATE TRIGGER @TRIGGER_INSERT@ AFTER INSERT ON @TABLE@
WHEN NOT EXISTS (SELECT 1 FROM holdfast_entered WHERE resource = @RESOURCE@
                 AND key = CAST(NEW.@KEY_COLUMN@ AS TEXT) AND key <> '')
BEGIN
    SELECT RAISE(ABORT, 'holdfast not entered: INSERT INTO holdfast_enter (resource, key, token) first, for the key of this row');
END;

DROP TRIGGER IF EXISTS @TRIGGER_UPDATE@;

CREATE TRIGGER @TRIGGER_UPDATE@ AFTER UPDATE ON @TABLE@
WHEN NOT EXISTS (SELECT 1 FROM holdfast_entered WHERE resource = @RESOURCE@
                 AND key = CAST(OLD.@KEY_COLUMN@ AS TEXT) AND key <> '')
  OR NOT EXISTS (SELECT 1 FROM holdfast_entered WHERE resource = @RESOURCE@
                 AND key = CAST(NEW.@KEY_COLUMN@ AS TEXT) AND key <> '')
BEGIN
    SELECT RAISE(ABORT, 'holdfast not entered: INSERT INTO holdfast_enter (resource, key, token) first, for the key of this row');
END;

DROP TRIGGER IF EXISTS @TRIGGER_DELETE@;

CREATE TRIGGER @TRIGGER_DELETE@ BEFORE DELETE ON @TABLE@
WHEN NOT EXISTS (SELECT 1 FROM holdfast_entered WHERE resource = @RESOURCE@
                 AND key = CAST(OLD.@KEY_COLUMN@ AS TEXT) AND key <> '')
BEGIN
    SELECT RAISE(ABORT, 'holdfast not entered: INSERT INTO holdfast_enter (resource, key, token) first, for the key of this row');
END;

-- @section up-end
COMMIT;

-- @section down-bail
.bail on

-- @section down-begin
BEGIN;

-- @section down-check
CREATE TEMP VIEW holdfast_last AS SELECT 1;

CREATE TEMP TRIGGER holdfast_last_insert INSTEAD OF INSERT ON holdfast_last
WHEN EXISTS (SELECT 1 FROM main.sqlite_master
              WHERE type = 'trigger' AND instr(sql, 'FROM holdfast_entered WHERE resource = ') > 0
                AND tbl_name <> 'holdfast_enter' AND tbl_name <> @TABLE_NAME_TEXT@)
BEGIN
    SELECT RAISE(ABORT, 'holdfast invalid: other tables are fenced: --down without --last');
END;

INSERT INTO holdfast_last VALUES (1);

DROP VIEW temp.holdfast_last;

-- @section down-table
DROP TRIGGER @TRIGGER_DELETE@;

DROP TRIGGER @TRIGGER_UPDATE@;

DROP TRIGGER @TRIGGER_INSERT@;

-- The marks stay as long as another table is behind the same fence.
DELETE FROM holdfast_fence_key
 WHERE resource = @RESOURCE@
   AND NOT EXISTS (SELECT 1 FROM sqlite_master
                    WHERE type = 'trigger'
                      AND instr(sql, 'FROM holdfast_entered WHERE resource = ' || @RESOURCE_TEXT@) > 0);

DELETE FROM holdfast_keyed
 WHERE resource = @RESOURCE@
   AND NOT EXISTS (SELECT 1 FROM sqlite_master
                    WHERE type = 'trigger'
                      AND instr(sql, 'FROM holdfast_entered WHERE resource = ' || @RESOURCE_TEXT@) > 0);

DELETE FROM holdfast_fence
 WHERE resource = @RESOURCE@
   AND NOT EXISTS (SELECT 1 FROM sqlite_master
                    WHERE type = 'trigger'
                      AND instr(sql, 'FROM holdfast_entered WHERE resource = ' || @RESOURCE_TEXT@) > 0);

-- @section down-shared
DROP VIEW holdfast_install;

DROP VIEW holdfast_purge;

DROP VIEW holdfast_reset;

DROP VIEW holdfast_enter;

DROP VIEW holdfast_fence_version;

DROP TABLE holdfast_fence_reset;

DROP TABLE holdfast_entered;

DROP TABLE holdfast_nothing;

DROP TABLE holdfast_keyed;

DROP TABLE holdfast_fence_key;

DROP TABLE holdfast_fence;

-- @section down-end
COMMIT;

-- @section row-up
-- holdfast fence per row for SQLite: an UPDATE that says fence_token is refused when that is below the
-- row's.
--
--     UPDATE ... SET ..., fence_token = 34 WHERE ...;
--
-- Guards UPDATE of existing rows only, and only an UPDATE that says fence_token: SQLite cannot tell
-- the trigger that a column was left out. Not INSERT, not INSERT OR REPLACE, not DELETE.
-- Errors start with: "holdfast stale", "holdfast invalid".

-- @section row-table
ALTER TABLE @TABLE@ ADD COLUMN fence_token INTEGER NOT NULL DEFAULT 0 CHECK (fence_token >= 0);

CREATE TRIGGER @TRIGGER_ROW@ BEFORE UPDATE OF fence_token ON @TABLE@
BEGIN
    SELECT RAISE(ABORT, 'holdfast invalid: a token is an integer above 0')
     WHERE typeof(NEW.fence_token) <> 'integer' OR NEW.fence_token < 1;
    SELECT RAISE(ABORT, 'holdfast stale: this row has admitted a higher token')
     WHERE NEW.fence_token < OLD.fence_token;
END;

-- @section row-down
DROP TRIGGER @TRIGGER_ROW@;

ALTER TABLE @TABLE@ DROP COLUMN fence_token;
