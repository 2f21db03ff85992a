"""A distributed lock with fencing tokens, by libholdfast.

    import holdfast

    with holdfast.open('file:/var/lib/jobs') as store:
        with store.lock('nightly', ttl=30, wait=10) as lease:
            lease.check()
            write(lease.token)

Times are seconds. Stores and leases may be used by several threads at once. After fork the child opens a
store of its own: those of the parent are refused with Invalid.
"""
from __future__ import annotations

import asyncio
import contextlib
import ctypes
import math
import os
import re
import time
import warnings
import weakref
from _thread import get_ident, start_new_thread
from functools import partial
from operator import attrgetter, methodcaller
from typing import Any, Callable, Generic, Iterable, Iterator, List, NamedTuple, Sequence, TypeVar

from . import _fence
from ._errors import (REASONS, Busy, Cancelled, Corrupt, Denied, HoldfastError, Invalid, Lost, NoMemory, Quarantine,
                      Stale, StoreWarning, Unknown, Unreachable, Unsupported, failure)
from ._library import LEADER_FN, RECORD_FN, AcquireOptions, BreakOptions, Error, OpenOptions, lib
from ._waiting import ONE, Cancel, pause, pause_async

__all__ = ['Busy', 'Cancelled', 'Corrupt', 'Denied', 'HoldfastError', 'Invalid', 'Leader', 'Lease', 'Leases', 'Lock',
           'Lost', 'NoMemory', 'Quarantine', 'REASONS', 'Record', 'Stale', 'Store', 'StoreWarning', 'Unknown',
           'Unreachable', 'Unsupported', 'open', 'version']

version: str = lib.hf_version().decode()  #: of the library that is loaded
_T = TypeVar('_T')


def _text(data: bytes | None) -> str:
    return (data or b'').decode('utf-8', 'replace')


class Record(NamedTuple):
    """What a holder left behind beside its lock; times since 1970, by the store's clock."""
    key: str
    value: bytes
    token: int
    number: int
    written: float
    until: float | None


class Leader(NamedTuple):
    """Who leads, as a reader saw it a moment ago."""
    term: int | None
    label: str
    address: str
    age: float | None
    remaining: float | None


def _record(one: Any) -> Record:
    return Record(_text(one.key), ctypes.string_at(one.value, one.value_len), one.token, one.number,
                  one.written_ms / 1000, one.until_ms / 1000 if one.until_ms else None)


def _leader(one: Any) -> Leader:
    age, remaining = (ms / 1000 if ms >= 0 else None for ms in (one.age_ms, one.remaining_ms))
    return Leader(one.term or None, _text(one.label), _text(one.address), age, remaining)


def _bytes(text: str, what: str) -> bytes:
    """For a char *, which ends at a NUL: a name with one must not become another name."""
    if re.search('[\0\ud800-\udfff]', text):
        raise Invalid(f'{what} is valid text without control characters')
    return text.encode()


def _ms(seconds: float, what: str) -> int:
    if not 0 <= seconds < 2 ** 40:  # not NaN either
        raise Invalid(f'{what} is a number of seconds, not {seconds!r}')
    return math.ceil(seconds * 1000)


def _ttl_ms(seconds: float) -> int:
    return min(_ms(seconds, 'a ttl'), 2 ** 32 - 1)


def _wait_ms(seconds: float) -> int:
    return -1 if seconds == math.inf else _ms(seconds, 'a wait')


def _warn(err: Error) -> None:
    if err.text:
        warnings.warn(_text(err.text), StoreWarning, stacklevel=4)


