"""verdicts.py - one client after the other: what each call says, and what it refuses."""
import time

from idem import Client, apply, done_testing, effect, equal, in_each_database, migration, ok, once, refused

MIB = 1024 * 1024
NOT_FINISHED = {"postgres": "23503", "sqlite": "FOREIGN KEY constraint failed"}


def effects(client):
    return client.run("SELECT count(*) FROM effect")[0][0]


def with_the_work(d, c):
    client = Client(d)
    equal(once(client, "s", "k1", effect, answer=b"\x00\xff'\\ bytes")[0], "new", f"{d}: the first is new")
    equal(once(client, "s", "k1", effect), ("done", 200, b"\x00\xff'\\ bytes"),
          f"{d}: the second hears status and answer, byte for byte")
    equal(once(client, "s", "k1", effect, fingerprint="g"), ("mismatch", None, None),
          f"{d}: another fingerprint is a mismatch")
    equal(once(client, "t", "k1", effect)[0], "new", f"{d}: another scope is another key")
    for key in ("K1", "k1 ", " k1", "k1\t", "kä", "ka", "k%", "k_"):
        equal(once(client, "s", key, effect)[0], "new", f"{d}: {key!r} is another key")
    equal(effects(client), 10, f"{d}: one effect each")

    client.begin()
    client.claim("s", "k2")
    effect(client)
    client.rollback()
    equal(once(client, "s", "k2", effect)[0], "new", f"{d}: a rollback forgets")
    equal(effects(client), 11, f"{d}: and undoes")
    client.begin()
    client.claim("s", "twice")
    second = refused(client.claim, "s", "twice") if d == "mariadb" else client.claim("s", "twice")[0]
    equal(second, "ZHF14" if d == "mariadb" else "running", f"{d}: claimed twice in one transaction is not new")
    client.rollback()
    client.begin()
    client.claim("s", "empty")
    client.finish("s", "empty", 204, None)
    client.commit()
    equal(once(client, "s", "empty", effect), ("done", 204, None), f"{d}: an answer may be nothing")
    client.begin()
    client.claim("s", "again")
    client.finish("s", "again", 200, b"a")
    equal(refused(client.finish, "s", "again", 500, b"b"), "ZHF11", f"{d}: what is finished is finished")
    client.rollback()


def mistakes(d, c):
    client = Client(d)
    before = effects(client)
    client.begin()
    client.claim("s", "forgot")
    effect(client)
    if d != "mariadb":
        equal(refused(client.commit), NOT_FINISHED[d], f"{d}: claimed but not finished cannot commit")
        if d == "sqlite":
            ok(client.conn.in_transaction, f"{d}: and the transaction stays open")
            client.finish("s", "forgot")
            client.commit()
            before += 1
        else:
            client.rollback()
        equal(refused(client.claim, "s", "auto"), NOT_FINISHED[d], f"{d}: not under autocommit either")
        equal(effects(client), before, f"{d}: nothing of it is there")
    else:
        client.commit()
        other = Client(d)
        for who in (client, other, client):
            equal(refused(once, who, "s", "forgot", effect), "ZHF14",
                  f"{d}: what was committed unfinished is refused")
        equal(refused(other.start, "s", "forgot"), "ZHF14", f"{d}: to start, too")
        other.begin()
        equal(refused(other.finish, "s", "forgot"), "ZHF11", f"{d}: another session cannot finish it")
        other.rollback()
        equal(refused(client.finish, "s", "forgot"), "ZHF11", f"{d}: nor is it finished under autocommit")
        client.run("INSERT INTO effect VALUES (9)")
        client.run("DELETE FROM effect WHERE n = 9")
        equal(refused(client.finish, "s", "forgot"), "ZHF11", f"{d}: not even after a statement that changed one row")
        client.begin()
        client.claim("s", "beside")
        refused(client.claim, "s", "forgot")
        effect(client)
        for key in ("forgot", "beside"):
            equal(refused(client.finish, "s", key), "ZHF11",
                  f"{d}: who is refused and works all the same is stopped by finish ({key})")
        client.rollback()
        client.begin()
        refused(client.start, "s", "forgot")
        equal(refused(client.finish, "s", "forgot"), "ZHF11", f"{d}: after start, too")
        client.rollback()
        equal(effects(client), before + 1, f"{d}: never a second effect")
        ok(refused(client.call, "forget", "s", "forgot", "") is not None, f"{d}: forget wants a reason")
        client.call("forget", "s", "forgot", "the order was deleted")
        equal(client.run("SELECT scope, `key`, reason FROM holdfast_idem_forgotten"),
              [(b"s", b"forgot", "the order was deleted")], f"{d}: which is on record")
        equal(once(client, "s", "forgot", effect)[0], "new", f"{d}: then the key is free")
        equal(refused(client.call, "forget", "s", "forgot", "x"), "ZHF11",
              f"{d}: what is finished cannot be forgotten")
        equal(refused(client.claim, "s", "auto"), "ZHF15", f"{d}: no claim outside a transaction")
        client.conn.autocommit(False)
        equal(client.claim("s", "auto")[0], "new", f"{d}: autocommit = 0 is a transaction")
        client.rollback()

    started = Client(d)
    started.start("s", "started")
    client = Client(d)
    for key, fingerprint, state in (("started", "f", "running"), ("started", "g", "mismatch"),
                                    ("k1", "g", "mismatch")):
        client.begin()
        equal(client.claim("s", key, fingerprint)[0], state, f"{d}: {state}")
        effect(client)
        equal(refused(client.finish, "s", key), "ZHF11", f"{d}: who works all the same is stopped by finish")
        client.rollback()
    client.begin()
    equal(refused(client.finish, "s", "never claimed"), "ZHF11", f"{d}: nothing is finished that was not claimed")
    client.rollback()


