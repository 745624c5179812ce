"""Where a request goes: URLs as they are sent, and where a redirect leads.

The authority is sent in canonical form, because the address guard judges it; path and query are sent as the
publisher wrote them, because some publishers sign them.

    target = parse_target("https://Example.org/Feed?a=%2f")     # https://example.org/Feed?a=%2f
    target = redirect_target(target, "../new.atom")
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final, NamedTuple

from wholefeed.core.text.uri import PATH_CHARACTERS, QUERY_CHARACTERS, joined, split, without_dot_segments
from wholefeed.core.text.urls import DEFAULT_PORTS, UrlError, canonical_url, resolve
from wholefeed.errors import PublisherError

_UNDECODED: Final = re.compile("[\udc80-\udcff]")
_PORT: Final = re.compile(r"(?::([0-9]+))?$")


class Target(NamedTuple):
    """An http(s) URL that can be sent, and what the guard has to know of it."""

    url: str
    host: str
    """Canonical; an IPv6 address without its brackets."""
    port: int
    is_secure: bool


@lru_cache(maxsize=1024)  # each refresh asks for the same
def parse_target(text: str) -> Target:
    """Return the target that a URL names; its fragment is dropped.

    Raises:
        UrlError: The URL is none that can be fetched; its `slug` says how.
    """
    canonical = split(canonical_url(text))
    scheme, authority = canonical.scheme, canonical.authority
    assert scheme is not None, "a canonical URL has a scheme"
    assert authority is not None, "a canonical URL has an authority"
    given = split(text)
    path = _encoded(without_dot_segments(given.path), PATH_CHARACTERS) or "/"
    query = None if given.query is None else _encoded(given.query, QUERY_CHARACTERS)
    sent = canonical._replace(path=path, query=query, fragment=None)
    port_match = _PORT.search(authority)
    assert port_match is not None, "the empty text matches"
    host = authority[: port_match.start()].strip("[]")
    port = int(port_match[1]) if port_match[1] else DEFAULT_PORTS[scheme]
    return Target(joined(sent), host, port, scheme == "https")


def redirect_target(base: Target, location: str, *, allow_downgrade: bool = False) -> Target:
    """Return where a Location field leads (RFC 9110, section 10.2.2; docs/faults.md rows 13 and 14).

    Args:
        base: The target that answered.
        location: The field's value; octets that are no UTF-8 stand in it as surrogates.
        allow_downgrade: Whether https may lead to http.

    Raises:
        PublisherError: `redirect-loop`: it leads nowhere. `bad-redirect`: it leads to what is no http(s) URL
            that may be asked for, or to one with credentials. `downgrade`.
    """
    octets = _UNDECODED.sub(lambda match: f"%{ord(match[0]) - 0xDC00:02X}", location)
    try:
        url = resolve(base.url, octets) if octets.strip() else ""
    except ValueError:
        url = ""
    if not url:
        raise PublisherError("expected a URL in the Location field", url=base.url, slug="redirect-loop")
    try:
        target = parse_target(url)
    except UrlError as exc:
        raise PublisherError(
            "expected a redirect to an http(s) URL without credentials", url=base.url, slug="bad-redirect"
        ) from exc
    if base.is_secure and not target.is_secure and not allow_downgrade:
        raise PublisherError("the redirect leads from https to http", url=base.url, slug="downgrade")
    return target


def _encoded(text: str, allowed: frozenset[str]) -> str:
    """Percent-encode what may not be sent, and leave the rest as it is written."""
    if allowed.issuperset(text):
        return text
    return "".join(
        char if char in allowed else "".join(f"%{octet:02X}" for octet in char.encode()) for char in text
    )
