"""storm.py - many clients and faults; then the effects are counted."""
import os
import random
import signal
import time

from idem import Client, LEVELS, Refused, apply, done_testing, equal, migration, ok

CLIENTS = 8
KEYS = 300
LIMIT = 200 # seconds for all


class Mishap(Exception):
    """The client gave up in the middle."""


def mishap(client):
    """What goes wrong between the effect and the finish."""
    dice = random.random()
    if dice < 0.02:
        os.kill(os.getpid(), signal.SIGKILL)
    if dice < 0.06:
        client.close()
        raise Mishap
    if dice < 0.15:
        client.rollback()
        raise Mishap
    return dice < 0.20 # forgets to finish


def one(client, key, keyed):
    """One try; True if the key is settled."""
    client.begin()
    if not keyed: # what people write first: look, then work
        known = client.run("SELECT count(*) FROM effect WHERE k = ?", (key,))[0][0]
        time.sleep(random.random() / 500)
        if known == 0:
            client.run("INSERT INTO effect VALUES (?)", (key,))
        client.commit()
        return True
    state = client.claim("storm", key)[0]
    if state != "new":
        client.rollback()
        return state == "done"
    client.run("INSERT INTO effect VALUES (?)", (key,))
    if not mishap(client):
        client.finish("storm", key)
    client.commit()
    return True


def worker(d, level, seed, keyed, end):
    random.seed(seed)
    keys = [f"key{n}" for n in range(KEYS)]
    random.shuffle(keys)
    client = Client(d, level)
    while keys and time.monotonic() < end:
        key = keys[-1]
        try:
            if one(client, key, keyed):
                keys.pop()
            else:
                random.shuffle(keys)
        except Mishap:
            pass
        except Refused as error:
            if error.code == "ZHF14": # committed unfinished: MariaDB, for good
                keys.pop()
            elif error.code not in ("23503", "FOREIGN KEY constraint failed", "40001", 1213, 1020,
                                    "database is locked"):
                os.write(2, f"{d}: {error}\n".encode())
                os._exit(2)
            try:
                client.rollback()
            except Refused:
                pass
        try:
            client.run("SELECT 1")
        except Exception: # it was closed
            client = Client(d, level)
    os._exit(1 if keys else 0)


def storm(d, level, keyed, end):
    """Starts the clients, and those that were killed again. Their worst exit code, and how many were killed."""
    living, killed, worst = {}, 0, 0
    for seed in range(CLIENTS):
        living[spawn(d, level, seed, keyed, end)] = seed
    while living:
        pid, status = os.waitpid(-1, 0)
        seed = living.pop(pid)
        if os.WIFSIGNALED(status):
            killed += 1
            living[spawn(d, level, seed + 1000, keyed, end)] = seed + 1000
        else:
            worst = max(worst, os.WEXITSTATUS(status))
    return worst, killed


def spawn(d, level, seed, keyed, end):
    pid = os.fork()
    if pid == 0:
        worker(d, level, seed, keyed, end)
    return pid


def effects(client):
    return client.run("SELECT count(*), count(DISTINCT k) FROM effect")[0]


finish_by = time.monotonic() + LIMIT
for dialect, levels in LEVELS.items():
    client = Client(dialect)
    client.run("CREATE TABLE effect (k VARCHAR(20))" + (" ENGINE = InnoDB" if dialect == "mariadb" else ""))
    client.run("CREATE INDEX effect_k ON effect (k)")
    if dialect == "sqlite":
        client.run("PRAGMA journal_mode = WAL")
    equal(apply(dialect, migration(dialect)), (0, ""), f"{dialect}: the migration runs")
    for isolation in levels:
        who = f"{dialect}, {isolation}" if isolation else dialect
        client.close()
        code, killed = storm(dialect, isolation, True, finish_by)
        client = Client(dialect)
        equal(code, 0, f"{who}: every client saw every key settled")
        equal(effects(client), (KEYS, KEYS), f"{who}: as many effects as keys")
        ok(killed > 0, f"{who}: {killed} clients were killed")
        client.run("DELETE FROM effect")
        client.run("DELETE FROM " + client.table())
    # The control: SQLite lets one in at a time, also without keys.
    if dialect != "sqlite":
        client.close()
        storm(dialect, "READ COMMITTED", False, finish_by)
        client = Client(dialect)
        ok(effects(client)[0] > KEYS, f"{dialect}: without keys {effects(client)[0]} effects of {KEYS}")
done_testing()
