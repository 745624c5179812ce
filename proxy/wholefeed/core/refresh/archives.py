"""The rules for archive documents on a walk (R2), and the storing of those on its path (R35)."""

from __future__ import annotations

from dataclasses import replace
from typing import Final, NamedTuple

from wholefeed.core.adapters.base import GONE
from wholefeed.core.model import Role
from wholefeed.core.notes import (
    ArchiveChanged,
    ArchivesShift,
    DocumentUnavailable,
    Ending,
    FormatMismatch,
    Note,
)
from wholefeed.core.refresh.accounting import Accounting, AccountVerdict, Shifts
from wholefeed.core.refresh.arrivals import Failure, FreshDocument, LedBack, Placement, Response, Unchanged
from wholefeed.core.refresh.asking import (
    Depart,
    Doubtful,
    KeepTogether,
    NoteFeed,
    SettleDoubtful,
    Talk,
    Touch,
    ask,
)
from wholefeed.core.refresh.keeping import Keeper, drop
from wholefeed.core.refresh.responses import FoundDocument, Joined, Rejected, WalkContext
from wholefeed.core.refresh.stored import StoredDocument
from wholefeed.core.refresh.subscription import SubscriptionState
from wholefeed.core.schedule import next_attempt_at
from wholefeed.core.walk.chain import Arrival


class ArchiveRules:
    """The rules for fetching archive documents again and for judging responses.

    `keeper` says which documents to fetch in search of departed entries (R35).
    """

    def __init__(
        self, context: WalkContext, subscription: SubscriptionState, keeper: ArchiveKeeper | None = None
    ) -> None:
        self.context = context
        self.basis = context.basis
        self.failures: dict[str, Failure] = {}
        self._subscription = subscription
        self._keeper = keeper

    def serve_stored(self, url: str) -> FoundDocument | Note | None:
        """Return the stored document, or a note if it is missing; None if a fetch is needed."""
        row = self.context.find_stored(url)
        if row is not None and (row.is_stand_in or not self._is_gap(url)):
            return None if self._is_asked_again(url, row) else FoundDocument(row.as_arrival(), row)
        if self.basis.waits(url):
            return DocumentUnavailable(url, reason=self.basis.missing[url].reason)
        return None

    def judge(self, url: str, response: Response | Rejected) -> Talk[FoundDocument | Note]:
        row = self.context.find_stored(url)
        if isinstance(response, LedBack):
            met = self.context.chain.met(response.met_url)
            assert met is not None, "the redirect leads to a document of the path"
            return FoundDocument(replace(met, url=url, final_url=response.met_url))
        if isinstance(response, FreshDocument):
            if row is None or self._may_replace(row, response):
                return FoundDocument((yield from self._describe(response)), row, fresh=response)
            yield from drop(self.context.responses, response)
            self.context.responses.refuse(url)
            response = Rejected()
        if isinstance(response, Failure):
            self.failures[url] = response
        if row is not None and self._serves(row, url, response):
            yield from self._touch(row, response)
            return FoundDocument(self._confirm(row), row, response=response)
        assert isinstance(response, Failure), "a document without a stored copy is fetched whole"
        if row is not None and self._is_unfit(row, url):  # an error at the retry changes nothing (R23)
            response = replace(response, slug=FormatMismatch.slug)
        return self._explain(url, response)

    def _touch(self, row: StoredDocument, response: Response | Rejected) -> Talk[None]:
        if isinstance(response, Unchanged):
            yield Touch(row.id, is_settled=self._is_settled(), is_uncacheable=response.is_uncacheable)
        elif isinstance(response, Failure) and response.publisher_status in GONE and not row.is_stand_in:
            yield Touch(row.id)

    def _is_asked_again(self, url: str, row: StoredDocument) -> bool:
        if row.is_stand_in or self._is_unfit(row, url) or self.basis.is_truncated(url):
            return not self.basis.waits(url)
        return self.basis.request.is_full or self._is_due(url, row)

    def _is_due(self, url: str, row: StoredDocument) -> bool:
        if self._keeper is not None and self._keeper.asks(row, url):
            return True
        changed_at, is_newest = self._subscription.changed_at, len(self.context.chain.path) == 1
        return row.is_due(changed_at, is_newest=is_newest, now=self.basis.now())

    def _is_gap(self, url: str) -> bool:
        """Return whether a document counts as missing, until it comes in the feed's format (R23)."""
        return self._came_otherwise(url)

    def _came_otherwise(self, url: str) -> bool:
        """Return whether a document's last fetch gave another family than the feed's (R23)."""
        attempt = self.basis.missing.get(url)
        is_other = attempt is not None and attempt.reason == FormatMismatch.slug
        return is_other and self.context.family is self.basis.feed.family

    def _is_unfit(self, row: StoredDocument, url: str) -> bool:
        """Return whether a stored document, or its last fetch, is in another format (R23)."""
        return row.family is not self.context.family or self._came_otherwise(url)

    def _may_replace(self, row: StoredDocument, fresh: FreshDocument) -> bool:
        return fresh.may_replace(row, self.context.family) or self.basis.is_truncated(fresh.arrival.url)

    def _serves(self, row: StoredDocument, url: str, response: Response | Rejected) -> bool:
        """Return whether a stored document serves, even after most failures (docs/faults.md row 53)."""
        return not isinstance(response, Failure) or row.is_stand_in or not self._is_unfit(row, url)

    def _describe(self, fresh: FreshDocument) -> Talk[Arrival]:
        yield from ()
        return fresh.arrival

    def _confirm(self, row: StoredDocument) -> Arrival:
        return row.as_arrival()

    def _explain(self, url: str, failure: Failure) -> Note:
        return DocumentUnavailable(url, reason=failure.slug)

    def _is_settled(self) -> bool | None:
        """Return whether an unchanged archive is final, behind the newest one (R13)."""
        return len(self.context.chain.path) > 1


