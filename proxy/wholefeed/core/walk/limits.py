"""Where a walk stops although the chain goes on (rules R17 and R18; RFC 5005, section 6)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from wholefeed.core.notes import LimitReached, NoProgress, Note, PagesRepeat
from wholefeed.core.walk.chain import Chain

NO_PROGRESS_DOCUMENTS: Final = 50
"""Archive documents in a row without a new (identity, instant) that end a chain (rule R17)."""

NO_PROGRESS_PAGES: Final = 2
"""Pages in a row without a new identity that end a paged feed (rule R17)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WalkLimits:
    """Rule R18; RFC 5005, section 6: each counts the subscription document."""

    documents: int
    bytes: int
    """Of decoded bodies. What was fetched ahead and is not on the path only stops the guessing."""
    entries: int


def exhaustion(chain: Chain, limits: WalkLimits, target: str) -> Note | None:
    """Return why the chain is followed no further, though it goes on to this URL; None when it is."""
    if chain.trail.is_paged and chain.without_news >= NO_PROGRESS_PAGES:
        return PagesRepeat(chain.tip.url, chain.without_news)
    if chain.without_news >= NO_PROGRESS_DOCUMENTS:
        return NoProgress(chain.tip.url, chain.without_news)
    for reached, limit, key in (
        (len(chain.path), limits.documents, "limits.documents_per_feed"),
        (chain.body_bytes, limits.bytes, "limits.feed_bytes"),
        (chain.entries, limits.entries, "limits.entries_per_feed"),
    ):
        if reached >= limit:
            return LimitReached(target, key, limit)
    return None
