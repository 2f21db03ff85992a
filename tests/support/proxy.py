#!/usr/bin/env python3
"""proxy.py PORT - stands between a client and the server at PORT, and misbehaves on demand.

Prints the port it listens on. Then reads commands from stdin, one per line, and answers each with a
line:
  mode pass         forward everything
  mode mute         take requests, forward them, swallow the answers
  mode deaf         take requests and forward nothing
  mode hole         forward one request of each connection, swallow the answer, end with the next one
  mode drop [WHICH] close the connection when a request comes (that the pattern WHICH is found in),
                    without forwarding it
  mode hold WHICH   keep back a request that the pattern WHICH is found in, and all behind it on its
                    connection, even when the client has given up, until
  held              how many requests are; and
  let               which sends what was kept back, waits for the server's answers, and tells to how
                    many requests
  mode kill         close the connection when the answer comes
  mode cut          forward half of the answer and close the connection
  mode chaos N      close each new connection after about N bytes, in the middle of anything
  mode error TEXT   answer the next request with that error of Redis, then pass
  mode refuse WORD TEXT
                    the same for the next request that has the word in it; others pass
  mode warning FILE a WARNING of PostgreSQL's, from that file of its source, before the answer
  mode other A B    B in the place of each A in an answer; they are equally long
  mode JUNK         something else instead of an answer; see the names below
  once              the next answer (or dropped request) is the last that the mode is for
  trips             how many round trips there were since the last time
  requests          how many requests of HTTP there were since the last time
  strand            from now on nothing goes through the connections that are open, either way; new
                    ones are as the mode says
  bytes, cuts       how many bytes went through, and how many connections chaos has cut
"""
import random
import re
import selectors
import socket
import sys
import threading

HTTP = b'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n'
JUNK = {
    # No protocol at all.
    'garbage': b'\x00\x01\x02 what is this \xff\xfe' * 8,
    # To a client of Redis: another protocol, an array and a string without end, a deep nest.
    'http': b'HTTP/1.1 400 Bad Request\r\n\r\n',
    'many': b'*2000000000\r\n',
    'deep': b'*1\r\n' * 100,
    'huge': b'$400000000\r\n' + b'x' * (16 << 20),
    # To a client of etcd: no JSON, an answer without numbers, none of etcd's, one without end.
    'nonsense': HTTP + b'Content-Length: 12\r\n\r\nhello, world',
    'bare': HTTP + b'Content-Length: 30\r\n\r\n{"header":{},"succeeded":true}',
    'wrong': HTTP + b'Content-Length: 34\r\n\r\n{"header":[1,2],"succeeded":"yes"}',
    'endless': HTTP + b'\r\n{"kvs":[' + b'{"key":"YQ=="},' * (1 << 20),
}

held = []
state = {'mode': 'pass', 'text': '', 'once': False, 'trips': 0, 'requests': 0, 'bytes': 0, 'cuts': 0,
         'strands': 0}
dice = random.Random(7)
lock = threading.Lock()


def warning(file):
    """As PostgreSQL writes it."""
    fields = {'S': 'WARNING', 'V': 'WARNING', 'C': '01000', 'M': 'beware', 'F': file, 'L': '1',
              'R': 'some_function'}
    body = b''.join(f'{key}{text}\0'.encode() for key, text in fields.items()) + b'\0'
    return b'N' + (len(body) + 4).to_bytes(4, 'big') + body


class Over(Exception):
    """This connection ends here."""


def mode_now(final, chunk=b''):
    """The mode, and the end of it if it was for once and this is what it was for."""
    with lock:
        mode, text = state['mode'], state['text']
        if mode == 'drop' and text and not re.search(text.encode(), chunk):
            return 'pass', ''
        if final(mode) and (state['once'] or mode == 'error'):
            state['mode'], state['once'] = 'pass', False
    return mode, text


