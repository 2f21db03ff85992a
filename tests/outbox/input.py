"""input.py - odd input, in each database."""
import base64
import os
import signal
import subprocess
import time

from outbox import (DIALECTS, FENCE, HOLDFAST, KEY, MESSAGE, PATIENCE, SQL_DIR, Client, Http, Receiver, Refused, Relay, apply,
                    done_testing, empty, equal, migration, ok, outbox, refused, rows, url, within, write)

MIB = 1 << 20


def bounds(d, client):
    def text(error):
        return error.text if isinstance(error, Refused) else str(error)

    def why(*args):
        try:
            write(client, *args)
        except Exception as error: # a driver may refuse a NUL by itself
            return text(error)
        return "accepted"
    for key, what in (("", "empty"), ("x" * 256, "256 bytes"), ("ä" * 128, "256 bytes in 128 letters")):
        ok("key_has_1_to_255_bytes" in why(key, "p"), f"{d}: a key: {what}")
        ok("topic_has_1_to_255_bytes" in why("k", "p", key), f"{d}: a topic: {what}")
    ok("accepted" != why("a\0b", "p"), f"{d}: a key with a NUL")
    ok("payload_has_at_most_10_mib" in why("k", b"x" * (10 * MIB + 1)), f"{d}: a payload of 10 MiB and a byte")
    for headers in ('["a"]', '{"a": "' + "x" * 66000 + '"}'):
        ok("headers_are_an_object" in why("k", "p", "t", headers), f"{d}: headers: {headers[:9]}")
    ok("accepted" != why("k", "p", "t", "no json"), f"{d}: headers that are no JSON")
    for uid in ("order-7", "0" * 31, "0" * 33, "0" * 31 + "A", "0" * 31 + "'"):
        refusal = refused(client.run, f"INSERT INTO {MESSAGE[d]} (topic, {KEY[d]}, payload, uid) VALUES ('t', 'k', 'p', ?)", (uid,))
        ok(refusal is not None or d == "postgres" and uid[-1] == "A", f"{d}: a uid that is none: {uid}")
    client.run(f"DELETE FROM {MESSAGE[d]}") # PostgreSQL takes capitals for small letters
    equal(rows(client), [], f"{d}: nothing of it is there")
    for key in ("x" * 255, "ä" * 127, "a ", "a", "'; DROP TABLE message; --", "\n\"\\"):
        equal(why(key, key.encode()), "accepted", f"{d}: a key that may be")
    receiver = Receiver()
    write(client, "empty", "")
    write(client, "large", b"\xff" * (10 * MIB))
    write(client, "nul", b"a\0b")
    relay = Relay(d, command=receiver.command())
    ok(within(PATIENCE, lambda: empty(client)), f"{d}: all that may be is sent ({relay.said()})")
    got = {m["key"]: m for m in receiver.got()}
    equal(got["empty"]["payload"], "", f"{d}: a message of 0 bytes")
    equal(base64.b64decode(got["large"]["payload_base64"]), b"\xff" * (10 * MIB), f"{d}: one of 10 MiB")
    equal(base64.b64decode(got["nul"]["payload_base64"]), b"a\0b", f"{d}: one with a NUL")
    equal(all(got[k]["payload"] == k for k in ("x" * 255, "ä" * 127, "a ", "a", "\n\"\\")), True, f"{d}: keys are kept as they are")
    relay.stop()
    server = Http()
    write(client, "large", b"\xff" * (10 * MIB))
    write(client, "bad\r\nX-Evil: 1", "x")
    write(client, "empty", "")
    relay = Relay(d, "--http", server.url())
    ok(within(PATIENCE, lambda: empty(client)), f"{d}: by HTTP, too")
    equal(sorted(len(r.body) for r in server.requests), [0, 1, 10 * MIB], f"{d}: with all their bytes")
    equal([r.headers["X-Evil"] for r in server.requests], [None] * 3, f"{d}: a key cannot be a header")
    relay.stop()


