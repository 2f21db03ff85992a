"""What is no request is refused, and where it is not clear how a request ends the connection ends too."""
import json
import sys

from wire import JSON, Tap, connect, drip, ended, read_answer, request

where = sys.argv[1]
tap = Tap()
owner = "0123456789abcdef0123456789abcdef"
good = json.dumps({"name": "in", "owner": owner})
post = f"POST /v1/release HTTP/1.1\r\nHost: localhost\r\n{JSON}"
length = f"Content-Length: {len(good)}\r\n"

FRAMES = {
    "two lengths": post + length + length + "\r\n" + good,
    "two lengths that differ": post + length + "Content-Length: 5\r\n\r\n" + good,
    "two lengths in one line": post + "Content-Length: 5, 5\r\n\r\n" + good,
    "a length with a sign": post + f"Content-Length: +{len(good)}\r\n\r\n" + good,
    "a length in hex": post + "Content-Length: 0x10\r\n\r\n" + good,
    "an empty length": post + "Content-Length: \r\n\r\n" + good,
    "chunks": post + "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "chunks and a length": post + length + "Transfer-Encoding: chunked\r\n\r\n" + good,
    "chunks in disguise": post + length + "Transfer-Encoding: identity\r\n\r\n" + good,
    "a space before a colon": post + f"Content-Length : {len(good)}\r\n\r\n" + good,
    "a folded line": post + length + "X-A: b\r\n c\r\n\r\n" + good,
    "a line that begins with a space": post.replace("\r\nHost", "\r\n Host") + length + "\r\n" + good,
    "bare LF": (post + length + "\r\n").replace("\r\n", "\n") + good,
    "one bare LF": post + length.replace("\r\n", "\n") + "\r\n" + good,
    "a bare CR": post + "X-A: b\rc\r\n" + length + "\r\n" + good,
    "a NUL in a header": post + "X-A: b\0c\r\n" + length + "\r\n" + good,
    "a NUL in the path": request("GET", "/heal\0thz").decode(),
    "%00 in the path": request("GET", "/healthz%00").decode(),
    "%00 in the query": request("GET", "/v1/lock?name=a%00b").decode(),
    "an absolute URI": request("GET", "http://localhost/healthz").decode(),
    "a fragment": request("GET", "/healthz#x").decode(),
    "a star": request("OPTIONS", "*").decode(),
    "an authority": request("CONNECT", "localhost:80").decode(),
    "an upgrade": request("GET", "/healthz", headers="Connection: Upgrade\r\nUpgrade: websocket\r\n").decode(),
    "an upgrade to HTTP/2": request("GET", "/healthz", headers="Upgrade: h2c\r\n").decode(),
    "the preface of HTTP/2": "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "HTTP/0.9": "GET /healthz\r\n\r\n",
    "HTTP/1.2": "GET /healthz HTTP/1.2\r\nHost: localhost\r\n\r\n",
    "two spaces": "GET  /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "no Host": "GET /healthz HTTP/1.1\r\n\r\n",
    "two Hosts": "GET /healthz HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n\r\n",
    "a foreign Host": request("GET", "/healthz", host="evil.example").decode(),
    "a foreign Host with our port": request("GET", "/healthz", host="evil.example:7070").decode(),
    "a Host that begins as ours": request("GET", "/healthz", host="localhost.evil.example").decode(),
    "an empty Host": request("GET", "/healthz", host="").decode(),
    "an empty line first": "\r\n" + request("GET", "/healthz").decode(),
    "a header without a colon": "GET /healthz HTTP/1.1\r\nHost: localhost\r\nnonsense\r\n\r\n",
    "a header without a name": "GET /healthz HTTP/1.1\r\nHost: localhost\r\n: x\r\n\r\n",
    "TLS": "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
    "another Expect": post + length + "Expect: more\r\n\r\n" + good,
}
for what, text in FRAMES.items():
    s = connect(where)
    s.sendall(text.encode("latin-1"))
    code, headers, body, _ = read_answer(s)
    tap.ok(code == 400 and "holdfast-status" in headers and ended(s), f"{what}: 400, and the end ({code})")

