"""Properties of two basic values: URLs and instants."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from typing import Final
from urllib.parse import urlsplit

from yarl import URL

from wholefeed.core.text.dates import parse_rfc822, parse_rfc3339
from wholefeed.core.text.urls import (
    MAX_URL_CHARACTERS,
    UrlError,
    canonical_url,
    document_key,
    host_of,
    is_fetchable,
    is_http,
    resolve,
    safe_url,
    same_document,
    split,
)
from wholefeed.errors import PublisherError
from wholefeed.fetch.base import Target, parse_target, redirect_target

SLUGS: Final = frozenset({"invalid-url", "ambiguous-host", "userinfo-not-allowed"})
BASE: Final = Target("http://example.org/blog/feed?a=b", "example.org", 80, is_secure=False)
FIRST_AT: Final = -62135596800.0
LAST_AT: Final = 253402300800.0

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def check_url(data: bytes) -> None:
    """Take the first line for a URL, and the second for a reference in its document."""
    text, _, reference = data.decode("utf-8", "surrogateescape").partition("\n")
    canonical = _check_canonical(text)
    assert same_document(text, text)
    assert is_fetchable(text) == (canonical is not None) or "#" in text
    document_key(text)
    is_http(text)
    safe_url(text)
    _check_reference(canonical or BASE.url, reference)
    _check_redirect(reference)


def _check_canonical(text: str) -> str | None:
    try:
        url = canonical_url(text)
    except UrlError as exc:
        assert exc.slug in SLUGS, exc.slug
        return None
    assert canonical_url(url) == url, "canonical URLs are their own canonical form"
    assert len(url) <= MAX_URL_CHARACTERS
    assert url.isascii()
    assert is_http(url)
    assert same_document(url, text)
    _check_target(parse_target(text))
    return url


def _check_target(target: Target) -> None:
    """The guard judges the same host as every reader of the URL."""
    assert target.url.isascii()
    assert canonical_url(target.url) == canonical_url(canonical_url(target.url))
    assert host_of(target.url) == target.host
    asked = URL(target.url, encoded=True)
    assert (asked.raw_host, asked.port) == (target.host, target.port)
    assert asked.user is None
    assert asked.password is None
    assert asked.scheme == ("https" if target.is_secure else "http")
    known = urlsplit(target.url)
    assert known.hostname == target.host
    assert (known.port or asked.port) == target.port
    assert not known.username


def _check_reference(base: str, reference: str) -> None:
    try:
        url = resolve(base, reference)
    except ValueError:
        return
    assert split(url).scheme
    assert resolve("http://elsewhere.test/x/", url) == url, "what is absolute stays"


def _check_redirect(location: str) -> None:
    try:
        target = redirect_target(BASE, location)
    except PublisherError as exc:
        assert exc.slug in ("redirect-loop", "bad-redirect", "downgrade")
    else:
        _check_target(target)


def check_date(data: bytes) -> None:
    """Read an instant as Atom and as RSS write them."""
    text = data.decode("utf-8", "replace")
    for read in (parse_rfc3339, parse_rfc822):
        instant = read(text)
        if instant is None:
            continue
        assert math.isfinite(instant)
        assert FIRST_AT <= instant < LAST_AT
        written = (_EPOCH + timedelta(microseconds=round(instant * 1_000_000))).isoformat()
        for again in (parse_rfc3339(written), parse_rfc822(written)):
            assert again is not None
            assert abs(again - instant) <= 1e-4 if abs(instant) > 1e10 else again == instant, (again, instant)
