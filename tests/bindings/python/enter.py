"""enter.py - lease.enter() with the drivers of three databases; PG, MARIA and HOLDFAST say where they are."""
import os
import sqlite3
import subprocess
import sys

import holdfast

store = holdfast.open(sys.argv[1])


def migration(dialect):
    return subprocess.run([os.environ['HOLDFAST'], 'fence', 'sql', '--dialect', dialect, '--table', 'orders'],
                          capture_output=True, check=True, text=True).stdout


def told(name, begin, connection, resource):
    """A later holder enters; the earlier one, and whoever does not enter, is refused."""
    cursor = connection.cursor()
    early = store.lock(name).acquire()
    token = early.token
    early.release()
    with store.lock(name) as lease:
        cursor.execute(begin)
        lease.enter(cursor, resource)
        cursor.execute("INSERT INTO orders VALUES (1, 'paid')")
        lease.leave(cursor)
        connection.commit()
        lease._hold.struct.token, real = token, lease.token
        cursor.execute(begin)
        try:
            lease.enter(cursor, resource)
            print(name, 'admitted a stale token')
        except holdfast.Stale as error:
            print(name, 'stale', 'stale' in str(error))
        connection.rollback()
        lease._hold.struct.token = real
    cursor.execute('SELECT state FROM orders')
    print(name, cursor.fetchone()[0])


db = sqlite3.connect('app.db', isolation_level=None)
db.executescript('PRAGMA foreign_keys = ON; CREATE TABLE orders (id INTEGER PRIMARY KEY, state TEXT)')
db.executescript(migration('sqlite'))
told('sqlite3', 'BEGIN IMMEDIATE', db, 'orders')
try:
    with store.lock('other') as one:
        one.enter(object(), 'orders')
except holdfast.Invalid as error:
    print('unknown driver', 'psycopg' in str(error))

if 'PG' in os.environ:
    import psycopg
    import psycopg2

    for module in (psycopg, psycopg2):
        with module.connect(os.environ['PG']) as pg:
            told(module.__name__, 'SELECT 1', pg, 'public.orders')
            with store.lock('clean') as lease:
                cursor = pg.cursor()
                lease.enter(cursor, 'public.orders')
                cursor.execute('DELETE FROM orders')
                pg.commit()
if 'MARIA' in os.environ:
    import pymysql

    maria = pymysql.connect(unix_socket=os.environ['MARIA'], user='root', database='app')
    told('pymysql', 'START TRANSACTION', maria, 'orders')
