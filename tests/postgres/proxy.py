#!/usr/bin/env python3
"""proxy.py PORT - stands between a client and the server at PORT, and misbehaves on demand.

Prints the port it listens on. Then reads commands from stdin, one per line, and answers each with a
line:
  mode pass       forward everything
  mode mute       take requests, forward them, swallow the answers
  mode deaf       take requests and forward nothing
  mode kill       close the connection when the next answer comes, then pass
  mode cut        forward half of the next answer and close the connection, then pass
  mode garbage    random bytes instead of the next answer, then pass
  mode chaos N    close each connection after about N bytes, in the middle of anything
  bytes           how many bytes went through so far
  cuts            how many connections were cut so far
"""
import random
import selectors
import socket
import sys
import threading

state = {'mode': 'pass', 'mean': 0, 'bytes': 0, 'cuts': 0}
dice = random.Random(7)


class Cut(Exception):
    pass


def answer_of(chunk):
    """What the client gets for a chunk of the server's, and whether that is the end."""
    mode = state['mode']
    if mode == 'mute':
        return b'', False
    if mode in ('kill', 'cut', 'garbage'):
        state['mode'] = 'pass'
    if mode == 'kill':
        return b'', True
    if mode == 'cut':
        return chunk[:len(chunk) // 2], True
    if mode == 'garbage':
        return dice.randbytes(len(chunk)), False
    return chunk, False


def forward(chunk, to, left):
    """Sends a chunk on, or only what is left of this connection's life."""
    if left[0] is not None and len(chunk) >= left[0]:
        to.sendall(chunk[:left[0]])
        raise Cut
    if left[0] is not None:
        left[0] -= len(chunk)
    state['bytes'] += len(chunk)
    to.sendall(chunk)


def serve(client, port):
    try:
        server = socket.create_connection(('127.0.0.1', port))
    except OSError:
        client.close()
        return
    for end in client, server:
        end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    selector = selectors.DefaultSelector()
    selector.register(client, selectors.EVENT_READ)
    selector.register(server, selectors.EVENT_READ)
    left = [None]
    if state['mode'] == 'chaos':
        left[0] = int(dice.expovariate(1 / state['mean'])) + 1
    try:
        while True:
            for key, _ in selector.select():
                chunk = key.fileobj.recv(65536)
                if not chunk:
                    return
                if key.fileobj is client:
                    if state['mode'] != 'deaf':
                        forward(chunk, server, left)
                    continue
                out, end = answer_of(chunk)
                forward(out, client, left)
                if end:
                    raise Cut
    except Cut:
        state['cuts'] += 1
    except OSError:
        pass
    finally:
        client.close()
        server.close()


def accept(listener, port):
    while True:
        client, _ = listener.accept()
        threading.Thread(target=serve, args=(client, port), daemon=True).start()


def main():
    listener = socket.create_server(('127.0.0.1', 0), backlog=128)
    threading.Thread(target=accept, args=(listener, int(sys.argv[1])), daemon=True).start()
    print(listener.getsockname()[1], flush=True)
    for line in sys.stdin:
        words = line.split()
        if words[0] == 'mode':
            state['mean'] = int(words[2]) if len(words) > 2 else 0
            state['mode'] = words[1]
            print('ok', flush=True)
        else:
            print(state[words[0]], flush=True)


main()
