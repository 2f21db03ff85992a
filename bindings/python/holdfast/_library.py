"""What stands between libholdfast and the classes of this module: the library as ctypes sees it, its errors as
exceptions, its handles, and its calls that block."""
from __future__ import annotations

import asyncio
import contextlib
import ctypes
import os
import select
import threading
import time
import warnings
from _thread import allocate_lock, get_ident, start_new_thread
from concurrent.futures import Future
from ctypes import (CFUNCTYPE, POINTER, Structure, byref, c_bool, c_char, c_char_p, c_int, c_int64, c_size_t, c_uint32,
                    c_uint64, c_void_p, sizeof)
from functools import partial
from operator import attrgetter, is_, methodcaller
from typing import Any, Callable, Iterator, TypeVar

SONAME = 'libholdfast.so.0'
NEEDS = (0, 2)  # major, and the least minor: what include/holdfast.h was when this was written


def _struct(**fields: Any) -> Any:
    return type('Struct', (Structure,), {'_fields_': [*fields.items()]})


Error = _struct(code=c_int, retry_after_ms=c_int64, text=c_char * 256)
OpenOptions = _struct(size=c_size_t, wait_ms=c_int64, cancel_fd=c_int, on_trouble=c_void_p, data=c_void_p)
AcquireOptions = _struct(
    size=c_size_t, ttl_ms=c_uint32, wait_ms=c_int64, label=c_char_p, cancel_fd=c_int, no_keeper=c_bool, detached=c_bool,
    on_lost=c_void_p, on_renewed=c_void_p, data=c_void_p, on_trouble=c_void_p, spread=c_bool)
HoldStruct = _struct(size=c_size_t, name=c_char_p, options=POINTER(AcquireOptions), lease=c_void_p, token=c_uint64,
                     loss=c_int, err=Error)
BreakOptions = _struct(size=c_size_t, label=c_char_p, reason=c_char_p, now=c_bool)
RecordStruct = _struct(size=c_size_t, key=c_char_p, value=c_void_p, value_len=c_size_t, token=c_uint64,
                       number=c_uint64, written_ms=c_int64, until_ms=c_int64)
LeaderStruct = _struct(size=c_size_t, term=c_uint64, label=c_char_p, address=c_char_p, age_ms=c_int64,
                       remaining_ms=c_int64)

# Called by the thread that asks, before its call returns; never by another.
RECORD_FN = CFUNCTYPE(c_bool, POINTER(RecordStruct), c_void_p)
LEADER_FN = CFUNCTYPE(None, POINTER(LeaderStruct), c_void_p)

_ERR = POINTER(Error)
_FUNCTIONS = {
    'hf_open_waiting': (c_int, [c_char_p, POINTER(OpenOptions), POINTER(c_void_p), _ERR]),
    'hf_close': (None, [c_void_p]),
    'hf_store_url': (c_char_p, [c_void_p]),
    'hf_lock_acquire': (c_int, None),  # which is quickest; what they are called with is ready to be passed
    'hf_lock_release': (c_int, None),
    'hf_lock_acquire_any': (c_int, [c_void_p, c_void_p, c_size_t]),
    'hf_lock_acquire_all': (c_int, [c_void_p, c_void_p, c_size_t]),
    'hf_lease_remaining_ms': (c_int64, [c_void_p]),
    'hf_lease_loss': (c_int, [c_void_p]),
    'hf_lease_fd': (c_int, [c_void_p]),
    'hf_renew': (c_int, [c_void_p, c_uint32, _ERR]),
    'hf_record_put': (c_int, [c_void_p, c_char_p, c_char_p, c_size_t, c_int64, _ERR]),
    'hf_record_list': (c_int, [c_void_p, c_char_p, c_char_p, RECORD_FN, c_void_p, _ERR]),
    'hf_break': (c_int, [c_void_p, c_char_p, c_uint64, POINTER(BreakOptions), c_void_p, _ERR]),
    'hf_leader': (c_int, [c_void_p, c_char_p, LEADER_FN, c_void_p, _ERR]),
}


