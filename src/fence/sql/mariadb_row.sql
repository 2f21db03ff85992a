-- @section row-up
-- holdfast fence per row for MariaDB: an UPDATE that says fence_token is refused when that is below the
-- row's.
--
--     UPDATE ... SET ..., fence_token = 34 WHERE ...;
--
-- Guards UPDATE of existing rows only, and only an UPDATE that says fence_token: MariaDB cannot tell
-- the trigger that a column was left out. Not INSERT, not REPLACE, not DELETE, not TRUNCATE.
-- Errors: SQLSTATE ZHF01 stale token, ZHF04 no token.

-- @section row-table
DELIMITER //

CREATE OR REPLACE PROCEDURE holdfast_row_guard(IN admitted BIGINT, IN shown BIGINT)
SQL SECURITY DEFINER NO SQL
BEGIN
    DECLARE said VARCHAR(200);

    IF shown IS NULL OR shown < 0 OR (shown = 0 AND admitted > 0) THEN
        SIGNAL SQLSTATE 'ZHF04' SET MESSAGE_TEXT = 'fence_token is not a token';
    END IF;
    IF shown < admitted THEN
        SET said = CONCAT('token ', shown, ' is stale: this row has admitted ', admitted);
        SIGNAL SQLSTATE 'ZHF01' SET MESSAGE_TEXT = said;
    END IF;
END//

DELIMITER ;

ALTER TABLE @TABLE@ ADD COLUMN fence_token BIGINT NOT NULL DEFAULT 0 CHECK (fence_token >= 0);

CREATE TRIGGER @TRIGGER_ROW@ BEFORE UPDATE ON @TABLE@
    FOR EACH ROW CALL holdfast_row_guard(OLD.fence_token, NEW.fence_token);

-- @section row-down
DROP TRIGGER @TRIGGER_ROW@;

ALTER TABLE @TABLE@ DROP COLUMN fence_token;

-- @section row-down-shared
DROP PROCEDURE holdfast_row_guard;
