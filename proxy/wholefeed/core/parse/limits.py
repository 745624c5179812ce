"""What stops a document from being read as a feed (docs/faults.md rows 41 to 44, 84, 89 and 92).

How large, deep and many the parts of one document may be, the error that says so, and the version of the
parser.
"""

from __future__ import annotations

from typing import Final


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


MAX_ENTRIES: Final = 250_000
MAX_LIKE_ENTRIES: Final = 1000
"""Behind so many, an entry is left out that changes nothing: one of its identity and date came before."""
MAX_HEAD_CHILDREN: Final = 20_000
MAX_HEAD_BYTES: Final = 2 << 20
"""Of the elements beside the entries together: they go out with every answer."""
MAX_TITLE_CHARACTERS: Final = 1000
MAX_LANG_CHARACTERS: Final = 64
MAX_SCOPES: Final = 16
"""Different surroundings that the entries of one document can have."""

MAX_DEPTH: Final = 256
MAX_ATTRIBUTES: Final = 256
"""Of one element; its namespace declarations are counted apart, up to the same number."""
MAX_FLAT_ATTRIBUTES: Final = 2 * MAX_ATTRIBUTES
"""As expat gives them: a flat list of names and values."""
MAX_ELEMENTS: Final = 2_000_000
MAX_NAMESPACE_CHARACTERS: Final = 1024
FREE_NAME_CHARACTERS: Final = 8 << 20
NAME_CHARACTERS_PER_BYTE: Final = 16
"""Of names with their namespaces, and of attribute values, for each byte of a document beside those that are
free: what is written `a:b` may be a thousand characters long (row 92). Real feeds come to three."""
MAX_TOKEN_CHARACTERS: Final = 1 << 20
"""Of one name or one attribute value."""
MAX_TAG_BYTES: Final = 4 * MAX_TOKEN_CHARACTERS

MAX_GAIN_FACTOR: Final = 4
MAX_GAIN_BYTES: Final = 1 << 20
"""All that entries and head gain may come to so many times their document's size, and so much more."""

UNLIMITED: Final = MAX_ELEMENTS
"""A `max_depth` that nothing within the limits reaches: no limit of size or number holds then.

It is for documents that are stored, or made of entries of stored ones: these were within the limits when
they were fetched, and what has been added to them since must not take them away.
"""

PARSER_VERSION: Final[int] = 10
"""Raised whenever the same bytes come out differently: identities, instants, slices, links, what is added.

What is derived from a document is stamped with it."""
