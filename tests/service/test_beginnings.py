"""wholefeed.service.memory: what is held for the next refresh counts for as much as it takes."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import pytest

from tests.service.snapshots import a_snapshot, hold
from wholefeed.core.refresh.port import Attempt
from wholefeed.service.memory import Beginning, Beginnings, Published
from wholefeed.store.rows import DocumentRow, Failures

LONG = "https://o.test/" + "x" * 2000
TIMES = 50


def a_document(number: int, **values: Any) -> DocumentRow:
    usual: dict[str, Any] = {each.name: 0 for each in fields(DocumentRow)}
    return DocumentRow(**{**usual, "id": number, "links": {}, "notes": (), **values})


def an_attempt(number: int) -> Attempt:
    return Attempt(
        url=f"{LONG}{number}",
        reason="timeout",
        status=None,
        attempts=1,
        first_at=1.0,
        last_at=1.0,
        next_at=2.0,
    )


@pytest.mark.parametrize(
    "found",
    [
        Beginning([a_document(1, links={f"r{each}": LONG for each in range(TIMES)})], Failures((), None)),
        Beginning([a_document(1, notes=({"code": "a", "url": LONG},) * TIMES)], Failures((), None)),
        Beginning([a_document(1)], Failures(tuple(map(an_attempt, range(TIMES))), None)),
    ],
    ids=["links", "notes", "missing"],
)
def test_what_publishers_make_long_is_counted(found: Beginning) -> None:
    """Memory stays bounded whatever feeds link, say, and do not give."""
    memory = Published(1 << 20)
    hold(memory, a_snapshot(1))
    before = memory.usage.bytes
    beginnings = Beginnings(memory)
    beginnings.keep(1, found)
    held = beginnings.find(1)
    assert held is not None
    assert held[1] is found
    assert memory.usage.bytes - before >= TIMES * len(LONG)
