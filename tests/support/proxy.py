#!/usr/bin/env python3
"""proxy.py PORT - stands between a client and the server at PORT, and misbehaves on demand.

Prints the port it listens on. Then reads commands from stdin, one per line, and answers each with a
line:
  mode pass         forward everything
  mode mute         take requests, forward them, swallow the answers
  mode deaf         take requests and forward nothing
  mode cut          forward half of the next answer and close the connection
  mode kill         close the connection when the answer comes
  mode garbage      send something that is no Redis protocol instead of an answer
  mode huge         send a string without end instead of an answer
  mode many         announce an array of two thousand million items
  mode deep         send arrays in arrays in arrays
  mode error TEXT   answer the next request with that error, then pass
  trips             how many round trips were there since the last time
"""
import selectors
import socket
import sys
import threading

JUNK = {
    'garbage': b'HTTP/1.1 400 Bad Request\r\n\r\n',
    'many': b'*2000000000\r\n',
    'deep': b'*1\r\n' * 100,
    'huge': b'$400000000\r\n' + b'x' * (16 << 20),
}

state = {'mode': 'pass', 'text': '', 'trips': 0}
lock = threading.Lock()


def answer_of(chunk, client):
    """What the client gets for a chunk of the server's; None ends the connection."""
    mode = state['mode']
    if mode == 'mute':
        return b''
    if mode == 'kill':
        return None
    if mode == 'cut':
        client.sendall(chunk[:max(1, len(chunk) // 2)])
        return None
    if mode in JUNK:
        return JUNK[mode]
    return chunk


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
    asked = False
    try:
        while True:
            for key, _ in selector.select():
                chunk = key.fileobj.recv(65536)
                if not chunk:
                    return
                if key.fileobj is client:
                    asked = True
                    with lock:
                        mode, text = state['mode'], state['text']
                        if mode == 'error':
                            state['mode'] = 'pass'
                    if mode == 'error':
                        client.sendall(f'-{text}\r\n'.encode())
                    elif mode != 'deaf':
                        server.sendall(chunk)
                else:
                    if asked:
                        with lock:
                            state['trips'] += 1
                        asked = False
                    out = answer_of(chunk, client)
                    if out is None:
                        return
                    client.sendall(out)
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
    listener = socket.create_server(('127.0.0.1', 0))
    threading.Thread(target=accept, args=(listener, int(sys.argv[1])), daemon=True).start()
    print(listener.getsockname()[1], flush=True)
    for line in sys.stdin:
        words = line.split()
        with lock:
            if words[0] == 'mode':
                state['mode'], state['text'] = words[1], ' '.join(words[2:])
                print('ok', flush=True)
            elif words[0] == 'trips':
                print(state['trips'], flush=True)
                state['trips'] = 0


main()
