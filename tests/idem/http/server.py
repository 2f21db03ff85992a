

# ---- the service of the test; the function above is the page's ----
import http.server
import os


class Request:
    pass


def orders(cursor, body):
    if body == b"boom":
        cursor.execute("INSERT INTO orders VALUES ('boom')")
        raise RuntimeError("boom")
    if body == b"declined":
        return 402, b"the card was declined"
    if body == b"huge":
        return 200, b"x" * (1024 * 1024 + 1)
    if body == b"slow":
        cursor.execute("SELECT pg_advisory_xact_lock(4711)")  # until the test lets go
    cursor.execute("INSERT INTO orders VALUES (%s) RETURNING 'order ' || (SELECT count(*) + 1 FROM orders)",
                   (body.decode(),))
    return 201, cursor.fetchone()[0].encode()


def account(cursor, body):
    cursor.execute("UPDATE account SET v = %s", (int(body),))
    return 200, b"written"


class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        request = Request()
        request.method, request.path, request.headers = "POST", self.path, self.headers
        request.body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        db = psycopg2.connect(os.environ["DSN"])
        try:
            scope = f"{self.headers.get('Authorization')} POST {self.path}"
            if self.path == "/orders":
                status, body = idempotent(db, scope, request, lambda c: orders(c, request.body))
            elif self.path == "/account":
                status, body = idempotent(db, scope, request, lambda c: account(c, request.body), "account")
            else: # without the check
                with db, db.cursor() as cursor:
                    cursor.execute("UPDATE plain SET v = %s", (int(request.body),))
                status, body = 200, b"written"
        except Exception:
            status, body = 500, b""
        finally:
            db.close()
        self.send_response(status)
        if status == 409:
            self.send_header("Retry-After", "1")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print(server.server_port, flush=True)
server.serve_forever()
