// driver.js - does with the Node binding what it is told, line by line: tests/bindings/README.md.
'use strict';
const fs = require('node:fs');
const readline = require('node:readline');
const { setTimeout: sleep } = require('node:timers/promises');
const util = require('node:util');
const holdfast = require(process.env.HOLDFAST_NODE);

let store;
const leases = new Map();
const tasks = new Map();
const now = () => Number(process.hrtime.bigint()) / 1e6;
const options = (ttl, wait, label, keep = true) =>
    ({ ttl: ttl || undefined, wait: wait < 0 ? Infinity : wait, label: label ?? undefined, keep });

function taken(slot, lease) {
    const all = Array.isArray(lease) ? lease : [lease];
    leases.set(slot, lease);
    return { ok: String(all[0].token), name: all.map(({ name }) => name).join('+'), remaining: lease.remaining, at: now() };
}

// Of a name, or of { any: names } or { all: names }.
function wanted(name, how) {
    if (typeof name === 'string') return store.lock(name, how);
    const [[kind, names]] = Object.entries(name);
    return store[kind](names, how);
}

function failed(error) {
    const known = error instanceof holdfast.HoldfastError;
    return { error: known ? error.name : 'Body', text: error.message, shown: util.inspect([error, store, leases]),
        reason: error.reason ?? null, retry_after_ms: error.retryAfter ?? 0, at: now() };
}

const commands = {
    async open(url, wait = 0) {
        store = await holdfast.open(url, { wait });
        return { ok: store.url };
    },
    async lock(slot, name, ...rest) { return taken(slot, await wanted(name, options(...rest))); },
    begin(slot, name, ...rest) {
        const abort = new AbortController();
        const task = wanted(name, { ...options(...rest), signal: abort.signal })
            .then((lease) => taken(slot, lease), failed);
        tasks.set(slot, { abort, task });
        return { ok: true };
    },
    cancel(slot) { tasks.get(slot).abort.abort(); return { ok: true }; },
    join(slot) { return tasks.get(slot).task; },
    async lost(slot) {
        const { signal } = leases.get(slot);
        if (!signal.aborted) await new Promise((resolve) => {
            signal.addEventListener('abort', resolve);
            setTimeout(resolve, 60000).unref();
        });
        return { ok: signal.reason.reason, at: now() };
    },
    async with(name, ttl, fail, keep, pause) {
        await (name.all ? store.withAll : store.with).call(store, name.all ?? name, options(ttl, 0, null, keep), async () => {
            await sleep(pause);
            if (fail) throw new Error('the body failed');
        });
        return { ok: true };
    },
    async put(slot, key, value) { await leases.get(slot).put(key, value); return { ok: true }; },
    async get(name, key) {
        const record = await store.get(name, key);
        return { ok: record && record.value.toString(), token: record && String(record.token) };
    },
    async elect(slot, name, address) { return taken(slot, await store.elect(name, { address })); },
    async break(name, token, reason) { await store.break(name, BigInt(token), { reason }); return { ok: true }; },
    async leader(name) {
        const found = await store.leader(name);
        return { ok: found && String(found.term), address: found && found.address };
    },
    async turns(count, name, counter, who) {
        for (let i = 0; i < count; i++) await store.with(name, { wait: Infinity }, () => {
            fs.writeFileSync(counter, String(Number(fs.readFileSync(counter, 'utf8')) + 1));
            fs.appendFileSync(`${counter}.log`, `${who}\n`);
        });
        return { ok: count };
    },
    async once(key, options, failures) {
        const { outcome, ran, text } = await store.once(key, options, (job) => {
            job.check();
            if (failures-- > 0) throw new Error('the body failed');
        });
        return { ok: outcome, ran, text };
    },
    check(slot) { leases.get(slot).check(); return { ok: true }; },
    async renew(slot, ttl) {
        await leases.get(slot).renew(ttl || undefined);
        return { ok: true, remaining: leases.get(slot).remaining };
    },
    async release(slot) { await leases.get(slot).release(); return { ok: true }; },
    remaining(slot) { return { ok: true, remaining: leases.get(slot).remaining }; },
    async close() { await store.close(); return { ok: true }; },
};

async function main() {
    for await (const line of readline.createInterface({ input: process.stdin })) {
        const [command, ...rest] = JSON.parse(line);
        let answer;
        try {
            answer = await commands[command](...rest);
        } catch (error) {
            answer = failed(error);
        }
        process.stdout.write(`${JSON.stringify(answer)}\n`);
    }
    process.exit(0);
}
main();
