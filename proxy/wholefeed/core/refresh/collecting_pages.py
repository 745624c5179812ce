"""The pages of an adapter that are stored, and those that are dropped (R6, R27)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from wholefeed.core.adapters.base import AdapterPage, Marks, PageQuestion, PageResponse, Refused, bears
from wholefeed.core.model import EntryId, Role
from wholefeed.core.notes import Note
from wholefeed.core.origins import Origin
from wholefeed.core.refresh.arrivals import FreshDocument, KnownEntries, Placement, adds_to
from wholefeed.core.refresh.asking import Drop, FindKnown, KeepDocument, ReadEntries, Rows, Talk, Touch, ask
from wholefeed.core.refresh.collected_feed import CollectedFeed
from wholefeed.core.refresh.collecting_failures import CollectingFailures
from wholefeed.core.refresh.stored import StoredDocument
from wholefeed.core.text.urls import document_key


class CollectedPages:
    def __init__(
        self, feed: CollectedFeed, documents: Sequence[StoredDocument], failures: CollectingFailures
    ) -> None:
        self._basis = feed.basis
        self._subscription = feed.subscription
        self._adapter = feed.adapter.name
        self._failures = failures
        pages = [row for row in documents if row.role is Role.PAGE]
        self._stored = {document_key(row.url): row for row in pages}
        # Keys of pages stored since `_stored` was read.
        self._stored_since: set[str] = set()
        attached = [row for row in documents if row.rank is not None]
        self._documents = len(attached)
        self._bytes = sum(row.body_bytes for row in attached)
        self._entries = sum(row.entries for row in attached)
        self._held: dict[str, FreshDocument] = {}
        self.first: tuple[EntryId, ...] = ()
        """Entries of the subscription document, from the top; set before the first request."""
        self.is_all = False
        self.walk = 0
        """Number of the walk through all pages; 0 for a look for news."""
        known = feed.known
        self.has_kept = any(
            row.origin is Origin.ADAPTER
            and row.rank is not None
            and (not known.is_denied or row.found_in == known.walk)
            for row in pages
        )
        """Whether a page of this pattern is part of the feed, a denied walk's excepted."""
        self.has_put = False

    def begin_walk(self, walk: int) -> None:
        """Store every page from now on, and use stored pages of this walk."""
        self.is_all, self.walk = True, walk

    def limits_reached(self, question: PageQuestion) -> Iterator[Note]:
        """Yield a note on each limit (R18) that forbids a new page."""
        if document_key(question.url) in self._stored or question.is_head:
            return iter(())
        limits = self._basis.settings.limits
        return limits.list_reached_limits(self._documents, self._bytes, self._entries, question.url)

    # Pages that need no request

    def take_held(self, question: PageQuestion) -> Talk[PageResponse | None]:
        # A page that does not serve is dropped.
        fresh = self._held.pop(question.url, None)
        if fresh is None:
            return None
        if question.is_again:
            yield Drop(question.url)
            return None
        return (yield from self.take(question, fresh))

    def read_stored(self, question: PageQuestion) -> Talk[AdapterPage | None]:
        row = self._stored.get(document_key(question.url))
        if row is None or row.rank is None or not self.is_all or row.found_in != self.walk:
            return None
        if question.is_head or question.is_again:
            return None
        return describe_stored_page(row, (yield from ask(ReadEntries(row.id))))

    # Pages that have come

    def take(self, question: PageQuestion, fresh: FreshDocument) -> Talk[AdapterPage | Refused]:
        # A page that is not of this feed, a probe, an unchanged page (noted as checked) and one without news
        # are dropped. A page with `PageQuestion.is_held` stays in memory until the adapter asks again, or the
        # walk ends.
        url, arrival = question.url, fresh.arrival
        objection = self._objection_to(url, fresh)
        if objection is not None:
            yield Drop(url)
            return self._failures.note_objection(question, objection)
        now, identities = self._basis.now(), tuple(identity for identity, _ in arrival.keys or ())
        known = yield from ask(FindKnown(url, arrival, with_copies=True))
        news = sum(identity not in known.updated_at for identity in identities)
        row = yield from self._row(url)
        if question.is_needed and not identities:
            self._failures.note_unavailable(url, "empty")
        else:
            self._failures.forget(url)
        if question.is_probe:
            yield Drop(url)
        elif question.is_held:
            self._held[url] = fresh
        elif row is not None and row.rank is not None and row.digest == arrival.digest:
            yield Drop(url)
            yield Touch(row.id, found_in=self.walk or None)
        elif self._is_worth_keeping(fresh, identities, known, now):
            yield from self._keep(question, fresh, row)
        else:
            yield Drop(url)
        return describe_fresh_page(fresh, identities, news=news, now=now)

    def _objection_to(self, url: str, fresh: FreshDocument) -> Refused | None:
        """Return why a page does not belong to the feed (R27), or None."""
        # The site must be that of the subscription document or of the feed's own URL: a blog may move its
        # feed alone elsewhere.
        arrival, subscription, site_of = fresh.arrival, self._subscription, self._basis.site_of
        if arrival.family is not subscription.family:
            return Refused("format")
        sites = {site_of(subscription.final_url), site_of(self._basis.feed.url)}
        is_ours = site_of(arrival.final_url) in sites
        if not is_ours and (not arrival.site_id or arrival.site_id != subscription.site_id):
            return Refused("cross-origin-unconfirmed")
        return None if bears(arrival.final_url, url) else Refused("redirected")

    def _is_worth_keeping(
        self, fresh: FreshDocument, identities: tuple[EntryId, ...], known: KnownEntries, now: float
    ) -> bool:
        """Return whether a page adds entries; a repetition of the subscription document does not (R27)."""
        if identities in ((), self.first):
            return False
        has_news = any(identity not in known.updated_at for identity in identities)
        return has_news or self.is_all or adds_to(known, fresh, now, is_collected=True)

    def _row(self, url: str) -> Talk[StoredDocument | None]:
        if document_key(url) in self._stored_since:
            rows = yield from ask(Rows())
            self._stored = {document_key(row.url): row for row in rows if row.role is Role.PAGE}
            self._stored_since.clear()
        return self._stored.get(document_key(url))

    def _keep(self, question: PageQuestion, fresh: FreshDocument, row: StoredDocument | None) -> Talk[None]:
        url, arrival = question.url, fresh.arrival
        yield KeepDocument(
            url,
            Placement(
                url=row.url if row is not None else url,
                role=Role.PAGE,
                rank=question.place,
                remembers=row,
                found_by=self._adapter,
                found_in=self.walk,
            ),
        )
        self.has_put = self.has_kept = True
        self._stored_since.add(document_key(url))
        self._documents += row is None
        self._bytes += arrival.body_bytes
        self._entries += arrival.entries
        self._basis.progress.add(url, arrival.entries)


