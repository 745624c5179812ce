"""`wholefeed explain`, `list`, `refresh` and `forget`, with a running proxy and without one."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from demo.proxy_process import free_port
from tests.answers import Document, Status
from tests.feeds import an_item, atom, ids, publish_chain
from tests.listing import LISTS, looked
from tests.origin import Origin
from tests.publishers.archive_page import ArchivePage
from tests.running import Proxy, a_config, running
from wholefeed.cli.feeds import explain
from wholefeed.cli.main import main
from wholefeed.core.listing.finding import WHY
from wholefeed.core.model import State
from wholefeed.core.words import STATES

Run = Callable[..., Awaitable[tuple[int, str, str]]]


@pytest.fixture(params=["running", "stored"])
def is_running(request: pytest.FixtureRequest) -> bool:
    """Whether the proxy still runs during the commands."""
    return bool(request.param == "running")


@pytest.fixture
def cli(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run a command in its own folder; return exit code, output and messages."""
    monkeypatch.setenv("WHOLEFEED_FETCH_ALLOW_NETWORKS", "127.0.0.0/8")
    monkeypatch.setenv("WHOLEFEED_FETCH_RETRIES", "0")
    monkeypatch.setenv("WHOLEFEED_SERVER_PORT", str(free_port()))

    async def run(*arguments: str, proxy: Proxy | None = None) -> tuple[int, str, str]:
        if proxy is not None:
            monkeypatch.setenv("WHOLEFEED_SERVER_PORT", str(proxy.client.port))
        capsys.readouterr()
        code = await asyncio.to_thread(main, arguments)
        said = capsys.readouterr()
        return code, said.out, said.err

    return run


async def known(cli: Run, tmp_path: Path, url: str, is_running: bool, *commands: list[str]) -> list[str]:
    """Store a feed, run commands beside the proxy or after it; return their output."""
    said: list[str] = []
    async with running(a_config(tmp_path)) as proxy:
        await proxy.whole(url)
        if is_running:
            said = [(await cli(*command, proxy=proxy))[1] for command in commands]
    return said or [(await cli(*command))[1] for command in commands]


async def test_list_tells_each_feed_and_what_it_is(
    cli: Run, origin: Origin, tmp_path: Path, is_running: bool
) -> None:
    """As text and as JSON, from a running proxy and a file."""
    publish_chain(origin, archives=2)
    text, told = await known(cli, tmp_path, origin.url("/feed"), is_running, ["list"], ["list", "--json"])
    summary = "complete: 6 entries out of 3 documents (archived, atom)"
    assert text == f"{origin.url('/feed')}\n  A feed\n  {summary}\n"
    assert [(each["url"], each["entries"]) for each in json.loads(told)] == [(origin.url("/feed"), 6)]


async def test_a_feed_without_a_title_has_no_line_for_it(
    cli: Run, origin: Origin, tmp_path: Path, is_running: bool
) -> None:
    """`list` shows a title below the URL, if any."""
    origin.publish("/a", atom())
    origin.publish("/b", atom().replace(b"<title>A feed</title>", b"", 1))
    async with running(a_config(tmp_path)) as proxy:
        for path in ("/a", "/b"):
            await proxy.whole(origin.url(path))
        said = (await cli("list", proxy=proxy))[1] if is_running else ""
    lines = (said or (await cli("list"))[1]).splitlines()
    assert lines[:2] == [origin.url("/a"), "  A feed"]
    assert [line.partition(":")[0] for line in lines[2:]] == ["  remembered", "http", "  remembered"]


HARM = "\u202ebad\u202c \u2066\u200f\x9b2J \u2028 \U000e0041"
"""Text that changes direction, moves a cursor, or breaks a line."""


