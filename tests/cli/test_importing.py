"""`wholefeed import`: files and archives that people have kept (I1)."""

from __future__ import annotations

import json
import os
import zipfile
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.cli.test_feeds import Run, cli, is_running
from tests.feeds import an_item, atom, rss, stamp
from tests.origin import Origin
from tests.running import Proxy, a_config, running
from tests.saved_files import Post, feedbin, freshrss, miniflux, newsboat

__all__ = ["cli", "is_running"]  # fixtures


@asynccontextmanager
async def beside(tmp_path: Path, url: str, is_running: bool) -> AsyncIterator[Proxy | None]:
    """Let a proxy know a feed; yield it, or None after its end."""
    async with running(a_config(tmp_path)) as proxy:
        await proxy.whole(url)
        if is_running:
            yield proxy
    if not is_running:
        yield None


async def entries_of(cli: Run, proxy: Proxy | None = None) -> int:
    """Count the entries of the only feed."""
    (told,) = json.loads((await cli("list", "--json", proxy=proxy))[1])
    return int(told["entries"])


async def test_files_are_put_into_a_feed_one_after_the_other(
    cli: Run, origin: Origin, tmp_path: Path, is_running: bool
) -> None:
    """I1: exit 0 if all were imported or present; explain shows them."""
    url = origin.url("/feed")
    origin.publish("/feed", atom(an_item("d", 9)))
    (tmp_path / "new.xml").write_bytes(atom(an_item("d", 9), an_item("c", 3), an_item("b", 2)))
    (tmp_path / "old.xml").write_bytes(atom(an_item("a", 1)))
    async with beside(tmp_path, url, is_running) as proxy:
        code, text, messages = await cli("import", url, "new.xml", "old.xml", "old.xml", proxy=proxy)
        assert (code, messages) == (0, "")
        assert text.splitlines() == [
            f"new.xml: imported: 3 entries as of {stamp(9)}, 2 of them new",
            f"old.xml: imported: 1 entry as of {stamp(1)}, 1 of them new",
            "old.xml: already there",
        ]
        explained = (await cli("explain", url, proxy=proxy))[1]
        assert f"imported, as of {stamp(1)}: old.xml" in explained
        assert "2 imported documents: 3 entries that no other document of this feed has." in explained
        assert await entries_of(cli, proxy) == 4

        kept_elsewhere = f"../{tmp_path.name}/new.xml"  # goes by the file's name, as an absolute path does
        code, text, _ = await cli("import", url, "--remove", kept_elsewhere, proxy=proxy)
        assert (code, text) == (0, "new.xml: 1 document removed\n")
        assert await entries_of(cli, proxy) == 2
        code, _, messages = await cli("import", url, "--remove", "new.xml", proxy=proxy)
        assert code == 1
        assert "nothing was imported as 'new.xml'" in messages


async def test_what_is_refused_is_named_and_the_rest_taken(
    cli: Run, origin: Origin, tmp_path: Path, is_running: bool
) -> None:
    """I1: exit 1, each with its reason; --force imports any of the format."""
    url = origin.url("/feed")
    origin.publish("/feed", atom(an_item("d", 9)))
    foreign = atom(an_item("x", 1), feed_id="urn:another")
    kept = {
        "a.xml": atom(an_item("a", 1)),
        "x.xml": foreign,
        "b.rss": rss(an_item("d", 9)),
        "c.txt": b"hello",
    }
    for name, body in kept.items():
        (tmp_path / name).write_bytes(body)
    async with beside(tmp_path, url, is_running) as proxy:
        code, text, messages = await cli("import", url, *kept, "gone.xml", proxy=proxy)
        assert (code, len(text.splitlines())) == (1, 1)
        told = dict(
            line.removeprefix("wholefeed: ").split(": not imported: ") for line in messages.splitlines()
        )
        assert list(told) == ["x.xml", "b.rss", "c.txt", "gone.xml"]
        assert "belongs to urn:another; --force (over HTTP force=1) takes it all the same" in told["x.xml"]
        assert "got rss" in told["b.rss"]
        assert told["gone.xml"] == "No such file or directory"
        code, text, _ = await cli("import", url, "--force", "x.xml", proxy=proxy)
        assert (code, text) == (0, f"x.xml: imported: 1 entry as of {stamp(1)}, 1 of them new\n")


