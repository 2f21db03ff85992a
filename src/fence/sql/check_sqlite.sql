-- What `holdfast fence check` asks SQLite, as check_postgres.sql asks PostgreSQL. Parameters: the table,
-- as it is called; the others as there.
-- @section exists
SELECT 'stop', 'installed', 'there is no table ' || p.tab, 'say another --table'
  FROM (SELECT ? AS tab, ? AS again, ? AS issuer, ? AS url) AS p
 WHERE NOT EXISTS (SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = p.tab COLLATE NOCASE);
-- @section installed
-- A tool that changes a table makes a new one and drops the old, with its triggers.
SELECT 'stop', 'installed', p.tab || CASE
           WHEN EXISTS (SELECT 1 FROM sqlite_master WHERE name = 'holdfast_fence')
           THEN ' is not fenced: if it was, it has been made anew since'
           ELSE ' is not fenced' END, p.again
  FROM (SELECT ? AS tab, ? AS again, ? AS issuer, ? AS url) AS p
 WHERE NOT EXISTS (SELECT 1 FROM sqlite_master
                    WHERE type = 'trigger' AND tbl_name = p.tab COLLATE NOCASE AND name LIKE 'holdfast\_%' ESCAPE '\');
-- @section per-row
SELECT 'stop-note', 'installed', p.tab || ' is fenced per row', ''
  FROM (SELECT ? AS tab, ? AS again, ? AS issuer, ? AS url) AS p
 WHERE NOT EXISTS (SELECT 1 FROM sqlite_master
                    WHERE type = 'trigger' AND tbl_name = p.tab COLLATE NOCASE
                      AND instr(sql, 'FROM holdfast_entered WHERE resource = ') > 0);
-- @section covered
SELECT 'problem', 'covered', e.name || ' of ' || p.tab || ' is not covered', p.again
  FROM (SELECT ? AS tab, ? AS again, ? AS issuer, ? AS url) AS p,
       (SELECT 'INSERT' AS name UNION ALL SELECT 'UPDATE' UNION ALL SELECT 'DELETE') AS e
 WHERE NOT EXISTS (SELECT 1 FROM sqlite_master
                    WHERE type = 'trigger' AND tbl_name = p.tab COLLATE NOCASE
                      AND instr(sql, ' ' || e.name || ' ON ') > 0
                      AND instr(sql, 'FROM holdfast_entered WHERE resource = ') > 0);
-- @section functions
SELECT 'stop', 'version', s.name || ' is missing', p.again
  FROM (SELECT ? AS tab, ? AS again, ? AS issuer, ? AS url) AS p,
       (SELECT 'holdfast_fence' AS name UNION ALL SELECT 'holdfast_fence_key' UNION ALL SELECT 'holdfast_keyed'
        UNION ALL SELECT 'holdfast_nothing' UNION ALL SELECT 'holdfast_entered' UNION ALL SELECT 'holdfast_enter'
        UNION ALL SELECT 'holdfast_enter_insert' UNION ALL SELECT 'holdfast_fence_rise'
        UNION ALL SELECT 'holdfast_fence_key_rise' UNION ALL SELECT 'holdfast_fence_version') AS s
 WHERE s.name NOT IN (SELECT m.name FROM sqlite_master AS m);
-- @section version
SELECT 'problem', 'version',
       'the views are of version ' || v.version || ', this holdfast''s are of 2', p.again
  FROM (SELECT ? AS tab, ? AS again, ? AS issuer, ? AS url) AS p, holdfast_fence_version AS v
 WHERE v.version <> 2;
-- @section entered
SELECT 'problem', 'enabled', 'somebody committed without leaving, with foreign_keys off: everybody is inside',
       'DELETE FROM holdfast_entered'
  FROM (SELECT ? AS tab, ? AS again, ? AS issuer, ? AS url) AS p
 WHERE EXISTS (SELECT 1 FROM holdfast_entered);
-- @section leaving
SELECT 'problem', 'enabled', 'holdfast_entered has lost its foreign key: nobody has to leave', p.again
  FROM (SELECT ? AS tab, ? AS again, ? AS issuer, ? AS url) AS p
 WHERE NOT EXISTS (SELECT 1 FROM pragma_foreign_key_list('holdfast_entered') AS k WHERE k."table" = 'holdfast_nothing');
-- @section marks
SELECT CASE WHEN f.resource IS NULL THEN 'problem' ELSE 'note' END, 'installed',
       CASE WHEN f.resource IS NULL THEN p.tab || ' has no mark: nobody can enter'
            WHEN f.resource IN (SELECT k.resource FROM holdfast_keyed AS k)
            THEN 'fenced per key, as resource "' || f.resource || '"'
            ELSE 'fenced, as resource "' || f.resource || '"' END,
       CASE WHEN f.resource IS NULL THEN p.again ELSE '' END
  FROM (SELECT ? AS tab, ? AS again, ? AS issuer, ? AS url) AS p
  LEFT JOIN holdfast_fence AS f
    ON EXISTS (SELECT 1 FROM sqlite_master AS m
                WHERE m.type = 'trigger' AND m.tbl_name = p.tab COLLATE NOCASE
                  AND instr(m.sql, 'FROM holdfast_entered WHERE resource = ''' || replace(f.resource, '''', '''''') || '''') > 0);
-- @section issuer
SELECT 'problem', 'issuer',
       'resource "' || f.resource || '" follows ' || f.issuer || ', the store in use is ' || p.issuer,
       'after a change of stores, once no old holder is left: INSERT INTO holdfast_reset (resource, issuer, reason) VALUES (...)'
  FROM (SELECT ? AS tab, ? AS again, ? AS issuer, ? AS url) AS p
  JOIN holdfast_fence AS f
    ON EXISTS (SELECT 1 FROM sqlite_master AS m
                WHERE m.type = 'trigger' AND m.tbl_name = p.tab COLLATE NOCASE
                  AND instr(m.sql, 'FROM holdfast_entered WHERE resource = ''' || replace(f.resource, '''', '''''') || '''') > 0)
 WHERE p.issuer <> '' AND f.issuer NOT IN (p.issuer, p.url);
