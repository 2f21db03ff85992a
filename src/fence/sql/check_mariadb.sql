-- What `holdfast fence check` asks MariaDB, as check_postgres.sql asks PostgreSQL. Parameters: the table,
-- as it is called; the others as there.
-- @section exists
SELECT 'stop', 'installed', CONCAT('there is no table ', p.tab), 'say another --table, or another database'
  FROM (SELECT CONVERT(? USING utf8mb4) AS tab, ? AS again, ? AS issuer, ? AS url) AS p
 WHERE NOT EXISTS (SELECT 1 FROM information_schema.tables AS t
                    WHERE t.table_schema = DATABASE() AND BINARY t.table_name = BINARY p.tab);
-- @section installed
-- CREATE OR REPLACE TABLE takes the triggers away.
SELECT 'stop', 'installed', CONCAT(p.tab, IF(
           EXISTS (SELECT 1 FROM information_schema.tables AS t
                    WHERE t.table_schema = DATABASE() AND t.table_name = 'holdfast_fence'),
           ' is not fenced: if it was, it has been made anew since', ' is not fenced')), p.again
  FROM (SELECT CONVERT(? USING utf8mb4) AS tab, ? AS again, ? AS issuer, ? AS url) AS p
 WHERE NOT EXISTS (SELECT 1 FROM information_schema.triggers AS t
                    WHERE t.event_object_schema = DATABASE() AND BINARY t.event_object_table = BINARY p.tab
                      AND t.action_statement REGEXP '^CALL holdfast_(row_)?guard');
-- @section per-row
SELECT 'stop-note', 'installed', CONCAT(p.tab, ' is fenced per row'), ''
  FROM (SELECT CONVERT(? USING utf8mb4) AS tab, ? AS again, ? AS issuer, ? AS url) AS p
 WHERE NOT EXISTS (SELECT 1 FROM information_schema.triggers AS t
                    WHERE t.event_object_schema = DATABASE() AND BINARY t.event_object_table = BINARY p.tab
                      AND t.action_statement LIKE 'CALL holdfast\_guard%');
-- @section covered
SELECT 'problem', 'covered', CONCAT(e.name, ' of ', p.tab, ' is not covered'), p.again
  FROM (SELECT CONVERT(? USING utf8mb4) AS tab, ? AS again, ? AS issuer, ? AS url) AS p,
       (SELECT 'INSERT' AS name UNION ALL SELECT 'UPDATE' UNION ALL SELECT 'DELETE') AS e
 WHERE NOT EXISTS (SELECT 1 FROM information_schema.triggers AS t
                    WHERE t.event_object_schema = DATABASE() AND BINARY t.event_object_table = BINARY p.tab
                      AND t.event_manipulation = e.name AND t.action_statement LIKE 'CALL holdfast\_guard%');
-- @section cascades
SELECT 'problem', 'covered',
       CONCAT('rows of ', p.tab, ' are changed by a cascade from ', r.referenced_table_name, ', which no trigger sees'),
       CONCAT('ALTER TABLE `', REPLACE(p.tab, '`', '``'), '` DROP FOREIGN KEY `', r.constraint_name, '`, and add it without CASCADE')
  FROM (SELECT CONVERT(? USING utf8mb4) AS tab, ? AS again, ? AS issuer, ? AS url) AS p
  JOIN information_schema.referential_constraints AS r
    ON r.constraint_schema = DATABASE() AND BINARY r.table_name = BINARY p.tab
   AND (r.delete_rule IN ('CASCADE', 'SET NULL') OR r.update_rule IN ('CASCADE', 'SET NULL'));
-- @section functions
SELECT 'stop', 'version',
       CONCAT('without its procedures every write is refused; missing: ', GROUP_CONCAT(s.name ORDER BY s.name SEPARATOR ', ')),
       CONCAT(p.again, ' (and dump with mariadb-dump --routines)')
  FROM (SELECT CONVERT(? USING utf8mb4) AS tab, ? AS again, ? AS issuer, ? AS url) AS p,
       (SELECT 'holdfast_enter' AS name UNION ALL SELECT 'holdfast_enter_any' UNION ALL SELECT 'holdfast_enter_key'
        UNION ALL SELECT 'holdfast_enter_from' UNION ALL SELECT 'holdfast_enter_key_from'
        UNION ALL SELECT 'holdfast_leave' UNION ALL SELECT 'holdfast_guard' UNION ALL SELECT 'holdfast_guard_key'
        UNION ALL SELECT 'holdfast_guard_keys' UNION ALL SELECT 'holdfast_refuse'
        UNION ALL SELECT 'holdfast_fence_version') AS s
 WHERE NOT EXISTS (SELECT 1 FROM information_schema.routines AS r
                    WHERE r.routine_schema = DATABASE() AND BINARY r.routine_name = BINARY s.name)
 GROUP BY p.again;
