-- What `holdfast fence check` asks PostgreSQL. Each section is one query that answers what it found, as
-- rows: level (stop, problem, note), check, text, remedy. Nothing is found: no rows. Parameters: $1 the
-- table, quoted; $2 how to run the migration again; $3 who the store of the locks is, '' if that is not
-- known; $4 its URL.
-- @section exists
SELECT 'stop', 'installed', format('there is no table %s', p.tab), 'say --schema, or another --table'
  FROM (SELECT $1::text AS tab, $2::text AS again, $3::text AS issuer, $4::text AS url) AS p
 WHERE to_regclass(p.tab) IS NULL;
-- @section installed
SELECT 'stop', 'installed', format('%s is not fenced', to_regclass(p.tab)), p.again
  FROM (SELECT $1::text AS tab, $2::text AS again, $3::text AS issuer, $4::text AS url) AS p
 WHERE NOT EXISTS (SELECT FROM pg_trigger AS t JOIN pg_proc AS f ON f.oid = t.tgfoid
                     JOIN pg_namespace AS n ON n.oid = f.pronamespace
                    WHERE n.nspname = 'holdfast_fence' AND t.tgrelid = to_regclass(p.tab));
-- @section covered
-- Of a table, its partitions and children: writes that no trigger of ours sees. A write through a parent is
-- seen by row triggers only.
WITH RECURSIVE p AS (SELECT $1::text AS tab, $2::text AS again, $3::text AS issuer, $4::text AS url),
tree (oid) AS (
    SELECT to_regclass(p.tab)::oid FROM p
    UNION
    SELECT i.inhrelid FROM pg_inherits AS i JOIN tree ON i.inhparent = tree.oid),
ours AS (
    SELECT t.tgrelid, t.tgtype::integer AS type, f.proname FROM pg_trigger AS t
      JOIN pg_proc AS f ON f.oid = t.tgfoid JOIN pg_namespace AS n ON n.oid = f.pronamespace
     WHERE n.nspname = 'holdfast_fence' AND f.proname IN ('guard', 'guard_key')),
event (bit, name, by_row) AS (
    VALUES (4, 'INSERT', 1), (16, 'UPDATE', 1), (8, 'DELETE', 1), (32, 'TRUNCATE', 0))
SELECT 'problem', 'covered', format('%s of %s is not covered', string_agg(e.name, ', ' ORDER BY e.name),
                                    tree.oid::regclass), p.again
  FROM p, tree, event AS e
 WHERE NOT EXISTS (SELECT FROM ours AS o
                    WHERE o.tgrelid = tree.oid AND o.type & e.bit <> 0 AND o.type & e.by_row = e.by_row)
   AND EXISTS (SELECT FROM ours AS o WHERE o.tgrelid = to_regclass(p.tab))
 GROUP BY tree.oid, p.again;
-- @section enabled
-- pg_restore --disable-triggers switches them on again, but not always. Those of a fence per row never were.
WITH RECURSIVE p AS (SELECT $1::text AS tab, $2::text AS again, $3::text AS issuer, $4::text AS url),
tree (oid) AS (
    SELECT to_regclass(p.tab)::oid FROM p
    UNION
    SELECT i.inhrelid FROM pg_inherits AS i JOIN tree ON i.inhparent = tree.oid)
SELECT 'problem', 'enabled',
       format('trigger %I of %s %s', t.tgname, t.tgrelid::regclass,
              CASE t.tgenabled WHEN 'D' THEN 'is switched off'
                               WHEN 'R' THEN 'fires for replicas only'
                               ELSE 'does not fire where session_replication_role is replica' END),
       format('ALTER TABLE %s ENABLE ALWAYS TRIGGER %I', t.tgrelid::regclass, t.tgname)
  FROM p, tree JOIN pg_trigger AS t ON t.tgrelid = tree.oid
  JOIN pg_proc AS f ON f.oid = t.tgfoid JOIN pg_namespace AS n ON n.oid = f.pronamespace
 WHERE n.nspname = 'holdfast_fence' AND t.tgenabled <> 'A'
   AND (f.proname IN ('guard', 'guard_key') OR t.tgenabled <> 'O')
 ORDER BY 3;