async def test_nothing_that_strangers_wrote_moves_a_cursor_or_turns_text(
    cli: Run, origin: Origin, tmp_path: Path, is_running: bool
) -> None:
    """Programs get such text escaped."""
    title = f"<title>A {HARM}\u3000\U0001f469\u200d\U0001f680 feed</title>"
    origin.publish("/feed", atom(an_item("a")).decode().replace("<title>A feed</title>", title))
    url = origin.url("/feed")
    commands = [["list"], ["explain", url], ["check", url], ["list", "--json"], ["explain", "--json", url]]
    said = await known(cli, tmp_path, url, is_running, *commands)
    for text in said:
        assert not set(HARM.replace(" ", "").replace("bad", "").replace("2J", "")) & set(text)
    assert "\U0001f469\u200d\U0001f680 feed" in said[0]
    assert json.loads(said[3])[0]["title"] == json.loads(said[4])["title"] != ""


async def test_list_of_nothing_makes_no_database(cli: Run, tmp_path: Path) -> None:
    """`list` without a database prints nothing, exits 0 and leaves no file."""
    assert (await cli("list"))[:2] == (0, "")
    assert list(tmp_path.iterdir()) == []


async def test_explain_tells_the_chain_and_why_it_ended(
    cli: Run, origin: Origin, tmp_path: Path, is_running: bool
) -> None:
    """R2, R16: `explain` shows each document, the reason of a missing one, and its next try."""
    publish_chain(origin, archives=2)
    origin.remove("/archive/1")
    url = origin.url("/feed")
    text, told = await known(cli, tmp_path, url, is_running, ["explain", url], ["explain", "--json", url])
    rows = [line.split()[:3] for line in text.splitlines() if line.startswith("http") and "  " in line]
    assert rows == [
        [url, "kept", rows[0][2]],
        [origin.url("/archive/2"), "prev-archive", "kept"],
        [origin.url("/archive/1"), "prev-archive", "missing"],
    ]
    assert "the publisher responded with status 404 (publisher-status); tried " in text
    assert "; again with the next refresh, in 59 minutes or later\n" in text
    assert "The publisher is asked next when a reader asks, in " in text
    ending = "note: expected a document of this feed, got none (publisher-status)"
    assert text.count(ending) == 1
    assert (
        "\n\nkept: stored, and asked for again when it is due\nmissing: linked to, but could not be fetched\n"
        in text
    )
    assert "settled: " not in text
    assert "the walk ended: one document could not be fetched" in text
    assert STATES[State.PARTIAL].meaning in text
    assert "tell the publisher which document" in text
    assert json.loads(told)["chain"][2]["standing"] == "missing"


async def test_explain_tells_the_pages_that_list_entries(
    cli: Run, origin: Origin, tmp_path: Path, is_running: bool
) -> None:
    """H7: pages follow the feed's documents, by their own URLs; `list` names the state."""
    ArchivePage(origin, posts=40, per_page=20).publish()
    url = origin.url("/feed")
    commands = [["explain", url], ["list"]]
    async with running(a_config(tmp_path, history=LISTS)) as proxy:
        await proxy.get(url)
        await looked(proxy)
        said = [(await cli(*command, proxy=proxy))[1] for command in commands] if is_running else []
    explained, listed = said or [(await cli(*command))[1] for command in commands]
    rows = [line.split() for line in explained.splitlines() if line.startswith("http") and "  " in line]
    assert [(row[0], row[-2]) for row in rows] == [
        (url, "5"),
        (origin.url("/archive/"), "15"),
        (origin.url("/archive/page/2/"), "20"),
    ]
    assert [row[1] for row in rows] == ["kept", "list", "list"]
    assert STATES[State.LISTED].meaning in explained
    assert "35 older entries stand in a list on 2 pages of the site" in explained
    assert "looked at http" not in explained
    assert listed == f"{url}\n  Blog\n  listed: 40 entries out of 3 documents (plain, rss)\n"


async def test_explain_tells_where_no_list_was_found(cli: Run, origin: Origin, tmp_path: Path) -> None:
    """H7: each page looked at, and why it did not count."""
    ArchivePage(origin, posts=30).publish()
    origin.fault("/archive/", Status(404))
    url = origin.url("/feed")
    async with running(a_config(tmp_path, history=LISTS)) as proxy:
        await proxy.get(url)
        await looked(proxy)
        explained = (await cli("explain", url, proxy=proxy))[1]
    assert f"looked at {origin.url('/')}: {WHY['no-list']}" in explained
    failed = f"looked at {origin.url('/archive/')}: there is no such page (status 404)"
    assert failed in explained


