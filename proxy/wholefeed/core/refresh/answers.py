"""The responses to the fetches of one refresh, and the documents that its walks come to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from wholefeed.core.model import Family
from wholefeed.core.refresh.arrivals import Failure, FreshDocument, Response
from wholefeed.core.refresh.basis import Basis
from wholefeed.core.refresh.stored import StoredDocument
from wholefeed.core.text.urls import document_key
from wholefeed.core.walk.chain import Arrival, Chain


@dataclass(frozen=True, slots=True)
class Rejected:
    """A document has come, was dropped, and must not replace the stored one."""


@dataclass(slots=True)
class Answers:
    """The responses to the fetches of a refresh, by `document_key` of their URLs.

    Several trails may lead to one document. It is fetched once, even if one trail only guessed it.
    """

    flying: set[str] = field(default_factory=set)
    """Documents that are being fetched."""
    _responses: dict[str, Response | Rejected] = field(default_factory=dict)

    def take(self, url: str, response: Response) -> None:
        """Take the end of a fetch."""
        key = document_key(url)
        self.flying.discard(key)
        self._responses[key] = response

    def find(self, url: str) -> Response | Rejected | None:
        """Return the response for a URL; None while there is none."""
        return self._responses.get(document_key(url))

    def find_fresh(self, url: str) -> FreshDocument | None:
        """Return the document of a URL, if it has come and is neither kept nor dropped."""
        response = self.find(url)
        return response if isinstance(response, FreshDocument) else None

    def has_asked(self, url: str) -> bool:
        """Return whether a URL is not to be fetched in this refresh any more."""
        key = document_key(url)
        return key in self.flying or key in self._responses

    def remove(self, url: str) -> None:
        """Forget a document that was kept or dropped."""
        del self._responses[document_key(url)]

    def forget_confirmed(self) -> None:
        """Forget responses for which a stored document serves: walks along other documents fetch it again."""
        responses = self._responses.items()
        self._responses = {key: each for key, each in responses if isinstance(each, FreshDocument | Failure)}

    def refuse(self, url: str) -> None:
        """Note that a document was dropped since it must not replace the stored one."""
        self._responses[document_key(url)] = Rejected()


@dataclass(frozen=True, slots=True)
class Found:
    """A document that a walk has come to."""

    arrival: Arrival
    row: StoredDocument | None = None
    """The document as it is stored."""
    fresh: FreshDocument | None = None
    """The document as it was fetched, until it is kept; None: the stored one serves."""
    response: Response | Rejected | None = None
    """The response for which the stored one serves; None: its publisher was not asked."""

    @property
    def replaced(self) -> StoredDocument | None:
        """The stored archive document that the fetched one replaces, perhaps with other entries."""
        row, fresh = self.row, self.fresh
        if row is None or fresh is None or row.rank is None or row.is_stand_in:
            return None
        is_same = row.digest == fresh.arrival.digest or row.family is not fresh.arrival.family
        return None if is_same else row

    @property
    def failure(self) -> Failure | None:
        """Why the publisher did not give the document, though the stored one serves."""
        return self.response if isinstance(self.response, Failure) else None

    @property
    def is_refused(self) -> bool:
        """Whether its publisher gave a document that must not replace the stored one."""
        return isinstance(self.response, Rejected)


class Joined(NamedTuple):
    """A document that has joined the path of a walk."""

    found: Found
    has_news: bool
    """Whether it brought an entry, or an update of one, that the walk had not met."""
    place: int
    """Its place in the path; the subscription document has 0."""

    @property
    def url(self) -> str:
        return self.found.arrival.url


@dataclass(frozen=True, slots=True)
class WalkContext:
    """What the parts of one walk work with."""

    basis: Basis
    chain: Chain
    """The path so far."""
    stored: Mapping[str, StoredDocument]
    """The documents that may stand on the trail, attached or not, by `document_key` of their URLs."""
    answers: Answers
    """The responses that have come in this refresh, also to the walks before."""

    @property
    def family(self) -> Family:
        """The format of the feed."""
        return self.chain.path[0].family

    def find_stored(self, url: str) -> StoredDocument | None:
        """Return the stored document of a URL, however the URL is spelled."""
        return self.stored.get(document_key(url))
