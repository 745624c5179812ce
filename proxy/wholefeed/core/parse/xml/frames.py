"""What the parser of a family waits for at a time, and what is wanted of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple


class Frame(NamedTuple):
    """What the parser waits for; depths count the root as 1."""

    watch: int
    on_child: Callable[[str, list[str]], None]
    until: int
    on_end: Callable[[], None]


class Options(NamedTuple):
    """What is wanted of one reading."""

    is_full: bool = False
    """Also collect what stands in for an entry's id or update instant."""
    is_early: bool = False
    """Stop where the first entry begins."""


class CarefulNeededError(Exception):
    """A document must be read with a look at every element. Never leaves the parser."""


def nothing() -> None:
    """An end that means nothing."""


def ignore(_name: str, _attributes: list[str]) -> None:
    """A beginning that means nothing."""
