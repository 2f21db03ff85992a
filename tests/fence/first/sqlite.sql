-- holdfast fence for SQLite: a table refuses every write of a transaction that has not entered with a
-- token at least as high as the highest admitted.
--
--     PRAGMA foreign_keys = ON;                                             -- once per connection
--     BEGIN IMMEDIATE;
--     INSERT INTO holdfast_enter (resource, token) VALUES ('RESOURCE', 34); -- before the first read
--     UPDATE ...;
--     DELETE FROM holdfast_entered;                                         -- leave
--     COMMIT;
--
-- A row in holdfast_entered says "this transaction has entered". Its foreign key points nowhere and is
-- checked at COMMIT: a transaction that forgets to leave cannot commit, so that no other transaction
-- ever sees such a row.
--
-- Errors (SQLITE_CONSTRAINT_TRIGGER) start with: "holdfast stale", "holdfast not entered",
-- "holdfast other store", "holdfast invalid".
BEGIN;

CREATE TABLE IF NOT EXISTS holdfast_fence (
    resource    TEXT PRIMARY KEY NOT NULL,
    token       INTEGER NOT NULL DEFAULT 0 CHECK (typeof(token) = 'integer' AND token >= 0),
    issuer      TEXT,   -- the store that issued the token
    admitted_at TEXT
) WITHOUT ROWID;

CREATE TABLE IF NOT EXISTS holdfast_nothing (id INTEGER PRIMARY KEY CHECK (id IS NULL));

CREATE TABLE IF NOT EXISTS holdfast_entered (
    resource TEXT PRIMARY KEY NOT NULL,
    open     INTEGER NOT NULL DEFAULT 1
             REFERENCES holdfast_nothing (id) DEFERRABLE INITIALLY DEFERRED,
    probe    TEXT REFERENCES holdfast_entered (resource) ON DELETE CASCADE
) WITHOUT ROWID;

CREATE TABLE IF NOT EXISTS holdfast_fence_reset (
    at         TEXT NOT NULL,
    resource   TEXT NOT NULL,
    old_token  INTEGER,
    old_issuer TEXT,
    reason     TEXT NOT NULL CHECK (reason <> '')
);

CREATE VIEW IF NOT EXISTS holdfast_enter (resource, token, issuer) AS
    SELECT NULL, NULL, NULL WHERE 0;

CREATE TRIGGER IF NOT EXISTS holdfast_enter_insert INSTEAD OF INSERT ON holdfast_enter
BEGIN
    -- Are foreign keys enforced? Then deleting the first of these rows takes the second along. (Asking
    -- for the PRAGMA is not allowed to a trigger where trusted_schema is off.) No resource is called so.
    INSERT INTO holdfast_entered (resource, probe) VALUES ('', NULL), (x'', '');
    DELETE FROM holdfast_entered WHERE resource = '';
    SELECT RAISE(ABORT, 'holdfast invalid: PRAGMA foreign_keys = ON is needed in every connection')
      FROM holdfast_entered WHERE resource = x'';
    SELECT RAISE(ABORT, 'holdfast invalid: a token is an integer above 0')
     WHERE typeof(NEW.token) <> 'integer' OR NEW.token < 1;
    SELECT RAISE(ABORT, 'holdfast invalid: no fence for this resource')
     WHERE NOT EXISTS (SELECT 1 FROM holdfast_fence WHERE resource = NEW.resource);
    SELECT RAISE(ABORT, 'holdfast other store: the fence follows tokens of another store; see holdfast_reset')
      FROM holdfast_fence WHERE resource = NEW.resource AND NEW.issuer <> '' AND issuer <> NEW.issuer;
    SELECT RAISE(ABORT, 'holdfast stale: a higher token was admitted')
      FROM holdfast_fence WHERE resource = NEW.resource AND token > NEW.token;
    UPDATE holdfast_fence
       SET admitted_at = CASE WHEN token < NEW.token THEN strftime('%Y-%m-%dT%H:%M:%fZ', 'now')
                              ELSE admitted_at END,
           token = NEW.token,
           issuer = coalesce(issuer, nullif(NEW.issuer, ''))
     WHERE resource = NEW.resource AND (token < NEW.token OR issuer IS NULL AND NEW.issuer <> '');
    INSERT INTO holdfast_entered (resource) VALUES (NEW.resource) ON CONFLICT DO NOTHING;
END;

CREATE TRIGGER IF NOT EXISTS holdfast_fence_rise BEFORE UPDATE ON holdfast_fence
WHEN NEW.token < OLD.token
BEGIN
    SELECT RAISE(ABORT, 'holdfast invalid: a mark only rises; see holdfast_reset');
END;

-- INSERT INTO holdfast_reset (resource, issuer, reason) VALUES (...), for a change of stores or a
-- restored backup.
CREATE VIEW IF NOT EXISTS holdfast_reset (resource, issuer, reason) AS
    SELECT NULL, NULL, NULL WHERE 0;

CREATE TRIGGER IF NOT EXISTS holdfast_reset_insert INSTEAD OF INSERT ON holdfast_reset
BEGIN
    SELECT RAISE(ABORT, 'holdfast invalid: no fence for this resource')
     WHERE NOT EXISTS (SELECT 1 FROM holdfast_fence WHERE resource = NEW.resource);
    INSERT INTO holdfast_fence_reset (at, resource, old_token, old_issuer, reason)
        SELECT strftime('%Y-%m-%dT%H:%M:%fZ', 'now'), resource, token, issuer, NEW.reason
          FROM holdfast_fence WHERE resource = NEW.resource;
    DELETE FROM holdfast_fence WHERE resource = NEW.resource;
    INSERT INTO holdfast_fence (resource, issuer) VALUES (NEW.resource, nullif(NEW.issuer, ''));
END;

INSERT INTO holdfast_fence (resource) VALUES ('orders') ON CONFLICT DO NOTHING;

CREATE TRIGGER "holdfast_insert_orders" BEFORE INSERT ON "orders"
WHEN NOT EXISTS (SELECT 1 FROM holdfast_entered WHERE resource = 'orders')
BEGIN
    SELECT RAISE(ABORT, 'holdfast not entered: INSERT INTO holdfast_enter first, in the same transaction');
END;
CREATE TRIGGER "holdfast_update_orders" BEFORE UPDATE ON "orders"
WHEN NOT EXISTS (SELECT 1 FROM holdfast_entered WHERE resource = 'orders')
BEGIN
    SELECT RAISE(ABORT, 'holdfast not entered: INSERT INTO holdfast_enter first, in the same transaction');
END;
CREATE TRIGGER "holdfast_delete_orders" BEFORE DELETE ON "orders"
WHEN NOT EXISTS (SELECT 1 FROM holdfast_entered WHERE resource = 'orders')
BEGIN
    SELECT RAISE(ABORT, 'holdfast not entered: INSERT INTO holdfast_enter first, in the same transaction');
END;

COMMIT;

