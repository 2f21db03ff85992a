// index.js - holdfast for Node. Its words are those of holdfast.h; addon.c makes the calls.
'use strict';

const [OPEN, CLOSE, LOCK, ANY, ALL, RENEW, RELEASE, PUT, LIST, LEADER, BREAK] = Array(11).keys();
const LOST = 2, CANCELLED = 4, QUARANTINE = 7; // statuses that carry more than a text
const REASONS = ['none', 'expired', 'taken', 'broken', 'unreachable', 'forgotten', 'closed'];
const asyncDispose = Symbol.asyncDispose ?? (Symbol.asyncDispose = Symbol('Symbol.asyncDispose'));

class HoldfastError extends Error {}
const errors = ['Busy', 'Lost', 'Stale', 'Cancelled', 'Unknown', 'Unreachable', 'Quarantine', 'Denied',
    'Invalid', 'Unsupported', 'Corrupt', 'NoMemory'].map((name) => {
    const kind = { [name]: class extends HoldfastError {} }[name];
    Object.defineProperty(kind.prototype, 'name', { value: name });
    return kind;
});
const Invalid = errors[8];

function failure(status, text, retryAfter, loss, cause) {
    const error = new (errors[status - 1] ?? HoldfastError)(text, cause === undefined ? {} : { cause });
    if (status === LOST) error.reason = REASONS[loss] === 'none' ? undefined : REASONS[loss];
    if (status === QUARANTINE) error.retryAfter = retryAfter;
    return error;
}

let native;
try {
    native = require('./holdfast.node');
} catch (why) {
    throw new Error(`holdfast: the addon does not go with the libholdfast.so.0 that is installed, if it is: ${why.message}`);
}
const [needs, has] = [native.needs, native.version].map((version) => version.split('.').map(Number));
if (has[0] !== needs[0] || has[1] < needs[1])
    throw new Error(`holdfast: this addon needs libholdfast ${needs[0]}.${needs[1]} or a later one of the same major ` +
        `version, and libholdfast.so.0 is ${native.version}`);
const calls = new Map(); // what is heard of, by number
let last = 0;
native.heard = (id, ...answer) => calls.get(id)?.(...answer);
process.once('exit', () => native.cancel(0));

