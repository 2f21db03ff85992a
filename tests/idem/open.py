"""open.py - several transactions at once, step by step."""
import os
import random
import signal
import subprocess
import time

from idem import (Client, LEVELS, Refused, apply, done_testing, equal, migration, ok, once, pooler, refused,
                  within)

HOLDFAST = os.environ["HOLDFAST"]


def impatient(d, level="", **where):
    """A client that would rather fail than wait."""
    client = Client(d, level, **where)
    if d == "postgres":
        client.run("SET lock_timeout = '5s'")
    else:
        client.run("SET innodb_lock_wait_timeout = 5")
    return client


def effect(client):
    client.run("INSERT INTO effect VALUES (1)")


def nobody_waits(d, level):
    a, b = impatient(d, level), impatient(d, level)
    who = f"{d}, {level}"
    a.begin()
    equal(a.claim("s", "k", "mine")[0], "new", f"{who}: the first is new")
    b.begin()
    equal(b.claim("s", "k", "mine")[0], "running", f"{who}: the second hears that it runs, at once")
    equal(b.claim("s", "k", "other")[0], "running", f"{who}: with another fingerprint, too")
    equal(b.start("s", "k", "mine")[0], "running", f"{who}: and so does start")
    b.rollback()
    a.rollback()
    b.begin()
    equal(b.claim("s", "k", "other")[0], "new", f"{who}: which may win, if the first rolls back")
    b.finish("s", "k")
    a.begin()
    equal(a.claim("s", "k", "other")[0], "running", f"{who}: finished is not committed")
    a.rollback()
    b.commit()
    equal(once(a, "s", "k", effect, "mine")[0], "mismatch", f"{who}: then the other one mismatches")

    a.begin()
    b.begin()
    equal((a.claim("s", "A")[0], b.claim("s", "B")[0]), ("new", "new"), f"{who}: two keys,")
    equal((a.claim("s", "B")[0], b.claim("s", "A")[0]), ("running", "running"), f"{who}: crosswise: no deadlock")
    a.finish("s", "A")
    a.commit()
    b.rollback()

    # Neighbours do not hinder each other.
    clients = [impatient(d, level) for _ in range(6)]
    states = []
    for n, client in enumerate(clients):
        client.begin()
        states.append(client.claim("n", f"k{(n * 5) % 6}")[0])
    equal(states, ["new"] * 6, f"{who}: keys side by side are all new")
    for n, client in enumerate(clients):
        key = f"k{(n * 5) % 6}"
        try:
            client.finish("n", key)
            client.commit()
        except Refused as error: # SERIALIZABLE looks at whole pages of an index
            client.rollback()
            ok(error.code == "40001" and level == "SERIALIZABLE", f"{who}: to be repeated: {error.code}")
            once(client, "n", key, lambda mine: None)

    # Replays at once, each with its transaction open.
    states = []
    for client in clients:
        client.begin()
        states.append(client.claim("n", "k3")[0])
    states += [client.claim("n", f"x{n}")[0] for n, client in enumerate(clients)]
    equal(states, ["done"] * 6 + ["new"] * 6, f"{who}: replays at once are all done, and others go on beside them")
    for client in clients:
        client.rollback()
    states = []
    for client in clients:
        client.begin()
        states.append(client.start("n", "k3")[0])
    equal(states, ["done"] * 6, f"{who}: with start, too")
    for client in clients:
        client.rollback()
        client.close()

    # Finished after our snapshot.
    a.begin()
    a.run("SELECT count(*) FROM effect")
    once(b, "s", "later", lambda client: None)
    if d == "postgres" and level != "READ COMMITTED":
        equal(refused(a.claim, "s", "later"), "40001", f"{who}: finished after the snapshot: repeat the transaction")
        a.rollback()
        a.begin()
    equal(a.claim("s", "later")[0], "done", f"{who}: finished meanwhile is done")
    a.rollback()
    a.close()
    b.close()


