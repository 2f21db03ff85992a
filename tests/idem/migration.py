"""migration.py - who may do what once the migration has run; and the migration itself, up, again and down."""
import json

from idem import Client, apply, done_testing, effect, equal, in_each_database, migration, ok, once, refused

# Functions that match the pack's calls better than PostgreSQL's own do. Each tells who runs it.
DECOYS = ("hashtextextended(text, integer) RETURNS bigint", "nextval(text) RETURNS bigint",
          "obj_description(oid, text) RETURNS text", "to_regclass(name) RETURNS regclass",
          "format(text, text, regclass, text) RETURNS text", "quote_ident(name) RETURNS text",
          "equals(oid, integer) RETURNS boolean")


def decoys(owner):
    """A schema in which the application may create: its functions are never run in the owner's name."""
    owner.run("CREATE SCHEMA shared; GRANT ALL ON SCHEMA shared TO app; CREATE TABLE ran (what text, by text);"
              "GRANT INSERT ON ran TO PUBLIC")
    app = Client("postgres", user="app", schema="shared")
    for decoy in DECOYS:
        app.run(f"CREATE FUNCTION shared.{decoy} LANGUAGE plpgsql AS "
                f"$$ BEGIN INSERT INTO public.ran VALUES ('{decoy}', current_user); RETURN NULL; END $$")
    app.run("CREATE OPERATOR shared.= (FUNCTION = shared.equals, LEFTARG = oid, RIGHTARG = integer)")
    owner.run("ALTER DEFAULT PRIVILEGES GRANT ALL ON TABLES TO app;"
              "ALTER DEFAULT PRIVILEGES GRANT ALL ON FUNCTIONS TO app")
    code, said = apply("postgres", migration("postgres", "--schema", "shared"))
    equal((code, said), (0, ""), "postgres: the migration runs beside somebody's functions")
    owner.run("ALTER DEFAULT PRIVILEGES REVOKE ALL ON TABLES FROM app;"
              "ALTER DEFAULT PRIVILEGES REVOKE ALL ON FUNCTIONS FROM app")
    once(app, "s", "k", lambda c: None)
    app.finish_attempt("s", "k2", app.start("s", "k2")[1])
    app.release("s", "k3", app.start("s", "k3")[1])
    refused(app.finish, "s", "none")
    refused(app.start, "s", "k4", "f", 0)
    Client("postgres", schema="shared").purge(0)
    equal(owner.run("SELECT DISTINCT what, by FROM ran WHERE by <> 'app'"), [],
          "postgres: and runs none of them in the owner's name")


