"""Signed feed URLs: a mark in a URL that lets its holder read one feed, and nothing else.

A mark is the HMAC-SHA256 (RFC 2104) of what is granted, in base64url without padding (RFC 4648, section 5);
one that expires has a dot and the instant behind it. What is granted is the canonical URL of the feed and the
instant, on lines of their own behind a name and a version: neither holds a line break, so no two grants
share a text. Options of the request (limit, since, wait) are not part of it.

    mark = sign("http://example.org/feed", keys, expires_at=1_800_000_000)      # "q1f…Zs.1800000000"
    verify("http://example.org/feed", mark, keys, now)                          # Verdict.VALID
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
from collections.abc import Sequence
from enum import Enum
from typing import Final

_PURPOSE: Final = "wholefeed feed 1"
_MARK: Final = re.compile(r"(?P<mac>[A-Za-z0-9_-]{43})(?:\.(?P<expires_at>[1-9][0-9]{0,11}))?", re.ASCII)


class Verdict(Enum):
    """What a mark is worth."""

    VALID = "valid"
    BAD = "bad"
    EXPIRED = "expired"


def sign(url: str, keys: Sequence[str], *, expires_at: int | None = None) -> str:
    """Return the mark for a feed.

    Args:
        url: The canonical URL of the feed.
        keys: At least one; the first one signs.
        expires_at: The instant, in epoch seconds, from which on the mark is worth nothing; None: never.
    """
    mac = _mac(url, keys[0], "" if expires_at is None else str(expires_at))
    return mac if expires_at is None else f"{mac}.{expires_at}"


def verify(url: str, mark: str, keys: Sequence[str], now: float) -> Verdict:
    """Return what a mark is worth for a feed. How long it takes tells nothing of the right one.

    Args:
        url: The canonical URL of the feed.
        mark: As it came with the request.
        keys: Each of them counts, so that one can be replaced while its marks are still about.
        now: Epoch seconds.
    """
    found = _MARK.fullmatch(mark)
    if found is None:
        return Verdict.BAD
    expires_at = found["expires_at"] or ""
    given = found["mac"].encode()
    matches = [hmac.compare_digest(given, _mac(url, key, expires_at).encode()) for key in keys]
    if not any(matches):
        return Verdict.BAD
    return Verdict.EXPIRED if expires_at and now >= int(expires_at) else Verdict.VALID


def _mac(url: str, key: str, expires_at: str) -> str:
    message = f"{_PURPOSE}\n{expires_at}\n{url}"
    digest = hmac.digest(key.encode(), message.encode(), hashlib.sha256)
    return base64.urlsafe_b64encode(digest).decode("ascii").rstrip("=")