function call(op, handle, { words = [], data, numbers = [], signal, ids, warn } = {}) {
    const id = ++last;
    return new Promise((resolve, reject) => {
        const cancel = () => native.cancel(id);
        if (signal?.aborted) return reject(failure(CANCELLED, 'cancelled', 0, 0, signal.reason));
        calls.set(id, (status, said, retryAfter, loss, reply) => {
            calls.delete(id);
            ids?.delete(id);
            signal?.removeEventListener('abort', cancel);
            if (warn && status === 0 && said !== '') process.emitWarning(said, 'HoldfastWarning');
            if (status === 0) return resolve(reply);
            reject(failure(status, said, retryAfter, loss, status === CANCELLED ? signal?.reason : undefined));
        });
        native.start(id, op, handle, Buffer.from(words.join('\0')), data, numbers[0] ?? 0, numbers[1] ?? 0, numbers[2] ?? 0);
        ids?.add(id);
        signal?.addEventListener('abort', cancel);
    });
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

function* rows(reply) {
    for (let at = 0; at < reply.length;) {
        const end = reply.indexOf('\n', at);
        const [token, number, first, second, keyLength, length] = reply.toString('latin1', at, end).split(' ');
        const value = end + 1 + Number(keyLength);
        at = value + Number(length);
        yield { token: BigInt(token), number: BigInt(number), first: Number(first), second: Number(second),
            text: reply.toString('utf8', end + 1, value), data: Buffer.from(reply.subarray(value, at)) };
    }
}
const record = ({ text, data, token, number, first, second }) =>
    ({ key: text, value: data, token, number, written: new Date(first), until: second ? new Date(second) : null });

// What nobody released, or closed, is ended when it is collected. The store stays until its leases are.
const forgotten = new FinalizationRegistry(({ op, handle, about }) => {
    if (op === RELEASE) process.emitWarning(`${about.replace(/: this lease.*/s, '')}: its lease was never released`, 'ResourceWarning');
    call(op, handle).catch(() => {});
});

const [own, ask, end] = [Symbol('own'), Symbol('ask'), Symbol('end')]; // not for users, and not shown
class Handle {
    constructor(op, handle, about, store) {
        const value = { op, handle, about, store, pending: new Set(), ids: new Set() };
        Object.defineProperty(this, own, { value });
        forgotten.register(this, { op, handle, about, store }, this);
    }
    async [ask](op, options) {
        const { handle, about, pending, ids, ended } = this[own];
        if (ended) throw new Invalid(about);
        const promise = call(op, handle, { ids, ...options });
        pending.add(promise);
        try { return await promise; } finally { pending.delete(promise); }
    }
    [asyncDispose]() { return (this[own].ended ??= this[end]()); }
    async [end]() {
        const { op, handle, pending, ids, watch } = this[own];
        forgotten.unregister(this);
        calls.delete(watch);
        if (op === CLOSE) ids.forEach(native.cancel);
        await Promise.allSettled(pending);
        await call(op, handle);
    }
}

class Lease extends Handle {
    #abort;
    constructor(store, name, handle, token) {
        super(RELEASE, handle, `lock "${name}" in store ${store.url}: this lease was released`, store);
        Object.assign(this, { name, token });
    }
    #look(id) {
        if (this[own].ended) throw new Invalid(this[own].about);
        return native.look(this[own].handle, id);
    }
    get remaining() { return this[own].ended ? 0 : Math.max(0, this.#look()[0]); }
    get loss() { return [undefined, ...REASONS.slice(1)][this.#look()[1]]; }
    get signal() {
        if (this.#abort === undefined) {
            const [abort, id, weak] = [new AbortController(), ++last, new WeakRef(this)];
            this.#look(id);
            [this.#abort, this[own].watch] = [abort, id];
            calls.set(id, () => { calls.delete(id); abort.abort(weak.deref()?.#lost()); });
        }
        return this.#abort.signal;
    }
    #lost() {
        if (this[own].ended) return new Invalid(this[own].about);
        const [, loss, text] = this.#look();
        return failure(LOST, text, 0, loss);
    }
    check() {
        let [remaining, loss] = this.#look();
        while (remaining <= 0 && loss === 0) [remaining, loss] = this.#look(); // less than a millisecond is left
        if (remaining <= 0) throw this.#lost();
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
        const abort = (this.#abort ??= new AbortController());
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
        super(CLOSE, handle, `store ${url} is closed`);
        this.url = url;
    }
    async #take(op, names, { ttl, wait = 0, label = '', keep = true, spread = false, signal } = {}) {
        const words = [plain(label, 'a label'), ...names.map((name) => plain(name, 'a lock name'))];
        const numbers = [ttlMs(ttl), waitMs(wait), (keep ? 0 : 1) + (spread ? 2 : 0)];
        const reply = await this[ask](op, { words, numbers, signal });
        return reply.toString().trim().split('\n').map((row) => row.split(' ')).map(([which, handle, token]) =>
            new Lease(this, names[which], BigInt(handle), BigInt(token)));
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
        for (const { text, data, token, first, second } of rows(await this[ask](LEADER, { words: [plain(name, 'a lock name')] })))
            return { term: token, label: text, address: data.toString(), age: first < 0 ? null : first,
                remaining: second < 0 ? null : second };
        return null;
    }
    async get(name, key) { return (await this.records(name, key)).find((one) => one.key === key) ?? null; }
    async records(name, prefix = '') {
        const words = [plain(name, 'a lock name'), plain(prefix, 'a prefix')];
        return [...rows(await this[ask](LIST, { words }))].map(record);
    }
    async break(name, token, { reason = '', now = false } = {}) {
        await this[ask](BREAK, { words: [plain(name, 'a lock name'), plain(reason, 'a reason')],
            data: Buffer.from(String(BigInt(token))), numbers: [now ? 1 : 0] });
    }
    close() { return this[asyncDispose](); }
}

async function open(url = '', { wait = 0, signal } = {}) {
    const reply = await call(OPEN, undefined, { words: [plain(url, 'a URL')], numbers: [waitMs(wait)], signal, warn: true });
    const [, handle, shown] = /^(\d+) (.*)$/s.exec(reply.toString());
    return new Store(BigInt(handle), shown);
}

module.exports = { open, version: native.version, REASONS, HoldfastError,
    ...Object.fromEntries(errors.map((kind) => [kind.prototype.name, kind])) };
