"""cuts.py - a relay whose connection is cut at a statement of our choice."""
import os
import socket
import threading

from outbox import (SQL_DIR, PATIENCE, Client, Receiver, Relay, apply, done_testing, empty, equal, forget_relay, migration,
                    ok, rows, within, write)

LARGE = "x" * 5000 # more than comes with the first statement of a fetch


class Proxy:
    """Stands before the server. cut(word, after): the next connection that says the word is closed, before the
    server has heard it or when it has answered."""

    def __init__(self):
        self.folder = SQL_DIR + "/proxy"
        os.mkdir(self.folder)
        self.word, self.after, self.cuts = None, False, 0
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(self.folder + "/.s.PGSQL.5432")
        self.listener.listen()
        threading.Thread(target=self.accept, daemon=True).start()

    def cut(self, word, after):
        self.cuts, self.after, self.word = 0, after, word.encode()

    def accept(self):
        while True:
            client = self.listener.accept()[0]
            server = socket.socket(socket.AF_UNIX)
            server.connect(SQL_DIR + "/pg/.s.PGSQL.5432")
            link = {"deaf": False}
            threading.Thread(target=self.to_server, args=(client, server, link), daemon=True).start()
            threading.Thread(target=self.to_client, args=(client, server, link), daemon=True).start()

    def to_server(self, client, server, link):
        while True:
            some = receive(client)
            if self.word is not None and self.word in some:
                self.word = None
                self.cuts += 1
                if not self.after:
                    break
                link["deaf"] = True
            if some == b"":
                break
            server.sendall(some)
        hang_up(client, server)

    def to_client(self, client, server, link):
        while True:
            some = receive(server)
            if some == b"" or link["deaf"]:
                break
            client.sendall(some)
        hang_up(client, server)


def receive(link):
    try:
        return link.recv(65536)
    except OSError:
        return b""


def hang_up(*links):
    for link in links:
        try:
            link.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass


def cut_at(client, proxy, word, after):
    what = f"{word}, {'answered' if after else 'not sent'}"
    receiver = Receiver()
    receiver.rules({"b0": "retry 200ms"})
    wanted = {"a": ["a0", LARGE + "a1", "a2"], "b": ["b0", "b1", LARGE + "b2"], "c": [LARGE + "c0", "c1"], "d": ["d0", "d1"]}
    for n in range(3):
        for key, payloads in wanted.items():
            for payload in payloads[n:n + 1]:
                write(client, key, payload)
    proxy.cut(word, after)
    relay = Relay("postgres", "--attempts", "100", command=receiver.command(), host=proxy.folder)
    ok(within(PATIENCE, lambda: proxy.cuts == 1), f"{what}: cut")
    ok(within(PATIENCE, lambda: rows(client, "id", "attempts > 0")), f"{what}: one fails")
    receiver.rules({})
    ok(within(PATIENCE, lambda: empty(client)), f"{what}: the outbox is empty in the end")
    for key, payloads in wanted.items():
        equal([p[-2:] for p in dict.fromkeys(receiver.payloads(key))], [p[-2:] for p in payloads],
              f"{what}: {key}: all of it was sent, in order")
    relay.stop()


apply("postgres", migration("postgres"))
db = Client("postgres")
between = Proxy()
for statement in ("CASE WHEN octet_length", "SELECT m.id::text, m.payload", "BEGIN", "SET admitted_at", "DELETE FROM",
                  "SET attempts", "FOR UPDATE", "SET not_before", "COMMIT"):
    for answered in (False, True):
        forget_relay(db)
        cut_at(db, between, statement, answered)
done_testing()
