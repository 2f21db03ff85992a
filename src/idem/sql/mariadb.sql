-- @section up
-- holdfast idempotency keys for MariaDB: a request that comes twice has one effect, and the second gets
-- the answer of the first.
--
--     START TRANSACTION;
--     CALL holdfast_claim(scope, key, fingerprint);   -- one row: state, status, answer
--     -- 'new': do the work here, then
--     CALL holdfast_finish(scope, key, status, answer);
--     COMMIT;
--
-- claim says 'new', 'done' (with the stored status and answer), 'running' or 'mismatch', and never
-- waits for another claim. MariaDB checks nothing at COMMIT: a key that was committed unfinished is
-- refused (ZHF14) until its owner settles it with holdfast_forget.
-- Errors, also at the beginning of the message: ZHF11 not claimed here, or not the current attempt;
-- ZHF14 committed unfinished; ZHF15 bad argument, or no transaction.
--
-- Run this as a user with the CREATE ROUTINE right. The application needs only EXECUTE on the procedures
-- holdfast_claim, holdfast_finish, holdfast_start, holdfast_finish_attempt and holdfast_release, such as
--
--     GRANT EXECUTE ON PROCEDURE holdfast_claim TO application;

DELIMITER //

-- A table of that name that belongs to somebody else stays as it is.
BEGIN NOT ATOMIC
    IF EXISTS (SELECT 1 FROM information_schema.tables
                WHERE table_schema = DATABASE() AND table_comment <> 'holdfast idem'
                  AND table_name IN ('holdfast_idem', 'holdfast_idem_forgotten', 'holdfast_idem_attempt')) THEN
        SIGNAL SQLSTATE '42S01' SET MESSAGE_TEXT =
            'a table holdfast_idem, or holdfast_idem_..., is there already, and not of holdfast';
    END IF;
END//

DELIMITER ;

-- Bytes: in text 'a' and 'a ' can be the same key.
CREATE TABLE IF NOT EXISTS holdfast_idem (
    scope       VARBINARY(255) NOT NULL,
    `key`       VARBINARY(255) NOT NULL,
    fingerprint VARBINARY(64) NOT NULL,
    claimed     CHAR(36) CHARACTER SET ascii NULL, -- by which session; NULL: started, or finished
    attempt     BIGINT NULL,                       -- started, not claimed
    leased_till DATETIME(6) NULL,                  -- of that attempt
    status      INT NULL,
    answer      MEDIUMBLOB NULL,
    finished_at DATETIME(6) NULL,
    PRIMARY KEY (scope, `key`),
    KEY (finished_at)
) ENGINE = InnoDB COMMENT = 'holdfast idem';

CREATE TABLE IF NOT EXISTS holdfast_idem_forgotten (
    at          DATETIME(6) NOT NULL,
    by_user     VARCHAR(288) NOT NULL,
    scope       VARBINARY(255) NOT NULL,
    `key`       VARBINARY(255) NOT NULL,
    fingerprint VARBINARY(64) NOT NULL,
    reason      VARCHAR(200) CHARACTER SET utf8mb4 NOT NULL CHECK (reason <> '')
) ENGINE = InnoDB COMMENT = 'holdfast idem';

-- Never counted per key: that would start again after a purge, and an old attempt could finish a new one.
CREATE SEQUENCE IF NOT EXISTS holdfast_idem_attempt ENGINE = InnoDB COMMENT = 'holdfast idem';

DELIMITER //

-- Says what is wrong with arguments; the calls that are in a hurry look first themselves. They come as LONGBLOB: a
-- shorter type would cut them silently, and two keys could become one.
CREATE OR REPLACE PROCEDURE holdfast_idem_check_key(
    IN the_scope LONGBLOB, IN the_key LONGBLOB, IN the_fingerprint LONGBLOB)