async def test_explain_fetches_a_feed_that_is_not_known_and_keeps_nothing(
    cli: Run, origin: Origin, tmp_path: Path
) -> None:
    """`explain` reads an unknown feed from the publisher, says so, and makes no database."""
    publish_chain(origin, archives=1)
    code, text, said = await cli("explain", origin.url("/feed"))
    assert (code, text.count("prev-archive")) == (0, 1)
    assert "fetching it now, without storing it" in said
    assert list(tmp_path.iterdir()) == []


async def test_explain_ends_with_the_error_of_what_is_no_feed(cli: Run, origin: Origin) -> None:
    """Row 38: for an HTML page `explain` exits 1, with the URL on stderr alone."""
    origin.fault("/page", Document(body=b"<!doctype html><html><body>no</body></html>"))
    code, text, said = await cli("explain", origin.url("/page"))
    assert (code, text) == (1, "")
    assert origin.url("/page") in said


async def test_refresh_asks_the_publisher_and_waits_for_the_end(
    cli: Run, origin: Origin, tmp_path: Path, is_running: bool
) -> None:
    """R14: after `refresh`, the entries of a new archive are in the next answer."""
    publish_chain(origin, archives=2)
    url = origin.url("/feed")
    async with running(a_config(tmp_path)) as proxy:
        await proxy.whole(url)
        publish_chain(origin, archives=3)
        if is_running:
            assert (await cli("refresh", url, proxy=proxy))[0] == 0
    if not is_running:
        assert (await cli("refresh", url))[0] == 0
    async with running(a_config(tmp_path)) as proxy:
        assert len(ids((await proxy.get(url)).body)) == 8


async def test_full_refresh_takes_the_chain_of_the_publisher_for_the_truth(
    cli: Run, origin: Origin, tmp_path: Path
) -> None:
    """R14."""
    origin.publish("/feed", atom(an_item("a", 3), prev_archive="/1"))
    origin.publish("/1", atom(an_item("b", 2), archive=True, prev_archive="/0"))
    origin.publish("/0", atom(an_item("c", 1), archive=True))
    url = origin.url("/feed")
    (before,) = await known(cli, tmp_path, url, False, ["list"])
    origin.publish("/1", atom(an_item("b", 2), archive=True))
    assert "3 entries" in before
    assert "3 entries" in (await cli("refresh", url))[1]
    assert "2 entries" in (await cli("refresh", "--full", url))[1]


async def test_refresh_of_a_feed_whose_publisher_fails_says_so(
    cli: Run, origin: Origin, tmp_path: Path, is_running: bool
) -> None:
    """Row 75: the feed stays, and `refresh` exits 0."""
    origin.publish("/feed", atom(an_item("a"), complete=True))
    url = origin.url("/feed")
    async with running(a_config(tmp_path)) as proxy:
        await proxy.whole(url)
        origin.fault("/feed", Status(500))
        found = await cli("refresh", url, proxy=proxy) if is_running else None
    code, text, said = found or await cli("refresh", url)
    assert (code, text) == (0, "complete, stale: 1 entry out of 1 document (complete, atom)\n")
    assert "stale: When the feed was last asked for, " in said
    assert "the publisher responded with status 500; this is the feed as the publisher sent it " in said


async def test_forget_deletes_the_feed(cli: Run, origin: Origin, tmp_path: Path, is_running: bool) -> None:
    """R25: forgetting again is exit 1 with one line."""
    publish_chain(origin, archives=1)
    url = origin.url("/feed")
    assert await known(cli, tmp_path, url, is_running, ["forget", url], ["list"]) == ["", ""]
    code, _, said = await cli("forget", url)
    assert (code, said.partition(";")[0]) == (1, f"wholefeed: nothing is stored for {url}")
    assert said.endswith(
        "`wholefeed list` shows the feeds that are known, `wholefeed explain` their documents\n"
    )


