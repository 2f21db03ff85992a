"""idem.py - what the tests of the idempotency keys share: TAP, and one way to talk to three databases.

The environment says where: SQL_DIR (the folder of the servers), HOLDFAST (the program).
"""
import contextlib
import os
import re
import socket
import sqlite3
import subprocess
import sys
import time

import psycopg2
import psycopg2.extensions
import pymysql

SQL_DIR = os.environ["SQL_DIR"]
HOLDFAST = os.environ["HOLDFAST"]
DIALECTS = ("postgres", "sqlite", "mariadb")
count = 0
failed = 0


def ok(good, text):
    global count, failed
    count += 1
    failed += not good
    print(("ok" if good else "not ok"), count, "-", text, flush=True)
    return good


def equal(got, wanted, text):
    if not ok(got == wanted, text):
        print(f"#   got:    {got!r}\n#   wanted: {wanted!r}", flush=True)


def done_testing():
    print(f"1..{count}")
    sys.exit(1 if failed else 0)


def within(seconds, condition):
    """Polls until it is true."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


@contextlib.contextmanager
def pooler():
    """PgBouncer in transaction mode before PostgreSQL, with three connections: its port."""
    port = int(subprocess.check_output([os.path.dirname(os.path.abspath(__file__)) + "/../support/free_ports.py", "1"]))
    folder = SQL_DIR + "/bouncer"
    os.mkdir(folder)
    os.chmod(folder, 0o777)
    with open(folder + "/ini", "w", encoding="ascii") as ini:
        ini.write(f"""[databases]
postgres = host={SQL_DIR}/pg dbname=postgres user=owner
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
auth_type = any
pool_mode = transaction
default_pool_size = 3
unix_socket_dir =
""")
    command = ["pgbouncer", "-q", folder + "/ini"]
    if os.getuid() == 0:
        command = ["setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups"] + command
    bouncer = subprocess.Popen(command, stderr=subprocess.DEVNULL)

    def up():
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return True
        except OSError:
            return False
    try:
        ok(within(20, up), "pgbouncer is there")
        yield port
    finally:
        bouncer.kill()
        bouncer.wait()


class Refused(Exception):
    """What the database said, by its code: a SQLSTATE, or the first words of SQLite's message."""

    def __init__(self, code, text):
        super().__init__(f"{code}: {text}")
        self.code = code
        self.text = text


LEVELS = {
    "postgres": ("READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"),
    "mariadb": ("READ UNCOMMITTED", "READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"),
    "sqlite": ("",),
}


