"""libholdfast as ctypes sees it: its structs, its functions, and whether it is there and goes with this module."""
import contextlib
import ctypes
import os
from ctypes import CFUNCTYPE, Structure, c_bool, c_char, c_char_p, c_void_p

SONAME = 'libholdfast.so.0'
NEEDS = (0, 2)  # major, and the least minor: what include/holdfast.h was when this was written


# The types of C in the tables below.
_C = {'b': c_bool, 'i': ctypes.c_int, 'u': ctypes.c_uint32, 'l': ctypes.c_int64, 'q': ctypes.c_uint64,
      'z': ctypes.c_size_t, 's': c_char_p, 'p': c_void_p, '-': None}


def _struct(types: str, names: str, *last: tuple) -> type:
    return type('Struct', (Structure,), {'_fields_': [*zip(names.split(), map(_C.get, types)), *last]})


Error = _struct('il', 'code retry_after_ms', ('text', c_char * 256))
OpenOptions = _struct('zlipp', 'size wait_ms cancel_fd on_trouble data')
AcquireOptions = _struct('zulsibbppppb', 'size ttl_ms wait_ms label cancel_fd no_keeper detached on_lost on_renewed '
                         'data on_trouble spread')
HoldStruct = _struct('zsppqi', 'size name options lease token loss', ('err', Error))
BreakOptions = _struct('zssb', 'size label reason now')
RecordStruct = _struct('zspzqqll', 'size key value value_len token number written_ms until_ms')
LeaderStruct = _struct('zqssll', 'size term label address age_ms remaining_ms')
OnceOptions = _struct('zlssllllubuilsppppl', 'size per_ms at tz slack_ms start_by_ms keep_ms retry_after_ms retries '
                      'hold_crashed ttl_ms cancel_fd wait_ms label on_lost on_renewed on_trouble data ago_ms')
OnceRecord = _struct('zss', 'size state by')  # and more

# Called by the thread that asks, before its call returns; never by another.
FOUND_FN = CFUNCTYPE(c_bool, c_void_p, c_void_p)

# What a function returns, and what it takes.
_FUNCTIONS = {
    'hf_open_waiting': 'isppp', 'hf_close': '-p', 'hf_store_url': 'sp', 'hf_version': 's', 'hf_break': 'ipsqppp',
    'hf_lock_acquire': 'i', 'hf_lock_release': 'i',  # which is quickest; what they take is ready to be passed
    'hf_lock_acquire_any': 'ippz', 'hf_lock_acquire_all': 'ippz', 'hf_lease_token': 'qp',
    'hf_lease_remaining_ms': 'lp', 'hf_lease_loss': 'ip', 'hf_lease_fd': 'ip', 'hf_renew': 'ipup',
    'hf_record_put': 'ipsszlp', 'hf_record_list': 'ipssppp', 'hf_leader': 'ipsppp',
    'hf_once_open': 'ipsppp', 'hf_once_begin': 'ipp', 'hf_once_end': 'ipiuszp', 'hf_once_close': '-p',
    'hf_once_slot': 'sp', 'hf_once_text': 'sp', 'hf_once_lease': 'pp', 'hf_once_on_record': 'pp',
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
    missing = [name for name in _FUNCTIONS if not hasattr(library, name)]
    has = '' if missing else CFUNCTYPE(c_char_p)(('hf_version', library))().decode()
    if missing or not NEEDS <= (*map(int, has.split('.')[:2]),) < (NEEDS[0] + 1,):
        what = f'has no {missing[0]}' if missing else f'is {has}'
        raise ImportError(f'holdfast: this module needs libholdfast {NEEDS[0]}.{NEEDS[1]} or a later one of the same '
                          f'major version, and {library._name} {what}')
    for name, types in _FUNCTIONS.items():
        function, (result, *arguments) = getattr(library, name), map(_C.get, types)
        function.restype, function.argtypes = result, arguments or None


lib, libc = _load(), ctypes.CDLL(None)
_check(lib)
