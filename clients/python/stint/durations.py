"""Durations as texts, such as "1m30s", and instants as the gateway writes them."""
from __future__ import annotations

import re
from datetime import datetime, timedelta
from typing import Union

Duration = Union[str, timedelta, int, float]
"""A text such as "250ms", "1m30s" or "14d"; a timedelta; or a number of seconds."""

_PART = re.compile(r"(\d+(?:\.\d*)?|\.\d+)(ns|us|µs|ms|s|m|h|d)")
_UNITS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


def seconds(d: Duration) -> float:
    """The length of d in seconds. ValueError if it is no duration."""
    if isinstance(d, timedelta):
        return d.total_seconds()
    if isinstance(d, (int, float)):
        return float(d)
    if d != "0" and not re.fullmatch(f"(?:{_PART.pattern})+", d):
        raise ValueError(f"{d!r} is no duration: write 250ms, 30s, 1m30s, 24h or 14d")
    return sum(float(n) * _UNITS[unit] for n, unit in _PART.findall(d))


def text(d: Duration) -> str:
    """d as the gateway and PostgreSQL read it."""
    return f"{seconds(d):.6f}".rstrip("0").rstrip(".") + "s"


def parse_instant(s: str) -> datetime:
    """The instant of an RFC 3339 text, to the microsecond."""
    m = re.fullmatch(r"(.{19})(?:\.(\d+))?(Z|[+-]\d\d:\d\d)", s)
    if m is None:
        raise ValueError(f"{s!r} is no instant")
    return datetime.fromisoformat(f"{m[1]}.{(m[2] or '0')[:6]:0<6}{'+00:00' if m[3] == 'Z' else m[3]}")


def check_instant(t: datetime) -> datetime:
    """t, if it has a time zone; without one it would be another instant elsewhere."""
    if t.tzinfo is None:
        raise ValueError(f"{t!r} has no time zone: use datetime.now(timezone.utc), or t.astimezone()")
    return t
