// index.js - holdfast for Node. Its words are those of holdfast.h; addon.c makes the calls.
'use strict';

const [OPEN, ANY, ALL, LIST, LEADER, BREAK, LOCK, BEGIN, END, CLOSE, RELEASE, RENEW, PUT, ONCE, LOOK, WATCH, CANCEL, EXIT] = Array(18).keys();
const REASONS = ['none', 'expired', 'taken', 'broken', 'unreachable', 'forgotten', 'closed'];
const OUTCOMES = ['open', 'run', 'done', 'failed', 'late', 'held'];
const [SUCCESS, FAILURE, CUT_OFF] = [1, 2, 3]; // how a turn of once() ends
const asyncDispose = Symbol.asyncDispose ?? (Symbol.asyncDispose = Symbol('Symbol.asyncDispose'));

class HoldfastError extends Error {}
const errors = Object.fromEntries(['Busy', 'Lost', 'Stale', 'Cancelled', 'Unknown', 'Unreachable', 'Quarantine', 'Denied',
    'Invalid', 'Unsupported', 'Corrupt', 'NoMemory'].map((name) => [name, { [name]: class extends HoldfastError { get name() { return name; } } }[name]]));
const { Busy, Lost, Stale, Cancelled, Unknown, Unreachable, Quarantine, Denied, Invalid, Unsupported, Corrupt, NoMemory } = errors;

let native;
try {
    native = require('./holdfast.node');
} catch (why) {
    throw new Error(`holdfast: the addon does not go with the libholdfast.so.0 that is installed, if it is: ${why.message}`);
}
const [needs, has] = [require('./package.json'), native].map(({ version }) => version.split('.').map(Number));
if (has[0] !== needs[0] || has[1] < needs[1])
    throw new Error(`holdfast: this addon needs libholdfast ${needs[0]}.${needs[1]} or a later ${needs[0]}.x, and libholdfast.so.0 is ${native.version}`);

// A reply is rows of four numbers, a text and bytes; the last one tells how the call ended. No row at all: NoMemory.
function rowsOf(reply) {
    const [cells, rows] = [new BigInt64Array(reply.buffer, reply.byteOffset, reply.length / 8), []];
    for (let at = 0, end; at < reply.length; at = (end + 7) & ~7) {
        const [a, b, c, d, text, data] = cells.subarray(at / 8, at / 8 + 6);
        const middle = at + 48 + Number(text);
        end = middle + Number(data);
        rows.push([a, b, c, d, reply.utf8Slice(at + 48, middle), reply.subarray(middle, end)]);
    }
    return rows;
}
function errorOf([status, loss, retryAfter, , text] = [12n], signal = undefined) {
    const kind = Object.values(errors)[Number(status) - 1] ?? HoldfastError;
    const options = kind === Cancelled && signal?.aborted ? { cause: signal.reason } : undefined;
    const error = new kind(text || 'no thread or descriptor can be had for this call', options);
    if (kind === Lost) error.reason = loss > 0n ? REASONS[loss] : undefined;
    if (kind === Quarantine) error.retryAfter = Number(retryAfter);
    return error;
}

let last = 0;
const watched = new Map(); // leases, by their handles
const begin = (op, id, handle = 0, { numbers = [], words = '' } = {}) => native.call(Float64Array.of(op, id, handle, ...numbers), Buffer.from(words));
process.once('exit', () => begin(EXIT, 0));

// A lock near by is answered at once; else there is a promise of the reply, which another thread keeps.
async function call(op, handle, { signal, ...options } = {}, pending = new Map(), id = ++last) {
    if (signal?.aborted) throw new Cancelled('cancelled', { cause: signal.reason });
    const cancel = () => begin(CANCEL, id);
    signal?.addEventListener('abort', cancel); // what is no signal is refused before anything is held
    const reply = begin(op, id, handle, options);
    pending.set(id, reply);
    if (id % 20 === 0) await new Promise(setImmediate); // a loop of quick locks lets the event loop go round
    const rows = rowsOf(await reply);
    signal?.removeEventListener('abort', cancel);
    pending.delete(id);
    const end = rows.pop();
    if (end?.[0] !== 0n) throw errorOf(end, signal);
    if (end[4]) process.emitWarning(end[4], 'HoldfastWarning');
    return rows;
}

// A C string ends at a NUL: a name with one must not become another name.
function plain(text, what) {
    if (typeof text === 'string' && !/[\0\p{Surrogate}]/u.test(text)) return text;
    throw new Invalid(`${what} is a string of valid text without control characters`);
}
const wordsOf = (words) => Object.entries(words).map(([what, text]) => plain(text, what)).join('\0');

function ms(value, what) {
    if (typeof value === 'number' && value >= 0 && value < 2 ** 50) return Math.ceil(value);
    throw new Invalid(`${what} is a number of milliseconds, not ${String(value)}`);
}
const waitMs = (wait) => (wait === Infinity ? -1 : ms(wait, 'a wait'));
const ttlMs = (ttl) => (ttl === undefined ? 0 : Math.min(Math.max(1, ms(ttl, 'a ttl')), 2 ** 32 - 1));
const dateOf = (number) => new Date(Number(number));