OTHER = {
    "no length": (post + "\r\n", 411),
    "a body that is too large": (post + "Content-Length: 16385\r\n\r\n", 413),
    "a length that fits no number": (post + "Content-Length: 99999999999999999999999999\r\n\r\n", 413),
    "a head that is too large": ("GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-A: " + "a" * 9000, 413),
    "too many headers": ("GET /healthz HTTP/1.1\r\nHost: localhost\r\n" + "A: b\r\n" * 100 + "\r\n", 413),
}
for what, (text, wanted) in OTHER.items():
    s = connect(where)
    s.sendall(text.encode())
    code = read_answer(s)[0]
    tap.ok(code == wanted and ended(s), f"{what}: {wanted}, and the end ({code})")

BODIES = {
    "no JSON": "name=in",
    "half of it": '{"name": "in"',
    "an array": '["in"]',
    "a nested object": '{"name": "in", "owner": {"a": 1}}',
    "a nested array": '{"name": "in", "x": [1]}',
    "ten thousand brackets": "[" * 10000,
    "ten thousand braces": '{"a":' * 3000,
    "a key twice": f'{{"name": "in", "name": "in", "owner": "{owner}"}}',
    "a key twice, once escaped": f'{{"name": "in", "n\\u0061me": "in", "owner": "{owner}"}}',
    "a key twice that is not known": f'{{"name": "in", "owner": "{owner}", "x": 1, "x": 2}}',
    "something behind it": good + "x",
    "two objects": good + good,
    "a number for a name": f'{{"name": 1, "owner": "{owner}"}}',
    "null for a name": f'{{"name": null, "owner": "{owner}"}}',
    "an empty name": f'{{"name": "", "owner": "{owner}"}}',
    "a name of 201 bytes": json.dumps({"name": "n" * 201, "owner": owner}),
    "a control character in a name": json.dumps({"name": "a\nb", "owner": owner}),
    "a raw control character": f'{{"name": "a\nb", "owner": "{owner}"}}',
    "an escaped NUL": f'{{"name": "a\\u0000b", "owner": "{owner}"}}',
    "a lone surrogate": f'{{"name": "\\ud800", "owner": "{owner}"}}',
    "no owner": '{"name": "in"}',
    "a short owner": '{"name": "in", "owner": "0123"}',
    "an owner in capitals": json.dumps({"name": "in", "owner": owner.upper()}),
    "a number for a token": f'{{"name": "in", "owner": "{owner}", "token": 5}}',
    "a token below 0": f'{{"name": "in", "owner": "{owner}", "token": "-5"}}',
    "a token that fits no number": f'{{"name": "in", "owner": "{owner}", "token": "9{"9" * 20}"}}',
    "an empty body": "",
    "thirty-three fields": json.dumps({f"f{i}": i for i in range(33)}),
}
s = connect(where)
for what, body in BODIES.items():
    s.sendall(request("POST", "/v1/release", body))
    code, headers, said, _ = read_answer(s)
    tap.ok(code == 400 and headers["content-type"] == "application/problem+json"
           and json.loads(said)["status"] == "HF_INVALID", f"{what}: 400 ({code})")
s.sendall(post.encode() + b"Content-Length: 11\r\n\r\n" + b'{"na":"\xff1"}')
tap.eq(read_answer(s)[0], 400, "what is not UTF-8: 400")
for ttl in ("-1", "1.5", '"1000"', "86400001", "1e300", "true", "99"):
    body = f'{{"name": "in", "owner": "{owner}", "ttl_ms": {ttl}}}'
    s.sendall(request("POST", "/v1/acquire", body))
    tap.eq(read_answer(s)[0], 400, f"a ttl of {ttl}: 400")

for path, method, wanted in (("/", "OPTIONS", 405), ("/v1/acquire", "OPTIONS", 405), ("/v1/acquire", "GET", 405),
                             ("/healthz", "POST", 405), ("/healthz", "PUT", 405), ("/nothing", "GET", 404),
                             ("/v1//acquire", "GET", 404), ("/healthz/", "GET", 404)):
    s.sendall(request(method, path, headers="Content-Length: 0\r\n"))
    code, headers, _, _ = read_answer(s)
    tap.ok(code == wanted and ("allow" in headers) == (wanted == 405)
           and not any(h.startswith("access-control") for h in headers), f"{method} {path}: {wanted} ({code})")

