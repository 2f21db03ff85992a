"""Calls that block: on a thread of their own, so that Ctrl-C and asyncio can end them."""
from __future__ import annotations

import _thread
import asyncio
import ctypes
import fcntl
import os
import threading
from typing import Callable

_libc = ctypes.CDLL(None, use_errno=True)
_EFD_FLAGS = os.O_CLOEXEC | os.O_NONBLOCK


class Cancel:
    """A descriptor that ends a wait once set() was called; closed when nobody refers to it."""

    def __init__(self) -> None:
        self.fd = _libc.eventfd(0, _EFD_FLAGS)  # os.eventfd came with Python 3.10
        if self.fd < 0:
            raise OSError(ctypes.get_errno(), 'no descriptor to cancel a wait by')
        if self.fd == 0:  # whoever closed stdin; to the library, 0 means none
            self.fd = fcntl.fcntl(0, fcntl.F_DUPFD_CLOEXEC, 3)
            os.close(0)

    def set(self) -> None:
        os.write(self.fd, b'\1\0\0\0\0\0\0\0')

    def __del__(self) -> None:
        if self.fd > 0:
            os.close(self.fd)


def _begin(call: Callable[[], int], told: Callable[[], None]) -> list:
    """Runs call on a new thread, and told after it; the list gets its result."""
    result: list = []

    def run() -> None:
        try:
            result.append(call())
        except BaseException as error:
            result.append(error)
            raise
        finally:
            told()

    _thread.start_new_thread(run, ())
    return result


def wait(call: Callable[[], int], cancel: Cancel) -> int:
    """Runs call, which ends soon after cancel.set(). Signals are handled meanwhile, which Python does in
    the main thread only, and not while that is inside the library. A handler that raises, as Ctrl-C's
    does, ends the wait; any other leaves it alone, and with it the place in the queue."""
    if threading.current_thread() is not threading.main_thread():
        return call()
    done = _thread.allocate_lock()
    done.acquire()
    result = _begin(call, done.release)
    try:
        done.acquire()
    except BaseException:
        cancel.set()
        while not result:  # whoever presses it twice is as soon out as with once
            try:
                done.acquire(timeout=1)
            except KeyboardInterrupt:
                pass
        raise
    return result[0]


async def wait_async(call: Callable[[], int], cancel: Cancel | None = None,
                     unwanted: Callable[[], object] | None = None) -> int:
    """The same for asyncio. A task that is cancelled leaves when the call has ended; with no cancel, the
    call is let finish. unwanted is called, on a thread, for a result that nobody is there to hear."""
    loop = asyncio.get_running_loop()
    ended = loop.create_future()

    def finish() -> None:
        if not ended.done():
            ended.set_result(None)

    def told() -> None:
        try:
            loop.call_soon_threadsafe(finish)
        except RuntimeError:  # the loop is closed
            if unwanted is not None:
                unwanted()

    result = _begin(call, told)
    try:
        await asyncio.shield(ended)
    except asyncio.CancelledError:
        if cancel is not None:
            cancel.set()
        while not ended.done():
            try:
                await asyncio.shield(ended)
            except asyncio.CancelledError:
                pass
        if unwanted is not None:
            _thread.start_new_thread(unwanted, ())
        raise
    return result[0]
