"""wholefeed.service.refresh: which heads are read while their documents still arrive."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from wholefeed.core.refresh.port import Fetch
from wholefeed.counts import Counts
from wholefeed.service.refresh import WalkFetches


class WaitingSource:
    """Is asked for documents, and none of them comes."""

    def __init__(self) -> None:
        self.is_foreseen: dict[str, Callable[[], bool]] = {}

    async def obtain(self, url: str, *, is_foreseen: Callable[[], bool], **_: object) -> Any:
        self.is_foreseen[url] = is_foreseen
        await asyncio.Event().wait()


class FromOne:
    """A walk that has come to one document, and to no other."""

    def __init__(self, url: str) -> None:
        self.url = url

    def is_ahead(self, url: str) -> bool:
        return url != self.url

    def is_met(self, url: str) -> bool:
        return False

    def predicted(self, url: str, older: str) -> list[Fetch]:
        return []


@pytest.mark.parametrize(
    ("paths", "enough", "foreseen"),
    [
        (["9", "8", "7"], 4, []),
        (["9", "8", "7"], 3, ["8", "7"]),
        (["9", "8", "7", "6"], 4, ["8", "7", "6"]),
        (["9", "8", "beech", "oak"], 4, []),
        (["2003/02", "2003/01", "2002/12", "2002/11"], 4, ["2003/01", "2002/12", "2002/11"]),
    ],
    ids=["few", "as many as are asked for at once", "numbered", "named", "dated"],
)
async def test_a_head_is_not_read_early_for_what_is_guessed_anyway(
    paths: list[str], enough: int, foreseen: list[str]
) -> None:
    """R0: the link in a head that still arrives is a prediction; where several documents are under way and
    their URLs count on, look-ahead has it already. The document that the walk has come to is read early in
    any case: it tells where the guesses are wrong."""
    source, counts = WaitingSource(), Counts()
    fetches = WalkFetches(
        source,  # type: ignore[arg-type]
        style=lambda: None,
        identified=lambda obtained, _beside: asyncio.sleep(0, obtained),
        updated=lambda _stored, fetched: asyncio.sleep(0, fetched),
        enough=enough,
        counts=counts,
        may_ask=lambda: None,
    )
    fetches.path = FromOne(f"http://o.test/{paths[0]}")
    for path in paths:
        await fetches.carry_out(Fetch(url=f"http://o.test/{path}", stored=None, relation="prev-archive"))
    await asyncio.sleep(0)
    assert [path for path in paths if source.is_foreseen[f"http://o.test/{path}"]()] == foreseen
    await fetches.stop()
    assert counts.look_ahead == {"hit": 0, "miss": len(paths) - 1}
