#!/usr/bin/python3
"""free_ports.py COUNT - different ports of the loopback address on which nobody listens.

Below the range from which the kernel takes ports for clients, so that none of those gets there first.
Ports are handed out in turn, to all tests of this machine: one that was found free a moment ago, and
whose server is still starting, is not given to another test as well.
"""
import fcntl
import os
import socket
import sys

FIRST, COUNT = 20000, 6000

path = os.path.join(os.environ.get("TMPDIR") or "/tmp", "holdfast-ports.%d" % os.getuid())
turn = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
fcntl.flock(turn, fcntl.LOCK_EX)
at = int(os.pread(turn, 16, 0) or 0)
ports = []
while len(ports) < int(sys.argv[1]):
    at = (at + 1) % COUNT
    with socket.socket() as s:
        try:
            s.bind(("127.0.0.1", FIRST + at))
        except OSError:
            continue
        ports.append(FIRST + at)
os.pwrite(turn, b"%-16d" % at, 0)
print(*ports)
