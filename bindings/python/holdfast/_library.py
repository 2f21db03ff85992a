"""The C library as ctypes sees it: its structs, its functions, and the one check at load."""
from __future__ import annotations

import ctypes
import os
from ctypes import (CFUNCTYPE, POINTER, Structure, c_bool, c_char, c_char_p, c_int, c_int64, c_size_t, c_uint32,
                    c_uint64, c_void_p)

SONAME = 'libholdfast.so.0'
NEEDS = (0, 2)  # major, and the least minor: what include/holdfast.h was when this was written


class Error(Structure):
    _fields_ = [('code', c_int), ('retry_after_ms', c_int64), ('text', c_char * 256)]


class OpenOptions(Structure):
    _fields_ = [('size', c_size_t), ('wait_ms', c_int64), ('cancel_fd', c_int), ('on_trouble', c_void_p),
                ('data', c_void_p)]


class AcquireOptions(Structure):
    _fields_ = [('size', c_size_t), ('ttl_ms', c_uint32), ('wait_ms', c_int64), ('label', c_char_p),
                ('cancel_fd', c_int), ('no_keeper', c_bool), ('detached', c_bool), ('on_lost', c_void_p),
                ('on_renewed', c_void_p), ('data', c_void_p), ('on_trouble', c_void_p), ('spread', c_bool)]


class BreakOptions(Structure):
    _fields_ = [('size', c_size_t), ('label', c_char_p), ('reason', c_char_p), ('now', c_bool)]


class RecordStruct(Structure):
    _fields_ = [('size', c_size_t), ('key', c_char_p), ('value', c_void_p), ('value_len', c_size_t),
                ('token', c_uint64), ('number', c_uint64), ('written_ms', c_int64), ('until_ms', c_int64)]


class LeaderStruct(Structure):
    _fields_ = [('size', c_size_t), ('term', c_uint64), ('label', c_char_p), ('address', c_char_p),
                ('age_ms', c_int64), ('remaining_ms', c_int64)]


# Called by the thread that asks, before its call returns; never by another.
RECORD_FN = CFUNCTYPE(c_bool, POINTER(RecordStruct), c_void_p)
LEADER_FN = CFUNCTYPE(None, POINTER(LeaderStruct), c_void_p)

_OUT = POINTER(c_void_p)
_NAMES = POINTER(c_char_p)
_ERR = POINTER(Error)
_FUNCTIONS = {
    'hf_open_waiting': (c_int, [c_char_p, POINTER(OpenOptions), _OUT, _ERR]),
    'hf_close': (None, [c_void_p]),
    'hf_store_url': (c_char_p, [c_void_p]),
    'hf_acquire': (c_int, [c_void_p, c_char_p, POINTER(AcquireOptions), _OUT, _ERR]),
    'hf_acquire_any': (c_int, [c_void_p, _NAMES, c_size_t, POINTER(AcquireOptions), _OUT, POINTER(c_size_t), _ERR]),
    'hf_acquire_all': (c_int, [c_void_p, _NAMES, c_size_t, POINTER(AcquireOptions), _OUT, _ERR]),
    'hf_lease_name': (c_char_p, [c_void_p]),
    'hf_lease_token': (c_uint64, [c_void_p]),
    'hf_lease_remaining_ms': (c_int64, [c_void_p]),
    'hf_lease_loss': (c_int, [c_void_p]),
    'hf_lease_fd': (c_int, [c_void_p]),
    'hf_renew': (c_int, [c_void_p, c_uint32, _ERR]),
    'hf_release': (c_int, [c_void_p, _ERR]),
    'hf_record_put': (c_int, [c_void_p, c_char_p, c_char_p, c_size_t, c_int64, _ERR]),
    'hf_record_list': (c_int, [c_void_p, c_char_p, c_char_p, RECORD_FN, c_void_p, _ERR]),
    'hf_break': (c_int, [c_void_p, c_char_p, c_uint64, POINTER(BreakOptions), c_void_p, _ERR]),
    'hf_leader': (c_int, [c_void_p, c_char_p, LEADER_FN, c_void_p, _ERR]),
}


def _load() -> ctypes.CDLL:
    """$HOLDFAST_LIBRARY, else where the linker looks, else where `make install` puts it."""
    named = os.environ.get('HOLDFAST_LIBRARY')
    why: OSError | None = None
    for path in [named] if named else [SONAME, f'/usr/local/lib/{SONAME}']:
        try:
            return ctypes.CDLL(path)
        except OSError as error:
            why = why or error
    raise ImportError(f'holdfast: {named or SONAME} cannot be loaded ({why}): '
                      'install libholdfast0, or name the file in HOLDFAST_LIBRARY')


def _check(library: ctypes.CDLL) -> None:
    """One sentence for a library that does not go with this module, instead of a crash later."""
    library.hf_version.restype = c_char_p
    has = library.hf_version().decode()
    missing = [name for name in _FUNCTIONS if not hasattr(library, name)]
    major, minor = (int(part) for part in has.split('.')[:2])
    if missing or major != NEEDS[0] or minor < NEEDS[1]:
        what = f'has no {missing[0]}' if missing else f'is {has}'
        raise ImportError('holdfast: this module needs libholdfast {}.{} or a later one of the same major version, and '
                          '{} {}'.format(*NEEDS, library._name, what))
    for name, types in _FUNCTIONS.items():
        getattr(library, name).restype, getattr(library, name).argtypes = types


lib = _load()
_check(lib)
