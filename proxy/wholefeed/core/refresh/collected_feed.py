"""The instants when the pages of a feed without links are due (rules R27, R29 to R32)."""

from __future__ import annotations

from dataclasses import dataclass, replace

from wholefeed.core.adapters.base import Adapter, Collection, Marks
from wholefeed.core.model import Family, State
from wholefeed.core.refresh.basis import Basis
from wholefeed.core.refresh.stored import StoredDocument, StoredFeed
from wholefeed.core.refresh.subscription import SubscriptionState
from wholefeed.core.schedule import seconds_left
from wholefeed.core.text.dates import DAY_SECONDS, HOUR_SECONDS, WEEK_SECONDS, parse_rfc822


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectedFeed:
    # A person who insists (R14) need only respect a pause.
    basis: Basis
    state: SubscriptionState
    subscription: StoredDocument
    adapter: Adapter
    known: Collection

    # When something is due

    @property
    def is_due(self) -> bool:
        # News is due after a change of the subscription document or its validators, and once a day.
        basis = self.basis
        if self.is_resting:
            return False
        if self.is_insisted or self.state.has_changed or basis.feed.is_walking:
            return True
        if basis.missing:  # each is tried again in its time, and the rest with it
            return any(not attempt.waits(basis.now()) for attempt in basis.missing.values())
        was_off = basis.feed.state is State.REMEMBERED and self.known.is_ended
        return self.wants_all or self.has_moved or self.is_daily or was_off

    @property
    def wants_all(self) -> bool:
        # All pages are due the first time, on a full refresh, after a change of format, and to finish a walk.
        return self.known.is_begun or not self.known.is_ended or self.basis.request.is_full

    @property
    def is_insisted(self) -> bool:
        return self.basis.request.is_forced or self.basis.request.is_full

    @property
    def is_resting(self) -> bool:
        """Whether to ask for nothing yet: the host wants a pause, or the next attempt is not due."""
        if self.basis.settings.is_collect_paused(self.subscription.final_url):
            return True
        if self.is_insisted:
            return False
        noted_at, retry_at, now = self.known.noted_at, self.known.retry_at, self.basis.now()
        return seconds_left(noted_at, retry_at, now=now, longest_seconds=WEEK_SECONDS) > 0

    @property
    def has_moved(self) -> bool:
        # Some sites invent validators for each response, so after a look without news, new ones count an hour
        # later.
        is_other = self.validators != (self.known.etag, self.known.last_modified)
        is_hourly = self._is_past(self.known.looked_at, HOUR_SECONDS)
        return self._is_unread or (is_other and (is_hourly or not self.known.is_idle))

    @property
    def is_daily(self) -> bool:
        return self._is_past(self.known.daily_at, DAY_SECONDS)

    @property
    def _is_unread(self) -> bool:
        return self.subscription.digest.hex() != self.known.digest

    def _is_past(self, at: float | None, seconds: float) -> bool:
        """Return whether an instant is so long ago; also for None, and for one in the future."""
        return at is None or not 0 <= self.basis.now() - at < seconds

    # The subscription document

    @property
    def validators(self) -> tuple[str, str]:
        return self.state.validators or self.subscription.validators

    @property
    def has_news(self) -> bool:
        """Whether the subscription document has news without a finished look."""
        return self.state.has_news if self.state.has_changed else self._is_unread

    @property
    def is_interrupted(self) -> bool:
        """Whether the subscription document has changed since the last finished look."""
        # A look in between failed, was interrupted or never began, so only entries seen by it are stored.
        stored = self.state.stored_digest
        return self.known.is_ended and (stored is None or stored.hex() != self.known.digest)

    # A walk through all pages

    @property
    def continues_walk(self) -> bool:
        """Whether an interrupted walk goes on with its stored pages."""
        began_at = self.known.began_at
        is_recent = began_at is not None and 0 <= self.basis.now() - began_at <= WEEK_SECONDS
        return self.known.is_begun and is_recent and not self.basis.request.is_full

    def begin_walk(self, start_at: float | None) -> CollectedFeed:
        known, row = self.known, self.subscription
        begun = replace(
            known,
            began_at=self.basis.now(),
            began_date=parse_rfc822(self.validators[1]) or row.updated_at,
            walk=known.walk + 1,
            start_id=known.start_id or Marks.read(row.marks or "{}").last_id,
            start_at=start_at,
        )
        return replace(self, known=begun)


def read_known(feed: StoredFeed, adapter: Adapter, family: Family) -> Collection:
    """Return the stored state; from another adapter or format (R23) only a denial counts."""
    # A feed itself names its software. The denial prevents more requests for a feed with a new name each
    # time.
    known = Collection.read(feed.collection)
    is_same = known.adapter == adapter.name
    if is_same and known.family in ("", family):
        return replace(known, family=family)
    fresh = Collection(adapter=adapter.name, family=family, walk=known.walk)
    if is_same or not known.is_denied:
        return fresh
    return replace(
        fresh,
        is_denied=True,
        denials=known.denials,
        reason=known.reason,
        retry_at=known.retry_at,
        noted_at=known.noted_at,
    )
