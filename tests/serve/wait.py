"""Waiting through servers: order, cancelling, clients that vanish, servers that die."""
import os
import signal
import socket
import subprocess
import sys
import threading
import time

from waiter import Waiter, call, look, new_owner
from wire import Tap, connect, read_answer, request

a, b, hf, store, a_pid, b_pid = sys.argv[1:5] + [int(p) for p in sys.argv[5:7]]
tap = Tap()


def until(seconds, condition):
    """How long it took, or None."""
    began = time.monotonic()
    while time.monotonic() - began < seconds:
        if condition():
            return time.monotonic() - began
        time.sleep(0.01)
    return None


def hold(where, name, ttl_ms=30000):
    fields = {"name": name, "owner": new_owner(), "ttl_ms": ttl_ms}
    code, said = call(where, "POST", "/v1/acquire", fields)
    assert code == 200, said
    return {"name": name, "owner": fields["owner"], "token": said["token"]}


def waiting(name, count):
    return until(30, lambda: look(b, name)["waiters"] == count) is not None


class Direct(threading.Thread):
    """One who waits without a server."""

    def __init__(self, name):
        super().__init__(daemon=True)
        self.process = subprocess.Popen([hf, "--store", store, "run", "--wait", "60s", name, "--", "sh", "-c",
                                         "echo $HOLDFAST_TOKEN"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.start()

    def run(self):
        self.said = self.process.communicate()[0]

    def token(self):
        return int(self.said or 0)


held = hold(a, "fifo")
line = []
for i in range(100):
    line.append(Direct("fifo") if i % 5 == 4 else Waiter((a, b)[i % 2], "fifo", release=True))
    if not waiting("fifo", i + 1):
        print(f"# number {i} is not in the line")
        break
tap.eq(call(b, "POST", "/v1/release", held)[0], 200, "what was taken at one server is released at the other")
for one in line:
    one.join(60)
tokens = [one.token() for one in line]
tap.ok(min(tokens) > int(held["token"]) and tokens == sorted(set(tokens)),
       "100 waiters at two servers and without one get the lock in the order in which they came")
if tokens != sorted(set(tokens)):
    print("#", tokens)
tap.eq(look(a, "fifo")["held"], False, "and then it is free")

held = hold(a, "after")
one = Waiter(a, "after", ttl_ms=20000)
waiting("after", 1)
time.sleep(1.2)
call(a, "POST", "/v1/release", held)
one.join(10)
said = one.answer[1]
tap.ok(1000 <= said["after_ms"] < 15000 and said["valid_ms"] == said["after_ms"] - (said["after_ms"] + 99) // 100
       + 20000 - 202, f"valid_ms counts from when the request was sent ({said})")
one.give_back()

held = hold(a, "half")
one = Waiter(a, "half")
waiting("half", 1)
one.socket.shutdown(socket.SHUT_WR)
took = until(5, lambda: look(b, "half")["waiters"] == 0)
tap.ok(took is not None and took < 0.3, f"who closes his sending side has left the queue soon ({took})")
one.join(5)
tap.eq(one.answer[0], 503, "and hears that the wait was cancelled")
one = Waiter(a, "half")
waiting("half", 1)
one.vanish()
took = until(5, lambda: look(b, "half")["waiters"] == 0)
tap.ok(took is not None and took < 0.3, f"and so has who goes ({took})")

one = Waiter(a, "half")
waiting("half", 1)
code, said = call(a, "POST", "/v1/release", {"name": "half", "owner": one.owner})
tap.eq((code, said["status"]), (410, "HF_LOST"), "a release whose acquire still waits finds nothing held")
one.join(5)
tap.eq((one.answer[0], one.answer[1]["status"]), (503, "HF_CANCELLED"), "and has cancelled it")
tap.eq(look(b, "half")["waiters"], 0, "whose place is free")

one = Waiter(a, "half", ttl_ms=60000)
waiting("half", 1)
os.kill(a_pid, signal.SIGSTOP)
one.vanish()
call(b, "POST", "/v1/release", held)
os.kill(a_pid, signal.SIGCONT)
took = until(10, lambda: not look(b, "half")["held"])
tap.ok(took is not None, f"what is granted to a client that has gone is given back ({took})")

held = hold(a, "crowd", 60000)
crowd = [Waiter(a, "crowd") for _ in range(900)]
tap.ok(waiting("crowd", 900), "900 wait at one server")
first = crowd[0]
extra = Waiter(a, "crowd")
extra.join(5)
tap.eq((extra.answer[0], extra.answer[1]["status"]), (429, "HF_UNREACHABLE"), "and no more than --max-waiters")
tap.eq(call(a, "POST", "/v1/renew", {**held, "ttl_ms": 60000})[0], 200, "meanwhile renewals are answered")
for one in crowd:
    one.vanish()
took = until(10, lambda: look(b, "crowd")["waiters"] == 0)
tap.ok(took is not None and took < 2, f"900 clients vanish: all have left the queue within 2s ({took})")
call(a, "POST", "/v1/release", held)

held = hold(a, "killed", 60000)
dead = [Waiter(a, "killed") for _ in range(5)]
waiting("killed", 5)
alive = Waiter(b, "killed", ttl_ms=60000)
waiting("killed", 6)
os.kill(a_pid, signal.SIGKILL)
for one in dead:
    one.join(5)
tap.eq({one.answer[0] for one in dead}, {None}, "kill -9 of a server: its waiters hear nothing")
code, said = call(b, "POST", "/v1/renew", {**held, "ttl_ms": 60000})
tap.eq(code, 200, "holders renew at the other server")
call(b, "POST", "/v1/release", held)
alive.join(20)
tap.eq(alive.answer[0], 200, "and the places of the dead are free: the next one has the lock")

streamed = connect(b)
streamed.sendall(request("POST", "/v1/acquire", '{"name": "killed", "owner": "%s", "ttl_ms": 5000, "wait_ms": 60000}'
                         % new_owner(), "Accept: application/x-ndjson\r\n"))
began = time.monotonic()
tap.eq(read_answer(streamed)[0], 200, "a stream answers at once")
line = streamed.recv(1000)
took = time.monotonic() - began
tap.ok(b'{"status": "waiting"}\n' in line and 1.5 < took < 6, f"and has a line after 2s ({took:.1f}s)")
plain = Waiter(b, "killed")
waiting("killed", 2)
began = time.monotonic()
os.kill(b_pid, signal.SIGTERM)
plain.join(10)
tap.eq((plain.answer[0], plain.answer[1].get("status")), (503, "HF_CANCELLED"), "TERM: who waits gets 503")
tap.ok(b"HF_CANCELLED" in streamed.recv(1000), "or a last line")
tap.ok(time.monotonic() - began < 5, "soon")
tap.done()
