"""How large, deep and many the parts of one document may be (catalogue rows 41 to 44)."""

from __future__ import annotations

from typing import Final

MAX_ENTRIES: Final = 250_000
MAX_HEAD_CHILDREN: Final = 100_000
MAX_HEAD_BYTES: Final = 2 << 20
"""Of the elements beside the entries together: they go out with every answer."""
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
MAX_TOKEN_CHARACTERS: Final = 1 << 20
"""Of one name or one attribute value."""
MAX_TAG_BYTES: Final = 4 * MAX_TOKEN_CHARACTERS

UNLIMITED: Final = MAX_ELEMENTS
"""A `max_depth` that nothing within the limits reaches: no limit of size or number holds then.

It is for documents that are stored, or made of entries of stored ones: these were within the limits when
they were fetched, and what has been added to them since must not take them away.
"""
