"""openapi.py SOCKET TCP_PORT SECRET_FILE - holds docs/openapi.json against the answers of a server. Prints TAP.

Every answer that is got here must be described there: its path, its code, its type, its headers and each of its
members. And every answer that is described as a success is got here.
"""
import http.client
import json
import os
import re
import secrets
import socket
import sys

import jsonschema

DOCUMENT = json.load(open(os.path.join(os.path.dirname(__file__), '../../docs/openapi.json'), encoding='utf-8'))
SOCKET, PORT, SECRET = sys.argv[1], int(sys.argv[2]), open(sys.argv[3], encoding='ascii').read()
HOUR = 3600000
count = failed = 0
got = set()


def ok(good, what, why=''):
    global count, failed
    count += 1
    failed += not good
    print('%sok %d - %s' % ('' if good else 'not ', count, what))
    for line in str(why).splitlines()[:12] if not good else ():
        print('#   ' + line)


class Unix(http.client.HTTPConnection):
    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(30)
        self.sock.connect(SOCKET)


def found(node):
    """What a node is, or what its reference names."""
    while '$ref' in node:
        name = node['$ref'].split('/')[1:]
        node = DOCUMENT
        for step in name:
            node = node[step]
    return node


def fits(value, schema):
    jsonschema.Draft202012Validator({**schema, 'components': DOCUMENT['components']}).validate(value)


def ask(code, method, path, fields=None, connection=None, headers=None):
    """Asks, and holds the answer against the document."""
    connection = connection or Unix('localhost')
    sent = {'Content-Type': 'application/json'} if fields is not None else {}
    body = fields if fields is None or isinstance(fields, (bytes, str)) else json.dumps(fields)
    connection.request(method, path, body, {**sent, **(headers or {})})
    answer = connection.getresponse()
    text = answer.read().decode()
    what = '%s %s: %d' % (method, path, code)
    if answer.status != code:
        ok(False, what, '%d %s' % (answer.status, text))
        return None
    route = path.split('?')[0]
    try:
        described = found(DOCUMENT['paths'][route][method.lower()]['responses'][str(code)])
        for name in described['headers']:
            assert answer.getheader(name), 'the header %s is missing' % name
        assert answer.getheader('Cache-Control') == 'no-store' and answer.getheader('X-Content-Type-Options') == 'nosniff'
        kind = answer.getheader('Content-Type').split(';')[0]
        schema = described['content'][kind]['schema']
        said = json.loads(text) if kind.endswith('json') else text.splitlines()
        if kind == 'application/x-ndjson':
            said = json.loads(said[-1]) if isinstance(said, list) else said
        if kind.startswith('text/'):
            said = text
        fits(said, schema)
        if code >= 400:
            assert said['status'] == answer.getheader('Holdfast-Status'), 'two statuses'
    except (KeyError, AssertionError, ValueError, jsonschema.ValidationError) as wrong:
        ok(False, what, '%s: %s\n%s' % (type(wrong).__name__, wrong, text[:300]))
        return None
    got.add((method, route, code))
    ok(True, what)
    return said


def line(fields):
    """The last line of a stream: an object like any other, with its status."""
    connection = Unix('localhost')
    connection.request('POST', '/v1/acquire', json.dumps(fields),
                       {'Content-Type': 'application/json', 'Accept': 'application/x-ndjson'})
    answer = connection.getresponse()
    last = json.loads(answer.read().decode().splitlines()[-1])
    status = last.pop('status')
    return answer, status, last


def locks():
    owner, other = secrets.token_hex(16), secrets.token_hex(16)
    lease = ask(200, 'POST', '/v1/acquire', {'name': 'a', 'owner': owner, 'ttl_ms': HOUR, 'label': 'here'})
    ask(423, 'POST', '/v1/acquire', {'name': 'a', 'owner': other, 'ttl_ms': HOUR})
    ask(409, 'POST', '/v1/acquire', {'name': 'b', 'owner': other, 'ttl_ms': HOUR})
    held = {'name': 'a', 'owner': owner, 'token': lease['token']}
    ask(200, 'POST', '/v1/renew', {**held, 'ttl_ms': HOUR})
    ask(200, 'POST', '/v1/renew', {**held, 'ttl_ms': 0})
    said = ask(200, 'GET', '/v1/locks?prefix=a&limit=5')
    ok(said and [lock['name'] for lock in said['locks']] == ['a'] and said['more'] == 0, 'the lock is listed', said)
    said = ask(200, 'GET', '/v1/lock?name=a')
    ok(said and said['locks'][0]['token'] == lease['token'], 'and shown', said)
    ask(200, 'GET', '/v1/lock?name=none')
    ask(200, 'POST', '/v1/release', held)
    ask(410, 'POST', '/v1/release', held)
    ask(410, 'POST', '/v1/renew', {**held, 'ttl_ms': HOUR})
    answer, status, last = line({'name': 's', 'owner': secrets.token_hex(16), 'ttl_ms': 1000, 'wait_ms': 1000})
    ok(answer.getheader('Content-Type') == 'application/x-ndjson' and status == 'HF_OK', 'a stream ends with its verdict', last)
    fits(last, DOCUMENT['components']['schemas']['Granted'])
    answer, status, last = line({'name': 's', 'owner': secrets.token_hex(16), 'ttl_ms': 1000, 'wait_ms': 10})
    ok(status == 'HF_BUSY', 'also with a refusal', last)
    fits({'status': status, **last}, DOCUMENT['components']['schemas']['Problem'])


def refusals():
    for path in ('/v1/acquire', '/v1/renew', '/v1/release'):
        ask(400, 'POST', path, {'name': ''})
        ask(400, 'POST', path, 'no json')
        ask(413, 'POST', path, b'{"name": "' + b'x' * 20000 + b'"}')
    ask(400, 'GET', '/v1/lock')
    ask(400, 'GET', '/v1/locks?limit=x')
    tcp = lambda: http.client.HTTPConnection('127.0.0.1', PORT, timeout=30)
    me = {'Authorization': 'Bearer ' + SECRET}
    for method, path in (('GET', '/v1/locks'), ('GET', '/v1/lock?name=a'), ('GET', '/metrics'), ('POST', '/v1/release')):
        ask(401, method, path, {} if method == 'POST' else None, tcp())
    owner = secrets.token_hex(16)
    ask(403, 'POST', '/v1/acquire', {'name': 'a', 'owner': owner, 'ttl_ms': HOUR}, tcp(), me)
    ask(403, 'GET', '/metrics', None, tcp(), me)
    ask(200, 'GET', '/v1/locks', None, tcp(), me)


def others():
    said = ask(200, 'GET', '/v1/store')
    ok(said and said['scheme'] == 'file' and 'detached' in said['features'], 'the store is told of', said)
    for path in ('/', '/metrics', '/healthz', '/readyz'):
        ask(200, 'GET', path)


def whole():
    """Nothing is described that is not there."""
    named = {(method.upper(), path, int(code)) for path, methods in DOCUMENT['paths'].items()
             for method, what in methods.items() for code in what['responses'] if code == '200'}
    ok(named <= got, 'every success that is described was seen', named - got)
    text = json.dumps(DOCUMENT)
    dangling = [ref for ref in set(re.findall(r'"\$ref": "([^"]*)"', text)) if not found({'$ref': ref})]
    ok(not dangling, 'every reference leads somewhere', dangling)


locks()
refusals()
others()
whole()
print('1..%d' % count)
sys.exit(failed > 0)