def savepoints(d, c):
    client = Client(d)
    client.begin()
    client.run("SAVEPOINT a")
    client.claim("s", "sp")
    client.run("ROLLBACK TO SAVEPOINT a")
    if d != "sqlite":
        other = Client(d)
        other.begin()
        equal(other.claim("s", "sp")[0], "new", f"{d}: rolled back to a savepoint, a claim is free at once")
        other.rollback()
    equal(client.claim("s", "sp")[0], "new", f"{d}: for oneself, too")
    client.run("SAVEPOINT b")
    client.finish("s", "sp")
    client.run("ROLLBACK TO SAVEPOINT b")
    if d == "mariadb":
        client.commit()
        equal(refused(once, client, "s", "sp", effect), "ZHF14", f"{d}: a finish that was rolled back is none")
        client.call("forget", "s", "sp", "test")
    else:
        equal(refused(client.commit), NOT_FINISHED[d], f"{d}: a finish that was rolled back cannot commit")
        client.rollback() if d == "sqlite" else None
    client.close()


def attempts(d, c):
    client = Client(d)
    state, first, remaining, status, answer = client.start("a", "k", lease=1)
    equal((state, remaining, status, answer), ("new", None, None, None), f"{d}: an attempt is new")
    state, second, remaining, _, _ = client.start("a", "k", lease=1)
    equal((state, second), ("running", None), f"{d}: a second one hears that it runs")
    ok(1 <= remaining <= 2, f"{d}: and for how long ({remaining})")
    equal(client.start("a", "k", "g")[0], "mismatch", f"{d}: started is committed: another fingerprint mismatches")
    time.sleep(1.1)
    state, second, _, _, _ = client.start("a", "k", lease=30)
    equal(state, "new", f"{d}: when the lease is over it is taken over")
    ok(second > first, f"{d}: with a higher attempt")
    equal(refused(client.finish_attempt, "a", "k", first), "ZHF11", f"{d}: the old attempt finishes nothing")
    equal(refused(client.release, "a", "k", first), "ZHF11", f"{d}: and releases nothing")
    client.finish_attempt("a", "k", second, 201, b"paid")
    client.finish_attempt("a", "k", second, 201, b"paid")
    ok(True, f"{d}: the same answer again is no error")
    for status, answer in ((200, b"paid"), (201, b"Paid"), (201, None)):
        equal(refused(client.finish_attempt, "a", "k", second, status, answer), "ZHF11",
              f"{d}: another one is")
    equal(refused(client.release, "a", "k", second), "ZHF11", f"{d}: what is finished is not released")
    equal(client.start("a", "k"), ("done", None, None, 201, b"paid"), f"{d}: start says that it is done")
    equal(once(client, "a", "k", effect), ("done", 201, b"paid"), f"{d}: and so does claim")
    _, third, *_ = client.start("a", "k3")
    client.release("a", "k3", third)
    equal(client.start("a", "k3", "other")[0], "new", f"{d}: what was released starts at once")
    client.begin()
    client.claim("a", "k4")
    client.finish("a", "k4")
    client.commit()
    equal(refused(client.finish_attempt, "a", "k4", third), "ZHF11", f"{d}: a claimed key has no attempt")
    equal(refused(client.finish_attempt, "a", "k4", None), "ZHF11", f"{d}: not even NULL")

    # A purged key runs again, and its old attempt stays old.
    client.purge(0)
    equal(client.run(f"SELECT count(*) FROM {client.table()} WHERE finished_at IS NOT NULL")[0][0], 0,
          f"{d}: purge removes what is finished")
    ok(client.run(f"SELECT count(*) FROM {client.table()}")[0][0] > 0, f"{d}: and nothing else")
    _, fourth, *_ = client.start("a", "k")
    ok(fourth > second, f"{d}: after a purge attempts go on")
    for old in (first, second, third):
        equal(refused(client.finish_attempt, "a", "k", old), "ZHF11", f"{d}: an old attempt cannot finish a new one")


