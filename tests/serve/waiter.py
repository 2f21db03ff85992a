# waiter.py - one who waits for a lock through a server, on a connection of its own.
import json
import os
import socket
import threading

from wire import connect, read_answer, request


def new_owner():
    return os.urandom(16).hex()


def call(where, method, path, fields=None, headers=""):
    """One request on a connection of its own: the code and what the body says."""
    s = connect(where)
    s.settimeout(90)
    s.sendall(request(method, path, json.dumps(fields) if fields is not None else None, headers))
    code, _, body, _ = read_answer(s)
    s.close()
    return code, json.loads(body) if body else {}


def look(where, name):
    return (call(where, "GET", f"/v1/lock?name={name}")[1]["locks"] or [{"held": False, "waiters": 0}])[0]


class Waiter(threading.Thread):
    """Sends its request at once; `answer` is (code, body), or (None, {}) if the connection ended."""

    def __init__(self, where, name, wait_ms=60000, ttl_ms=10000, release=False, headers=""):
        super().__init__(daemon=True)
        threading.stack_size(256 * 1024)
        self.where, self.name_of_lock, self.owner, self.release = where, name, new_owner(), release
        self.socket = connect(where)
        self.socket.settimeout(90)
        fields = {"name": name, "owner": self.owner, "ttl_ms": ttl_ms, "wait_ms": wait_ms, "label": "waiter"}
        self.socket.sendall(request("POST", "/v1/acquire", json.dumps(fields), headers))
        self.answer = None, {}
        self.start()

    def run(self):
        try:
            code, _, body, _ = read_answer(self.socket)
            self.answer = code, json.loads(body) if body else {}
            if code == 200 and self.release:
                self.give_back()
        except OSError:
            pass

    def give_back(self):
        fields = {"name": self.name_of_lock, "owner": self.owner, "token": self.answer[1]["token"]}
        self.socket.sendall(request("POST", "/v1/release", json.dumps(fields)))
        return read_answer(self.socket)[0]

    def vanish(self):
        """A close alone would wait for the thread that reads."""
        self.socket.shutdown(socket.SHUT_RDWR)
        self.socket.close()

    def token(self):
        return int(self.answer[1].get("token", 0))
