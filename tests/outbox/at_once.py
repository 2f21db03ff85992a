"""at_once.py - statements that are prepared once, and a settlement that is one of them."""
import signal

from outbox import (FENCE, MESSAGE, PATIENCE, Client, Http, Relay, apply, done_testing, empty, equal, forget_relay, migration, ok,
                    pooler, rows, within, write)

D = "postgres"
LATER = f"UPDATE {FENCE[D]} SET token = token + 1000000000"
WAITS = "SELECT pid FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND application_name = 'holdfast'"


def while_under_way(client, does, held):
    """A message is sent; before it is answered with success somebody does something, and commits it before the answer, or
    (held) when the relay waits for it."""
    other = Client(D)

    def answer(request):
        if request.body == b"first":
            other.begin()
            for sql in does:
                other.run(sql)
            if not held:
                other.commit()
        return 200
    server = Http(answer)
    write(client, "k", "first")
    relay = Relay(D, "--http", server.url())
    if held:
        ok(within(PATIENCE, lambda: client.run(WAITS)), f"{does[0][:40]}: the relay waits")
        other.commit()
    return server, relay


def stale(client, held):
    forget_relay(client)
    server, relay = while_under_way(client, [LATER], held)
    ok(within(PATIENCE, lambda: relay.process.poll() is not None or empty(client)), "stale: it has settled")
    write(client, "k", "second")
    equal((relay.wait(), "stale" in relay.said()), (123, True), "stale: a relay that is refused ends as when its lock is lost")
    equal(server.bodies, [b"first"], "stale: and sends no more")
    equal(rows(client, "attempts, error"), [(0, None)], "stale: and has marked nothing")
    ok(client.run(f"SELECT token FROM {FENCE[D]}")[0][0] > 1000000000, "stale: the fence is where it was")
    client.run(f"DELETE FROM {MESSAGE[D]}")
    forget_relay(client)


def marked(client, held):
    """By a relay that has lost its lock since; what that has parked behind the message has to be freed."""
    server, relay = while_under_way(client, [
        f"UPDATE {MESSAGE[D]} SET attempts = 1, not_before = now() + interval '1 hour'",
        f"INSERT INTO {MESSAGE[D]} (topic, key, payload, not_before) VALUES ('t', 'k', 'behind', 'infinity')"], held)
    ok(within(PATIENCE, lambda: server.bodies == [b"first", b"behind"]), f"marked: what is behind it is sent ({server.bodies})")
    ok(within(PATIENCE, lambda: empty(client)), "marked: and all is deleted")
    equal(relay.stop(), -signal.SIGTERM, "marked: the relay lives")


def limits(client):
    """The highest id and uid there are."""
    uids = []
    server = Http(lambda request: uids.append(request.headers["Idempotency-Key"]) or 200)
    for n, uid in ((1 << 62, "f" * 32), ((1 << 63) - 1, "0" * 32)):
        client.run(f"INSERT INTO {MESSAGE[D]} (id, uid, topic, key, payload) OVERRIDING SYSTEM VALUE "
                   f"VALUES ({n}, '{uid}', 't', 'k', 'p')")
    relay = Relay(D, "--http", server.url())
    ok(within(PATIENCE, lambda: empty(client)), "limits: they are deleted")
    equal(uids, ['"ffffffff-ffff-ffff-ffff-ffffffffffff"', '"00000000-0000-0000-0000-000000000000"'],
          "limits: in order, with their names, once each")
    equal(relay.stop(), -signal.SIGTERM, "limits: the relay lives")


def column_changes(client):
    server = Http()
    relay = Relay(D, "--http", server.url())
    write(client, "k", "before")
    ok(within(PATIENCE, lambda: empty(client)), "column: at work")
    client.run(f"ALTER TABLE {MESSAGE[D]} ALTER attempts TYPE bigint")
    write(client, "k", "after")
    ok(within(PATIENCE, lambda: empty(client) or relay.process.poll() is not None), "column: another type")
    equal((server.bodies, relay.stop()), ([b"before", b"after"], -signal.SIGTERM), f"column: it goes on ({relay.said()})")
    client.run(f"ALTER TABLE {MESSAGE[D]} ALTER attempts TYPE integer")


def through_a_pooler(client, port, when):
    """Its server process, which knows what was prepared, is taken by somebody else."""
    holder = Client(D, port=port)

    def hold():
        """True: that of the relay's last fetch."""
        known = client.run("SELECT pid FROM pg_stat_activity WHERE query LIKE '%FROM (SELECT m.id%' AND pid <> pg_backend_pid()")
        holder.rollback()
        holder.begin()
        return holder.run("SELECT pg_backend_pid()")[0] in known
    held = []

    def answer(request):
        if when == "settled" and request.body == b"before":
            held.append(within(PATIENCE, hold))
        return 200
    server = Http(answer)
    relay = Relay(D, "--http", server.url(), host="127.0.0.1", env={"PGPORT": str(port)})
    write(client, "k", "before")
    ok(within(PATIENCE, lambda: empty(client) or relay.process.poll() is not None), f"pooler, {when}: at work")
    if when == "fetched":
        held.append(within(PATIENCE, hold))
    equal(held, [True], f"pooler, {when}: its server process is another's now")
    for n in range(20):
        write(client, f"k{n % 3}", str(n))
    ok(within(PATIENCE, lambda: empty(client) or relay.process.poll() is not None), f"pooler, {when}: all is sent ({relay.said()})")
    equal(len(server.bodies), 21, f"pooler, {when}: once")
    holder.rollback()
    client.run(LATER)
    write(client, "k", "late")
    equal((relay.wait(), "stale" in relay.said()), (123, True), f"pooler, {when}: and the fence is in force")
    client.run(f"DELETE FROM {MESSAGE[D]}")
    forget_relay(client)


apply(D, migration(D))
db = Client(D)
for waits in (False, True):
    stale(db, waits)
    marked(db, waits)
column_changes(db)
with pooler() as pooled:
    for step in ("fetched", "settled"):
        through_a_pooler(db, pooled, step)
limits(db)
done_testing()
