"""storm.py - writers, relays that are frozen and killed, a receiver that fails; then the effects are judged."""
import json
import os
import random
import signal
import threading
import time

from outbox import (DIALECTS, MESSAGE, PATIENCE, SQL_DIR, Client, Http, Refused, Relay, admit_everybody, apply, done_testing,
                    empty, equal, forget_relay, migration, ok, outbox, rows, url, within, write)

WRITERS = 4
KEYS = 12
SECONDS = 24 if os.environ.get("HOLDFAST_LONG") else 4


class Ledger:
    """What the receiver heard: all deliveries, and the first one of each uid, in the order of their answers."""

    def __init__(self):
        self.lock = threading.Lock()
        self.first = {}  # uid -> (key, number)
        self.bodies = {} # uid -> body
        self.deliveries = 0
        self.faults = 0
        self.calm = False

    def answer(self, request):
        dice = random.random()
        if dice < 0.05 and not self.calm: # before the effect
            with self.lock:
                self.faults += 1
            return random.choice((500, 404, (503, {"Retry-After": "1"})))
        uid, body = request.headers["Idempotency-Key"], request.body
        with self.lock:
            self.deliveries += 1
            if uid not in self.first:
                self.first[uid] = tuple(json.loads(body))
            self.bodies.setdefault(uid, set()).add(body)
        return 500 if dice > 0.95 and not self.calm else 200 # after it


def writer(d, number, end, committed):
    """Each message says its key and the number that the key has by then: the row is locked first."""
    random.seed(number)
    client = Client(d)
    while time.monotonic() < end:
        key = f"key{random.randrange(KEYS)}"
        try:
            client.begin()
            client.run("UPDATE thing SET n = n + 1 WHERE k = ?", (key,))
            n = client.run("SELECT n FROM thing WHERE k = ?", (key,))[0][0]
            write(client, key, json.dumps([key, n]).encode())
            if random.random() < 0.1:
                client.rollback()
                continue
            client.commit()
            committed.append((key, n))
        except Refused:
            try:
                client.rollback()
            except Refused:
                client = Client(d)
        time.sleep(random.random() / 100)
    client.close()


class Crew:
    """Relays that are frozen, thawed, killed and started again."""

    def __init__(self, d, server, locked):
        self.d, self.server, self.locked = d, server, locked
        self.relays = [self.start(n) for n in range(3)]
        self.frozen, self.killed = 0, 0

    def start(self, n):
        store = None if self.locked else f"file:{SQL_DIR}/store-{self.d}-{n}"
        return Relay(self.d, "--ttl", "1s", "--attempts", "1000000", "--http", self.server.url(), "--batch", "40",
                     store=store)

    def trouble(self):
        n = random.randrange(3)
        relay = self.relays[n]
        if relay.process.poll() is not None: # its lock was lost
            self.relays[n] = self.start(n)
        elif random.random() < 0.2:
            relay.stop(signal.SIGKILL)
            self.killed += 1
        else:
            relay.send(signal.SIGSTOP)
            time.sleep(random.choice((0.1, 0.5, 2)))
            relay.send(signal.SIGCONT)
            self.frozen += 1

    def calm(self):
        """Everybody is back at work."""
        for n, relay in enumerate(self.relays):
            if relay.process.poll() is not None:
                self.relays[n] = self.start(n)

    def stop(self):
        for relay in self.relays:
            relay.stop(signal.SIGKILL)


def settle_marks(d, client):
    """Without the lock marks may differ: what nobody wakes is woken by hand."""
    client.run(f"UPDATE {MESSAGE[d]} SET attempts = 0, not_before = " +
               {"postgres": "'-infinity'", "sqlite": "''", "mariadb": "'1970-01-01'"}[d])


def storm(d, client, locked):
    who = d if locked else f"{d}, no lock"
    ledger, committed = Ledger(), []
    server = Http(ledger.answer)
    end = time.monotonic() + SECONDS
    writers = [threading.Thread(target=writer, args=(d, n, end, committed)) for n in range(WRITERS)]
    for thread in writers:
        thread.start()
    crew = Crew(d, server, locked)
    while time.monotonic() < end:
        time.sleep(random.random() / 5)
        crew.trouble()
    for thread in writers:
        thread.join()
    ledger.calm = True
    crew.calm()
    if not locked:
        crew.stop()
        settle_marks(d, client)
        crew.calm()
    sent = within(2 * PATIENCE, lambda: crew.calm() or empty(client))
    ok(sent, f"{who}: the outbox is empty in the end")
    if not sent:
        print("#", outbox("list", "--db", url(d))[1][:600], rows(client, "id, attempts, not_before")[:5],
              [r.said()[-300:] for r in crew.relays])
    crew.stop()
    equal(sorted(ledger.first.values()), sorted(committed), f"{who}: all {len(committed)} messages arrived, and no other")
    equal(max(len(b) for b in ledger.bodies.values()), 1, f"{who}: a uid is one message")
    late = [key for key in {k for k, _ in committed}
            if [n for k, n in ledger.first.values() if k == key] != sorted(n for k, n in committed if k == key)]
    equal(late, [], f"{who}: first deliveries are in order, in each of the keys")
    doubles = ledger.deliveries - len(ledger.first)
    ok(doubles > 0 and ledger.faults > 0 and crew.frozen > 0,
       f"{who}: {doubles} doubles, {ledger.faults} refusals, {crew.frozen} freezes, {crew.killed} kills")


for dialect in DIALECTS:
    equal(apply(dialect, migration(dialect)), (0, ""), f"{dialect}: the migration runs")
    db = Client(dialect)
    if dialect == "sqlite":
        db.run("PRAGMA journal_mode = WAL")
    db.run("CREATE TABLE thing (k VARCHAR(20) PRIMARY KEY, n INT)" + (" ENGINE = InnoDB" if dialect == "mariadb" else ""))
    for k in range(KEYS):
        db.run("INSERT INTO thing VALUES (?, 0)", (f"key{k}",))
    storm(dialect, db, True)
    forget_relay(db)
    admit_everybody(dialect, db)
    storm(dialect, db, False)
    db.close()
done_testing()
