// index.js - holdfast for Node. Its words are those of holdfast.h; addon.c makes the calls.
'use strict';

const [OPEN, CLOSE, LOCK, ANY, ALL, LIST, LEADER, BREAK, ONCE, BEGIN, END, SHUT,
    RELEASE, RENEW, PUT, LOOK, WATCH, CANCEL, EXIT] = Array(19).keys();
const REASONS = ['none', 'expired', 'taken', 'broken', 'unreachable', 'forgotten', 'closed'];
const OUTCOMES = ['open', 'run', 'done', 'failed', 'late', 'held'];
const [SUCCESS, FAILURE, CUT_OFF] = [1, 2, 3]; // how a turn of once() ends
const asyncDispose = Symbol.asyncDispose ?? (Symbol.asyncDispose = Symbol('Symbol.asyncDispose'));

class HoldfastError extends Error {}
const errors = Object.fromEntries(['Busy', 'Lost', 'Stale', 'Cancelled', 'Unknown', 'Unreachable', 'Quarantine', 'Denied',
    'Invalid', 'Unsupported', 'Corrupt', 'NoMemory'].map((name) => {
    const kind = { [name]: class extends HoldfastError {} }[name];
    Object.defineProperty(kind.prototype, 'name', { value: name });
    return [name, kind];
}));
const { Invalid, Lost, Cancelled, Quarantine } = errors;

