"""URLs as they may be shown: never user name, password or query string in a log (FAULTS, terms).

Only text is handled here; nothing is fetched, and nothing raises, so that an error can always be told.
"""

from __future__ import annotations

import re
from typing import Final

# What people mean to be one: the scheme may be missing, and the slashes be wrong.
_AUTHORITY: Final = re.compile(r"^((?:[A-Za-z][A-Za-z0-9+.-]*:)?[/\\]+)?([^/\\?#]*)", re.DOTALL)
_QUERY_OR_FRAGMENT: Final = re.compile(r"[?#]")
_LONGEST: Final = 512


def without_credentials(url: str) -> str:
    """Return the URL without the user name and password of its authority (RFC 3986, 3.2.1)."""
    match = _AUTHORITY.match(url)
    assert match is not None, "the empty text matches"
    return f"{match[1] or ''}{match[2].rpartition('@')[2]}{url[match.end() :]}"


def safe_url(url: str) -> str:
    """Return the URL as it may stand in a log line: `scheme://host/path`, and `?…` where a query was.

    At most 512 characters of it are kept.
    """
    shown = without_credentials(url)
    cut = _QUERY_OR_FRAGMENT.search(shown)
    has_query = cut is not None and cut[0] == "?"
    if cut is not None:
        shown = shown[: cut.start()]
    if len(shown) > _LONGEST:
        shown = f"{shown[:_LONGEST]}…"
    return f"{shown}?…" if has_query else shown
