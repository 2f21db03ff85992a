"""idem_mariadb.py SOCKET - what claim + INSERT + finish cost in MariaDB, beside the same three statements by hand.

Both in turns, a transaction of five round trips each. idem.sh made the tables.
"""
import statistics
import sys
import time

import pymysql

ROUNDS, BATCH = 60, 10
conn = pymysql.connect(unix_socket=sys.argv[1], user="root", database="app", autocommit=True)
count = 0


def run(sql):
    with conn.cursor() as cursor:
        cursor.execute(sql.replace("KEY", f"'key{count}'"))
        cursor.fetchall()


def transaction(before, after):
    global count
    count += 1
    for sql in ("BEGIN", before, "INSERT INTO effect VALUES (KEY)", after, "COMMIT"):
        run(sql)


def by_hand():
    transaction("INSERT INTO hand (scope, `key`, fingerprint) VALUES ('scope', KEY, 'print')",
                "UPDATE hand SET status = 200, answer = 'ok' WHERE scope = 'scope' AND `key` = KEY")


def keyed():
    transaction("CALL holdfast_claim('scope', KEY, 'print')", "CALL holdfast_finish('scope', KEY, 200, 'ok')")


def batch(way):
    start = time.perf_counter()
    for _ in range(BATCH):
        way()
    return (time.perf_counter() - start) / BATCH * 1e6


def measure(flush, name, limit):
    run(f"SET GLOBAL innodb_flush_log_at_trx_commit = {flush}")
    rounds = []
    for _ in range(ROUNDS):
        hand, ours = batch(by_hand), batch(keyed)
        ours, hand = ours + batch(keyed), hand + batch(by_hand)
        rounds.append((hand / 2, ours / 2, ours / hand))
    hand, ours, ratio = (statistics.median(column) for column in zip(*rounds))
    print(f"MariaDB key by hand{name}\t{hand:.1f}\t-\tus\tok")
    print(f"MariaDB claim + finish{name}\t{ours:.1f}\t-\tus\tok")
    print(f"MariaDB claim + finish / by hand{name}\t{ratio:.2f}\t<={limit}\tx\t{'ok' if ratio <= limit else 'MISS'}")


measure(2, "", 1.7)
measure(1, ", synced", 1.4)
