"""The documents of one walk that belong together, newest first, and which others may join them.

The rules about single documents are here: R17 (the same document again), R23 (format), R24 (site). When to
go on is the matter of `wholefeed.core.walk.walk`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from wholefeed.core.notes import ChainLoop, CrossOriginUnconfirmed, FormatMismatch, NewerNotOlder, Note
from wholefeed.core.terms import Family, Relation
from wholefeed.core.text.urls import document_key, same_document
from wholefeed.core.walk.seen import Key, SeenKeys
from wholefeed.core.walk.trails import Span, Trail


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrival:
    """A document as the walk sees it."""

    url: str
    """As asked."""
    final_url: str
    """After redirects."""
    hops: tuple[str, ...] = ()
    """Every URL of the redirect chain between the two."""
    family: Family
    site_id: str
    """What names the feed in it, as `Head.site_id`; may be empty."""
    links: Mapping[str, str]
    """As `Navigation.links`, fresh or stored."""
    digest: bytes
    """Of the body."""
    body_bytes: int
    entries: int
    keys: Iterable[Key] | None
    """Identity and update instant of each entry of a fetched document; None when it was stored before."""
    news: bool = True
    """Of a document stored before: what `Walk.news` said when it first joined a path.

    Of a page (R6): whether it brought anything that was not stored."""
    span: Span | None = None
    """Of its entries' dates, when it was fetched and has some."""


class SameDocument:
    """The verdict that an older link names the very document it stands in: the end of the chain (R17)."""


SAME_DOCUMENT: Final = SameDocument()


class Chain:
    """The path of one walk.

    Args:
        subscription: The subscription document.
        trail: Which links are followed.
        site_of: The site that a URL belongs to (rule R24).
        passed: Documents that another trail from the subscription document has collected.
    """

    def __init__(
        self,
        subscription: Arrival,
        *,
        trail: Trail,
        site_of: Callable[[str], str],
        passed: Iterable[Arrival] = (),
    ) -> None:
        self.path: list[Arrival] = []
        self.body_bytes = 0
        self.entries = 0
        self.without_news = 0
        """Documents in a row, the last ones, that brought no new entry."""
        self.trail = trail
        self._site_of = site_of
        self._seen = SeenKeys()
        self._owners: dict[str, int] = {}
        self._bodies: dict[tuple[bytes, str | None], int] = {}
        self._sites = {site_of(subscription.url), site_of(subscription.final_url)}
        self.tip = subscription
        """The last document so far: the oldest one of a chain."""
        self.join(subscription)
        for arrival in passed:
            self.join(arrival)
        self.tip = self.path[0]
        self.without_news = 0

    @property
    def target(self) -> str | None:
        """Where the last document's link leads."""
        return self.trail.target(self.tip.links, is_first=self._is_at_start)

    @property
    def dead_end(self) -> Note | None:
        """Set when the last document has a link, but only one that cannot be followed."""
        return self.trail.dead_end(self.tip.links, self.tip.final_url, is_first=self._is_at_start)

    @property
    def _is_at_start(self) -> bool:
        return self.tip is self.path[0]

    def join(self, arrival: Arrival) -> bool:
        """Add a document; return whether it brought an entry, or an update of one, that was not met yet."""
        place = len(self.path)
        keys = arrival.keys
        if keys is not None and self.trail.is_paged:  # among pages an identity counts, not its updates (R17)
            keys = ((identity, None) for identity, _ in keys)
        has_news = arrival.news if keys is None else self._seen.add(keys)
        self.tip = dataclasses.replace(arrival, keys=None, news=has_news)
        self.path.append(self.tip)
        self.body_bytes += arrival.body_bytes
        self.entries += arrival.entries
        self.without_news = 0 if has_news or place == 0 else self.without_news + 1
        for name in (arrival.url, arrival.final_url, *arrival.hops):
            self._owners.setdefault(document_key(name), place)
        self._bodies.setdefault(self._body_of(arrival), place)
        return has_news

    def met(self, url: str) -> Arrival | None:
        """Return the document that bears a URL, as asked for or after redirects."""
        place = self._owners.get(document_key(url))
        return None if place is None else self.path[place]

    def repetition(self, url: str) -> SameDocument | ChainLoop | None:
        """Return what it means to go to this URL: the end of the chain, a circle, or None: neither (R17).

        A document's `self` cannot tell before the target is here: where a template wrote one `self` into
        every document, it would end the chain at its first step. What comes is compared by its body.
        """
        this = self.tip.links.get(
            Relation.THIS
        )  # draft -00, 4; PaceFeedState: this very document's own place
        if this is not None and document_key(this) == document_key(url):
            return SAME_DOCUMENT
        return self._verdict(self._owners.get(document_key(url)), url)

    def objection(self, arrival: Arrival) -> SameDocument | Note | None:
        """Return why the document that the tip links to does not join the chain; None when it does."""
        url = self.target or arrival.url
        place = self._owners.get(document_key(arrival.final_url))
        if place is None:
            place = self._bodies.get(self._body_of(arrival))
        verdict = self._verdict(place, url)
        if verdict is not None:
            return verdict
        expected = self.path[0].family
        if arrival.family is not expected:
            return FormatMismatch(url, expected.value, arrival.family.value)
        if not self._is_of_this_feed(arrival):
            return CrossOriginUnconfirmed(url)
        is_doubtful = self.trail.is_tentative and self._is_at_start
        return NewerNotOlder(url) if is_doubtful and self._is_no_older(arrival) else None

    def leads_past(self, url: str) -> bool:
        """Return whether the last page names a `last` one that is not this URL and not collected yet."""
        last = self.tip.links.get(Relation.LAST)
        return last is not None and not same_document(last, url) and document_key(last) not in self._owners

    def _is_no_older(self, arrival: Arrival) -> bool:
        """R4: newer by its dates; or empty beside a `next` link, as pages in front of the first one are."""
        subscription = self.path[0]
        if not arrival.entries:
            return Relation.NEXT in subscription.links
        return bool(arrival.span and subscription.span and arrival.span.is_newer_than(subscription.span))

    def _verdict(self, place: int | None, url: str) -> SameDocument | ChainLoop | None:
        if place is None:
            return None
        return SAME_DOCUMENT if self.path[place] is self.tip else ChainLoop(url)

    def _body_of(self, arrival: Arrival) -> tuple[bytes, str | None]:
        """R17: the same body with the same resolved link counts as the same document."""
        target = self.trail.target(arrival.links)
        return arrival.digest, None if target is None else document_key(target)

    def _is_of_this_feed(self, arrival: Arrival) -> bool:
        """R24; RFC 5005, section 6: another site's document must say that it belongs here."""
        urls = {arrival.url, *arrival.hops, arrival.final_url}
        return all(self._site_of(url) in self._sites for url in urls) or self.is_named_by(arrival)

    def is_named_by(self, arrival: Arrival) -> bool:
        """Return whether a document says itself which feed it belongs to, and that it is this one (R24)."""
        subscription = self.path[0]
        if arrival.site_id and arrival.site_id == subscription.site_id:
            return True
        current = arrival.links.get(Relation.CURRENT)
        names = (subscription.url, *subscription.hops, subscription.final_url)
        return current is not None and any(same_document(current, name) for name in names)
