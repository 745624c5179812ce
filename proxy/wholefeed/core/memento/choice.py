"""What an archive is asked for, which of its copies are taken, and which belong to a feed (R33).

if is_gone(attempt.reason, attempt.status, attempts=attempt.attempts) and may_be_sent(url, hosts):
    for capture in for_missing(page.captures, url, now=now):      # the newest first
        ...
"""

from __future__ import annotations

import ipaddress
from collections.abc import Collection, Iterable, Mapping
from typing import Final
from urllib.parse import urlsplit

from wholefeed.core.memento.captures import Capture
from wholefeed.core.terms import Relation
from wholefeed.core.text.dates import DAY_SECONDS
from wholefeed.core.text.urls import UrlError, canonical_url, is_http

MAX_TRIES: Final = 5
"""Copies of a missing document that are tried: those before the newest serve only where it is of no use."""

UNHEARD_ATTEMPTS: Final = 3
"""So often in a row nothing is heard of a host before it counts as dead; the pauses between them grow."""

_GONE_STATUSES: Final = frozenset({404, 410})
_DEAD: Final = frozenset(
    {"dns-error", "dns-timeout", "connection-failed", "timeout", "tls-certificate", "protocol-error"}
)
_REPLACED: Final = frozenset({"not-a-feed", "format", "cross-origin-unconfirmed", "redirect-loop", "empty"})
"""Something else stands in a document's place: the front page, a domain that is for sale."""

_PRIVATE_ENDINGS: Final = (
    *("local", "localhost", "internal", "intranet", "private", "corp", "home", "lan"),
    *("home.arpa", "onion", "alt", "test", "invalid", "example"),
)
"""RFC 6761, RFC 6762 and the like: names that mean something to one network alone."""

_HTML: Final = frozenset({"text/html", "application/xhtml+xml"})


def is_gone(reason: str, status: int | None, *, attempts: int, is_part: bool = False) -> bool:
    """Return whether a publisher will probably not give a document any more.

    Args:
        reason: The slug of how it failed.
        status: What the publisher answered; None where it did not.
        attempts: How often in a row.
        is_part: Whether it is a document behind the subscription document. Then what stands in its place
            counts too.
    """
    if status is not None and status in _GONE_STATUSES:
        return True
    if status is None and reason in _DEAD:
        return attempts >= UNHEARD_ATTEMPTS
    return is_part and reason in _REPLACED


def may_be_sent(url: str, listed_hosts: Collection[str]) -> bool:
    """Return whether an archive may learn of a URL: nobody's secrets, nobody's private network.

    Args:
        url: Of the document.
        listed_hosts: Hosts whose URLs may be sent whatever they are; "*.example.org" is all below a name.
    """
    try:
        canonical_url(url)  # refuses user names and passwords
    except UrlError:
        return False
    parts = urlsplit(url)
    host = (parts.hostname or "").rstrip(".")
    if any(_matches(host, pattern) for pattern in listed_hosts):
        return True
    return not parts.query and "?" not in url and _is_public(host)


def _matches(host: str, pattern: str) -> bool:
    return host.endswith(pattern[1:]) if pattern.startswith("*.") else host == pattern


def _is_public(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_global
    except ValueError:
        pass
    is_private = any(host == ending or host.endswith(f".{ending}") for ending in _PRIVATE_ENDINGS)
    return "." in host and not is_private


def for_missing(captures: Iterable[Capture], url: str, *, now: float) -> list[Capture]:
    """Return the copies of a document to try one after the other, until one is of use: the newest first."""
    usable = sorted(_usable(captures, url, now), key=lambda each: each.timestamp, reverse=True)
    return _distinct(_feeds_first(usable))[:MAX_TRIES]


def for_gone(captures: Iterable[Capture], url: str, *, now: float) -> list[Capture]:
    """Return the copies of a subscription document to take, from the oldest to the newest."""
    usable = sorted(_usable(captures, url, now), key=lambda each: each.timestamp)
    return _distinct([each for each in usable if not _is_html(each)])


def _usable(captures: Iterable[Capture], url: str, now: float) -> list[Capture]:
    """Of this document, and not of a time to come."""
    return [
        each for each in captures if is_same_resource(each.url, url) and each.captured_at <= now + DAY_SECONDS
    ]


def _feeds_first(captures: list[Capture]) -> list[Capture]:
    """What was sent as a page of HTML is mostly one, and a feed now and then."""
    return sorted(captures, key=_is_html)


def _is_html(capture: Capture) -> bool:
    return capture.media_type.partition(";")[0].strip().lower() in _HTML


def _distinct(captures: Iterable[Capture]) -> list[Capture]:
    """Collapsing is of neighbours alone: a body that comes back is listed again."""
    kept: dict[str, Capture] = {}
    for capture in captures:
        kept.setdefault(capture.digest or capture.timestamp, capture)
    return list(kept.values())


def is_same_resource(url: str, other: str) -> bool:
    """Return whether two URLs are one to an archive: http or https, with `www.` or without (SURT)."""
    return _loose(url) == _loose(other)


def _loose(url: str) -> tuple[str, str, tuple[str, ...]]:
    try:
        parts = urlsplit(canonical_url(url))
    except UrlError:
        return ("", url, ())
    host = (parts.hostname or "").removeprefix("www.")
    port = "" if parts.port in (None, 80, 443) else f":{parts.port}"
    return (host + port, parts.path.rstrip("/").lower(), tuple(sorted(parts.query.split("&"))))


def is_confirmed(
    site_id: str, links: Mapping[str, str], *, feed_site_id: str, feed_urls: Collection[str]
) -> bool:
    """Return whether an archived document says that it belongs to a feed (R24).

    An archive is another site, and a domain may have changed hands: the URL alone says nothing. A feed that
    moved to https is the same one, by whichever of the two its documents name it.

    Args:
        site_id: What the document names its feed.
        links: The document's.
        feed_site_id: What the subscription document does.
        feed_urls: By which the subscription document is known.
    """
    if site_id and feed_site_id:
        are_urls = is_http(site_id) and is_http(feed_site_id)
        if site_id == feed_site_id or (are_urls and is_same_resource(site_id, feed_site_id)):
            return True
    current = links.get(Relation.CURRENT)
    return current is not None and any(is_same_resource(current, url) for url in feed_urls)
