"""relay.py - what the relay promises, in each database."""
import json
import signal
import threading
from datetime import datetime, timezone

from outbox import (DIALECTS, FENCE, KEY, MESSAGE, PARKED, PATIENCE, Client, Http, Receiver, Relay, apply, done_testing,
                    empty, equal, forget_relay, migration, ok, outbox, rows, url, within, write)

AT_ONCE = {"postgres": "-infinity", "sqlite": "", "mariadb": "1970-01-01 00:00:00"}


def listed(d):
    """What `outbox list` shows."""
    code, text, errors = outbox("list", "--db", url(d), "--json")
    if code != 0:
        print(f"# list: {code}, {errors}")
    return json.loads(text) if code == 0 else []


def order(d, client):
    receiver = Receiver()
    for n in range(300):
        write(client, f"key{n % 7}", str(n))
    relay = Relay(d, command=receiver.command())
    ok(within(PATIENCE, lambda: empty(client)), f"{d}: everything is sent")
    got = receiver.got()
    equal(sorted(int(m["payload"]) for m in got), list(range(300)), f"{d}: all of it, once")
    equal(all(receiver.payloads(f"key{k}") == [str(n) for n in range(300) if n % 7 == k] for k in range(7)), True,
          f"{d}: in order per key")
    write(client, "key1", "late")
    ok(within(PATIENCE, lambda: "late" in receiver.payloads()), f"{d}: and what comes later")
    first = got[0]
    equal((first["topic"], first["attempt"], first["headers"], len(first["uid"]) >= 32),
          ("t", 1, {}, True), f"{d}: a message has topic, attempt, headers, uid")
    token = client.run(f"SELECT token, name FROM {FENCE[d]}")[0]
    equal(token, (first["token"], "main"), f"{d}: the fence has admitted its token")
    equal(relay.stop(), -signal.SIGTERM, f"{d}: it dies of TERM")
    equal(relay.said(), "", f"{d}: and has nothing to say")


def failures(d, client):
    receiver = Receiver()
    receiver.rules({"bad": "retry 1s"})
    for payload in ("bad", "b2", "b3"):
        write(client, "b", payload)
    write(client, "c", "c1")
    relay = Relay(d, "--attempts", "100", command=receiver.command())
    ok(within(PATIENCE, lambda: rows(client, "id", PARKED[d]) and receiver.payloads("c") == ["c1"]),
       f"{d}: behind a message that failed others are parked, and other keys go on")
    # Written after the failure: it comes after those that are parked.
    write(client, "b", "b4")
    ok(within(PATIENCE, lambda: len(rows(client, "id", PARKED[d])) == 3), f"{d}: one that comes later is parked, too")
    equal([(m["key"], m["behind"], m["error"]) for m in listed(d)], [("b", 3, "the command asked for it again")],
          f"{d}: shows what failed, why, and how many are behind it")
    ok(within(PATIENCE, lambda: receiver.payloads("b").count("bad") >= 2), f"{d}: it is tried again")
    equal(set(receiver.payloads("b")), {"bad"}, f"{d}: and nothing before it")
    receiver.rules({})
    ok(within(PATIENCE, lambda: empty(client)), f"{d}: when it is delivered the others follow")
    equal([p for p in receiver.payloads("b") if p != "bad"], ["b2", "b3", "b4"], f"{d}: in order")
    uids = {m["uid"] for m in receiver.got() if m["payload"] == "bad"}
    equal(len(uids), 1, f"{d}: a message that is sent again has the same uid")
    relay.stop()


