-- The triggers that are ours, with the resource of each; those of partitions may be copies.
CREATE OR REPLACE VIEW holdfast_fence.fenced AS
SELECT t.tgrelid::regclass AS relation, t.tgname AS trigger, t.tgparentid = 0 AS own, t.tgenabled,
       convert_from(substring(t.tgargs FROM 1 FOR position('\x00'::bytea IN t.tgargs) - 1),
                    getdatabaseencoding()) AS resource
  FROM pg_catalog.pg_trigger AS t
 WHERE t.tgfoid IN ('holdfast_fence.guard()'::regprocedure, 'holdfast_fence.guard_key()'::regprocedure);
GRANT SELECT ON holdfast_fence.fenced TO PUBLIC;

-- Takes a resource into the marks for the owner of the table, lets in whoever may write it or a column
-- of it, and answers the resource's setting. Nobody else is let in: who may enter may raise the mark, and lock
-- every holder out.
CREATE OR REPLACE FUNCTION holdfast_fence.adopt(fenced regclass, resource text, keyed boolean)
RETURNS text LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $holdfast$
DECLARE
    caller name := CASE current_setting('role') WHEN 'none' THEN session_user
                                                ELSE current_setting('role')::name END;
    writer text;
    mark record;
BEGIN
    IF NOT pg_has_role(caller, (SELECT relowner FROM pg_class WHERE oid = fenced), 'USAGE') THEN
        RAISE EXCEPTION 'must be owner of table %', fenced USING ERRCODE = '42501';
    END IF;
    INSERT INTO holdfast_fence.mark (resource, setting, keyed)
        VALUES (adopt.resource, 'holdfast.e_' || substr(md5(adopt.resource), 1, 16), adopt.keyed)
        ON CONFLICT DO NOTHING;
    SELECT * INTO mark FROM holdfast_fence.mark AS m WHERE m.resource = adopt.resource AND m.key = '';
    IF mark.keyed <> adopt.keyed THEN
        RAISE EXCEPTION 'resource "%" is fenced %', adopt.resource,
            CASE WHEN mark.keyed THEN 'per key' ELSE 'as a whole' END
            USING ERRCODE = 'ZHF04', HINT = 'take that fence down first, or use another resource';
    END IF;
    FOR writer IN
        SELECT DISTINCT CASE a.grantee WHEN 0 THEN 'PUBLIC'
                                       ELSE quote_ident(pg_get_userbyid(a.grantee)) END
          FROM (SELECT coalesce(relacl, acldefault('r', relowner)) FROM pg_class WHERE oid = fenced
                UNION ALL
                SELECT attacl FROM pg_attribute WHERE attrelid = fenced) AS acls (acl),
               aclexplode(acl) AS a
         WHERE a.privilege_type IN ('INSERT', 'UPDATE', 'DELETE', 'TRUNCATE')
    LOOP
        EXECUTE format('GRANT USAGE ON SCHEMA holdfast_fence TO %s', writer);
    END LOOP;
    RETURN mark.setting;
END
$holdfast$;

-- A mark stays as long as any table is behind it.
CREATE OR REPLACE PROCEDURE holdfast_fence.forget(resource text)
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $holdfast$
    DELETE FROM holdfast_fence.mark AS m
     WHERE m.resource = forget.resource
       AND NOT EXISTS (SELECT FROM holdfast_fence.fenced AS f WHERE f.resource = m.resource);
$holdfast$;

-- A table, its partitions and its children.
CREATE OR REPLACE FUNCTION holdfast_fence.family(fenced regclass)
RETURNS TABLE (member regclass, is_partition boolean)
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $holdfast$
    WITH RECURSIVE tree (oid) AS (
        SELECT family.fenced::oid
        UNION
        SELECT i.inhrelid FROM pg_inherits AS i JOIN tree ON i.inhparent = tree.oid)
    SELECT c.oid::regclass, c.relispartition FROM tree JOIN pg_class AS c USING (oid);
$holdfast$;

CREATE OR REPLACE PROCEDURE holdfast_fence.drop_triggers(fenced regclass)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $holdfast$
DECLARE
    old record;
BEGIN
    -- A copy goes with its original.
    FOR old IN SELECT f.relation, f.trigger FROM holdfast_fence.fenced AS f
                WHERE f.own AND f.relation IN (SELECT member FROM holdfast_fence.family(fenced))
    LOOP
        EXECUTE format('DROP TRIGGER %I ON %s', old.trigger, old.relation);
    END LOOP;
