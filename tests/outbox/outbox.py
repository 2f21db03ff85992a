"""outbox.py - what the tests of the outbox share: databases, relays, receivers.

The environment says where: SQL_DIR (the folder of the servers), HOLDFAST (the program), HOLDFAST_STORE.
"""
import http.server
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading

from idem import HOLDFAST, SQL_DIR, Client, Refused, apply, done_testing, equal, ok, pooler, refused, within # noqa: F401

DIALECTS = ("postgres", "sqlite", "mariadb")
PATIENCE = 60 # seconds for what takes a moment
HERE = os.path.dirname(os.path.abspath(__file__))
MESSAGE = {"postgres": "holdfast_outbox.message", "sqlite": "holdfast_outbox", "mariadb": "holdfast_outbox"}
FENCE = {"postgres": "holdfast_outbox.fence", "sqlite": "holdfast_outbox_fence",
         "mariadb": "holdfast_outbox_fence"}
KEY = {"postgres": "key", "sqlite": "key", "mariadb": "`key`"}
PARKED = {"postgres": "not_before = 'infinity' AND attempts = 0", "sqlite": "not_before = '9999' AND attempts = 0",
          "mariadb": "parked AND attempts = 0"}


def url(dialect, user=None, host=None):
    return {"postgres": f"postgres://{user or 'owner'}@/postgres?host={host or SQL_DIR + '/pg'}",
            "sqlite": f"sqlite:{SQL_DIR}/app.db",
            "mariadb": f"mariadb://{user or 'root'}@/app?socket={SQL_DIR}/maria/sock"}[dialect]


def migration(dialect, *options):
    return subprocess.run([HOLDFAST, "outbox", "sql", "--dialect", dialect, *options], check=True,
                          stdout=subprocess.PIPE, text=True).stdout


def write(client, key, payload, topic="t", headers=None):
    """One message, in the transaction that is open, or in its own."""
    d = client.dialect
    columns, values = f"topic, {KEY[d]}, payload", [topic, key, payload]
    if headers is not None:
        columns, values = columns + ", headers", values + [headers]
    client.run(f"INSERT INTO {MESSAGE[d]} ({columns}) VALUES ({', '.join('?' * len(values))})", values)


def rows(client, columns="id", where="1 = 1"):
    return client.run(f"SELECT {columns} FROM {MESSAGE[client.dialect]} WHERE {where} ORDER BY id")


def empty(client):
    return rows(client) == []


def forget_relay(client):
    """The fence begins anew, for tests with stores of their own."""
    client.run(f"UPDATE {FENCE[client.dialect]} SET token = 0, name = NULL, issuer = NULL")


def admit_everybody(d, client):
    """No fence: whatever a relay writes there is forgotten at once."""
    if d == "postgres":
        client.run("CREATE FUNCTION forget() RETURNS trigger LANGUAGE plpgsql AS "
                   "'BEGIN NEW.token := 0; NEW.name := NULL; NEW.issuer := NULL; RETURN NEW; END'")
        client.run(f"CREATE TRIGGER forget BEFORE UPDATE ON {FENCE[d]} FOR EACH ROW EXECUTE FUNCTION forget()")
    elif d == "mariadb":
        client.run(f"CREATE TRIGGER forget BEFORE UPDATE ON {FENCE[d]} FOR EACH ROW "
                   "SET NEW.token = 0, NEW.name = NULL, NEW.issuer = NULL")
    else:
        client.run(f"CREATE TRIGGER forget AFTER UPDATE ON {FENCE[d]} WHEN NEW.token <> 0 BEGIN "
                   f"UPDATE {FENCE[d]} SET token = 0, name = NULL, issuer = NULL; END")


class Relay:
    """A relay of the program under test."""

    def __init__(self, dialect, *words, command=None, store=None, env=None, user=None, host=None):
        line = [HOLDFAST] + (["--store", store] if store else [])
        line += ["outbox", "relay", "--db", url(dialect, user, host), "--poll", "20ms", *words]
        self.errors = tempfile.TemporaryFile("w+")
        self.process = subprocess.Popen(line + (["--", *command] if command else []), stderr=self.errors,
                                        stdin=subprocess.DEVNULL, env=dict(os.environ, **(env or {})))
        self.pid = self.process.pid

    def send(self, number):
        os.kill(self.pid, number)

    def stop(self, number=signal.SIGTERM):
        """Its exit code."""
        if self.process.poll() is None:
            self.send(number)
        return self.wait()

    def wait(self):
        try:
            return self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            return "hangs"

    def said(self):
        self.errors.seek(0)
        return self.errors.read()


class Receiver:
    """A command that the relay runs: receiver.py. It does what its rules say, and writes down what it got."""

    def __init__(self):
        self.folder = tempfile.mkdtemp(dir=SQL_DIR)
        self.rules({})

    def rules(self, rules):
        """What becomes of a payload: "retry", "retry 5s", "die", "hang", "twice", "garbage", "silent". Others: ok."""
        with open(self.folder + "/new", "w", encoding="utf8") as file:
            json.dump(rules, file)
        os.rename(self.folder + "/new", self.folder + "/rules")

    def command(self):
        return [sys.executable, HERE + "/receiver.py", self.folder]

    def got(self):
        """Everything that came, in order."""
        try:
            with open(self.folder + "/log", encoding="utf8") as file:
                return [json.loads(line) for line in file if line.endswith("\n")]
        except FileNotFoundError:
            return []

    def payloads(self, key=None):
        return [m["payload"] for m in self.got() if key is None or m["key"] == key]


class Http:
    """A server that the relay posts to. answer(request) says with what: a status, (status, headers), or "cut": a
    success that is cut off in its headers."""

    def __init__(self, answer=lambda request: 200):
        self.requests = []
        self.bodies = [] # a request that comes over the connection of an earlier one has that one's object
        owner = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self): # noqa: N802
                self.body = self.rfile.read(int(self.headers["Content-Length"]))
                owner.requests.append(self)
                owner.bodies.append(self.body)
                status = owner.answer(self)
                if status == "cut":
                    self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n")
                    self.close_connection = True
                    return
                status, headers = status if isinstance(status, tuple) else (status, {})
                self.send_response(status)
                for name, value in {"Content-Length": "0", **headers}.items():
                    self.send_header(name, value)
                self.end_headers()

            def log_message(self, *_):
                pass

        class Server(http.server.ThreadingHTTPServer):
            def handle_error(self, *_): # a relay was killed
                if not isinstance(sys.exc_info()[1], ConnectionError):
                    super().handle_error(*_)

        self.answer = answer
        self.server = Server(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def url(self):
        return f"http://127.0.0.1:{self.server.server_address[1]}/in"


def outbox(*words):
    """Runs `holdfast outbox ...`; (exit code, stdout, stderr)."""
    done = subprocess.run([HOLDFAST, "outbox", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          stdin=subprocess.DEVNULL, text=True, check=False)
    return done.returncode, done.stdout, done.stderr
