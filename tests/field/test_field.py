"""Cases from public bug reports of feed readers, kind by kind, as a reader sees them.

`python -m tests.field` prints the table of all cases.
"""

from __future__ import annotations

from itertools import groupby
from pathlib import Path

import pytest

from tests.field.cases import Case
from tests.field.play import all_cases, play

KINDS = [(kind, list(cases)) for kind, cases in groupby(all_cases(), key=lambda case: case.kind)]


@pytest.mark.parametrize("cases", [cases for _, cases in KINDS], ids=[kind for kind, _ in KINDS])
async def test_cases_come_out_right(cases: list[Case], tmp_path: Path) -> None:
    """Every case of a kind gives a reader the intended entries, or is refused."""
    wrong = {case.name: came for case, came in await play(cases, tmp_path) if came}
    assert not wrong
