"""Numbers with their nouns and spans of time, in words.

counted(12_000, "entry", "entries")     # "12,000 entries"
duration(90)                            # "1 minute"
ago(then, now), ahead(then, now)        # "2 hours ago", "in 1 minute"
"""

from __future__ import annotations

from typing import Final

from wholefeed.core.text.dates import DAY_SECONDS

_UNITS: Final = (
    ("year", "years", 365 * DAY_SECONDS),
    ("day", "days", DAY_SECONDS),
    ("hour", "hours", 3600),
    ("minute", "minutes", 60),
    ("second", "seconds", 1),
)


def counted(number: int, one: str, many: str) -> str:
    """Return a number with its noun, its thousands apart: `1 entry`, `12,000 entries`."""
    return f"{number:,} {one if number == 1 else many}"


def duration(seconds: float) -> str:
    """Return a duration in its largest unit, rounded down; one below zero as none."""
    left = max(int(seconds), 0)
    found = next((each for each in _UNITS if left >= each[2]), _UNITS[-1])
    return counted(left // found[2], found[0], found[1])


def ago(then: float, now: float) -> str:
    """Return how long ago an instant was."""
    return f"{duration(now - then)} ago" if now - then >= 1 else "just now"


def ahead(then: float, now: float) -> str:
    """Return how soon an instant is."""
    return f"in {duration(then - now)}" if then - now >= 1 else "when a reader asks"