SQL SECURITY DEFINER NO SQL
BEGIN
    IF NOT COALESCE(LENGTH(the_scope) BETWEEN 1 AND 255 AND LENGTH(the_key) BETWEEN 1 AND 255
                    AND LOCATE(X'00', the_scope) = 0 AND LOCATE(X'00', the_key) = 0, FALSE) THEN
        SIGNAL SQLSTATE 'ZHF15' SET MESSAGE_TEXT = 'ZHF15 a scope and a key have 1 to 255 bytes, and no NUL';
    END IF;
    IF NOT COALESCE(LENGTH(the_fingerprint) <= 64, FALSE) THEN
        SIGNAL SQLSTATE 'ZHF15' SET MESSAGE_TEXT = 'ZHF15 a fingerprint has at most 64 bytes, and is not NULL';
    END IF;
END//

CREATE OR REPLACE PROCEDURE holdfast_idem_check_answer(IN the_status INT, IN the_answer LONGBLOB)
SQL SECURITY DEFINER NO SQL
BEGIN
    IF the_status IS NULL THEN
        SIGNAL SQLSTATE 'ZHF15' SET MESSAGE_TEXT = 'ZHF15 a status is not NULL';
    END IF;
    IF LENGTH(the_answer) > 1048576 THEN
        SIGNAL SQLSTATE 'ZHF15' SET MESSAGE_TEXT = 'ZHF15 an answer has at most 1 MiB';
    END IF;
END//

-- INSERT comes first and waits for nobody. What is known is read with a lock, never plainly: a plain
-- read would decide what the whole transaction sees, before it has entered a fence. The lock is a shared
-- one, so that replays do not hinder each other.
CREATE OR REPLACE PROCEDURE holdfast_claim(
    IN the_scope LONGBLOB, IN the_key LONGBLOB, IN the_fingerprint LONGBLOB)
SQL SECURITY DEFINER MODIFIES SQL DATA
BEGIN
    DECLARE the_state VARCHAR(8) DEFAULT 'new';
    DECLARE the_status INT;
    DECLARE the_answer MEDIUMBLOB;
    DECLARE known_print VARBINARY(64);
    DECLARE known_claim CHAR(36) CHARACTER SET ascii;
    DECLARE known_finish DATETIME(6);
    DECLARE CONTINUE HANDLER FOR 1062 SET the_state = 'known';
    DECLARE CONTINUE HANDLER FOR 1205
    BEGIN
        -- There the server has ended the whole transaction, which nobody must overlook.
        IF @@innodb_rollback_on_timeout THEN
            RESIGNAL;
        END IF;
        SET the_state = 'running';
    END;

    IF @@autocommit = 1 AND @@in_transaction = 0 THEN
        SIGNAL SQLSTATE 'ZHF15' SET MESSAGE_TEXT = 'ZHF15 claim within a transaction: START TRANSACTION first';
    END IF;
    IF NOT COALESCE(LENGTH(the_scope) BETWEEN 1 AND 255 AND LENGTH(the_key) BETWEEN 1 AND 255
                    AND LENGTH(the_fingerprint) <= 64 AND LOCATE(X'00', the_scope) = 0
                    AND LOCATE(X'00', the_key) = 0, FALSE) THEN
        CALL holdfast_idem_check_key(the_scope, the_key, the_fingerprint);
    END IF;
    SET @holdfast_idem = COALESCE(@holdfast_idem, UUID());
    SET STATEMENT innodb_lock_wait_timeout = 0 FOR
        INSERT INTO holdfast_idem (scope, `key`, fingerprint, claimed)
        VALUES (the_scope, the_key, the_fingerprint, @holdfast_idem);
    IF the_state = 'known' THEN
        SET STATEMENT innodb_lock_wait_timeout = 0 FOR
            SELECT fingerprint, claimed, finished_at, status, answer
              INTO known_print, known_claim, known_finish, the_status, the_answer
              FROM holdfast_idem WHERE scope = the_scope AND `key` = the_key LOCK IN SHARE MODE;
    END IF;
    -- Who works all the same is stopped by finish: from here on this session has claimed nothing.
    IF the_state = 'known' AND known_claim IS NOT NULL THEN
        SET @holdfast_idem = NULL;
        SIGNAL SQLSTATE 'ZHF14' SET MESSAGE_TEXT =
            'ZHF14 this key was claimed and not finished; its owner settles it with holdfast_forget';
    END IF;
    IF the_state = 'known' THEN
        SET the_state = CASE WHEN known_print <> the_fingerprint THEN 'mismatch'
                             WHEN known_finish IS NULL THEN 'running' ELSE 'done' END;
    END IF;
    SELECT the_state AS state, IF(the_state = 'done', the_status, NULL) AS status,
           IF(the_state = 'done', the_answer, NULL) AS answer;