def attempts(d):
    a, b = impatient(d), impatient(d)
    a.begin()
    equal(a.start("t", "k", lease=0.2)[0], "new", f"{d}: start")
    b.begin()
    equal(b.start("t", "k")[:3], ("running", None, 1), f"{d}: not committed, it runs for the others")
    b.rollback()
    a.commit()
    time.sleep(0.3)
    a.begin()
    b.begin()
    states = sorted([a.start("t", "k")[0], b.start("t", "k")[0]])
    equal(states, ["new", "running"], f"{d}: one of two takes over a lease that is over")
    a.rollback()
    b.rollback()
    # A lease counts from the call, however old the transaction is.
    a.begin()
    a.run("SELECT count(*) FROM effect")
    time.sleep(1.2)
    a.start("t", "k2", lease=1)
    a.commit()
    equal(b.start("t", "k2")[0], "running", f"{d}: the lease counts from the call, not from BEGIN")


def purging(d):
    owner, client = Client(d), impatient(d)
    once(client, "old", "k", lambda mine: None)
    owner.begin()
    owner.purge(0)
    client.begin()
    ok(client.claim("old", "k")[0] in ("done", "running"), f"{d}: a claim does not wait for an open purge")
    equal(client.claim("old", "other")[0], "new", f"{d}: and other keys do not mind it")
    client.rollback()
    owner.rollback()

    # An open replay: where it locks its key (MariaDB), that is left for the next purge.
    once(client, "old", "l", lambda mine: None)
    client.begin()
    client.claim("old", "k")
    owner = impatient(d)
    gone = owner.call("purge", "0s" if d == "postgres" else 0, 1000)
    equal(gone, (1 if d == "mariadb" else 2,), f"{d}: a purge does not wait for an open replay")
    other = impatient(d)
    equal(once(other, "old", "l", lambda mine: None)[0], "new", f"{d}: and removes the other keys")
    if d == "mariadb":
        equal(client.claim("old", "k")[0], "done", f"{d}: the replay goes on")
    client.rollback()


def holder(d, level=""):
    """A process that has claimed; what it says later can be read."""
    ready_r, ready_w = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(ready_r)
        client = Client(d, level)
        if d == "mariadb":
            client.run("SET idle_write_transaction_timeout = 3")
        else:
            client.run("SET idle_in_transaction_session_timeout = '3s'")
        client.begin()
        client.claim("h", "k")
        effect(client)
        os.write(ready_w, b"x")
        time.sleep(60)
        os._exit(0)
    os.close(ready_w)
    os.read(ready_r, 1)
    os.close(ready_r)
    return pid


def death(d):
    client = impatient(d)
    for how in ("kill -9", "frozen"):
        pid = holder(d)
        client.begin()
        equal(client.claim("h", "k")[0], "running", f"{d}: held by a process that will be {how}")
        client.rollback()
        os.kill(pid, signal.SIGKILL if how == "kill -9" else signal.SIGSTOP)

        def free():
            client.begin()
            state = client.claim("h", "k")[0]
            client.rollback()
            return state == "new"
        ok(within(20, free), f"{d}: {how}: the key is free when the server has ended the transaction")
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    equal(client.run("SELECT count(*) FROM effect WHERE n = 1"), [(0,)], f"{d}: and nothing was done")


def sqlite_waits():
    a, b = Client("sqlite"), Client("sqlite")
    b.run("PRAGMA busy_timeout = 100")
    a.begin()
    a.claim("s", "k")
    equal(refused(b.begin), "database is locked", "sqlite: the busy timeout is the wait")
    a.finish("s", "k")
    a.commit()
    equal(once(b, "s", "k", effect)[0], "done", "sqlite: then it is done")
    pid = os.fork()
    if pid == 0:
        client = Client("sqlite")
        client.begin()
        client.claim("h", "k")
        effect(client)
        os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(pid, 0)
    equal(once(b, "h", "k", lambda client: None)[0], "new", "sqlite: kill -9 frees the key")
    equal(b.run("SELECT count(*) FROM effect"), [(0,)], "sqlite: and nothing was done")


