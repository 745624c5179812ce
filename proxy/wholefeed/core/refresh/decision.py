"""What a refresh does next: one object that decides, over a port that does it. It has no I/O and no clock.

    decision = Decision(basis, documents)
    failed = await decision.run()   # None, or why the subscription document could not be had

States, and what leads on:

    ADDED          what people had kept is stored, or goes, and so do entries that are removed (I2); a feed at
                   rest is published as it was: the end.
                   What the publisher's pages list is stored
    SUBSCRIPTION   asked for, stored, its reply noted   failed: the end
    REREAD         bodies that an older parser read
    COPIES         what a web archive gave is stored    nothing new, nothing unfinished: the end
                                                        else, by the kind of the feed:
    WHOLE          everything else leaves (R1, R5)                                        -> CONCLUDE
    COLLECT        no links, but an adapter fits                                          -> CONCLUDE
    ALONE          no links, or none that are followed (R7)                               -> CONCLUDE
    UNWALKED       the request may not walk             published as `loading`: the end
    WALK           the chain, or all pages                                                -> CONCLUDE
    CONCLUDE       drift, what is missing, published: the end

SUBSCRIPTION is `wholefeed.core.refresh.subscription`, COLLECT `wholefeed.core.refresh.collecting`, each walk
of WALK `wholefeed.core.refresh.trail`; the rest stands here.

Beside that line it is told or asked at any time of a walk: `predicted`, of the link in the head of a document
that still arrives; `is_foreseen`, whether that is of no use; `is_ahead`, whether a fetch may still give way
to others; `is_met`, whether a redirect leads to what is there already.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from wholefeed.core.adapters.base import GONE, NOTHING_COLLECTED, Collection
from wholefeed.core.links import says_incremental
from wholefeed.core.listing.lists import LEAST
from wholefeed.core.model import Family, Kind, Relation, Role, State
from wholefeed.core.notes import (
    DocumentTruncated,
    DocumentUnavailable,
    End,
    Ending,
    FormatChanged,
    FormatMismatch,
    HistoryNotOffered,
    LastNotReached,
    MementoServed,
    NewerNotOlder,
    Note,
    PageGone,
    PagesAscend,
    PageStale,
)
from wholefeed.core.parse.limits import PARSER_VERSION
from wholefeed.core.refresh.accounting import NO_SHIFTS, Shifts
from wholefeed.core.refresh.collecting import Collecting
from wholefeed.core.refresh.listing import Listing
from wholefeed.core.refresh.port import (
    Answer,
    Attempt,
    Basis,
    Failure,
    FreshDocument,
    LedBack,
    Placement,
    StoredDocument,
    StoredFeed,
    SubscriptionFailed,
    WalkResult,
    adds_to,
    subscription_of,
)
from wholefeed.core.refresh.subscription import Current, Subscription
from wholefeed.core.refresh.trail import Answers, PageTrailWalk, TrailWalk
from wholefeed.core.text.dates import DAY_SECONDS, format_rfc3339
from wholefeed.core.text.urls import document_key
from wholefeed.core.walk.ahead import next_urls
from wholefeed.core.walk.chain import Arrival, Trail, first_ascent, is_ascending, page_trails
from wholefeed.core.walk.walk import settle_path


class Decision:
    """The decision of one refresh of a feed with these stored documents; see the module's docstring."""

    def __init__(self, basis: Basis, documents: Sequence[StoredDocument]) -> None:
        self._io = basis.io
        self._basis = basis
        self._feed = basis.feed
        self._documents = documents
        self._collecting: Collecting | None = None
        self._answers = Answers()
        self._walking: TrailWalk | None = None  # the walk that runs, or was the last
        self.notes: tuple[Note, ...] = ()
        """On the subscription document."""
        self.progress = basis.progress
        self.is_confirmed = False
        """Whether the publisher has been heard of the subscription document."""

    def predicted(self, url: str, older: str) -> None:
        """Take the older link in the head of a document that still arrives: it may be fetched now (R0)."""
        if self._walking is not None:
            self._walking.predicted(url, older)

    def is_ahead(self, url: str) -> bool:
        """Whether the path of the walk has yet to come to a document: then its fetch gives way to others."""
        return self._walking is None or self._walking.is_ahead(url)

    def is_met(self, url: str) -> bool:
        """Whether the document of a URL is on the path of the walk: a redirect to it need not be followed."""
        if self._collecting is not None and self._collecting.is_met(url):
            return True
        return self._walking is not None and self._walking.has_met(url)

    def is_foreseen(self, url: str, under_way: Sequence[str]) -> bool:
        """Whether a document links to what is fetched without that: enough are, and their URLs count on.

        Where that is wrong, the document that the walk has come to tells it: its head is read in any case.
        """
        if len(under_way) < self._basis.settings.window or not self.is_ahead(url):
            return False
        return bool(next_urls(under_way[-3:], 1))

    async def run(self) -> SubscriptionFailed | None:
        """Bring the feed up to date; return why there is no subscription document, where there is none."""
        has_added, listing = await self._take_added(), self._basis.request.listing
        if has_added and listing is None and self._is_at_rest:
            await self._place_added(self._feed.family, self._feed.kind, self._feed.state)
            await self._io.publish(state=self._feed.state, notes=None)
            return None
        subscription = Subscription(self._basis, self._documents)
        current = await subscription.obtain()
        if isinstance(current, SubscriptionFailed):
            return current
        self.is_confirmed = subscription.is_confirmed
        self.notes = current.notes
        is_new = current.has_changed or has_added or listing is not None
        if any(row.parser_version != PARSER_VERSION for row in self._documents):
            is_new |= await self._io.reread()
        renaming_at = self._feed.renaming_at
        if self._basis.request.is_full or (renaming_at is not None and renaming_at <= self._basis.now()):
            is_new |= await self._io.settle_ids()
        if self._basis.copies:
            is_new |= await self._store_copies(current)
        if current.has_changed and any(row.is_listed for row in self._documents):
            await self._io.unlist()
        if is_new:
            self._documents = await self._io.documents()
        self._collecting = self._collector(current)
        if is_new or current.has_moved or (not self._basis.copies and self._is_due(current)):
            await self._reconstruct(current)
        return None

    def _is_due(self, current: Current) -> bool:
        """Whether there is something to be done though nothing is new."""
        is_collecting_due = self._collecting is not None and self._collecting.is_due
        is_archive_due = _is_archive_due(self._basis, self._documents, current)
        is_archive_due = is_archive_due or self._is_accounting_due(current)
        return is_archive_due or is_collecting_due or self._is_unfinished()

    def _is_accounting_due(self, current: Current) -> bool:
        """Return whether archives are to be looked at for entries that others have lost (R35)."""
        is_chain = current.kind in (Kind.ARCHIVED, Kind.LEGACY) and self._feed.shifts != NO_SHIFTS
        return is_chain and Shifts.read(self._feed.shifts).is_due(self._basis.now())

    def _is_unfinished(self) -> bool:
        feed, basis = self._feed, self._basis
        if basis.request.is_forced or basis.request.is_full or feed.is_walking or not feed.digest:
            return True
        if feed.revision != feed.published_revision:  # an earlier refresh did not come to its end
            return True
        if _known_ascent(feed) is not None:  # what is new is not in the subscription document
            return True
        if feed.state is State.REMEMBERED and self._is_followed(feed.kind):  # it was switched on
            return True
        if feed.state is State.COLLECTED and feed.kind is Kind.PLAIN and self._collecting is None:  # off
            return True
        now = basis.now()
        return feed.state is State.LOADING or any(not each.waits(now) for each in basis.missing.values())

    async def _reconstruct(self, current: Current) -> None:
        first, collecting = subscription_of(self._documents), self._collecting
        may_walk = self._basis.request.may_walk
        self.progress.entries = 0 if first is None else first.entries
        if current.kind is Kind.COMPLETE:
            await self._leave_alone()
            walked = WalkResult(ending=Ending(End.WHOLE))
        elif collecting is not None and (may_walk or not collecting.wants_all):
            walked = await self._collect(current, collecting)
        elif collecting is None and not self._is_followed(current.kind):
            end = End.NOT_OFFERED if current.kind is Kind.PLAIN else End.NOT_FOLLOWED
            walked = WalkResult(state=State.REMEMBERED, notes=self._denied(current), ending=Ending(end))
        elif not may_walk:
            await self._io.publish(state=State.LOADING, notes=current.notes)
            return
        else:
            walked = await self._walk(current)
        if current.kind is Kind.PLAIN and walked.state is State.REMEMBERED:
            walked = self._listed(current, walked)
        await self._conclude(current, walked)

    def _is_followed(self, kind: Kind) -> bool:
        """Whether the links of such a feed are followed; the others are R1's, R5's and R7's."""
        is_paged = kind is Kind.PAGED and self._basis.settings.follows_pages
        return is_paged or kind in (Kind.ARCHIVED, Kind.LEGACY)

    def _collector(self, current: Current) -> Collecting | None:
        """R26: only where nothing is linked, and of a publisher that is there."""
        if current.kind is not Kind.PLAIN or not self.is_confirmed:
            return None
        return Collecting.of(self._basis, self._documents, current)

    async def _collect(self, current: Current, collecting: Collecting) -> WalkResult:
        if not self._feed.digest and collecting.is_due:
            await self._io.publish(state=State.LOADING, notes=current.notes)
        walked = await collecting.run()
        if collecting.has_begun:
            await self._end_walk(walked)
        return walked

    async def _leave_alone(self) -> None:
        """R1, R5: the subscription document is the whole feed."""
        attached = (row for row in self._documents if row.rank is not None)
        leaving = [row.id for row in attached if row.role is not Role.SUBSCRIPTION]
        if leaving:
            await self._io.detach(leaving, is_withdrawn=False)

    async def _walk(self, current: Current) -> WalkResult:
        if not self._feed.digest:
            await self._io.publish(state=State.LOADING, notes=current.notes)
        walked = await self._follow(current)
        await self._io.stop_fetching()
        for fresh in self._answers.fresh.values():
            self._io.drop(fresh.arrival.url)
        if current.kind is Kind.PAGED and not walked.path:
            walked = await self._instead_of_pages(current) or walked
        await self._end_walk(walked)
        return walked

    async def _instead_of_pages(self, current: Current) -> WalkResult | None:
        """R26: what `next` led to failed at once; the publisher may have its pages elsewhere."""
        self._collecting = Collecting.of(self._basis, self._documents, current)
        if self._collecting is None:
            return None
        walked = await self._collecting.run()
        return walked if walked.state is State.COLLECTED else None

    async def _end_walk(self, walked: WalkResult) -> None:
        reason = next((note.slug for note in walked.notes if note.partial), "end")
        await self._io.end_walk(reason, 1 + len(walked.path))

    # Following the links of a subscription document, by what kind of feed it is (R2, R4, R6)

    async def _follow(self, current: Current) -> WalkResult:
        """Walk along the chain, or through the pages; what looked like a chain can turn out as pages (R4)."""
        doubts: list[Note] = []
        if current.kind is not Kind.PAGED:
            trail = Trail(relation=current.relation, is_tentative=current.is_tentative)
            stored = self._stored(Role.ARCHIVE)
            self._walking = TrailWalk(self._basis, current, stored, trail, self._answers)
            walked = await self._walking.run()
            doubts = [note for note in walked.notes if note.kind is NewerNotOlder]
            if not doubts:
                return walked
            await self._io.set_kind(Kind.PAGED)
            if not self._is_followed(Kind.PAGED):
                return replace(walked, state=State.REMEMBERED)
        walked = await self._pages(current)
        return replace(walked, notes=[*doubts, *walked.notes])

    async def _pages(self, current: Current) -> WalkResult:
        """Collect the pages from the document that was asked for, one walk a trail; come to all in order."""
        stored, asked = self._stored(Role.PAGE), current.arrival
        ascent = _known_ascent(self._feed)
        is_whole = self._was_collected(asked.family) and not self._basis.missing and ascent is None

        def is_known(url: str) -> bool:
            return document_key(url) in stored

        names = (asked.url, asked.final_url, *asked.hops)
        before, behind = _Pages(), _Pages()
        total = WalkResult(state=State.PAGED)
        passed: list[Arrival] = []
        for trail in page_trails(asked.links, names, is_closing=is_whole, is_known=is_known):
            is_next = trail.relation == Relation.NEXT and not trail.first_relation
            if is_next and is_whole and not current.has_news:
                total.ending = Ending(End.COLLECTED)
                continue
            walking = self._walking = PageTrailWalk(
                self._basis,
                current,
                stored,
                trail,
                self._answers,
                tuple(passed),
                ascends=ascent is not None,
                is_unwatched=self._is_interrupted or self._was_otherwise,
            )
            walked = await walking.run()
            met = list(walking.path[1 + len(passed) :])
            passed += met
            step = -1 if trail.is_backward else 1
            side = behind if is_next or trail.first_relation == Relation.LAST else before
            # What repeats other pages is not kept, and the order of the pages is not judged by it: beyond the
            # last page some publishers send the first one again.
            kept = [arrival for arrival in met if arrival.news or is_known(arrival.url)]
            side.ids += walked.path[::step]
            side.arrivals += kept[::step]
            total.notes += walked.notes
            total.failures |= walked.failures
            if total.is_true_end:
                total.ending = walked.ending
        _put_in_order(total, asked, before, behind, ascent)
        if total.is_true_end and total.ending.end is not End.COLLECTED:
            note = await self._look_at_last([asked, *passed], stored, total)
            if note is not None and note not in total.notes:  # a walk may have been there
                total.notes.append(note)
                total.ending = Ending(None, (note,)) if note.partial else total.ending
        return total

    async def _look_at_last(
        self, pages: Sequence[Arrival], stored: Mapping[str, StoredDocument], walked: WalkResult
    ) -> Note | None:
        """R6: return what is to be said of the page that is named as the last one, if no link led to it.

        It is asked for: some publishers name one page too many, or name the last one in another way.
        """
        asked = pages[0]
        last = asked.links.get(Relation.LAST) or pages[-1].links.get(Relation.LAST) or ""
        # One that is empty, or repeats others, is there and is not what was to be there.
        reached = [asked, *(page for page in pages[1:] if page.entries and page.news)]
        tip = reached[-1]
        names = {document_key(name) for page in reached for name in (page.url, page.final_url, *page.hops)}
        if not last or document_key(last) in names:
            return None
        if self._basis.waits(last):
            return LastNotReached(last)
        answer = await self._answer_to(last, stored.get(document_key(last)))
        match answer:
            case Failure() if answer.publisher_status in GONE:
                return PageGone(last, reason=answer.slug)
            case Failure():
                walked.failures[last] = answer
                return DocumentUnavailable(last, reason=answer.slug)
            case FreshDocument():
                is_last = await self._is_among(answer, reached, walked)
            case LedBack():
                is_last = document_key(answer.met_url) in {document_key(tip.url), document_key(tip.final_url)}
            case _:
                is_last = False
        return None if is_last else LastNotReached(last)

    async def _answer_to(self, url: str, row: StoredDocument | None) -> Answer | None:
        """Ask for one more page, unless a walk has; None: the time is over."""
        key, answers = document_key(url), self._answers
        if key not in answers.fresh and key not in answers.failures:
            self._io.start_timer()
            if key not in answers.fetching:
                self._io.fetch(url, None if self._basis.request.is_full else row, Relation.LAST)
            while (ended := await self._io.wait()) is not None:
                self.progress.fetched += 1
                answers.take(*ended)
                if document_key(ended[0]) == key:
                    return ended[1]
            return None
        return answers.fresh.get(key) or answers.failures[key]

    async def _is_among(self, last: FreshDocument, pages: Sequence[Arrival], walked: WalkResult) -> bool:
        """Whether a page that is named as the last one is the last of these, or repeats what these hold.

        What repeats the first one, or where pages have repeated each other, tells nothing.
        """
        asked, tip = pages[0], pages[-1]
        if last.arrival.digest == asked.digest:
            return tip is asked and Relation.NEXT not in asked.links
        if walked.ending.end is not End.OLDEST:
            return False
        known = await self._io.known(last.arrival.url, last.arrival)
        keys = list(last.arrival.keys or ())
        return last.arrival.digest == tip.digest or (
            bool(keys) and all(identity in known.updated_at for identity, _ in keys)
        )

    def _was_collected(self, family: Family) -> bool:
        """Whether all pages were collected before, in the family of today (R23)."""
        feed = self._feed
        is_ended = feed.state is State.PAGED and not feed.is_walking and not self._is_interrupted
        return is_ended and feed.family is family and not self._basis.request.is_full

    @property
    def _was_otherwise(self) -> bool:
        """Whether the feed was no paged one, or its pages were not followed, when it was looked at last."""
        is_paged = self._feed.kind is Kind.PAGED
        return not is_paged or self._feed.state in (State.COMPLETE, State.COLLECTED, State.REMEMBERED)

    @property
    def _is_interrupted(self) -> bool:
        """Whether an earlier refresh of what was collected did not come to its end.

        What it brought is stored, and says no longer that there may be more of it on the pages behind.
        """
        feed = self._feed
        was_collected = feed.state in (State.PAGED, State.PARTIAL) and not feed.is_walking
        return was_collected and feed.revision != feed.published_revision

    def _stored(self, role: Role) -> dict[str, StoredDocument]:
        return {document_key(row.url): row for row in self._documents if row.role is role}

    # What a web archive has of documents that their publisher does not give (R33; RFC 7089)

    async def _store_copies(self, current: Current) -> bool:
        """Store the copies that came; return whether there were any of use.

            of another document of the chain, or a page -> kept detached, until the walk comes by
                                                           and misses it
            of the subscription document of a feed      -> a page behind all others, if it brings
                                                           anything that no other document holds

        Where nothing is stored of a feed that is gone, the newest copy stands in for its subscription
        document (`wholefeed.core.refresh.subscription`). A copy is the feed as it once stood: it settles,
        detaches and buries nothing, and what it says of the feed itself counts for nothing. The feed is
        partial while one stands, and the publisher's own document replaces it.
        """
        documents = self._documents
        own = {(row.role, document_key(row.url)) for row in documents if not row.memento}
        serving = {row.memento for row in documents if row.role is Role.SUBSCRIPTION and row.rank is not None}
        is_any = False
        for copy in self._basis.copies:
            is_page = copy.is_subscription or current.kind is Kind.PAGED
            role = Role.PAGE if is_page else Role.ARCHIVE
            url = copy.copy_url if copy.is_subscription else copy.url
            is_of_use = (role, document_key(url)) not in own
            if is_of_use and copy.is_subscription and copy.copy_url not in serving:
                known = await self._io.known(copy.copy_url, copy.fresh.arrival, with_copies=True)
                is_of_use = adds_to(known, copy.fresh, copy.captured_at)
            if is_of_use:
                rank = _BEHIND_ALL - int(copy.captured_at) if copy.is_subscription else None
                await self._io.put(copy.copy_url, Placement(url=url, role=role, rank=rank))
            else:
                self._io.drop(copy.copy_url)
            is_any |= is_of_use
        return is_any

    # What is added: what people had kept of the feed (I1), and what its publisher's pages list (H7)

    async def _take_added(self) -> bool:
        """Store what is added, as no part of the feed yet; drop what is taken back or removed (I2).

        Say whether any was.

        Such a document is a copy, as a web archive's is: it settles, detaches and buries nothing, and says
        nothing of the feed.
        """
        attached = {row.url: row.rank for row in self._documents if row.is_listed}
        for copy in self._basis.added:
            place = Placement(url=copy.copy_url, role=Role.PAGE, rank=attached.get(copy.copy_url))
            await self._io.put(copy.copy_url, place)
        request = self._basis.request
        removed = [row.id for row in self._documents if row.url in request.removes]
        if removed:
            await self._io.remove(removed)
        if request.forgets:
            await self._io.forget(request.forgets)
        has_changed = bool(self._basis.added or removed or request.forgets)
        if has_changed:
            self._documents = await self._io.documents()
        return has_changed

    @property
    def _is_at_rest(self) -> bool:
        """Whether an earlier refresh came to its end: then no publisher is asked to publish more."""
        feed = self._feed
        is_whole = bool(feed.digest) and feed.revision == feed.published_revision and not feed.is_walking
        is_read = all(row.parser_version == PARSER_VERSION for row in self._documents)
        return is_whole and is_read and feed.state is not State.LOADING

    async def _place_added(
        self, family: Family, kind: Kind, state: State, *, has_lists: bool | None = None
    ) -> None:
        """Let what is added be part of the feed, behind all else; of one that is complete it is none.

        Its publisher says that this is all: it would not be so with what it does not have any more.

        Args:
            family: Of the feed.
            kind: Likewise.
            state: Likewise.
            has_lists: Whether its publisher's pages are part of it; None: they are as they were.
        """
        is_whole = state is State.COMPLETE or kind is Kind.COMPLETE
        leaving, coming = list[int](), dict[int, int]()
        for row in self._documents:
            if not row.is_added:
                continue
            is_wanted = has_lists if row.is_listed else True
            if is_whole or is_wanted is False:
                leaving += [row.id] if row.rank is not None else []
            elif is_wanted and row.rank is None and row.family is family:
                coming[row.id] = _BEHIND_ALL - (0 if row.is_listed else int(row.fetched_at))
        if leaving:
            await self._io.detach(leaving, is_withdrawn=False)
        if coming:
            await self._io.attach(coming)

    def _listed(self, current: Current, walked: WalkResult) -> WalkResult:
        """H7: the same walk, of a feed whose history stands in its publisher's pages, if it does."""
        family, listing = current.arrival.family, self._listing
        rows = [row for row in self._documents if row.is_listed and row.family is family]
        if listing.family != family or not any(row.entries for row in rows):
            return walked
        notes, asked = list(listing.notes()), self._basis.request.listing
        partial = tuple(note for note in notes if note.partial)
        failures = {
            each.url: Failure(slug=each.slug, publisher_status=each.status) for each in listing.missing
        }
        return replace(
            walked,
            state=State.LISTED,
            notes=[*walked.notes, *notes],
            failures=walked.failures | ({} if asked is None else failures),
            ending=Ending(None, partial) if partial else Ending(End.LISTED),
            untried=frozenset() if asked is not None else frozenset(each.url for each in listing.missing),
        )

    @property
    def _listing(self) -> Listing:
        asked = self._basis.request.listing
        return Listing.read(self._feed.listing) if asked is None else asked

    def _plan_look(self, current: Current, *, is_plain: bool, missing: Sequence[Attempt]) -> None:
        """H1, H8: note what is known of the publisher's pages, and when they are to be looked at.

        `is_plain`: nothing else brings the history of the feed.
        """
        feed, listing, now = self._feed, self._listing, self._basis.now()
        first = subscription_of(self._documents)
        at = feed.list_at
        if not is_plain or first is None or first.entries < LEAST:
            at = None
        elif self._basis.request.listing is not None:
            pages = {each.url for each in listing.missing}
            at = listing.next_at((each.next_at for each in missing if each.url in pages), now=now)
        elif at is None or listing.family not in ("", current.arrival.family):
            at = max(now, listing.retry_at or now)
        elif current.has_gap:
            at = min(at, max(now, listing.retry_at or now, (listing.looked_at or now) + DAY_SECONDS))
        written = listing.written()
        if (written, at) != (feed.listing, feed.list_at):
            self._io.note_listing(written, at)

    def _denied(self, current: Current) -> list[Note]:
        """Return the note on a history that its publisher does not give, where nobody was asked now (R27)."""
        if self._feed.collection == NOTHING_COLLECTED or self.is_confirmed:
            return []
        known = Collection.read(self._feed.collection)
        url = current.arrival.final_url
        return [HistoryNotOffered(url, adapter=known.adapter, reason=known.reason)] if known.is_denied else []

    # The end: what leaves the feed, what is missing of it, and what it is from now on

    async def _conclude(self, current: Current, walked: WalkResult) -> None:
        """Take the drift, then publish the feed with what is missing of it.

        The documents are as they were before the walk.
        """
        basis, documents, state = self._basis, self._documents, walked.state
        notes = (*current.notes, *walked.notes)
        if current.kind is not Kind.COMPLETE:  # else nothing but the subscription document stands
            notes = (*notes, *_standing_copies(basis, documents))
        if state is not State.COMPLETE:
            notes = (*notes, *_put_aside(basis, documents, current.arrival.family))
        if walked.path:
            await self._take_drift(current, walked)
        if not walked.is_true_end or any(note.partial for note in notes):
            state = State.PARTIAL
        is_listed, is_plain = walked.state is State.LISTED, walked.state in (State.LISTED, State.REMEMBERED)
        is_plain = is_plain and current.kind is Kind.PLAIN
        await self._place_added(current.arrival.family, current.kind, state, has_lists=is_listed)
        missing = await self._missing(notes, walked)
        self._plan_look(current, is_plain=is_plain, missing=missing)
        await self._io.publish(state=state, notes=notes, ending=walked.ending, missing=missing)

    async def _missing(self, notes: Sequence[Note], walked: WalkResult) -> tuple[Attempt, ...]:
        """Return all that makes the feed partial, each with the time of its next attempt (R14)."""
        partial = {note.url: note for note in notes if note.partial}
        unseen = [
            attempt
            for url, attempt in self._basis.missing.items()
            if url not in partial and not await self._is_there_or_gone(attempt, walked)
        ]  # the walk has not come by: it is as it was
        return (*unseen, *(_attempt(self._basis, url, note, walked) for url, note in partial.items()))

    async def _is_there_or_gone(self, attempt: Attempt, walked: WalkResult) -> bool:
        """Whether a stored document that counted as missing does so no longer, though another one is missing.

        The walk has come to it, or nothing links to it any more.
        """
        if walked.is_true_end or attempt.reason not in _OF_STORED or self.is_met(attempt.url):
            return True
        key = document_key(attempt.url)
        return key in _linked(self._documents) and key not in _linked(await self._io.documents())

    async def _take_drift(self, current: Current, walked: WalkResult) -> None:
        """R15: what the publisher replaced in the chain leaves; the order is the path's.

        Nothing leaves a feed of pages (R6), or one that says that earlier entries are part of it (-00, 3).
        """
        role = Role.PAGE if walked.state is State.PAGED else Role.ARCHIVE
        chain = [
            row.id
            for row in self._documents
            if row.role is role and row.rank is not None and not row.is_capture
        ]
        stays = role is Role.PAGE or says_incremental(current.arrival.links)
        is_true_end = walked.is_true_end and not stays and not walked.has_copies
        is_full = self._basis.request.is_full
        drift = settle_path(chain, walked.path, is_true_end=is_true_end, is_full=is_full)
        if drift.detached:
            await self._io.detach(drift.detached, is_withdrawn=True)
        if drift.is_reordered or (role is Role.PAGE and await self._is_disordered(drift.order)):
            await self._io.attach({each: rank for rank, each in enumerate(drift.order)})

    async def _is_disordered(self, pages: Sequence[int]) -> bool:
        """Pages are not always met in the order that they are to stand in."""
        listed = set(pages)
        return [row.id for row in await self._io.documents() if row.id in listed] != list(pages)