END//

CREATE OR REPLACE PROCEDURE holdfast_finish(
    IN the_scope LONGBLOB, IN the_key LONGBLOB, IN the_status INT, IN the_answer LONGBLOB)
SQL SECURITY DEFINER MODIFIES SQL DATA
BEGIN
    -- As text: a variable that is the number 0 would equal many texts.
    DECLARE session CHAR(36) CHARACTER SET ascii DEFAULT @holdfast_idem;
    DECLARE finished BIGINT DEFAULT 0;

    IF the_status IS NULL OR LENGTH(the_answer) > 1048576 THEN
        CALL holdfast_idem_check_answer(the_status, the_answer);
    END IF;
    IF @@autocommit = 0 OR @@in_transaction = 1 THEN
        UPDATE holdfast_idem
           SET claimed = NULL, status = the_status, answer = the_answer, finished_at = UTC_TIMESTAMP(6)
         WHERE scope = the_scope AND `key` = the_key AND claimed = session;
        SET finished = ROW_COUNT();
    END IF;
    IF finished <> 1 THEN
        SIGNAL SQLSTATE 'ZHF11' SET MESSAGE_TEXT = 'ZHF11 not claimed in this transaction';
    END IF;
END//

-- For an effect elsewhere: start, commit, the effect, finish_attempt, commit. The lease, in seconds, is
-- for liveness only.
CREATE OR REPLACE PROCEDURE holdfast_start(
    IN the_scope LONGBLOB, IN the_key LONGBLOB, IN the_fingerprint LONGBLOB, IN the_lease DOUBLE)
