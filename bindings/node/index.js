// index.js - holdfast for Node. Its words are those of holdfast.h; addon.c makes the calls.
'use strict';

const [OPEN, CLOSE, LOCK, ANY, ALL, LIST, LEADER, BREAK, RELEASE, RENEW, PUT, LOOK, WATCH, CANCEL, EXIT] = Array(15).keys();
const REASONS = ['none', 'expired', 'taken', 'broken', 'unreachable', 'forgotten', 'closed'];
const asyncDispose = Symbol.asyncDispose ?? (Symbol.asyncDispose = Symbol('Symbol.asyncDispose'));

class HoldfastError extends Error {}
const errors = Object.fromEntries(['Busy', 'Lost', 'Stale', 'Cancelled', 'Unknown', 'Unreachable', 'Quarantine', 'Denied',
    'Invalid', 'Unsupported', 'Corrupt', 'NoMemory'].map((name) => {
    const kind = { [name]: class extends HoldfastError {} }[name];
    Object.defineProperty(kind.prototype, 'name', { value: name });
    return [name, kind];
}));
const { Invalid, Lost, Cancelled, Quarantine } = errors;

// A reply is rows of four numbers, a text and bytes; the last row tells how the call ended.
function read(reply) {
    const rows = [];
    for (let at = 0; at < reply.length;) {
        const numbers = new BigInt64Array(reply.buffer.slice(reply.byteOffset + at, reply.byteOffset + at + 48));
        const [start, value] = [at + 48, at + 48 + Number(numbers[4])];
        at = value + Number(numbers[5]);
        rows.push({ numbers, text: reply.toString('utf8', start, value), data: Buffer.from(reply.subarray(value, at)) });
    }
    const { numbers, text } = rows.pop() ?? { numbers: [12], text: '' }; // NoMemory
    const [status, loss, retryAfter] = Array.from(numbers, Number);
    const kind = Object.values(errors)[status - 1] ?? HoldfastError;
    const error = status === 0 ? null : new kind(text || 'no thread or descriptor can be had for this call');
    if (error instanceof Lost) error.reason = [undefined, ...REASONS.slice(1)][loss];
    if (error instanceof Quarantine) error.retryAfter = retryAfter;
    return { rows, text, error };
}

let native;
try {
    native = require('./holdfast.node');
} catch (why) {
    throw new Error(`holdfast: the addon does not go with the libholdfast.so.0 that is installed, if it is: ${why.message}`);
}
const [needs, has] = [require('./package.json'), native].map(({ version }) => version.split('.').map(Number));
if (has[0] !== needs[0] || has[1] < needs[1])
    throw new Error(`holdfast: this addon needs libholdfast ${needs[0]}.${needs[1]} or a later one of the same major ` +
        `version, and libholdfast.so.0 is ${native.version}`);

const request = (op, { id = 0, handle = 0, numbers: [a = 0, b = 0, c = 0] = [], words = [], data } = {}) =>
    native.call([`${id} ${op} 0x${handle.toString(16)} ${a} ${b} ${c}`, ...words].join('\0'), data);
process.once('exit', () => request(EXIT));

let last = 0;
const waiting = new Map(); // for replies, by the number of the call; and for the loss of leases
native.heard = (id, reply) => waiting.get(id)?.(reply);

async function call(op, handle, { id = ++last, signal, warn, ...rest } = {}) {
    const cancel = () => request(CANCEL, { id });
    if (signal?.aborted) throw new Cancelled('cancelled', { cause: signal.reason });
    signal?.addEventListener('abort', cancel);
    const { rows, text, error } = read(await new Promise((resolve) => {
        waiting.set(id, resolve);
        const reply = request(op, { id, handle, ...rest });
        if (reply) resolve(reply);
    }));
    waiting.delete(id);
    signal?.removeEventListener('abort', cancel);
    if (error instanceof Cancelled && signal?.aborted) throw new Cancelled(text, { cause: signal.reason });
    if (error) throw error;
    if (warn && text) process.emitWarning(text, 'HoldfastWarning');
    return rows;
}

// A C string ends at a NUL: a name with one must not become another name.
function plain(text, what) {
    if (typeof text !== 'string') throw new Invalid(`${what} is a string`);
    if (/[\0\p{Surrogate}]/u.test(text)) throw new Invalid(`${what} is valid text without control characters`);
    return text;
}

function ms(value, what) {
    if (typeof value !== 'number' || !(value >= 0 && value < 2 ** 50))
        throw new Invalid(`${what} is a number of milliseconds, not ${String(value)}`);
    return Math.ceil(value);
}
const waitMs = (wait) => (wait === Infinity ? -1 : ms(wait, 'a wait'));
const ttlMs = (ttl) => (ttl === undefined ? 0 : Math.min(Math.max(1, ms(ttl, 'a ttl')), 2 ** 32 - 1));

// What nobody released, or closed, is ended when it is collected. The store stays until its leases are.
const forgotten = new FinalizationRegistry(({ op, handle, what, watch }) => {
    if (op === RELEASE) process.emitWarning(`${what}: its lease was never released`, 'ResourceWarning');
    waiting.delete(watch);
    call(op, handle).catch(() => {});
});