def slow_key(d, client):
    """One answer is awaited, and more stands behind it than a fetch takes."""
    hold = threading.Event()

    def answer(request):
        if request.body == b"slow":
            hold.wait(2 * PATIENCE)
        return 200
    server = Http(answer)
    write(client, "slow", "slow")
    for n in range(30):
        write(client, "slow", f"s{n}")
    for n in range(30):
        write(client, f"k{n % 3}", f"{n}")
    relay = Relay(d, "--batch", "10", "--timeout", "5m", "--http", server.url())
    ok(within(PATIENCE, lambda: len(server.bodies) >= 31), f"{d}: slow: other keys go on beside it")
    equal([b for b in server.bodies if b[:1] == b"s"], [b"slow"], f"{d}: slow: and nothing behind it")
    hold.set()
    ok(within(PATIENCE, lambda: empty(client)), f"{d}: slow: when it is answered the others follow")
    equal([b for b in server.bodies if b[:1] == b"s"], [b"slow"] + [f"s{n}".encode() for n in range(30)],
          f"{d}: slow: in order")
    equal(all([b for b in server.bodies if b.isdigit() and int(b) % 3 == k] == [str(n).encode() for n in range(k, 30, 3)]
              for k in range(3)), True, f"{d}: slow: and so were those of the other keys")
    relay.stop()


def dead(d, client):
    receiver = Receiver()
    receiver.rules({"bad": "retry 1ms", "bad2": "retry 1ms"})
    for key in ("x", "y"):
        write(client, key, "bad" if key == "x" else "bad2")
        write(client, key, key + "2")
    relay = Relay(d, "--attempts", "3", command=receiver.command())

    def the_dead():
        return [m for m in listed(d) if m["state"] == "dead"]
    ok(within(PATIENCE, lambda: len(the_dead()) == 2), f"{d}: after --attempts it is dead")
    dead_ones = the_dead()
    equal(sorted(receiver.payloads()), ["bad"] * 3 + ["bad2"] * 3, f"{d}: and its key is blocked")
    like = outbox("list", "--db", url(d))[1]
    ok(all(m["uid"] in like for m in dead_ones) and "dead" in like, f"{d}: people see it")
    uid = {m["key"]: m["uid"] for m in dead_ones}
    for words, what in (((uid["x"],), "no reason"), (("--reason", ""), "no uid"),
                        (("--reason", "x", "no'uid"), "a strange uid")):
        equal(outbox("drop", "--db", url(d), *words)[0], 64, f"{d}: drop: {what}")
    equal(outbox("drop", "--db", url(d), "--reason", "x", "0" * 32)[0], 1, f"{d}: drop: no such message")
    equal(outbox("drop", "--db", url(d), "--reason", "it's bad", uid["x"]), (0, "", ""), f"{d}: one is dropped")
    ok(within(PATIENCE, lambda: receiver.payloads("x")[-1] == "x2"), f"{d}: and its key goes on")
    receiver.rules({})
    equal(outbox("retry", "--db", url(d), "--reason", "mended", uid["y"]), (0, "", ""), f"{d}: the other is tried again")
    ok(within(PATIENCE, lambda: empty(client)), f"{d}: and all is sent")
    equal(receiver.payloads("y")[-2:], ["bad2", "y2"], f"{d}: in order")
    kept = client.run("SELECT decision, reason, attempts FROM " + MESSAGE[d].replace(".message", ".settled")
                      if d == "postgres" else "SELECT decision, reason, attempts FROM holdfast_outbox_settled")
    equal(sorted(kept), [("drop", "it's bad", 3), ("retry", "mended", 3)], f"{d}: the reasons are kept")
    relay.stop()