_BEHIND_ALL: Final = 1 << 40
"""Rank of a copy of the year 1970; those made later stand before it."""


def _standing_copies(basis: Basis, documents: Sequence[StoredDocument]) -> list[Note]:
    """Return notes on the copies of the subscription document: as it was last, and as it was earlier."""
    copies = (row for row in documents if row.memento and not row.is_added)
    attached = [row for row in copies if row.rank is not None]
    notes = [row.as_memento() for row in attached if row.role is Role.SUBSCRIPTION]
    of_use = (row for row in attached if row.is_capture and row.live_bytes)
    captures = sorted(of_use, key=lambda row: row.fetched_at)
    if captures:
        oldest, newest = captures[0], captures[-1]
        times = [format_rfc3339(each.fetched_at) for each in (oldest, newest)]
        when = times[1] if oldest is newest else f"{times[0]} to {times[1]}"
        facts = {"copy_url": newest.memento, "captured": when, "copies": len(captures)}
        notes.append(MementoServed(basis.feed.fetch_url, **facts))
    return notes


def _is_archive_due(basis: Basis, documents: Sequence[StoredDocument], current: Current) -> bool:
    """Return whether an archive on the stored path is to be looked at though nothing is new now (R13).

    The subscription document may have changed within a day of the last look, and not since.
    """
    if current.kind not in (Kind.ARCHIVED, Kind.LEGACY):
        return False
    stored = {document_key(row.url): row for row in documents if row.role is Role.ARCHIVE}
    if all(row.is_final for row in stored.values()):
        return False
    trail, links, is_newest = Trail(relation=current.relation), current.arrival.links, True
    while (row := stored.pop(document_key(trail.target(links) or ""), None)) is not None:
        if row.is_due(current.changed_at, is_newest=is_newest, now=basis.now()):
            return True
        links, is_newest = row.links, False
    return False


