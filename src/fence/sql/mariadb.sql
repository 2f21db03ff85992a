-- @section up
-- holdfast fence for MariaDB: a table refuses every write of a session that was not the last to enter
-- with a token at least as high as the highest admitted.
--
--     START TRANSACTION;
--     CALL holdfast_enter('RESOURCE', 34);              -- before the first read
--     CALL holdfast_enter_key('RESOURCE', 'KEY', 34);   -- instead, if the table is fenced per key
--     UPDATE ...;
--     COMMIT;
--
-- Errors: SQLSTATE ZHF01 stale token, ZHF02 not entered, ZHF03 token of another store, ZHF04 no token
-- or no such resource, ZHF05 not in a transaction, ZHF06 another transaction is inside and does not end.
-- Run this as a user with the TRIGGER and CREATE ROUTINE rights, and again after an upgrade of holdfast;
-- the application needs only
--
--     GRANT EXECUTE ON PROCEDURE holdfast_enter TO application;   -- or holdfast_enter_key
--     GRANT EXECUTE ON PROCEDURE holdfast_leave TO application;
--
-- The table must be of an engine with transactions (InnoDB); others are refused.

-- @section up-shared
CREATE TABLE IF NOT EXISTS holdfast_fence (
    resource    VARCHAR(255) @TEXT@ NOT NULL,
    key_value   VARCHAR(255) @TEXT@ NOT NULL DEFAULT '', -- '': the resource, or the floor of its keys
    token       BIGINT NOT NULL DEFAULT 0 CHECK (token >= 0),
    issuer      VARCHAR(200) @TEXT@ NULL, -- who issued the token
    admitted_at DATETIME(6) NULL,
    entered     CHAR(36) CHARACTER SET ascii NULL, -- the session that entered last
    entries     BIGINT UNSIGNED NOT NULL DEFAULT 0, -- so that every entry changes the row
    keyed       BOOLEAN NOT NULL DEFAULT FALSE,
    PRIMARY KEY (resource, key_value)
) ENGINE = InnoDB;

-- One of an earlier version gets what it lacks.
ALTER TABLE holdfast_fence
    ADD COLUMN IF NOT EXISTS key_value VARCHAR(255) @TEXT@ NOT NULL DEFAULT '' AFTER resource,
    ADD COLUMN IF NOT EXISTS entries BIGINT UNSIGNED NOT NULL DEFAULT 0,
    ADD COLUMN IF NOT EXISTS keyed BOOLEAN NOT NULL DEFAULT FALSE,
    DROP PRIMARY KEY, ADD PRIMARY KEY (resource, key_value);

CREATE TABLE IF NOT EXISTS holdfast_fence_reset (
    at         DATETIME(6) NOT NULL,
    by_user    VARCHAR(288) NOT NULL,
    resource   VARCHAR(255) @TEXT@ NOT NULL,
    old_token  BIGINT,
    old_issuer VARCHAR(200) @TEXT@,
    reason     VARCHAR(200) CHARACTER SET utf8mb4 NOT NULL CHECK (reason <> '')
) ENGINE = InnoDB;

CREATE OR REPLACE FUNCTION holdfast_fence_version() RETURNS INT DETERMINISTIC NO SQL RETURN 3;

DELIMITER //

-- Why it was refused: the part of entering that is not in a hurry.
CREATE OR REPLACE PROCEDURE holdfast_refuse(
    IN the_resource VARCHAR(255) @TEXT@, IN the_key VARCHAR(255) @TEXT@, IN the_token BIGINT,
    IN the_issuer VARCHAR(200) @TEXT@)