def purging(d, c):
    client = Client(d)
    client.run(f"DELETE FROM {client.table()}")
    for n in range(5):
        once(client, "p", f"k{n}", effect)
    client.purge(3600)
    equal(client.run(f"SELECT count(*) FROM {client.table()}")[0][0], 5, f"{d}: younger ones are kept")
    client.call("purge", None, 10) if d != "postgres" else client.run('SELECT "holdfast_idem".purge()')
    equal(client.run(f"SELECT count(*) FROM {client.table()}")[0][0], 5, f"{d}: as --keep says")
    client.purge(0, 2)
    keys = client.run(f"SELECT {'`key`' if d == 'mariadb' else 'key'} FROM {client.table()} ORDER BY 1")
    equal([k[0] if isinstance(k[0], str) else k[0].decode() for k in keys], ["k2", "k3", "k4"],
          f"{d}: the oldest go first, and not more than asked")
    for bad in ((-1, 10), (0, 0), (0, None)):
        equal(refused(client.purge, *bad), "ZHF15", f"{d}: purge{bad} is refused")


def bad_input(d, c):
    client = Client(d)
    nul = {"postgres": None, "mariadb": "a\0b", "sqlite": "a\0b"}[d]
    for what, args in (("an empty scope", ("", "k", "f")), ("an empty key", ("s", "", "f")),
                       ("a scope of 256 bytes", ("x" * 256, "k", "f")),
                       ("a key of 256 bytes", ("s", "ä" * 128, "f")), ("no key", ("s", None, "f")),
                       ("no scope", (None, "k", "f")), ("no fingerprint", ("s", "k", None)),
                       ("a fingerprint of 65 bytes", ("s", "k", "x" * 65)),
                       ("a key with NUL", ("s", nul, "f"))):
        for call in ("claim", "start"):
            client.begin()
            equal(refused(getattr(client, call), *args), "ZHF15", f"{d}: {call}: {what} is refused")
            client.rollback()
    if d == "postgres":
        equal(refused(client.run, r"SELECT holdfast_idem.claim('s', E'a\x00b', 'f')"), "22021",
              f"{d}: a key with NUL is refused by the server itself")
    for lease in (0, -1, 604801):
        equal(refused(client.start, "s", "lease", "f", lease), "ZHF15", f"{d}: a lease of {lease}s is refused")
    equal(refused(client.call, "start", "s", "lease", "f", None), "ZHF15", f"{d}: a lease of NULL, too")
    client.begin()
    equal(client.claim("x" * 255, "ä" * 127 + "x", "x" * 64)[0], "new", f"{d}: the longest of each")
    client.finish("x" * 255, "ä" * 127 + "x", 200, b"x" * MIB)
    client.commit()
    equal(once(client, "x" * 255, "ä" * 127 + "x", effect, "x" * 64)[2], b"x" * MIB, f"{d}: 1 MiB of answer")
    client.begin()
    client.claim("s", "large", "")
    equal(refused(client.finish, "s", "large", 200, b"x" * (MIB + 1)), "ZHF15", f"{d}: not a byte more")
    client.rollback()
    client.begin()
    client.claim("s", "large", "")
    equal(refused(client.finish, "s", "large", None, b""), "ZHF15", f"{d}: a status is not NULL")
    client.rollback()
    _, attempt, *_ = client.start("s", "large2")
    equal(refused(client.finish_attempt, "s", "large2", attempt, 200, b"x" * (MIB + 1)), "ZHF15",
          f"{d}: nor of an attempt")
    if d == "sqlite":
        for key in (1, 1.5, b"bytes"):
            equal(refused(client.claim, "s", key), "ZHF15", f"{d}: {key!r} is no text")
        off = Client(d)
        off.run("PRAGMA foreign_keys = OFF")
        off.begin()
        equal(refused(off.claim, "s", "off"), "ZHF15", f"{d}: foreign_keys = OFF is refused")
        off.rollback()
        # A copy of the schema without its rows.
        copy = Client(d, database="copy.db")
        for (statement,) in client.run("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL"):
            copy.run(statement)
        equal(refused(copy.start, "s", "copied"), "ZHF15", f"{d}: without the pack's own rows nothing starts")
        copy.run("PRAGMA foreign_keys = OFF")
        equal(refused(copy.claim, "s", "copied"), "ZHF15", f"{d}: nor is foreign_keys = OFF overlooked")
        equal(apply(d, migration(d), "copy.db"), (0, ""), f"{d}: the migration mends it")
        copy.run("PRAGMA foreign_keys = ON")
        equal(copy.start("s", "copied")[:2], ("new", 1), f"{d}: and it works")
        off.run("PRAGMA trusted_schema = OFF")
        off.run("PRAGMA foreign_keys = ON")
        equal(once(off, "s", "untrusted", effect)[0], "new", f"{d}: an untrusted schema works")
        for verb in ("OR REPLACE", "OR IGNORE"):
            client.begin()
            client.run(f"INSERT {verb} INTO holdfast_claim VALUES ('s', 'untrusted', 'g')")
            client.run(f"INSERT {verb} INTO holdfast_claim VALUES ('s', 'untrusted', 'f')")
            equal(client.run("SELECT state FROM holdfast_verdict"), [("done",)], f"{d}: INSERT {verb} changes nothing")
            client.rollback()
    if d == "mariadb":
        client.run("SET SESSION sql_mode = ''")
        client.begin()
        equal(refused(client.claim, "s", "x" * 256), "ZHF15", f"{d}: without a strict mode, too")
        client.rollback()


in_each_database(with_the_work, mistakes, savepoints, attempts, purging, bad_input)
done_testing()
