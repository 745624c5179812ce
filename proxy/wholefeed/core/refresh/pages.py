"""What a walk along the pages of a feed (R6) does with each of them: `PageRules` and `PageKeeper`.

all was collected before (a closing trail)    every page is revalidated, up to the first that brought
nothing new: a normal poll costs one page
it was not, or something is missing           a page behind one that brought something new, or behind
a gap; the others come from the store
nobody has looked at the pages for a while    every page is revalidated
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from wholefeed.core.adapters.base import GONE
from wholefeed.core.model import Role
from wholefeed.core.notes import DocumentUnavailable, Note, PageGone, PageStale
from wholefeed.core.refresh.answers import Found, Joined, Rejected, WalkContext
from wholefeed.core.refresh.archives import ArchiveRules
from wholefeed.core.refresh.arrivals import Failure, FreshDocument, Placement, Response, Unchanged, adds_to
from wholefeed.core.refresh.asking import FindKnown, Talk, Touch, ask
from wholefeed.core.refresh.basis import Basis
from wholefeed.core.refresh.keeping import Keeper, drop
from wholefeed.core.refresh.stored import StoredDocument
from wholefeed.core.refresh.subscription import SubscriptionState
from wholefeed.core.text.dates import DAY_SECONDS
from wholefeed.core.text.urls import document_key
from wholefeed.core.walk.chain import Arrival, has_news, is_new_throughout


@dataclass(slots=True)
class PageNews:
    """Whether pages, and the subscription document, brought anything that was not stored; by URL."""

    brought: dict[str, bool] = field(default_factory=dict)
    new_throughout: set[str] = field(default_factory=set)
    """Those of which no entry was stored."""
    is_past_gap: bool = False
    """Whether a page was new, or could not be had the last time: the stored ones behind may be outdated."""

    def compare(self, fresh: FreshDocument) -> Talk[None]:
        """Find out whether a page brought anything that is not stored.

        That is asked when the pages before it are stored, so the order in which they come decides nothing.
        """
        url, keys = fresh.arrival.url, list(fresh.arrival.keys or ())
        known = yield from ask(FindKnown(url, fresh.arrival))
        self.brought[url] = has_news(keys, known.updated_at)
        if is_new_throughout(keys, known.updated_at):
            self.new_throughout.add(url)


class PageRules(ArchiveRules):
    """Decides for the pages of a trail; see the module's docstring.

    Args:
        context: As for each walk.
        subscription: The subscription document.
        news: What the pages have brought.
        ascends: Whether pages are known to get newer along `next`: then the last one is fetched again.
        is_unwatched: Whether nobody has looked at the pages for a while: then every page is.
    """

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

    def judge(self, url: str, response: Response | Rejected) -> Talk[Found | Note]:
        """As for archives; an outdated copy of a page counts as missing: entries before it would be lost."""
        if isinstance(response, FreshDocument | Unchanged) and (yield from self._is_stale(url, response)):
            if isinstance(response, FreshDocument):
                yield from drop(self.context.answers, response)
            return PageStale(url)
        return (yield from super().judge(url, response))

    def _is_stale(self, url: str, response: FreshDocument | Unchanged) -> Talk[bool]:
        """R6: return whether entries are missing between a page and the one before it, new throughout.

        Then all have moved: it brings some that were not stored, or those that only the page before had, or
        its dates reach up to that. Where it does none of this for a day, its publisher has put as many others
        in their place.
        """
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
        """Return whether a page links to one that was gone and is tried again: does it link there still?"""
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
        """Always: what leaves a page is remembered, so one that broke off takes nothing away."""
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
        """R6: a page that was never seen and is not there is the end; one that was collected is missing."""
        if failure.publisher_status in GONE and self.context.find_stored(url) is None:
            return PageGone(url, reason=failure.slug)
        return DocumentUnavailable(url, reason=failure.slug)

    def _is_settled(self) -> bool | None:
        return None


class PageKeeper(Keeper):
    """Stores pages (R6).

    A page is not stored where each of its entries is served from another document and none of its copies is
    the better one. What leaves a page is remembered, unless another document holds it.
    """

    def __init__(self, context: WalkContext, news: PageNews) -> None:
        super().__init__(context)
        self._news = news

    def is_needed_before(self, url: str) -> bool:
        """Whether a stored page is asked for again depends on what the pages before it brought."""
        return self.context.find_stored(url) is not None

    def _keep_fresh(self, joined: Joined, fresh: FreshDocument) -> Talk[None]:
        row, url, rank = joined.found.row, joined.url, self._rank_of(joined)
        self._news.is_past_gap |= row is None or is_gap(self.basis, url)
        if url not in self._news.brought:
            yield from self._news.compare(fresh)
        if row is None and not (yield from self._adds(url, fresh)):
            yield from drop(self.answers, fresh)
            return
        is_same = row is not None and (row.digest, row.links) == (fresh.arrival.digest, fresh.arrival.links)
        if row is not None and is_same and not row.is_stand_in:
            yield from drop(self.answers, fresh)
            yield Touch(row.id)
            self.path.append((yield from self._reattach(row, rank)))
            return
        # What a complete feed took away stays away (R1, R25), but not what another format took (R23).
        is_part = row is not None and (row.rank is not None or row.family is not self.context.family)
        remembers = row if is_part else None
        placement = Placement(url=url, role=Role.PAGE, rank=rank, remembers=remembers)
        self.path.append((yield from self._put(url, placement)))

    def _adds(self, url: str, fresh: FreshDocument) -> Talk[bool]:
        """R6: return whether a page holds an entry that no other document does, or a better copy.

        What is remembered is not counted: such a copy leaves when its identity is settled (R8).
        """
        if self._news.brought[url]:
            return True
        known = yield from ask(FindKnown(url, fresh.arrival, with_copies=True))
        return adds_to(known, fresh, self.basis.now())


def is_gap(basis: Basis, url: str) -> bool:
    """Return whether a page could not be had the last time: its stored copy may be outdated."""
    return url in basis.missing and not basis.is_truncated(url)