const [own, ask, end] = [Symbol('own'), Symbol('ask'), Symbol('end')]; // not for users, and not shown
class Handle {
    constructor(op, handle, what, over, store) {
        const value = { op, handle, what, over, store, pending: new Map() };
        Object.defineProperty(this, own, { value });
        forgotten.register(this, value, this);
    }
    async [ask](op, options) {
        const { handle, over, pending, ended } = this[own];
        if (ended) throw new Invalid(over);
        const id = ++last;
        pending.set(id, call(op, handle, { id, ...options }));
        return pending.get(id).finally(() => pending.delete(id));
    }
    [asyncDispose]() { return (this[own].ended ??= this[end]()); }
    async [end]() {
        const { op, handle, pending, watch } = this[own];
        forgotten.unregister(this);
        waiting.delete(watch);
        if (op === CLOSE) for (const id of pending.keys()) request(CANCEL, { id });
        await Promise.allSettled(pending.values());
        await call(op, handle);
    }
}

// Whoever has the signal has the lease: it is not collected.
function abortOf(lease) {
    const abort = new AbortController();
    Object.defineProperty(abort.signal, own, { value: lease });
    return abort;
}

class Lease extends Handle {
    #abort;
    constructor(store, name, handle, token) {
        const what = `lock "${name}" in store ${store.url}`;
        super(RELEASE, handle, what, `${what}: this lease was released`, store);
        Object.assign(this, { name, token });
    }
    #now(op, id = 0) {
        if (this[own].ended) throw new Invalid(this[own].over);
        return read(request(op, { id, handle: this[own].handle }));
    }
    get remaining() { return this[own].ended ? 0 : Math.max(0, Number(this.#now(LOOK).rows[0].numbers[0])); }
    get loss() { return this.#now(LOOK).error?.reason; }
    get signal() {
        if (this.#abort === undefined) {
            const [id, weak] = [++last, new WeakRef(this)];
            const { error } = this.#now(WATCH, id);
            if (error) throw error;
            this[own].watch = id;
            this.#abort = abortOf(this);
            waiting.set(id, () => weak.deref()?.#lose());
        }
        return this.#abort.signal;
    }
    #lose() { this.#abort.abort(this.#now(LOOK).error); }
    check() {
        let { rows, error } = this.#now(LOOK);
        while (!error && rows[0].numbers[0] <= 0n) ({ rows, error } = this.#now(LOOK)); // less than a millisecond is left
        if (error) throw error;
    }
    async renew(ttl) { await this[ask](RENEW, { numbers: [ttlMs(ttl)] }); }
    async put(key, value, { keep } = {}) {
        const numbers = [keep === undefined ? 0 : ms(keep, 'keep')];
        await this[ask](PUT, { words: [plain(key, 'a key')], data: Buffer.from(value), numbers, warn: true });
    }
    release() { return this[asyncDispose](); }
}

// The body's own error stays first.
const orRelease = (lease, promise) => promise.catch(async (error) => {
    await lease.release().catch(() => {});
    throw error;
});
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
    get signal() {
        if (this.#abort !== undefined) return this.#abort.signal;
        const abort = (this.#abort = abortOf(this));
        for (const { signal } of this) {
            signal.addEventListener('abort', () => abort.abort(signal.reason));
            if (signal.aborted) abort.abort(signal.reason);
        }
        return abort.signal;
    }
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
        super(CLOSE, handle, `store ${url}`, `store ${url} is closed`);
        this.url = url;
    }
    async #take(op, names, { ttl, wait = 0, label = '', keep = true, spread = false, signal } = {}) {
        const words = [plain(label, 'a label'), ...names.map((name) => plain(name, 'a lock name'))];
        const numbers = [ttlMs(ttl), waitMs(wait), (keep ? 0 : 1) + (spread ? 2 : 0)];
        const taken = await this[ask](op, { words, numbers, signal });
        return taken.map(({ numbers: [handle, token], text }) => new Lease(this, text, handle, token));
    }
    async lock(name, options) { return (await this.#take(LOCK, [name], options))[0]; }
    async any(names, options) { return (await this.#take(ANY, names, options))[0]; }
    async all(names, options) { return Leases.from(await this.#take(ALL, names, options)); }
    async with(name, options, body) { return under(await this.lock(name, options), body); }
    async withAll(names, options, body) { return under(await this.all(names, options), body); }
    async elect(name, { address, ...options } = {}) {
        const lease = await this.lock(name, { wait: Infinity, ...options });
        if (address !== undefined)
            await orRelease(lease, (async () => lease.put('leader', plain(address, 'an address')))());
        return lease;
    }
    async leader(name) {
        const [found] = await this[ask](LEADER, { words: [plain(name, 'a lock name')] });
        if (found === undefined) return null;
        const [age, remaining] = Array.from(found.numbers.slice(1, 3), (n) => (n < 0 ? null : Number(n)));
        return { term: found.numbers[0], label: found.text, address: String(found.data), age, remaining };
    }
    async get(name, key) { return (await this.records(name, key)).find((one) => one.key === key) ?? null; }
    async records(name, prefix = '') {
        const list = await this[ask](LIST, { words: [plain(name, 'a lock name'), plain(prefix, 'a prefix')] });
        return list.map(({ text: key, data: value, numbers: [token, number, written, until] }) => ({ key, value, token, number,
            written: new Date(Number(written)), until: until ? new Date(Number(until)) : null }));
    }
    async break(name, token, { reason = '', now = false } = {}) {
        await this[ask](BREAK, { words: [plain(name, 'a lock name'), plain(reason, 'a reason')],
            numbers: [now ? 1 : 0, 0, BigInt(token)] });
    }
    close() { return this[asyncDispose](); }
}

async function open(url = '', { wait = 0, signal } = {}) {
    const [{ numbers: [handle], text }] =
        await call(OPEN, undefined, { words: [plain(url, 'a URL')], numbers: [waitMs(wait)], signal, warn: true });
    return new Store(handle, text);
}

module.exports = { open, version: native.version, REASONS, HoldfastError, ...errors };
