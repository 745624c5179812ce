"""Plays all cases on one proxy, each on a publisher with an address of its own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import count
from pathlib import Path

from tests.field import documents, responses
from tests.field.cases import Case, judge
from tests.origin import Origin
from tests.running import a_config, running


def all_cases() -> Iterator[Case]:
    yield from documents.cases()
    yield from responses.cases()


async def play(cases: Iterable[Case], folder: Path) -> list[tuple[Case, str]]:
    """Return each case with its wrong result."""
    results = []
    numbers = count(2)
    async with running(a_config(folder)) as proxy:
        for case in cases:
            number = next(numbers)
            async with Origin(f"127.9.{number // 250}.{number % 250 + 1}") as origin:
                results.append((case, await judge(case, proxy, origin)))
    return results
