"""traps.py - what goes wrong without the rules of the outbox."""
import signal
import time

from outbox import (DIALECTS, FENCE, KEY, MESSAGE, PATIENCE, Client, Http, Receiver, Relay, admit_everybody, apply, done_testing,
                    empty, equal, forget_relay, migration, ok, rows, within, write)

FAR = {"postgres": "2999-01-01", "sqlite": "2999-01-01T00:00:00.000Z", "mariadb": "2999-01-01"}


def deliver(d, client):
    """What the relay makes of what is there: the payloads, in order."""
    receiver = Receiver()
    relay = Relay(d, command=receiver.command())
    ok(within(PATIENCE, lambda: empty(client)), f"{d}: all is sent")
    relay.stop()
    return receiver.payloads()


def identity_with_cache(client):
    def two_sessions():
        one, two = Client("postgres"), Client("postgres")
        write(one, "k", "before")
        write(two, "k", "A")
        write(one, "k", "B") # after A was committed
        one.close()
        two.close()
        return [p for p in deliver("postgres", client) if p != "before"]
    equal(two_sessions(), ["A", "B"], "identity: without a cache A goes before B")
    client.run(f"ALTER TABLE {MESSAGE['postgres']} ALTER id SET CACHE 50")
    equal(two_sessions(), ["B", "A"], "identity: with a cache B goes first: the trap")
    client.run(f"ALTER TABLE {MESSAGE['postgres']} ALTER id SET CACHE 1")


def cursor(client):
    """A is written first and committed late; B is sent meanwhile. One relay sees all of it."""
    def race(sent_meanwhile, sent_after):
        late, soon = Client("postgres"), Client("postgres")
        late.begin()
        write(late, "a", "A")
        write(soon, "b", "B")
        got = sent_meanwhile()
        late.commit()
        got = sent_after(got)
        for one in (late, soon):
            one.close()
        client.run(f"DELETE FROM {MESSAGE['postgres']}")
        return got
    last = [client.run(f"SELECT coalesce(max(id), 0) FROM {MESSAGE['postgres']}")[0][0]]

    def with_cursor():
        found = rows(client, "id, convert_from(payload, 'UTF8')", f"id > {last[0]}")
        last[0] = max([i for i, _ in found] + last)
        return [payload for _, payload in found]
    equal(race(with_cursor, lambda got: got + with_cursor()), ["B"],
          "cursor: what is committed late, below it, is never sent: the trap")
    receiver = Receiver()
    relay = Relay("postgres", command=receiver.command())

    def when_sent(*wanted):
        ok(within(PATIENCE, lambda: receiver.payloads() == list(wanted) and empty(client)), f"cursor: sent: {wanted}")
        return receiver.payloads()
    equal(race(lambda: when_sent("B"), lambda got: when_sent("B", "A")), ["B", "A"],
          "cursor: fetches that begin at the lowest id send it")
    equal(relay.stop(), -signal.SIGTERM, "cursor: and it was one relay")


def statistics_of_one_row(client):
    """A plan is made when there is one message, and kept; then 100,000 are parked behind ten that failed. What is read is
    counted, by the server."""
    name = MESSAGE["postgres"]
    fetch = (f"SELECT id FROM {name} WHERE not_before < 'infinity' AND not_before <= clock_timestamp() ORDER BY id LIMIT 500")

    def counted():
        """Messages written and deleted; entries of the table and of its indexes that were read."""
        client.run("SELECT pg_stat_force_next_flush()")
        return client.run("SELECT n_tup_ins, n_tup_del, seq_tup_read + (SELECT sum(idx_tup_read)::bigint FROM pg_stat_user_indexes "
                          f"AS i WHERE i.relid = t.relid) FROM pg_stat_user_tables AS t WHERE relid = '{name}'::regclass")[0]
    write(client, "k", "one")
    client.run(f"ALTER TABLE {name} SET (autovacuum_enabled = off)")
    client.run(f"ANALYZE {name}")
    client.run(f"PREPARE usual AS {fetch}")
    client.run("EXECUTE usual")
    receiver = Receiver()
    relay = Relay("postgres", command=receiver.command())
    ok(within(PATIENCE, lambda: receiver.payloads() == ["one"] and counted()[0] == counted()[1]), "statistics: the relay's plans are made")
    client.run(f"INSERT INTO {name} (topic, key, payload, attempts, not_before) SELECT 't', 'poison' || i % 10, 'p', "
               "CASE WHEN i <= 10 THEN 1 ELSE 0 END, CASE WHEN i <= 10 THEN now() + interval '1 hour' ELSE 'infinity' END "
               "FROM generate_series(1, 100000) AS i")

    client.run("SELECT pg_stat_force_next_flush()")
    start = counted()
    for n in range(20):
        write(client, "k", str(n))
    ok(within(PATIENCE, lambda: counted()[1] == start[1] + 20), "statistics: messages are sent beside those that are parked")
    read = counted()[2] - start[2]
    ok(read < 20000, f"statistics: with a plan that was made for one row, too: {read} rows and entries were read")
    equal(receiver.payloads(), ["one"] + [str(n) for n in range(20)], "statistics: all of them")
    plan = "\n".join(line for (line,) in client.run("EXPLAIN (ANALYZE, TIMING off) EXECUTE usual"))
    ok("Seq Scan" in plan and "Removed by Filter: 100000" in plan,
       "statistics: in a session as usual each fetch reads all of them: the trap")
    relay.stop()
    client.run(f"TRUNCATE {name}")
    client.run(f"ALTER TABLE {name} RESET (autovacuum_enabled)")