class Pair:
    def __init__(self, client, server):
        self.client, self.server = client, server
        self.asked = False
        self.fell = False
        self.left = None
        self.kept = b''
        self.gone = False
        with lock:
            self.strands = state['strands']
            if state['mode'] == 'chaos':
                self.left = int(dice.expovariate(1 / int(state['text']))) + 1

    def forward(self, chunk, to):
        """Sends a chunk on, or only what is left of this connection's life."""
        end = self.left is not None and len(chunk) >= self.left
        if end:
            chunk = chunk[:self.left]
        elif self.left is not None:
            self.left -= len(chunk)
        with lock:
            state['bytes'] += len(chunk)
            state['cuts'] += end
        to.sendall(chunk)
        if end:
            raise Over

    def request(self, chunk):
        self.asked = True
        with lock:
            state['requests'] += chunk.count(b'POST /')
        with lock:
            word, _, text = state['text'].partition(' ')
            if state['mode'] == 'refuse' and word.encode() in chunk:
                state['mode'], state['text'] = 'error', text
            if self.kept or (state['mode'] == 'hold' and re.search(state['text'].encode(), chunk)):
                if not self.kept:
                    held.append(self)
                self.kept += chunk
                return
        mode, text = mode_now(lambda mode: mode in ('drop', 'error'), chunk)
        if mode == 'drop' or (mode == 'hole' and self.fell):
            raise Over
        self.fell = mode == 'hole'
        if mode == 'error':
            self.client.sendall(f'-{text}\r\n'.encode())
        elif mode != 'deaf':
            self.forward(chunk, self.server)

    def answer(self, chunk):
        with lock:
            state['trips'] += self.asked
        self.asked = False
        mode, text = mode_now(lambda mode: mode not in ('drop', 'error', 'refuse'))
        if mode == 'kill':
            raise Over
        if mode == 'cut':
            self.client.sendall(chunk[:max(1, len(chunk) // 2)])
            raise Over
        if mode == 'warning':
            chunk = warning(text) + chunk
        if mode == 'other':
            chunk = chunk.replace(*(word.encode() for word in text.split()))
        if mode not in ('mute', 'hole'):
            self.forward(JUNK.get(mode, chunk), self.client)


def let_go():
    """What was kept back arrives after all. If a client is gone, the answers to it end here."""
    with lock:
        late, held[:] = held[:], []
    for pair in late:
        chunk, pair.kept = pair.kept, b''
        pair.server.sendall(chunk)
        if pair.gone:
            pair.server.settimeout(20)
            pair.server.recv(65536)
            pair.server.close()
    return len(late)


def read(end):
    try:
        return end.recv(65536)
    except OSError:
        return b''


def serve(client, port):
    try:
        server = socket.create_connection(('127.0.0.1', port))
    except OSError:
        client.close()
        return
    selector = selectors.DefaultSelector()
    for end in client, server:
        end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        selector.register(end, selectors.EVENT_READ)
    pair = Pair(client, server)
    try:
        while True:
            for key, _ in selector.select():
                chunk = read(key.fileobj)
                if not chunk:
                    pair.gone = bool(pair.kept) and key.fileobj is client
                    return
                if pair.strands != state['strands']:
                    continue
                (pair.request if key.fileobj is client else pair.answer)(chunk)
    except (OSError, Over):
        pass
    finally:
        client.close()
        if not pair.gone:
            server.close()


def accept(listener, port):
    while True:
        client, _ = listener.accept()
        threading.Thread(target=serve, args=(client, port), daemon=True).start()


def main():
    listener = socket.create_server(('127.0.0.1', 0), backlog=256)
    threading.Thread(target=accept, args=(listener, int(sys.argv[1])), daemon=True).start()
    print(listener.getsockname()[1], flush=True)
    for line in sys.stdin:
        words = line.split()
        if words[0] == 'held':
            print(len(held), flush=True)
            continue
        if words[0] == 'let':
            print(let_go(), flush=True)
            continue
        with lock:
            if words[0] == 'mode':
                state['mode'], state['text'] = words[1], ' '.join(words[2:])
                state['once'] = False
                print('ok', flush=True)
            elif words[0] == 'strand':
                state['strands'] += 1
                print('ok', flush=True)
            elif words[0] == 'once':
                state['once'] = True
                print('ok', flush=True)
            else:
                print(state[words[0]], flush=True)
                if words[0] in ('trips', 'requests'):
                    state[words[0]] = 0


main()