SQL SECURITY DEFINER MODIFIES SQL DATA
BEGIN
    DECLARE the_state VARCHAR(8) DEFAULT 'new';
    DECLARE the_attempt BIGINT;
    DECLARE the_status INT;
    DECLARE the_answer MEDIUMBLOB;
    DECLARE known_print VARBINARY(64);
    DECLARE known_claim CHAR(36) CHARACTER SET ascii;
    DECLARE known_finish DATETIME(6);
    DECLARE known_lease DATETIME(6);
    DECLARE now_is DATETIME(6) DEFAULT UTC_TIMESTAMP(6);
    DECLARE CONTINUE HANDLER FOR 1062 SET the_state = 'known';
    DECLARE CONTINUE HANDLER FOR 1205
    BEGIN
        IF @@innodb_rollback_on_timeout THEN
            RESIGNAL;
        END IF;
        SET the_state = 'running';
    END;

    CALL holdfast_idem_check_key(the_scope, the_key, the_fingerprint);
    IF NOT COALESCE(the_lease > 0 AND the_lease <= 604800, FALSE) THEN
        SIGNAL SQLSTATE 'ZHF15' SET MESSAGE_TEXT = 'ZHF15 a lease is above 0, and at most 7 days';
    END IF;
    SET the_attempt = NEXTVAL(holdfast_idem_attempt);
    SET STATEMENT innodb_lock_wait_timeout = 0 FOR
        INSERT INTO holdfast_idem (scope, `key`, fingerprint, attempt, leased_till)
        VALUES (the_scope, the_key, the_fingerprint, the_attempt,
                now_is + INTERVAL the_lease * 1000000 MICROSECOND);
    IF the_state = 'known' THEN
        SET STATEMENT innodb_lock_wait_timeout = 0 FOR
            SELECT fingerprint, claimed, finished_at, leased_till, status, answer
              INTO known_print, known_claim, known_finish, known_lease, the_status, the_answer
              FROM holdfast_idem WHERE scope = the_scope AND `key` = the_key LOCK IN SHARE MODE;
    END IF;
    IF the_state = 'known' AND known_claim IS NOT NULL THEN
        SET @holdfast_idem = NULL;
        SIGNAL SQLSTATE 'ZHF14' SET MESSAGE_TEXT =
            'ZHF14 this key was claimed and not finished; its owner settles it with holdfast_forget';
    END IF;
    IF the_state = 'known' THEN
        SET the_state = CASE WHEN known_print <> the_fingerprint THEN 'mismatch'
                             WHEN known_finish IS NOT NULL THEN 'done'
                             WHEN known_lease > now_is THEN 'running' ELSE 'over' END;
    END IF;
    -- One whose lease is over is taken over, by one of those who try.
    IF the_state = 'over' THEN
        SET STATEMENT innodb_lock_wait_timeout = 0 FOR
            UPDATE holdfast_idem
               SET attempt = the_attempt, leased_till = now_is + INTERVAL the_lease * 1000000 MICROSECOND
             WHERE scope = the_scope AND `key` = the_key AND finished_at IS NULL AND leased_till <= now_is;
        IF the_state = 'over' THEN
            SET the_state = IF(ROW_COUNT() = 1, 'new', 'running');
        END IF;
    END IF;
    SELECT the_state AS state, IF(the_state = 'new', the_attempt, NULL) AS attempt,
           IF(the_state = 'running',
              GREATEST(1, CEIL(COALESCE(TIMESTAMPDIFF(MICROSECOND, now_is, known_lease), 0) / 1000000)),
              NULL) AS remaining,
           IF(the_state = 'done', the_status, NULL) AS status,
           IF(the_state = 'done', the_answer, NULL) AS answer;
END//

-- The same attempt with the same answer again is no error: a COMMIT whose reply was lost can be repeated.
CREATE OR REPLACE PROCEDURE holdfast_finish_attempt(
    IN the_scope LONGBLOB, IN the_key LONGBLOB, IN the_attempt BIGINT, IN the_status INT,
    IN the_answer LONGBLOB)
SQL SECURITY DEFINER MODIFIES SQL DATA
BEGIN
    DECLARE done INT DEFAULT 0;

    CALL holdfast_idem_check_answer(the_status, the_answer);
    UPDATE holdfast_idem
       SET status = the_status, answer = the_answer, finished_at = UTC_TIMESTAMP(6)
     WHERE scope = the_scope AND `key` = the_key AND attempt = the_attempt AND finished_at IS NULL;
    IF ROW_COUNT() <> 1 THEN
        SELECT COUNT(*) INTO done FROM holdfast_idem
         WHERE scope = the_scope AND `key` = the_key AND attempt = the_attempt
           AND status = the_status AND answer <=> the_answer LOCK IN SHARE MODE;
        IF done = 0 THEN
            SIGNAL SQLSTATE 'ZHF11' SET MESSAGE_TEXT = 'ZHF11 not the current attempt';
        END IF;
    END IF;
END//

-- Only if the effect certainly did not happen: the next one starts at once.
CREATE OR REPLACE PROCEDURE holdfast_release(
    IN the_scope LONGBLOB, IN the_key LONGBLOB, IN the_attempt BIGINT)
SQL SECURITY DEFINER MODIFIES SQL DATA
BEGIN
    DELETE FROM holdfast_idem
     WHERE scope = the_scope AND `key` = the_key AND attempt = the_attempt AND finished_at IS NULL;
    IF ROW_COUNT() <> 1 THEN
        SIGNAL SQLSTATE 'ZHF11' SET MESSAGE_TEXT = 'ZHF11 not the current attempt';
    END IF;
END//