def message_before_lock(d, client):
    """Two changes of one thing; the messages say which value they left behind."""
    table = "CREATE TABLE thing (k INT PRIMARY KEY, n INT)" + (" ENGINE = InnoDB" if d == "mariadb" else "")
    client.run(table)
    client.run("INSERT INTO thing VALUES (1, 0)")

    def change(one, value):
        one.run(f"UPDATE thing SET n = {value} WHERE k = 1")
    one, two = Client(d), Client(d)
    # Message first: both have their ids before either has the lock.
    one.begin()
    two.begin()
    write(one, "thing", "1")
    write(two, "thing", "2")
    change(two, 2)
    two.commit()
    change(one, 1)
    one.commit()
    value = client.run("SELECT n FROM thing")[0][0]
    equal((deliver(d, client)[-1], value), ("2", 1), f"{d}: message before lock: the last one told is not the last one done: the trap")
    # Lock first: the second waits before it draws its id. It is refused here, as both are in one thread.
    one.begin()
    change(one, 3)
    write(one, "thing", "3")
    one.commit()
    two.begin()
    change(two, 4)
    write(two, "thing", "4")
    two.commit()
    value = client.run("SELECT n FROM thing")[0][0]
    equal((deliver(d, client)[-1], value), ("4", 4), f"{d}: lock before message: it is")
    one.begin()
    change(one, 5)
    two.run("SET lock_timeout = '100ms'" if d == "postgres" else "SET innodb_lock_wait_timeout = 1")
    two.begin()
    try:
        change(two, 6)
        waited = False
    except Exception:
        waited = True
    ok(waited, f"{d}: lock before message: the second cannot even draw an id")
    two.rollback()
    one.rollback()
    for each in (one, two):
        each.close()
    client.run("DROP TABLE thing")


def ids_reused(client):
    """A relay that was frozen between an answer and its deletion deletes by id: that must be nobody else's."""
    def late_deletion(one):
        write(one, "k", "delivered")
        delivered = rows(one)[0][0]
        one.run(f"DELETE FROM {MESSAGE['sqlite']}") # by a later relay
        write(one, "k", "new")
        one.run(f"DELETE FROM {MESSAGE['sqlite']} WHERE id = {delivered}") # by the one that thaws
        return [bytes(p) if isinstance(p, memoryview) else p for (p,) in rows(one, "payload")]
    equal(late_deletion(client), ["new"], "sqlite: ids are not used again")
    client.run(f"DELETE FROM {MESSAGE['sqlite']}")
    equal(apply("sqlite", migration("sqlite").replace(" AUTOINCREMENT", ""), "reused.db"), (0, ""), "sqlite: without AUTOINCREMENT")
    other = Client("sqlite", database="reused.db")
    equal(late_deletion(other), [], "sqlite: a new message is deleted unseen: the trap")
    other.close()


