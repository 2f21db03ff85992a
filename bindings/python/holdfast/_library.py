"""The C library as ctypes sees it: its structs, its functions, the one check at load; and its errors as exceptions,
one per status, each with the library's own text."""
from __future__ import annotations

import contextlib
import ctypes
import os
from ctypes import (CFUNCTYPE, POINTER, Structure, c_bool, c_char, c_char_p, c_int, c_int64, c_size_t, c_uint32,
                    c_uint64, c_void_p)
from typing import Any

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
    'hf_hold_acquire': (c_int, None),  # which is quickest; what they are called with is ready to be passed
    'hf_hold_release': (c_int, None),
    'hf_hold_acquire_any': (c_int, [c_void_p, c_void_p, c_size_t]),
    'hf_hold_acquire_all': (c_int, [c_void_p, c_void_p, c_size_t]),
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
    """The lock was held and is not any more; reason is one of REASONS, or None if only the release
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