# Pages as adapters see them


def describe_stored_page(row: StoredDocument, entries: Sequence[tuple[EntryId, float | None]]) -> AdapterPage:
    dates = tuple(at for _, at in entries)
    return AdapterPage(
        url=row.final_url,
        family=row.family,
        identities=tuple(identity for identity, _ in entries),
        updated_at=row.updated_at,
        validators=row.validators,
        is_ascending=is_downward(dates),
        dates=dates,
        marks=Marks.read(row.marks or "{}"),
        had_at=row.checked_at,
        is_stored=True,
    )


def describe_fresh_page(
    fresh: FreshDocument, identities: tuple[EntryId, ...], *, news: int, now: float
) -> AdapterPage:
    return AdapterPage(
        url=fresh.arrival.final_url,
        family=fresh.arrival.family,
        identities=identities,
        updated_at=fresh.updated_at,
        validators=fresh.validators,
        is_ascending=is_downward(fresh.order),
        dates=tuple(fresh.order),
        has_updates=any(at is not None for _, at in fresh.arrival.keys or ()),
        marks=fresh.marks,
        news=news,
        had_at=now,
    )


def is_downward(order: Sequence[float | None]) -> bool | None:
    """Return whether entries get newer downwards; None if their dates do not tell."""
    dates = [at for at in order if at is not None]
    ups = sum(one < two for one, two in pairwise(dates))
    downs = sum(one > two for one, two in pairwise(dates))
    return None if ups == downs else ups > downs
