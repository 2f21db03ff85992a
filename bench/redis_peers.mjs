// redis_peers.mjs PORT - node-redlock on one server. Wants `npm install redlock ioredis` in its folder.
import { createRequire } from 'node:module';

const require = createRequire(process.cwd() + '/');
const Redis = require('ioredis');
const { default: Redlock } = require('redlock');

const client = new Redis(Number(process.argv[2]), '127.0.0.1');
const redlock = new Redlock([client], { retryCount: 0 });
const blocks = [];
const pairs = async (count) => {
    for (let i = 0; i < count; i++) {
        const lock = await redlock.acquire(['bench:node'], 30000);
        await lock.release();
    }
};
await pairs(1500); // to be warm, as bindings_pair.js
for (let block = 0; block < 11; block++) {
    const start = process.hrtime.bigint();
    await pairs(150);
    blocks.push(Number(process.hrtime.bigint() - start) / 150 / 1000);
}
blocks.sort((a, b) => a - b);
console.log(`node_redlock_pair_us ${blocks[5].toFixed(2)}`);
client.disconnect();
