"""What the entries of an Atom feed take from its head (RFC 4287, 4.2.1 and 4.2.10)."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Final, NamedTuple

from wholefeed.core.model import FeedDocument, HeadChild
from wholefeed.core.terms import ATOM_03_NS, ATOM_NS, Family

MAX_CONTEXT_BYTES: Final = 4096
"""Of a feed's authors, and of its rights: larger ones are not repeated in its entries."""

_AUTHORS: Final = {"author": (ATOM_NS, ATOM_03_NS)}
_RIGHTS: Final = {"rights": (ATOM_NS,), "copyright": (ATOM_03_NS,)}
"""Names of elements, and the namespaces in which they mean that."""


class Inheritable(NamedTuple):
    """Children of the head that stand for those that an entry lacks."""

    authors: Sequence[HeadChild] = ()
    rights: Sequence[HeadChild] = ()


def inheritable(document: FeedDocument) -> Inheritable:
    """Return what entries may take from the head; formats other than Atom give nothing."""
    if document.family is not Family.ATOM:
        return Inheritable()
    return Inheritable(_small(document, _AUTHORS), _small(document, _RIGHTS))


def _small(document: FeedDocument, names: Mapping[str, Collection[str]]) -> Sequence[HeadChild]:
    named = [child for child in document.head.children if child.namespace in names.get(child.name, ())]
    return named if sum(child.end - child.start for child in named) <= MAX_CONTEXT_BYTES else ()
