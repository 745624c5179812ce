"""The responses to the fetches of one refresh, and the documents on its walks."""

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
    """A response with a document that must not replace the stored one."""


@dataclass(slots=True)
class Responses:
    # Several trails may lead to one document. It is fetched once, even if one trail only guessed it.

    flying: set[str] = field(default_factory=set)
    _responses: dict[str, Response | Rejected] = field(default_factory=dict)

    def take(self, url: str, response: Response) -> None:
        key = document_key(url)
        self.flying.discard(key)
        self._responses[key] = response

    def find(self, url: str) -> Response | Rejected | None:
        return self._responses.get(document_key(url))

    def find_fresh(self, url: str) -> FreshDocument | None:
        """Return the fetched document of a URL, if it is neither stored nor dropped."""
        response = self.find(url)
        return response if isinstance(response, FreshDocument) else None

    def has_asked(self, url: str) -> bool:
        key = document_key(url)
        return key in self.flying or key in self._responses

    def remove(self, url: str) -> None:
        del self._responses[document_key(url)]

    def forget_confirmed(self) -> None:
        """Forget responses in favour of stored documents: walks along other documents fetch them again."""
        responses = self._responses.items()
        self._responses = {key: each for key, each in responses if isinstance(each, FreshDocument | Failure)}

    def refuse(self, url: str) -> None:
        self._responses[document_key(url)] = Rejected()


@dataclass(frozen=True, slots=True)
class FoundDocument:
    arrival: Arrival
    row: StoredDocument | None = None
    fresh: FreshDocument | None = None
    """The fetched document until it is stored; None if the stored one serves."""
    response: Response | Rejected | None = None
    """The response after which the stored document serves; None if nobody asked."""

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
        return self.response if isinstance(self.response, Failure) else None

    @property
    def is_refused(self) -> bool:
        return isinstance(self.response, Rejected)


class Joined(NamedTuple):
    found: FoundDocument
    has_news: bool
    place: int
    """Index in the path; the subscription document has 0."""

    @property
    def url(self) -> str:
        return self.found.arrival.url


@dataclass(frozen=True, slots=True)
class WalkContext:
    basis: Basis
    chain: Chain
    stored: Mapping[str, StoredDocument]
    """Documents that may stand on the trail, attached or not, by `document_key`."""
    responses: Responses

    @property
    def family(self) -> Family:
        return self.chain.path[0].family

    def find_stored(self, url: str) -> StoredDocument | None:
        return self.stored.get(document_key(url))