def races_of_people(d, client):
    """Whoever removes a message and whoever parks behind it wait for each other; and what is parked behind nobody is freed
    when a relay begins."""
    receiver = Receiver()
    receiver.rules({"bad": "retry 1h"})
    write(client, "k", "bad")
    write(client, "k", "k2")
    relay = Relay(d, command=receiver.command())
    ok(within(PATIENCE, lambda: len(rows(client, "id", PARKED[d])) == 1), f"{d}: races: one is parked")
    head = rows(client, "id", "attempts > 0")[0][0]
    if d != "sqlite": # where one writes at a time
        person = Client(d, "READ COMMITTED")
        person.begin()
        person.run(f"UPDATE {MESSAGE[d]} SET not_before = '{AT_ONCE[d]}' WHERE attempts = 0 AND {KEY[d]} = 'k'")
        person.run(f"DELETE FROM {MESSAGE[d]} WHERE id = {head}")
        write(client, "k", "k3")
        waits = {"postgres": "SELECT pid FROM pg_stat_activity WHERE wait_event_type = 'Lock'",
                 "mariadb": "SELECT id FROM information_schema.processlist WHERE info LIKE '%holdfast_outbox%FOR UPDATE'"}[d]
        ok(within(PATIENCE, lambda: client.run(waits)), f"{d}: races: the relay waits until the decision is made")
        person.commit()
        ok(within(PATIENCE, lambda: receiver.payloads("k")[-2:] == ["k2", "k3"]), f"{d}: races: and parks nobody behind what is gone")
    relay.stop()
    client.run(f"DELETE FROM {MESSAGE[d]}")
    write(client, "k", "alone")
    client.run(f"UPDATE {MESSAGE[d]} SET not_before = {PARKED[d].split()[2] if d != 'mariadb' else chr(39) + '9999-12-31' + chr(39)}")
    relay = Relay(d, command=receiver.command())
    ok(within(PATIENCE, lambda: "alone" in receiver.payloads()), f"{d}: races: what is parked behind nobody is sent by the next relay")
    relay.stop()
    client.run(f"DELETE FROM {MESSAGE[d]}")


def lock_and_fence(d, client):
    receiver = Receiver()
    relay = Relay(d, command=receiver.command())
    write(client, "a", "1")
    ok(within(PATIENCE, lambda: receiver.payloads() == ["1"]), f"{d}: one relay is at work")
    second = Relay(d, "--no-wait", command=receiver.command())
    equal(second.wait(), 75, f"{d}: another is refused")
    third = Relay(d, "--no-wait", "--name", "other", command=receiver.command())
    equal((third.wait(), "called \"main\"" in third.said()), (64, True), f"{d}: also under another name")
    fourth = Relay(d, "--no-wait", command=receiver.command(), store=f"file:{receiver.folder}/store")
    code = fourth.wait()
    ok(code == 64 and "change of stores" in fourth.said(), f"{d}: and with another store ({code}, {fourth.said()})")
    # A later relay was there: whoever comes back with a lower token changes nothing.
    client.run(f"UPDATE {FENCE[d]} SET token = token + 1000000000")
    receiver.rules({"2": "retry"})
    write(client, "a", "2")
    equal(relay.wait(), 123, f"{d}: a stale relay ends as when its lock is lost")
    ok("stale" in relay.said(), f"{d}: and says so")
    equal(rows(client, "attempts"), [(0,)], f"{d}: and has marked nothing")
    forget_relay(client)
    relay = Relay(d, "--ttl", "2s", command=receiver.command())
    receiver.rules({})
    ok(within(PATIENCE, lambda: empty(client)), f"{d}: the next one sends it")
    relay.stop()


