#!/usr/bin/env python3
"""proxy.py PORT - stands between a client and the server at PORT, and misbehaves on demand.

Prints the port it listens on. Then reads commands from stdin, one per line, and answers each with a
line:
  mode pass           forward everything
  mode mute           take requests, forward them, swallow the answers
  mode deaf           take requests and forward nothing
  mode cut            forward half of the next answer and close the connection
  mode kill           close the connection when the answer comes
  mode drop           close the connection when a request comes, without forwarding it
  mode garbage        send something that is no HTTP instead of an answer
  mode nonsense       an answer of HTTP whose body is no JSON
  mode wrong          an answer of HTTP whose body is JSON and no answer of etcd
  mode huge           an answer without end
  mode chaos SEED     cut each connection after a random number of bytes, in either direction
  once                from the next answer on: mode pass
  requests            how many requests (POST) there were since the last time
  bytes               how many bytes went through since the start
"""
import random
import selectors
import socket
import sys
import threading

HTTP = b'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: '
JUNK = {
    'garbage': b'\x00\x01\x02 what is this \xff\xfe' * 8,
    'nonsense': HTTP + b'12\r\n\r\nhello, world',
    'wrong': HTTP + b'33\r\n\r\n{"header":[1,2],"succeeded":"yes"}'[:33 + 6],
    'huge': b'HTTP/1.1 200 OK\r\n\r\n{"kvs":[' + b'{"key":"YQ=="},' * (1 << 20),
}

state = {'mode': 'pass', 'once': False, 'requests': 0, 'bytes': 0}
dice = random.Random(1)
lock = threading.Lock()


def answer_of(chunk, client):
    """What the client gets for a chunk of the server's; None ends the connection."""
    with lock:
        mode = state['mode']
        if state['once']:
            state['mode'], state['once'] = 'pass', False
    if mode == 'mute':
        return b''
    if mode == 'kill':
        return None
    if mode == 'cut':
        client.sendall(chunk[:max(1, len(chunk) // 2)])
        return None
    return JUNK.get(mode, chunk)


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
    with lock:
        left = dice.randrange(200, 20000) if state['mode'] == 'chaos' else None
    try:
        while True:
            for key, _ in selector.select():
                chunk = key.fileobj.recv(65536)
                if not chunk:
                    return
                over = False
                with lock:
                    state['bytes'] += len(chunk)
                    if left is not None:
                        over = len(chunk) >= left
                        chunk = chunk[:left]
                        left -= len(chunk)
                if key.fileobj is client:
                    with lock:
                        state['requests'] += chunk.count(b'POST /v3/')
                        mode = state['mode']
                        if mode == 'drop' and state['once']:
                            state['mode'], state['once'] = 'pass', False
                    if mode == 'drop':
                        return
                    if mode != 'deaf':
                        server.sendall(chunk)
                else:
                    out = answer_of(chunk, client)
                    if out is None:
                        return
                    client.sendall(out)
                if over:
                    return
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
    listener = socket.create_server(('127.0.0.1', 0), backlog=256)
    threading.Thread(target=accept, args=(listener, int(sys.argv[1])), daemon=True).start()
    print(listener.getsockname()[1], flush=True)
    for line in sys.stdin:
        words = line.split()
        with lock:
            if words[0] == 'mode':
                state['mode'], state['once'] = words[1], False
                if words[1] == 'chaos':
                    dice.seed(int(words[2]))
                print('ok', flush=True)
            elif words[0] == 'once':
                state['once'] = True
                print('ok', flush=True)
            else:
                print(state[words[0]], flush=True)
                if words[0] == 'requests':
                    state['requests'] = 0


main()