// What nobody released, or closed, is ended when it is collected. The store stays until its leases are.
const forgotten = new FinalizationRegistry(({ op, target, what, store, options }) => {
    if (store) process.emitWarning(`${what}: its lease was never released`, 'ResourceWarning');
    call(op, target, options).catch(() => {});
});

const [own, live, ask, end] = ['own', 'live', 'ask', 'end'].map(Symbol); // not for users, and not shown
class Handle {
    constructor(op, handle, what, over, store, target = handle) {
        const value = { op, handle: Number(handle), target: Number(target), what, over, store, pending: new Map(), ended: undefined };
        Object.defineProperty(this, own, { value });
        forgotten.register(this, value, this);
    }
    get [live]() {
        if (this[own].ended) throw new Invalid(this[own].what + this[own].over);
        return this[own].handle;
    }
    [ask](op, options, id) { return call(op, this[live], options, this[own].pending, id); }
    [asyncDispose]() { return (this[own].ended ??= this.#end()); }
    async #end() {
        const { op, handle, target, pending, options } = this[own];
        forgotten.unregister(this);
        watched.delete(handle);
        if (op === CLOSE) for (const id of pending.keys()) begin(CANCEL, id);
        if (pending.size > 0) await Promise.all(pending.values());
        return call(op, target, options);
    }
}

// Whoever has the signal has the lease: it is not collected.
function abortOf(lease, signals = []) {
    const abort = new AbortController();
    Object.defineProperty(abort.signal, own, { value: lease });
    for (const signal of signals) signal.addEventListener('abort', () => abort.abort(signal.reason));
    for (const { reason } of signals.filter(({ aborted }) => aborted)) abort.abort(reason);
    return abort;
}

class Lease extends Handle {
    static { native.heard = (handle) => setImmediate(() => watched.get(handle)?.deref()?.#hear()); } // what follows may end the environment
    #abort;
    constructor(store, name, handle, token, op = RELEASE, target = handle) {
        super(op, handle, `lock "${name}" in store ${store.url}`, ': this lease was released', store, target);
        Object.assign(this, { name, token });
    }
    #look() {
        const [[left], end] = rowsOf(begin(LOOK, 0, this[live]));
        return { left, error: end[0] === 0n ? undefined : errorOf(end) };
    }
    #hear() {
        const error = this.#abort && !this[own].ended && this.#look().error;
        if (error) this.#abort.abort(error);
    }
    get remaining() { return this[own].ended ? 0 : Math.max(0, Number(this.#look().left)); }
    get loss() { return this.#look().error?.reason; }
    get signal() {
        if (this.#abort === undefined) {
            const [end] = rowsOf(begin(WATCH, 0, this[live]));
            if (end[0] !== 0n) throw errorOf(end);
            watched.set(this[live], new WeakRef(this));
            this.#abort = abortOf(this);
            this.#hear();
        }
        return this.#abort.signal;
    }
    check() {
        let { left, error } = this.#look();
        while (!error && left <= 0n) ({ left, error } = this.#look()); // less than a millisecond is left
        if (error) throw error;
    }
    // The library tells nobody of a loss that a call finds if the lease is not kept.
    [ask](op, options) { return super[ask](op, options).finally(() => this.#hear()); }
    async renew(ttl) { await this[ask](RENEW, { numbers: [ttlMs(ttl)] }); }
    async put(key, value, { keep = 0 } = {}) {
        const data = ArrayBuffer.isView(value) ? new Uint8Array(value.buffer, value.byteOffset, value.byteLength) : Buffer.from(value);
        await this[ask](PUT, { words: Buffer.concat([Buffer.from(`${plain(key, 'a key')}\0`), data]), numbers: [ms(keep, 'keep')] });
    }
    release() { return this[asyncDispose](); }
}

// What once() lends to the work: the lock, while it is ours. What was opened for it is closed if nobody ends the work.
class Turn extends Lease {
    async [asyncDispose]() { throw new Invalid(`${this[own].what}: it is given back when the work is over`); }
    async [end](ending) {
        forgotten.unregister(this); // also if the output is no text: once() closes what was opened
        Object.assign(this[own], { op: END, options: { words: Buffer.concat([Buffer.alloc(1), Buffer.from(this.output)]), numbers: [ending] } });
        return (await super[asyncDispose]())[0][0];
    }
}

// The body's own error stays first.
const orRelease = (lease, promise) => promise.catch((error) => lease.release().finally(() => { throw error; }));
async function under(lease, body) {
    const result = await orRelease(lease, (async () => body(lease))());
    await lease.release();
    return result;
}

// Those of all(), in the order of the names. The loss of one is the loss of all.
class Leases extends Array {
    #abort;
    static get [Symbol.species]() { return Array; }
    get remaining() { return Math.min(...this.map((lease) => lease.remaining)); }
    get signal() { return (this.#abort ??= abortOf(this, this.map((lease) => lease.signal))).signal; }
    check() { this.forEach((lease) => lease.check()); }
    async release() {
        const errors = [];
        const order = [...this].sort((a, b) => Buffer.compare(Buffer.from(b.name), Buffer.from(a.name)));
        for (const lease of order) await lease.release().catch((error) => errors.push(error));
        if (errors.length > 0) throw errors.find(({ name }) => name === 'Lost') ?? errors[0];
    }
    [asyncDispose]() { return this.release(); }
}

class Store extends Handle {
    constructor(handle, url) {
        super(CLOSE, handle, `store ${url}`, ' is closed');
        this.url = url;
    }
    async #take(op, names, { ttl, wait = 0, label = '', keep = true, spread = false, signal } = {}) {
        const words = [plain(label, 'a label'), ...names.map((name) => plain(name, 'a lock name'))].join('\0');
        const numbers = [ttlMs(ttl), waitMs(wait), keep ? 0 : 1, spread ? 1 : 0];
        return (await this[ask](op, { words, numbers, signal })).map(([handle, token, , , name]) => new Lease(this, name, handle, token));
    }
    async lock(name, options) { return (await this.#take(LOCK, [name], options))[0]; }
    async any(names, options) { return (await this.#take(ANY, names, options))[0]; }
    async all(names, options) { return Leases.from(await this.#take(ALL, names, options)); }
    async with(name, options, body) { return under(await this.lock(name, options), body); }
    async withAll(names, options, body) { return under(await this.all(names, options), body); }
    async elect(name, { address, ...options } = {}) {
        const lease = await this.lock(name, { wait: Infinity, ...options });
        if (address !== undefined) await orRelease(lease, (async () => lease.put('leader', plain(address, 'an address')))());
        return lease;
    }
    async leader(name) {
        const [found] = await this[ask](LEADER, { words: plain(name, 'a lock name') });
        if (found === undefined) return null;
        const [age, remaining] = found.slice(1, 3).map((n) => (n < 0 ? null : Number(n)));
        return { term: found[0], label: found[4], address: String(found[5]), age, remaining };
    }
    async get(name, key) { return (await this.records(name, key)).find((one) => one.key === key) ?? null; }
    async records(name, prefix = '') {
        const list = await this[ask](LIST, { words: wordsOf({ 'a lock name': name, 'a prefix': prefix }) });
        return list.map(([token, number, written, until, key, value]) =>
            ({ key, value, token, number, written: dateOf(written), until: until ? dateOf(until) : null }));
    }
    async break(name, token, { reason = '', now = false } = {}) {
        const words = wordsOf({ 'a lock name': name, 'a reason': reason, 'a token': String(BigInt(token)) });
        await this[ask](BREAK, { words, numbers: [now ? 1 : 0] });
    }
    async once(key, { per = 0, at = '', tz = '', slack = 0, startBy = 0, keep = 0, retryAfter = 0, retries = 0, holdCrashed = false,
        ttl, wait = 0, label = '', signal } = {}, work) {
        const words = wordsOf({ 'a key': key, at, tz, 'a label': label });
        const numbers = [ms(per, 'per'), slack < 0 ? -1 : ms(slack, 'slack'), ms(startBy, 'startBy'), ms(keep, 'keep'), ms(retryAfter, 'retryAfter'),
            Math.min(ms(retries, 'retries'), 2 ** 32 - 1), holdCrashed ? 1 : 0, ttlMs(ttl), waitMs(wait)];
        const id = ++last; // by which the wait of each turn is ended, too
        const target = Number((await this[ask](ONCE, { words, numbers, signal }, id))[0][0]);
        let rows, value, ran = false;
        try {
            while ((ran || this[live]) && (rows = await call(BEGIN, target, { signal: ran ? undefined : signal }, this[own].pending, id))[0][0] === 1n) {
                const turn = Object.assign(new Turn(this, key, rows[0][1], rows[0][2], CLOSE, target), { slot: rows[0][4], output: '' });
                try {
                    value = await work(turn);
                    ran = true;
                } catch (error) {
                    if (await turn[end](signal?.aborted ? CUT_OFF : FAILURE).catch(() => undefined) !== 0n) throw error; // no other attempt
                }
                if (ran) await turn[end](SUCCESS);
            }
            const [[outcome, , , , slot, text], [token, since, , , by, output] = [0n, -1n, 0, 0, '', Buffer.alloc(0)]] = rows;
            return { outcome: OUTCOMES[outcome], ran, value, slot, by, text: String(text), token, since: since < 0 ? null : dateOf(since), output };
        } finally {
            await call(CLOSE, target).catch(() => {});
        }
    }
    close() { return this[asyncDispose](); }
}

async function open(url = '', { wait = 0, signal } = {}) {
    const [row] = await call(OPEN, 0, { words: plain(url, 'a URL'), numbers: [0, waitMs(wait)], signal });
    return new Store(row[0], row[4]);
}

// One by one, as import { Busy } needs them.
module.exports = { open, REASONS, HoldfastError, Busy, Lost, Stale, Cancelled, Unknown, Unreachable, Quarantine, Denied, Invalid, Unsupported,
    Corrupt, NoMemory, version: native.version };