def command_misbehaves(d, client):
    """One key for each way, and a good one. The database has no part in it."""
    if d != "sqlite":
        return
    ways = ("twice", "garbage", "die", "deaf", "hang", "silent", "retry 1ms")
    receiver = Receiver()
    receiver.rules({way: way for way in ways})
    for way in ways:
        write(client, way, way)
        write(client, way, "after " + way)
    write(client, "good", "good")

    def again(where="attempts > 0"):
        """Pauses double, even those of messages that only waited behind one that misbehaves: not here."""
        for (uid,) in rows(client, "uid", where):
            outbox("retry", "--db", url(d), "--reason", "test", str(uid))
        return True

    def tried():
        missing = [way for way in ways if way not in receiver.payloads()]
        return not missing or not again(f"attempts > 0 AND {KEY[d]} = '{missing[0]}'")
    # A receiver that asks for 1ms may have had 20 attempts before the others are through.
    relay = Relay(d, "--timeout", "1s", "--attempts", "1000000", command=receiver.command())
    ok(within(PATIENCE, tried), f"{d}: all ways are tried")
    ok(within(PATIENCE, lambda: {e for (e,) in rows(client, "error", "attempts > 0")} >= {
        "the command did not answer within 1s"}), f"{d}: a command that hangs is on record")
    said = relay.said()
    ok("neither \"ok UID\" nor \"retry UID [DELAY]\"" in said or "no such message" in said, f"{d}: what makes no sense is told")
    ok("the command exited with 3" in said, f"{d}: that it died, too")
    equal([p for p in receiver.payloads() if p.startswith("after") and p[6:] not in ("twice", "garbage")], [],
          f"{d}: nothing overtakes a message that failed")
    receiver.rules({})
    ok(within(2 * PATIENCE, lambda: again() and empty(client)), f"{d}: in the end everything is delivered")
    for way in ways:
        first = receiver.payloads(way).index("after " + way)
        ok(way not in receiver.payloads(way)[first:] and way in receiver.payloads(way)[:first], f"{d}: {way}: in order")
    relay.stop()


def busy_for_nothing(d, client):
    """A command that closes its input, or writes without end: the relay does not turn in circles, and hears TERM."""
    if d != "sqlite":
        return

    def seconds(pid):
        with open(f"/proc/{pid}/stat", encoding="utf8") as file:
            return sum(int(n) for n in file.read().rsplit(")", 1)[1].split()[11:13]) / os.sysconf("SC_CLK_TCK")
    for command, bound in ((["sh", "-c", "exec 0<&-; sleep 1000"], 0.5), (["yes"], 9)):
        write(client, "k", "x" * 200000)
        relay = Relay(d, command=command)
        time.sleep(2)
        used = seconds(relay.pid)
        relay.send(signal.SIGTERM)
        ok(used < bound, f"{d}: {command[-1]}: {used}s of work in 2s")
        equal((relay.wait(), rows(client, "attempts")), (-signal.SIGTERM, [(0,)]), f"{d}: {command[-1]}: it hears TERM")
        client.run(f"DELETE FROM {MESSAGE[d]}")


def other_encoding(d, client):
    """Whatever the environment says, a command gets UTF-8."""
    receiver = Receiver()
    write(client, "\u00e4", "p", headers='{"h": "\u00f6"}')
    relay = Relay(d, command=receiver.command(), env={"PGCLIENTENCODING": "LATIN1", "LC_ALL": "C"})
    ok(within(PATIENCE, lambda: empty(client)), f"{d}: an environment with another encoding ({relay.said()})")
    equal([(m["key"], m["headers"]) for m in receiver.got()], [("\u00e4", {"h": "\u00f6"})], f"{d}: a message is UTF-8 all the same")
    relay.stop()


