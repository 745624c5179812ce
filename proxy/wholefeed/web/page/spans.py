"""How long ago, and how soon: spans of time in words.

in_words(90)        # "1 minute"
"""

from __future__ import annotations

from typing import Final

from wholefeed.core.text.dates import DAY_SECONDS

_UNITS: Final = (
    (365 * DAY_SECONDS, "year"),
    (DAY_SECONDS, "day"),
    (3600, "hour"),
    (60, "minute"),
    (1, "second"),
)


def in_words(seconds: float) -> str:
    """Return a span as a person would say it: in its largest unit, rounded down; nothing below a second."""
    for size, name in _UNITS:
        count = int(seconds // size)
        if count >= 1:
            return f"{count} {name}{'' if count == 1 else 's'}"
    return ""


def ago(then: float, now: float) -> str:
    """Return how long ago an instant was."""
    span = in_words(now - then)
    return f"{span} ago" if span else "just now"


def ahead(then: float, now: float) -> str:
    """Return how soon an instant is."""
    span = in_words(then - now)
    return f"in {span}" if span else "when a reader asks"
