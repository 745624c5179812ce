"""A walk along one trail of a feed, from the subscription document to the oldest document (R2).

Documents fetched ahead do not count until the trail links to them, so path and ending do not depend on
look-ahead. Before the next attempt on a hole is due (R14), the walk passes the hole with stored documents
alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from wholefeed.core.notes import ChainLoop, DocumentUnavailable, End, Ending, LimitReached, Note, PageGone
from wholefeed.core.refresh.archives import ArchiveKeeper, ArchiveRules
from wholefeed.core.refresh.asking import FindKnown, Rest, Talk, ask
from wholefeed.core.refresh.basis import Basis, WalkResult
from wholefeed.core.refresh.fetches import TimeOverError, WalkFetches
from wholefeed.core.refresh.keeping import Keeper, drop
from wholefeed.core.refresh.page_rules import PageKeeper, PageNews, PageRules
from wholefeed.core.refresh.responses import FoundDocument, Joined, Responses, WalkContext
from wholefeed.core.refresh.stored import StoredDocument
from wholefeed.core.refresh.subscription import SubscriptionState
from wholefeed.core.text.urls import document_key
from wholefeed.core.walk.ahead import Holes
from wholefeed.core.walk.chain import Arrival, Chain, SameDocument, Trail, exhaustion

# Stored documents passed before other tasks get a turn.
_STEPS_WITHOUT_REST: Final = 64


def walk_archives(
    basis: Basis,
    subscription: SubscriptionState,
    stored: Mapping[str, StoredDocument],
    trail: Trail,
    responses: Responses,
) -> TrailWalk:
    """Return the walk along archive documents; `stored` has documents by `document_key`."""
    chain = Chain(subscription.arrival, trail=trail, site_of=basis.site_of)
    context = WalkContext(basis, chain, stored, responses)
    keeper = ArchiveKeeper(context)
    return TrailWalk(context, ArchiveRules(context, subscription, keeper), keeper)


def walk_pages(
    basis: Basis,
    subscription: SubscriptionState,
    stored: Mapping[str, StoredDocument],
    trail: Trail,
    responses: Responses,
    *,
    passed: Iterable[Arrival] = (),
    ascends: bool = False,
    is_unwatched: bool = False,
) -> TrailWalk:
    """Return the walk along one trail of a paged feed; `passed` are pages of earlier trails.

    See `PageRules` for the other arguments.
    """
    chain = Chain(subscription.arrival, trail=trail, site_of=basis.site_of, passed=passed)
    context = WalkContext(basis, chain, stored, responses)
    news = PageNews({subscription.arrival.url: subscription.has_news})
    if subscription.is_new_throughout:
        news.new_throughout.add(subscription.arrival.url)
    rules = PageRules(context, subscription, news, ascends=ascends, is_unwatched=is_unwatched)
    return TrailWalk(context, rules, PageKeeper(context, news))


class TrailWalk:
    def __init__(self, context: WalkContext, rules: ArchiveRules, keeper: Keeper) -> None:
        stored = context.stored.values()
        attached = {row.url: row.rank for row in stored if row.rank is not None}
        order = sorted(attached, key=attached.__getitem__)
        self.chain = context.chain
        self._context = context
        self._basis = context.basis
        self._trail = context.chain.trail
        self._rules = rules
        self._keeper = keeper
        self._fetches = WalkFetches(context)
        self._holes = Holes(context.chain, limits=context.basis.settings.limits, attached=order)
        self._steps = 0

    def run(self) -> Talk[WalkResult]:
        # Call this once.
        yield from self._keeper.begin()
        is_out_of_time = False
        try:
            why = yield from self._follow()
        except TimeOverError:
            why, is_out_of_time = self._holes.note or self._time_is_over(), True
        jumps = tuple(self._holes.jumps)
        ending = Ending(why, jumps) if isinstance(why, End) else Ending(None, (why, *jumps))
        yield from self._keeper.keep_joined()
        yield from self._keeper.end(ending, ending.notes[0].url if ending.notes else "")
        return WalkResult(
            path=self._keeper.path,
            notes=[*self._keeper.notes, *ending.notes],
            failures=self._rules.failures,
            ending=ending,
            is_out_of_time=is_out_of_time,
            has_met=self.chain.has_met,
        )

    # From document to document

    def _follow(self) -> Talk[End | Note]:
        while (target := self.chain.target) is not None:
            why = self.chain.repetition(target) or self._holes.return_to(target)
            if why is None:
                limit = exhaustion(self.chain, self._basis.settings.limits, target)
                if limit is not None:
                    return limit
                self._fetches.ahead.check(self.chain.tip.url, target)
                self._fetches.steps.append(target)
                found = yield from self._come_to(target)
                why = self._object_to(found) if isinstance(found, FoundDocument) else found
                if why is None:
                    assert isinstance(found, FoundDocument), "only a document joins"
                    self._join(found)
                    if self._trail.is_closing and not found.arrival.news:
                        return End.COLLECTED
                    continue
            end = self._end_of(why)
            if isinstance(end, End) or not (yield from self._pass_hole(end)):
                return end
        return self.chain.dead_end or End.OLDEST

    def _object_to(self, found: FoundDocument) -> SameDocument | Note | None:
        objection = self.chain.objection(found.arrival)
        if isinstance(objection, Note):
            self._fetches.spoilt[document_key(found.arrival.url)] = objection
        return objection

    def _end_of(self, why: SameDocument | Note) -> End | Note:
        # True ends: no older link; a link to itself, also through a redirect (R17). Among pages (R6, R17)
        # these, too: any link back; `NO_PROGRESS_PAGES` in a row; a page that does not exist, unless a `last`
        # link says that it should; on a closing trail, the first page without news.
        if isinstance(why, SameDocument):
            return End.ITSELF
        if why.kind is ChainLoop and self._trail.is_paged:
            return End.CIRCLE
        if why.kind is PageGone and self._is_needed(why.url):
            return DocumentUnavailable(why.url, reason=why.facts["reason"])
        return why

    def _is_needed(self, url: str) -> bool:
        """Return whether more pages lie behind a missing one, by the page before."""
        is_start = self.chain.tip is self.chain.path[0] and bool(self._trail.first_relation)
        return is_start or self.chain.leads_past(url)

    def _join(self, found: FoundDocument) -> None:
        place = len(self.chain.path)
        has_news = self.chain.join(found.arrival)
        self._keeper.pending.append(Joined(found, has_news, place))

    # One document

    def _come_to(self, target: str) -> Talk[FoundDocument | Note]:
        url = self._fetches.ahead.spelling(target)
        note = self._fetches.spoilt.get(document_key(url))
        if note is not None:
            return note
        found = yield from self._obtain(url)
        body_bytes = found.arrival.body_bytes if isinstance(found, FoundDocument) else None
        self._fetches.ahead.note_response(url, body_bytes)
        return found

    def _obtain(self, url: str) -> Talk[FoundDocument | Note]:
        responses, is_alone = self._context.responses, self._holes.note is not None
        while True:
            self._steps += 1
            if self._steps % _STEPS_WITHOUT_REST == 0:
                yield Rest()
            if self._keeper.pending and self._keeper.is_needed_before(url):
                yield from self._keeper.keep_joined()
            response = responses.find(url)
            if response is not None:
                return (yield from self._rules.judge(url, response))
            if document_key(url) not in responses.flying:
                if self._is_left_alone(url):
                    return DocumentUnavailable(url, reason=DocumentUnavailable.slug)
                stored = self._rules.serve_stored(url)
                if stored is not None:
                    return stored
            yield from self._fetches.begin(url, is_alone=is_alone)
            yield from self._keeper.keep_joined()
            yield from self._fetches.hear(url, is_alone=is_alone)

    def _time_is_over(self) -> Note:
        limit = self._basis.settings.walk_seconds
        url = self._fetches.ahead.spelling(self._fetches.steps[-1])
        return LimitReached(url, limit="limits.walk_seconds", value=limit)

    # Behind a missing document (R34)

    def _pass_hole(self, note: Note) -> Talk[bool]:
        self._holes.open(note, self._fetches.steps)
        while (guess := self._holes.next_guess()) is not None:
            found = yield from self._come_to(guess)
            if isinstance(found, Note):
                self._holes.lacks(found.url)
                continue
            yield from self._keeper.keep_joined()
            yield from self._keeper.end(None, note.url)
            if (yield from self._is_new(found)) and self._holes.admits(found.arrival):
                self._fetches.steps += self._holes.looked_at
                self._holes.jump(found.arrival.url)
                self._join(found)
                return True
            self._fetches.ahead.refuse(found.arrival.url)
            self._holes.refuse(found.arrival)
            if found.fresh is not None:
                yield from drop(self._context.responses, found.fresh)
        return False

    def _is_new(self, found: FoundDocument) -> Talk[bool]:
        """Return whether a document behind a hole is part of the feed, or brings an entry not stored."""
        # An update of a stored entry does not count: a publisher that answers every URL with its newest
        # entries would keep the walk going.
        # Documents on the path must be stored already.
        if found.row is not None:
            return self._is_part(found.row)
        known = yield from ask(FindKnown(found.arrival.url, found.arrival))
        return any(identity not in known.updated_at for identity, _ in found.arrival.keys or ())

    def _is_left_alone(self, url: str) -> bool:
        """Return whether to skip a document behind a hole: the hole waits (R14), or it was replaced."""
        hole, row = self._holes.note, self._context.find_stored(url)
        if hole is None:
            return False
        return self._basis.waits(hole.url) if row is None else not self._is_part(row)

    def _is_part(self, row: StoredDocument) -> bool:
        """Return whether a stored document is part of the feed, or returns with the one before the hole."""
        # A detached document was mostly replaced (R15): only a link brings it back, not a guess. But
        # documents that left at one instant, with a whole feed or with its format (R1, R23), belong together.
        tip = self._context.find_stored(self.chain.tip.url)
        is_back = tip is not None and tip.rank is None and tip.detached_at == row.detached_at
        return row.rank is not None or is_back
