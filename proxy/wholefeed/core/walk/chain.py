"""The documents of one walk, the rules for joining them, and the links to follow."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise
from typing import Final, NamedTuple

from wholefeed.core.links import dead_link
from wholefeed.core.model import EntryId, Family, Relation
from wholefeed.core.notes import (
    ChainLoop,
    CrossOriginUnconfirmed,
    FormatMismatch,
    LimitReached,
    NewerNotOlder,
    NoProgress,
    Note,
    PagesRepeat,
)
from wholefeed.core.text.urls import document_key, same_document


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrival:
    url: str
    final_url: str
    hops: tuple[str, ...] = ()
    """Every URL of the redirect chain between the two."""
    family: Family
    site_id: str
    """The document's name for the feed, as in `Head.site_id`; may be empty."""
    links: Mapping[str, str]
    """`Navigation.links`, fresh or stored."""
    digest: bytes
    body_bytes: int
    entries: int
    keys: Iterable[Key] | None
    """Identities and update instants of a fetched document; None for a stored one."""
    news: bool = True
    """For a stored document: whether it brought news when it first joined a path. For a page (R6): whether it
    brought an entry not stored before."""
    span: DateSpan | None = None
    """Dates of the entries, if the document was fetched and has any."""

    @property
    def identities(self) -> tuple[EntryId, ...]:
        return tuple(identity for identity, _ in self.keys or ())


Key = tuple[EntryId, float | None]
"""Identity and update instant: an update counts as new (rule R17)."""


class DateSpan(NamedTuple):
    oldest_at: float
    newest_at: float

    def is_newer_than(self, other: DateSpan) -> bool:
        """Return whether the entries as a whole are newer; a late update of an old one is not enough."""
        return self.newest_at > other.newest_at and self.oldest_at >= other.oldest_at


class Chain:
    """The path of one walk, newest first.

    `passed` are documents that another trail from the subscription document has collected.
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
        # Documents without a new entry at the end of the path.
        self.without_news = 0
        self.trail = trail
        self._site_of = site_of
        self._seen = SeenKeys()
        self._owners: dict[str, int] = {}
        self._bodies: dict[tuple[bytes, str | None], int] = {}
        self._sites = {site_of(subscription.url), site_of(subscription.final_url)}
        # The last document so far: the oldest one of a chain.
        self.tip = subscription
        self.join(subscription)
        for arrival in passed:
            self.join(arrival)
        self.tip = self.path[0]
        self.without_news = 0

    @property
    def target(self) -> str | None:
        return self.trail.target(self.tip.links, is_first=self._is_at_start)

    @property
    def dead_end(self) -> Note | None:
        return self.trail.dead_end(self.tip.links, self.tip.final_url, is_first=self._is_at_start)

    @property
    def _is_at_start(self) -> bool:
        return self.tip is self.path[0]

    def join(self, arrival: Arrival) -> bool:
        """Add a document; return whether it brought a new entry or a new update."""
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
        place = self._owners.get(document_key(url))
        return None if place is None else self.path[place]

    def has_met(self, url: str) -> bool:
        """Return whether a URL's document is on the path: do not follow a redirect there (R17)."""
        return document_key(url) in self._owners

    def repetition(self, url: str) -> SameDocument | Note | None:
        """Return whether going to this URL ends the chain or closes a circle; None for neither (R17).

        A document's `self` link tells nothing before the target is here: a template may write one `self` into
        every document.
        """
        # One `self` in every document would end the chain at the first step. Arriving documents are compared
        # by their bodies.
        # draft -00, 4; PaceFeedState: this very document's own place
        this = self.tip.links.get(Relation.THIS)
        if this is not None and document_key(this) == document_key(url):
            return SAME_DOCUMENT
        return self._verdict(self._owners.get(document_key(url)), url)

    def objection(self, arrival: Arrival) -> SameDocument | Note | None:
        """Return why the tip's next document does not join; None if it joins."""
        url = self.target or arrival.url
        place = self._owners.get(document_key(arrival.final_url))
        if place is None:
            place = self._bodies.get(self._body_of(arrival))
        verdict = self._verdict(place, url)
        if verdict is not None:
            return verdict
        expected = self.path[0].family
        if arrival.family is not expected:
            return FormatMismatch(url, expected=expected.value, found=arrival.family.value)
        if not self._is_of_this_feed(arrival):
            return CrossOriginUnconfirmed(url)
        is_doubtful = self.trail.is_tentative and self._is_at_start
        return NewerNotOlder(url) if is_doubtful and self._is_no_older(arrival) else None

    def is_named_by(self, arrival: Arrival) -> bool:
        """Return whether a document itself names this feed (R24)."""
        subscription = self.path[0]
        if arrival.site_id and arrival.site_id == subscription.site_id:
            return True
        current = arrival.links.get(Relation.CURRENT)
        names = (subscription.url, *subscription.hops, subscription.final_url)
        return current is not None and any(same_document(current, name) for name in names)

    def leads_past(self, url: str) -> bool:
        """Return whether the tip's `last` link names another page, not collected yet."""
        last = self.tip.links.get(Relation.LAST)
        return last is not None and not same_document(last, url) and document_key(last) not in self._owners

    def _is_no_older(self, arrival: Arrival) -> bool:
        """Return whether a document is newer, or an empty page before the first (R4)."""
        subscription = self.path[0]
        if not arrival.entries:
            return Relation.NEXT in subscription.links
        return bool(arrival.span and subscription.span and arrival.span.is_newer_than(subscription.span))

    def _verdict(self, place: int | None, url: str) -> SameDocument | Note | None:
        if place is None:
            return None
        return SAME_DOCUMENT if self.path[place] is self.tip else ChainLoop(url)

    def _body_of(self, arrival: Arrival) -> tuple[bytes, str | None]:
        """Return a key: the same body with the same resolved link is the same document (R17)."""
        target = self.trail.target(arrival.links)
        return arrival.digest, None if target is None else document_key(target)

    def _is_of_this_feed(self, arrival: Arrival) -> bool:
        """Return whether a document is of the feed's site, or names this feed (R24; RFC 5005, section 6)."""
        urls = {arrival.url, *arrival.hops, arrival.final_url}
        return all(self._site_of(url) in self._sites for url in urls) or self.is_named_by(arrival)