class _Handle:
    """A handle of the library. Who is inside a call is noted, so that it is ended when no other thread is. Sets
    are changed in one step: there is no lock, which a fork could freeze or Ctrl-C leave locked."""

    _over = False
    _about = ''  # what it is called once it is over: 'store file:/x is closed'

    def __init__(self, pid: int, ptr: ctypes.c_void_p) -> None:
        self._ptr, self._pid = ptr, pid
        self._once: Iterator[ctypes.c_void_p] = iter((ptr,))  # who ends it draws it, in one step
        self._inside: set[int] = set()

    def _call(self, function: Callable[..., _T], *arguments: Any) -> _T:
        try:
            self._inside.add(get_ident())
            if self._over:
                raise Invalid(self._about)
            return function(self._ptr, *arguments)
        finally:
            self._inside.discard(get_ident())

    def _ask(self, function: Callable[..., int], *arguments: Any) -> None:
        err = Error()
        status = self._call(function, *arguments, err)
        if status:
            raise failure(status, err, self._loss() if status == 2 else 0)
        _warn(err)

    def _loss(self) -> int:
        return 0

    def _empty(self, hurry: Callable[[], object] = bool) -> None:
        """Waits until nobody is inside; in a forked child, nobody is. What Ctrl-C kept from leaving is not:
        no call is longer than the limit."""
        self._over = True
        limit, me = time.monotonic() + 20, {get_ident()}
        while self._inside - me and os.getpid() == self._pid and time.monotonic() < limit:
            hurry()
            time.sleep(0.001)


class _Ref(weakref.ref):
    """Gives back a lease that nobody released. When the lease is collected, `start` is called, and a thread
    does the rest: no code of Python runs in between, which Ctrl-C could end."""

    start: Callable[[], object] = int  # nothing yet


def _found(store: _Handle, refs: dict[object, _Ref], once: Iterator[ctypes.c_void_p]) -> None:
    refs.pop(once, None)
    for ptr in once:
        if ptr:
            warnings.warn(f'the lease of lock {_text(lib.hf_lease_name(ptr))!r} was never released', ResourceWarning)
            lib.hf_release(ptr, None)


class Lease(_Handle):
    """A held lock. Leaving its scope, or release(), gives it back; so does the garbage collector, with a
    ResourceWarning."""

    token = 0  #: the fencing token: a 64-bit integer that only ever rises
    _watched = False  # by lost()

    def __init__(self, store: Store, name: str, ptr: ctypes.c_void_p) -> None:
        super().__init__(store._handle._pid, ptr)
        self._store, self.name = store, name
        store._refs[self._once] = ref = _Ref(self, methodcaller('start'))
        ref.start = partial(start_new_thread, _found, (store._handle, store._refs, self._once))

    def __repr__(self) -> str:
        return f'<holdfast.Lease {self.name!r} token={self.token}{" (released)" if self._over else ""}>'

    @property
    def remaining(self) -> float:
        """Seconds of validity left; 0 once it is lost or released."""
        with contextlib.suppress(Invalid):
            return max(0, self._call(lib.hf_lease_remaining_ms)) / 1000
        return 0.0

    @property
    def loss(self) -> str | None:
        """None while it is held, else one of REASONS."""
        return (None, *REASONS[1:])[self._loss()]

    def fileno(self) -> int:
        """A descriptor that becomes and stays readable when the lease is lost, for select and its kin;
        it belongs to the lease."""
        return self._call(lib.hf_lease_fd)

    def check(self) -> None:
        """Raises Lost once nothing remains: the line to put before a write. Asks no server."""
        while self._call(lib.hf_lease_remaining_ms) <= 0:
            if self._loss():
                self.renew()  # of what is lost, it only says why
            time.sleep(0.001)  # less than a millisecond is left

    def renew(self, ttl: float | None = None) -> None:
        """Extends the lease now; the keeper does so by itself."""
        self._ask(lib.hf_renew, 0 if ttl is None else _ttl_ms(ttl))

    def put(self, key: str, value: bytes | str, keep: float | None = None) -> None:
        """Writes a record of this lock, kept for that many seconds (None: for ever)."""
        data = value.encode() if isinstance(value, str) else bytes(value)
        self._ask(lib.hf_record_put, _bytes(key, 'a key'), data, len(data), 0 if keep is None else _ms(keep, 'keep'))

    def enter(self, cursor: Any, resource: str, key: Any = None) -> None:
        """Shows the token to the fence of a table, first in a transaction: psycopg, sqlite3, MariaDB.
        Raises Stale if a later holder was there."""
        self.check()
        _fence.enter(cursor, resource, key, self.token)

    def leave(self, cursor: Any) -> None:
        """The counterpart, last in the transaction: SQLite needs it; a pooled MariaDB connection too."""
        _fence.leave(cursor)

    def release(self) -> None:
        """Gives the lock back. Raises Lost if it was not held to the end; doing it again does nothing."""
        err, loss = Error(), self._loss() if self._ptr and not self._over else 0
        fd = self.fileno() if self._watched and not self._over else -1
        self._about = f'lock "{self.name}" in store {self._store.url}: this lease was released'
        self._empty()
        if fd >= 0:
            os.write(fd, ONE)  # who watches it has a duplicate
        # The handle is drawn and freed in one step of the interpreter, which neither Ctrl-C nor another
        # thread can divide: it is never freed twice, and never forgotten.
        for status in map(lib.hf_release, self._once, (err,)):
            self._store._refs.pop(self._once, None)
            if status:
                raise failure(status, err, loss)

    async def release_async(self) -> None:
        await pause_async(self.release)

    async def lost(self) -> str | None:
        """Returns the reason when the lease is lost; None if it was released."""
        told = (loop := asyncio.get_running_loop()).create_future()
        self._watched, fd = True, os.dup(self.fileno())  # the lease may be released meanwhile
        loop.add_reader(fd, lambda: told.done() or told.set_result(None))
        try:
            await told
        finally:
            loop.remove_reader(fd)
            os.close(fd)
        return None if self._over else self.loss

    def _loss(self) -> int:
        return self._call(lib.hf_lease_loss)