def http(d, client):
    later = (503, {"Retry-After": "3600"})
    server = Http(lambda request: {b"teapot": 418, b"half": "cut", b"later": later}.get(request.body, 204))
    write(client, "k 1", "hello", headers='{"Content-Type": "text/plain", "X-Trace": "a\\u00e4"}')
    write(client, "k2", "teapot")
    write(client, "k2", "behind")
    write(client, "k3", "half")
    write(client, "k5", "later")
    relay = Relay(d, "--http", server.url())
    ok(within(PATIENCE, lambda: len(server.requests) >= 2), f"{d}: http: messages are posted")
    first = [r for r in server.requests if r.body == b"hello"][0].headers
    uid = first["Idempotency-Key"]
    equal((first["Holdfast-Topic"], first["Holdfast-Key"], first["Content-Type"], uid[0] + uid[-1],
           first["X-Trace"].encode("latin1").decode("utf8")),
          ("t", "k%201", "text/plain", '""', "a\u00e4"), f"{d}: http: with the headers")
    equal(int(first["Fencing-Token"]), client.run(f"SELECT token FROM {FENCE[d]}")[0][0], f"{d}: http: and the token")
    ok(within(PATIENCE, lambda: rows(client, "error", "attempts > 0") ==
              [("HTTP status 418",), ("the answer was cut off in its headers",), ("HTTP status 503",)]),
       f"{d}: http: whatever is no success is tried again, also one that was cut off")
    asked = [m for m in listed(d) if m["key"] == "k5"][0]
    wait = datetime.fromisoformat(asked["next"].replace("Z", "+00:00")) - datetime.now(timezone.utc)
    ok(3000 < wait.total_seconds() < 3700, f"{d}: http: no sooner than Retry-After says ({wait})")
    server.answer = lambda request: 200  # before it is asked again, or it would be told to come back in an hour
    outbox("retry", "--db", url(d), "--reason", "test", asked["uid"])
    ok(within(PATIENCE, lambda: empty(client)), f"{d}: http: until it is one")
    equal([b for b in server.bodies if b in (b"teapot", b"behind")][-2:], [b"teapot", b"behind"], f"{d}: http: in order")
    server.answer = lambda request: 412
    write(client, "k3", "stale")
    equal(relay.wait(), 123, f"{d}: http: 412 ends the relay")
    equal(rows(client, "attempts"), [(0,)], f"{d}: http: and marks nothing")
    client.run(f"DELETE FROM {MESSAGE[d]}")
    write(client, "k4", "x", headers='{"Fencing-Token": "1"}')
    relay = Relay(d, "--http", server.url())
    ok(within(PATIENCE, lambda: rows(client, "error") == [("the header Fencing-Token is not the message's to set",)]),
       f"{d}: http: a header that is ours is not sent")
    relay.stop()
    client.run(f"DELETE FROM {MESSAGE[d]}")


def figures(d, client):
    receiver = Receiver()
    receiver.rules({"bad": "retry 1h", "worse": "retry 1ms"})
    events, metrics = receiver.folder + "/events", receiver.folder + "/relay.prom"
    relay = Relay(d, "--events", events, "--metrics", metrics, "--attempts", "2", command=receiver.command())
    for n in range(10):
        write(client, f"k{n}", "good")
    write(client, "b", "bad")
    write(client, "b", "behind")
    write(client, "c", "worse")
    ok(within(PATIENCE, lambda: sorted(rows(client, "attempts")) == [(0,), (1,), (2,)]), f"{d}: figures: at work")
    relay.stop()
    with open(events, encoding="utf8") as file:
        told = [json.loads(line) for line in file]
    last = [e for e in told if e["event"] == "relayed"][-1]
    equal((last["messages"], last["parked"], last["dead_now"], 0 < last["oldest_ms"] < PATIENCE * 1000), (3, 1, 1, True),
          f"{d}: figures: how many are there, and how old they are")
    equal([sum(e.get(name, 0) for e in told if e["event"] == "relayed") for name in ("sent", "retried", "dead")],
          [10, 3, 1], f"{d}: figures: what was done")
    equal([e["event"] for e in told if e["event"] != "relayed"], ["acquired", "released", "ended"],
          f"{d}: figures: and the events of a lock")
    with open(metrics, encoding="utf8") as file:
        kept = {line.split("{")[0]: float(line.split()[-1]) for line in file if line.startswith("holdfast_outbox")}
    equal({k: v for k, v in kept.items() if "oldest" not in k},
          {"holdfast_outbox_messages": 3, "holdfast_outbox_sent_total": 10, "holdfast_outbox_retried_total": 3,
           "holdfast_outbox_dead_total": 1}, f"{d}: figures: for Prometheus")
    ok(kept["holdfast_outbox_oldest_seconds"] > 0, f"{d}: figures: with the age of the oldest")
    client.run(f"DELETE FROM {MESSAGE[d]}")


for dialect in DIALECTS:
    equal(apply(dialect, migration(dialect)), (0, ""), f"{dialect}: the migration runs")
    equal(apply(dialect, migration(dialect)), (0, ""), f"{dialect}: and again")
    db = Client(dialect)
    if dialect == "sqlite":
        db.run("PRAGMA journal_mode = WAL")
    for test in (order, failures, slow_key, dead, races_of_people, lock_and_fence, http, figures):
        test(dialect, db)
done_testing()
