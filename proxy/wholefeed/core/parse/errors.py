"""What stops a document from being read as a feed."""

from __future__ import annotations


class ParseError(ValueError):
    """The document is no feed, or not readable as one. The message says what was expected and what came.

    Args:
        message: For people, with line and column where they are known.
        slug: One of malformed-xml, malformed-json, dtd-forbidden, xml-limit, not-a-feed,
            unsupported-format and unsupported-encoding.
    """

    def __init__(self, message: str, *, slug: str) -> None:
        super().__init__(message)
        self.message = message
        self.slug = slug
