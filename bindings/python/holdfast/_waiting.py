"""Calls that block: on a thread of their own, so that Ctrl-C and asyncio can end them."""
from __future__ import annotations

import asyncio
import contextlib
import ctypes
import os
import select
import threading
from concurrent.futures import Future
from _thread import allocate_lock, start_new_thread
from typing import Any, Callable

_libc = ctypes.CDLL(None, use_errno=True)
ONE = b'\1\0\0\0\0\0\0\0'  # what makes an eventfd readable


class Cancel:
    """A descriptor that ends a wait once set() was called; closed when nobody refers to it."""

    def __init__(self) -> None:
        # os.eventfd came with Python 3.10. To the library 0 means none: whoever closed stdin has one there now.
        fd = _libc.eventfd(0, os.O_CLOEXEC | os.O_NONBLOCK) or _libc.eventfd(0, os.O_CLOEXEC | os.O_NONBLOCK)
        if fd < 0:
            raise OSError(ctypes.get_errno(), 'no descriptor to cancel a wait by')
        self.fd, self.owner = fd, select.epoll.fromfd(fd)  # which closes it when it is collected, without a word

    def set(self) -> None:
        os.write(self.fd, ONE)


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
    loop = asyncio.get_running_loop()
    ended = loop.create_future()

    def told() -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(ended.set_result, None)

    result = _begin(call, told)
    try:
        await asyncio.shield(ended)
    except asyncio.CancelledError:
        if cancel is not None:
            cancel.set()
        while not result.done():
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.shield(ended)
        raise
    return result.result()
