"""What is known to be wrong: stories keep off it, and tests/test_model.py shows each in a story of its own.

A row is a number, what goes wrong, and whether the next refresh would meet it. Who mends a defect removes its
row, and the stories go there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from tests.model.publisher import Publisher
from tests.model.rules import Feed, is_newer


class Defect(NamedTuple):
    """A known defect."""

    number: str
    text: str
    is_met: Callable[[Publisher, Feed], bool]


def _other_format(publisher: Publisher, feed: Feed) -> bool:
    """A stored document that comes in another format, while anything fails."""
    documents = publisher.documents()
    is_other = [path for path, fault in publisher.faults.items() if fault == "format"]
    if any(path in feed.archives or path in feed.pages for path in is_other):
        return True
    stored = {path: held.doc for path, held in {**feed.archives, **feed.pages}.items()}
    changes = any(path in documents and doc.family != documents[path].family for path, doc in stored.items())
    return changes and bool(publisher.faults)


def _doubtful_link(publisher: Publisher, feed: Feed) -> bool:
    """The model takes such a link for a chain's: whoever mends this has to tell it of R4's doubts."""
    del feed
    documents = publisher.documents()
    older = documents.get(documents["/feed"].links.get("prev", ""))
    is_bare = publisher.habits.dialect == "bare prev" and publisher.mode == "chain"
    return is_bare and older is not None and is_newer(older, documents["/feed"])


KNOWN: Final = (
    Defect("new", "what a doubtful link leads to is asked for twice", _doubtful_link),
    Defect("17", "the state depends on how a document of another format failed last", _other_format),
)
"""Of 18, the stories forget what they know of an answer's date where they forget the feed."""


def met(publisher: Publisher, feed: Feed) -> str:
    """Return the number of a defect that a refresh would meet, or nothing."""
    return next((defect.number for defect in KNOWN if defect.is_met(publisher, feed)), "")


ONE_ETAG_A_BODY: Final = False
"""New: the same bytes get another ETag where they come from other documents, or were put together in another
order, since an ETag is made of the digests of segments. Stories compare them once this is mended."""
