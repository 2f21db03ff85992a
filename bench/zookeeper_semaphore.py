#!/usr/bin/env python3
"""zookeeper_semaphore.py HOSTS LIMIT CLIENTS SECONDS - so many clients, with a session and a thread each, go
round on kazoo's Semaphore of that limit; prints how often one had it that had to wait: a client that takes its
own permit again and again hands nothing over."""
import sys
import threading
import time

from kazoo.client import KazooClient

hosts, limit, clients, seconds = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4])
had = []
gate = threading.Barrier(clients)


def go_round():
    client = KazooClient(hosts, timeout=20)
    client.start()
    semaphore = client.Semaphore('/kazoo/slots', max_leases=limit)
    count = 0
    gate.wait()
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if not semaphore.acquire(blocking=False):
            semaphore.acquire()
            count += 1
        semaphore.release()
    had.append(count)
    client.stop()


threads = [threading.Thread(target=go_round) for _ in range(clients)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(sum(had))
