#!/usr/bin/env python3
"""fake.py SOCKET - a server that is not what it should be. The name of a lock says what it does to an acquire:

  html      a page of somebody else's, 200
  gateway   502 without a word of ours
  cut       closes the connection without an answer
  dead      the same, on a connection that has answered before
  used      409: the owner was used before
  busy      423, as it should be
  far       granted, and after_ms is an hour
  half      granted with something that is not a token
  broken    a stream that ends without a verdict
  page      a stream that turns out to be a page
  kept      a stream: waits for 3s, then grants
GET /count/NAME answers how many acquires and releases of that name there were, and when the releases came.
"""
import json
import socketserver
import sys
import time

seen = {}
OWN = 'Holdfast-Status: %s\r\nContent-Type: application/json\r\n'


class Handler(socketserver.StreamRequestHandler):
    def handle(self):
        self.answered = 0
        while self.one():
            self.answered += 1

    def say(self, code, body, head='', length=True):
        body = body if isinstance(body, str) else json.dumps(body)
        size = 'Content-Length: %d\r\n' % len(body) if length else ''
        self.wfile.write(('HTTP/1.1 %d X\r\n%s%s\r\n%s' % (code, head, size, body)).encode())
        return True

    def one(self):
        line = self.rfile.readline().decode()
        if not line:
            return False
        length = 0
        while (header := self.rfile.readline().decode().strip()):
            name, _, value = header.partition(':')
            if name.lower() == 'content-length':
                length = int(value)
        body = json.loads(self.rfile.read(length)) if length else {}
        path = line.split()[1]
        if path == '/v1/store':
            return self.say(200, {'features': ['fair', 'detached', 'renew-ttl', 'crash-release', 'records', 'break'],
                                  'identity': 'id:fake:1', 'max_ttl_ms': 60000}, OWN % 'HF_OK')
        if path.startswith('/count/'):
            return self.say(200, ' '.join(map(str, seen.get(path[7:], ['none']))), OWN % 'HF_OK')
        if path.startswith('/v1/lock'):
            return self.say(200, {'locks': []}, OWN % 'HF_OK')
        name = body['name']
        note = seen.setdefault(name, [0, 0])
        if path == '/v1/release':
            note[1] += 1
            note.append(int(time.monotonic() * 1000))
            return self.say(410, {'status': 'HF_LOST', 'loss': 'taken'}, OWN % 'HF_LOST')
        if path == '/v1/renew':
            return self.say(200, {'ttl_ms': 5000, 'valid_ms': 4948}, OWN % 'HF_OK')
        note[0] += 1
        return self.acquire(name, body)

    def acquire(self, name, body):
        grant = {'token': '7', 'owner': body['owner'], 'ttl_ms': body['ttl_ms'], 'after_ms': 0, 'valid_ms': 1}
        if name == 'html':
            return self.say(200, '<html>log in</html>')
        if name == 'gateway':
            return self.say(502, 'Bad Gateway')
        if name == 'cut' or (name == 'dead' and self.answered):
            return False
        if name == 'dead':
            return self.say(200, grant, OWN % 'HF_OK')
        if name == 'used':
            return self.say(409, {'status': 'HF_UNKNOWN', 'detail': 'used before'}, OWN % 'HF_UNKNOWN')
        if name == 'busy':
            return self.say(423, {'status': 'HF_BUSY', 'detail': 'lock "busy" is held by somebody'}, OWN % 'HF_BUSY')
        if name == 'far':
            return self.say(200, dict(grant, after_ms=3600000), OWN % 'HF_OK')
        if name == 'half':
            return self.say(200, dict(grant, token='many'), OWN % 'HF_OK')
        if name == 'page':
            return self.say(200, '<html>\n</html>\n')
        self.say(200, '{"status": "waiting"}\n', OWN % 'waiting' + 'Connection: close\r\n', length=False)
        if name == 'kept':
            time.sleep(3)
            self.wfile.write(json.dumps(dict(grant, status='HF_OK', after_ms=3000)).encode() + b'\n')
        return False


class Server(socketserver.ThreadingUnixStreamServer):
    daemon_threads = True
    request_queue_size = 64


Server(sys.argv[1], Handler).serve_forever()
