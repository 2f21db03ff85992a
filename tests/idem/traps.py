"""traps.py - the migration with one rule taken out, beside the migration as it is.

Each trap returns what went wrong. That must be True without the rule, and False with it.
"""
import re
import time

from idem import Client, Refused, apply, done_testing, equal, migration, ok, once, refused

number = 0


def without(d, *changes):
    """A database of its own with the changed migration; changes are (pattern, replacement)."""
    global number
    number += 1
    text = migration(d)
    for pattern, new in changes:
        text, hits = re.subn(pattern, lambda m, new=new: new, text, flags=re.S)
        if hits == 0:
            ok(False, f"{d}: nothing in the migration looks like {pattern}")
    name = f"trap{number}" + (".db" if d == "sqlite" else "")
    if d != "sqlite":
        Client(d).run(f"CREATE DATABASE {name}")
    equal(apply(d, text, name), (0, ""), f"{d}: the migration {'with a rule taken out' if changes else 'as it is'}")
    Client(d, database=name).run("CREATE TABLE effect (n INT)")
    return name


def trap(d, rule, went_wrong, *changes):
    ok(went_wrong(without(d, *changes)), f"{d}: without it: {rule}")
    ok(not went_wrong(without(d)), f"{d}: and with it that does not happen")


def impatient(d, database, level=""):
    client = Client(d, level, database=database)
    client.run("SET lock_timeout = '2s'" if d == "postgres" else "SET innodb_lock_wait_timeout = 2")
    return client


def old_attempt_finishes(d):
    def went_wrong(database):
        client = Client(d, database=database)
        _, old, *_ = client.start("s", "k", lease=0.05)
        time.sleep(0.1)
        _, second, *_ = client.start("s", "k")
        client.finish_attempt("s", "k", second)
        client.purge(0)
        client.start("s", "k") # a new life of the key
        return refused(client.finish_attempt, "s", "k", old) is None
    return went_wrong


def waits(d):
    """A claim waits for another one: crosswise that is a deadlock."""
    def went_wrong(database):
        a, b = impatient(d, database), impatient(d, database)
        a.begin()
        a.claim("s", "k")
        b.begin()
        try:
            return b.claim("s", "k")[0] != "running"
        except Refused:
            return True
        finally:
            a.rollback()
            b.rollback()
    return went_wrong


def replays_hinder(d):
    def went_wrong(database):
        clients = [impatient(d, database) for _ in range(4)]
        once(clients[0], "s", "k", lambda c: None)
        states = []
        for client in clients:
            client.begin()
            states.append(client.claim("s", "k")[0])
        for client in clients:
            client.rollback()
        return states != ["done"] * 4
    return went_wrong


def one_row_of_statistics(database):
    """A pooled connection plans while there is one row, and goes on so with 3,000."""
    client, other = Client("postgres", database=database), Client("postgres", database=database)
    once(client, "s", "first", lambda c: None)
    other.run("ALTER TABLE holdfast_idem.entry SET (autovacuum_enabled = off)")
    other.run("ANALYZE holdfast_idem.entry")
    pooled = Client("postgres", database=database)
    pooled.run("SET stats_fetch_consistency = none")
    for n in range(8):
        once(pooled, "s", f"k{n}", lambda c: None)
    other.run("INSERT INTO holdfast_idem.entry (scope, key, fingerprint, status, finished_at) "
              "SELECT 's', 'x' || n, '', 200, now() FROM generate_series(1, 3000) AS n")
    other.run("SELECT pg_stat_reset()")
    for n in range(8):
        once(pooled, "s", f"x{n}", lambda c: None, fingerprint="")
    pooled.close()
    end = time.monotonic() + 20
    while time.monotonic() < end: # what a session did is told when it ends
        scans = other.run("SELECT seq_scan, idx_scan FROM pg_stat_user_tables WHERE relname = 'entry'")[0]
        if sum(scans) >= 8:
            return scans[0] > 0
        time.sleep(0.05)
    raise Refused("no statistics", str(scans))


