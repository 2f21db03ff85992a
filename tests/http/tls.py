"""tls.py PORT SOCKET CERT KEY [AUTHORITY] - TLS in front of a server on a Unix socket; with AUTHORITY, clients need a
certificate of it."""
import socket
import ssl
import sys
import threading

port, path, cert, key = sys.argv[1:5]
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(cert, key)
if len(sys.argv) > 5:
    context.load_verify_locations(sys.argv[5])
    context.verify_mode = ssl.CERT_REQUIRED


def pump(source, target):
    try:
        while data := source.recv(65536):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)
    except OSError:
        source.close()
        target.close()


def serve(client):
    inside = context.wrap_socket(client, server_side=True, do_handshake_on_connect=False)
    try:
        inside.do_handshake()
    except OSError:  # the client is to read why before the connection is reset
        client = socket.socket(fileno=inside.detach())
        client.shutdown(socket.SHUT_WR)
        while client.recv(65536):
            pass
        return
    server = socket.socket(socket.AF_UNIX)
    server.connect(path)
    threading.Thread(target=pump, args=(server, inside), daemon=True).start()
    pump(inside, server)


gate = socket.socket()
gate.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
gate.bind(('127.0.0.1', int(port)))
gate.listen(64)
while True:
    threading.Thread(target=serve, args=(gate.accept()[0],), daemon=True).start()