def roles(d, c):
    owner = Client(d)
    if d == "sqlite":
        return
    if d == "postgres":
        owner.run("CREATE ROLE app LOGIN; CREATE ROLE stranger LOGIN")
        owner.run("GRANT USAGE ON SCHEMA holdfast_idem TO app; GRANT ALL ON effect TO app")
        denied = "42501"
        tries = ["UPDATE holdfast_idem.entry SET answer = ''", "DELETE FROM holdfast_idem.entry",
                 "INSERT INTO holdfast_idem.entry VALUES ('s', 'k', '')", "SELECT * FROM holdfast_idem.entry",
                 "TRUNCATE holdfast_idem.entry", "INSERT INTO holdfast_idem.nothing VALUES (1)",
                 "SELECT nextval('holdfast_idem.attempt_number')", "SELECT holdfast_idem.purge('0s', 10)",
                 "SELECT setval('holdfast_idem.attempt_number', 1)", "CALL holdfast_idem.settle(false)",
                 "CREATE TABLE holdfast_idem.own (v int)", "DROP FUNCTION holdfast_idem.claim(text, text, text)",
                 "SELECT holdfast_idem.refuse('ZHF11', 'x', 's', 'k')"]
    else:
        owner.run("CREATE USER app@localhost")
        for name in ("claim", "finish", "start", "finish_attempt", "release"):
            owner.run(f"GRANT EXECUTE ON PROCEDURE app.holdfast_{name} TO app@localhost")
        owner.run("GRANT ALL ON app.effect TO app@localhost")
        denied = None
        tries = ["UPDATE holdfast_idem SET answer = ''", "DELETE FROM holdfast_idem", "TRUNCATE holdfast_idem",
                 "INSERT INTO holdfast_idem (scope) VALUES ('s')", "SELECT * FROM holdfast_idem",
                 "CALL holdfast_purge(0, 10)", "CALL holdfast_forget('s', 'k', 'x')",
                 "SELECT NEXTVAL(holdfast_idem_attempt)", "CALL holdfast_idem_check_key('a', 'b', 'c')"]
    app = Client(d, user="app")
    equal(once(app, "s", "role", effect)[0], "new", f"{d}: the application can work")
    equal(once(app, "s", "role", effect)[0], "done", f"{d}: and replay")
    _, attempt, *_ = app.start("s", "role2")
    app.finish_attempt("s", "role2", attempt)
    for text in tries:
        code = refused(app.run, text)
        ok(code == denied or d == "mariadb" and code in (1142, 1370, 1044), f"{d}: it cannot: {text} ({code})")
    if d == "postgres":
        stranger = Client(d, user="stranger")
        equal(refused(stranger.claim, "s", "k"), denied, f"{d}: a stranger can nothing")
        app.run("CREATE TEMP TABLE entry (LIKE effect); CREATE TEMP SEQUENCE attempt_number; "
                "SET search_path = pg_temp, public")
        equal(once(app, "s", "shadow", lambda c: None)[0], "new", f"{d}: tables of its own change nothing")
        owner.run("ALTER DEFAULT PRIVILEGES GRANT ALL ON TABLES TO app;"
                  "ALTER DEFAULT PRIVILEGES GRANT ALL ON SEQUENCES TO app;"
                  "ALTER DEFAULT PRIVILEGES GRANT ALL ON FUNCTIONS TO app; CREATE SCHEMA wide")
        apply(d, migration(d, "--schema", "wide"))
        owner.run("GRANT USAGE ON SCHEMA wide TO app")
        for text in ("DELETE FROM wide.entry", "SELECT nextval('wide.attempt_number')",
                     "SELECT wide.purge('0s', 10)"):
            equal(refused(app.run, text), denied, f"{d}: default privileges are taken back: {text}")
        owner.run("ALTER DEFAULT PRIVILEGES REVOKE ALL ON TABLES FROM app;"
                  "ALTER DEFAULT PRIVILEGES REVOKE ALL ON SEQUENCES FROM app;"
                  "ALTER DEFAULT PRIVILEGES REVOKE ALL ON FUNCTIONS FROM app")
        owner.run("GRANT EXECUTE ON FUNCTION wide.purge(interval, integer) TO app")
        apply(d, migration(d, "--schema", "wide"))
        equal(refused(app.run, "SELECT wide.purge('1h', 10)"), None, f"{d}: what the owner granted is kept")
        decoys(owner)


