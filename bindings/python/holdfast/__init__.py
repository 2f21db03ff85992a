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
import sys
import time
import weakref
from functools import lru_cache, partial
from operator import attrgetter
from typing import Any, Callable, Generic, Iterable, Iterator, List, NamedTuple, Optional, TypeVar

from ._library import (LEADER_FN, REASONS, RECORD_FN, AcquireOptions, BreakOptions, Busy, Cancelled, Core, Corrupt,
                       Denied, Hold, HoldfastError, Invalid, Lost, NoMemory, OpenOptions, Quarantine, Stale,
                       StoreWarning, Unknown, Unreachable, Unsupported, failure, lib, pause, pause_async, text_of, warn)

__all__ = ['Busy', 'Cancelled', 'Corrupt', 'Denied', 'HoldfastError', 'Invalid', 'Leader', 'Lease', 'Leases', 'Lock',
           'Lost', 'NoMemory', 'Quarantine', 'REASONS', 'Record', 'Stale', 'Store', 'StoreWarning', 'Unknown',
           'Unreachable', 'Unsupported', 'open', 'version']

version: str = lib.hf_version().decode()  #: of the library that is loaded
_take, _give = lib.hf_lock_acquire, lib.hf_lock_release


#: What a holder left behind beside its lock; times since 1970, by the store's clock.
Record = NamedTuple('Record', [('key', str), ('value', bytes), ('token', int), ('number', int), ('written', float),
                               ('until', Optional[float])])
#: Who leads, as a reader saw it a moment ago.
Leader = NamedTuple('Leader', [('term', Optional[int]), ('label', str), ('address', str), ('age', Optional[float]),
                               ('remaining', Optional[float])])


def _record(one: Any) -> Record:
    return Record(text_of(one.key), ctypes.string_at(one.value, one.value_len), one.token, one.number,
                  one.written_ms / 1000, one.until_ms / 1000 if one.until_ms else None)


def _leader(one: Any) -> Leader:
    age, remaining = (ms / 1000 if ms >= 0 else None for ms in (one.age_ms, one.remaining_ms))
    return Leader(one.term or None, text_of(one.label), text_of(one.address), age, remaining)


def _bytes(text: str, what: str) -> bytes:
    """For a char *, which ends at a NUL: a name with one must not become another name."""
    if re.search('[\0\ud800-\udfff]', text):
        raise Invalid(f'{what} is valid text without control characters')
    return text.encode()


def _ms(seconds: float, what: str) -> int:
    if not 0 <= seconds < 2 ** 40:  # not NaN either
        raise Invalid(f'{what} is a number of seconds, not {seconds!r}')
    return math.ceil(seconds * 1000)


def _ttl_ms(seconds: float | None) -> int:
    return 0 if seconds is None else min(max(1, _ms(seconds, 'a ttl')), 2 ** 32 - 1)


def _wait_ms(seconds: float) -> int:
    return -1 if seconds == math.inf else _ms(seconds, 'a wait')


# The fence of a table, as `holdfast fence sql` sets it up, through the drivers of three databases.
# Each: enter, enter for a key, leave.
_POSTGRES = ('CALL holdfast_fence.enter(%s, %s)', 'CALL holdfast_fence.enter(%s, %s, %s)', None)
_SQLITE = ('INSERT INTO holdfast_enter (resource, token) VALUES (%s, %s)',
           'INSERT INTO holdfast_enter (resource, key, token) VALUES (%s, %s, %s)',
           'DELETE FROM holdfast_entered')
_MARIADB = ('CALL holdfast_enter(%s, %s)', 'CALL holdfast_enter_key(%s, %s, %s)', 'CALL holdfast_leave()')
_BY_MODULE = {'psycopg': _POSTGRES, 'psycopg2': _POSTGRES, 'sqlite3': _SQLITE, 'pymysql': _MARIADB,
              'MySQLdb': _MARIADB, 'mariadb': _MARIADB}