SQL SECURITY DEFINER READS SQL DATA
BEGIN
    DECLARE wait_now BIGINT DEFAULT LEAST(@@innodb_lock_wait_timeout, COALESCE(@holdfast_enter_wait, 10));
    DECLARE mark, its_floor BIGINT;
    DECLARE mark_issuer VARCHAR(200) @TEXT@;
    DECLARE mark_at DATETIME(6);
    DECLARE is_keyed BOOLEAN;
    DECLARE said VARCHAR(500) CHARACTER SET utf8mb4;
    DECLARE CONTINUE HANDLER FOR NOT FOUND BEGIN END;

    IF the_token IS NULL OR the_token < 1 THEN
        SET said = CONCAT(COALESCE(the_token, 'NULL'), ' is not a token');
        SIGNAL SQLSTATE 'ZHF04' SET MESSAGE_TEXT = said;
    END IF;
    SET STATEMENT innodb_lock_wait_timeout = wait_now FOR
    SELECT keyed, token, issuer INTO is_keyed, its_floor, mark_issuer
      FROM holdfast_fence WHERE resource = the_resource AND key_value = '' LOCK IN SHARE MODE;
    IF is_keyed IS NULL THEN
        SET said = CONCAT('no fence for resource "', LEFT(COALESCE(the_resource, 'NULL'), 60), '"');
        SIGNAL SQLSTATE 'ZHF04' SET MESSAGE_TEXT = said;
    ELSEIF is_keyed <> (the_key <> '') OR the_key IS NULL THEN
        SIGNAL SQLSTATE 'ZHF04' SET MESSAGE_TEXT =
            'a resource fenced per key is entered with holdfast_enter_key and a key, another without';
    END IF;
    SET STATEMENT innodb_lock_wait_timeout = wait_now FOR
    SELECT token, issuer, admitted_at INTO mark, mark_issuer, mark_at
      FROM holdfast_fence WHERE resource = the_resource AND key_value = the_key LOCK IN SHARE MODE;
    IF mark_issuer <> the_issuer AND the_issuer <> '' THEN
        SET said = CONCAT('token ', the_token, ' is of another store than ', LEFT(mark_issuer, 40),
                          ': CALL holdfast_reset');
        SIGNAL SQLSTATE 'ZHF03' SET MESSAGE_TEXT = said;
    END IF;
    SET said = CONCAT('token ', the_token, ' is stale: ', GREATEST(COALESCE(mark, 0), its_floor),
                      ' was admitted', COALESCE(CONCAT(' at ', mark_at), ''));
    SIGNAL SQLSTATE 'ZHF01' SET MESSAGE_TEXT = said;
END//

-- One UPDATE decides, and its lock keeps every other holder out until the transaction ends; without a
-- transaction it would end at once. It waits for @holdfast_enter_wait seconds, 10 if that is not set, or for
-- innodb_lock_wait_timeout if that is shorter.
CREATE OR REPLACE PROCEDURE holdfast_enter_any(
    IN the_resource VARCHAR(255) @TEXT@, IN the_key VARCHAR(255) @TEXT@, IN the_token BIGINT,
    IN the_issuer VARCHAR(200) @TEXT@)
SQL SECURITY DEFINER MODIFIES SQL DATA
BEGIN
    DECLARE session CHAR(36) CHARACTER SET ascii DEFAULT COALESCE(@holdfast_session, UUID());
    DECLARE wait_now BIGINT DEFAULT LEAST(@@innodb_lock_wait_timeout, COALESCE(@holdfast_enter_wait, 10));
    DECLARE raised, tries INT DEFAULT 0;
    DECLARE EXIT HANDLER FOR 1205
        SIGNAL SQLSTATE 'ZHF06' SET MESSAGE_TEXT =
            'another transaction is inside this fence and does not end: see idle_write_transaction_timeout';

    -- A session that is refused here must not go on under an earlier entry.
    SET @holdfast_session = NULL;
    IF @@autocommit = 1 AND @@in_transaction = 0 THEN
        SIGNAL SQLSTATE 'ZHF05' SET MESSAGE_TEXT = 'enter inside a transaction: START TRANSACTION first';
    END IF;
    REPEAT
        SET tries = tries + 1;
        SET STATEMENT innodb_lock_wait_timeout = wait_now FOR
        UPDATE holdfast_fence
           SET entered = session,
               entries = entries + 1,
               admitted_at = IF(token < the_token, UTC_TIMESTAMP(6), admitted_at),
               token = the_token,
               issuer = COALESCE(issuer, NULLIF(the_issuer, ''))
         WHERE resource = the_resource AND key_value = the_key AND keyed = (the_key <> '')
           AND token <= the_token AND the_token > 0
           AND COALESCE(issuer = the_issuer OR the_issuer = '', TRUE);
        SET raised = ROW_COUNT();
        -- A new key starts at the floor, which holdfast_purge raises.
        IF raised = 0 AND the_key <> '' THEN
            SET STATEMENT innodb_lock_wait_timeout = wait_now FOR
            INSERT IGNORE INTO holdfast_fence
                   (resource, key_value, token, issuer, admitted_at, entered, entries, keyed)
            SELECT f.resource, the_key, the_token, COALESCE(f.issuer, NULLIF(the_issuer, '')),
                   UTC_TIMESTAMP(6), session, 1, TRUE
              FROM holdfast_fence AS f
             WHERE f.resource = the_resource AND f.key_value = '' AND f.keyed
               AND f.token <= the_token AND the_token > 0
               AND COALESCE(f.issuer = the_issuer OR the_issuer = '', TRUE)
              LOCK IN SHARE MODE;
            SET raised = ROW_COUNT();
        END IF;
    UNTIL raised > 0 OR the_key = '' OR tries = 2 -- another session made the key meanwhile
    END REPEAT;
    IF raised < 1 THEN
        CALL holdfast_refuse(the_resource, the_key, the_token, the_issuer);
    END IF;
    SET @holdfast_session = session;
