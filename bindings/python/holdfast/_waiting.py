"""Calls that block: on a thread of their own, so that Ctrl-C and asyncio can end them."""
from __future__ import annotations

import _thread
import asyncio
import contextlib
import ctypes
import fcntl
import os
import select
import threading
from typing import Any, Callable

_libc = ctypes.CDLL(None, use_errno=True)
ONE = b'\1\0\0\0\0\0\0\0'  # what makes an eventfd readable


class Cancel:
    """A descriptor that ends a wait once set() was called; closed when nobody refers to it."""

    def __init__(self) -> None:
        fd = _libc.eventfd(0, os.O_CLOEXEC | os.O_NONBLOCK)  # os.eventfd came with Python 3.10
        if fd == 0:  # whoever closed stdin; to the library, 0 means none
            fd = fcntl.fcntl(0, fcntl.F_DUPFD_CLOEXEC, 3)
            os.close(0)
        if fd < 0:
            raise OSError(ctypes.get_errno(), 'no descriptor to cancel a wait by')
        self.fd, self.owner = fd, select.epoll.fromfd(fd)  # which closes it when it is collected, without a word

    def set(self) -> None:
        os.write(self.fd, ONE)


class _Call:
    """A call on a thread of its own; told is called there, after it."""

    def __init__(self, call: Callable[[], Any], told: Callable[[], None]) -> None:
        self.call, self.told = call, told
        self.ended, self.error = False, None
        _thread.start_new_thread(self.run, ())

    def run(self) -> None:
        try:
            self.value = self.call()
        except BaseException as error:
            self.error = error
        self.ended = True
        self.told()

    def result(self) -> Any:
        if self.error is not None:
            raise self.error
        return self.value


def wait(call: Callable[[], Any], cancel: Cancel) -> Any:
    """Runs call, which ends soon after cancel.set(). Signals are handled meanwhile, which Python does in
    the main thread only, and not while that is inside the library. A handler that raises, as Ctrl-C's
    does, ends the wait; any other leaves it alone, and with it the place in the queue."""
    if threading.current_thread() is not threading.main_thread():
        return call()
    done = _thread.allocate_lock()
    done.acquire()
    other = None
    try:
        other = _Call(call, done.release)
        done.acquire()
    except BaseException:
        cancel.set()
        while other is not None and not other.ended:
            with contextlib.suppress(KeyboardInterrupt):  # once more is no sooner
                done.acquire(timeout=1)
        raise
    return other.result()


async def wait_async(call: Callable[[], Any], cancel: Cancel | None = None) -> Any:
    """The same for asyncio. A task that is cancelled leaves when the call has ended; with no cancel, the
    call is let finish. A lease that nobody is there to hear of is collected."""
    loop = asyncio.get_running_loop()
    ended = loop.create_future()

    def told() -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(ended.set_result, None)

    other = _Call(call, told)
    try:
        await asyncio.shield(ended)
    except asyncio.CancelledError:
        if cancel is not None:
            cancel.set()
        while not other.ended:
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.shield(ended)
        raise
    return other.result()
