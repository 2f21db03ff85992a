
// ---- the service of the test; the function above is the page's ----

static Reply orders(Connection db, String body) throws Exception {
    if (body.equals("boom")) {
        db.createStatement().execute("INSERT INTO orders VALUES ('boom')");
        throw new IllegalStateException("boom");
    }
    if (body.equals("declined")) return new Reply(402, "the card was declined".getBytes());
    if (body.equals("huge")) return new Reply(200, new byte[1024 * 1024 + 1]);
    if (body.equals("slow")) // until the test lets go
        db.createStatement().execute("SELECT pg_advisory_xact_lock(4711)");
    PreparedStatement insert = db.prepareStatement(
            "INSERT INTO orders VALUES (?) RETURNING 'order ' || (SELECT count(*) + 1 FROM orders)");
    insert.setString(1, body);
    ResultSet told = insert.executeQuery();
    told.next();
    return new Reply(201, told.getString(1).getBytes());
}

static Reply account(Connection db, String body) throws Exception {
    db.createStatement().execute("UPDATE account SET v = " + Integer.parseInt(body));
    return new Reply(200, "written".getBytes());
}

static void answer(HttpExchange http) throws java.io.IOException {
    byte[] body = http.getRequestBody().readAllBytes();
    String path = http.getRequestURI().getPath(), text = new String(body);
    String scope = http.getRequestHeaders().getFirst("Authorization") + " POST " + path;
    Reply reply;
    try (Connection db = DriverManager.getConnection(System.getenv("DSN_JDBC"))) {
        db.setAutoCommit(false);
        if (path.equals("/orders")) reply = idempotent(db, scope, null, http, body, c -> orders(c, text));
        else if (path.equals("/account")) reply = idempotent(db, scope, "account", http, body, c -> account(c, text));
        else { // without the check
            db.createStatement().execute("UPDATE plain SET v = " + Integer.parseInt(text));
            db.commit();
            reply = new Reply(200, null);
        }
    } catch (Exception e) {
        reply = new Reply(500, null);
    }
    byte[] told = reply.body() == null ? new byte[0] : reply.body();
    if (reply.status() == 409) http.getResponseHeaders().set("Retry-After", "1");
    http.sendResponseHeaders(reply.status(), told.length == 0 ? -1 : told.length);
    http.getResponseBody().write(told);
    http.close();
}

public static void main(String[] words) throws Exception {
    HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", 0), 0);
    server.createContext("/", Server::answer);
    server.setExecutor(Executors.newCachedThreadPool());
    server.start();
    System.out.println(server.getAddress().getPort());
}
}
