"""The rules for pages on a walk (R6): `PageRules` and `PageKeeper`."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from wholefeed.core.adapters.base import GONE
from wholefeed.core.model import Role
from wholefeed.core.notes import DocumentUnavailable, Note, PageGone, PageStale
from wholefeed.core.refresh.archives import ArchiveRules
from wholefeed.core.refresh.arrivals import Failure, FreshDocument, Placement, Response, Unchanged, adds_to
from wholefeed.core.refresh.asking import FindKnown, Talk, Touch, ask
from wholefeed.core.refresh.basis import Basis
from wholefeed.core.refresh.keeping import Keeper, drop
from wholefeed.core.refresh.responses import FoundDocument, Joined, Rejected, WalkContext
from wholefeed.core.refresh.stored import StoredDocument
from wholefeed.core.refresh.subscription import SubscriptionState
from wholefeed.core.text.dates import DAY_SECONDS
from wholefeed.core.text.urls import document_key
from wholefeed.core.walk.chain import Arrival, has_news, is_new_throughout


@dataclass(slots=True)
class PageNews:
    brought: dict[str, bool] = field(default_factory=dict)
    new_throughout: set[str] = field(default_factory=set)
    is_past_gap: bool = False
    """Whether a page was new or missing: stored pages behind it may be outdated."""

    def compare(self, fresh: FreshDocument) -> Talk[None]:
        """Find out whether a page brought entries not stored before."""
        # The pages before it must be stored first, so that the order of arrival does not matter.
        url, keys = fresh.arrival.url, list(fresh.arrival.keys or ())
        known = yield from ask(FindKnown(url, fresh.arrival))
        self.brought[url] = has_news(keys, known.updated_at)
        if is_new_throughout(keys, known.updated_at):
            self.new_throughout.add(url)


class PageRules(ArchiveRules):
    # After a walk that collected all, revalidation ends at the first page without news, so a poll costs one
    # page. After another walk, pages behind one with news, or behind a gap, are revalidated. With `ascends`,
    # pages get newer along `next`, so the last one is fetched again. With `is_unwatched`, nobody has looked
    # at the pages for a while, so each one is fetched again.

    def __init__(
        self,
        context: WalkContext,
        subscription: SubscriptionState,
        news: PageNews,
        *,
        ascends: bool,
        is_unwatched: bool,
    ) -> None:
        super().__init__(context, subscription)
        self._news = news
        self._ascends = ascends
        self._is_unwatched = is_unwatched

    def judge(self, url: str, response: Response | Rejected) -> Talk[FoundDocument | Note]:
        """Judge a response as for archives, but count an outdated page as missing."""
        # With such a copy the entries in front of it would be lost.
        if isinstance(response, FreshDocument | Unchanged) and (yield from self._is_stale(url, response)):
            if isinstance(response, FreshDocument):
                yield from drop(self.context.responses, response)
            return PageStale(url)
        return (yield from super().judge(url, response))

    def _is_stale(self, url: str, response: FreshDocument | Unchanged) -> Talk[bool]:
        """Return whether entries are missing between a page and the one before it, which is all new (R6)."""
        # All entries have moved then. So a current page has unstored entries, or entries known only from the
        # page before, or dates that reach up to that page. After a day without any of these, the publisher
        # has replaced the entries.
        chain = self.context.chain
        attempt, tip, trail = self.basis.missing.get(url), chain.tip, chain.trail
        if attempt is None or attempt.reason != PageStale.slug:
            is_start = tip is chain.path[0] and bool(trail.first_relation)
            is_new_before = tip.url in self._news.new_throughout
            if not (trail.is_closing and is_new_before) or is_start or trail.is_backward:
                return False
        elif self.basis.now() > attempt.first_at + DAY_SECONDS:
            return False
        if isinstance(response, Unchanged):
            return True
        span = response.arrival.span
        if span is not None and tip.span is not None and span.newest_at >= tip.span.oldest_at:
            return False
        known = yield from ask(FindKnown(response.arrival.url, response.arrival, with_pages=True))
        keys = list(response.arrival.keys or ())
        is_elsewhere = bool(keys) and all(identity in known.on_pages for identity, _ in keys)
        return is_elsewhere and not has_news(keys, known.updated_at)

    def _is_asked_again(self, url: str, row: StoredDocument) -> bool:
        if row.is_stand_in:
            return super()._is_asked_again(url, row)
        has_brought = self._news.brought.get(self.context.chain.tip.url, False)
        is_open = self.context.chain.trail.is_closing or self._news.is_past_gap or has_brought
        return is_open or self._leads_to_gone(row) or super()._is_asked_again(url, row)

    def _leads_to_gone(self, row: StoredDocument) -> bool:
        """Return whether a page's link to a gone page is worth checking again."""
        behind = self.context.chain.trail.target(row.links) or ""
        attempt = self.basis.missing.get(behind)
        return attempt is not None and attempt.status in GONE and not self.basis.waits(behind)

    def _is_due(self, _url: str, row: StoredDocument) -> bool:
        behind = document_key(self.context.chain.trail.target(row.links) or "")
        is_unwatched = self._is_unwatched or row.rank is None
        return is_unwatched or (self._ascends and behind not in self.context.stored)

    def _is_gap(self, url: str) -> bool:
        return is_gap(self.basis, url)

    def _may_replace(self, _row: StoredDocument, _fresh: FreshDocument) -> bool:
        """Return True: departing entries are remembered, so a truncated page loses none."""
        return True

    def _serves(self, row: StoredDocument, _url: str, response: Response | Rejected) -> bool:
        return isinstance(response, Unchanged) or row.is_stand_in

    def _describe(self, fresh: FreshDocument) -> Talk[Arrival]:
        if not self.context.chain.trail.is_closing:
            return fresh.arrival
        yield from self._news.compare(fresh)  # one page is fetched at a time there
        return replace(fresh.arrival, news=self._news.brought[fresh.arrival.url])

    def _confirm(self, row: StoredDocument) -> Arrival:
        self._news.is_past_gap |= self._is_gap(row.url)
        self._news.brought[row.url] = row.rank is None  # while it was no part of the feed, nobody looked
        return replace(row.as_arrival(), news=not self.context.chain.trail.is_closing)

    def _explain(self, url: str, failure: Failure) -> Note:
        """Return a note: an unknown page that does not exist is the end, a known one is missing (R6)."""
        if failure.publisher_status in GONE and self.context.find_stored(url) is None:
            return PageGone(url, reason=failure.slug)
        return DocumentUnavailable(url, reason=failure.slug)

    def _is_settled(self) -> bool | None:
        return None