async def test_an_entry_with_a_long_id_is_removed(
    cli: Run, origin: Origin, tmp_path: Path, is_running: bool
) -> None:
    """I2: the id has no room in a line of a request."""
    long = "x" * 9000
    origin.publish("/feed", atom(an_item(long, 2), an_item("b", 1)))
    url = origin.url("/feed")
    assert await known(cli, tmp_path, url, is_running, ["forget", url, "--entry", f"urn:{long}"]) == [""]
    assert "1 entry " in (await cli("list"))[1]


async def test_one_entry_is_removed(cli: Run, origin: Origin, tmp_path: Path, is_running: bool) -> None:
    """I2: an unknown entry is exit 1, and an empty id exit 2."""
    origin.publish("/feed", atom(an_item("a", 2), an_item("b", 1)))
    url = origin.url("/feed")
    removal = ["forget", url, "--entry", "urn:a"]
    assert await known(cli, tmp_path, url, is_running, removal) == [""]
    assert "1 entry " in (await cli("list"))[1]
    again = ["forget", url, "--entry", " urn:a"]
    async with running(a_config(tmp_path)) as proxy:
        found = await cli(*again, proxy=proxy) if is_running else None
    code, _, said = found or await cli(*again)
    assert (code, said) == (1, "wholefeed: the feed has no entry 'urn:a'\n")
    with pytest.raises(SystemExit, match="2"):
        await cli("forget", url, "--entry", " ")
    assert "1 entry " in (await cli("list"))[1]


async def test_a_feed_that_is_not_known_is_exit_1_and_one_line(cli: Run) -> None:
    """No command passes over it in silence."""
    for command in ("refresh", "forget"):
        code, text, said = await cli(command, "http://a.example/feed")
        assert (code, text, said.count("\n")) == (1, "", 1)
        assert "nothing is stored" in said


async def test_commands_know_the_token_of_the_proxy(
    cli: Run, origin: Origin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Section 2: over HTTP with the token."""
    token = "a-token-of-the-test"
    publish_chain(origin, archives=1)
    async with running(a_config(tmp_path, server={"access_token": token})) as proxy:
        assert (await cli("list", proxy=proxy))[0] == 1
        monkeypatch.setenv("WHOLEFEED_SERVER_ACCESS_TOKEN", token)
        assert (await cli("list", proxy=proxy))[0] == 0


async def test_what_is_not_wholefeed_is_told(
    cli: Run, origin: Origin, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A command does not misread the answer of another server on the port."""
    monkeypatch.setenv("WHOLEFEED_SERVER_PORT", origin.url("").rpartition(":")[2].strip("/"))
    code, _, said = await cli("list")
    assert code == 1
    assert "is not wholefeed" in said


def test_durations_of_a_clock_that_was_put_back_are_not_negative() -> None:
    """Row 73: a negative age is printed as 0 s."""
    document: dict[str, object] = {
        "url": "u", "role": "subscription", "relation": None, "standing": "kept", "entries": 1,
        "duplicates": 0, "fetched": "2026-01-01T00:00:00Z", "notes": [], "failure": None,
    }  # fmt: skip
    status = {
        "url": "u", "state": "complete", "stale": False, "entries": 1, "documents": 1, "kind": "complete",
        "format": "atom", "since": "2026-01-01T00:00:00Z", "failure": None, "ending": None, "walking": True,
        "notes": [], "chain": [document], "missing": [], "refreshing": True, "paused_until": None,
        "last_refresh": "2026-01-01T00:00:00Z", "fresh_until": None, "next_refresh": None,
    }  # fmt: skip
    text = explain(status, now=0.0)
    assert "kept      0 seconds" in text
    assert "Older documents are being fetched now" in text


@pytest.mark.parametrize("command", ["explain", "refresh", "forget"])
async def test_what_is_no_url_of_a_feed_is_a_mistake_of_the_command_line(
    cli: Run, tmp_path: Path, is_running: bool, command: str
) -> None:
    """The command exits with 2 and one line."""
    async with running(a_config(tmp_path)) as proxy:
        code, _, said = await cli(command, "notaurl", proxy=proxy if is_running else None)
    assert (code, said) == (2, "wholefeed: expected an http(s) URL, got 'notaurl'\n")
