# wire.py - bytes to a server's Unix socket or port, and what comes back: for requests that no client would send.
import socket
import time

JSON = "Content-Type: application/json\r\n"


def connect(where):
    if "/" in where:
        s = socket.socket(socket.AF_UNIX)
        s.connect(where)
    else:
        s = socket.create_connection(("127.0.0.1", int(where)))
    s.settimeout(20)
    return s


def read_answer(s, pending=b""):
    """One answer: its code, its headers in lower case, its body, what came behind it."""
    while b"\r\n\r\n" not in pending:
        more = s.recv(65536)
        if not more:
            return None, {}, b"", pending
        pending += more
    head, rest = pending.split(b"\r\n\r\n", 1)
    lines = head.decode("latin-1").split("\r\n")
    headers = dict(line.lower().split(": ", 1) for line in lines[1:])
    length = int(headers.get("content-length", 0))
    while len(rest) < length:
        rest += s.recv(65536)
    return int(lines[0].split(" ")[1]), headers, rest[:length], rest[length:]


def ended(s):
    """Whether the server closes the connection soon."""
    s.settimeout(5)
    try:
        while s.recv(65536):
            pass
        return True
    except ConnectionResetError:
        return True
    except TimeoutError:
        return False


def request(method, path, body=None, headers="", host="localhost"):
    text = f"{method} {path} HTTP/1.1\r\nHost: {host}\r\n{headers}"
    if body is not None:
        text += f"{JSON}Content-Length: {len(body.encode())}\r\n"
    return (text + "\r\n" + (body or "")).encode()


def drip(s, data, seconds):
    """A byte now and then; how long it went until the server had enough."""
    began = time.monotonic()
    try:
        for byte in data:
            s.sendall(bytes([byte]))
            time.sleep(seconds)
            s.setblocking(False)
            try:
                if s.recv(1, socket.MSG_PEEK) is not None:
                    break
            except BlockingIOError:
                pass
            finally:
                s.setblocking(True)
    except (BrokenPipeError, ConnectionResetError):
        pass
    return time.monotonic() - began


class Tap:
    def __init__(self):
        self.count = self.failed = 0

    def ok(self, good, what):
        self.count += 1
        self.failed += not good
        print(("ok" if good else "not ok"), self.count, "-", what, flush=True)

    def eq(self, got, wanted, what):
        self.ok(got == wanted, what)
        if got != wanted:
            print(f"#   got: {got!r}\n#   wanted: {wanted!r}")

    def done(self):
        print(f"1..{self.count}")
        raise SystemExit(self.failed > 0)
