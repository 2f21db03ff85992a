// redis_semaphore.mjs PORT LIMIT START SECONDS - a client that goes round on redis-semaphore's Semaphore of that limit
// from START on, in seconds of the clock; after a second of warming up it counts for SECONDS how often it got the
// semaphore after a wait: a client that takes its own permit again and again hands nothing over. Wants
// `npm install redis-semaphore ioredis` in its folder.
import { createRequire } from 'node:module';

const require = createRequire(process.cwd() + '/');
const Redis = require('ioredis');
const { Semaphore } = require('redis-semaphore');

const [port, limit, start, seconds] = process.argv.slice(2).map(Number);
const from = (start + 1) * 1000;
const end = from + seconds * 1000;
const client = new Redis(port, '127.0.0.1');
const once = new Semaphore(client, 'bench', limit, { lockTimeout: 20000, acquireAttemptsLimit: 1, retryInterval: 0 });
const patient = new Semaphore(client, 'bench', limit, { lockTimeout: 20000, acquireTimeout: 60000 });
let had = 0;

await client.ping();
if (Date.now() > start * 1000) throw new Error('it came too late');
await new Promise((resolve) => setTimeout(resolve, start * 1000 - Date.now()));
while (Date.now() < end) {
    if (await once.tryAcquire()) {
        await once.release();
    } else {
        await patient.acquire();
        if (Date.now() >= from && Date.now() < end) had++;
        await patient.release();
    }
}
client.disconnect();
console.log(had);