def ids_repeat(d, client):
    """The database is restored while a message is under way: another message has its id when the answer comes."""
    name = MESSAGE[d]
    for answer in (200, 500):
        bodies, again = [], []

        def restore(request, status=answer):
            bodies.append(request.body)
            if request.body == b"old" and not again:
                again.append(1)
                one = Client(d)
                one.run(f"UPDATE {name} SET uid = '{'1' * 32}', payload = 'new'")
                one.close()
                return status
            return 200
        server = Http(restore)
        write(client, "k", "old")
        relay = Relay(d, "--attempts", "1", "--http", server.url())
        ok(within(PATIENCE, lambda: empty(client)), f"{d}: ids repeat, {answer}: all is sent")
        equal(bodies, [b"old", b"new"], f"{d}: ids repeat, {answer}: the message that has an old id, too")
        relay.stop()
        client.run(f"DELETE FROM {name}")


def parked_ids_repeat(d, client):
    """The same for one that waits behind another: the message with its id now is of another key, and is not parked."""
    name, key = MESSAGE[d], KEY[d]
    bodies = []

    def restore(request):
        bodies.append(request.body)
        if request.body != b"bad":
            return 200
        one = Client(d)
        one.run(f"UPDATE {name} SET uid = '{'1' * 32}', {key} = 'other', payload = 'new' WHERE id = {behind}")
        one.close()
        return 500, {"Retry-After": "3600"}
    server = Http(restore)
    write(client, "k", "bad")
    write(client, "k", "behind")
    behind = max(id for (id,) in rows(client, "id"))
    relay = Relay(d, "--http", server.url())
    ok(within(PATIENCE, lambda: b"new" in bodies), f"{d}: ids repeat, parked: who has the id now is sent ({bodies})")
    relay.stop()
    client.run(f"DELETE FROM {name}")


def blocker_ids_repeat(d, client):
    """The same for the one that is waited for: the message with its id now blocks another key and frees none of this."""
    name, key = MESSAGE[d], KEY[d]
    bodies = []

    def restore(request):
        bodies.append(request.body)
        if request.body != b"bad":
            return 200
        one = Client(d)
        one.run(f"UPDATE {name} SET uid = '{'1' * 32}', {key} = 'other', attempts = 1, not_before = '{FAR[d]}' "
                f"WHERE id = {bad}")
        one.close()
        return 500
    server = Http(restore)
    write(client, "k", "bad")
    bad = rows(client)[0][0]
    write(client, "k", "behind")
    relay = Relay(d, "--http", server.url())
    ok(within(PATIENCE, lambda: b"behind" in bodies), f"{d}: ids repeat, blocker: nobody is parked behind a stranger ({bodies})")
    relay.stop()
    client.run(f"DELETE FROM {name}")


def marks_without_fence(d, client):
    """A relay is frozen with a refusal in its hands; a later one is at work when it thaws."""
    def thaw():
        relays = []

        def answer(request):
            relays[0].send(signal.SIGSTOP)
            return 500
        server = Http(answer)
        write(client, "k", "x")
        relays.append(Relay(d, "--attempts", "1", "--ttl", "1m", "--http", server.url()))
        ok(within(PATIENCE, lambda: server.requests and stopped(relays[0].pid)), f"{d}: frozen")
        client.run(f"UPDATE {FENCE[d]} SET token = token + 1000000000") # a later relay
        relays[0].send(signal.SIGCONT)
        within(PATIENCE, lambda: relays[0].process.poll() is not None or rows(client, "id", "attempts > 0"))
        marked = rows(client, "attempts")
        code = relays[0].stop()
        client.run(f"DELETE FROM {MESSAGE[d]}")
        return marked, code
    forget_relay(client)
    equal(thaw(), ([(0,)], 123), f"{d}: with the fence nothing is marked, and it ends")
    forget_relay(client)
    admit_everybody(d, client)
    equal(thaw(), ([(1,)], -signal.SIGTERM), f"{d}: without it a message is dead, and its key blocked: the trap")


def stopped(pid):
    time.sleep(0.05)
    with open(f"/proc/{pid}/stat", encoding="utf8") as file:
        return file.read().rsplit(")", 1)[1].split()[0] == "T"


for dialect in DIALECTS:
    equal(apply(dialect, migration(dialect)), (0, ""), f"{dialect}: the migration runs")
    db = Client(dialect)
    if dialect == "postgres":
        identity_with_cache(db)
        cursor(db)
        statistics_of_one_row(db)
    if dialect == "sqlite":
        db.run("PRAGMA journal_mode = WAL")
        ids_reused(db)
    else:
        message_before_lock(dialect, db)
    ids_repeat(dialect, db)
    parked_ids_repeat(dialect, db)
    blocker_ids_repeat(dialect, db)
    marks_without_fence(dialect, db)
    db.close()
done_testing()
