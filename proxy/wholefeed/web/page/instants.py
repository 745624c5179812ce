"""An instant on a page: words for people, and beside them what programs read (`<time datetime>`)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Instant:
    """An instant as it is shown, and as programs read it."""

    text: str
    machine: str