def _load() -> ctypes.CDLL:
    """$HOLDFAST_LIBRARY, else where the linker looks, else where `make install` puts it."""
    named = os.environ.get('HOLDFAST_LIBRARY')
    try:
        return ctypes.CDLL(named or SONAME)
    except OSError as error:
        with contextlib.suppress(OSError):
            return ctypes.CDLL(named or f'/usr/local/lib/{SONAME}')
        raise ImportError(f'holdfast: {named or SONAME} cannot be loaded ({error}): '
                          'install libholdfast0, or name the file in HOLDFAST_LIBRARY') from error


def _check(library: ctypes.CDLL) -> None:
    """One sentence for a library that does not go with this module, instead of a crash later."""
    library.hf_version.restype = c_char_p
    has = library.hf_version().decode()
    missing = [name for name in _FUNCTIONS if not hasattr(library, name)]
    major, minor = map(int, has.split('.')[:2])
    if missing or major != NEEDS[0] or minor < NEEDS[1]:
        what = f'has no {missing[0]}' if missing else f'is {has}'
        raise ImportError(f'holdfast: this module needs libholdfast {NEEDS[0]}.{NEEDS[1]} or a later one of the same '
                          f'major version, and {library._name} {what}')
    for name, types in _FUNCTIONS.items():
        getattr(library, name).restype, getattr(library, name).argtypes = types


def text_of(data: bytes | None) -> str:
    return (data or b'').decode('utf-8', 'replace')


lib = _load()
_check(lib)

# The words of enum hf_loss, in its order.
REASONS = ('none', 'expired', 'taken', 'broken', 'unreachable', 'forgotten', 'closed')


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


_T = TypeVar('_T')
_libc = ctypes.CDLL(None, use_errno=True)
_ONE = b'\1\0\0\0\0\0\0\0'  # what makes an eventfd readable


def warn(err: Error) -> None:
    if err.text:
        warnings.warn(text_of(err.text), StoreWarning, stacklevel=4)


class Cancel:
    """A descriptor that ends a wait once set() was called; closed when nobody refers to it."""

    def __init__(self) -> None:
        # os.eventfd came with Python 3.10. To the library 0 means none: whoever closed stdin has one there now.
        fd = _libc.eventfd(0, os.O_CLOEXEC | os.O_NONBLOCK) or _libc.eventfd(0, os.O_CLOEXEC | os.O_NONBLOCK)
        if fd < 0:
            raise OSError(ctypes.get_errno(), 'no descriptor to cancel a wait by')
        self.fd, self.owner = fd, select.epoll.fromfd(fd)  # which closes it when it is collected, without a word
        self.set = partial(os.write, fd, _ONE)


class Handle:
    """Who is inside a call is noted, so that the handle is ended when no other thread is. Sets are changed in
    one step: there is no lock, which a fork could freeze or Ctrl-C leave locked."""

    __slots__ = ()
    # Each has: handle, as the library knows it; inside; over; about, what it is called once it is over; pid.

    def call(self, function: Callable[..., _T], *arguments: Any) -> _T:
        me = get_ident()
        try:
            self.inside.add(me)
            if self.over:
                raise Invalid(self.about)
            return function(self.handle, *arguments)
        finally:
            self.inside.discard(me)

    def ask(self, function: Callable[..., int], *arguments: Any) -> None:
        err = Error()
        status = self.call(function, *arguments, err)
        if status:
            raise failure(status, err, self.call(lib.hf_lease_loss) if isinstance(self, Hold) and status == 2 else 0)
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
        self.once = iter((self.handle,))  # who closes it draws it, in one step
        self.cancels: set[Cancel] = set()
        self.pool: list[Hold] = []  # that served, and will serve again
        self.start: Callable[..., object] = start_new_thread

    def place(self) -> Hold:
        try:
            return self.pool.pop()
        except IndexError:
            return Hold(self)

    def shut(self) -> None:
        self.start = is_  # nothing: when the interpreter ends, no thread begins any more
        self.empty(lambda: [cancel.set() for cancel in self.cancels.copy()])
        [*map(lib.hf_close, self.once)]

    @contextlib.contextmanager
    def waiting(self, options: Any) -> Iterator[tuple[Cancel, Any]]:
        """For as long as this store is waited in: its end ends the wait. Gives a copy that can be cancelled."""
        cancel, options = Cancel(), type(options).from_buffer_copy(options)
        options.cancel_fd = cancel.fd
        self.cancels.add(cancel)
        try:
            yield cancel, options
        finally:
            self.cancels.discard(cancel)