def enter(client, token):
    sql = {"postgres": "CALL holdfast_fence.enter('account', ?)", "mariadb": "CALL holdfast_enter('account', ?)",
           "sqlite": "INSERT INTO holdfast_enter (resource, token) VALUES ('account', ?)"}[client.dialect]
    client.run(sql, (token,))


def with_the_fence(d):
    owner = Client(d)
    owner.run("CREATE TABLE account (id INT PRIMARY KEY, v INT)")
    owner.run("INSERT INTO account VALUES (1, 0)")
    text = subprocess.run([HOLDFAST, "fence", "sql", "--dialect", d, "--table", "account", "--resource", "account"], check=True,
                          stdout=subprocess.PIPE, text=True).stdout
    equal(apply(d, text)[0], 0, f"{d}: a fence beside the keys")
    stale = {"sqlite": "holdfast stale: a higher token was admitted"}.get(d, "ZHF01")

    def deposit(client, key, token):
        client.begin()
        try:
            verdict = client.claim("deposit", key)
            if verdict[0] != "new":
                client.rollback()
                return verdict[0]
            enter(client, token)
            value = client.run("SELECT v FROM account")[0][0]
            client.run("UPDATE account SET v = ?", (value + 1,))
            client.finish("deposit", key)
            if d == "sqlite":
                client.run("DELETE FROM holdfast_entered")
            client.commit()
            return "new"
        except Refused as error:
            client.rollback()
            return "ZHF01" if error.code == stale or error.text.startswith("token") else error.code

    client = Client(d)
    equal(deposit(client, "k1", 34), "new", f"{d}: claim, enter, read, write, finish")
    equal(deposit(client, "k1", 33), "done", f"{d}: finished work hears its answer under a stale token, too")
    equal(deposit(client, "k2", 33), "ZHF01", f"{d}: a new key under a stale token fails in enter")
    equal(deposit(client, "k2", 35), "new", f"{d}: and its key is free")
    equal(client.run("SELECT v FROM account"), [(2,)], f"{d}: one effect each")
    if d == "sqlite":
        return
    # Many at once, every key twice, one token: the claim must not decide what is seen.
    pids = []
    for n in range(4):
        pid = os.fork()
        if pid == 0:
            mine = Client(d)
            for key in range(40):
                for _ in range(100):
                    if deposit(mine, f"m{(key + n * 20) % 80}", 40) in ("new", "done"):
                        break
                    time.sleep(random.random() / 50)
            os._exit(0)
        pids.append(pid)
    for pid in pids:
        os.waitpid(pid, 0)
    equal(client.run("SELECT v FROM account"), [(82,)], f"{d}: no deposit is lost, none is doubled")


def pooled():
    """PgBouncer in transaction mode: each transaction may be on another connection."""
    with pooler() as port:
        clients = [Client("postgres", port=port) for _ in range(6)]
        a, b = clients[:2]
        a.begin()
        states = [a.claim("pool", "k")[0]]
        b.begin()
        states.append(b.claim("pool", "k")[0])
        b.rollback()
        a.finish("pool", "k")
        a.commit()
        states += [once(client, "pool", "k", effect)[0] for client in clients]
        equal(states, ["new", "running"] + ["done"] * 6, "pgbouncer, transaction mode: as without it")
        equal(refused(b.claim, "pool", "auto"), "23503", "pgbouncer: forgotten finishes are refused")


for dialect in ("postgres", "mariadb", "sqlite"):
    Client(dialect).run("CREATE TABLE effect (n INT)")
    equal(apply(dialect, migration(dialect)), (0, ""), f"{dialect}: the migration runs")
    for n, isolation in enumerate(LEVELS[dialect]):
        if dialect != "sqlite":
            nobody_waits(dialect, isolation)
            Client(dialect).run("DELETE FROM " + Client(dialect).table())
    if dialect == "sqlite":
        sqlite_waits()
    else:
        attempts(dialect)
        purging(dialect)
        death(dialect)
    with_the_fence(dialect)
pooled()
done_testing()
