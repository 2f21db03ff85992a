-- @section up
-- holdfast outbox for MariaDB: a message is written in the transaction that it is about, and sent after it.
--
--     START TRANSACTION;
--     UPDATE orders ...;   -- first what orders the messages of one key,
--     INSERT INTO holdfast_outbox (topic, `key`, payload) VALUES ('orders', 'order-7', '...');
--     COMMIT;              -- then the message
--
-- holdfast outbox relay sends it, at least once. uid names the message to receivers. Messages of one key are
-- sent one after the other, in the order of id. Do not write to the other columns.
--
-- The application, and the user of the relay, need only
--
--     GRANT INSERT (topic, `key`, payload, headers) ON holdfast_outbox TO application;
--     GRANT SELECT, UPDATE, DELETE ON holdfast_outbox TO relay;
--     GRANT SELECT, UPDATE ON holdfast_outbox_fence TO relay;
--     GRANT INSERT ON holdfast_outbox_settled TO relay;

DELIMITER //

-- A table of that name that belongs to somebody else stays as it is.
BEGIN NOT ATOMIC
    IF EXISTS (SELECT 1 FROM information_schema.tables
                WHERE table_schema = DATABASE() AND table_comment <> 'holdfast outbox'
                  AND table_name IN ('holdfast_outbox', 'holdfast_outbox_fence', 'holdfast_outbox_settled')) THEN
        SIGNAL SQLSTATE '42S01' SET MESSAGE_TEXT =
            'a table holdfast_outbox, or holdfast_outbox_..., is there already, and not of holdfast';
    END IF;
END//

DELIMITER ;

-- Bytes: in text 'a' and 'a ' can be the same key. The columns are longer than the values may be: where the
-- server silently cuts what is too long for its column, the CHECK still sees it.
CREATE TABLE IF NOT EXISTS holdfast_outbox (
    id         BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,        -- the order; never a name
    uid        CHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL DEFAULT (LOWER(HEX(RANDOM_BYTES(16)))), -- the name
    topic      VARBINARY(300) NOT NULL,
    `key`      VARBINARY(300) NOT NULL,
    payload    LONGBLOB NOT NULL,
    headers    LONGTEXT CHARACTER SET utf8mb4 NOT NULL DEFAULT '{}',
    created    DATETIME(6) NOT NULL DEFAULT UTC_TIMESTAMP(6),
    attempts   INT NOT NULL DEFAULT 0,                            -- that failed
    not_before DATETIME(6) NOT NULL DEFAULT '1970-01-01 00:00:00', -- 9999: dead if attempts > 0, else parked
    error      VARCHAR(500) CHARACTER SET utf8mb4 NULL,
    parked     BOOLEAN AS (not_before >= '9999-01-01 00:00:00') VIRTUAL,
    CONSTRAINT uid_has_32_hex_digits CHECK (uid RLIKE '^[0-9a-f]{32}$'),
    CONSTRAINT topic_has_1_to_255_bytes_and_no_nul
        CHECK (LENGTH(topic) BETWEEN 1 AND 255 AND LOCATE(X'00', topic) = 0),
    CONSTRAINT key_has_1_to_255_bytes_and_no_nul
        CHECK (LENGTH(`key`) BETWEEN 1 AND 255 AND LOCATE(X'00', `key`) = 0),
    CONSTRAINT payload_has_at_most_10_mib CHECK (LENGTH(payload) <= 10485760),
    CONSTRAINT headers_are_an_object_of_at_most_64_kib
        CHECK (JSON_VALID(headers) AND JSON_TYPE(headers) = 'OBJECT' AND LENGTH(headers) <= 65536),
    KEY ready (parked, id),               -- what a fetch reads: what is not parked, in order
    KEY failed (`key`, attempts, not_before)
) ENGINE = InnoDB COMMENT = 'holdfast outbox';

-- The fence of the relay: one row, which admits no token below the highest.
CREATE TABLE IF NOT EXISTS holdfast_outbox_fence (
    only_one    INT NOT NULL PRIMARY KEY CHECK (only_one = 1),
    name        VARCHAR(200) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL, -- of the relay
    token       BIGINT NOT NULL DEFAULT 0,
    issuer      VARCHAR(200) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL, -- the store that issued the token
    admitted_at DATETIME(6) NULL,
    entries     BIGINT UNSIGNED NOT NULL DEFAULT 0 -- so that every entry changes the row
) ENGINE = InnoDB COMMENT = 'holdfast outbox';
INSERT IGNORE INTO holdfast_outbox_fence (only_one) VALUES (1);

-- What people decided about dead messages.
CREATE TABLE IF NOT EXISTS holdfast_outbox_settled (
    at       DATETIME(6) NOT NULL,
    by_role  VARCHAR(288) NOT NULL,
    decision VARCHAR(10) NOT NULL,
    uid      CHAR(32) CHARACTER SET ascii NOT NULL,
    topic    VARBINARY(300) NOT NULL,
    `key`    VARBINARY(300) NOT NULL,
    attempts INT NOT NULL,
    error    VARCHAR(500) CHARACTER SET utf8mb4 NULL,
    reason   VARCHAR(500) CHARACTER SET utf8mb4 NOT NULL CHECK (reason <> '')
) ENGINE = InnoDB COMMENT = 'holdfast outbox';

-- @section down
DELIMITER //

-- Messages that wait are not removed by a migration.
BEGIN NOT ATOMIC
    IF EXISTS (SELECT 1 FROM holdfast_outbox) THEN
        SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'messages have not been sent';
    END IF;
END//

DELIMITER ;

DROP TABLE holdfast_outbox_settled;
DROP TABLE holdfast_outbox_fence;
DROP TABLE holdfast_outbox;