-- @section functions
SELECT 'stop', 'version', format('%s is missing', f.name), p.again
  FROM (SELECT $1::text AS tab, $2::text AS again, $3::text AS issuer, $4::text AS url) AS p,
       (VALUES ('version()'), ('enter(text,bigint)'), ('enter(text,text,bigint)'),
               ('enter_from(text,bigint,text)'), ('enter_from(text,text,bigint,text)'),
               ('rise(text,text,bigint,text)'), ('refuse(text,text,bigint,text)'), ('remember(text,text)'),
               ('guard()'), ('guard_key()')) AS f (name)
 WHERE to_regprocedure('holdfast_fence.' || f.name) IS NULL
   AND EXISTS (SELECT FROM pg_trigger AS t JOIN pg_proc AS g ON g.oid = t.tgfoid
                WHERE t.tgrelid = to_regclass(p.tab) AND g.proname IN ('guard', 'guard_key'));
-- @section per-row
-- A fence per row has no marks of its own.
SELECT 'stop-note', 'installed', format('%s is fenced per row', to_regclass(p.tab)), ''
  FROM (SELECT $1::text AS tab, $2::text AS again, $3::text AS issuer, $4::text AS url) AS p
 WHERE NOT EXISTS (SELECT FROM pg_trigger AS t JOIN pg_proc AS g ON g.oid = t.tgfoid
                    WHERE t.tgrelid = to_regclass(p.tab) AND g.proname IN ('guard', 'guard_key'));
-- @section version
SELECT 'problem', 'version',
       format('the functions are of version %s, this holdfast''s are of 3', holdfast_fence.version()), p.again
  FROM (SELECT $1::text AS tab, $2::text AS again, $3::text AS issuer, $4::text AS url) AS p
 WHERE holdfast_fence.version() <> 3;
-- @section marks
SELECT CASE WHEN m.resource IS NULL THEN 'problem' ELSE 'note' END, 'installed',
       format(CASE WHEN m.resource IS NULL THEN 'resource "%s" has no mark: nobody can enter'
                   WHEN m.keyed THEN 'fenced per key, as resource "%s"'
                   ELSE 'fenced, as resource "%s"' END, r.resource),
       CASE WHEN m.resource IS NULL THEN p.again ELSE '' END
  FROM (SELECT $1::text AS tab, $2::text AS again, $3::text AS issuer, $4::text AS url) AS p
  CROSS JOIN LATERAL (SELECT DISTINCT f.resource FROM holdfast_fence.fenced AS f
                       WHERE f.relation = to_regclass(p.tab)) AS r
  LEFT JOIN holdfast_fence.mark AS m ON m.resource = r.resource AND m.key = '';
-- @section issuer
SELECT 'problem', 'issuer',
       format('resource "%s" follows %s, the store in use is %s', m.resource, m.issuer, p.issuer),
       format('after a change of stores, once no old holder is left: SELECT holdfast_fence.reset(%L, %L, ''why'')',
              m.resource, p.issuer)
  FROM (SELECT $1::text AS tab, $2::text AS again, $3::text AS issuer, $4::text AS url) AS p
  JOIN holdfast_fence.fenced AS f ON f.relation = to_regclass(p.tab)
  JOIN holdfast_fence.mark AS m ON m.resource = f.resource
 WHERE p.issuer <> '' AND m.issuer NOT IN (p.issuer, p.url)
 GROUP BY m.resource, m.issuer, p.issuer;
-- @section timeouts
-- What counts for a role: its own setting in this database, its own, the database's, the server's.
WITH p AS (SELECT $1::text AS tab, $2::text AS again, $3::text AS issuer, $4::text AS url),
said AS (
    SELECT d.setdatabase, d.setrole, split_part(c, '=', 1) AS name, split_part(c, '=', 2) AS value
      FROM pg_db_role_setting AS d, unnest(d.setconfig) AS c
     WHERE d.setdatabase IN (0, (SELECT oid FROM pg_database WHERE datname = current_database()))),