fields = json.dumps({"name": "in", "owner": "1" * 32, "ttl_ms": 1000})
s.sendall(request("POST", "/v1/acquire", fields, "Accept: text/html, */*\r\nAccept: text/plain, Application/X-NDJSON;q=0.9\r\n"
                  "Connection: close\r\n"))
_, headers, _, rest = read_answer(s)
tap.ok(headers["content-type"] == "application/x-ndjson" and ended(s), "Accept may have two lines, and a line more than one item")
s = connect(where)

# Nothing follows the head of an answer to HEAD: it would be taken for the next answer.
s.sendall(request("HEAD", "/healthz") + request("GET", "/v1/lock?name=in"))
got = b""
while got.count(b"\r\n\r\n") < 2:
    got += s.recv(65536)
head, _, rest = got.partition(b"\r\n\r\n")
tap.ok(head.startswith(b"HTTP/1.1 405 ") and rest.startswith(b"HTTP/1.1 200 "), f"an answer to HEAD has no body ({rest[:20]})")
while not rest.endswith(b"]}\n"):
    rest += s.recv(65536)

for type_ in ("text/plain", "application/x-www-form-urlencoded", "application/jsonp", "multipart/form-data"):
    s.sendall(f"POST /v1/release HTTP/1.1\r\nHost: localhost\r\nContent-Type: {type_}\r\n{length}\r\n{good}".encode())
    tap.eq(read_answer(s)[0], 400, f"a POST of {type_}: 400")
s.sendall(f"POST /v1/release HTTP/1.1\r\nHost: localhost\r\n{length}\r\n{good}".encode())
tap.eq(read_answer(s)[0], 400, "a POST of no type: 400")
s.sendall(f"POST /v1/release HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json; charset=utf-8\r\n"
          f"{length}\r\n{good}".encode())
tap.eq(read_answer(s)[0], 410, "a type with a charset is one")
for query in ("?name=%ff", "?name=%zz", "?name=%4", "?name=a&name=b", "", "?name=", "?x=1"):
    s.sendall(request("GET", "/v1/lock" + query))
    tap.eq(read_answer(s)[0], 400, f"/v1/lock{query}: 400")
s.sendall(request("GET", "/v1/locks?limit=x"))
tap.eq(read_answer(s)[0], 400, "a limit that is no number: 400")

s.sendall(b"".join(request("GET", p) for p in ("/healthz", "/nothing", "/v1/store", "/healthz")))
pending, codes = b"", []
for _ in range(4):
    code, _, _, pending = read_answer(s, pending)
    codes.append(code)
tap.eq(codes, [200, 404, 200, 200], "pipelined requests are answered in order")
s.sendall(f"{post}{length}Expect: 100-continue\r\n\r\n".encode())
tap.eq(read_answer(s)[0], 100, "Expect: 100-continue is answered")
s.sendall(good.encode())
tap.eq(read_answer(s)[0], 410, "and then the request")
s.sendall(request("GET", "/healthz", headers="Connection: close\r\n"))
tap.ok(read_answer(s)[0] == 200 and ended(s), "Connection: close closes")
s = connect(where)
s.sendall(b"GET /healthz HTTP/1.0\r\nHost: localhost\r\n\r\n")
tap.ok(read_answer(s)[0] == 200 and ended(s), "HTTP/1.0 is answered, and closed")

deaf = connect(where)
deaf.settimeout(2)
try:
    for _ in range(2000):
        deaf.sendall(request("GET", "/"))
except TimeoutError:
    pass
deaf.settimeout(20)
s = connect(where)
took = drip(s, request("GET", "/healthz", headers="X-A: " + "a" * 2000 + "\r\n"), 0.25)
code = read_answer(s)[0]
tap.ok(code == 408 and 9 < took < 13, f"a request that drips is given up after 10s ({code} after {took:.1f}s)")
got = 0
try:
    while more := deaf.recv(1 << 20):
        got += len(more)
    closed = True
except ConnectionResetError:
    closed = True
except TimeoutError:
    closed = False
tap.ok(closed and got < 4 << 20, f"a reader that takes nothing for 10s is closed ({got} bytes were on their way)")
tap.done()