async def test_an_archive_gives_its_files(cli: Run, origin: Origin, tmp_path: Path, is_running: bool) -> None:
    """I1: each by its own name and time."""
    url = origin.url("/feed")
    origin.publish("/feed", rss(an_item("d", 9)))
    with zipfile.ZipFile(tmp_path / "kept.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.mkdir("2011")
        archive.writestr("2011/feed.xml", rss(an_item("a", 1)))
        archive.writestr(zipfile.ZipInfo("undated.xml", (2012, 5, 1, 12, 0, 0)), rss(an_item("b", None)))
        archive.writestr("readme.txt", "no feed")
    async with beside(tmp_path, url, is_running) as proxy:
        code, text, messages = await cli("import", url, "kept.zip", proxy=proxy)
        assert code == 1
        assert text.splitlines() == [
            f"kept.zip/2011/feed.xml: imported: 1 entry as of {stamp(1)}, 1 of them new",
            "kept.zip/undated.xml: imported: 1 entry as of 2012-05-01T12:00:00Z, 1 of them new",
        ]
        assert messages.startswith("wholefeed: kept.zip/readme.txt: not imported: ")
        text = (await cli("import", "--remove", url, "kept.zip", proxy=proxy))[1]
        assert text == "kept.zip: 2 documents removed\n"


async def test_the_time_of_a_file_is_said_or_its_own(
    cli: Run, origin: Origin, tmp_path: Path, is_running: bool
) -> None:
    """I1: --at, else its newest date, else its modification time."""
    url = origin.url("/feed")
    origin.publish("/feed", rss(an_item("d", 9)))
    for name in ("a", "b"):
        (tmp_path / f"{name}.xml").write_bytes(rss(an_item(name, None)))
        os.utime(tmp_path / f"{name}.xml", (1_300_000_000, 1_300_000_000))
    async with beside(tmp_path, url, is_running) as proxy:
        text = (await cli("import", url, "a.xml", proxy=proxy))[1]
        assert "as of 2011-03-13T07:06:40Z" in text
        text = (await cli("import", url, "b.xml", "--at", "2010-01-01T00:00:00Z", proxy=proxy))[1]
        assert "as of 2010-01-01T00:00:00Z" in text


async def test_a_complete_feed_keeps_it_and_says_so(
    cli: Run, origin: Origin, tmp_path: Path, is_running: bool
) -> None:
    """I1, R1."""
    url = origin.url("/feed")
    origin.publish("/feed", atom(an_item("d", 9), complete=True))
    (tmp_path / "a.xml").write_bytes(atom(an_item("a", 1)))
    async with beside(tmp_path, url, is_running) as proxy:
        code, text, _ = await cli("import", url, "a.xml", proxy=proxy)
        assert code == 0
        assert text.endswith("; stored but not served, since the publisher says that the feed is complete\n")
        assert "stored but not served" in (await cli("explain", url, proxy=proxy))[1]


async def test_a_feed_that_is_not_known_is_fetched_first(cli: Run, origin: Origin, tmp_path: Path) -> None:
    """I1: also without a database; an unreachable feed is an error."""
    url = origin.url("/feed")
    origin.publish("/feed", atom(an_item("d", 9)))
    (tmp_path / "a.xml").write_bytes(atom(an_item("a", 1)))
    code, text, _ = await cli("import", url, "a.xml")
    assert (code, "1 of them new" in text) == (0, True)
    assert await entries_of(cli) == 2
    code, text, messages = await cli("import", origin.url("/gone"), "a.xml")
    assert (code, text) == (1, "")
    assert "404" in messages


@pytest.mark.parametrize(
    "arguments",
    [[], ["--remove"], ["a.xml", "--at", "yesterday"], ["a.xml", "--force=1"]],
    ids=["nothing", "nothing to remove", "no instant", "no flag"],
)
async def test_a_wrong_command_line_exits_2(cli: Run, arguments: list[str]) -> None:
    """I1: before any request."""
    try:
        code = (await cli("import", "http://o.test/feed", *arguments))[0]
    except SystemExit as exc:
        code = int(str(exc.code))
    assert code == 2


# Hostile archives


def an_archive(path: Path, *members: tuple[str, bytes]) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, body in members:
            archive.writestr(name, body)


@pytest.mark.fault("127")
async def test_row_127_a_bomb_is_refused(cli: Run, origin: Origin, tmp_path: Path) -> None:
    """docs/faults.md row 127: the archive may lie about the size."""
    url = origin.url("/feed")
    origin.publish("/feed", atom(an_item("d", 9)))
    bomb = atom(an_item("a", 1), extra=" " * (8 << 20))
    an_archive(tmp_path / "bomb.zip", ("bomb.xml", bomb), ("a.xml", atom(an_item("b", 1))))
    an_archive(tmp_path / "many.zip", *((f"{number}.xml", b"") for number in range(10_001)))
    lying = (
        (tmp_path / "bomb.zip")
        .read_bytes()
        .replace(len(bomb).to_bytes(4, "little"), (1000).to_bytes(4, "little"))
    )
    (tmp_path / "lying.zip").write_bytes(lying)
    (tmp_path / "broken.zip").write_bytes(lying[:-200] + lying[-22:])
    code, text, messages = await cli("import", url, "bomb.zip", "many.zip", "lying.zip", "broken.zip")
    assert code == 1
    assert text.splitlines()[0].startswith("bomb.zip/a.xml: imported")
    assert "bomb.zip/bomb.xml: not imported: expected at most 200 bytes for each compressed byte" in messages
    assert "many.zip: not imported: expected an archive of at most 10000 files, got 10001" in messages
    assert "lying.zip/bomb.xml: not imported: " in messages
    assert "broken.zip" in messages


@pytest.mark.fault("127")
async def test_row_127_a_file_is_as_large_as_a_document_may_be(
    cli: Run, origin: Origin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """docs/faults.md row 127: beside an archive and in one."""
    url = origin.url("/feed")
    monkeypatch.setenv("WHOLEFEED_LIMITS_DOCUMENT_BYTES", "4096")
    origin.publish("/feed", atom(an_item("d", 9)))
    large = atom(an_item("a", 1, os.urandom(4096).hex()))
    (tmp_path / "large.xml").write_bytes(large)
    an_archive(tmp_path / "kept.zip", ("large.xml", large))
    code, text, messages = await cli("import", url, "large.xml", "kept.zip")
    assert (code, text) == (1, "")
    assert messages.count("larger than limits.document_bytes = 4096") == 2


@pytest.mark.parametrize("is_of_version", [False, True], ids=["a name not in UTF-8", "another version"])
async def test_a_damaged_list_of_an_archive_is_told(
    cli: Run, origin: Origin, tmp_path: Path, is_of_version: bool
) -> None:
    """I1: zipfile raises other errors than its own."""
    url = origin.url("/feed")
    origin.publish("/feed", atom(an_item("d", 9)))
    path = tmp_path / "kept.zip"
    an_archive(path, ("\u00e9.xml", atom(an_item("a", 1))))
    body = bytearray(path.read_bytes())
    start = body.index(b"PK\1\2")
    if is_of_version:
        body[start + 6] = 99
    else:
        body[body.index("\u00e9".encode(), start)] = 0xFF
    path.write_bytes(body)
    code, text, messages = await cli("import", url, "kept.zip")
    assert (code, text) == (1, "")
    assert "kept.zip: not imported: expected an archive that can be read" in messages


async def test_parts_of_a_large_file_join_no_two_posts(
    cli: Run, origin: Origin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """I4: posts without ids, with one link, in different parts."""
    url = origin.url("/feed")
    monkeypatch.setenv("WHOLEFEED_LIMITS_DOCUMENT_BYTES", "16384")
    origin.publish("/feed", atom(an_item("d", 9)))
    found = json.loads(miniflux(posts_of(url, *(f"p{number}" for number in range(100)))))
    for entry in (found["entries"][0], found["entries"][99]):
        entry["url"] = "http://site.test/same"
    (tmp_path / "large").write_bytes(json.dumps(found).encode())
    code, text, _ = await cli("import", url, "large")
    assert (code, text) == (0, f"large: imported: 100 entries as of {stamp(1)}, 100 of them new\n")


async def test_a_feed_continues_another(cli: Run, origin: Origin, tmp_path: Path, is_running: bool) -> None:
    """I3: an impossible `continue OLD NEW` is exit 1 and one line."""
    old, new = origin.url("/old"), origin.url("/new")
    origin.publish("/old", atom(an_item("b", 2), an_item("a", 1)))
    origin.publish("/new", atom(an_item("c", 3)))
    async with running(a_config(tmp_path)) as proxy:
        await proxy.whole(old)
        await proxy.whole(new)
        beside = [
            await cli("continue", *urls, proxy=proxy) if is_running else None
            for urls in ((old, new), (new, old), (old, origin.url("/none")))
        ]
    found = [
        each or await cli("continue", *urls)
        for each, urls in zip(beside, ((old, new), (new, old), (old, origin.url("/none"))), strict=True)
    ]
    assert found[0][:2] == (0, "continued: 2 entries, 2 of them new\n")
    assert [code for code, _, _ in found[1:]] == [1, 1]
    assert "a circle" in found[1][2]
    async with running(a_config(tmp_path)) as proxy:  # by the name that /status shows
        back = await cli("import", new, "--remove", old, proxy=proxy) if is_running else None
    back = back or await cli("import", new, "--remove", old)
    assert back[:2] == (0, f"{old}: 1 document removed\n")
    assert "nothing is stored for" in found[2][2]


# Files of feed readers


def posts_of(url: str, *names: str) -> list[Post]:
    return [*(Post(name, 1, url) for name in names), Post("x", 1, "http://x.test/feed")]


async def test_a_reader_s_database_gives_the_feed_s_entries(
    cli: Run, origin: Origin, tmp_path: Path, is_running: bool
) -> None:
    """I4: as documents do; one that lacks the feed is refused with the feeds it has."""
    url = origin.url("/feed")
    origin.publish("/feed", atom(an_item("d", 9)))
    (tmp_path / "cache.db").write_bytes(newsboat(posts_of(url, "a", "b")))
    (tmp_path / "other.db").write_bytes(newsboat(posts_of("http://site.test/feed")))
    async with beside(tmp_path, url, is_running) as proxy:
        code, text, messages = await cli("import", url, "cache.db", "other.db", proxy=proxy)
        assert (code, text) == (1, f"cache.db: imported: 2 entries as of {stamp(1)}, 2 of them new\n")
        assert (
            "other.db: not imported: expected entries of this feed, got a file of newsboat with one"
            in messages
        )
        assert await entries_of(cli, proxy) == 3
        text = (await cli("import", url, "--remove", "cache.db", proxy=proxy))[1]
        assert text == "cache.db: 1 document removed\n"


@pytest.mark.parametrize("write", [newsboat, miniflux], ids=["database", "export"])
async def test_a_file_larger_than_a_document_is_read_here(
    cli: Run,
    origin: Origin,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    write: Callable[[list[Post]], bytes],
) -> None:
    """I4: only the feed's entries are sent, in parts of half a document; they go by one name."""
    url = origin.url("/feed")
    monkeypatch.setenv("WHOLEFEED_LIMITS_DOCUMENT_BYTES", "16384")
    origin.publish("/feed", atom(an_item("d", 9)))
    names = [f"p{number}" for number in range(100)]
    (tmp_path / "large").write_bytes(write(posts_of(url, *names)))
    (tmp_path / "others").write_bytes(write(posts_of("http://site.test/feed", *names)))
    (tmp_path / "stars").write_bytes(feedbin(posts_of(url, *names)))
    code, text, messages = await cli("import", url, "large", "others", "stars", "large")
    assert code == 1
    assert text.splitlines() == [
        f"large: imported: 100 entries as of {stamp(1)}, 100 of them new",
        "large: already there",
    ]
    assert "others: not imported: expected entries of this feed" in messages
    assert "stars: not imported: expected entries that name their feed" in messages
    assert await entries_of(cli) == 101
    assert "removed" in (await cli("import", url, "--remove", "large"))[1]
    assert await entries_of(cli) == 1


async def test_an_archive_of_exports_gives_the_feed_s_own(
    cli: Run, origin: Origin, tmp_path: Path, is_running: bool
) -> None:
    """I4: FreshRSS exports an archive with a file for each feed, and a list of feeds."""
    url = origin.url("/feed")
    origin.publish("/feed", atom(an_item("d", 9)))
    others = [f"http://{name}.test/feed" for name in "xyz"]
    with zipfile.ZipFile(tmp_path / "freshrss.zip", "w") as archive:
        archive.writestr("feeds.opml.xml", "<opml/>")
        for number, feed in enumerate([*others, url]):
            archive.writestr(f"feed_{number}.json", freshrss([Post(f"p{number}", 1, feed)]))
    async with beside(tmp_path, url, is_running) as proxy:
        code, text, messages = await cli("import", url, "freshrss.zip", proxy=proxy)
        assert (code, messages) == (0, "")
        assert text.splitlines() == [
            f"freshrss.zip/feed_3.json: imported: 1 entry as of {stamp(1)}, 1 of them new",
            "freshrss.zip: 3 files of other feeds passed over",
        ]
        with zipfile.ZipFile(tmp_path / "others.zip", "w") as archive:
            archive.writestr("1.json", freshrss([Post("a", 1, others[0])]))
            archive.writestr("2.json", freshrss([Post("b", 1, others[1])]))
        code, text, messages = await cli("import", url, "others.zip", proxy=proxy)
        assert (code, text) == (1, "")
        assert messages.count("\n") == 1
        assert "others.zip/1.json: not imported: " in messages
        assert ", and 1 others alike" in messages


async def test_a_database_in_use_is_refused(cli: Run, origin: Origin, tmp_path: Path) -> None:
    """I4: the latest changes stand in a file beside it."""
    url = origin.url("/feed")
    origin.publish("/feed", atom(an_item("d", 9)))
    (tmp_path / "cache.db").write_bytes(newsboat(posts_of(url, "a")))
    (tmp_path / "cache.db-wal").write_bytes(b"x")
    code, text, messages = await cli("import", url, "cache.db")
    assert (code, text) == (1, "")
    assert "with changes in cache.db-wal: end the program first" in messages
