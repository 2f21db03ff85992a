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
import math
import os
import re
import select
import threading
import time
import warnings
import weakref
from _thread import allocate_lock, get_ident, start_new_thread
from concurrent.futures import Future
from ctypes import addressof, byref, c_void_p, sizeof, string_at
from functools import lru_cache, partial
from operator import attrgetter, is_, methodcaller
from typing import Any, Callable, Generic, Iterable, Iterator, List, NamedTuple, Optional, TypeVar

from ._library import (FOUND_FN, AcquireOptions, BreakOptions, Error, HoldStruct, LeaderStruct, OnceOptions, OnceRecord,
                       OpenOptions, RecordStruct, lib, libc)

__all__ = ['Busy', 'Cancelled', 'Corrupt', 'Denied', 'HoldfastError', 'Invalid', 'Job', 'Leader', 'Lease', 'Leases',
           'Lock', 'Lost', 'NoMemory', 'Quarantine', 'REASONS', 'Record', 'Stale', 'Store', 'StoreWarning', 'Unknown',
           'Unreachable', 'Unsupported', 'open', 'version']

version: str = lib.hf_version().decode()  #: of the library that is loaded
_take, _give = lib.hf_lock_acquire, lib.hf_lock_release
_SUCCESS, _FAILURE, _CUT_OFF, _NOT_STARTED = range(1, 5)  # how a turn ends

# The words of enum hf_loss, in its order.
REASONS = ('none', 'expired', 'taken', 'broken', 'unreachable', 'forgotten', 'closed')


def text_of(data: bytes | None) -> str:
    return (data or b'').decode('utf-8', 'replace')


class HoldfastError(Exception):
    """What every error of this module is. str(error) is what the library said."""


class Busy(HoldfastError):
    """Another holds the lock, and did until the wait was over; the text says who."""


class Lost(HoldfastError):
    """The lock was held and no longer is; reason is one of REASONS, or None if only the release
    found out."""

    reason: str | None = None


class Stale(HoldfastError):
    """A fence has admitted a higher token: a later holder has written."""


class Cancelled(HoldfastError):
    """The store was closed while this call was waiting."""


class Unknown(HoldfastError):
    """No answer came: it may have taken effect."""


class Unreachable(HoldfastError):
    """The store cannot be reached."""


class Quarantine(HoldfastError):
    """The store is new and grants nothing for retry_after seconds."""

    retry_after = 0.0


class Denied(HoldfastError):
    """Permission was refused."""


class Invalid(HoldfastError, ValueError):
    """A bad argument, a closed store, a forked child."""


class Unsupported(HoldfastError):
    """This kind of store cannot do that."""


class Corrupt(HoldfastError):
    """The store's data is damaged; the text says how to repair it."""


class NoMemory(HoldfastError, MemoryError):
    """Out of memory or descriptors."""


class StoreWarning(UserWarning):
    """What the library warns of although the call succeeded."""


_BY_STATUS = (HoldfastError, Busy, Lost, Stale, Cancelled, Unknown, Unreachable, Quarantine, Denied, Invalid,
              Unsupported, Corrupt, NoMemory)


def failure(status: int, err: Error, loss: int = 0) -> HoldfastError:
    """The exception for a status that is not HF_OK."""
    kind = _BY_STATUS[status] if status < len(_BY_STATUS) else HoldfastError
    error = kind(err.text.decode('utf-8', 'replace'))
    if isinstance(error, Lost) and 0 < loss < len(REASONS):
        error.reason = REASONS[loss]
    if isinstance(error, Quarantine):
        error.retry_after = err.retry_after_ms / 1000
    return error


_ONE = b'\1\0\0\0\0\0\0\0'  # what makes an eventfd readable


def warn(err: Error) -> None:
    if err.text:
        warnings.warn(text_of(err.text), StoreWarning, stacklevel=4)