END//

-- enter() runs in every transaction, and a procedure that calls another costs a tenth more: so the UPDATE is
-- written out, for a token without an issuer. What it does not admit is left to the procedure above.
CREATE OR REPLACE PROCEDURE holdfast_enter(IN the_resource VARCHAR(255) @TEXT@, IN the_token BIGINT)
SQL SECURITY DEFINER MODIFIES SQL DATA
BEGIN
    DECLARE session CHAR(36) CHARACTER SET ascii DEFAULT COALESCE(@holdfast_session, UUID());
    DECLARE wait_now BIGINT DEFAULT LEAST(@@innodb_lock_wait_timeout, COALESCE(@holdfast_enter_wait, 10));
    DECLARE EXIT HANDLER FOR 1205
        SIGNAL SQLSTATE 'ZHF06' SET MESSAGE_TEXT =
            'another transaction is inside this fence and does not end: see idle_write_transaction_timeout';

    SET @holdfast_session = NULL;
    SET STATEMENT innodb_lock_wait_timeout = wait_now FOR
    UPDATE holdfast_fence
       SET entered = session,
           entries = entries + 1,
           admitted_at = IF(token < the_token, UTC_TIMESTAMP(6), admitted_at),
           token = the_token
     WHERE resource = the_resource AND key_value = '' AND NOT keyed AND token <= the_token AND the_token > 0
       AND (@@autocommit = 0 OR @@in_transaction = 1);
    IF ROW_COUNT() < 1 THEN
        SET @holdfast_session = session;
        CALL holdfast_enter_any(the_resource, '', the_token, NULL);
    ELSE
        SET @holdfast_session = session;
    END IF;
END//

CREATE OR REPLACE PROCEDURE holdfast_enter_key(
    IN the_resource VARCHAR(255) @TEXT@, IN the_key VARCHAR(255) @TEXT@, IN the_token BIGINT)
SQL SECURITY DEFINER MODIFIES SQL DATA
BEGIN
    DECLARE session CHAR(36) CHARACTER SET ascii DEFAULT COALESCE(@holdfast_session, UUID());
    DECLARE wait_now BIGINT DEFAULT LEAST(@@innodb_lock_wait_timeout, COALESCE(@holdfast_enter_wait, 10));
    DECLARE EXIT HANDLER FOR 1205
        SIGNAL SQLSTATE 'ZHF06' SET MESSAGE_TEXT =
            'another transaction is inside this fence and does not end: see idle_write_transaction_timeout';

    SET @holdfast_session = NULL;
    SET STATEMENT innodb_lock_wait_timeout = wait_now FOR
    UPDATE holdfast_fence
       SET entered = session,
           entries = entries + 1,
           admitted_at = IF(token < the_token, UTC_TIMESTAMP(6), admitted_at),
           token = the_token
     WHERE resource = the_resource AND key_value = NULLIF(the_key, '') AND keyed
       AND token <= the_token AND the_token > 0 AND (@@autocommit = 0 OR @@in_transaction = 1);
    IF ROW_COUNT() < 1 THEN
        SET @holdfast_session = session;
        CALL holdfast_enter_any(the_resource, NULLIF(the_key, ''), the_token, NULL);
    ELSE
        SET @holdfast_session = session;
    END IF;