class Hold(Handle):
    """The place for a lease; the library puts it there, and takes it out again in one step. Serves one Lease
    after the other: what each needs is made here, once."""

    __slots__ = ('core', 'pid', 'inside', 'over', 'watched', 'served', 'struct', 'ref', 'drop', 'end', 'back')
    handle = property(attrgetter('struct.lease'))
    about = property(lambda self: f'lock "{self.name}" in store {self.core.url}: this lease was released')
    name = property(lambda self: text_of(self.struct.name))

    def __init__(self, core: Core) -> None:
        self.core, self.pid, self.inside, self.over, self.watched = core, core.pid, set(), True, 0
        self.struct = struct = HoldStruct(sizeof(HoldStruct))
        self.ref, self.served = byref(struct), None  # what name and options are of
        # What happens when its Lease is collected. Of C all through: no code of Python runs in between, which
        # Ctrl-C could end. If it was never released a thread does that, which may take long.
        self.drop = partial(methodcaller('start', _found, (self,)), core)
        self.end: Callable[[], object] = int
        self.back = partial(core.pool.append, self)

    def serve(self, served: Any, name: bytes, options: Any) -> Hold:
        self.served, self.struct.name, self.struct.options = served, name, ctypes.pointer(options)
        return self

    def watch(self, lease: int) -> int:
        """A duplicate of the descriptor of loss, which becomes readable at the release, too."""
        self.watched = lib.hf_lease_fd(lease)
        return os.dup(self.watched)

    def leave(self) -> None:
        """Waits until nobody else uses the lease, and wakes who watches it."""
        self.empty()
        self.inside.clear()  # of whom Ctrl-C kept there
        if self.watched:
            os.write(self.watched, _ONE)
            self.watched = 0


def _found(hold: Hold) -> None:
    if hold.handle:
        lib.hf_lock_release(hold.ref)
        warnings.warn(f'the lease of lock {hold.name!r} was never released', ResourceWarning)


def _begin(call: Callable[[], Any], told: Callable[[], None]) -> Future:
    """Runs call on a thread of its own, and told after it."""
    def run() -> None:
        try:
            result.set_result(call())
        except BaseException as error:
            result.set_exception(error)
        told()

    result: Future = Future()
    start_new_thread(run, ())
    return result


def pause(call: Callable[[], Any], cancel: Cancel) -> Any:
    """Runs call, which ends soon after cancel.set(). Signals are handled meanwhile, which Python does in
    the main thread only, and not while that is inside the library. A handler that raises, as Ctrl-C's
    does, ends the wait; any other leaves it alone, and with it the place in the queue."""
    if threading.current_thread() is not threading.main_thread():
        return call()
    done, result = allocate_lock(), None
    done.acquire()
    try:
        result = _begin(call, done.release)
        done.acquire()
    except BaseException:
        cancel.set()
        while result is not None and not result.done():
            with contextlib.suppress(KeyboardInterrupt):  # once more is no sooner
                done.acquire(timeout=1)
        raise
    return result.result()


async def pause_async(call: Callable[[], Any], cancel: Cancel | None = None) -> Any:
    """The same for asyncio. A task that is cancelled leaves when the call has ended; with no cancel, the
    call is let finish. A lease that nobody is there to hear of is collected."""
    def told() -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(ended.set_result, None)

    loop, cancelled = asyncio.get_running_loop(), False
    ended = loop.create_future()
    result = _begin(call, told)
    while not ended.done():
        try:
            await asyncio.shield(ended)
        except asyncio.CancelledError:
            cancelled = True
            if cancel is not None:
                cancel.set()
    if cancelled:
        raise asyncio.CancelledError
    return result.result()
