"""What is sent with a request for a document, and the document as it comes, before it is read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

KEPT_HEADERS: Final = (
    "age",
    "cache-control",
    "content-length",
    "content-type",
    "date",
    "etag",
    "expires",
    "last-modified",
    "memento-datetime",
    "retry-after",
    "transfer-encoding",
    "vary",
    "x-discourse-route",
    "x-wp-total",
)
"""Fields of an answer that are of use once it is here; lower-case names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Validators:
    """What a document was sent with when it was fetched last; makes a request conditional (RFC 9110, 8.8)."""

    etag: str | None = None
    last_modified: str | None = None
    url: str | None = None
    """Who sent them: a validator means nothing to another document. None: whoever answers."""

    def header_fields(self, url: str) -> dict[str, str]:
        """Return the fields of a request to a URL (RFC 9110, section 13.1); a broken validator is none."""
        if self.url not in (None, url):
            return {}
        given = {"If-None-Match": self.etag, "If-Modified-Since": self.last_modified}
        return {
            name: value for name, value in given.items() if value and value.isascii() and value.isprintable()
        }


@dataclass(frozen=True, slots=True, kw_only=True, weakref_slot=True)
class Fetched:
    """A document as its publisher sent it, or the word that it has not changed."""

    url: str
    """As asked for."""
    final_url: str
    hops: tuple[str, ...]
    """Every URL between the one asked for and the final one."""
    permanent_url: str | None
    """Where redirects led that were all permanent (301, 308); None where there were none, or others."""
    not_modified: bool
    body: bytes
    """Decoded; empty when not modified."""
    media_type: str
    """Content-Type as sent."""
    headers: Mapping[str, str]
    """Those of `KEPT_HEADERS` that the publisher sent; lower-case names."""
    links: tuple[str, ...]
    """Values of the Link fields (RFC 8288)."""
    wire_bytes: int
    """Of the body as it came, before decoding."""
    fetched_at: float
    is_met: bool = False
    """Whether redirects led to a document that the caller has: it was not asked for, and is not modified."""
    status: int
