"""Classes of the package by their base, in any module."""

from __future__ import annotations

import pkgutil
import sys
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from typing import TypeVar

import wholefeed

T = TypeVar("T")


@cache
def _import_all() -> None:
    """A class is known when its module has been imported."""
    for module in pkgutil.walk_packages(wholefeed.__path__, "wholefeed."):
        import_module(module.name)


def subclasses(kind: type[T]) -> set[type[T]]:
    """The direct and indirect subclasses of a class in the package."""
    _import_all()
    return {each for each in _below(kind) if each.__module__.startswith("wholefeed.") and _is_itself(each)}


def _is_itself(kind: type) -> bool:
    """Whether its name refers to it: `dataclass(slots=True)` leaves another class behind."""
    return getattr(sys.modules[kind.__module__], kind.__name__, None) is kind


def _below(kind: type[T]) -> Iterator[type[T]]:
    for each in kind.__subclasses__():
        yield each
        yield from _below(each)