def lenient_json(d, client):
    """MariaDB accepts as JSON what is not JSON. A command gets JSON all the same."""
    if d != "mariadb":
        return
    receiver = Receiver()
    write(client, "k", "p", headers=r'{"a": "\q\\q\"\n", "b": "\u00e4"}')
    relay = Relay(d, command=receiver.command())
    ok(within(PATIENCE, lambda: empty(client)), f"{d}: a header with an odd backslash ({relay.said()})")
    equal([m["headers"] for m in receiver.got()], [{"a": "\\q\\q\"\n", "b": "\u00e4"}], f"{d}: is one with a backslash")
    relay.stop()


def out_of_order(d, client):
    """Eight under way, answered from the last to the first."""
    script = SQL_DIR + "/reverse.py"
    with open(script, "w", encoding="utf8") as file:
        file.write("import json, sys\n"
                   "while True:\n"
                   "    some = [json.loads(sys.stdin.readline() or 'null') for _ in range(8)]\n"
                   "    if None in some: break\n"
                   "    for m in reversed(some): print('ok', m['uid'], flush=True)\n")
    for n in range(64):
        write(client, f"k{n % 8}", str(n))
    relay = Relay(d, command=["/usr/bin/python3", script])
    ok(within(PATIENCE, lambda: empty(client)), f"{d}: answers may come in any order")
    relay.stop()


def cannot_execute(d, client):
    write(client, "k", "p")
    for command, code, words in ((["/nonexistent/cmd"], 127, "command not found"), (["/etc/passwd"], 126, "denied")):
        relay = Relay(d, command=command)
        equal((relay.wait(), words in relay.said()), (code, True), f"{d}: {command[0]}")
    equal(rows(client, "attempts"), [(0,)], f"{d}: and nothing is marked")
    client.run(f"DELETE FROM {MESSAGE[d]}")


def inherits(d, client):
    log = SQL_DIR + "/descriptors"
    relay = Relay(d, command=["sh", "-c", f"ls -l /proc/$$/fd >{log}.new; mv {log}.new {log}; cat >/dev/null"])
    ok(within(PATIENCE, lambda: os.path.exists(log)), f"{d}: a command is started ({relay.said()})")
    with open(log, encoding="utf8") as file:
        inherited = [line for line in file if "socket:" in line or "app.db" in line]
    equal(inherited, [], f"{d}: and inherits no connection")
    os.unlink(log)
    relay.stop()


def secrets(d, client):
    secret = "s3cr3t" + d
    words = {"postgres": f"postgres://owner:{secret}@/postgres?host={SQL_DIR}/pg",
             "mariadb": f"mariadb://root:{secret}@/app?socket={SQL_DIR}/maria/sock"}.get(d)
    if words is None:
        return
    server = Http()
    log = SQL_DIR + "/environment"
    process = subprocess.Popen([HOLDFAST, "outbox", "relay", "--db", words, "--", "sh", "-c", f"env >{log}; cat >/dev/null"],
                               stderr=subprocess.PIPE, text=True)
    if d == "postgres": # which trusts everybody here
        ok(within(PATIENCE, lambda: os.path.exists(log)), f"{d}: a relay with a password")
        with open(f"/proc/{process.pid}/cmdline", "rb") as file:
            ok(secret.encode() not in file.read(), f"{d}: that is not in its command line")
        with open(log, encoding="utf8") as file:
            ok(secret not in file.read(), f"{d}: nor in the environment of the command")
        process.terminate()
    said = process.communicate(timeout=PATIENCE)[1]
    ok(secret not in said, f"{d}: nor in what it says")
    for bad in (words.replace("://", ":/"), words.replace("owner", "ow/ner"), words + "&nonsense=1&x=" + secret):
        code, out, said = outbox("list", "--db", bad)
        ok(code in (64, 69, 77) and secret not in out + said, f"{d}: nor in an error ({code})")
    relay = Relay(d, "--http", server.url().replace("http://", f"ftp://u:{secret}@"))
    ok(relay.wait() == 64 and secret not in relay.said(), f"{d}: nor that of --http")