END//

DELIMITER ;

-- The same, with the store that issued the token.
CREATE OR REPLACE PROCEDURE holdfast_enter_from(
    IN the_resource VARCHAR(255) @TEXT@, IN the_token BIGINT, IN the_issuer VARCHAR(200) @TEXT@)
SQL SECURITY DEFINER MODIFIES SQL DATA
    CALL holdfast_enter_any(the_resource, '', the_token, the_issuer);

CREATE OR REPLACE PROCEDURE holdfast_enter_key_from(
    IN the_resource VARCHAR(255) @TEXT@, IN the_key VARCHAR(255) @TEXT@, IN the_token BIGINT,
    IN the_issuer VARCHAR(200) @TEXT@)
SQL SECURITY DEFINER MODIFIES SQL DATA
    CALL holdfast_enter_any(the_resource, NULLIF(the_key, ''), the_token, the_issuer);

-- Before a connection goes back to a pool: the next user has not entered.
CREATE OR REPLACE PROCEDURE holdfast_leave() SQL SECURITY DEFINER
    SET @holdfast_session = NULL;

DELIMITER //

-- Looks at the newest state under a lock, so that nobody enters between this check and the commit: an UPDATE
-- that changes nothing, which costs less than a SELECT. Not found: @holdfast_inside stays NULL.
CREATE OR REPLACE PROCEDURE holdfast_guard_key(
    IN the_resource VARCHAR(255) @TEXT@, IN the_key VARCHAR(255) @TEXT@)
SQL SECURITY DEFINER MODIFIES SQL DATA
BEGIN
    -- As text: a variable that is the number 0 would equal every text that does not start with a digit.
    DECLARE session CHAR(36) CHARACTER SET ascii DEFAULT @holdfast_session;

    SET @holdfast_inside = NULL;
    UPDATE holdfast_fence SET entered = (@holdfast_inside := entered)
     WHERE resource = the_resource AND key_value = the_key AND entered = session;
    IF @holdfast_inside IS NULL THEN
        SIGNAL SQLSTATE 'ZHF02' SET MESSAGE_TEXT =
            'not entered: CALL holdfast_enter(resource, token) first, in the same transaction';
    END IF;
END//

DELIMITER ;

-- For triggers of an earlier version.
CREATE OR REPLACE PROCEDURE holdfast_guard(IN the_resource VARCHAR(255) @TEXT@)
SQL SECURITY DEFINER MODIFIES SQL DATA
    CALL holdfast_guard_key(the_resource, '');

DELIMITER //

-- A row that moves from one key to another needs both. The keys are compared as bytes, whatever the
-- column says of upper and lower case; '' is nobody's key. It is called for every row, and a procedure
-- that calls another costs twice: so the first check is written out.
CREATE OR REPLACE PROCEDURE holdfast_guard_keys(
    IN the_resource VARCHAR(255) @TEXT@, IN old_key VARCHAR(255) @TEXT@, IN new_key VARCHAR(255) @TEXT@)
SQL SECURITY DEFINER MODIFIES SQL DATA
BEGIN
    DECLARE session CHAR(36) CHARACTER SET ascii DEFAULT @holdfast_session;

    SET @holdfast_inside = NULL;
    UPDATE holdfast_fence SET entered = (@holdfast_inside := entered)
     WHERE resource = the_resource AND key_value = NULLIF(old_key, '') AND entered = session;
    IF @holdfast_inside IS NULL THEN
        SIGNAL SQLSTATE 'ZHF02' SET MESSAGE_TEXT =
            'not entered: CALL holdfast_enter_key(resource, key, token) first, in the same transaction';
    END IF;
    IF NOT (old_key <=> new_key) THEN
        CALL holdfast_guard_key(the_resource, NULLIF(new_key, ''));
    END IF;
END//

