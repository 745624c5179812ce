"""When a stored archive document is asked for again, and when never more (rule R13).

Archive documents do not change (RFC 5005, section 4), but publishers link archives that still grow: the
newest one of a chain is not believed until another has taken its place.

    FETCHED as the newest         -> OPEN     due when the subscription document has changed, at most daily
    FETCHED behind the newest     -> SETTLED
    OPEN, no longer the newest    -> due at once, for the last time -> SETTLED
    SETTLED, but unmarked and sent with no-cache or no-store -> due as if it were the newest
"""

from __future__ import annotations

from wholefeed.core.text.dates import DAY_SECONDS


def is_final(*, is_settled: bool, is_marked: bool, is_uncacheable: bool) -> bool:
    """Return whether an archive document is never asked for again.

    Args:
        is_settled: Whether it was fetched or revalidated when it was no longer the newest of its chain.
        is_marked: Whether it bears fh:archive.
        is_uncacheable: Whether the publisher serves it with no-cache or no-store.
    """
    return is_settled and (is_marked or not is_uncacheable)


def is_due(
    *,
    is_settled: bool,
    is_newest: bool,
    is_marked: bool,
    is_uncacheable: bool,
    subscription_changed_at: float,
    checked_at: float,
    now: float,
) -> bool:
    """Return whether a stored archive document is to be revalidated on this walk.

    Args:
        is_settled: As in `is_final`.
        is_newest: Whether it is the newest archive document of its chain, on the path of this walk.
        is_marked: As in `is_final`.
        is_uncacheable: As in `is_final`.
        subscription_changed_at: When the subscription document was last had with a change, epoch seconds.
        checked_at: When it was last fetched or revalidated, epoch seconds.
        now: Epoch seconds. An instant more than a day ahead of it comes from a clock that was wrong.
    """
    if is_final(is_settled=is_settled, is_marked=is_marked, is_uncacheable=is_uncacheable):
        return False
    if not is_settled and not is_newest:
        return True
    if checked_at > now + DAY_SECONDS:
        return True
    return subscription_changed_at > checked_at and checked_at <= now - DAY_SECONDS
