#!/usr/bin/env python3
"""cutter.py PORT SEED - a proxy in front of 127.0.0.1:PORT that cuts every connection at a random byte.

Prints the port it listens on, and then, whenever a line comes on stdin, how many bytes went through
and how many connections were cut. Ends with its stdin."""
import random
import socket
import sys
import threading

rng = random.Random(int(sys.argv[2]))
total = cuts = 0
lock = threading.Lock()


def forward(source, target, ends):
    global total, cuts
    try:
        while True:
            chunk = source.recv(4096)
            with lock:
                left = ends[0]
                ends[0] -= len(chunk)
                total += len(chunk)
                if 0 < left <= len(chunk):
                    cuts += 1
            if not chunk:
                break
            target.sendall(chunk[:max(left, 0)])
            if left <= len(chunk):
                break
    except OSError:
        pass
    for end in source, target:
        try:
            end.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass


def serve(client):
    try:
        server = socket.create_connection(('127.0.0.1', int(sys.argv[1])))
    except OSError:
        client.close()
        return
    for end in client, server:
        end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    ends = [rng.randrange(1, 30000)]
    for pair in (client, server), (server, client):
        threading.Thread(target=forward, args=(*pair, ends), daemon=True).start()


def listen(listener):
    while True:
        serve(listener.accept()[0])


listener = socket.socket()
listener.bind(('127.0.0.1', 0))
listener.listen(64)
threading.Thread(target=listen, args=(listener,), daemon=True).start()
print(listener.getsockname()[1], flush=True)
for _ in sys.stdin:
    print(total, cuts, flush=True)
