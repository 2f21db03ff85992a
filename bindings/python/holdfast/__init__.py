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
import time
import warnings
import weakref
from _thread import get_ident, start_new_thread
from functools import partial
from operator import methodcaller
from typing import Any, Callable, Iterator, NamedTuple, TypeVar

from . import _fence
from ._errors import (Busy, Cancelled, Corrupt, Denied, HoldfastError, Invalid, Lost, NoMemory, Quarantine,
                      REASONS, Stale, StoreWarning, Unknown, Unreachable, Unsupported, failure)
from ._library import LEADER_FN, RECORD_FN, AcquireOptions, BreakOptions, Error, OpenOptions, lib
from ._waiting import ONE, Cancel, wait, wait_async

__all__ = ['Busy', 'Cancelled', 'Corrupt', 'Denied', 'HoldfastError', 'Invalid', 'Leader', 'Lease',
           'Lock', 'Lost', 'NoMemory', 'Quarantine', 'REASONS', 'Record', 'Stale', 'Store',
           'StoreWarning', 'Unknown', 'Unreachable', 'Unsupported', 'open', 'version']

version: str = lib.hf_version().decode()  #: of the library that is loaded
_T = TypeVar('_T')


def _text(data: bytes | None) -> str:
    return (data or b'').decode('utf-8', 'replace')


def _seconds(ms: int) -> float | None:
    return ms / 1000 if ms >= 0 else None


class Record(NamedTuple):
    """What a holder left behind beside its lock; times since 1970, by the store's clock."""
    key: str
    value: bytes
    token: int
    number: int
    written: float
    until: float | None

    @classmethod
    def _of(cls, one: Any) -> Record:
        return cls(_text(one.key), ctypes.string_at(one.value, one.value_len), one.token, one.number,
                   one.written_ms / 1000, one.until_ms / 1000 if one.until_ms else None)


class Leader(NamedTuple):
    """Who leads, as a reader saw it a moment ago."""
    term: int | None
    label: str
    address: str
    age: float | None
    remaining: float | None

    @classmethod
    def _of(cls, one: Any) -> Leader:
        return cls(one.term or None, _text(one.label), _text(one.address), _seconds(one.age_ms),
                   _seconds(one.remaining_ms))


def _bytes(text: str, what: str) -> bytes:
    """For a char *, which ends at a NUL: a name with one must not become another name."""
    try:
        data = text.encode('utf-8')
    except UnicodeEncodeError:
        raise Invalid(f'{what} is not valid text') from None
    if b'\0' in data:
        raise Invalid(f'{what} has no control characters')
    return data


def _ms(seconds: float, what: str) -> int:
    if not 0 <= seconds < 2 ** 40:  # not NaN either
        raise Invalid(f'{what} is a number of seconds, not {seconds!r}')
    return math.ceil(seconds * 1000)


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

    def __init__(self, pid: int) -> None:
        self._ptr = ptr = ctypes.c_void_p()
        self._once: Iterator[ctypes.c_void_p] = iter((ptr,))  # who ends it draws it, in one step
        self._inside: set[int] = set()
        self._pid = pid

    def _call(self, function: Callable[..., _T], *arguments: Any) -> _T:
        try:
            self._inside.add(get_ident())
            if self._over:
                raise Invalid(self._about)
            return function(self._ptr, *arguments)
        finally:
            self._inside.discard(get_ident())

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


def _found(name: str, store: _Handle, refs: dict[object, _Ref], once: Iterator[ctypes.c_void_p]) -> None:
    refs.pop(once, None)
    for ptr in once:
        if ptr:
            warnings.warn(f'the lease of lock {name!r} was never released', ResourceWarning)
            lib.hf_release(ptr, None)


