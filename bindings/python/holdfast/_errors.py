"""One exception per status of the library, each with the library's own text."""
from __future__ import annotations

from ._library import Error

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
