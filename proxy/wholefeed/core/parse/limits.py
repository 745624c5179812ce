"""Limits of one document, the error for broken ones, and the version of the parser.

See docs/faults.md rows 41 to 44, 84, 89 and 92.
"""

from __future__ import annotations

from typing import Final


class ParseError(ValueError):
    """The failure to read a document as a feed.

    Args:
        message: For people: the expectation and the finding, with line and column if known.
        slug: malformed-xml, malformed-json, dtd-forbidden, xml-limit, not-a-feed, unsupported-format or
            unsupported-encoding.
    """

    def __init__(self, message: str, *, slug: str) -> None:
        super().__init__(message)
        self.message = message
        self.slug = slug


MAX_ENTRIES: Final = 250_000
MAX_LIKE_ENTRIES: Final = 1000
"""Beyond these, an entry with an earlier one's identity and date is dropped."""
MAX_HEAD_CHILDREN: Final = 20_000
MAX_HEAD_BYTES: Final = 2 << 20
"""All elements beside the entries; every answer contains them."""
MAX_TITLE_CHARACTERS: Final = 1000
MAX_LANG_CHARACTERS: Final = 64
MAX_SCOPES: Final = 16
"""Different surroundings of a document's entries."""

MAX_DEPTH: Final = 256
MAX_ATTRIBUTES: Final = 256
"""Per element, and the same number of namespace declarations."""
MAX_FLAT_ATTRIBUTES: Final = 2 * MAX_ATTRIBUTES  # expat gives a flat list of names and values
MAX_ELEMENTS: Final = 2_000_000
MAX_NAMESPACE_CHARACTERS: Final = 1024
FREE_NAME_CHARACTERS: Final = 8 << 20
NAME_CHARACTERS_PER_BYTE: Final = 16
"""For attribute values, and names with namespaces, beyond the free ones: `a:b` may stand for a thousand
characters (row 92). Real feeds reach three."""
MAX_TOKEN_CHARACTERS: Final = 1 << 20
"""Per name or attribute value."""
MAX_TAG_BYTES: Final = 4 * MAX_TOKEN_CHARACTERS

MAX_GAIN_FACTOR: Final = 4
MAX_GAIN_BYTES: Final = 1 << 20
"""Entries and head may gain `MAX_GAIN_FACTOR` times the document's size, and so many bytes more."""

UNLIMITED: Final = MAX_ELEMENTS
"""A `max_depth` without limits, for stored documents and those made of stored entries. They met the limits
when fetched, and additions must not make them unreadable."""

PARSER_VERSION: Final[int] = 10
"""Stamped on data derived from documents. Raised when the same bytes give other identities, instants, slices,
links or additions."""
