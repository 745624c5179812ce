"""When a stored archive document is asked for again, and when never more (rule R13).

Archive documents do not change (RFC 5005, section 4), but publishers link archives that still grow: the
newest one of a chain is not believed until another has taken its place.

    FETCHED as the newest            -> OPEN     due when the subscription document changed, at most daily
    FETCHED behind the newest        -> SETTLED
    OPEN, no longer the newest       -> due at once, for the last time -> SETTLED
    unmarked, no-cache or no-store   -> OPEN for good
"""

from __future__ import annotations

from wholefeed.core.text.dates import DAY_SECONDS


def settles(*, is_newest: bool, is_marked: bool, is_uncacheable: bool) -> bool:
    """Return whether an archive document that was just fetched or revalidated is final.

    Args:
        is_newest: Whether it is the newest archive document of its chain.
        is_marked: Whether it bears fh:archive.
        is_uncacheable: Whether the publisher serves it with no-cache or no-store.
    """
    return not is_newest and (is_marked or not is_uncacheable)


def is_due(
    *,
    is_settled: bool,
    is_newest: bool,
    is_marked: bool,
    is_uncacheable: bool,
    subscription_changed: bool,
    checked_at: float,
    now: float,
) -> bool:
    """Return whether a stored archive document is to be revalidated on this walk.

    Args:
        is_settled: What `settles` said when it was last fetched or revalidated.
        is_newest: As in `settles`, on the path of this walk.
        is_marked: As in `settles`.
        is_uncacheable: As in `settles`.
        subscription_changed: Since the document was last revalidated.
        checked_at: When it was last fetched or revalidated, epoch seconds.
        now: Epoch seconds. An instant more than a day ahead of it comes from a clock that was wrong.
    """
    if is_settled:
        return False
    if settles(is_newest=is_newest, is_marked=is_marked, is_uncacheable=is_uncacheable):
        return True
    is_recent = now - DAY_SECONDS < checked_at <= now + DAY_SECONDS
    return subscription_changed and not is_recent
