// Times are milliseconds; tokens are BigInt.
export class HoldfastError extends Error {}
/** Another holds the lock, and did until the wait was over; the text says who. */
export class Busy extends HoldfastError {}
/** The lock was held and no longer is. */
export class Lost extends HoldfastError { reason?: Reason; }
/** A fence has admitted a higher token. */
export class Stale extends HoldfastError {}
/** The signal was aborted (its reason is the cause), or the store closed, during the wait. */
export class Cancelled extends HoldfastError {}
/** No answer came: it may have taken effect. */
export class Unknown extends HoldfastError {}
export class Unreachable extends HoldfastError {}
/** The store is new and grants nothing for retryAfter milliseconds. */
export class Quarantine extends HoldfastError { retryAfter: number; }
export class Denied extends HoldfastError {}
export class Invalid extends HoldfastError {}
export class Unsupported extends HoldfastError {}
/** The store's data is damaged; the text says how to repair it. */
export class Corrupt extends HoldfastError {}
export class NoMemory extends HoldfastError {}

export type Reason = 'expired' | 'taken' | 'broken' | 'unreachable' | 'forgotten' | 'closed';
export const REASONS: readonly string[];
/** The version of the library that is loaded. */
export const version: string;

export interface LockOptions {
    ttl?: number;
    /** 0 (the default): one try. Infinity: no limit. */
    wait?: number;
    /** What people see. */
    label?: string;
    /** false: nobody renews it but you. */
    keep?: boolean;
    /** Aborting it ends the wait and leaves the queue. */
    signal?: AbortSignal;
}

/** Those of all(), in the order of the names. The loss of one is the loss of all. */
export interface Leases extends Array<Lease>, AsyncDisposable {
    /** Of the one that ends first. */
    readonly remaining: number;
    /** Aborted, with a Lost as its reason, when one of them is lost. */
    readonly signal: AbortSignal;
    /** Throws Lost once nothing remains of one of them. */
    check(): void;
    /** Gives them back, in the reverse order of their names. Rejects with Lost if one was not held to the end. */
    release(): Promise<void>;
}

export interface LockRecord {
    key: string;
    value: Buffer;
    token: bigint;
    number: bigint;
    written: Date;
    until: Date | null;
}

export interface Leader {
    term: bigint;
    label: string;
    address: string;
    age: number | null;
    remaining: number | null;
}

export interface OnceOptions extends Omit<LockOptions, 'keep'> {
    /** Milliseconds: whole days, or what divides a day. 0 (the default): once for ever. */
    per?: number;
    /** When a period of whole days begins: '03:00'. */
    at?: string;
    /** The zone of at: 'Europe/Berlin'. */
    tz?: string;
    slack?: number;
    /** Begin no later than this after the slot began. */
    startBy?: number;
    /** How long an outcome is kept. */
    keep?: number;
    retryAfter?: number;
    /** How many more attempts there are if it fails, on whichever machine. */
    retries?: number;
    /** A run that began and never ended is held until a person clears it. */
    holdCrashed?: boolean;
}

/** What once() lends to the work: the lock, while it is ours. release() rejects: the end of the work gives it back. */
export interface Turn extends Lease {
    /** '2026-11-17', '2026-11-17T03:00Z' or 'ever'. */
    readonly slot: string;
    /** To be kept on record: the end of it. */
    output: string;
}

/** What became of a slot. */
export interface Once<T> {
    outcome: 'done' | 'failed' | 'late' | 'held';
    /** Whether it was done by this call; value is what the work returned then. */
    ran: boolean;
    value: T | undefined;
    slot: string;
    /** Whose run is on record, and what was kept of it. */
    by: string;
    token: bigint;
    since: Date | null;
    output: Buffer;
    /** All of it in a sentence. */
    text: string;
}

export interface Lease extends AsyncDisposable {
    readonly name: string;
    /** The fencing token: give it to whatever you write to. */
    readonly token: bigint;
    /** Milliseconds of validity left; 0 once it is lost or released. */
    readonly remaining: number;
    readonly loss: Reason | undefined;
    /** Aborted, with a Lost as its reason, when the lease is lost. Throws NoMemory if no descriptor can be had to hear of that. */
    readonly signal: AbortSignal;
    /** Throws Lost once nothing remains: the line to put before a write. Asks no server. */
    check(): void;
    /** Extends the lease now; the keeper does so by itself. */
    renew(ttl?: number): Promise<void>;
    /** Writes a record of this lock, kept for that long (default: for ever). */
    put(key: string, value: string | Uint8Array, options?: { keep?: number }): Promise<void>;
    /** Gives the lock back. Rejects with Lost if it was not held to the end. */
    release(): Promise<void>;
}

export interface Store extends AsyncDisposable {
    /** Without its password. */
    readonly url: string;
    lock(name: string, options?: LockOptions): Promise<Lease>;
    /** Holds the lock while body runs. Rejects with Lost if body succeeded and the lease was lost; if
     * body failed, with that error. */
    with<T>(name: string, options: LockOptions, body: (lease: Lease) => Promise<T> | T): Promise<T>;
    /** Takes one of several locks, the first that is free: the lease's name says which. Waits for all of them at once.
     * spread: begins with a random one. */
    any(names: readonly string[], options?: LockOptions & { spread?: boolean }): Promise<Lease>;
    /** Takes several locks, all or nothing, in one order for everybody: no two callers wait for each other. */
    all(names: readonly string[], options?: LockOptions): Promise<Leases>;
    /** with() for several locks. */
    withAll<T>(names: readonly string[], options: LockOptions, body: (leases: Leases) => Promise<T> | T): Promise<T>;
    /** Stands for one term as leader: the token is the term. */
    elect(name: string, options?: LockOptions & { address?: string }): Promise<Lease>;
    leader(name: string): Promise<Leader | null>;
    /** Does the work if the slot is ours to do, and says what became of it, here or elsewhere. Work that fails is tried
     * again if there are retries; rejects with what the last attempt failed with, and with Lost if the work was done
     * and the lock was lost. Work that fails after signal was aborted is cut off, not failed. */
    once<T>(key: string, options: OnceOptions, work: (turn: Turn) => Promise<T> | T): Promise<Once<T>>;
    get(name: string, key: string): Promise<LockRecord | null>;
    records(name: string, prefix?: string): Promise<LockRecord[]>;
    /** Revokes the hold with that token: it is no longer renewed, and its holder hears of it. now ends it at
     * once, and only a fence keeps the late one out. Rejects with Lost if that hold is not the present one. */
    break(name: string, token: bigint, options?: { reason?: string; now?: boolean }): Promise<void>;
    /** Ends the waits in this store, releases what is held, closes it. */
    close(): Promise<void>;
}

/** Opens the store that url names; without one, the embedded store. */
export function open(url?: string, options?: { wait?: number; signal?: AbortSignal }): Promise<Store>;
