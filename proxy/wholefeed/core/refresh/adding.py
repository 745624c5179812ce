"""Whether a document adds anything to what is stored (rules R6 and R10)."""

from __future__ import annotations

from typing import Final

from wholefeed.core.merge.merge import Copy, is_preferred
from wholefeed.core.refresh.events import FreshDocument, KnownRead
from wholefeed.core.terms import Role

_NOWHERE: Final = 1 << 62
"""The place of a document that is compared with what is stored: between equals it adds nothing."""


def adds_to(read: KnownRead, fresh: FreshDocument, fetched_at: float, *, is_collected: bool = False) -> bool:
    """Return whether a document holds an entry, or a better copy, that no other does but memory (R6, R10).

    Args:
        read: What is stored of its entries.
        fresh: The document.
        fetched_at: When it was had.
        is_collected: Whether an adapter asked for it (R26).
    """
    return any(
        identity not in read.live
        or is_preferred(
            Copy(
                key=ordinal,
                updated_at=updated_at,
                role=Role.PAGE,
                position=_NOWHERE,
                ordinal=ordinal,
                document_updated_at=fresh.updated_at,
                fetched_at=fetched_at,
                generated_at=fetched_at if is_collected else None,
                is_collected=is_collected,
            ),
            read.live[identity],
            subscription_updated_at=read.subscription_updated_at,
        )
        for ordinal, (identity, updated_at) in enumerate(fresh.arrival.keys or ())
    )