class Client:
    """A connection. The calls of the pack have the names of the pack; verdicts are tuples."""

    def __init__(self, dialect, level="", user=None, schema="holdfast_idem", database=None, port=None):
        self.dialect, self.schema, self.level = dialect, schema, level
        if dialect == "postgres":
            self.conn = psycopg2.connect(host=SQL_DIR + "/pg" if port is None else "127.0.0.1",
                                         port=port or os.environ.get("PGPORT", 5432),
                                         user=user or "owner", dbname=database or "postgres")
            self.conn.autocommit = True
        elif dialect == "mariadb":
            self.conn = pymysql.connect(unix_socket=SQL_DIR + "/maria/sock", user=user or "root",
                                        database=database or "app", autocommit=True, charset="utf8mb4")
            if level:
                self.run(f"SET SESSION TRANSACTION ISOLATION LEVEL {level}")
        else:
            self.conn = sqlite3.connect(SQL_DIR + "/" + (database or "app.db"), timeout=60,
                                        isolation_level=None)
            self.run("PRAGMA foreign_keys = ON")

    def run(self, sql, args=()):
        """Runs a statement; returns its rows. Errors are Refused."""
        mark = "?" if self.dialect == "sqlite" else "%s"
        try:
            cursor = self.conn.cursor()
            cursor.execute(sql.replace("?", mark) if args else sql, args or None if self.dialect !=
                           "sqlite" else args)
            return [tuple(map(plain, row)) for row in cursor.fetchall()] if cursor.description else []
        except psycopg2.Error as error:
            raise Refused(error.pgcode or "gone", str(error)) from None
        except pymysql.MySQLError as error:
            text = str(error.args[-1])
            code = re.match(r"ZHF\d\d", text)
            raise Refused(code.group() if code else error.args[0], text) from None
        except sqlite3.Error as error:
            text = str(error)
            known = re.match(r"holdfast (not claimed|invalid)", text)
            code = {"not claimed": "ZHF11", "invalid": "ZHF15"}[known.group(1)] if known else text
            raise Refused(code, text) from None

    def begin(self):
        if self.dialect == "postgres":
            self.run("BEGIN" + (" ISOLATION LEVEL " + self.level if self.level else ""))
        else:
            self.run("START TRANSACTION" if self.dialect == "mariadb" else "BEGIN IMMEDIATE")

    def commit(self):
        self.run("COMMIT")

    def rollback(self):
        self.run("ROLLBACK")

    def close(self):
        self.conn.close()

    def call(self, name, *args):
        """One function of the pack; its row, or nothing."""
        marks = ", ".join("?" * len(args))
        if self.dialect == "postgres":
            types = {"start": ["", "", "", "::interval"]}.get(name, [""] * len(args))
            marks = ", ".join("?" + t for t in types)
            rows = self.run(f'SELECT * FROM "{self.schema}".{name}({marks})', args)
        elif self.dialect == "mariadb":
            rows = self.run(f"CALL holdfast_{name}({marks})", args)
        else:
            self.run(f"INSERT INTO holdfast_{name} VALUES ({marks})", args)
            columns = {"claim": "state, status, answer",
                       "start": "state, attempt, remaining, status, answer"}.get(name)
            rows = columns and self.run(
                f"SELECT {columns} FROM holdfast_verdict WHERE scope = ? AND key = ?", args[:2])
        return rows[0] if rows else None

    def claim(self, scope, key, fingerprint="f"):
        return self.call("claim", scope, key, fingerprint)

    def finish(self, scope, key, status=200, answer=b"ok"):
        self.call("finish", scope, key, status, answer)

    def start(self, scope, key, fingerprint="f", lease=30):
        return self.call("start", scope, key, fingerprint,
                         f"{lease}s" if self.dialect == "postgres" else lease)

    def finish_attempt(self, scope, key, attempt, status=200, answer=b"ok"):
        self.call("finish_attempt", scope, key, attempt, status, answer)

    def release(self, scope, key, attempt):
        self.call("release", scope, key, attempt)

    def purge(self, older_than, at_most=1000):
        self.call("purge", f"{older_than}s" if self.dialect == "postgres" else older_than, at_most)

    def table(self):
        return '"%s".entry' % self.schema if self.dialect == "postgres" else "holdfast_idem"


def plain(value):
    return bytes(value) if isinstance(value, memoryview) else value


def refused(call, *args):
    """The code with which it is refused, or None."""
    try:
        call(*args)
    except Refused as error:
        return error.code
    return None


def once(client, scope, key, work, fingerprint="f", answer=b"ok"):
    """The whole of it, as an application does it; its verdict."""
    client.begin()
    try:
        verdict = client.claim(scope, key, fingerprint)
        if verdict[0] == "new":
            work(client)
            client.finish(scope, key, 200, answer)
            client.commit()
        else:
            client.rollback()
        return verdict
    except Refused:
        client.rollback()
        raise


def migration(dialect, *options):
    return subprocess.run([HOLDFAST, "idem", "sql", "--dialect", dialect, *options], check=True,
                          stdout=subprocess.PIPE, text=True).stdout


def apply(dialect, text, database=None):
    """Through the database's own client; returns (exit code, what it said on stderr)."""
    client = {
        "postgres": ["psql", "-h", SQL_DIR + "/pg", "-U", "owner", "-d", database or "postgres", "-X",
                     "-q", "-v", "ON_ERROR_STOP=1", "-v", "VERBOSITY=verbose"],
        "mariadb": ["mariadb", "--no-defaults", f"--socket={SQL_DIR}/maria/sock", "-u", "root",
                    database or "app"],
        "sqlite": ["sqlite3", "-bail", "-cmd", ".timeout 20000", SQL_DIR + "/" + (database or "app.db")],
    }[dialect]
    env = dict(os.environ, PGOPTIONS="-c client_min_messages=warning")
    done = subprocess.run(client, input=text, text=True, env=env, stdout=subprocess.DEVNULL,
                          stderr=subprocess.PIPE, check=False)
    return done.returncode, done.stderr


def effect(client):
    client.run("INSERT INTO effect VALUES (1)")


def in_each_database(*parts):
    """Runs the migration, and each part with the dialect and the owner's client."""
    for dialect in DIALECTS:
        owner = Client(dialect)
        owner.run("CREATE TABLE effect (n INT)" + (" ENGINE = InnoDB" if dialect == "mariadb" else ""))
        equal(apply(dialect, migration(dialect)), (0, ""), f"{dialect}: the migration runs")
        for part in parts:
            try:
                part(dialect, owner)
            except Refused as error:
                ok(False, f"{dialect}: {part.__name__}: {error}")