class Cancel:
    """A descriptor that ends a wait once set() was called; closed when nobody refers to it."""

    def __init__(self) -> None:
        # os.eventfd came with Python 3.10. To the library 0 means none: whoever closed stdin has one there now.
        fd = libc.eventfd(0, os.O_CLOEXEC | os.O_NONBLOCK) or libc.eventfd(0, os.O_CLOEXEC | os.O_NONBLOCK)
        if fd < 0:
            raise NoMemory('no descriptor can be had to cancel a wait by')
        self.fd, self.owner = fd, select.epoll.fromfd(fd)  # which closes it when it is collected, without a word
        self.set = partial(os.write, fd, _ONE)


class Handle:
    """Who is inside a call is noted, so that the handle is ended when no other thread is. Sets are changed in
    one step: there is no lock, which a fork could freeze or Ctrl-C leave locked."""

    __slots__ = ()
    # Each has: handle, as the library knows it; inside; over; about, what it is called once it is over; pid.

    def call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        me = get_ident()
        try:
            self.inside.add(me)
            if self.over:
                raise Invalid(self.about)
            return function(self.handle, *arguments)
        finally:
            self.inside.discard(me)

    def ask(self, function: Callable[..., int], *arguments: Any, loss: int = 0) -> None:
        err = Error()
        if status := self.call(function, *arguments, byref(err)):
            raise failure(status, err, self.call(lib.hf_lease_loss) if isinstance(self, Hold) and status == 2 else loss)
        warn(err)

    def empty(self, hurry: Callable[[], object] = bool) -> None:
        """Waits until nobody is inside; in a forked child, nobody is. What Ctrl-C kept from leaving is not:
        no call is longer than the limit."""
        self.over = True
        limit, me = time.monotonic() + 20, {get_ident()}
        while self.inside - me and os.getpid() == self.pid and time.monotonic() < limit:
            hurry()
            time.sleep(0.001)


class Core(Handle):
    """What is left of a store when nobody refers to that any more: enough to close it."""

    def __init__(self) -> None:
        self.over, self.pid, self.inside, self.handle = False, os.getpid(), set(), c_void_p()
        self.once = iter((self.handle,))  # whoever closes it draws it, in one step
        self.cancels: set[weakref.ref[Cancel]] = set()
        self.pool: list[Hold] = []  # that served, and will serve again
        self.start: Callable[..., object] = start_new_thread

    def place(self) -> Hold:
        try:
            return self.pool.pop()
        except IndexError:
            return Hold(self)

    def shut(self) -> None:
        self.start = is_  # nothing: when the interpreter ends, no thread begins any more
        self.empty(lambda: [cancel.set() for known in self.cancels.copy() if (cancel := known())])
        [*map(lib.hf_close, self.once)]

    def cancellable(self, options: Any) -> tuple[Cancel, Any]:
        """A copy of the options for a wait that ends by the cancel, or with this store: as long as somebody refers to
        that cancel."""
        cancel, copy = Cancel(), type(options).from_buffer_copy(options)
        copy.cancel_fd, copy.original = cancel.fd, options  # whose texts it points to
        self.cancels.add(weakref.ref(cancel, self.cancels.discard))
        return cancel, copy


class Hold(Handle):
    """The place for a lease; the library puts it there, and takes it out again in one step. Serves one Lease
    after the other: what each needs is made here, once."""

    __slots__ = ('core', 'pid', 'inside', 'over', 'watched', 'served', 'struct', 'ref', 'drop', 'end', 'back')
    handle = property(attrgetter('struct.lease'))
    about = property(lambda self: f'lock "{self.name}" in store {self.core.url}: this lease was released')
    name = property(lambda self: text_of(self.struct.name))

    def __init__(self, core: Core) -> None:
        self.core, self.pid, self.inside, self.over, self.watched = core, core.pid, set(), True, -1
        self.struct = struct = HoldStruct(sizeof(HoldStruct))
        self.ref, self.served = byref(struct), None  # served: owns name and options, and keeps them alive
        # What happens when its Lease is collected. Of C all through: no code of Python runs in between, which
        # Ctrl-C could end. If it was never released a thread does that, which may take long.
        self.drop = partial(methodcaller('start', _found, (self,)), core)
        self.end: Callable[[], object] = int
        self.back = partial(core.pool.append, self)

    def serve(self, served: Any, name: bytes, options: Any) -> Hold:
        if self.served is not served:
            self.served, self.struct.name, self.struct.options = served, name, addressof(options)
        return self

    def watch(self, lease: int) -> int:
        """A duplicate of the descriptor of loss, which becomes readable at the release, too."""
        own, self.watched = os.dup(fd := lib.hf_lease_fd(lease)), fd
        return own

    def leave(self) -> None:
        """Waits until nobody else uses the lease, and wakes who watches it."""
        self.empty()
        self.inside.clear()  # of whom Ctrl-C kept there
        if os.getpid() == self.pid and self.watched >= 0:  # a forked child has the descriptor of its parent
            os.write(self.watched, _ONE)
        self.watched = -1


