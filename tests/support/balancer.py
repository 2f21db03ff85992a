#!/usr/bin/env python3
"""balancer.py DELAY_MS PORT... - a load balancer: each connection goes to the next of the servers at these
ports, and each answer comes that much later. Prints the port it listens on."""
import itertools
import socket
import sys
import threading
import time


def pump(source, target, delay_s):
    try:
        while data := source.recv(65536):
            time.sleep(delay_s)
            target.sendall(data)
    except OSError:
        pass
    for end in source, target:
        try:
            end.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass


servers = itertools.cycle(map(int, sys.argv[2:]))
listener = socket.create_server(("127.0.0.1", 0))
print(listener.getsockname()[1], flush=True)
while True:
    near, _ = listener.accept()
    far = socket.create_connection(("127.0.0.1", next(servers)))
    far.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    threading.Thread(target=pump, args=(near, far, 0), daemon=True).start()
    threading.Thread(target=pump, args=(far, near, int(sys.argv[1]) / 1000), daemon=True).start()
