"""What earlier versions have stored opens, and is answered as before (`tests/stored`).

Where an answer is meant to change: `python -m tests.stored record`, and look at what it changes.
"""

from __future__ import annotations

import difflib
import json
from pathlib import Path
from typing import Any

import pytest

from tests.stored.asking import FOLDER, Answer, differences, everything, opened, unpacked

NAMES = sorted(path.name.removesuffix(".db.gz") for path in FOLDER.glob("*.db.gz"))


def recorded(name: str) -> tuple[dict[str, Any], dict[str, bytes]]:
    """What was recorded of a database: when it is opened and what is answered; whole feeds."""
    facts: dict[str, Any] = json.loads((FOLDER / f"{name}.json").read_text("utf-8"))
    return facts, {path.name: path.read_bytes() for path in (FOLDER / name).iterdir()}


def compared(before: bytes, after: bytes) -> str:
    """What differs, line by line."""
    one, other = (each.decode("utf-8", "replace").splitlines() for each in (before, after))
    return "\n".join(difflib.unified_diff(one, other, "recorded", "answered", lineterm="", n=0))


@pytest.mark.parametrize("name", NAMES)
async def test_what_is_stored_is_answered_as_recorded(name: str, tmp_path: Path) -> None:
    """Every feed, in all its views, with its fields and what is told of it; no publisher is asked."""
    facts, expected = recorded(name)
    unpacked(name, tmp_path)
    async with opened(tmp_path, at=facts["opened_at"]) as (proxy, publishers):
        answers, bodies = await everything(proxy, facts["aliases"])
    assert [(request.method, request.target) for request in publishers.requests] == []
    changed = [
        f"{file}:\n{compared(expected.get(file, b''), bodies.get(file, b''))}"
        for file in sorted(expected | bodies)
        if expected.get(file) != bodies.get(file)
    ]
    assert not changed, "\n".join(changed)
    assert differences(facts["answers"], answers) == []


@pytest.mark.parametrize("name", NAMES)
async def test_what_is_stored_is_answered_alike_after_a_restart(name: str, tmp_path: Path) -> None:
    """What the first start has brought to the newest schema and read again is what the next one finds."""
    facts, expected = recorded(name)
    unpacked(name, tmp_path)
    async with opened(tmp_path, at=facts["opened_at"]) as (proxy, _):
        await everything(proxy, facts["aliases"])
    async with opened(tmp_path, at=facts["opened_at"]) as (proxy, publishers):
        answers, bodies = await everything(proxy, facts["aliases"])
    assert publishers.requests == []
    assert bodies == expected
    assert differences(facts["answers"], answers) == []


def test_differences_are_told_by_their_place() -> None:
    """A comparison that finds nothing would hold whatever is answered."""
    before: dict[str, Answer] = {"GET /a": {"status": 200, "body": [{"x": 1}]}, "GET /b": {"status": 200}}
    after: dict[str, Answer] = {"GET /a": {"status": 200, "body": [{"x": 2}]}, "GET /c": {"status": 200}}
    assert differences(before, before) == []
    assert sorted(differences(before, after)) == [
        "GET /a: /body/0/x: 1 has become 2",
        "GET /b: not asked any more",
        "GET /c: not recorded",
    ]