END
$holdfast$;

-- Row triggers see a write through a parent, and are copied to partitions that come later. Statement
-- triggers see TRUNCATE, and are put on each table of the family. A transaction that has entered passes
-- the conditions, which are cheaper than a call; the shorter they are the better: the server reads them
-- anew for every statement.
CREATE OR REPLACE PROCEDURE holdfast_fence.make_triggers(fenced regclass, resource text, setting text,
                                                         key_column text)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $holdfast$
DECLARE
    whole text := format('current_setting(%L, true) IS DISTINCT FROM pg_current_xact_id_if_assigned()::text',
                         setting);
    per_key text := format('(current_setting(%L, true) COLLATE "C" = '':'' || ', setting);
    key text := quote_ident(key_column);
    per_key_end text := format('.%s::text) IS NOT TRUE', key);
    guard text := format('EXECUTE FUNCTION holdfast_fence.guard(%L, %L)', resource, setting);
    guard_key text := format('EXECUTE FUNCTION holdfast_fence.guard_key(%L, %L, %L)', resource, setting,
                             key_column);
    one record;
BEGIN
    FOR one IN SELECT member, member = fenced OR NOT is_partition AS rows FROM holdfast_fence.family(fenced)
    LOOP
        IF key_column IS NULL THEN
            EXECUTE format('CREATE TRIGGER holdfast_guard BEFORE INSERT OR UPDATE OR DELETE OR TRUNCATE '
                'ON %s FOR EACH STATEMENT WHEN (%s) %s', one.member, whole, guard);
            CONTINUE WHEN NOT one.rows;
            EXECUTE format('CREATE TRIGGER holdfast_guard_row AFTER INSERT OR UPDATE OR DELETE '
                'ON %s FOR EACH ROW WHEN (%s) %s', one.member, whole, guard);
            CONTINUE;
        END IF;
        EXECUTE format('CREATE TRIGGER holdfast_guard BEFORE TRUNCATE ON %s FOR EACH STATEMENT %s',
            one.member, guard_key);
        CONTINUE WHEN NOT one.rows;
        -- After: what other triggers have made of the row is what counts.
        EXECUTE format('CREATE TRIGGER holdfast_guard_insert AFTER INSERT ON %s FOR EACH ROW WHEN (%s) %s',
            one.member, per_key || 'NEW' || per_key_end, guard_key);
        EXECUTE format('CREATE TRIGGER holdfast_guard_update AFTER UPDATE ON %s FOR EACH ROW '
            'WHEN (OLD.%s IS DISTINCT FROM NEW.%s OR %s) %s',
            one.member, key, key, per_key || 'OLD' || per_key_end, guard_key);
        EXECUTE format('CREATE TRIGGER holdfast_guard_delete AFTER DELETE ON %s FOR EACH ROW WHEN (%s) %s',
            one.member, per_key || 'OLD' || per_key_end, guard_key);
    END LOOP;
    -- Also when session_replication_role says that triggers are for others.
    FOR one IN SELECT f.relation, f.trigger FROM holdfast_fence.fenced AS f
                WHERE f.relation IN (SELECT member FROM holdfast_fence.family(fenced))
    LOOP
        EXECUTE format('ALTER TABLE %s ENABLE ALWAYS TRIGGER %I', one.relation, one.trigger);
    END LOOP;
END
$holdfast$;

-- Puts a table, with its partitions and children, behind a fence; or renews its triggers.
CREATE OR REPLACE PROCEDURE holdfast_fence.install(fenced regclass, resource text, key_column text)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $holdfast$
DECLARE
    before text;
    type text;