class Lease(_Handle):
    """A held lock. Leaving its scope, or release(), gives it back; so does the garbage collector, with a
    ResourceWarning."""

    token = 0  #: the fencing token: a 64-bit integer that only ever rises
    _watched = False  # by lost()

    def __init__(self, store: Store, name: str) -> None:
        super().__init__(store._handle._pid)
        self._store = store
        self.name = name
        store._refs[self._once] = ref = _Ref(self, methodcaller('start'))
        ref.start = partial(start_new_thread, _found, (name, store._handle, store._refs, self._once))

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
        loss = self._call(lib.hf_lease_loss)
        return REASONS[loss] if loss else None

    def fileno(self) -> int:
        """A descriptor that becomes and stays readable when the lease is lost, for select and its kin;
        it belongs to the lease."""
        return self._call(lib.hf_lease_fd)

    def check(self) -> None:
        """Raises Lost once nothing remains: the line to put before a write. Asks no server."""
        while self._call(lib.hf_lease_remaining_ms) <= 0:
            if self._call(lib.hf_lease_loss):
                self.renew()  # of what is lost, it only says why
            time.sleep(0.001)  # less than a millisecond is left

    def renew(self, ttl: float | None = None) -> None:
        """Extends the lease now; the keeper does so by itself."""
        ttl_ms = 0 if ttl is None else _ms(ttl, 'a ttl')
        self._ask(lib.hf_renew, min(ttl_ms, 2 ** 32 - 1))

    def put(self, key: str, value: bytes | str, keep: float | None = None) -> None:
        """Writes a record of this lock, kept for that many seconds (None: for ever)."""
        data = value.encode() if isinstance(value, str) else bytes(value)
        keep_ms = 0 if keep is None else _ms(keep, 'keep')
        self._ask(lib.hf_record_put, _bytes(key, 'a key'), data, len(data), keep_ms)

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
        err, loss = Error(), self._call(lib.hf_lease_loss) if self._ptr and not self._over else 0
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
        if not self._over:
            await wait_async(self.release)

    async def lost(self) -> str | None:
        """Returns the reason when the lease is lost; None if it was released."""
        loop = asyncio.get_running_loop()
        told = loop.create_future()
        self._watched, fd = True, os.dup(self.fileno())  # the lease may be released meanwhile
        loop.add_reader(fd, lambda: told.done() or told.set_result(None))
        try:
            await told
        finally:
            loop.remove_reader(fd)
            os.close(fd)
        return None if self._over else self.loss

    def _ask(self, function: Callable[..., int], *arguments: Any) -> None:
        err = Error()
        status = self._call(function, *arguments, err)
        if status:
            raise failure(status, err, self._call(lib.hf_lease_loss) if status == 2 else 0)
        _warn(err)


def _options(ttl: float | None, wait: float, label: str | None, keep: bool) -> AcquireOptions:
    ttl_ms = 0 if ttl is None else min(max(1, _ms(ttl, 'a ttl')), 2 ** 32 - 1)
    return AcquireOptions(ctypes.sizeof(AcquireOptions), ttl_ms, _wait_ms(wait),
                          None if label is None else _bytes(label, 'a label'), 0, not keep)


def _shut(handle: _Handle, cancels: set[Cancel], refs: dict[object, _Ref]) -> None:
    handle._empty(lambda: [cancel.set() for cancel in cancels.copy()])
    refs.clear()
    for _ in map(lib.hf_close, handle._once):
        pass


class Lock:
    """What `with` and `async with` take; acquire() gives the lease itself. One at a time: whoever needs two
    asks the store twice."""

    def __init__(self, store: Store, name: str, options: AcquireOptions, address: str | None = None) -> None:
        self._store, self._name, self._options, self._address = store, name, options, address
        self._bytes = _bytes(name, 'a lock name')
        self._lease: Lease | None = None

    def acquire(self) -> Lease:
        """Waits as long as it was told to. Raises Busy, and whatever else the library answers."""
        lease, err = Lease(self._store, self._name), Error()
        if self._options.wait_ms == 0:
            status = self._call(lease, self._options, err)
        else:
            with self._store._waiting(self._options) as (cancel, options):
                status = wait(lambda: self._call(lease, options, err), cancel)
        return self._granted(lease, status, err)

    async def acquire_async(self) -> Lease:
        """The same for asyncio; a task that is cancelled leaves the queue."""
        lease, err = Lease(self._store, self._name), Error()
        with self._store._waiting(self._options) as (cancel, options):
            status = await wait_async(lambda: self._call(lease, options, err), cancel)
        if self._address is None:
            return self._granted(lease, status, err)
        return await asyncio.get_running_loop().run_in_executor(None, self._granted, lease, status, err)

    def _call(self, lease: Lease, options: AcquireOptions, err: Error) -> int:
        return self._store._handle._call(lib.hf_acquire, self._bytes, options, ctypes.byref(lease._ptr), err)

    def _granted(self, lease: Lease, status: int, err: Error) -> Lease:
        if status:
            raise failure(status, err)
        lease.token = lib.hf_lease_token(lease._ptr)
        if self._address is not None:
            try:
                lease.put('leader', self._address)
            except HoldfastError:
                with contextlib.suppress(HoldfastError):
                    lease.release()
                raise
        return lease

    def _alone(self) -> Lock:
        if self._lease is not None:
            raise RuntimeError('this lock is entered already; ask the store for another')
        return self

    def __enter__(self) -> Lease:
        self._lease = lease = self._alone().acquire()
        return lease

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        lease, self._lease = self._lease, None
        try:
            lease.release()
        except HoldfastError:
            if error is None:  # the body's own error stays first
                raise

    async def __aenter__(self) -> Lease:
        self._lease = lease = await self._alone().acquire_async()
        return lease

    async def __aexit__(self, kind: object, error: object, trace: object) -> None:
        lease, self._lease = self._lease, None
        try:
            await lease.release_async()
        except HoldfastError:
            if error is None:
                raise