-- Settles a key that was committed unfinished, when its owner knows that the work was not done, or undid
-- it: the key is free again. Grant it to nobody.
CREATE OR REPLACE PROCEDURE holdfast_forget(
    IN the_scope LONGBLOB, IN the_key LONGBLOB, IN the_reason VARCHAR(200) CHARACTER SET utf8mb4)
SQL SECURITY INVOKER MODIFIES SQL DATA
BEGIN
    INSERT INTO holdfast_idem_forgotten (at, by_user, scope, `key`, fingerprint, reason)
        SELECT UTC_TIMESTAMP(6), USER(), scope, `key`, fingerprint, the_reason
          FROM holdfast_idem
         WHERE scope = the_scope AND `key` = the_key AND claimed IS NOT NULL FOR UPDATE;
    IF ROW_COUNT() <> 1 THEN
        SIGNAL SQLSTATE 'ZHF11' SET MESSAGE_TEXT = 'ZHF11 no such key was committed unfinished';
    END IF;
    DELETE FROM holdfast_idem
     WHERE scope = the_scope AND `key` = the_key AND claimed IS NOT NULL;
END//

-- Removes finished keys only, the oldest first; says how many. older_than is in seconds; NULL: what
-- --keep said. A purged key runs again. Found by a plain read and deleted by key: a range that is deleted
-- or read with a lock would keep every claim out. A key with an open replay is left for the next time: who
-- waited for it would keep other replays of it out. Not for the application.
CREATE OR REPLACE PROCEDURE holdfast_purge(IN older_than DOUBLE, IN at_most INT)
SQL SECURITY DEFINER MODIFIES SQL DATA
BEGIN
    DECLARE purged BIGINT DEFAULT 0;
    DECLARE at_end BOOLEAN DEFAULT FALSE;
    DECLARE in_another BOOLEAN DEFAULT @@autocommit = 0 OR @@in_transaction = 1;
    DECLARE old_scope, old_key VARBINARY(255);
    DECLARE border DATETIME(6) DEFAULT
        UTC_TIMESTAMP(6) - INTERVAL COALESCE(older_than, @KEEP@) * 1000000 MICROSECOND;
    DECLARE old CURSOR FOR
        SELECT scope, `key` FROM holdfast_idem WHERE finished_at < border ORDER BY finished_at LIMIT at_most;
    DECLARE CONTINUE HANDLER FOR NOT FOUND SET at_end = TRUE;
    DECLARE CONTINUE HANDLER FOR 1205
    BEGIN
        IF @@innodb_rollback_on_timeout AND in_another THEN
            RESIGNAL;
        END IF;
    END;

    IF NOT COALESCE(at_most > 0, FALSE) OR older_than < 0 THEN
        SIGNAL SQLSTATE 'ZHF15' SET MESSAGE_TEXT =
            'ZHF15 purge what is older than so many seconds, and at most so many';
    END IF;
    OPEN old;
    each_key: LOOP
        FETCH old INTO old_scope, old_key;
        IF at_end THEN
            LEAVE each_key;
        END IF;
        SET STATEMENT innodb_lock_wait_timeout = 0 FOR
            DELETE FROM holdfast_idem WHERE scope = old_scope AND `key` = old_key AND finished_at < border;
        SET purged = purged + GREATEST(ROW_COUNT(), 0);
    END LOOP;
    CLOSE old;
    SELECT purged;
END//

DELIMITER ;

-- @section down
DROP PROCEDURE holdfast_purge;
DROP PROCEDURE holdfast_forget;
DROP PROCEDURE holdfast_release;
DROP PROCEDURE holdfast_finish_attempt;
DROP PROCEDURE holdfast_start;
DROP PROCEDURE holdfast_finish;
DROP PROCEDURE holdfast_claim;
DROP PROCEDURE holdfast_idem_check_answer;
DROP PROCEDURE holdfast_idem_check_key;
DROP SEQUENCE holdfast_idem_attempt;
DROP TABLE holdfast_idem_forgotten;
DROP TABLE holdfast_idem;