class Leases(List[Lease]):
    """Those of Store.all(), in the order of the names. The loss of one is the loss of all."""

    @property
    def remaining(self) -> float:
        """Of the one that ends first."""
        return min(lease.remaining for lease in self)

    def check(self) -> None:
        """Raises Lost once nothing remains of one of them: the line to put before a write."""
        for lease in self:
            lease.check()

    def release(self) -> None:
        """Gives them back, in the reverse order of their names. Raises Lost if one was not held to the end."""
        errors = []
        for lease in sorted(self, key=attrgetter('name'), reverse=True):
            try:
                lease.release()
            except HoldfastError as error:
                errors.append(error)
        for error in sorted(errors, key=lambda one: not isinstance(one, Lost)):
            raise error

    async def release_async(self) -> None:
        await pause_async(self.release)

    async def lost(self) -> str | None:
        """As Lease.lost(), for the first that is lost or released."""
        tasks = [asyncio.ensure_future(lease.lost()) for lease in self]
        try:
            return await next(iter(asyncio.as_completed(tasks)))
        finally:
            for task in tasks:
                task.cancel()


_Held = TypeVar('_Held', Lease, Leases)


def _options(ttl: float | None, wait: float, label: str | None, keep: bool, spread: bool = False) -> AcquireOptions:
    return AcquireOptions(ctypes.sizeof(AcquireOptions), 0 if ttl is None else max(1, _ttl_ms(ttl)), _wait_ms(wait),
                          None if label is None else _bytes(label, 'a label'), 0, not keep, spread=spread)


def _shut(handle: _Handle, cancels: set[Cancel], refs: dict[object, _Ref]) -> None:
    handle._empty(lambda: [cancel.set() for cancel in cancels.copy()])
    refs.clear()
    [*map(lib.hf_close, handle._once)]


