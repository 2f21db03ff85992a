"""The times that bound a connection, at their real length, all at once: times.py SOCKET PORT SECRET."""
import json
import os
import socket
import subprocess
import sys
import threading
import time

from waiter import call, look
from wire import JSON, Tap, connect, drip, read_answer, request

unix, port, secret = sys.argv[1:4]
bearer = f"Authorization: Bearer {secret}\r\n"
tap = Tap()
lock = threading.Lock()


def say(good, what):
    with lock:
        tap.ok(good, what)


def until_closed(s, seconds):
    """How long until the server closes the connection, and the code of what it says before; None: it does not."""
    began = time.monotonic()
    s.settimeout(seconds)
    got = b""
    try:
        while more := s.recv(65536):
            got += more
    except ConnectionResetError:
        pass
    except TimeoutError:
        return None, got
    return time.monotonic() - began, got


def idle(where, first, what):
    s = connect(where)
    if first:
        s.sendall(request("GET", "/healthz"))
        read_answer(s)
    took, got = until_closed(s, 80)
    say(took is not None and 58 < took < 66 and got == b"", f"{what} is closed after 60s, without a word ({took})")


def stuck(where, data, what):
    """Sends that much of a request, and no more."""
    s = connect(where)
    s.sendall(data)
    took, got = until_closed(s, 30)
    say(took is not None and 9 < took < 14 and b" 408 " in got, f"{what}: 408 after 10s ({took})")


def drips(where, head, rest, what):
    s = connect(where)
    s.sendall(head)
    took = drip(s, rest, 0.25)
    code = read_answer(s)[0]
    say(code == 408 and 9 < took < 13, f"{what} that drips: 408 after 10s ({code} after {took:.1f}s)")


def deaf(where):
    """Asks for the page again and again, and reads nothing."""
    s = connect(where)
    s.settimeout(2)
    try:
        for _ in range(20000):
            s.sendall(request("GET", "/"))
    except TimeoutError:
        pass
    began = time.monotonic()
    while time.monotonic() - began < 30 and clients() >= before_deaf + 1:
        time.sleep(0.2)
    took = time.monotonic() - began
    say(5 < took < 14, f"a reader over TCP that takes nothing is closed after 10s ({took:.1f}s)")


def slow():
    """Takes some of a long answer every few seconds: that is no reason to close."""
    s = connect(port)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    s.sendall(b"".join(request("GET", "/") for _ in range(400)))
    s.settimeout(20)
    try:
        for _ in range(8):
            time.sleep(3)
            got = s.recv(8192)
            assert got
        alive = True
    except (OSError, AssertionError):
        alive = False
    say(alive, "one that takes a little now and then is not")


def clients():
    figures = call_metrics()
    return int(next(line.split()[1] for line in figures.splitlines() if line.startswith("holdfast_clients ")))


def call_metrics():
    s = connect(unix)
    s.sendall(request("GET", "/metrics", headers="Connection: close\r\n"))
    return read_answer(s)[2].decode()


def run(*todo):
    threads = [threading.Thread(target=fn, args=args) for fn, *args in todo]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


length = f"{JSON}Content-Length: 500\r\n"
post = f"POST /v1/acquire HTTP/1.1\r\nHost: localhost\r\n{bearer}"
whole = request("GET", "/healthz")
todo = []
for where, way in (unix, "a Unix socket"), (port, "TCP"):
    todo += [(idle, where, False, f"a connection by {way} that says nothing"),
             (idle, where, True, f"one by {way} that has been served"),
             (stuck, where, b"G", f"a byte by {way}"),
             (stuck, where, whole[:-1], f"all but the last byte by {way}"),
             (stuck, where, (post + length + "\r\n{").encode(), f"a body by {way} that does not come"),
             (drips, where, b"", request("GET", "/healthz", headers="X-A: " + "a" * 2000 + "\r\n"), f"a head by {way}"),
             (drips, where, (post + length + "\r\n").encode(), b" " * 500, f"a body by {way}")]
s = connect(unix)
s.sendall((post + length + "Expect: 100-continue\r\n\r\n").encode())
assert read_answer(s)[0] == 100
began = time.monotonic()
todo.append((lambda: say(until_closed(s, 30)[0] is not None and time.monotonic() - began < 14,
                         "who was asked for the body and does not send it: the end after 10s"),))
run(*todo)
before_deaf = clients()
deaf(port)
slow()


# The network is cut between the server and its clients, who hear and say nothing any more.
def wait_for(name, headers=""):
    s = connect(port)
    fields = {"name": name, "owner": os.urandom(16).hex(), "ttl_ms": 60000, "wait_ms": 600000}
    s.sendall(request("POST", "/v1/acquire", json.dumps(fields), bearer + headers))
    while look(unix, name)["waiters"] == 0:
        time.sleep(0.05)
    return s


for name in "stream", "plain":
    call(unix, "POST", "/v1/acquire", {"name": name, "owner": os.urandom(16).hex(), "ttl_ms": 180000})
far = [wait_for("stream", "Accept: application/x-ndjson\r\n"), wait_for("plain")]
subprocess.run(["ip", "link", "set", "lo", "down"], check=True)
began = time.monotonic()
left = {}
while len(left) < 2 and time.monotonic() - began < 100:
    for name in "stream", "plain":
        if name not in left and look(unix, name)["waiters"] == 0:
            left[name] = time.monotonic() - began
    time.sleep(0.2)
tap.ok(28 < left.get("stream", 0) < 45, f"who waits by a stream, and does not confirm its lines for 30s, has left the queue ({left})")
tap.ok(28 < left.get("plain", 0) < 75, f"and so has who waits for one answer ({left})")
tap.done()
