#!/usr/bin/env python3
"""zookeeper_semaphore.py HOSTS LIMIT START SECONDS - a client that goes round on kazoo's Semaphore of that limit from
START on, in seconds of the clock; after a second of warming up it counts for SECONDS how often it got the semaphore
after a wait: a client that takes its own permit again and again hands nothing over."""
import sys
import time

from kazoo.client import KazooClient

hosts, limit, start, seconds = sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), float(sys.argv[4])
client = KazooClient(hosts, timeout=20)
client.start()
semaphore = client.Semaphore('/kazoo/slots', max_leases=limit)
had = 0
if time.time() > start:
    sys.exit('it came too late')
time.sleep(start - time.time())
while time.time() < start + 1 + seconds:
    waited = not semaphore.acquire(blocking=False)
    if waited:
        semaphore.acquire()
    had += waited and start + 1 <= time.time() < start + 1 + seconds
    semaphore.release()
print(had)
client.stop()
