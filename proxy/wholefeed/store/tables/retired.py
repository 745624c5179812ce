"""Segments that are no part of a publication any more: how long they stay, for answers that still use them.

One process knows what it is sending (`Pins`) and removes the rest at once. Of several, each keeps what it is
sending itself, and lets the rest stay for an hour; what it sends for longer it keeps from others (`keep`).
"""

from __future__ import annotations

from typing import Final

from wholefeed.store.database import Database
from wholefeed.store.statements import CLOCK, either, json_ids, numbers_of, run
from wholefeed.store.tables.pins import Pins

KEEP_RETIRED_SECONDS: Final = 3600
"""Where there are several processes."""
_SWEEP: Final = either(
    sqlite="""
        DELETE FROM segment
        WHERE retired_at IS NOT NULL AND (:feed IS NULL OR feed = :feed)
            AND id NOT IN (SELECT value FROM json_each(:pinned))
            AND (feed IS NULL AND :is_reading = 0
                OR feed IS NOT NULL AND feed NOT IN (SELECT value FROM json_each(:reading)))
    """,
    # What another process removes or keeps at this moment is passed over.
    postgres=f"""
        DELETE FROM segment WHERE id IN (
            SELECT id FROM segment
            WHERE retired_at < {CLOCK} - {KEEP_RETIRED_SECONDS}
                AND (feed = :feed OR CAST(:feed AS bigint) IS NULL)
                AND id NOT IN (SELECT value FROM {numbers_of(":pinned")})
            FOR UPDATE SKIP LOCKED
        )
    """,  # noqa: S608 - constants
)
_KEEPING: Final = """
    segment SET retired_at = {now}
    WHERE retired_at IS NOT NULL AND id IN (SELECT value FROM {pinned})
"""
_KEEP: Final = either(
    sqlite="UPDATE" + _KEEPING.format(now=":now", pinned="json_each(:pinned)"),
    postgres="UPDATE" + _KEEPING.format(now=CLOCK, pinned=numbers_of(":pinned")),
)


def sweep(db: Database, pins: Pins, feed: int | None = None) -> int:
    """Remove the segments that earlier transactions retired and no answer uses. Returns how many.

    Where other processes send segments too, those stay that were retired less than an hour ago.
    """
    # In this order: who has found out meanwhile which they are holds them by now; and each once, for the
    # event loop goes on counting.
    reading = pins.feeds
    pinned = pins.segments
    parameters = {
        "feed": feed,
        "pinned": json_ids(pinned),
        "reading": json_ids(reading),
        "is_reading": bool(reading),
    }
    return run(db, _SWEEP, parameters)


def keep(db: Database, pins: Pins, now: float) -> int:
    """Let the segments that answers use count as retired just now, if they are. Returns how many."""
    return run(db, _KEEP, {"pinned": json_ids(pins.segments), "now": now})
