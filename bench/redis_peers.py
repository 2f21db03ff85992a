#!/usr/bin/env python3
"""redis_peers.py pair PORT | contend PORT N SECONDS - redis-py's Lock under the same load.

A hand-over is a hold by another process than the one before: a process that takes its own lock
again and again hands nothing over."""
import multiprocessing
import os
import sys
import time

import redis


def pair(port):
    client = redis.Redis(port=port)
    blocks = []
    for _ in range(11):
        start = time.perf_counter()
        for _ in range(150):
            lock = client.lock('bench:py', timeout=30)
            lock.acquire(blocking=False)
            lock.release()
        blocks.append((time.perf_counter() - start) / 150 * 1e6)
    print(f'redis_py_pair_us {sorted(blocks)[len(blocks) // 2]:.2f}')


def contender(port, barrier, seconds, handovers, holder):
    client = redis.Redis(port=port)
    client.ping()
    barrier.wait()
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        lock = client.lock('bench:py:contend', timeout=10)
        if lock.acquire(blocking_timeout=max(0.1, end - time.monotonic())):
            with handovers.get_lock():
                handovers.value += holder.value != os.getpid()
                holder.value = os.getpid()
            lock.release()


def contend(port, count, seconds):
    barrier = multiprocessing.Barrier(count)
    handovers = multiprocessing.Value('l', 0)
    holder = multiprocessing.Value('l', 0)
    workers = [multiprocessing.Process(target=contender,
                                       args=(port, barrier, seconds, handovers, holder))
               for _ in range(count)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    print(f'redis_py_handovers_per_s {handovers.value / seconds:.1f}')


if sys.argv[1] == 'pair':
    pair(int(sys.argv[2]))
else:
    contend(int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4]))