def goes_away(d, client):
    """The database, in the middle of the work; what was answered is not forgotten."""
    if d != "postgres":
        return
    receiver = Receiver()
    relay = Relay(d, command=receiver.command())
    for n in range(20):
        write(client, f"k{n % 3}", str(n))
    ok(within(PATIENCE, lambda: len(receiver.payloads()) == 20 and empty(client)), f"{d}: at work")
    client.run("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'")
    write(client, "k", "after")
    ok(within(PATIENCE, lambda: receiver.payloads("k") == ["after"]), f"{d}: it connects again")
    relay.send(signal.SIGSTOP)
    client.run("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'")
    relay.send(signal.SIGCONT)
    write(client, "k", "again")
    ok(within(PATIENCE, lambda: empty(client)), f"{d}: also after a freeze")
    equal(len(receiver.payloads()), 22, f"{d}: with no double")
    ok("trying again" in relay.said() and "answers again" in relay.said(), f"{d}: and says so")
    relay.stop()


def interrupted(d, client):
    """Somebody ends a statement of the relay that takes too long."""
    if d == "sqlite":
        return
    find, end = {"postgres": ("SELECT pid FROM pg_stat_activity WHERE wait_event_type = 'Lock'", "SELECT pg_cancel_backend({})"),
                 "mariadb": ("SELECT id FROM information_schema.processlist WHERE info LIKE 'UPDATE holdfast_outbox_fence%'",
                             "KILL QUERY {}")}[d]
    receiver = Receiver()
    relay = Relay(d, command=receiver.command())
    write(client, "k", "1")
    ok(within(PATIENCE, lambda: receiver.payloads() == ["1"] and empty(client)), f"{d}: at work")
    holder = Client(d)
    holder.begin()
    holder.run(f"SELECT token FROM {FENCE[d]} FOR UPDATE")
    write(client, "k", "2")
    ok(within(PATIENCE, lambda: client.run(find)), f"{d}: a statement waits")
    client.run(end.format(client.run(find)[0][0]))
    holder.rollback()
    ok(within(PATIENCE, lambda: empty(client) or relay.process.poll() is not None) and empty(client),
       f"{d}: one that was ended is tried again ({relay.said()})")
    equal(relay.stop(), -signal.SIGTERM, f"{d}: and the relay lives")


def not_there(d):
    relay = Relay(d, "--no-wait", command=["cat"])
    equal((relay.wait(), "run the migration" in relay.said()), (64, True), f"{d}: without the migration")
    equal(outbox("list", "--db", url(d))[0], 64, f"{d}: list without the migration")
    name = MESSAGE[d]
    foreign = Client(d)
    if d == "postgres":
        foreign.run("CREATE SCHEMA holdfast_outbox")
    foreign.run(f"CREATE TABLE {name} (mine INT)")
    code, said = apply(d, migration(d))
    ok(code != 0 and "not of holdfast" in said, f"{d}: a table of that name that is not ours ({said[:60]})")
    equal(foreign.run(f"SELECT * FROM {name}"), [], f"{d}: it stays")
    foreign.run(f"DROP TABLE {name}")
    if d == "sqlite":
        foreign.run("CREATE TABLE Holdfast_Outbox_Settled (mine INT)")
        code, said = apply(d, migration(d))
        ok(code != 0 and "not of holdfast" in said, f"{d}: however it is written")
        foreign.run("DROP TABLE holdfast_outbox_settled")
    if d == "postgres":
        foreign.run("CREATE DOMAIN holdfast_outbox.message_key AS int")
        code, said = apply(d, migration(d))
        ok(code != 0 and "not of holdfast" in said, f"{d}: a type of such a name that is not ours ({said[:60]})")
        foreign.run("DROP DOMAIN holdfast_outbox.message_key")
    foreign.close()


