#!/usr/bin/env python3
"""zookeeper_peer.py HOSTS - for each number on stdin, that many acquire + release pairs of kazoo's Lock;
prints the microseconds that one took."""
import sys
import time

from kazoo.client import KazooClient

client = KazooClient(sys.argv[1], timeout=40)
client.start()
lock = client.Lock('/kazoo/pair')
for line in sys.stdin:
    count = int(line)
    start = time.monotonic()
    for _ in range(count):
        lock.acquire()
        lock.release()
    print('%.1f' % ((time.monotonic() - start) * 1e6 / count), flush=True)
client.stop()