-- For a change of stores or a restored backup. Grant it to nobody.
CREATE OR REPLACE PROCEDURE holdfast_reset(
    IN the_resource VARCHAR(255) @TEXT@, IN the_issuer VARCHAR(200) @TEXT@,
    IN the_reason VARCHAR(200) CHARACTER SET utf8mb4)
SQL SECURITY INVOKER MODIFIES SQL DATA
BEGIN
    INSERT INTO holdfast_fence_reset (at, by_user, resource, old_token, old_issuer, reason)
        SELECT UTC_TIMESTAMP(6), USER(), resource, MAX(token), MAX(issuer), the_reason
          FROM holdfast_fence WHERE resource = the_resource GROUP BY resource;
    IF ROW_COUNT() = 0 THEN
        SIGNAL SQLSTATE 'ZHF04' SET MESSAGE_TEXT = 'no fence for this resource';
    END IF;
    UPDATE holdfast_fence
       SET token = 0, issuer = NULLIF(the_issuer, ''), admitted_at = NULL, entered = NULL
     WHERE resource = the_resource AND key_value = '';
    DELETE FROM holdfast_fence WHERE resource = the_resource AND key_value <> '';
END//

-- Forgets the marks of keys below a token. From then on no key admits a token below that one, so a late
-- holder stays out; make sure that no live hold has such a token. Grant it to nobody.
CREATE OR REPLACE PROCEDURE holdfast_purge(IN the_resource VARCHAR(255) @TEXT@, IN below BIGINT)
SQL SECURITY INVOKER MODIFIES SQL DATA
BEGIN
    IF @@autocommit = 1 AND @@in_transaction = 0 THEN
        SIGNAL SQLSTATE 'ZHF05' SET MESSAGE_TEXT = 'purge inside a transaction: START TRANSACTION first';
    END IF;
    UPDATE holdfast_fence SET token = GREATEST(token, below), entries = entries + 1
     WHERE resource = the_resource AND key_value = '' AND keyed;
    IF ROW_COUNT() = 0 THEN
        SIGNAL SQLSTATE 'ZHF04' SET MESSAGE_TEXT = 'no fence per key for this resource';
    END IF;
    DELETE FROM holdfast_fence WHERE resource = the_resource AND key_value <> '' AND token < below;
END//

-- Tables whose writes cannot be taken back cannot be fenced.
CREATE OR REPLACE PROCEDURE holdfast_check_table(
    IN the_table VARCHAR(64) CHARACTER SET utf8mb4,
    IN the_resource VARCHAR(255) @TEXT@, IN per_key BOOLEAN)
SQL SECURITY INVOKER READS SQL DATA
BEGIN
    DECLARE its_engine VARCHAR(64);
    DECLARE said VARCHAR(200) CHARACTER SET utf8mb4;

    SELECT t.engine INTO its_engine FROM information_schema.tables AS t
     WHERE t.table_schema = DATABASE() AND t.table_name = the_table;
    IF NOT EXISTS (SELECT 1 FROM information_schema.engines AS e
                    WHERE e.engine = its_engine AND e.transactions = 'YES') THEN
        SET said = CONCAT('a table of engine ', COALESCE(its_engine, 'none'),
                          ' has no transactions: ALTER TABLE ... ENGINE = InnoDB first');
        SIGNAL SQLSTATE 'ZHF04' SET MESSAGE_TEXT = said;
    ELSEIF EXISTS (SELECT 1 FROM holdfast_fence
                    WHERE resource = the_resource AND key_value = '' AND keyed <> per_key) THEN
        SIGNAL SQLSTATE 'ZHF04' SET MESSAGE_TEXT =
            'a resource is fenced as a whole or per key: take the other fence down first';
    END IF;
END//

CREATE OR REPLACE PROCEDURE holdfast_check_last(IN the_table VARCHAR(64) CHARACTER SET utf8mb4)
SQL SECURITY INVOKER READS SQL DATA
BEGIN
    IF EXISTS (SELECT 1 FROM information_schema.triggers
                WHERE trigger_schema = DATABASE() AND action_statement LIKE 'CALL holdfast_guard%'
                  AND event_object_table <> the_table) THEN
        SIGNAL SQLSTATE 'ZHF04' SET MESSAGE_TEXT = 'other tables are fenced: --down without --last';
    END IF;
END//