def down(d, client):
    write(client, "k", "p")
    client.close()
    code, said = apply(d, migration(d, "--down"))
    ok(code != 0 and "not been sent" in said, f"{d}: --down does not remove what was not sent ({said[:80]})")
    client = Client(d)
    equal(len(rows(client)), 1, f"{d}: it is there")
    client.run(f"DELETE FROM {MESSAGE[d]}")
    client.close()
    equal(apply(d, migration(d, "--down")), (0, ""), f"{d}: --down")
    equal(apply(d, migration(d)), (0, ""), f"{d}: and up again")


def roles(d, client):
    if d == "sqlite":
        return
    if d == "postgres":
        for sql in ("CREATE ROLE app LOGIN", "CREATE ROLE sender LOGIN", "GRANT USAGE ON SCHEMA holdfast_outbox TO app, sender",
                    "GRANT INSERT (topic, key, payload, headers) ON holdfast_outbox.message TO app",
                    "GRANT SELECT, UPDATE, DELETE ON holdfast_outbox.message TO sender",
                    "GRANT SELECT, UPDATE ON holdfast_outbox.fence TO sender", "GRANT INSERT ON holdfast_outbox.settled TO sender"):
            client.run(sql)
    else:
        for sql in ("CREATE USER app", "CREATE USER sender",
                    "GRANT INSERT (topic, `key`, payload, headers) ON app.holdfast_outbox TO app",
                    "GRANT SELECT, UPDATE, DELETE ON app.holdfast_outbox TO sender",
                    "GRANT SELECT, UPDATE ON app.holdfast_outbox_fence TO sender",
                    "GRANT INSERT ON app.holdfast_outbox_settled TO sender"):
            client.run(sql)
    app = Client(d, user="app")
    write(app, "k", "from the application")
    for sql in (f"SELECT * FROM {MESSAGE[d]}", f"DELETE FROM {MESSAGE[d]}", f"UPDATE {MESSAGE[d]} SET topic = 'x'",
                f"INSERT INTO {MESSAGE[d]} (id, topic, {KEY[d]}, payload) VALUES (1, 't', 'k', 'x')",
                f"INSERT INTO {MESSAGE[d]} (uid, topic, {KEY[d]}, payload) "
                f"VALUES ('{'0' * 32}', 't', 'k', 'x')"):
        ok(refused(app.run, sql) in ("42501", 1142, 1143, "428C9"), f"{d}: the application may not {sql[:40]}")
    # The migration again takes nothing back.
    equal(apply(d, migration(d)), (0, ""), f"{d}: the migration again")
    write(app, "k", "once more")
    receiver = Receiver()
    relay = Relay(d, user="sender", command=receiver.command())
    ok(within(PATIENCE, lambda: empty(client)), f"{d}: the relay's role can send it")
    receiver.rules({"bad": "retry 1h"})
    write(app, "k", "bad")
    ok(within(PATIENCE, lambda: rows(client, "id", "attempts > 0")), f"{d}: and mark")
    uid = rows(client, "uid")[0][0]
    equal(outbox("drop", "--db", url(d, "sender"), "--reason", "r", str(uid)), (0, "", ""), f"{d}: and drop")
    relay.stop()


for dialect in DIALECTS:
    if dialect == "sqlite":
        equal(outbox("list", "--db", url(dialect))[0], 69, "sqlite: a file that is not there is not made")
        Client(dialect).run("PRAGMA journal_mode = WAL")
    not_there(dialect)
    equal(apply(dialect, migration(dialect)), (0, ""), f"{dialect}: the migration runs")
    for test in (bounds, command_misbehaves, busy_for_nothing, other_encoding, lenient_json, out_of_order, cannot_execute, inherits, secrets, goes_away, interrupted, down, roles):
        db = Client(dialect)
        test(dialect, db)
done_testing()
