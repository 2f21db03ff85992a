"""What a store tells about records and leaders. None is what it does not know."""
from __future__ import annotations

import ctypes
from typing import Any, NamedTuple


def text(data: bytes | None) -> str:
    return (data or b'').decode('utf-8', 'replace')


def _seconds(ms: int) -> float | None:
    return ms / 1000 if ms >= 0 else None


class Record(NamedTuple):
    """What a holder left behind beside its lock; times since 1970, by the store's clock."""
    key: str
    value: bytes
    token: int
    number: int
    written: float
    until: float | None

    @classmethod
    def _of(cls, one: Any) -> Record:
        return cls(text(one.key), ctypes.string_at(one.value, one.value_len), one.token, one.number,
                   one.written_ms / 1000, one.until_ms / 1000 if one.until_ms else None)


class Leader(NamedTuple):
    """Who leads, as a reader saw it a moment ago."""
    term: int | None
    label: str
    address: str
    age: float | None
    remaining: float | None

    @classmethod
    def _of(cls, one: Any) -> Leader:
        return cls(one.term or None, text(one.label), text(one.address), _seconds(one.age_ms),
                   _seconds(one.remaining_ms))
