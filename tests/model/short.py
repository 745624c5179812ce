"""Stories: played, shortened, and printed."""

from __future__ import annotations

import asyncio
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from tests.running import Clock

Step = tuple[Any, ...]

Databases = Callable[[], AbstractContextManager[str | None]]
"""Gives the URL of an empty PostgreSQL database; None: the store is in a file."""


@dataclass(frozen=True)
class Story(ABC):
    """A story; its `str` is its first line."""

    seed: int
    steps: tuple[Step, ...]

    @abstractmethod
    async def play(self, url: str = "") -> list[str]:
        """Play it to its first difference from the rules; return the differences.

        `url` is an empty PostgreSQL database's; "": the store is in a file of its own.
        """


S = TypeVar("S", bound=Story)


class WallClock(Clock):
    """The wall clock of everybody: fetched documents bear the machine's time."""

    def __init__(self) -> None:
        super().__init__()
        self._real = time.time

    def __call__(self) -> float:
        return self._real() + self.ahead_seconds


async def shrunk(story: S, databases: Databases = nullcontext) -> S:
    """Drop the steps that a difference does not need."""
    at = len(story.steps) - 1
    while at >= 0:
        shorter = replace(story, steps=(*story.steps[:at], *story.steps[at + 1 :]))
        if await differs(shorter, databases):
            story = shorter
        at -= 1
    return story


async def differs(story: Story, databases: Databases = nullcontext) -> list[str]:
    """Play a story; an exception is a difference, too."""
    try:
        with databases() as url:
            async with asyncio.timeout(300):
                return await story.play(url or "")
    except Exception as exc:  # noqa: BLE001 - whatever it is, the story shows it
        return [f"{type(exc).__name__}: {exc}"]


def told(story: Story) -> str:
    """Return a story for people."""
    return "\n".join([str(story), *("  " + " ".join(map(str, step)) for step in story.steps)])
