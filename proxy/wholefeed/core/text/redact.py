"""URLs as they may be shown: never user name, password or query string in a log (docs/design.md#fetching).

Only text is handled here; nothing is fetched, and nothing raises, so that an error can always be told.
"""

from __future__ import annotations

import re
from typing import Final

# What people mean to be one: the scheme may be missing, and the slashes be wrong.
_AUTHORITY: Final = re.compile(r"^((?:[A-Za-z][A-Za-z0-9+.-]*:)?[/\\]+)?([^/\\?#]*)", re.DOTALL)
_HOST_AND_PORT: Final = re.compile(r"@?(?:\[[^\]@]*\]|[^:@\[\]]+)(?::[0-9]{1,5})?")
_QUERY_OR_FRAGMENT: Final = re.compile(r"[?#]")
_LONGEST: Final = 512


def without_credentials(url: str) -> str:
    """Return the URL without the user name and password of its authority (RFC 3986, 3.2.1).

    Where no host can stand there, a password that bears a slash may: then all up to the last `@` goes. An `@`
    behind a host and its port is part of the path.
    """
    if "@" not in url:  # hardly any has one
        return url
    match = _AUTHORITY.match(url)
    assert match is not None, "the empty text matches"
    start, authority, rest = match[1] or "", match[2], url[match.end() :]
    before, _, host = authority.rpartition("@")
    if before:
        authority = host
    if not _HOST_AND_PORT.fullmatch(authority) and "@" in rest:
        authority, rest = "", rest.rpartition("@")[2]
    return f"{start}{authority}{rest}"


def safe_url(url: str, *, keeps_query: bool = False) -> str:
    """Return a URL, or what was meant to be one, as it may be shown: without credentials, and not too long.

    Args:
        url: At most 512 characters of it are kept.
        keeps_query: For messages to those who asked, or who may see the feed. A log line has
            `scheme://host/path` alone, and `?…` where a query was.
    """
    shown, mark = without_credentials(url), ""
    cut = None if keeps_query else _QUERY_OR_FRAGMENT.search(shown)
    if cut is not None:
        shown, mark = shown[: cut.start()], "?…" if cut[0] == "?" else ""
    if len(shown) > _LONGEST:
        shown = f"{shown[:_LONGEST]}…"
    return f"{shown}{mark}"