def _found(hold: Hold) -> None:
    if hold.handle:
        lib.hf_lock_release(hold.ref)
        warnings.warn(f'the lease of lock {hold.name!r} was never released', ResourceWarning)


def _thread(call: Callable[[], Any], cancel: Any, told: Callable[[], object] = bool) -> tuple[Future, Any]:
    """Its result; and an iterator, whose first step runs call on a thread of its own, and told after it. As long as
    that takes the cancel is kept."""
    def run(_: Any = cancel) -> None:
        try:
            result.set_result(call())
        except BaseException as error:
            result.set_exception(error)
        told()

    result: Future = Future()
    return result, map(start_new_thread, (run,), ((),))


def pause(call: Callable[[], Any], cancel: Any = threading.Event(), undo: Callable[[], Any] = bool) -> Any:
    """Runs call, which ends soon after cancel.set(). Signals are handled meanwhile, which Python does in
    the main thread only, and not while that is inside the library. A handler that raises, as Ctrl-C's
    does, ends the wait; any other leaves it alone, and with it the place in the queue. What the call was granted in
    that moment is undone: whoever keeps the error would keep it, too."""
    if threading.current_thread() is not threading.main_thread():
        return call()
    done, begun, pid = allocate_lock(), [], os.getpid()
    done.acquire()
    result, begin = _thread(call, cancel, done.release)
    try:
        begun.extend(begin)  # in one step: a thread that Ctrl-C kept from us would use what we free
        done.acquire()
        return result.result()
    except BaseException:
        while begun and os.getpid() == pid and not result.done():  # a forked child has no such thread
            cancel.set()
            with contextlib.suppress(KeyboardInterrupt):  # once more is no sooner
                done.acquire(timeout=1)
        undo()
        raise


async def pause_async(call: Callable[[], Any], cancel: Any = threading.Event(), undo: Callable[[], Any] = bool) -> Any:
    """The same for asyncio. A task that is cancelled leaves when the call has ended."""
    result, begin = _thread(call, cancel)
    ended, cancelled = asyncio.wrap_future(result), None
    next(begin)
    while not ended.done():
        try:
            await asyncio.wait([ended])  # which leaves it alone when the task is cancelled
        except asyncio.CancelledError as error:
            cancelled = error
            cancel.set()
    if cancelled is not None:
        await pause_async(undo)
        raise cancelled from ended.exception()
    return ended.result()


#: What a holder left behind beside its lock; times since 1970, by the store's clock.
Record = NamedTuple('Record', [('key', str), ('value', bytes), ('token', int), ('number', int), ('written', float),
                               ('until', Optional[float])])
#: Who leads, as a reader saw it a moment ago.
Leader = NamedTuple('Leader', [('term', Optional[int]), ('label', str), ('address', str), ('age', Optional[float]),
                               ('remaining', Optional[float])])


def _record(one: Any) -> Record:
    return Record(text_of(one.key), string_at(one.value, one.value_len), one.token, one.number,
                  one.written_ms / 1000, one.until_ms / 1000 if one.until_ms else None)


def _leader(one: Any) -> Leader:
    age, remaining = (ms / 1000 if ms >= 0 else None for ms in (one.age_ms, one.remaining_ms))
    return Leader(one.term or None, text_of(one.label), text_of(one.address), age, remaining)


def _bytes(text: str | None, what: str) -> bytes | None:
    """For a char *, which ends at a NUL: a name with one must not become another name."""
    if re.search('[\0\ud800-\udfff]', text or ''):
        raise Invalid(f'{what} is valid text without control characters')
    return None if text is None else text.encode()


