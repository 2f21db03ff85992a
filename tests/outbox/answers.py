"""answers.py - a receiver that speaks HTTP badly. The database has no part in it: one is enough."""
import socket
import threading
import time

from outbox import PATIENCE, Client, Relay, apply, done_testing, empty, equal, migration, ok, outbox, rows, url, within, write

D = "sqlite"
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
# What is said, and whether that is a success.
SAID = {
    b"continue": (b"HTTP/1.1 100 Continue\r\n\r\n" + OK, True),
    b"hints": (b"HTTP/1.1 103 Early Hints\r\nLink: <a>\r\n\r\n" + OK, True),
    b"only-hints": (b"HTTP/1.1 103 Early Hints\r\n\r\n", False),
    b"switch": (b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n", False),
    b"moved": (b"HTTP/1.1 301 Moved\r\nLocation: /elsewhere\r\nContent-Length: 0\r\n\r\n", False),
    b"again": (b"HTTP/1.1 307 Temporary\r\nLocation: /elsewhere\r\nContent-Length: 0\r\n\r\n", False),
    b"unchanged": (b"HTTP/1.1 304 Not Modified\r\n\r\n", False),
    b"nothing": (b"", False),
    b"half-line": (b"HTTP/1.1 20", False),
    b"half-head": (b"HTTP/1.1 200 OK\r\nContent-Le", False),
    b"half-412": (b"HTTP/1.1 412 Precondition Fa", False),
    b"other": (b"SSH-2.0-OpenSSH_9.2\r\n", False),
    b"no-number": (b"HTTP/1.1 OK 200\r\n\r\n", False),
    b"long-line": (b"HTTP/1.1 200 " + b"x" * (1 << 20), False),
}


class Raw:
    """A server of bytes. What is not known to it is a success."""

    def __init__(self):
        self.bodies, self.paths, self.healed = [], [], False
        self.listener = socket.create_server(("127.0.0.1", 0))
        threading.Thread(target=self.accept, daemon=True).start()

    def url(self):
        return f"http://127.0.0.1:{self.listener.getsockname()[1]}/in"

    def accept(self):
        while True:
            threading.Thread(target=self.serve, args=(self.listener.accept()[0],), daemon=True).start()

    def serve(self, link):
        try:
            with link, link.makefile("rb") as file:
                while self.answer(link, file):
                    pass
        except OSError:
            pass

    def answer(self, link, file):
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            line = file.readline()
            if line == b"":
                return False
            head += line
        size = [int(line.split(b":")[1]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:")]
        body = file.read(size[0])
        self.paths.append(head.split()[1])
        self.bodies.append(body)
        if body in (b"drip", b"flood") and not self.healed:
            return self.endless(link, body)
        said = OK if self.healed else SAID.get(body, (OK, True))[0]
        link.sendall(said)
        return said == OK

    def endless(self, link, body):
        link.sendall(b"HTTP/1.1 200 OK\r\n" if body == b"drip" else b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        while not self.healed:
            link.sendall(b"X" if body == b"drip" else b"4000\r\n" + b"x" * 0x4000 + b"\r\n")
            time.sleep(0.2 if body == b"drip" else 0)
        return False


apply(D, migration(D))
db = Client(D)
db.run("PRAGMA journal_mode = WAL")
server = Raw()
bad = [body for body, (_, good) in SAID.items() if not good] + [b"drip", b"flood"]
for body in [*SAID, b"drip", b"flood", b"good"]:
    write(db, body.decode(), body)
    write(db, body.decode(), b"after " + body)
relay = Relay(D, "--timeout", "2s", "--http", server.url())
ok(within(PATIENCE, lambda: {k.encode() for (k,) in rows(db, "key", "attempts > 0")} == set(bad)),
   "what is no whole success is tried again, and nothing else")
for body in [b for b, (_, good) in SAID.items() if good] + [b"good"]:
    ok(within(PATIENCE, lambda body=body: b"after " + body in server.bodies), f"{body.decode()}: its key goes on")
    equal(server.bodies.count(body), 1, f"{body.decode()}: it is not sent again")
equal([b for b in bad if b"after " + b in server.bodies], [], "nothing overtakes one that failed")
equal(set(server.paths), {b"/in"}, "nobody is followed elsewhere")
ok(relay.process.poll() is None, f"the relay lives ({relay.said()})")
server.healed = True


def again():
    for (uid,) in rows(db, "uid", "attempts > 0"):
        outbox("retry", "--db", url(D), "--reason", "mended", str(uid))
    return empty(db)


ok(within(PATIENCE, again), "when the receiver is mended all is delivered")
equal([b for b in bad if server.bodies.index(b"after " + b) < server.bodies.index(b)], [], "in order")
relay.stop()
done_testing()