DELIMITER ;

-- The mark goes when no table is behind it any more.
CREATE OR REPLACE PROCEDURE holdfast_forget(
    IN the_resource VARCHAR(255) @TEXT@, IN as_written VARCHAR(600) @TEXT@)
SQL SECURITY INVOKER MODIFIES SQL DATA
    DELETE FROM holdfast_fence
     WHERE resource = the_resource
       AND NOT EXISTS (SELECT 1 FROM information_schema.triggers
                        WHERE trigger_schema = DATABASE()
                          AND LOCATE(BINARY CONCAT('(', as_written, ')'), BINARY action_statement)
                              + LOCATE(BINARY CONCAT('(', as_written, ','), BINARY action_statement) > 0);

-- @section up-table
CALL holdfast_check_table(@TABLE_NAME_TEXT@, @RESOURCE@, FALSE);

INSERT INTO holdfast_fence (resource) VALUES (@RESOURCE@)
    ON DUPLICATE KEY UPDATE resource = VALUES(resource);

CREATE OR REPLACE TRIGGER @TRIGGER_INSERT@ BEFORE INSERT ON @TABLE@
    FOR EACH ROW CALL holdfast_guard_key(@RESOURCE@, '');

CREATE OR REPLACE TRIGGER @TRIGGER_UPDATE@ BEFORE UPDATE ON @TABLE@
    FOR EACH ROW CALL holdfast_guard_key(@RESOURCE@, '');

CREATE OR REPLACE TRIGGER @TRIGGER_DELETE@ BEFORE DELETE ON @TABLE@
    FOR EACH ROW CALL holdfast_guard_key(@RESOURCE@, '');

-- @section up-key-table
CALL holdfast_check_table(@TABLE_NAME_TEXT@, @RESOURCE@, TRUE);

INSERT INTO holdfast_fence (resource, keyed) VALUES (@RESOURCE@, TRUE)
    ON DUPLICATE KEY UPDATE resource = VALUES(resource);

-- After: what other triggers have made of the row is what counts.
CREATE OR REPLACE TRIGGER @TRIGGER_INSERT@ AFTER INSERT ON @TABLE@
    FOR EACH ROW CALL holdfast_guard_keys(@RESOURCE@, NEW.@KEY_COLUMN@, NEW.@KEY_COLUMN@);

CREATE OR REPLACE TRIGGER @TRIGGER_UPDATE@ AFTER UPDATE ON @TABLE@
    FOR EACH ROW CALL holdfast_guard_keys(@RESOURCE@, OLD.@KEY_COLUMN@, NEW.@KEY_COLUMN@);

CREATE OR REPLACE TRIGGER @TRIGGER_DELETE@ BEFORE DELETE ON @TABLE@
    FOR EACH ROW CALL holdfast_guard_keys(@RESOURCE@, OLD.@KEY_COLUMN@, OLD.@KEY_COLUMN@);

-- @section down-check
CALL holdfast_check_last(@TABLE_NAME_TEXT@);

-- @section down-table
DROP TRIGGER @TRIGGER_DELETE@;

DROP TRIGGER @TRIGGER_UPDATE@;

DROP TRIGGER @TRIGGER_INSERT@;

CALL holdfast_forget(@RESOURCE@, @RESOURCE_TEXT@);

-- @section down-shared
DROP PROCEDURE holdfast_forget;

DROP PROCEDURE holdfast_check_last;

DROP PROCEDURE holdfast_check_table;

DROP PROCEDURE holdfast_purge;

DROP PROCEDURE holdfast_reset;

DROP PROCEDURE holdfast_guard_keys;

DROP PROCEDURE holdfast_guard;

DROP PROCEDURE holdfast_guard_key;

DROP PROCEDURE holdfast_leave;

DROP PROCEDURE holdfast_enter_key_from;

DROP PROCEDURE holdfast_enter_from;

DROP PROCEDURE holdfast_enter_key;

DROP PROCEDURE holdfast_enter;

DROP PROCEDURE holdfast_enter_any;

DROP PROCEDURE holdfast_refuse;

DROP FUNCTION holdfast_fence_version;

DROP TABLE holdfast_fence_reset;

DROP TABLE holdfast_fence;
