"""How much the slices of a document can gain at most (rule R22), found without making any of them.

if most_gained(document) > limit_bytes:
    ...     # Fragments(document).gain_at_most(limit_bytes) tells for certain
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from wholefeed.core.model import FeedDocument, Scope
from wholefeed.core.verbatim.addresses import GAIN_BYTES, GAIN_FACTOR
from wholefeed.core.verbatim.inheritance import inheritable

_CHARACTER_BYTES: Final = 6
"""`&quot;`; in UTF-8 a character has four at most."""
_ATTRIBUTE_BYTES: Final = 16
"""All of one but what it declares: ` xml:lang=""`."""


def most_gained(document: FeedDocument) -> int:
    """Return how many bytes the entries and the head of a document in XML gain at most.

    It is several times too much, and for nearly every document less than is allowed.
    """
    entries, children = document.entries, document.head.children
    most = max(map(_declared, document.scopes)) * (len(entries) + len(children))
    most += _grown(child.end - child.start for child in children)
    given = [child.end - child.start for each in inheritable(document) for child in each]
    if given:
        inherited = sum(given) + _grown(given) + len(given) * _declared(document.head.scope)
        most += inherited * len(entries)
    return most


def _grown(sizes: Iterable[int]) -> int:
    """Return how much slices of these sizes grow at most by URLs that are written absolute."""
    return sum(GAIN_FACTOR * size + GAIN_BYTES for size in sizes)


def _declared(scope: Scope) -> int:
    """Return what all attributes take at most that say what is in force there."""
    characters = len(scope.lang) + len(scope.base)
    for prefix, uri in scope.prefixes.items():
        characters += len(prefix) + len(uri)
    return _CHARACTER_BYTES * characters + _ATTRIBUTE_BYTES * (len(scope.prefixes) + 3)