@dataclass(slots=True)
class _Pages:
    """Pages in the order of `next`, on one side of the document that was asked for."""

    ids: list[int] = field(default_factory=list)
    arrivals: list[Arrival] = field(default_factory=list)


def _put_in_order(
    total: WalkResult, asked: Arrival, before: _Pages, behind: _Pages, known: Note | None
) -> None:
    """R20: newest first, also where the publisher counts its pages from the oldest one."""
    arrivals = [*before.arrivals, asked, *behind.arrivals]
    spans = [arrival.span for arrival in arrivals]
    ascent = first_ascent(spans)
    if ascent is not None:
        total.notes.append(PagesAscend(arrivals[ascent].url))
    elif known is not None:
        total.notes.append(known)
    ids = before.ids + behind.ids
    total.path = ids[::-1] if known is not None or is_ascending(spans) else ids


def _known_ascent(feed: StoredFeed) -> Note | None:
    """Return where the pages of a feed get newer along `next`, if that was seen: its news is on the last."""
    if PagesAscend.code not in feed.notes:
        return None
    notes = json.loads(feed.notes)
    return next((PagesAscend(each["url"]) for each in notes if each["code"] == PagesAscend.code), None)


def _put_aside(basis: Basis, documents: Sequence[StoredDocument], family: Family) -> list[Note]:
    """Return notes on what is stored in other formats than the feed's, for each of them (R23)."""
    left: dict[Family, float] = {}
    for row in documents:
        if row.family is not family and row.detached_at is not None and row.entries and not row.memento:
            left[row.family] = max(left.get(row.family, 0.0), row.detached_at)
    return [
        FormatChanged(basis.feed.fetch_url, found=family, other=other, last_had=format_rfc3339(at))
        for other, at in left.items()
    ]


def _linked(documents: Sequence[StoredDocument]) -> set[str]:
    """Return the keys of all that stored documents link to."""
    return {document_key(target) for row in documents for target in row.links.values()}


_OF_STORED: Final = frozenset({DocumentTruncated.slug, FormatMismatch.slug})
"""Why a document that is stored may count as missing."""


_STALE_SECONDS: Final = 60.0
"""Until a page that a cache has given in an older copy is asked for again, with the next refresh."""


def _attempt(basis: Basis, url: str, note: Note, walked: WalkResult) -> Attempt:
    earlier, failure = basis.missing.get(url), walked.failures.get(url)
    is_waiting = failure is None and earlier is not None and earlier.waits(basis.now())
    is_untried = is_waiting or not walked.has_tried or url in walked.untried
    if earlier is not None and is_untried:
        return earlier
    reason = note.slug if failure is None else failure.slug
    if failure is not None and note.kind is DocumentUnavailable:
        reason = note.facts["reason"]
    attempt = basis.attempted(url, earlier, failure, reason=reason)
    return replace(attempt, next_at=basis.now() + _STALE_SECONDS) if note.kind is PageStale else attempt