class Lock(Generic[_Held]):
    """What `with` and `async with` take; acquire() gives the lease itself. One at a time: whoever needs two
    asks the store twice."""

    _lease: Any = None  # entered with

    def __init__(self, store: Store, take: Callable[..., int], names: Sequence[str], options: AcquireOptions,
                 address: bytes | None = None) -> None:
        self._store, self._take, self._names, self._options, self._address = store, take, names, options, address
        self._bytes = [_bytes(name, 'a lock name') for name in names]

    def acquire(self) -> _Held:
        """Waits as long as it was told to. Raises Busy, and whatever else the library answers."""
        call, held, err = self._prepare()
        if self._options.wait_ms == 0:
            return self._granted(held, call(self._options), err)
        with self._store._waiting(self._options) as (cancel, options):
            return self._granted(held, pause(lambda: call(options), cancel), err)

    async def acquire_async(self) -> _Held:
        """The same for asyncio; a task that is cancelled leaves the queue."""
        call, held, err = self._prepare()
        with self._store._waiting(self._options) as (cancel, options):
            return self._granted(held, await pause_async(lambda: call(options), cancel), err)

    def _prepare(self) -> tuple[Callable[[AcquireOptions], int], Any, Error]:
        """The call, and the lease or leases, into which the library writes what it takes: nothing can come in
        between."""
        def call(options: AcquireOptions) -> int:
            return self._store._handle._call(take, *before, options, *after) or (
                lib.hf_record_put(held._ptr, b'leader', told, len(told), 0, err) if told is not None else 0)

        err, take, names, told, pointer = Error(), self._take, self._bytes, self._address, ctypes.c_void_p
        if take is not lib.hf_acquire_all:
            held = Lease(self._store, self._names[0] if names else '', room := pointer())
        else:
            room = (pointer * len(names))()
            held = Leases(Lease(self._store, name, pointer.from_buffer(room, at * ctypes.sizeof(pointer)))
                          for at, name in enumerate(self._names))
        before = names if take is lib.hf_acquire else [(ctypes.c_char_p * len(names))(*names), len(names)]
        after = [room, ctypes.c_size_t(), err] if take is lib.hf_acquire_any else [room, err]
        return call, held, err

    def _granted(self, held: Any, status: int, err: Error) -> Any:
        if status:
            with contextlib.suppress(HoldfastError):
                held.release()  # what has been taken, if only the address was refused
            raise failure(status, err)
        _warn(err)
        for lease in held if isinstance(held, Leases) else (held,):
            lease.token = lib.hf_lease_token(lease._ptr)
        if self._take is lib.hf_acquire_any:
            held.name = _text(lib.hf_lease_name(held._ptr))
        return held

    def _alone(self) -> Lock[_Held]:
        if self._lease is not None:
            raise RuntimeError('this lock is entered already; ask the store for another')
        return self

    def __enter__(self) -> _Held:
        self._lease = lease = self._alone().acquire()
        return lease

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        lease, self._lease = self._lease, None
        try:
            lease.release()
        except HoldfastError:
            if error is None:  # the body's own error stays first
                raise

    async def __aenter__(self) -> _Held:
        self._lease = lease = await self._alone().acquire_async()
        return lease

    async def __aexit__(self, kind: object, error: object, trace: object) -> None:
        lease, self._lease = self._lease, None
        with contextlib.suppress(HoldfastError if error else ()):
            await lease.release_async()