def _driver(cursor: Any) -> tuple[tuple[str, str, str | None], str]:
    """The statements, and how the driver writes a parameter. A cursor of the user's own class counts as
    the one it is made from."""
    for kind in type(cursor).__mro__:
        module = kind.__module__.partition('.')[0]
        if module in _BY_MODULE:
            style = getattr(sys.modules.get(module), 'paramstyle', 'format')
            return _BY_MODULE[module], '?' if style == 'qmark' else '%s'
    raise Invalid(f'enter knows cursors of {", ".join(_BY_MODULE)}, not {type(cursor).__module__}')


def _enter(cursor: Any, resource: str, key: Any, token: int) -> None:
    statements, mark = _driver(cursor)
    parameters = (resource, token) if key is None else (resource, key, token)
    try:
        cursor.execute(statements[key is not None].replace('%s', mark), parameters)
    except Exception as error:
        state = getattr(error, 'sqlstate', None) or getattr(error, 'pgcode', None)
        if state == 'ZHF01' or re.search(r'holdfast stale|token \d+ is stale', str(error)):
            raise Stale(str(error)) from error
        raise


def _leave(cursor: Any) -> None:
    if (statement := _driver(cursor)[0][2]) is not None:
        cursor.execute(statement)


class Lease:
    """A held lock. Leaving its scope, or release(), gives it back; so does the garbage collector, with a
    ResourceWarning."""

    __slots__ = ('_store', '_hold')
    __del__ = property(attrgetter('_hold.end'))  # what this gets is called

    def __init__(self, store: Store, hold: Hold) -> None:
        self._store, self._hold = store, hold
        hold.over, hold.end = False, hold.drop

    def __repr__(self) -> str:
        return f'<holdfast.Lease {self.name!r} token={self.token}{" (released)" if self._hold.over else ""}>'

    @property
    def name(self) -> str:
        return self._hold.name

    @property
    def token(self) -> int:
        """The fencing token: a 64-bit integer that only ever rises."""
        return self._hold.struct.token

    @property
    def remaining(self) -> float:
        """Seconds of validity left; 0 once it is lost or released."""
        with contextlib.suppress(Invalid):
            return max(0, self._hold.call(lib.hf_lease_remaining_ms)) / 1000
        return 0.0

    @property
    def loss(self) -> str | None:
        """None while it is held, else one of REASONS."""
        return (None, *REASONS[1:])[self._hold.call(lib.hf_lease_loss)]

    def fileno(self) -> int:
        """A descriptor that becomes and stays readable when the lease is lost, for select and its kin;
        it belongs to the lease."""
        return self._hold.call(lib.hf_lease_fd)

    def check(self) -> None:
        """Raises Lost once nothing remains: the line to put before a write. Asks no server."""
        while self._hold.call(lib.hf_lease_remaining_ms) <= 0:
            if self._hold.call(lib.hf_lease_loss):
                self.renew()  # of what is lost, it only says why
            time.sleep(0.001)  # less than a millisecond is left

    def renew(self, ttl: float | None = None) -> None:
        """Extends the lease now; the keeper does so by itself."""
        self._hold.ask(lib.hf_renew, _ttl_ms(ttl))

    def put(self, key: str, value: bytes | str, keep: float | None = None) -> None:
        """Writes a record of this lock, kept for that many seconds (None: for ever)."""
        data = value.encode() if isinstance(value, str) else bytes(value)
        self._hold.ask(lib.hf_record_put, _bytes(key, 'a key'), data, len(data), _ms(keep or 0, 'keep'))

    def enter(self, cursor: Any, resource: str, key: Any = None) -> None:
        """Shows the token to the fence of a table, first in a transaction: psycopg, sqlite3, MariaDB.
        Raises Stale if a later holder was there."""
        self.check()
        _enter(cursor, resource, key, self.token)

    def leave(self, cursor: Any) -> None:
        """The counterpart, last in the transaction: SQLite needs it; a pooled MariaDB connection too."""
        _leave(cursor)

    def release(self) -> None:
        """Gives the lock back. Raises Lost if it was not held to the end; doing it again does nothing."""
        hold = self._hold
        hold.over = True
        if hold.inside or hold.watched:
            hold.leave()
        # The library takes the lease out and ends it in one step, which neither Ctrl-C nor another thread can
        # divide: it is never freed twice, and never forgotten.
        status = _give(hold.ref)
        hold.end = hold.back
        if status:
            raise failure(status, hold.struct.err, hold.struct.loss)

    async def release_async(self) -> None:
        await pause_async(self.release)

    async def lost(self) -> str | None:
        """Returns the reason when the lease is lost; None if it was released."""
        loop, told, fd = asyncio.get_running_loop(), asyncio.Event(), self._hold.call(self._hold.watch)
        loop.add_reader(fd, told.set)
        try:
            await told.wait()
        finally:
            loop.remove_reader(fd)
            os.close(fd)
        return None if self._hold.over else self.loss


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

    release_async = Lease.release_async

    async def lost(self) -> str | None:
        """As Lease.lost(), for the first that is lost or released."""
        tasks = [asyncio.ensure_future(lease.lost()) for lease in self]
        try:
            return await next(iter(asyncio.as_completed(tasks)))
        finally:
            for task in tasks:
                task.cancel()