BEGIN
    IF (SELECT relkind NOT IN ('r', 'p') FROM pg_class WHERE oid = fenced) THEN
        RAISE EXCEPTION '% is no table', fenced;
    END IF;
    IF key_column IS NOT NULL THEN
        -- Rows of one key must have one text, whatever is set, and other keys another.
        SELECT CASE WHEN t.typtype = 'e' THEN 'enum' WHEN c.collisdeterministic IS FALSE THEN c.collname
                    ELSE t.typname END INTO type
          FROM pg_attribute AS a JOIN pg_type AS t ON t.oid = a.atttypid
          LEFT JOIN pg_collation AS c ON c.oid = a.attcollation
         WHERE a.attrelid = fenced AND a.attname = key_column AND a.attnum > 0 AND NOT a.attisdropped;
        IF type IS NULL OR type NOT IN ('int2', 'int4', 'int8', 'text', 'varchar', 'bpchar', 'uuid',
                                        'bool', 'enum') THEN
            RAISE EXCEPTION 'column "%" of % cannot be the key: %', key_column, fenced,
                coalesce('it is ' || type || ', where one key has several texts', 'there is no such column')
                USING HINT = 'a key is an integer, a text, a uuid, a boolean or an enum';
        END IF;
    END IF;
    SELECT min(f.resource) INTO before FROM holdfast_fence.fenced AS f
     WHERE f.relation IN (SELECT member FROM holdfast_fence.family(fenced))
       AND f.resource IS DISTINCT FROM install.resource;
    IF before IS NOT NULL AND install.resource IS NOT NULL THEN
        RAISE EXCEPTION '% or a part of it is fenced as resource "%"', fenced, before
            USING HINT = 'take that fence down first, or name that resource';
    END IF;
    install.resource := coalesce(install.resource, before, (SELECT format('%s.%s', nspname, relname)
        FROM pg_class JOIN pg_namespace AS n ON n.oid = relnamespace WHERE pg_class.oid = fenced));
    CALL holdfast_fence.drop_triggers(fenced);
    CALL holdfast_fence.make_triggers(fenced, install.resource,
        holdfast_fence.adopt(fenced, install.resource, key_column IS NOT NULL), key_column);
END
$holdfast$;

CREATE OR REPLACE PROCEDURE holdfast_fence.remove(fenced regclass)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $holdfast$
DECLARE
    resources text[] := ARRAY(SELECT DISTINCT f.resource FROM holdfast_fence.fenced AS f
                               WHERE f.relation IN (SELECT member FROM holdfast_fence.family(fenced)));
    one text;
BEGIN
    IF resources = '{}' THEN
        RAISE EXCEPTION '% is not fenced', fenced USING ERRCODE = 'ZHF04';
    END IF;
    CALL holdfast_fence.drop_triggers(fenced);
    FOREACH one IN ARRAY resources LOOP
        CALL holdfast_fence.forget(one);
    END LOOP;
END
$holdfast$;
    $shared$;
END
$up$;

-- @section up-table
CALL holdfast_fence.install(@TABLE_TEXT@, @GIVEN_RESOURCE@, @KEY_COLUMN_TEXT@);

-- @section up-key-table
CALL holdfast_fence.install(@TABLE_TEXT@, @GIVEN_RESOURCE@, @KEY_COLUMN_TEXT@);

-- @section up-end
COMMIT;

-- @section down-begin
BEGIN;

-- @section down-table
CALL holdfast_fence.remove(@TABLE_TEXT@);

-- @section down-shared
DROP PROCEDURE holdfast_fence.remove(regclass), holdfast_fence.install(regclass, text, text),
    holdfast_fence.make_triggers(regclass, text, text, text), holdfast_fence.drop_triggers(regclass),
    holdfast_fence.forget(text),
    holdfast_fence.enter(text, bigint), holdfast_fence.enter(text, text, bigint),
    holdfast_fence.enter_from(text, bigint, text), holdfast_fence.enter_from(text, text, bigint, text);

DROP VIEW holdfast_fence.fenced;

DROP FUNCTION holdfast_fence.family(regclass), holdfast_fence.adopt(regclass, text, boolean),
    holdfast_fence.purge(text, bigint), holdfast_fence.reset(text, text, text),
    holdfast_fence.guard(), holdfast_fence.guard_key(), holdfast_fence.remember(text, text),
    holdfast_fence.rise(text, text, bigint, text),
    holdfast_fence.refuse(text, text, bigint, text), holdfast_fence.version();

DROP TABLE holdfast_fence.reset_log, holdfast_fence.mark;

-- @section down-schema
-- The schema goes when nothing of the other kind of fence is in it.
DO $holdfast$ BEGIN
    DROP SCHEMA holdfast_fence;
EXCEPTION WHEN dependent_objects_still_exist THEN NULL;
END $holdfast$;

-- @section down-end
COMMIT;