def _ms(seconds: float, what: str) -> int:
    if not 0 <= seconds < 2 ** 40:  # not NaN either
        raise Invalid(f'{what} is a number of seconds, not {seconds!r}')
    return math.ceil(seconds * 1000)


def _ttl_ms(seconds: float | None) -> int:
    return 0 if not seconds else min(max(1, _ms(seconds, 'a ttl')), 2 ** 32 - 1)


def _wait_ms(seconds: float) -> int:
    return -1 if seconds == math.inf else _ms(seconds, 'a wait')


# The fence of a table, as `holdfast fence sql` sets it up, through the drivers of three databases.
# Each: enter, enter for a key, leave; with parameters as all versions of these drivers take them.
_POSTGRES = ('CALL holdfast_fence.enter(%s, %s)', 'CALL holdfast_fence.enter(%s, %s, %s)', '')
_SQLITE = ('INSERT INTO holdfast_enter (resource, token) VALUES (?, ?)',
           'INSERT INTO holdfast_enter (resource, key, token) VALUES (?, ?, ?)',
           'DELETE FROM holdfast_entered')
_MARIADB = ('CALL holdfast_enter(%s, %s)', 'CALL holdfast_enter_key(%s, %s, %s)', 'CALL holdfast_leave()')
_BY_MODULE = {'psycopg': _POSTGRES, 'psycopg2': _POSTGRES, 'sqlite3': _SQLITE, 'pymysql': _MARIADB,
              'MySQLdb': _MARIADB, 'mariadb': _MARIADB}


def _statements(cursor: Any) -> tuple[str, str, str]:
    """A cursor of the user's own class counts as the one it is made from."""
    for kind in type(cursor).__mro__:
        if statements := _BY_MODULE.get(kind.__module__.partition('.')[0]):
            return statements
    raise Invalid(f'enter knows cursors of {", ".join(_BY_MODULE)}, not {type(cursor).__module__}')


