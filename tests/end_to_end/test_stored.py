"""Databases of earlier versions open, and give the same answers (`tests/stored`).

After an intended change of answers: `python -m tests.stored record`, and read its diff.
"""

from __future__ import annotations

import difflib
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.stored.__main__ import answered, known
from tests.stored.asking import (
    FOLDER,
    Answer,
    differences,
    everything,
    opened,
    refreshed,
    requested,
    unpacked,
)
from tests.stored.publishers import World

NAMES = sorted(path.name.removesuffix(".db.gz") for path in FOLDER.glob("*.db.gz"))


def recorded(name: str) -> tuple[dict[str, Any], dict[str, bytes]]:
    facts: dict[str, Any] = json.loads((FOLDER / f"{name}.json").read_text("utf-8"))
    return facts, bodies_in(FOLDER / name)


def bodies_in(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.glob("*.*")}


def changed(expected: dict[str, bytes], bodies: dict[str, bytes]) -> list[str]:
    return [
        "\n".join(
            difflib.unified_diff(
                lines(expected, file), lines(bodies, file), file, "answered", lineterm="", n=0
            )
        )
        for file in sorted(expected | bodies)
        if expected.get(file) != bodies.get(file)
    ]


def lines(bodies: dict[str, bytes], file: str) -> list[str]:
    return bodies.get(file, b"").decode("utf-8", "replace").splitlines()


@pytest.mark.parametrize("name", NAMES)
async def test_what_is_stored_is_answered_as_recorded(name: str, tmp_path: Path) -> None:
    """Every feed, in all its views, with its fields and its status; no publisher gets a request. The second
    start finds the schema that the first one migrated."""
    facts, expected = recorded(name)
    unpacked(name, tmp_path)
    for _ in range(2):
        async with opened(tmp_path, at=facts["opened_at"]) as (proxy, publishers):
            answers, bodies = await everything(proxy, facts["aliases"])
        assert [(request.method, request.target) for request in publishers.requests] == []
        assert not (told := changed(expected, bodies)), "\n".join(told)
        assert differences(facts["answers"], answers) == []


@pytest.mark.parametrize("name", NAMES)
async def test_what_is_stored_is_gone_on_with_as_recorded(name: str, tmp_path: Path) -> None:
    """The next refresh reads stored documents again if earlier versions read them otherwise: no more
    requests, and entries lost at publishers stay."""
    facts, expected = recorded(name)
    unpacked(name, tmp_path)
    async with opened(tmp_path, at=facts["opened_at"]) as (proxy, publishers):
        World(publishers).publish_all()
        answers, bodies = await refreshed(proxy)
    assert requested(publishers) == facts["refreshed"]["asked"]
    assert not (told := changed(expected | bodies_in(FOLDER / name / "refreshed"), bodies)), "\n".join(told)
    assert differences(facts["refreshed"]["answers"], answers) == []


async def test_what_0_1_served_is_served_on_by_this_version() -> None:
    """`wholefeed serve` on a database of 0.1.0: each feed has the same state, counts and, byte for byte,
    entries."""
    before = json.loads((FOLDER / "release-0.1.answered.json").read_text("utf-8"))
    assert len(before) == 20
    found = await answered("release-0.1", Path(sys.executable).with_name("wholefeed"))
    for url, feed in before.items():
        assert {**found[url], "etag": feed["etag"]} == feed


async def test_readers_of_0_1_have_what_has_not_changed() -> None:
    """RFC 9110, 13.1.2: an ETag from 0.1.0 gets 304, unless the bytes have changed, as in partial feeds."""
    before = json.loads((FOLDER / "release-0.1.answered.json").read_text("utf-8"))
    tags = {url: feed["etag"] for url, feed in before.items()}
    whole = [url for url, feed in before.items() if not feed["state"].startswith("partial")]
    assert len(whole) == 18
    assert await known("release-0.1", Path(sys.executable).with_name("wholefeed"), tags) == whole


@pytest.mark.parametrize("name", NAMES)
async def test_validators_stay_after_an_update_while_the_bytes_do(name: str, tmp_path: Path) -> None:
    """The first refresh by a new version renders everything anew: equal bytes keep ETag and Last-Modified."""
    facts, _ = recorded(name)
    unpacked(name, tmp_path)
    same = 0
    async with opened(tmp_path, at=facts["opened_at"]) as (proxy, publishers):
        urls = [feed.url for feed in await proxy.service.feeds()]
        before = {url: await proxy.get(url) for url in urls}
        World(publishers).publish_all()
        for url in urls:
            reply = await proxy.refreshed(url)
            if reply.body != before[url].body:
                continue
            assert reply.headers["ETag"] == before[url].headers["ETag"], url
            if reply.state != "partial":  # a missing document was tried again, perhaps with another date
                assert reply.headers.get("Last-Modified") == before[url].headers.get("Last-Modified"), url
                same += 1
    assert same >= 2


def test_differences_are_told_by_their_place() -> None:
    """A comparison that finds nothing would pass for any answer."""
    before: dict[str, Answer] = {"GET /a": {"status": 200, "body": [{"x": 1}]}, "GET /b": {"status": 200}}
    after: dict[str, Answer] = {"GET /a": {"status": 200, "body": [{"x": 2}]}, "GET /c": {"status": 200}}
    assert differences(before, before) == []
    assert sorted(differences(before, after)) == [
        "GET /a: /body/0/x: 1 has become 2",
        "GET /b: not asked any more",
        "GET /c: not recorded",
    ]
