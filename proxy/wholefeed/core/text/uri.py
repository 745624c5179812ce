"""The generic syntax of RFC 3986: components, references, percent-encoding.

Nothing here knows of http, of hosts or of feeds; `wholefeed.core.text.urls` does.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple


class Parts(NamedTuple):
    """The five components of RFC 3986, section 3; None where the delimiter is absent."""

    scheme: str | None
    authority: str | None
    path: str
    query: str | None
    fragment: str | None


# RFC 3986, appendix B, with the scheme as strict as section 3.1.
_COMPONENTS: Final = re.compile(
    r"(?:([A-Za-z][A-Za-z0-9+.\-]*):)?(?://([^/?#]*))?([^?#]*)(?:\?([^#]*))?(?:#(.*))?", re.DOTALL
)
_PERCENT: Final = re.compile("%(?:([0-9A-Fa-f]{2}))?")
_UNRESERVED: Final = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
PATH_CHARACTERS: Final = _UNRESERVED | frozenset("!$&'()*+,;=:@/%")
QUERY_CHARACTERS: Final = PATH_CHARACTERS | frozenset("?")


def split(text: str) -> Parts:
    """Take a URI reference apart; every text is one (RFC 3986, appendix B)."""
    match = _COMPONENTS.fullmatch(text)
    assert match is not None, "every text matches: RFC 3986, appendix B"
    scheme, authority, path, query, fragment = match.groups()
    return Parts(scheme, authority, path, query, fragment)


def joined(parts: Parts) -> str:
    """Put the components together again (RFC 3986, section 5.3)."""
    return "".join(
        (
            "" if parts.scheme is None else f"{parts.scheme}:",
            "" if parts.authority is None else f"//{parts.authority}",
            parts.path,
            "" if parts.query is None else f"?{parts.query}",
            "" if parts.fragment is None else f"#{parts.fragment}",
        )
    )


def merged(base: Parts, reference: Parts) -> Parts:
    """Return the target of a reference without a scheme, dot segments left in (RFC 3986, section 5.2.2)."""
    if reference.authority is not None:
        return reference._replace(scheme=base.scheme)
    path, query = reference.path, reference.query
    if not path:
        path = base.path
        query = base.query if query is None else query
    elif not path.startswith("/"):
        if base.authority is not None and not base.path:
            path = f"/{path}"
        else:
            path = base.path[: base.path.rfind("/") + 1] + path
    return Parts(base.scheme, base.authority, path, query, reference.fragment)


def without_dot_segments(path: str) -> str:
    """Remove "." and ".." (RFC 3986, section 5.2.4). Only a path from the root has a hierarchy to walk."""
    if not path.startswith("/") or "/." not in path:
        return path
    kept: list[str] = []
    segments = path.split("/")[1:]
    for segment in segments:
        if segment == "..":
            del kept[-1:]
        elif segment != ".":
            kept.append(segment)
    if segments[-1] in (".", ".."):
        kept.append("")
    return "/" + "/".join(kept)


def requoted(text: str, allowed: frozenset[str]) -> str:
    """Return the text with the least percent-encoding possible (RFC 3986, sections 6.2.2.1 and 6.2.2.2).

    Characters that are not allowed are encoded as UTF-8, a percent sign that encodes nothing as `%25`.
    """
    quoted = _PERCENT.sub(_requoted_octet, text)
    if allowed.issuperset(quoted):
        return quoted
    return "".join(
        char if char in allowed else "".join(f"%{octet:02X}" for octet in char.encode()) for char in quoted
    )


def _requoted_octet(match: re.Match[str]) -> str:
    if match[1] is None:
        return "%25"
    char = chr(int(match[1], 16))
    return char if char in _UNRESERVED else f"%{match[1].upper()}"