// A reply is rows of four numbers, a text and bytes (a character each); the last row tells how the call ended.
const bytes = (data) => Buffer.from(data, 'latin1');
function errorOf([status, loss, retryAfter, , text] = [12n], signal = undefined) { // no row at all: NoMemory
    const kind = Object.values(errors)[Number(status) - 1] ?? HoldfastError;
    const options = kind === Cancelled && signal?.aborted ? { cause: signal.reason } : undefined;
    const error = new kind(text || 'no thread or descriptor can be had for this call', options);
    if (kind === Lost) error.reason = loss > 0n ? REASONS[loss] : undefined;
    if (kind === Quarantine) error.retryAfter = Number(retryAfter);
    return error;
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

const now = (op, id = 0, handle = 0) => native.call(op, id, handle, 0, 0, 0, '');
process.once('exit', () => now(EXIT));

let last = 0;
const waiting = new Map(); // for replies, by the number of the call; and for the loss of leases
native.heard = (id, reply) => waiting.get(id)?.(reply);

// The reply comes from another thread.
function later(id, signal, pending) {
    const cancel = () => now(CANCEL, id);
    signal?.addEventListener('abort', cancel);
    const reply = new Promise((resolve) => waiting.set(id, resolve)).finally(() => {
        waiting.delete(id);
        pending?.delete(id);
        signal?.removeEventListener('abort', cancel);
    });
    pending?.set(id, reply);
    return reply;
}

// A lock near by is answered at once: what only a wait needs is left to later().
async function call(op, handle, { numbers = [], words = '', data, signal, warn } = {}, pending = undefined) {
    if (signal?.aborted) throw new Cancelled('cancelled', { cause: signal.reason });
    const id = ++last;
    const rows = native.call(op, id, handle, numbers[0], numbers[1], numbers[2], words, data) ?? await later(id, signal, pending);
    const end = rows.pop();
    if (end?.[0] !== 0n) throw errorOf(end, signal);
    if (warn && end[4]) process.emitWarning(end[4], 'HoldfastWarning');
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
const forgotten = new FinalizationRegistry(({ op, target, what, watch, options }) => {
    if (op !== CLOSE) process.emitWarning(`${what}: its lease was never released`, 'ResourceWarning');
    waiting.delete(watch);
    call(op, target, options).catch(() => {});
});

const [own, live, ask, end] = ['own', 'live', 'ask', 'end'].map(Symbol); // not for users, and not shown
class Handle {
    #own;
    constructor(op, handle, what, over, store) {
        this.#own = { op, handle, target: handle, what, over, store, pending: new Map(), ended: undefined, watch: undefined };
        forgotten.register(this, this.#own, this);
    }
    get [own]() { return this.#own; }
    get [live]() {
        if (this.#own.ended) throw new Invalid(this.#own.what + this.#own.over);
        return this.#own.handle;
    }
    [ask](op, options) { return call(op, this[live], options, this.#own.pending); }
    [asyncDispose]() { return (this.#own.ended ??= this.#end()); }
    async #end() {
        const { op, target, pending, watch, options } = this.#own;
        forgotten.unregister(this);
        waiting.delete(watch);
        if (op === CLOSE) for (const id of pending.keys()) now(CANCEL, id);
        if (pending.size > 0) await Promise.all(pending.values());
        return call(op, target, options);
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
        super(RELEASE, handle, `lock "${name}" in store ${store.url}`, ': this lease was released', store);
        this.name = name;
        this.token = token;
    }
    #look() {
        const [[left], end] = now(LOOK, 0, this[live]);
        return { left, error: end[0] === 0n ? undefined : errorOf(end) };
    }
    get remaining() { return this[own].ended ? 0 : Math.max(0, Number(this.#look().left)); }
    get loss() { return this.#look().error?.reason; }
    get signal() {
        if (this.#abort === undefined) {
            const [id, weak] = [++last, new WeakRef(this)];
            const [end] = now(WATCH, id, this[live]);
            if (end[0] !== 0n) throw errorOf(end);
            this[own].watch = id;
            this.#abort = abortOf(this);
            waiting.set(id, (none, lease = weak.deref()) => lease?.#abort.abort(lease.#look().error));
        }
        return this.#abort.signal;
    }
    check() {
        let { left, error } = this.#look();
        while (!error && left <= 0n) ({ left, error } = this.#look()); // less than a millisecond is left
        if (error) throw error;
    }
    async renew(ttl) { await this[ask](RENEW, { numbers: [ttlMs(ttl)] }); }
    async put(key, value, { keep = 0 } = {}) {
        await this[ask](PUT, { words: plain(key, 'a key'), data: Buffer.from(value), numbers: [ms(keep, 'keep')], warn: true });
    }
    release() { return this[asyncDispose](); }
}

// What once() lends to the work: the lock, while it is ours. Target and options tell how it ends.
class Turn extends Lease {
    constructor(store, key, [once, fd, , lease, slot], token) {
        super(store, key, lease, token);
        Object.assign(this[own], { op: SHUT, target: once, options: { numbers: [fd] } });
        this.slot = slot;
        this.output = '';
    }
    async [asyncDispose]() { throw new Invalid(`${this[own].what}: it is given back when the work is over`); }
    async [end](ending) {
        Object.assign(this[own], { op: END, options: { numbers: [ending], data: Buffer.from(this.output), warn: true } });
        const [[outcome]] = await super[asyncDispose]();
        return outcome;
    }
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
        super(CLOSE, handle, `store ${url}`, ' is closed');
        this.url = url;
    }
    async #take(op, names, { ttl, wait = 0, label = '', keep = true, spread = false, signal } = {}) {
        const words = [plain(label, 'a label'), ...names.map((name) => plain(name, 'a lock name'))].join('\0');
        const numbers = [ttlMs(ttl), waitMs(wait), (keep ? 0 : 1) + (spread ? 2 : 0)];
        const taken = await this[ask](op, { words, numbers, signal });
        return taken.map((row) => new Lease(this, row[4], row[0], row[1]));
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
        return { term: found[0], label: found[4], address: String(bytes(found[5])), age, remaining };
    }
    async get(name, key) { return (await this.records(name, key)).find((one) => one.key === key) ?? null; }
    async records(name, prefix = '') {
        const list = await this[ask](LIST, { words: `${plain(name, 'a lock name')}\0${plain(prefix, 'a prefix')}` });
        return list.map(([token, number, written, until, key, value]) => ({ key, value: bytes(value), token, number,
            written: new Date(Number(written)), until: until ? new Date(Number(until)) : null }));
    }
    async break(name, token, { reason = '', now = false } = {}) {
        await this[ask](BREAK, { words: `${plain(name, 'a lock name')}\0${plain(reason, 'a reason')}`,
            numbers: [now ? 1 : 0, 0, BigInt(token)] });
    }
    async once(key, { per = 0, at = '', tz = '', slack = 0, startBy = 0, keep = 0, retryAfter = 0, retries = 0, holdCrashed = false,
        ttl, wait = 0, label = '', signal } = {}, work) {
        const words = [plain(key, 'a key'), plain(at, 'at'), plain(tz, 'tz'), plain(label, 'a label')].join('\0');
        const numbers = [ms(per, 'per'), slack < 0 ? -1 : ms(slack, 'slack'), ms(startBy, 'startBy'), ms(keep, 'keep'),
            ms(retryAfter, 'retryAfter'), ms(retries, 'retries'), holdCrashed ? 1 : 0, ttlMs(ttl), waitMs(wait)];
        const data = Buffer.from(BigInt64Array.from(numbers, BigInt).buffer);
        let rows = await this[ask](ONCE, { words, data, numbers: [0, 1], signal, warn: true });
        const [[once, fd]] = rows;
        try {
            for (let ran = false, value; ;) {
                const [about, [token, , , , text], record = [0n, -1n, -1n, 0n, '', '']] = rows;
                if (about[3] === 0n) return { outcome: OUTCOMES[about[2]], ran, value, slot: about[4], by: record[4], text,
                    token: record[0], since: record[1] < 0 ? null : new Date(Number(record[1])), output: bytes(record[5]) };
                const turn = new Turn(this, key, about, token);
                let failed = true;
                try {
                    value = await work(turn);
                    failed = false;
                    await turn[end](SUCCESS);
                } catch (error) {
                    if (!failed || await turn[end](signal?.aborted ? CUT_OFF : FAILURE).catch(() => 1n) !== 0n) throw error;
                }
                ran = !failed;
                rows = await call(BEGIN, once, { numbers: [fd], signal: ran ? undefined : signal }, this[own].pending);
            }
        } finally {
            await call(SHUT, once, { numbers: [fd] }).catch(() => {});
        }
    }
    close() { return this[asyncDispose](); }
}

async function open(url = '', { wait = 0, signal } = {}) {
    const [row] = await call(OPEN, 0, { words: plain(url, 'a URL'), numbers: [waitMs(wait)], signal, warn: true });
    return new Store(row[0], row[4]);
}

module.exports = { open, version: native.version, REASONS, HoldfastError, ...errors };
