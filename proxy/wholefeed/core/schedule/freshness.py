"""How long an answer of a publisher is fresh (RFC 9111, section 4.2), for a shared cache."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Final

from wholefeed.core.text.dates import DAY_SECONDS, parse_rfc822

_LARGEST_SECONDS: Final = 2**31
"""RFC 9111, section 1.2.2: what is larger counts as this."""

# RFC 9111, section 5.2: a token, or a quoted string that may hold commas.
_DIRECTIVE: Final = re.compile(r"([^\s=,;\"]+)\s*(?:=\s*(?:\"((?:[^\"\\]|\\.)*)\"?|([^\s,;]*)))?")
_SECONDS: Final = re.compile(r"[0-9]{1,20}")
_LONGEST_KEPT: Final = 200
"""Characters of a Cache-Control whose directives are kept; who says more may say it differently each time."""


def freshness_seconds(
    headers: Mapping[str, str], *, now: float, minimum: float, default: float, maximum: float
) -> float:
    """Return for how many seconds from now a document needs no second request.

    s-maxage counts before max-age, that before Expires (RFC 9111, section 4.2.1); the Age that it came with
    is taken off. Of a repeated directive the first counts; an unreadable value means stale. Without any
    of these, `default`. Age since is the caller's to measure: its clock, not the publisher's.

    Args:
        headers: Of the answer; names in any case.
        now: Epoch seconds; for an Expires without a Date.
        minimum: Least result; also what no-cache and no-store give.
        default: Where the publisher says nothing.
        maximum: Largest result.
    """
    fields = _fields(headers)
    directives = _directives(fields)
    if _is_uncacheable(directives):
        return minimum
    lifetime = _lifetime(fields, directives, now)
    if lifetime is None:
        return min(max(default, minimum), maximum)
    return min(max(lifetime - _age(fields), minimum), maximum)


def is_uncacheable(headers: Mapping[str, str]) -> bool:
    """Return whether the publisher forbids to reuse the document unasked: no-cache or no-store.

    A no-cache that names fields concerns those alone (RFC 9111, section 5.2.2.4).
    """
    return _is_uncacheable(_directives(_fields(headers)))


def age_seconds(headers: Mapping[str, str]) -> float:
    """Return for how long an answer has been in caches (RFC 9111, section 5.1); 0 where it says nothing."""
    return _age(_fields(headers))


def is_private(headers: Mapping[str, str]) -> bool:
    """Whether the document is meant for one reader alone: private or no-store (docs/faults.md row 26)."""
    directives = _directives(_fields(headers))
    return "private" in directives or "no-store" in directives


def retry_after_seconds(value: str, *, now: float) -> float | None:
    """Return the delay that a Retry-After field asks for (RFC 9110, section 10.2.3); None when unreadable.

    Args:
        value: Seconds or an HTTP date.
        now: Epoch seconds.

    Returns:
        Seconds from now, from 1 to a day (docs/faults.md row 55).
    """
    text = value.strip()
    if re.fullmatch("-[0-9]+", text):
        return 1.0
    delay = _seconds(text)
    if delay is None:
        instant = parse_rfc822(text)
        if instant is None:
            return None
        delay = instant - now
    return min(max(delay, 1.0), DAY_SECONDS)


def _fields(headers: Mapping[str, str]) -> dict[str, str]:
    """Lower-case names; repeated fields in one list (RFC 9110, section 5.3)."""
    fields: dict[str, str] = {}
    for name, value in headers.items():
        key = name.lower()
        fields[key] = f"{fields[key]}, {value}" if key in fields else value
    return fields


def _age(fields: Mapping[str, str]) -> float:
    return _seconds(fields.get("age", "").partition(",")[0]) or 0.0


def _directives(fields: Mapping[str, str]) -> Mapping[str, str]:
    said = fields.get("cache-control", "")
    return _parsed(said) if len(said) <= _LONGEST_KEPT else _parsed.__wrapped__(said)


@lru_cache(maxsize=1024)  # publishers say the same each time, and it is asked for up to four times
def _parsed(cache_control: str) -> Mapping[str, str]:
    directives: dict[str, str] = {}
    for name, quoted, token in _DIRECTIVE.findall(cache_control):
        directives.setdefault(name.lower(), quoted or token)
    return directives


def _is_uncacheable(directives: Mapping[str, str]) -> bool:
    return "no-store" in directives or directives.get("no-cache") == ""


def _lifetime(fields: Mapping[str, str], directives: Mapping[str, str], now: float) -> float | None:
    for name in ("s-maxage", "max-age"):
        if name in directives:
            return _seconds(directives[name]) or 0.0
    if "expires" not in fields:
        return None
    expires = parse_rfc822(fields["expires"])
    if expires is None:
        return 0.0
    date = parse_rfc822(fields.get("date", ""))
    return max(expires - (now if date is None else date), 0.0)


def _seconds(text: str) -> float | None:
    text = text.strip()
    return float(min(int(text), _LARGEST_SECONDS)) if _SECONDS.fullmatch(text) else None
