"""Known defects: stories avoid them, and tests/test_model.py shows each in a story of its own.

A row is a number, the error, and whether the next refresh would meet it. A fix removes its row, and the
stories cover it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from tests.model.publisher import Publisher
from tests.model.rules import Feed, is_newer


class Defect(NamedTuple):
    number: str
    text: str
    is_met: Callable[[Publisher, Feed], bool]


def _doubtful_link(publisher: Publisher, feed: Feed) -> bool:
    """The model takes such a link for a chain's: a fix must teach it R4's doubts."""
    del feed
    documents = publisher.documents()
    links, flags = documents["/feed"].links, documents["/feed"].flags
    older = documents.get(links.get("prev", ""))
    is_bare = not flags and not links.keys() & {"this", "next", "first", "last"}
    return is_bare and older is not None and is_newer(older, documents["/feed"])


KNOWN: Final = (Defect("new", "what a doubtful link leads to is asked for twice", _doubtful_link),)
"""For 18, stories forget an answer's date when they forget the feed."""


def met(publisher: Publisher, feed: Feed) -> str:
    """Return the number of a defect in the next refresh, or nothing."""
    return next((defect.number for defect in KNOWN if defect.is_met(publisher, feed)), "")
