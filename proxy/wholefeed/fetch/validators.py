"""What makes a request conditional (RFC 9110, section 8.8)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Validators:
    """What a document was sent with when it was fetched last."""

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
