-- holdfast fence for MariaDB: a table refuses every write of a session that was not the last to enter
-- with a token at least as high as the highest admitted.
--
--     START TRANSACTION;
--     CALL holdfast_enter('RESOURCE', 34);     -- before the first read
--     UPDATE ...;
--     COMMIT;
--
-- Errors: SQLSTATE ZHF01 stale token, ZHF02 not entered, ZHF03 token of another store, ZHF04 no token
-- or no such resource. Run this as a user with the TRIGGER and CREATE ROUTINE rights; the application
-- needs only
--
--     GRANT EXECUTE ON PROCEDURE holdfast_enter TO application;
--
-- The table and its fence must be of an engine with transactions (InnoDB).

CREATE TABLE IF NOT EXISTS holdfast_fence (
    resource    VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL PRIMARY KEY,
    token       BIGINT NOT NULL DEFAULT 0 CHECK (token >= 0),
    issuer      VARCHAR(200) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL, -- who issued the token
    admitted_at DATETIME(6) NULL,
    entered     CHAR(36) CHARACTER SET ascii NULL -- the session that entered last
) ENGINE = InnoDB;

CREATE TABLE IF NOT EXISTS holdfast_fence_reset (
    at         DATETIME(6) NOT NULL,
    by_user    VARCHAR(288) NOT NULL,
    resource   VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    old_token  BIGINT,
    old_issuer VARCHAR(200) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
    reason     VARCHAR(200) CHARACTER SET utf8mb4 NOT NULL CHECK (reason <> '')
) ENGINE = InnoDB;

DELIMITER //

-- The lock on the fence's row keeps every other holder out until the transaction ends.
CREATE OR REPLACE PROCEDURE holdfast_enter_from(
    IN the_resource VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin, IN the_token BIGINT,
    IN the_issuer VARCHAR(200) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin)
SQL SECURITY DEFINER MODIFIES SQL DATA
BEGIN
    DECLARE mark BIGINT;
    DECLARE mark_issuer VARCHAR(200) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
    DECLARE mark_at DATETIME(6);
    DECLARE said VARCHAR(500) CHARACTER SET utf8mb4;
    DECLARE session CHAR(36) CHARACTER SET ascii DEFAULT @holdfast_session;
    DECLARE CONTINUE HANDLER FOR NOT FOUND SET mark = NULL;

    -- A session that is refused here must not go on under an earlier entry.
    SET @holdfast_session = NULL;
    IF the_token IS NULL OR the_token < 1 THEN
        SET said = CONCAT(COALESCE(the_token, 'NULL'), ' is no token');
        SIGNAL SQLSTATE 'ZHF04' SET MESSAGE_TEXT = said;
    END IF;
    SELECT token, issuer, admitted_at INTO mark, mark_issuer, mark_at
      FROM holdfast_fence WHERE resource = the_resource FOR UPDATE;
    IF mark IS NULL THEN
        SET said = CONCAT('no fence for resource "', LEFT(COALESCE(the_resource, 'NULL'), 60), '"');
        SIGNAL SQLSTATE 'ZHF04' SET MESSAGE_TEXT = said;
    END IF;
    IF mark_issuer <> the_issuer AND the_issuer <> '' THEN
        SET said = CONCAT('token ', the_token, ' is of another store than ', LEFT(mark_issuer, 40),
                          ': CALL holdfast_reset');
        SIGNAL SQLSTATE 'ZHF03' SET MESSAGE_TEXT = said;
    END IF;
    IF the_token < mark THEN
        SET said = CONCAT('token ', the_token, ' is stale: ', mark, ' was admitted at ', mark_at);
        SIGNAL SQLSTATE 'ZHF01' SET MESSAGE_TEXT = said;
    END IF;
    SET @holdfast_session = COALESCE(session, UUID());
    UPDATE holdfast_fence
       SET entered = @holdfast_session,
           admitted_at = IF(token < the_token, UTC_TIMESTAMP(6), admitted_at),
           token = the_token,
           issuer = COALESCE(issuer, NULLIF(the_issuer, ''))
     WHERE resource = the_resource;
END//

CREATE OR REPLACE PROCEDURE holdfast_enter(
    IN the_resource VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin, IN the_token BIGINT)
SQL SECURITY DEFINER MODIFIES SQL DATA
    CALL holdfast_enter_from(the_resource, the_token, NULL)//

-- Before a connection goes back to a pool: the next user has not entered.
CREATE OR REPLACE PROCEDURE holdfast_leave() SQL SECURITY DEFINER
    SET @holdfast_session = NULL//

-- Reads the newest state under a lock, so that nobody enters between this check and the commit.
CREATE OR REPLACE PROCEDURE holdfast_guard(
    IN the_resource VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin)
SQL SECURITY DEFINER READS SQL DATA
BEGIN
    DECLARE entered_by CHAR(36) CHARACTER SET ascii;
    -- As text: a variable that is the number 0 would equal every text that does not start with a digit.
    DECLARE session CHAR(36) CHARACTER SET ascii DEFAULT @holdfast_session;
    DECLARE CONTINUE HANDLER FOR NOT FOUND SET entered_by = NULL;

    SELECT entered INTO entered_by FROM holdfast_fence
     WHERE resource = the_resource LOCK IN SHARE MODE;
    IF NOT COALESCE(entered_by = session, FALSE) THEN
        SIGNAL SQLSTATE 'ZHF02' SET MESSAGE_TEXT =
            'not entered: CALL holdfast_enter(resource, token) first, in the same transaction';
    END IF;
END//

-- For a change of stores or a restored backup. Grant it to nobody.
CREATE OR REPLACE PROCEDURE holdfast_reset(
    IN the_resource VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
    IN the_issuer VARCHAR(200) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
    IN the_reason VARCHAR(200) CHARACTER SET utf8mb4)
SQL SECURITY INVOKER MODIFIES SQL DATA
BEGIN
    INSERT INTO holdfast_fence_reset (at, by_user, resource, old_token, old_issuer, reason)
        SELECT UTC_TIMESTAMP(6), USER(), resource, token, issuer, the_reason
          FROM holdfast_fence WHERE resource = the_resource FOR UPDATE;
    IF ROW_COUNT() = 0 THEN
        SIGNAL SQLSTATE 'ZHF04' SET MESSAGE_TEXT = 'no fence for this resource';
    END IF;
    UPDATE holdfast_fence
       SET token = 0, issuer = NULLIF(the_issuer, ''), admitted_at = NULL, entered = NULL
     WHERE resource = the_resource;
END//

DELIMITER ;

INSERT INTO holdfast_fence (resource) VALUES ('orders')
    ON DUPLICATE KEY UPDATE resource = resource;

CREATE TRIGGER `holdfast_insert_17be90a73bcc633a` BEFORE INSERT ON `orders`
    FOR EACH ROW CALL holdfast_guard('orders');
CREATE TRIGGER `holdfast_update_17be90a73bcc633a` BEFORE UPDATE ON `orders`
    FOR EACH ROW CALL holdfast_guard('orders');
CREATE TRIGGER `holdfast_delete_17be90a73bcc633a` BEFORE DELETE ON `orders`
    FOR EACH ROW CALL holdfast_guard('orders');