class Store:
    """An open store: where locks live. A context manager; close() ends it, and so do the garbage collector
    and the exit of the interpreter. Leases that are still held are released then."""

    def __init__(self, url: str | None = None, *, wait: float = 0) -> None:
        self._handle = handle = _Handle(os.getpid(), ctypes.c_void_p())
        self._cancels: set[Cancel] = set()
        self._refs: dict[object, _Ref] = {}
        name = None if url is None else _bytes(url, 'a URL')
        with self._waiting(OpenOptions(ctypes.sizeof(OpenOptions), _wait_ms(wait))) as (cancel, options):
            handle._ask(lambda ptr, err: pause(lambda: lib.hf_open_waiting(name, options, ptr, err), cancel))
        self.url = _text(lib.hf_store_url(handle._ptr))  #: without its password
        handle._about = f'store {self.url} is closed'
        #: ends the waits in this store, releases what is held, closes it; once
        self.close = weakref.finalize(self, _shut, handle, self._cancels, self._refs)

    def __repr__(self) -> str:
        return f'<holdfast.Store {self.url!r}{" (closed)" if self._handle._over else ""}>'

    def lock(self, name: str, *, ttl: float | None = None, wait: float = 0, label: str | None = None,
             keep: bool = True) -> Lock[Lease]:
        """A lock to be taken: `with store.lock('nightly', ttl=30, wait=10) as lease`. wait is 0 for
        one try, math.inf for no limit. keep=False: nobody renews it but you."""
        return Lock(self, lib.hf_acquire, (name,), _options(ttl, wait, label, keep))

    def any(self, names: Iterable[str], *, ttl: float | None = None, wait: float = 0, label: str | None = None,
            keep: bool = True, spread: bool = False) -> Lock[Lease]:
        """One of several locks, the first that is free: the lease's name says which. It waits for all of them at
        once. spread: it begins with a random one."""
        return Lock(self, lib.hf_acquire_any, [*names], _options(ttl, wait, label, keep, spread))

    def all(self, names: Iterable[str], *, ttl: float | None = None, wait: float = 0, label: str | None = None,
            keep: bool = True) -> Lock[Leases]:
        """Several locks, all or nothing, in one order for everybody: no two callers wait for each other."""
        return Lock(self, lib.hf_acquire_all, [*names], _options(ttl, wait, label, keep))

    def elect(self, name: str, *, address: str | None = None, ttl: float | None = None,
              wait: float = math.inf, label: str | None = None) -> Lock[Lease]:
        """Stands for one term as leader: the lease's token is the term. The address is told to those who
        ask leader()."""
        told = None if address is None else _bytes(address, 'an address')
        return Lock(self, lib.hf_acquire, (name,), _options(ttl, wait, label, True), told)

    def leader(self, name: str) -> Leader | None:
        """Who leads; None if nobody does."""
        return next(self._each(lib.hf_leader, LEADER_FN, _leader, _bytes(name, 'a lock name')), None)

    def get(self, name: str, key: str) -> Record | None:
        """The record of that lock, or None."""
        return next((one for one in self.records(name, key) if one.key == key), None)

    def records(self, name: str, prefix: str = '') -> list[Record]:
        """The records of that lock whose keys start with prefix."""
        names = _bytes(name, 'a lock name'), _bytes(prefix, 'a prefix')
        return [*self._each(lib.hf_record_list, RECORD_FN, _record, *names)]

    def break_(self, name: str, token: int, *, reason: str | None = None, now: bool = False) -> None:
        """Revokes the hold with that token: it is no longer renewed, and its holder hears of it. now ends it at
        once, and only a fence keeps the late one out. Raises Lost if it is not the present one."""
        options = BreakOptions(ctypes.sizeof(BreakOptions), None, reason and _bytes(reason, 'a reason'), now)
        self._handle._ask(lib.hf_break, _bytes(name, 'a lock name'), token, options, None)

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @contextlib.contextmanager
    def _waiting(self, options: Any) -> Iterator[tuple[Cancel, Any]]:
        """For as long as this store is waited in: close() ends the wait. Gives a copy that can be cancelled."""
        cancel, options = Cancel(), type(options).from_buffer_copy(options)
        options.cancel_fd = cancel.fd
        self._cancels.add(cancel)
        try:
            yield cancel, options
        finally:
            self._cancels.discard(cancel)

    def _each(self, function: Callable[..., int], kind: Any, of: Callable[[Any], _T], *arguments: Any) -> Iterator[_T]:
        found: list[_T] = []
        self._handle._ask(function, *arguments, kind(lambda one, _: found.append(of(one.contents)) is None), None)
        return iter(found)


open = Store