_Held = TypeVar('_Held', Lease, Leases)


class _Wanted:
    """What is asked for, as the library wants it: made once for many calls."""

    def __init__(self, kind: str, ttl: float | None, wait: float, label: str | None, keep: bool, *names: str,
                 spread: bool = False, address: str | None = None) -> None:
        if not names:
            raise Invalid('no name of a lock')
        self.kind, self.names = kind, [_bytes(name, 'a lock name') for name in names]
        self.take = lib.hf_lock_acquire_all if kind == 'all' else lib.hf_lock_acquire_any
        self.address = None if address is None else _bytes(address, 'an address')
        self.options = AcquireOptions(ctypes.sizeof(AcquireOptions), _ttl_ms(ttl), _wait_ms(wait),
                                      None if label is None else _bytes(label, 'a label'), 0, not keep, spread=spread)

    def call(self, store: Any, leases: list[Lease]) -> int:
        """As long as this is under way, the leases are not collected."""
        structs, told, one = [lease._hold.struct for lease in leases], self.address, leases[0]._hold.struct
        status = self.take(store, (ctypes.c_void_p * len(leases))(*map(ctypes.addressof, structs)), len(leases))
        return status or told is not None and lib.hf_record_put(one.lease, b'leader', told, len(told), 0, one.err)


