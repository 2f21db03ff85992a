#!/usr/bin/env python3
"""nasty.py HERE SERVER SERVER [PERCENT] - a proxy between Unix sockets that does what proxies may do, and worse.

Each request goes to one of the two servers, drawn by lot. Requests and answers are delayed, cut off before, in the
middle of and behind either; acquires are repeated at the other server, at once or later, and nobody takes those
answers. What it knows of ended holds it tries to bring back to life: a renewal with the token of a hold that was
released is sent after an acquire of the same owner was granted again, and must be refused.

On TERM it prints what it did, "NAME VALUE" a line; "revived" counts renewals that were not refused.

PERCENT of the answers are delayed, 5 if it is not given.
"""
import collections
import json
import os
import random
import select
import signal
import socket
import sys
import threading
import time

here, servers, late_answers = sys.argv[1], sys.argv[2:4], int(sys.argv[4]) if len(sys.argv) > 4 else 5
counts = collections.Counter()
lock = threading.Lock()
LATE_S = 1.5


def dice(percent):
    return random.random() * 100 < percent


def count(what):
    with lock:
        counts[what] += 1


def connect(server):
    s = socket.socket(socket.AF_UNIX)
    s.settimeout(40)
    s.connect(server)
    return s


def read_request(s):
    """The request line and the body; None: there was none."""
    data = b''
    while b'\r\n\r\n' not in data:
        piece = s.recv(65536)
        if not piece:
            return None
        data += piece
    head, _, body = data.partition(b'\r\n\r\n')
    lines = head.split(b'\r\n')
    length = 0
    for line in lines[1:]:
        name, _, value = line.partition(b':')
        if name.lower() == b'content-length':
            length = int(value)
    while len(body) < length:
        piece = s.recv(65536)
        if not piece:
            return None
        body += piece
    accept = b'\r\nAccept: application/x-ndjson' if b'x-ndjson' in head else b''
    return lines[0], accept, body


def pack(line, accept, body):
    return b'%s\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/json%s\r\nContent-Length: %d\r\n\r\n%s' % (
        line, accept, len(body), body)


def ask(server, path, fields, timeout=5):
    """One request of our own: the code and the fields of the answer."""
    body = json.dumps(fields).encode()
    try:
        with connect(server) as s:
            s.settimeout(timeout)
            s.sendall(pack(b'POST /v1/%s HTTP/1.1' % path.encode(), b'', body))
            data = b''
            while piece := s.recv(65536):
                data += piece
        head, _, rest = data.partition(b'\r\n\r\n')
        return int(head.split()[1]), json.loads(rest)
    except (OSError, ValueError, IndexError):
        return 0, {}


def repeat(server, request, wait_s, leave):
    """The same request once more. leave: nobody waits for what becomes of it."""
    time.sleep(wait_s)
    try:
        with connect(server) as s:
            s.sendall(request)
            if not leave:
                while s.recv(65536):
                    pass
    except OSError:
        pass


def revive(server, name, owner, token):
    """After the end of a hold: its acquire once more, and then a renewal of what is over."""
    code, grant = ask(server, 'acquire', {'name': name, 'owner': owner, 'ttl_ms': 300})
    if code != 200 or grant['token'] == token:
        return
    count('came_again')
    if ask(server, 'renew', {'name': name, 'owner': owner, 'token': token, 'ttl_ms': 5000})[0] == 200:
        count('revived')


def pump(client, server):
    """The answer as it comes, until either side has enough; what passed."""
    passed = b''
    middle = random.randrange(400) if dice(2) else None
    while True:
        ready, _, _ = select.select([client, server], [], [], 60)
        if not ready:
            return passed
        if client in ready:
            try:
                if not client.recv(65536):
                    return passed
            except OSError:
                return passed
        if server in ready:
            piece = server.recv(65536)
            if not piece:
                return passed
            if dice(late_answers):
                count('delayed_answers')
                time.sleep(random.random() * 0.4)
            if middle is not None and len(passed) + len(piece) > middle:
                count('cut_in_the_middle')
                client.sendall(piece[:middle - len(passed)] if middle > len(passed) else b'')
                return passed
            client.sendall(piece)
            passed += piece


def note_end(line, fields, passed):
    """A release that was granted: its hold is over, and somebody may not know."""
    if b'/v1/release' in line and b' 200 ' in passed[:20] and 'token' in fields and dice(60):
        threading.Thread(target=revive, daemon=True,
                         args=(random.choice(servers), fields['name'], fields['owner'], fields['token'])).start()


def trouble(line, request):
    """What happens to a request on its way. False: it does not arrive."""
    if dice(3):
        count('cut_before')
        return False
    if dice(5):
        count('delayed_requests')
        time.sleep(random.random() * 0.3)
    if b'/v1/acquire' in line and dice(6):
        count('repeated')
        late = dice(50)
        threading.Thread(target=repeat, daemon=True, args=(
            random.choice(servers), request, random.random() * LATE_S if late else 0, dice(50))).start()
    return True


def serve(client):
    with client:
        got = read_request(client)
        if got is None:
            return
        line, accept, body = got
        fields = json.loads(body) if body else {}
        request = pack(line, accept, body)
        count('requests')
        if not trouble(line, request):
            return
        with connect(random.choice(servers)) as server:
            server.sendall(request)
            if dice(3):
                count('cut_behind')
                return
            passed = pump(client, server)
        note_end(line, fields, passed)


def guarded(client):
    try:
        serve(client)
    except (OSError, ValueError):
        count('failed')


def stop(_signal, _frame):
    for name, value in sorted(counts.items()):
        print(name, value)
    print('revived', counts['revived'], flush=True)
    os._exit(0)


signal.signal(signal.SIGTERM, stop)
threading.stack_size(256 * 1024)
listener = socket.socket(socket.AF_UNIX)
listener.bind(here)
listener.listen(256)
while True:
    accepted, _ = listener.accept()
    threading.Thread(target=guarded, args=(accepted,), daemon=True).start()
