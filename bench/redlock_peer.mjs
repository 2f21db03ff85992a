// redlock_peer.mjs PORT... - acquire + release with node-redlock over these servers.
import Redis from 'ioredis';
import RedlockModule from 'redlock';

const Redlock = RedlockModule.default ?? RedlockModule;
const clients = process.argv.slice(2).map((port) => new Redis(Number(port), '127.0.0.1'));
const redlock = new Redlock(clients, { retryCount: 0 });

async function pairs(count) {
    const start = process.hrtime.bigint();
    for (let i = 0; i < count; i++) {
        const lock = await redlock.acquire(['bench:node'], 30000);
        await lock.release();
    }
    return Number(process.hrtime.bigint() - start) / 1000 / count;
}

await pairs(300);
const rounds = [];
const before = process.cpuUsage();
for (let i = 0; i < 7; i++) {
    rounds.push(await pairs(300));
}
const cpu = process.cpuUsage(before);
rounds.sort((a, b) => a - b);
console.log(`node_redlock_us ${rounds[3].toFixed(1)}`);
console.log(`node_cpu_us ${((cpu.user + cpu.system) / 2100).toFixed(1)}`);
process.exit(0);
