// redis_semaphore.mjs PORT LIMIT CLIENTS SECONDS - so many clients go round on redis-semaphore's Semaphore of
// that limit; prints how often one had it that had to wait: a client that takes its own permit again and again
// hands nothing over. Wants `npm install redis-semaphore ioredis` in its folder.
import { createRequire } from 'node:module';

const require = createRequire(process.cwd() + '/');
const Redis = require('ioredis');
const { Semaphore } = require('redis-semaphore');

const [port, limit, clients, seconds] = process.argv.slice(2).map(Number);
const end = Date.now() + seconds * 1000;
let had = 0;

async function goRound() {
    const client = new Redis(port, '127.0.0.1');
    const once = new Semaphore(client, 'bench', limit, { lockTimeout: 20000, acquireAttemptsLimit: 1 });
    const patient = new Semaphore(client, 'bench', limit, { lockTimeout: 20000, acquireTimeout: 60000 });
    while (Date.now() < end) {
        if (await once.tryAcquire()) {
            await once.release();
        } else {
            await patient.acquire();
            had++;
            await patient.release();
        }
    }
    client.disconnect();
}

await Promise.all(Array.from({ length: clients }, goRound));
console.log(had);