class Lease:
    """A held lock. Leaving its scope, or release(), gives it back; so does the garbage collector, with a
    ResourceWarning."""

    __slots__ = ('_store', '_hold')
    __del__ = property(attrgetter('_hold.end'))  # what this gets is called
    __copy__ = __deepcopy__ = lambda self, *_: self  # two of them would release it twice

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
        """Extends the lease now, by the ttl it has if none is given, or 0; the keeper does so by itself."""
        self._hold.ask(lib.hf_renew, _ttl_ms(ttl))

    def put(self, key: str, value: bytes | str, keep: float | None = None) -> None:
        """Writes a record of this lock, kept for that many seconds (None: for ever)."""
        data = value.encode() if isinstance(value, str) else bytes(memoryview(value))
        self._hold.ask(lib.hf_record_put, _bytes(key, 'a key'), data, len(data), _ms(keep or 0, 'keep'))

    def enter(self, cursor: Any, resource: str, key: Any = None) -> None:
        """Shows the token to the fence of a table, first in a transaction: psycopg, sqlite3, MariaDB.
        Raises Stale if a later holder was there."""
        self.check()
        statement = _statements(cursor)[key is not None]
        try:
            cursor.execute(statement, (resource, self.token) if key is None else (resource, key, self.token))
        except Exception as error:
            if re.search(r'holdfast stale|token \d+ is stale', str(error)):
                raise Stale(str(error)) from error
            raise

    def leave(self, cursor: Any) -> None:
        """The counterpart, last in the transaction: SQLite needs it; a pooled MariaDB connection too."""
        if leave := _statements(cursor)[2]:
            cursor.execute(leave)

    def release(self) -> None:
        """Gives the lock back. Raises Lost if it was not held to the end; doing it again does nothing."""
        hold = self._hold
        hold.over = True
        if hold.inside or hold.watched >= 0:
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

    def _undo(self) -> None:
        with contextlib.suppress(HoldfastError):
            self.release()

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
        self.address = _bytes(address, 'an address')
        self.options = AcquireOptions(sizeof(AcquireOptions), _ttl_ms(ttl), _wait_ms(wait),
                                      _bytes(label, 'a label'), 0, not keep, spread=spread)

    def call(self, store: Any, leases: list[Lease]) -> int:
        """As long as this is under way, the leases are not collected."""
        structs, told, it = [lease._hold.struct for lease in leases], self.address, leases[0]._hold.struct
        status = self.take(store, (c_void_p * len(leases))(*map(addressof, structs)), len(leases))
        return status or told is not None and lib.hf_record_put(it.lease, b'leader', told, len(told), 0, byref(it.err))


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
            leases, call, *cancel = self._begin()
            return self._granted(pause(call, *cancel) if wanted.options.wait_ms else call(), leases)
        hold = core.place().serve(wanted, wanted.names[0], wanted.options)
        lease: Any = Lease(self._store, hold)
        status = core.call(_take, hold.ref)
        return self._granted(status, [lease]) if status else lease

    async def acquire_async(self) -> _Held:
        """The same for asyncio; a task that is cancelled leaves the queue."""
        leases, *call = self._begin()
        return self._granted(await pause_async(*call), leases)

    def _begin(self) -> tuple[Leases, Callable[[], int], Cancel, Callable[[], None]]:
        core, wanted = self._store._core, self._wanted
        cancel, options = core.cancellable(wanted.options)
        leases = Leases(Lease(self._store, core.place().serve(options, name, options)) for name in wanted.names)
        return leases, partial(core.call, wanted.call, leases), cancel, leases._undo

    def _granted(self, status: int, leases: list[Lease]) -> Any:
        err = leases[0]._hold.struct.err
        error = failure(status, err) if status else None
        # Of any() one is held, and none is if the address was refused.
        Leases(lease for lease in leases if error or not lease._hold.handle)._undo()
        if error:
            raise error
        warn(err)
        return leases if self._wanted.kind == 'all' else next(lease for lease in leases if not lease._hold.over)

    def _alone(self, lease: Any = Leases()) -> Any:
        if self._lease:
            lease.release()  # another entered while this one waited
            raise RuntimeError('this lock is entered already; ask the store for another')
        self._lease = lease
        return lease or self

    def __enter__(self) -> _Held:
        return self._alone(self._alone().acquire())

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        lease, self._lease = self._lease, None
        if error is None:
            return lease.release()
        with contextlib.suppress(HoldfastError):  # the body's own error stays first
            lease.release()

    async def __aenter__(self) -> _Held:
        return self._alone(await self._alone().acquire_async())

    async def __aexit__(self, *ending: object) -> None:
        await pause_async(partial(self.__exit__, *ending))


class Job(Lease):
    """What Store.once() is about: its slot; the outcome on record ('done', 'failed', 'too-late', 'held', 'running' or
    ''); by whom; and all of it in a sentence, as text. True while it is ours to do, and the lease of its lock then."""

    def __bool__(self) -> bool:
        return not self._hold.over

    def release(self) -> None:
        """Raises Invalid: the end of the turn gives it back."""
        raise Invalid('the lease of a job ends with its turn')

    def _look(self, once: Any, status: int = 0) -> int:
        hold, record, lease = self._hold, lib.hf_once_on_record(once), lib.hf_once_lease(once)
        known = OnceRecord.from_address(record) if record else OnceRecord()
        self.outcome, self.by = text_of(known.state), text_of(known.by)
        self.slot, self.text = text_of(lib.hf_once_slot(once)), text_of(lib.hf_once_text(once))
        hold.over, hold.struct.lease, hold.struct.token = not lease, lease, lib.hf_lease_token(lease) if lease else 0
        return status