class ArchiveKeeper(Keeper):
    """The keeper of archive documents, with the account of departed entries (R35).

    Changed documents wait for the result.
    """

    def __init__(self, context: WalkContext) -> None:
        super().__init__(context)
        self._accounting = Accounting(Shifts.read(self.basis.feed.shifts), now=self.basis.now())
        self._verdict = AccountVerdict.IDLE
        # Changed documents by URL, newest first, until their departed entries are accounted for.
        self._waiting: dict[str, _WaitingArchive] = {}
        self._noted_shifts = self.basis.feed.shifts

    def begin(self) -> Talk[None]:
        """Load the entries that an earlier refresh could not account for."""
        request, shifts = self.basis.request, Shifts.read(self.basis.feed.shifts)
        doubtful = (yield from ask(Doubtful())) if shifts.left else frozenset()
        self._accounting = Accounting(
            shifts, doubtful, now=self.basis.now(), is_full=request.is_full, is_forced=request.is_forced
        )

    def asks(self, row: StoredDocument, url: str) -> bool:
        return self._accounting.asks(url, row.checked_at)

    def is_needed_before(self, url: str) -> bool:
        return self.pending[-1].found.replaced is not None or self._accounting.is_open

    def end(self, ending: Ending | None, missing_url: str) -> Talk[None]:
        if ending is not None and ending.is_true_end:
            self._verdict = self._accounting.end(is_true_end=True)
        elif self._accounting.is_open:
            response = self.responses.find(missing_url)
            failure = response if isinstance(response, Failure) else None
            self._verdict = self._accounting.account_missing(
                missing_url, self._try_again_at(missing_url, failure)
            )
        yield from self._keep_accounted()
        if ending is not None and self._accounting.shifts.is_known(self.basis.now()):
            notes = [note for note in self.notes if note.kind is not ArchiveChanged]
            self.notes = [*notes, ArchivesShift(self.context.chain.path[0].url)]

    def _keep(self, joined: Joined) -> Talk[None]:
        self._verdict = yield from self._account(joined.found)
        yield from super()._keep(joined)
        yield from self._keep_accounted()

    def _keep_fresh(self, joined: Joined, fresh: FreshDocument) -> Talk[None]:
        row, url = joined.found.row, joined.url
        if row is not None and not row.is_stand_in and row.digest != fresh.arrival.digest:
            self.notes.append(ArchiveChanged(url))
        placement = Placement(
            url=row.url if row is not None else url,
            role=Role.ARCHIVE,
            rank=self._rank_of(joined),
            is_settled=joined.place > 1,
            brought_news=joined.has_news,
            may_wait=row is None,
        )
        if self._verdict is AccountVerdict.IDLE:
            self.path.append((yield from self._put(url, placement)))
        else:
            self._waiting[url] = _WaitingArchive(joined.found, placement, len(self.path))
            self.path.append(_UNKNOWN if row is None else row.id)

    # The account

    def _account(self, found: FoundDocument) -> Talk[AccountVerdict]:
        accounting, row, fresh, url = self._accounting, found.row, found.fresh, found.arrival.url
        if fresh is not None:
            return (yield from self._account_fresh(found, fresh))
        assert row is not None, "what joins without a fetch is stored"
        is_refused = found.is_refused or (accounting.is_open and row.is_stand_in)
        if found.failure is not None or is_refused:
            return accounting.account_missing(url, self._try_again_at(url, found.failure))
        if found.response is not None:
            return accounting.account_unchanged(url, row.fetched_at)
        if accounting.asks(url, row.checked_at):  # nobody asked for it: its time has not come (R14)
            return accounting.account_missing(url, self._try_again_at(url, None))
        return accounting.account_skipped(url, row.checked_at, row.fetched_at)

    def _account_fresh(self, found: FoundDocument, fresh: FreshDocument) -> Talk[AccountVerdict]:
        url, entries = found.arrival.url, [identity for identity, _ in fresh.arrival.keys or ()]
        if (old := found.replaced) is not None:
            rows = (each.found.row for each in self._waiting.values())
            waiting = [*(row.id for row in rows if row is not None), old.id]
            departure = yield from ask(Depart(old.id, url, fresh.arrival, waiting))
            return self._accounting.account_changed(url, departure, entries)
        if found.row is not None and found.row.digest == fresh.arrival.digest:
            return self._accounting.account_unchanged(url, found.row.fetched_at)
        return self._accounting.account_added(url, entries)

    def _try_again_at(self, url: str, failure: Failure | None) -> float:
        """Return when to ask again for a document that a pass could not fetch (R14)."""
        attempt, basis = self.basis.missing.get(url), self.basis
        if failure is None and attempt is not None:
            return attempt.next_at
        if failure is None:
            return basis.now() + basis.settings.retry_missing_seconds
        return next_attempt_at(
            reason=failure.slug,
            status=failure.publisher_status,
            attempts=self._accounting.shifts.count_attempts(url),
            now=basis.now(),
            retry_after_seconds=failure.retry_after_seconds,
            retry_missing_seconds=basis.settings.retry_missing_seconds,
        )

    def _keep_accounted(self) -> Talk[None]:
        if self._verdict is AccountVerdict.CLOSED:
            yield from self._keep_waiting()
            if self._accounting.settles:
                yield SettleDoubtful()
        elif self._verdict is AccountVerdict.BROKEN:
            yield from self._keep_doubtful()
        elif self._accounting.is_passing and self._has_much_waiting():
            self._accounting.mark_doubtful()
            yield from self._keep_doubtful()
        yield from self._note_shifts()
        self._verdict = AccountVerdict.IDLE

    def _has_much_waiting(self) -> bool:
        sizes = [each.found.arrival.body_bytes for each in self._waiting.values()]
        return len(sizes) >= MOST_WAITING or sum(sizes) > _MOST_BYTES

    def _keep_waiting(self) -> Talk[None]:
        """Store the waiting documents in one transaction, so that a moved entry is never absent."""
        if not self._waiting:
            return
        waiting, self._waiting = dict(reversed(self._waiting.items())), {}
        placements = {url: each.placement for url, each in waiting.items()}
        numbers = yield from ask(KeepTogether(placements))
        for (url, each), number in zip(waiting.items(), numbers, strict=True):
            self.path[each.place] = number
            self.responses.remove(url)

    def _keep_doubtful(self) -> Talk[None]:
        """Store the waiting documents, oldest first, and remember their departed entries."""
        yield from self._note_shifts()
        waiting, self._waiting = self._waiting, {}
        for url, each in reversed(waiting.items()):
            if (old := each.found.replaced) is not None:
                yield from self._put(url, replace(each.placement, remembers=old, is_doubtful=True))
        for url, each in waiting.items():
            # Documents new to the feed come last: until then no stored document links to them.
            if each.found.replaced is None:
                self.path[each.place] = yield from self._put(url, each.placement)

    def _note_shifts(self) -> Talk[None]:
        written = self._accounting.shifts.written()
        if written != self._noted_shifts:
            self._noted_shifts = written
            yield NoteFeed(shifts=written)


class _WaitingArchive(NamedTuple):
    found: FoundDocument
    placement: Placement
    place: int


# Number in the path for a document not stored yet.
_UNKNOWN: Final = 0
# Limits for waiting documents (R35): their count, and the bytes of their bodies.
MOST_WAITING: Final = 64
_MOST_BYTES: Final = 8 << 20