class PageKeeper(Keeper):
    # A page is not stored if other documents serve each of its entries and none of its copies is better.
    # Entries that leave a page are remembered, unless another document holds them.

    def __init__(self, context: WalkContext, news: PageNews) -> None:
        super().__init__(context)
        self._news = news

    def is_needed_before(self, url: str) -> bool:
        """Return whether the page is stored: then news on earlier pages decides about a fetch."""
        return self.context.find_stored(url) is not None

    def _keep_fresh(self, joined: Joined, fresh: FreshDocument) -> Talk[None]:
        row, url, rank = joined.found.row, joined.url, self._rank_of(joined)
        self._news.is_past_gap |= row is None or is_gap(self.basis, url)
        if url not in self._news.brought:
            yield from self._news.compare(fresh)
        if row is None and not (yield from self._adds(url, fresh)):
            yield from drop(self.responses, fresh)
            return
        is_same = row is not None and (row.digest, row.links) == (fresh.arrival.digest, fresh.arrival.links)
        if row is not None and is_same and not row.is_stand_in:
            yield from drop(self.responses, fresh)
            yield Touch(row.id)
            self.path.append((yield from self._reattach(row, rank)))
            return
        # Entries that a complete feed removed stay away (R1, R25); those of another format (R23) return.
        is_part = row is not None and (row.rank is not None or row.family is not self.context.family)
        remembers = row if is_part else None
        placement = Placement(url=url, role=Role.PAGE, rank=rank, remembers=remembers)
        self.path.append((yield from self._put(url, placement)))

    def _adds(self, url: str, fresh: FreshDocument) -> Talk[bool]:
        """Return whether a page holds an entry that no other document has, or a better copy (R6)."""
        # Remembered copies do not count: they leave when their identity is settled (R8).
        if self._news.brought[url]:
            return True
        known = yield from ask(FindKnown(url, fresh.arrival, with_copies=True))
        return adds_to(known, fresh, self.basis.now())


def is_gap(basis: Basis, url: str) -> bool:
    """Return whether a page was missing before, so that its stored copy may be outdated."""
    return url in basis.missing and not basis.is_truncated(url)