class Store(contextlib.AbstractContextManager):
    """An open store: where locks live. A context manager; close() ends it, and so do the garbage collector
    and the exit of the interpreter. Leases that are still held are released then."""

    def __init__(self, url: str | None = None, *, wait: float = 0) -> None:
        self._core = core = Core()
        name = _bytes(url or '', 'a URL')
        cancel, options = core.cancellable(OpenOptions(sizeof(OpenOptions), _wait_ms(wait)))
        opened = name, byref(options), byref(core.handle)
        core.ask(lambda _, err: pause(partial(lib.hf_open_waiting, *opened, err), cancel))
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

    @contextlib.contextmanager
    def once(self, key: str, *, per: float = 0, at: str | None = None, tz: str | None = None, wait: float = 0,
             retries: int = 0, retry_after: float = 0, start_by: float = 0, slack: float | None = None, keep: float = 0,
             hold_crashed: bool = False, ttl: float | None = None, label: str | None = None) -> Iterator[Job]:
        """Work that is to succeed once, or once per period: `with store.once('report', per=86400, at='03:00') as job`.
        If job, it is ours to do: an exception is on record as a failure then, unless it is no Exception, Ctrl-C for
        instance. Else job.outcome and job.text say what became of it. After a failure the next `with`, on any machine,
        is the next attempt, if there are retries; wait=math.inf waits for that, too. holdfast/once.h says what the
        options mean; slack=0 is none."""
        core, once, name, ending = self._core, c_void_p(), _bytes(key, 'a lock name'), _NOT_STARTED
        job = Job(self, Hold(core))
        job._hold.over, job._hold.struct.name, job._hold.end = True, name, partial(lib.hf_once_close, once)
        per_ms, start_by_ms, keep_ms, after_ms = (_ms(one, 'a time') for one in (per, start_by, keep, retry_after))
        cancel, options = core.cancellable(OnceOptions(
            sizeof(OnceOptions), per_ms, _bytes(at, 'at'), _bytes(tz, 'tz'),
            -1 if slack == 0 else _ms(slack or 0, 'slack'), start_by_ms, keep_ms, after_ms, retries, hold_crashed,
            _ttl_ms(ttl), 0, _wait_ms(wait), _bytes(label, 'a label')))
        core.ask(lib.hf_once_open, name, byref(options), byref(once))
        try:
            core.ask(lambda _, err: pause(lambda: job._look(once, lib.hf_once_begin(once, err)), cancel))
            ending = _CUT_OFF
            yield job
            ending = _SUCCESS
        except Exception:
            ending = _FAILURE
            raise
        finally:
            if job:  # which it may have become in the moment of Ctrl-C
                loss = lib.hf_lease_loss(job._hold.handle)
                job._hold.leave()
                with contextlib.suppress(HoldfastError if ending != _SUCCESS else ()):
                    core.ask(lambda _, err: job._look(once, lib.hf_once_end(once, ending, 1, None, 0, err)), loss=loss)

    def leader(self, name: str) -> Leader | None:
        """Who leads; None if nobody does."""
        return next(iter(self._each(lib.hf_leader, LeaderStruct, _leader, _bytes(name, 'a lock name'))), None)

    def get(self, name: str, key: str) -> Record | None:
        """The record of that lock, or None."""
        return next((one for one in self.records(name, key) if one.key == key), None)

    def records(self, name: str, prefix: str = '') -> list[Record]:
        """The records of that lock whose keys start with prefix."""
        return self._each(lib.hf_record_list, RecordStruct, _record, _bytes(name, 'a lock name'),
                          _bytes(prefix, 'a prefix'))

    def break_(self, name: str, token: int, *, reason: str | None = None, now: bool = False) -> None:
        """Revokes the hold with that token: it is no longer renewed, and its holder hears of it. now ends it at
        once, and only a fence keeps the late one out. Raises Lost if it is not the present one."""
        options = BreakOptions(sizeof(BreakOptions), None, _bytes(reason, 'a reason'), now)
        self._core.ask(lib.hf_break, _bytes(name, 'a lock name'), token, byref(options), None)

    def __exit__(self, *_: object) -> None:
        self.close()

    def _each(self, function: Callable[..., int], kind: Any, of: Callable[[Any], Any], *arguments: Any) -> list:
        found: list[Any] = []
        told = FOUND_FN(lambda at, _: not found.append(of(kind.from_address(at))))
        # Not in the main thread, where Ctrl-C would end told, and what was found until then be all.
        self._core.ask(lambda *all_of_it: pause(partial(function, *all_of_it)), *arguments, told, None)
        return found


open = Store