class Store:
    """An open store: where locks live. A context manager; close() ends it, and so do the garbage collector
    and the exit of the interpreter. Leases that are still held are released then."""

    def __init__(self, url: str | None = None, *, wait: float = 0) -> None:
        self._handle = handle = _Handle(os.getpid())
        self._cancels: set[Cancel] = set()
        self._refs: dict[object, _Ref] = {}
        self._open(None if url is None else _bytes(url, 'a URL'), _wait_ms(wait))
        self.url = _text(lib.hf_store_url(handle._ptr))  #: without its password
        handle._about = f'store {self.url} is closed'
        #: ends the waits in this store, releases what is held, closes it; once
        self.close = weakref.finalize(self, _shut, handle, self._cancels, self._refs)

    def __repr__(self) -> str:
        return f'<holdfast.Store {self.url!r}{" (closed)" if self._handle._over else ""}>'

    def lock(self, name: str, *, ttl: float | None = None, wait: float = 0, label: str | None = None,
             keep: bool = True) -> Lock:
        """A lock to be taken: `with store.lock('nightly', ttl=30, wait=10) as lease`. wait is 0 for
        one try, math.inf for no limit. keep=False: nobody renews it but you."""
        return Lock(self, name, _options(ttl, wait, label, keep))

    def elect(self, name: str, *, address: str | None = None, ttl: float | None = None,
              wait: float = math.inf, label: str | None = None) -> Lock:
        """Stands for one term as leader: the lease's token is the term. The address is told to those who
        ask leader()."""
        if address is not None:
            _bytes(address, 'an address')
        return Lock(self, name, _options(ttl, wait, label, True), address)

    def leader(self, name: str) -> Leader | None:
        """Who leads; None if nobody does."""
        return next(self._each(lib.hf_leader, LEADER_FN, Leader._of, _bytes(name, 'a lock name')), None)

    def get(self, name: str, key: str) -> Record | None:
        """The record of that lock, or None."""
        return next((one for one in self.records(name, key) if one.key == key), None)

    def records(self, name: str, prefix: str = '') -> list[Record]:
        """The records of that lock whose keys start with prefix."""
        return [*self._each(lib.hf_record_list, RECORD_FN, Record._of, _bytes(name, 'a lock name'),
                            _bytes(prefix, 'a prefix'))]

    def break_(self, name: str, token: int, *, reason: str | None = None, now: bool = False) -> None:
        """Revokes the hold with that token: it is renewed no more, and its holder hears of it. now ends it at
        once, and only a fence keeps the late one out. Raises Lost if it is not the present one."""
        why = None if reason is None else _bytes(reason, 'a reason')
        options = BreakOptions(ctypes.sizeof(BreakOptions), None, why, now)
        self._ask(lib.hf_break, _bytes(name, 'a lock name'), token, options, None)

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _open(self, url: bytes | None, wait_ms: int) -> None:
        err, out = Error(), ctypes.byref(self._handle._ptr)
        with self._waiting(OpenOptions(ctypes.sizeof(OpenOptions), wait_ms)) as (cancel, options):
            status = wait(lambda: lib.hf_open_waiting(url, options, out, err), cancel)
        if status:
            raise failure(status, err)
        _warn(err)

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

    def _ask(self, function: Callable[..., int], *arguments: Any) -> None:
        err = Error()
        status = self._handle._call(function, *arguments, err)
        if status:
            raise failure(status, err)

    def _each(self, function: Callable[..., int], kind: Any, of: Callable[[Any], _T],
              *arguments: Any) -> Iterator[_T]:
        def seen(one: Any, _: object) -> bool:
            found.append(of(one.contents))
            return True

        found: list[_T] = []
        self._ask(function, *arguments, kind(seen), None)
        return iter(found)


open = Store