class SameDocument:
    """The verdict for an older link to its own document: the end of the chain (R17)."""


SAME_DOCUMENT: Final = SameDocument()


# Where a walk stops although the chain goes on (R17, R18; RFC 5005, section 6)


def exhaustion(chain: Chain, limits: WalkLimits, target: str) -> Note | None:
    """Return why the walk stops although the chain goes on to a target; None if it need not stop."""
    if chain.trail.is_paged and chain.without_news >= NO_PROGRESS_PAGES:
        return PagesRepeat(chain.tip.url, documents=chain.without_news)
    if chain.without_news >= NO_PROGRESS_DOCUMENTS:
        return NoProgress(chain.tip.url, documents=chain.without_news)
    return next(limits.list_reached_limits(len(chain.path), chain.body_bytes, chain.entries, target), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class WalkLimits:
    """The limits of a feed (R18; RFC 5005, section 6); each counts the subscription document."""

    documents: int
    bytes: int
    """Bytes of decoded bodies on the path. Documents fetched ahead of it only stop the guessing."""
    entries: int

    def list_reached_limits(self, documents: int, body_bytes: int, entries: int, url: str) -> Iterator[Note]:
        for held, limit, key in (
            (documents, self.documents, "limits.documents_per_feed"),
            (body_bytes, self.bytes, "limits.feed_bytes"),
            (entries, self.entries, "limits.entries_per_feed"),
        ):
            if held >= limit:
                yield LimitReached(url, limit=key, value=limit)


NO_PROGRESS_DOCUMENTS: Final = 50
"""Archive documents in a row without a new (identity, instant) that end a chain (rule R17)."""
NO_PROGRESS_PAGES: Final = 2
"""Pages in a row without a new identity that end a paged feed (rule R17)."""


# Which links a walk follows (R2, R4, R6)


@dataclass(frozen=True, slots=True, kw_only=True)
class Trail:
    """One way through the documents of a feed; a paged feed needs several (`page_trails`).

    The relation never changes on a trail, despite other links: on a second page `prev` leads to newer entries
    (R0).
    """

    relation: str
    """Leads from each document to the next."""
    first_relation: str = ""
    """Leads from the subscription document to the next one, if by another relation."""
    is_paged: bool = False
    """Whether the documents are pages: a circle or a missing last page is the end (R6, R17)."""
    is_tentative: bool = False
    """Whether the trail counts only if its first target is not newer (R4)."""
    is_closing: bool = False
    """Whether to stop at the first page without news: an earlier walk collected the rest."""

    def target(self, links: Mapping[str, str], *, is_first: bool = False) -> str | None:
        return next(filter(None, (links.get(name) for name in self._names(is_first))), None)

    def dead_end(self, links: Mapping[str, str], url: str, *, is_first: bool = False) -> Note | None:
        return next(filter(None, (dead_link(links, name, url) for name in self._names(is_first))), None)

    @property
    def is_backward(self) -> bool:
        return self.relation == Relation.PREVIOUS

    def _names(self, is_first: bool) -> tuple[str, ...]:
        name = self.first_relation if is_first and self.first_relation else self.relation
        synonym = _SYNONYMS.get(Relation(name)) if self.is_paged else None
        return (name,) if synonym is None else (name, synonym)


# RFC 5005 says `previous`, the registry of relations `prev`; among pages they mean the same.
_SYNONYMS: Final = {Relation.PREVIOUS: Relation.PREV}


def page_trails(
    links: Mapping[str, str],
    names: Iterable[str],
    *,
    is_closing: bool = False,
    is_known: Callable[[str], bool] = lambda _url: False,
) -> tuple[Trail, ...]:
    """Return the trails through a paged feed, in their order (R6; RFC 5005, section 3).

    Each starts at the subscription document, and ends at a page that another trail has collected.
    `is_closing`: an earlier walk collected the whole feed. If then nothing is stored under the first page's
    URL, that page is the subscription document by another URL.
    """
    # From the first page on by `next`, mostly as far as the subscription document; by `previous`, if no other
    # way leads to the first page; by `next` to the last page.
    own = tuple(names)

    def leads_away(relation: str) -> bool:
        trail = Trail(relation=relation, is_paged=True)
        target = trail.target(links)
        if target is None:
            return trail.dead_end(links, "") is not None
        return not any(same_document(target, name) for name in own)

    trails: list[Trail] = []

    def add(relation: str, first_relation: str = "") -> None:
        trails.append(
            Trail(relation=relation, first_relation=first_relation, is_paged=True, is_closing=is_closing)
        )

    if leads_away(Relation.FIRST) and (not is_closing or is_known(links.get(Relation.FIRST, ""))):
        add(Relation.NEXT, Relation.FIRST)
    if leads_away(Relation.PREVIOUS):
        add(Relation.PREVIOUS)
    if leads_away(Relation.NEXT):
        add(Relation.NEXT)
    if not trails and leads_away(Relation.LAST) and not is_closing:
        add(Relation.PREVIOUS, Relation.LAST)
    return tuple(trails)


def first_ascent(spans: Sequence[DateSpan | None]) -> int | None:
    """Return the index of the first page newer than the one before it; None if there is none."""
    steps = enumerate(pairwise(spans), start=1)
    return next((n for n, (one, two) in steps if one and two and two.is_newer_than(one)), None)


def is_ascending(spans: Sequence[DateSpan | None]) -> bool:
    pairs = [(one, two) for one, two in pairwise(spans) if one and two]
    ups = sum(two.is_newer_than(one) for one, two in pairs)
    downs = sum(one.is_newer_than(two) for one, two in pairs)
    return ups > downs


# Which entries a walk has met


class SeenKeys:
    """A set of keys in bounded memory that rarely mistakes a new key for a known one.

    Rule R17 asks whether fifty documents in a row brought nothing new, so a single mistake changes nothing.
    """

    # Up to some thousands of keys it is exact, by Python's own hashes of 64 bits, which nobody can foresee.
    # Beyond that it is a Bloom filter of 2 MiB, with one mistake in 500 at a million keys.

    def __init__(self) -> None:
        self._exact: set[int] | None = set()
        self._bits = bytearray()

    def add(self, keys: Iterable[Key]) -> bool:
        hashes = map(hash, keys)
        has_new = False
        while self._exact is not None:
            before = len(self._exact)
            taken = list(islice(hashes, _AT_ONCE))
            self._exact.update(taken)
            has_new = has_new or len(self._exact) > before
            if len(self._exact) > EXACT_KEYS:
                self._spill(self._exact)
            if len(taken) < _AT_ONCE:
                return has_new
        for each in hashes:
            has_new |= self._mark(each)
        return has_new

    def _spill(self, exact: set[int]) -> None:
        self._exact = None
        self._bits = bytearray(FILTER_BITS // 8)
        for each in exact:
            self._mark(each)

    def _mark(self, key: int) -> bool:
        is_new = False
        bits, place, step = self._bits, key, key >> 24 | 1
        for _ in range(_PROBES):
            index, bit = (place & _MASK) >> 3, 1 << (place & 7)
            if not bits[index] & bit:
                bits[index] |= bit
                is_new = True
            place += step
        return is_new


# Keys in the exact set, in 1 MiB; most feeds never have more.
EXACT_KEYS: Final = 1 << 14
FILTER_BITS: Final = 1 << 24
_PROBES: Final = 4
_MASK: Final = FILTER_BITS - 1
# Keys to add between two checks of the set's size.
_AT_ONCE: Final = 1024


def is_new_throughout(keys: Iterable[Key], known: Collection[EntryId]) -> bool:
    return not any(identity in known for identity, _ in keys)


def has_news(keys: Iterable[Key], known: Mapping[EntryId, float | None]) -> bool:
    """Return whether a key is an unknown entry, or a later update of a known one.

    `known` has the latest update instants; None if an entry has none.
    """
    return any(
        identity not in known or (instant is not None and instant > (known[identity] or _EVER))
        for identity, instant in keys
    )


_EVER: Final = float("-inf")
