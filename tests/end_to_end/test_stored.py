"""What earlier versions have stored opens, and is answered as before (`tests/stored`).

Where an answer is meant to change: `python -m tests.stored record`, and look at what it changes.
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
    """What was recorded of a database: when it is opened and what is answered; whole feeds."""
    facts: dict[str, Any] = json.loads((FOLDER / f"{name}.json").read_text("utf-8"))
    return facts, bodies_in(FOLDER / name)


def bodies_in(folder: Path) -> dict[str, bytes]:
    """Whole feeds by the names of their files."""
    return {path.name: path.read_bytes() for path in folder.glob("*.*")}


def changed(expected: dict[str, bytes], bodies: dict[str, bytes]) -> list[str]:
    """What differs, feed by feed and line by line."""
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
    """Every feed, in all its views, with its fields and what is told of it; no publisher is asked."""
    facts, expected = recorded(name)
    unpacked(name, tmp_path)
    async with opened(tmp_path, at=facts["opened_at"]) as (proxy, publishers):
        answers, bodies = await everything(proxy, facts["aliases"])
    assert [(request.method, request.target) for request in publishers.requests] == []
    assert not (told := changed(expected, bodies)), "\n".join(told)
    assert differences(facts["answers"], answers) == []


@pytest.mark.parametrize("name", NAMES)
async def test_what_is_stored_is_answered_alike_after_a_restart(name: str, tmp_path: Path) -> None:
    """What the first start has brought to the newest schema is what the next one finds."""
    facts, expected = recorded(name)
    unpacked(name, tmp_path)
    async with opened(tmp_path, at=facts["opened_at"]) as (proxy, _):
        await everything(proxy, facts["aliases"])
    async with opened(tmp_path, at=facts["opened_at"]) as (proxy, publishers):
        answers, bodies = await everything(proxy, facts["aliases"])
    assert publishers.requests == []
    assert not (told := changed(expected, bodies)), "\n".join(told)
    assert differences(facts["answers"], answers) == []


@pytest.mark.parametrize("name", NAMES)
async def test_what_is_stored_is_gone_on_with_as_recorded(name: str, tmp_path: Path) -> None:
    """The next refresh reads again what earlier versions have read otherwise, from what they have stored: no
    more is asked for than was, and what publishers do not give any more is still there."""
    facts, expected = recorded(name)
    unpacked(name, tmp_path)
    async with opened(tmp_path, at=facts["opened_at"]) as (proxy, publishers):
        World(publishers).publish_all()
        answers, bodies = await refreshed(proxy)
    assert requested(publishers) == facts["refreshed"]["asked"]
    assert not (told := changed(expected | bodies_in(FOLDER / name / "refreshed"), bodies)), "\n".join(told)
    assert differences(facts["refreshed"]["answers"], answers) == []


async def test_what_0_1_served_is_served_on_by_this_version() -> None:
    """`wholefeed serve` on a database of 0.1.0: each feed is there with the state, the counts and, byte for
    byte, the entries that 0.1.0 itself answered with."""
    before = json.loads((FOLDER / "release-0.1.answered.json").read_text("utf-8"))
    assert len(before) == 20
    found = await answered("release-0.1", Path(sys.executable).with_name("wholefeed"))
    for url, feed in before.items():
        assert {**found[url], "etag": feed["etag"]} == feed


async def test_readers_of_0_1_have_what_has_not_changed() -> None:
    """RFC 9110, 13.1.2: the ETag by which 0.1.0 sent a feed is answered 304, unless its bytes have changed.
    Those of partial feeds have: an entry tells what is missing."""
    before = json.loads((FOLDER / "release-0.1.answered.json").read_text("utf-8"))
    tags = {url: feed["etag"] for url, feed in before.items()}
    whole = [url for url, feed in before.items() if not feed["state"].startswith("partial")]
    assert len(whole) == 18
    assert await known("release-0.1", Path(sys.executable).with_name("wholefeed"), tags) == whole


@pytest.mark.parametrize("name", NAMES)
async def test_validators_stay_after_an_update_while_the_bytes_do(name: str, tmp_path: Path) -> None:
    """The first refresh by a new version makes everything that is sent anew: where the same bytes come of it,
    ETag and Last-Modified are the same."""
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
            if reply.state != "partial":  # what is missing was tried again, and its date may be another
                assert reply.headers.get("Last-Modified") == before[url].headers.get("Last-Modified"), url
                same += 1
    assert same >= 2


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