def lease_counts_from_begin(database):
    client, other = (Client("postgres", database=database) for _ in range(2))
    client.begin()
    client.run("SELECT 1")
    time.sleep(1.1)
    client.start("s", "k", lease=1)
    client.commit()
    return other.start("s", "k")[0] == "new"


def forgotten_finish_commits(d):
    def went_wrong(database):
        client = Client(d, database=database)
        client.begin()
        client.claim("s", "k")
        client.run("INSERT INTO effect VALUES (1)")
        if refused(client.commit) is not None:
            client.rollback()
        return client.run("SELECT count(*) FROM effect")[0][0] > 0
    return went_wrong


def foreign_keys_off(database):
    client = Client("sqlite", database=database)
    client.run("PRAGMA foreign_keys = OFF")
    client.begin()
    if refused(client.claim, "s", "k") is None:
        client.run("INSERT INTO effect VALUES (1)")
    client.commit()
    return client.run("SELECT count(*) FROM effect")[0][0] > 0


def two_keys_become_one(database):
    client = Client("mariadb", database=database)
    client.run("SET SESSION sql_mode = ''")
    states = []
    for end in "ab":
        try:
            states.append(once(client, "s", "x" * 255 + end, lambda c: None)[0])
        except Refused as error:
            states.append(error.code)
    return states[1] == "done"


def spaces_do_not_count(database):
    client = Client("mariadb", database=database)
    once(client, "s", "k", lambda c: None)
    return once(client, "s", "k ", lambda c: None)[0] != "new"


def claim_decides_what_is_seen(database):
    """REPEATABLE READ: what another commits between our claim and our first read must be seen, as it is
    when the fence is entered in between."""
    a, b = (Client("mariadb", "REPEATABLE READ", database=database) for _ in range(2))
    a.begin()
    a.claim("s", "k")
    b.run("INSERT INTO effect VALUES (1)")
    seen = a.run("SELECT count(*) FROM effect")[0][0]
    a.rollback()
    return seen == 0


def autocommit_leaves_keys(database):
    client = Client("mariadb", database=database)
    refused(client.claim, "s", "k")
    return client.run("SELECT count(*) FROM holdfast_idem")[0][0] > 0


def second_effect(database):
    client = Client("mariadb", database=database)
    client.begin()
    client.claim("s", "k")
    client.run("INSERT INTO effect VALUES (1)")
    client.commit()
    try:
        once(client, "s", "k", lambda c: c.run("INSERT INTO effect VALUES (1)"))
    except Refused:
        client.rollback()
    return client.run("SELECT count(*) FROM effect")[0][0] > 1


def purge_keeps_claims_out(database):
    """While an open transaction has purged, others claim."""
    owner = Client("mariadb", database=database)
    for n in range(3):
        once(owner, "s", f"k{n}", lambda c: None)
    owner.begin()
    owner.purge(0)
    client = impatient("mariadb", database)
    states = []
    for key in ("a", "k00", "z"):
        client.begin()
        states.append(client.claim("s", key)[0])
        client.rollback()
    owner.rollback()
    return states != ["new"] * 3


# ---- attempts counted per key ----
trap("postgres", "attempts counted per key: an old one finishes a new one", old_attempt_finishes("postgres"),
     (r"pg_catalog\.nextval\('attempt_number'\)", "coalesce(e.attempt, 0) + 1"))
trap("sqlite", "attempts counted per key", old_attempt_finishes("sqlite"),
     (r"attempt = \(SELECT last FROM holdfast_idem_attempt\)", "attempt = coalesce(attempt, 0) + 1"))
trap("mariadb", "attempts counted per key", old_attempt_finishes("mariadb"),
     (r"SET the_attempt = NEXTVAL\(holdfast_idem_attempt\)",
      "SET the_attempt = 1 + COALESCE((SELECT attempt FROM holdfast_idem WHERE scope = the_scope AND `key` = the_key), 0)"))