def migrations(d, c):
    client = Client(d)
    once(client, "s", "stays", effect)
    equal(apply(d, migration(d, "--keep", "1h"))[0], 0, f"{d}: the migration runs a second time")
    equal(once(client, "s", "stays", effect)[0], "done", f"{d}: and nothing is lost")
    ok("ANALYZE" not in migration(d), f"{d}: it leaves statistics alone")

    database = {"postgres": "tools", "mariadb": "tools", "sqlite": "tools.db"}[d]
    if d != "sqlite":
        client.run("CREATE DATABASE tools")
    tool = Client(d, database=database)
    # A table of that name which is not ours.
    if d == "postgres":
        tool.run("CREATE SCHEMA holdfast_idem; CREATE TABLE holdfast_idem.entry (mine int)")
    else:
        tool.run("CREATE TABLE holdfast_idem (mine int)")
    code, said = apply(d, migration(d), database)
    ok(code != 0 and "not of holdfast" in said, f"{d}: a table that is not ours is refused, clearly")
    equal(tool.run(f"SELECT mine FROM {tool.table()}"), [], f"{d}: and stays as it was")
    tool.run("DROP SCHEMA holdfast_idem CASCADE" if d == "postgres" else "DROP TABLE holdfast_idem")

    if d == "sqlite":
        for kind, name, text in (("TABLE", "Holdfast_Idem", "(mine INT)"), ("TABLE", "holdfast_idem_said", "(mine INT)"),
                                 ("VIEW", "holdfast_claim", "AS SELECT 1 AS mine")):
            tool.run(f"CREATE {kind} {name} {text}")
            code, said = apply(d, migration(d), database)
            ok(code != 0 and "not of holdfast" in said, f"{d}: nor is a {kind.lower()} {name}")
            equal(tool.run("SELECT name FROM sqlite_master WHERE type IN ('table', 'view')"), [(name,)],
                  f"{d}: which stays, alone")
            tool.run(f"DROP {kind} {name}")

    # Statement by statement, in the tool's own transaction.
    statements = json.loads(migration(d, "--no-transaction", "--statements", "json"))
    ok(len(statements) > 10, f"{d}: {len(statements)} statements")
    ok(not any(s.startswith(("BEGIN;", "COMMIT", "DELIMITER", "--")) or s.rstrip().endswith("//")
               for s in statements), f"{d}: without transaction and client commands")
    tool.begin()
    for statement in statements:
        tool.run(statement)
    if d == "mariadb":
        tool.commit()
    else:
        tool.rollback()
        kind = ("SELECT count(*) FROM pg_namespace WHERE nspname = 'holdfast_idem'" if d == "postgres" else
                "SELECT count(*) FROM sqlite_master WHERE name LIKE 'holdfast%'")
        equal(tool.run(kind), [(0,)], f"{d}: the tool's rollback undoes it")
        tool.begin()
        for statement in statements:
            tool.run(statement)
        tool.commit()
    equal(once(tool, "s", "k", lambda c: None)[0], "new", f"{d}: it works")
    tool.begin()
    for statement in json.loads(migration(d, "--down", "--no-transaction", "--statements", "json")):
        tool.run(statement)
    tool.commit()
    equal(apply(d, migration(d, "--no-transaction"), database)[0], 0, f"{d}: as a text, too")
    ok("\nBEGIN;" not in migration(d, "--no-transaction"), f"{d}: without BEGIN")
    equal(apply(d, migration(d, "--down"), database)[0], 0, f"{d}: and down")
    left = {"postgres": "SELECT nspname::text FROM pg_namespace WHERE nspname LIKE 'holdfast%'",
            "mariadb": "SELECT table_name FROM information_schema.tables WHERE table_schema = 'tools' UNION "
                       "SELECT routine_name FROM information_schema.routines WHERE routine_schema = 'tools'",
            "sqlite": "SELECT name FROM sqlite_master WHERE name NOT LIKE 'sqlite%'"}[d]
    equal(tool.run(left), [], f"{d}: which leaves nothing behind")
    if d == "postgres":
        for name in ("$holdfast$", '"; DROP TABLE effect; --', "a'b\\c", ":x :'x'", "@KEEP@", " AS $holdfast$"):
            code, said = apply(d, migration(d, "--schema", name), database)
            named = Client(d, schema=name.replace('"', '""'), database=database)
            works = code == 0 and once(named, "s", "k", lambda c: None)[0] == "new"
            ok(works, f"{d}: a schema called {name} {said}")
            items = json.loads(migration(d, "--schema", name, "--statements", "json"))
            equal(len(items), len(statements), f"{d}: with as many statements as any other")
            equal(apply(d, migration(d, "--schema", name, "--down"), database)[0], 0, f"{d}: and down")
            equal(tool.run("SELECT count(*) FROM pg_namespace WHERE nspname = ?", (name,)), [(1,)],
                  f"{d}: a schema that was named stays")


in_each_database(roles, migrations)
done_testing()
