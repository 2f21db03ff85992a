

// ---- the service of the test; the function above is the page's ----
const http = require('node:http');
const { Pool } = require('pg');

const pool = new Pool({ connectionString: process.env.DSN_URL });

async function orders(db, body) {
    if (body === 'boom') {
        await db.query("INSERT INTO orders VALUES ('boom')");
        throw new Error('boom');
    }
    if (body === 'declined') return [402, 'the card was declined'];
    if (body === 'huge') return [200, 'x'.repeat(1024 * 1024 + 1)];
    if (body === 'slow') await db.query('SELECT pg_advisory_xact_lock(4711)'); // until the test lets go
    const told = await db.query(
        "INSERT INTO orders VALUES ($1) RETURNING 'order ' || (SELECT count(*) + 1 FROM orders) AS told", [body]);
    return [201, told.rows[0].told];
}

async function account(db, body) {
    await db.query('UPDATE account SET v = $1', [body]);
    return [200, 'written'];
}

async function answer(request, body) {
    const scope = `${request.headers.authorization} POST ${request.url}`;
    const db = await pool.connect();
    try {
        if (request.url === '/orders') return await idempotent(db, scope, request, body, (c) => orders(c, body));
        if (request.url === '/account')
            return await idempotent(db, scope, request, body, (c) => account(c, body), 'account');
        await db.query('UPDATE plain SET v = $1', [body]); // without the check
        return [200, 'written'];
    } catch (error) {
        return [500, ''];
    } finally {
        db.release();
    }
}

const server = http.createServer(async (request, response) => {
    let body = '';
    for await (const part of request) body += part;
    const [status, told] = await answer(request, body);
    response.writeHead(status, status === 409 ? { 'Retry-After': '1' } : {});
    response.end(told);
});
server.listen(0, '127.0.0.1', () => console.log(server.address().port));