writer AS (
    SELECT r.oid, quote_ident(r.rolname) AS name FROM p, pg_roles AS r
     WHERE r.rolcanlogin AND NOT r.rolsuper AND has_schema_privilege(r.oid, 'holdfast_fence', 'USAGE')
       AND has_table_privilege(r.oid, to_regclass(p.tab), 'INSERT, UPDATE, DELETE')),
who AS (
    SELECT oid, name FROM writer
    UNION ALL
    SELECT 0::oid, 'everybody' WHERE NOT EXISTS (SELECT FROM writer)),
effective AS (
    SELECT w.oid, w.name, g.name AS setting, coalesce(
        (SELECT s.value FROM said AS s WHERE lower(s.name) = g.name AND s.setrole IN (0, w.oid)
          ORDER BY s.setrole <> 0 DESC, s.setdatabase <> 0 DESC LIMIT 1),
        CASE WHEN g.source IN ('user', 'database', 'database user', 'session', 'client')
             THEN g.boot_val ELSE g.reset_val END) AS value
      FROM who AS w, pg_settings AS g WHERE g.name = 'idle_in_transaction_session_timeout')
SELECT 'problem', 'timeouts',
       format('%s is off for %s: a holder that freezes in its transaction keeps the next one out',
              e.setting, string_agg(e.name, ', ' ORDER BY e.name)),
       CASE WHEN bool_or(e.oid = 0) THEN format('ALTER DATABASE %I SET %s = ''15s''', current_database(), e.setting)
            ELSE string_agg(format('ALTER ROLE %s SET %s = ''15s''', e.name, e.setting), '; ' ORDER BY e.name) END
  FROM effective AS e WHERE e.value ~ '^0+ *[a-z]*$' GROUP BY e.setting
UNION ALL
SELECT 'problem', 'timeouts',
       format('holdfast.enter_wait is %s for %s: enter waits without limit', s.value,
              coalesce(quote_ident(r.rolname), 'everybody')),
       format('ALTER %s SET holdfast.enter_wait = ''10s''', coalesce('ROLE ' || quote_ident(r.rolname),
              'DATABASE ' || quote_ident(current_database())))
  FROM said AS s LEFT JOIN pg_roles AS r ON r.oid = s.setrole
 WHERE s.name = 'holdfast.enter_wait' AND s.value ~ '^0+ *[a-z]*$';
-- @section roles
WITH p AS (SELECT $1::text AS tab, $2::text AS again, $3::text AS issuer, $4::text AS url),
fenced AS (SELECT DISTINCT f.relation FROM holdfast_fence.fenced AS f),
role AS (
    SELECT quote_ident(r.rolname) AS name, has_schema_privilege(r.oid, 'holdfast_fence', 'USAGE') AS enters,
           has_table_privilege(r.oid, to_regclass(p.tab), 'INSERT, UPDATE, DELETE, TRUNCATE')
               OR has_any_column_privilege(r.oid, to_regclass(p.tab), 'INSERT, UPDATE') AS writes,
           EXISTS (SELECT FROM fenced AS f
                    WHERE has_table_privilege(r.oid, f.relation, 'INSERT, UPDATE, DELETE, TRUNCATE')
                       OR has_any_column_privilege(r.oid, f.relation, 'INSERT, UPDATE')) AS writes_any
      FROM p, pg_roles AS r WHERE NOT r.rolsuper AND r.rolname !~ '^pg_')
SELECT 'problem', 'roles', format('role %s may write, and not enter', r.name),
       format('GRANT USAGE ON SCHEMA holdfast_fence TO %s', r.name)
  FROM role AS r WHERE r.writes AND NOT r.enters
UNION ALL
SELECT 'problem', 'roles', format('role %s may enter, and lock holders out, but writes no fenced table', r.name),
       format('unless it writes through a view or a function: REVOKE USAGE ON SCHEMA holdfast_fence FROM %s', r.name)
  FROM role AS r WHERE r.enters AND NOT r.writes_any
   AND r.name <> (SELECT quote_ident(pg_get_userbyid(nspowner)) FROM pg_namespace WHERE nspname = 'holdfast_fence')
UNION ALL
SELECT 'note', 'roles', 'roles that may enter: ' || string_agg(r.name, ', ' ORDER BY r.name), ''
  FROM role AS r WHERE r.enters HAVING count(*) > 0;