class Lock(Generic[_Held]):
    """What `with` and `async with` take; acquire() gives the lease itself. One at a time: whoever needs two
    asks the store twice."""

    __slots__ = ('_store', '_wanted', '_lease')

    def __init__(self, store: Store, wanted: _Wanted) -> None:
        self._store, self._wanted, self._lease = store, wanted, None  # which it is entered with

    def acquire(self) -> _Held:
        """Waits as long as it was told to. Raises Busy, and whatever else the library answers."""
        wanted, core = self._wanted, self._store._core
        if wanted.kind != 'one':
            with core.waiting(wanted.options) as (cancel, options):
                leases, call = self._begin(options)
                return self._granted(pause(call, cancel) if options.wait_ms else call(), leases)
        hold = core.place()
        if hold.served is not wanted:
            hold.serve(wanted, wanted.names[0], wanted.options)
        lease: Any = Lease(self._store, hold)
        status = core.call(_take, hold.ref)
        return self._granted(status, [lease]) if status else lease

    async def acquire_async(self) -> _Held:
        """The same for asyncio; a task that is cancelled leaves the queue."""
        with self._store._core.waiting(self._wanted.options) as (cancel, options):
            leases, call = self._begin(options)
            return self._granted(await pause_async(call, cancel), leases)

    def _begin(self, options: Any) -> tuple[list[Lease], Callable[[], int]]:
        core, wanted = self._store._core, self._wanted
        leases = Leases(Lease(self._store, core.place().serve(None, name, options)) for name in wanted.names)
        return leases, partial(core.call, wanted.call, leases)

    def _granted(self, status: int, leases: list[Lease]) -> Any:
        err = leases[0]._hold.struct.err
        error = failure(status, err) if status else None
        for lease in leases:
            if error or not lease._hold.handle:  # of any() one is held, and none is if the address was refused
                with contextlib.suppress(HoldfastError):
                    lease.release()
        if error:
            raise error
        warn(err)
        return leases if self._wanted.kind == 'all' else next(lease for lease in leases if not lease._hold.over)

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
        self._core = core = Core()
        name = _bytes(url or '', 'a URL')
        with core.waiting(OpenOptions(ctypes.sizeof(OpenOptions), _wait_ms(wait))) as (cancel, options):
            core.ask(lambda ptr, err: pause(lambda: lib.hf_open_waiting(name, options, ptr, err), cancel))
        self.url = core.url = text_of(lib.hf_store_url(core.handle))  #: without its password
        core.about = f'store {self.url} is closed'
        self._wanted = lru_cache(256)(_Wanted)
        #: ends the waits in this store, releases what is held, closes it; once
        self.close = weakref.finalize(self, core.shut)

    def __repr__(self) -> str:
        return f'<holdfast.Store {self.url!r}{" (closed)" if self._core.over else ""}>'

    def lock(self, name: str, *, ttl: float | None = None, wait: float = 0, label: str | None = None,
             keep: bool = True) -> Lock[Lease]:
        """A lock to be taken: `with store.lock('nightly', ttl=30, wait=10) as lease`. wait is 0 for
        one try, math.inf for no limit. keep=False: nobody renews it but you."""
        return Lock(self, self._wanted('any' if wait else 'one', ttl, wait, label, keep, name))

    def any(self, names: Iterable[str], *, ttl: float | None = None, wait: float = 0, label: str | None = None,
            keep: bool = True, spread: bool = False) -> Lock[Lease]:
        """One of several locks, the first that is free: the lease's name says which. It waits for all of them at
        once. spread: it begins with a random one."""
        return Lock(self, _Wanted('any', ttl, wait, label, keep, *names, spread=spread))

    def all(self, names: Iterable[str], *, ttl: float | None = None, wait: float = 0, label: str | None = None,
            keep: bool = True) -> Lock[Leases]:
        """Several locks, all or nothing, in one order for everybody: no two callers wait for each other."""
        return Lock(self, _Wanted('all', ttl, wait, label, keep, *names))

    def elect(self, name: str, *, address: str | None = None, ttl: float | None = None,
              wait: float = math.inf, label: str | None = None) -> Lock[Lease]:
        """Stands for one term as leader: the lease's token is the term. The address is told to those who
        ask leader()."""
        return Lock(self, _Wanted('any', ttl, wait, label, True, name, address=address))

    def leader(self, name: str) -> Leader | None:
        """Who leads; None if nobody does."""
        return next(self._each(lib.hf_leader, LEADER_FN, _leader, _bytes(name, 'a lock name')), None)

    def get(self, name: str, key: str) -> Record | None:
        """The record of that lock, or None."""
        return next((one for one in self.records(name, key) if one.key == key), None)

    def records(self, name: str, prefix: str = '') -> list[Record]:
        """The records of that lock whose keys start with prefix."""
        names = [_bytes(name, 'a lock name'), _bytes(prefix, 'a prefix')]
        return [*self._each(lib.hf_record_list, RECORD_FN, _record, *names)]

    def break_(self, name: str, token: int, *, reason: str | None = None, now: bool = False) -> None:
        """Revokes the hold with that token: it is no longer renewed, and its holder hears of it. now ends it at
        once, and only a fence keeps the late one out. Raises Lost if it is not the present one."""
        options = BreakOptions(ctypes.sizeof(BreakOptions), None, reason and _bytes(reason, 'a reason'), now)
        self._core.ask(lib.hf_break, _bytes(name, 'a lock name'), token, options, None)

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _each(self, function: Callable[..., int], kind: Any, of: Callable[[Any], Any], *arguments: Any) -> Iterator:
        found: list[Any] = []
        self._core.ask(function, *arguments, kind(lambda one, _: found.append(of(one.contents)) is None), None)
        return iter(found)


open = Store