-- @section tables
SELECT 'stop', 'version', 'the table holdfast_fence, with the marks, is missing', p.again
  FROM (SELECT CONVERT(? USING utf8mb4) AS tab, ? AS again, ? AS issuer, ? AS url) AS p
 WHERE NOT EXISTS (SELECT 1 FROM information_schema.tables AS t
                    WHERE t.table_schema = DATABASE() AND t.table_name = 'holdfast_fence');
-- @section version
SELECT 'problem', 'version',
       CONCAT('the procedures are of version ', holdfast_fence_version(), ', this holdfast''s are of 3'), p.again
  FROM (SELECT CONVERT(? USING utf8mb4) AS tab, ? AS again, ? AS issuer, ? AS url) AS p
 WHERE holdfast_fence_version() <> 3;
-- @section marks
-- A resource stands in its triggers as a literal, in hex if it has a backslash in it.
SELECT IF(f.resource IS NULL, 'problem', 'note'), 'installed',
       CASE WHEN f.resource IS NULL THEN CONCAT(p.tab, ' has no mark: nobody can enter')
            WHEN f.keyed THEN CONCAT('fenced per key, as resource "', f.resource, '"')
            ELSE CONCAT('fenced, as resource "', f.resource, '"') END,
       IF(f.resource IS NULL, p.again, '')
  FROM (SELECT CONVERT(? USING utf8mb4) AS tab, ? AS again, ? AS issuer, ? AS url) AS p
  LEFT JOIN holdfast_fence AS f
    ON f.key_value = ''
   AND EXISTS (SELECT 1 FROM information_schema.triggers AS t
                WHERE t.event_object_schema = DATABASE() AND BINARY t.event_object_table = BINARY p.tab
                  AND LOCATE(BINARY CONCAT('(''', REPLACE(f.resource, '''', ''''''), ''''), BINARY t.action_statement)
                      + LOCATE(BINARY CONCAT('(CONVERT(X''', LOWER(HEX(f.resource)), ''''), BINARY t.action_statement) > 0);
-- @section issuer
SELECT 'problem', 'issuer',
       CONCAT('resource "', f.resource, '" follows ', f.issuer, ', the store in use is ', p.issuer),
       'after a change of stores, once no old holder is left: CALL holdfast_reset(resource, issuer, reason)'
  FROM (SELECT CONVERT(? USING utf8mb4) AS tab, ? AS again, CONVERT(? USING utf8mb4) AS issuer, CONVERT(? USING utf8mb4) AS url) AS p
  JOIN holdfast_fence AS f
    ON EXISTS (SELECT 1 FROM information_schema.triggers AS t
                WHERE t.event_object_schema = DATABASE() AND BINARY t.event_object_table = BINARY p.tab
                  AND LOCATE(BINARY CONCAT('(''', REPLACE(f.resource, '''', ''''''), ''''), BINARY t.action_statement)
                      + LOCATE(BINARY CONCAT('(CONVERT(X''', LOWER(HEX(f.resource)), ''''), BINARY t.action_statement) > 0)
 WHERE p.issuer <> '' AND BINARY f.issuer NOT IN (BINARY p.issuer, BINARY p.url)
 GROUP BY f.resource, f.issuer, p.issuer;
-- @section timeouts
SELECT 'problem', 'timeouts',
       'idle_write_transaction_timeout is off: a holder that freezes in its transaction keeps the next one out',
       'SET GLOBAL idle_write_transaction_timeout = 15, and in the server''s configuration'
  FROM (SELECT ? AS tab, ? AS again, ? AS issuer, ? AS url) AS p
 WHERE @@global.idle_write_transaction_timeout = 0 AND @@global.idle_transaction_timeout = 0;
-- @section roles
SELECT IF(p2.may_reset, 'problem', 'note'), 'roles',
       CONCAT(IF(p2.may_reset, 'may reset or purge marks: ', 'may enter: '), p2.who),
       IF(p2.may_reset, 'REVOKE EXECUTE ON PROCEDURE holdfast_reset, and on holdfast_purge', '')
  FROM (SELECT ? AS tab, ? AS again, ? AS issuer, ? AS url) AS p,
       (SELECT GROUP_CONCAT(DISTINCT CONCAT(r.user, IF(r.host = '', '', CONCAT('@', r.host))) SEPARATOR ', ') AS who,
               r.routine_name IN ('holdfast_reset', 'holdfast_purge') AS may_reset
          FROM mysql.procs_priv AS r
         WHERE r.db = DATABASE() AND r.routine_name LIKE 'holdfast\_%' AND FIND_IN_SET('Execute', r.proc_priv)
           AND r.routine_name NOT IN ('holdfast_leave', 'holdfast_fence_version')
         GROUP BY may_reset) AS p2;
