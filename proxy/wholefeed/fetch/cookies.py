"""Cookies of one chain of redirects, which some publishers require. Pure.

A cookie returns only to the exact host that set it, and an https cookie only by https
(docs/security.md). So Domain is ignored; RFC 6265's Path, Secure and expiry are supported.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from wholefeed.core.text.dates import parse_rfc822

MAX_COOKIES: Final = 20
MAX_COOKIE_BYTES: Final = 4096
"""All names, values and paths together; more are dropped."""

_PAIR: Final = re.compile(r"([!#$%&'*+\-.^_`|~0-9A-Za-z]+)[ \t]*=[ \t]*([\x20-\x3a\x3c-\x7e]*)")
_NOT_POSITIVE: Final = re.compile(r"-\d+|0+")


@dataclass(frozen=True, slots=True)
class _Cookie:
    host: str
    """With its port."""
    path: str
    is_secure: bool
    name: str
    value: str

    @property
    def key(self) -> tuple[str, str, str]:
        return (self.host, self.path, self.name)

    @property
    def size_bytes(self) -> int:
        return len(self.path) + len(self.name) + len(self.value)

    def goes_to(self, url: str) -> bool:
        scheme, host, path, *_ = urlsplit(url)
        return (
            self.host == host
            and (scheme == "https" or not self.is_secure)
            and (path == self.path or path.startswith(f"{self.path.rstrip('/')}/"))  # RFC 6265, 5.1.4
        )


class ChainCookies:
    def __init__(self) -> None:
        self._cookies: dict[tuple[str, str, str], _Cookie] = {}

    def store(self, url: str, fields: Iterable[str], *, now: float) -> None:
        """Store the cookies of Set-Cookie fields, remove expired ones; `now` in epoch seconds."""
        scheme, host, asked_path, *_ = urlsplit(url)
        for field in fields:
            pair, *texts = field.split(";")
            match = _PAIR.fullmatch(pair.strip(" \t"))
            if match is None:
                continue
            attributes = {
                name.strip().lower(): value.strip()
                for name, _, value in (text.partition("=") for text in texts)
            }
            if "secure" in attributes and scheme != "https":
                continue
            path = attributes.get("path", "")
            if not path.startswith("/"):
                path = asked_path.rpartition("/")[0] or "/"
            cookie = _Cookie(host, path, scheme == "https", match[1], match[2])
            self._cookies.pop(cookie.key, None)
            if not _has_expired(attributes, now) and self._has_room(cookie):
                self._cookies[cookie.key] = cookie

    def find_field(self, url: str) -> str:
        return "; ".join(
            f"{cookie.name}={cookie.value}" for cookie in self._cookies.values() if cookie.goes_to(url)
        )

    def _has_room(self, cookie: _Cookie) -> bool:
        size_bytes = cookie.size_bytes + sum(other.size_bytes for other in self._cookies.values())
        return len(self._cookies) < MAX_COOKIES and size_bytes <= MAX_COOKIE_BYTES


def _has_expired(attributes: dict[str, str], now: float) -> bool:
    if "max-age" in attributes:  # it goes before Expires (RFC 6265, 5.3)
        return bool(_NOT_POSITIVE.fullmatch(attributes["max-age"]))
    expires_at = parse_rfc822(attributes.get("expires", "").replace("-", " "))
    return expires_at is not None and expires_at <= now
