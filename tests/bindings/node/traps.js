// traps.js NAME URL - one thing that may go wrong with the Node binding; prints what came of it.
'use strict';
const { setMaxListeners } = require('node:events');
const fs = require('node:fs');
const { setTimeout: sleep } = require('node:timers/promises');
const { Worker, isMainThread, parentPort, workerData } = require('node:worker_threads');
const holdfast = require(process.env.HOLDFAST_NODE);

const [name, url] = isMainThread ? process.argv.slice(2) : [workerData.name, workerData.url];

const traps = {
    // 64 acquires wait, 16 times as many as libuv has threads; files are read all the same.
    async waiting() {
        const store = await holdfast.open(url);
        const lease = await store.lock('waited for');
        const abort = new AbortController();
        setMaxListeners(0, abort.signal);
        const waits = Array.from({ length: 64 }, () => store.lock('waited for', { wait: 60000, signal: abort.signal })
            .then((one) => one.release().then(() => 'taken'), (error) => error.name));
        await sleep(300);
        const began = Date.now();
        for (let i = 0; i < 20; i++) await fs.promises.readFile(__filename);
        const read = Date.now() - began < 2000;
        abort.abort();
        const ends = new Set(await Promise.all(waits));
        await lease.release();
        await store.close();
        console.log(read ? 'read' : 'stuck', ...ends);
    },
    // A worker ends while it holds a lock and waits for another.
    async workers() {
        const store = await holdfast.open(url);
        const lease = await store.lock('of the main thread');
        const worker = new Worker(__filename, { workerData: { name: 'inWorker', url } });
        await new Promise((resolve) => worker.once('message', resolve));
        const busy = await store.lock('of the worker').then(() => 'free', (error) => error.name);
        await sleep(100);
        await worker.terminate();
        const taken = await store.lock('of the worker', { wait: 2000 }).then(() => 'free', (error) => error.name);
        lease.check();
        await lease.release();
        console.log(busy, taken);
        await store.close();
    },
    async inWorker() {
        const store = await holdfast.open(url);
        const lease = await store.lock('of the worker', { ttl: 60000 });
        void lease.signal;
        store.lock('of the main thread', { wait: Infinity }).catch(() => {});
        parentPort.postMessage('held');
        await sleep(60000);
        lease.check();
    },
    // Many workers at once take turns.
    async crowd() {
        const counter = new SharedArrayBuffer(8);
        const workers = Array.from({ length: 4 }, () => new Worker(__filename,
            { workerData: { name: 'count', url, counter } }));
        await Promise.all(workers.map((worker) => new Promise((resolve, reject) => {
            worker.once('exit', resolve);
            worker.once('error', reject);
        })));
        console.log('counted', new Int32Array(counter)[0]);
    },
    async count() {
        const store = await holdfast.open(url);
        const cell = new Int32Array(workerData.counter);
        for (let i = 0; i < 50; i++) await store.with('counted', { wait: 60000 }, async () => {
            const before = cell[0];
            await sleep(0);
            cell[0] = before + 1;
        });
        await store.close();
    },
    async exits() {
        const store = await holdfast.open(url);
        const lease = await store.lock('left behind', { ttl: 60000 });
        void lease.signal;
        console.log('held', typeof lease.token);
        if (process.argv[4]) process.exit(3);
    },
    async collected() {
        process.on('warning', (warning) => console.log(warning.name, /never released/.test(warning.message)));
        const store = await holdfast.open(url);
        void (await store.lock('dropped')).signal;
        for (let i = 0; i < 100 && !done; i++) {
            global.gc();
            await sleep(20);
            var done = await store.lock('dropped').then((lease) => lease.release().then(() => true), () => false);
        }
        console.log(done ? 'free' : 'still held');
        await store.close();
    },
    // Whoever has only the signal of a lease still has the lease. Asking for it again costs nothing.
    async signals() {
        process.on('warning', (warning) => console.log(warning.name));
        const store = await holdfast.open(url);
        const signals = [await store.lock('a').then((lease) => lease.signal),
            await store.all(['b', 'c']).then((leases) => Array.from({ length: 20 }, () => leases.signal).pop())];
        for (let i = 0; i < 10; i++) { global.gc(); await sleep(10); }
        const held = await Promise.all(['a', 'b', 'c'].map((name) => store.lock(name).then(() => 'free', (error) => error.name)));
        const heard = signals.map((signal) => new Promise((resolve) => signal.addEventListener('abort', () => resolve(signal.reason.name))));
        const alive = setInterval(() => {}, 1000); // a signal alone does not keep the process
        await store.close();
        console.log(...held, ...await Promise.all(heard));
        clearInterval(alive);
    },
    // Many leases are lost at once, in the main thread and in a worker, and each is given back when its signal says so; workers
    // are terminated while they watch theirs. No descriptor is left, and what a listener throws is not lost.
    async losses() {
        await new Promise((resolve) => new Worker(__filename, { workerData: { name: 'allLost', url } }).once('exit', resolve));
        const before = fs.readdirSync('/proc/self/fd').length;
        process.once('uncaughtException', (error) => console.log(error.message));
        const heard = await traps.allLost(() => { throw new Error('thrown'); });
        for (let i = 0; i < 8; i++) {
            const worker = new Worker(__filename, { workerData: { name: 'watches', url } });
            await new Promise((resolve) => worker.once('message', resolve));
            await worker.terminate();
        }
        const more = fs.readdirSync('/proc/self/fd').length - before;
        console.log(heard, more < 4 ? 'none left' : more);
    },
    async allLost(listener = () => {}) {
        const store = await holdfast.open(url);
        const leases = await Promise.all(Array.from({ length: 100 }, (_, n) => store.lock(`lost ${n}`)));
        leases[0].signal.addEventListener('abort', listener);
        const ends = leases.map((lease) => new Promise((resolve) => lease.signal.addEventListener('abort', () =>
            resolve(lease.release().catch((error) => `${error.name} ${error.reason}`)))));
        const alive = setInterval(() => {}, 1000); // a signal alone does not keep the process
        await store.close();
        const heard = [...new Set(await Promise.all(ends))].join();
        clearInterval(alive);
        if (!isMainThread) console.log(heard);
        return heard;
    },
    async watches() {
        const store = await holdfast.open(url);
        const leases = await Promise.all(Array.from({ length: 20 }, (_, n) => store.lock(`watched ${n}`, { wait: 5000 })));
        const signals = leases.map(({ signal }) => signal);
        parentPort.postMessage('held');
        await sleep(60000);
        console.log(signals.length);
    },
    // Where no thread can be had, the call says so, and what went before goes on.
    async crowded() {
        const store = await holdfast.open(url);
        const lease = await store.lock('crowded');
        const abort = new AbortController();
        setMaxListeners(0, abort.signal);
        const waits = Array.from({ length: 400 }, () => store.lock('crowded', { wait: Infinity, signal: abort.signal })
            .catch((error) => error.name));
        await sleep(500);
        abort.abort();
        const ends = new Set(await Promise.all(waits));
        lease.check();
        await lease.release();
        console.log(...[...ends].sort());
        await store.close();
    },
    // Closing ends waits; a second close, and a call after it, are told.
    async closed() {
        const store = await holdfast.open(url);
        const lease = await store.lock('open');
        const wait = store.lock('open', { wait: Infinity }).catch((error) => error.name);
        await sleep(100);
        await Promise.all([store.close(), store.close()]);
        const after = await store.lock('open').catch((error) => `${error.name} ${/is closed/.test(error.message)}`);
        console.log(await wait, after, lease.loss);
        await lease.release().catch((error) => console.log(error.name, error.reason));
    },
    // A loop that only awaits quick locks does not keep timers waiting: twenty looks, and the event loop goes round.
    async timers() {
        const store = await holdfast.open(url);
        await (await store.lock('turn')).release();
        let ticks = 0, pairs = 0;
        const timer = setInterval(() => ticks++, 1);
        for (const end = Date.now() + 500; Date.now() < end; pairs++) await (await store.lock('turn')).release();
        clearInterval(timer);
        console.log(pairs > 100, ticks > 20);
        await store.close();
    },
    // 64 at once: more than are looked for in one turn.
    async together() {
        const store = await holdfast.open(url);
        for (let i = 0; i < 3; i++) {
            const leases = await Promise.all(Array.from({ length: 64 }, (_, n) => store.lock(`one of ${n}`)));
            leases.forEach((lease) => lease.check());
            console.log(new Set(leases.map(({ token, name }) => `${name} ${token}`)).size);
            await Promise.all(leases.map((lease) => lease.release()));
        }
        await store.close();
    },
    // The server is frozen: asking for a lock takes a few looks of 100 us, with much room for a busy machine, but not
    // the time until there is an answer.
    async frozen() {
        const store = await holdfast.open(url);
        await (await store.lock('frozen')).release();
        process.kill(Number(process.env.REDIS_PID), 'SIGSTOP');
        let longest = 0;
        try {
            for (let i = 0; i < 20; i++) {
                const began = process.hrtime.bigint();
                for (let n = 0; n < 8; n++) store.lock(`frozen ${n}`).then((lease) => lease.release()).catch(() => {});
                longest = Math.max(longest, Number(process.hrtime.bigint() - began) / 1e6);
                await sleep(5);
            }
        } finally {
            process.kill(Number(process.env.REDIS_PID), 'SIGCONT');
        }
        await sleep(200);
        console.log(longest < 100 ? 'brief' : longest);
        await store.close();
    },
    // 64 at once, in one process: one does the work.
    async once() {
        const store = await holdfast.open(url);
        const all = await Promise.all(Array.from({ length: 64 }, (_, n) => store.once('crowd', { wait: Infinity }, () => n)));
        const ran = all.filter((one) => one.ran);
        console.log(ran.length, typeof ran[0].value, new Set(all.map(({ token }) => token)).size);
        await store.close();
    },
    // What the work fails with comes first, and a wait that is aborted ends soon.
    async onceFails() {
        const store = await holdfast.open(url);
        const alive = setInterval(() => {}, 1000); // a signal alone does not keep the process
        const fails = [() => { throw new TypeError(); }, async () => { throw new RangeError(); },
            async (turn) => turn.release(),
            (turn) => store.break('f2', turn.token, { now: true })].map((work, n) => store.once(`f${n - 1}`, {}, work)
            .catch((error) => error.name));
        console.log(...await Promise.all(fails));
        const heard = await store.once('hears', { ttl: 1000 }, async (turn) => {
            await store.break('hears', turn.token, { now: true });
            await new Promise((resolve) => turn.signal.addEventListener('abort', resolve));
            throw turn.signal.reason;
        }).catch((error) => error.name);
        const waits = store.once('waits', {}, async (turn) => {
            const began = Date.now();
            const end = await store.once('waits', { wait: Infinity, signal: AbortSignal.timeout(100) }, () => {}).catch((e) => e.name);
            turn.check();
            return `${end} ${Date.now() - began < 400}`;
        });
        console.log(heard, (await waits).value);
        clearInterval(alive);
        await store.close();
    },
    // Work that nobody waits for any more, and whose promise is never settled.
    async onceCollected() {
        process.on('warning', (warning) => console.log(warning.name));
        const store = await holdfast.open(url);
        await new Promise((begun) => { store.once('dropped once', {}, () => { begun(); return new Promise(() => {}); }); });
        for (let i = 0; i < 100 && !done; i++) {
            global.gc();
            await sleep(20);
            var done = await store.lock('dropped once').then((lease) => lease.release().then(() => true), () => false);
        }
        console.log(done ? 'free' : 'still held');
        await store.close();
    },
    // A process that ends, and a store that is closed, in the middle of the work.
    async onceExits() {
        const store = await holdfast.open(url);
        const work = store.once('left once', { ttl: 60000 }, async (turn) => {
            if (process.argv[4] === 'exit') process.exit(3);
            await store.close();
            turn.check();
        });
        console.log(await work.catch((error) => `${error.name} ${error.reason}`));
    },
    // Workers that are terminated in the middle of the work leave no descriptor behind, and the lock free.
    async onceTerminated() {
        const store = await holdfast.open(url);
        const counts = [];
        for (let i = 0; i < 8; i++) {
            const worker = new Worker(__filename, { workerData: { name: 'onceInWorker', url } });
            await new Promise((resolve) => worker.once('message', resolve));
            await worker.terminate();
            counts.push(fs.readdirSync('/proc/self/fd').length);
        }
        await (await store.lock('of a worker, once', { wait: 5000 })).release();
        console.log(counts[7] - counts[0] < 4 ? 'none' : counts.join(' '));
        await store.close();
    },
    async onceInWorker() {
        const store = await holdfast.open(url);
        await store.once('of a worker, once', { ttl: 60000, wait: Infinity }, async () => {
            parentPort.postMessage('begun');
            await sleep(60000);
        });
    },
    // Workers are terminated in the moment in which a wait begins: its thread ends before what it works on.
    async terminated() {
        const store = await holdfast.open(url);
        const lease = await store.lock('waited for in workers');
        for (let i = 0; i < 30; i++) {
            const worker = new Worker(__filename, { workerData: { name: 'waitsInWorker', url } });
            await new Promise((resolve) => worker.once('message', resolve));
            await worker.terminate();
        }
        await lease.release();
        await store.close();
        console.log('alive');
    },
    async waitsInWorker() {
        const store = await holdfast.open(url);
        parentPort.postMessage('begins');
        for (let i = 0; i < 50; i++) store.lock('waited for in workers', { wait: Infinity }).catch(() => {});
    },
    // What is no signal and no output is refused, holds nothing, and is closed once.
    async refused() {
        const store = await holdfast.open(url);
        for (const signal of [5, {}, 'abort']) {
            const refused = await store.lock('refused', { signal }).catch((error) => error.name);
            console.log(refused, await store.lock('refused').then((lease) => lease.release().then(() => 'free'), (error) => error.name));
        }
        console.log(await store.once('refused', {}, (turn) => { turn.output = 5; }).catch((error) => error.name));
        for (let i = 0; i < 20; i++) { global.gc(); await sleep(10); }
        await (await store.lock('refused')).release();
        console.log('alive');
        await store.close();
    },
    // A record is the bytes of whatever shows bytes.
    async views() {
        const store = await holdfast.open(url);
        const lease = await store.lock('views');
        const { buffer } = Uint8Array.of(9, 1, 2, 255, 9);
        for (const value of [new DataView(buffer, 1, 3), new Uint8Array(buffer, 1, 3), Uint16Array.of(513, 255), buffer]) {
            await lease.put('k', value);
            console.log([...(await store.get('views', 'k')).value].join());
        }
        await lease.release();
        await store.close();
    },
    // Once no thread can be had, what is open is closed all the same.
    async threadless() {
        const [store, other] = [await holdfast.open(url), await holdfast.open(url)];
        const { outcome } = await store.once('threadless', { ttl: 60000 }, async () => { process.env.NO_THREADS = 1; });
        const lock = await store.lock('threadless').catch((error) => error.name);
        const refused = await store.records('threadless').catch((error) => error.name);
        await store.close();
        delete process.env.NO_THREADS;
        await (await other.lock('threadless')).release();
        console.log(outcome, lock.name, refused);
        await other.close();
    },
    // Release while renewals are under way, many times.
    async busy() {
        const store = await holdfast.open(url);
        for (let i = 0; i < 200; i++) {
            const lease = await store.lock('busy');
            const renewals = [lease.renew(), lease.renew(), lease.put('k', 'v')];
            await lease.release();
            await Promise.all(renewals);
            try { lease.check(); } catch (error) { if (error.name !== 'Invalid') throw error; }
        }
        const { value } = await store.get('busy', 'k');
        await store.with('busy', {}, (lease) => lease.put('k', 'another'));
        console.log(String(value) === 'v' ? 'fine' : `it became ${value}`, typeof Symbol.asyncDispose);
        await store.close();
    },
};
traps[name]();