# ---- nobody waits ----
trap("postgres", "no advisory lock: claims wait for each other", waits("postgres"),
     (r"IF NOT pg_try_advisory_xact_lock\(.*?\) THEN", "IF false THEN"))
trap("mariadb", "the usual lock timeout: claims wait for each other", waits("mariadb"),
     (r"SET STATEMENT innodb_lock_wait_timeout = 0 FOR", ""), (r"FOR 1205", "FOR 1999"))
trap("postgres", "the lock before the read: replays call each other running", replays_hinder("postgres"),
     (r"(?<=END IF;\n)    SELECT e\.\* INTO known FROM entry AS e WHERE e\.scope = claim\.scope AND e\.key = claim\.key;\n"
      r"    IF NOT FOUND THEN", "    IF true THEN"))
trap("mariadb", "an exclusive lock on what is known: the same", replays_hinder("mariadb"),
     ("LOCK IN SHARE MODE", "FOR UPDATE"))
trap("mariadb", "a purge that deletes a range keeps claims out", purge_keeps_claims_out,
     (r"OPEN old;.*?CLOSE old;", "DELETE FROM holdfast_idem WHERE finished_at < border ORDER BY finished_at LIMIT at_most;"))

# ---- plans and clocks ----
trap("postgres", "statistics of one row: every claim of a pooled connection reads the whole table",
     one_row_of_statistics, (r" SET enable_seqscan = off", ""))
trap("postgres", "now() for the lease: one that ends before it begins", lease_counts_from_begin,
     (r"clock_timestamp\(\) \+ start\.lease", "now() + start.lease"))

# ---- forgotten finishes ----
trap("postgres", "no deferred key: a forgotten finish is committed", forgotten_finish_commits("postgres"),
     (r" CONSTRAINT claimed_but_not_finished\s+REFERENCES \S+ DEFERRABLE INITIALLY DEFERRED", ""))
trap("sqlite", "no deferred key: a forgotten finish is committed", forgotten_finish_commits("sqlite"),
     (r"REFERENCES holdfast_idem_nothing \(id\) DEFERRABLE INITIALLY DEFERRED", "CHECK (1)"))
trap("sqlite", "no probe: a connection without foreign keys commits it", foreign_keys_off,
     (r"CASE WHEN probe = id THEN 1 ELSE RAISE\(ABORT,\s+'holdfast invalid: PRAGMA foreign_keys[^']*'\) END", "1"))
trap("mariadb", "autocommit: a claim is committed at once", autocommit_leaves_keys,
     (r"IF @@autocommit = 1 AND @@in_transaction = 0 THEN", "IF FALSE THEN"))
trap("mariadb", "a key that was committed unfinished is taken for free: a second effect", second_effect,
     (r"SET @holdfast_idem = NULL;\s+SIGNAL SQLSTATE 'ZHF14' SET MESSAGE_TEXT =\s+'[^']*';",
      "UPDATE holdfast_idem SET claimed = @holdfast_idem WHERE scope = the_scope AND `key` = the_key;"
      " SET the_state = 'new';"))

# ---- MariaDB's ways with text and snapshots ----
trap("mariadb", "arguments of VARCHAR(255): two long keys become one", two_keys_become_one,
     (r"IN the_key LONGBLOB", "IN the_key VARCHAR(255)"))
trap("mariadb", "keys as text: a space at the end does not count", spaces_do_not_count,
     (r"`key`       VARBINARY\(255\) NOT NULL,\n    fingerprint VARBINARY\(64\) NOT NULL,\n    claimed",
      "`key` VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,\n"
      "    fingerprint VARBINARY(64) NOT NULL,\n    claimed"))
trap("mariadb", "a plain read in claim decides what the transaction sees", claim_decides_what_is_seen,
     (r"    SET @holdfast_idem = COALESCE\(@holdfast_idem, UUID\(\)\);",
      "    SET @holdfast_idem = COALESCE(@holdfast_idem, UUID());\n"
      "    SELECT COUNT(*) INTO @n FROM holdfast_idem WHERE scope = the_scope AND `key` = the_key;"))
done_testing()
