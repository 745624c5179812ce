"""`wholefeed check`: findings on broken publishers, each with rule, document and line."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from demo.proxy_process import free_port
from tests.answers import Answer, Computed, Document, Status
from tests.feeds import an_item, atom, json_feed, rss
from tests.origin import ATOM, Origin
from tests.patching import set_constant
from wholefeed.cli.main import main
from wholefeed.core.model import TOMBSTONE_NS

Check = Callable[..., Awaitable[tuple[int, str, str]]]
FEED, NEWER, OLDER = "/feed", "/archive/2", "/archive/1"


class Said(NamedTuple):
    """One finding, as either form of the output tells it."""

    level: str
    rule: str
    path: str
    line: int | None


@pytest.fixture
def check(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Check:
    """Run the command; return exit code, output and messages."""
    monkeypatch.setenv("WHOLEFEED_FETCH_ALLOW_NETWORKS", "127.0.0.0/8")
    monkeypatch.setenv("WHOLEFEED_FETCH_RETRIES", "0")
    monkeypatch.setenv("WHOLEFEED_SERVER_PORT", str(free_port()))
    set_constant(monkeypatch, "PAUSE_SECONDS", 0.0)

    async def run(*arguments: str) -> tuple[int, str, str]:
        capsys.readouterr()
        code = await asyncio.to_thread(main, ["check", *arguments])
        said = capsys.readouterr()
        return code, said.out, said.err

    return run


def feed(**changes: Any) -> bytes:
    """Return the subscription document of a sound publisher, with these changes."""
    sound: dict[str, Any] = {"self": FEED, "prev_archive": NEWER, "updated": 6}
    items = changes.pop("items", (an_item("e6", 6), an_item("e5", 5)))
    return atom(*items, **(sound | changes))


def newer(**changes: Any) -> bytes:
    sound: dict[str, Any] = {
        "self": NEWER,
        "prev_archive": OLDER,
        "current": FEED,
        "archive": True,
        "updated": 4,
    }
    items = changes.pop("items", (an_item("e4", 4), an_item("e3", 3)))
    return atom(*items, **(sound | changes))


def older(**changes: Any) -> bytes:
    sound: dict[str, Any] = {
        "self": OLDER,
        "next_archive": NEWER,
        "current": FEED,
        "archive": True,
        "updated": 2,
    }
    items = changes.pop("items", (an_item("e2", 2), an_item("e1", 1)))
    return atom(*items, **(sound | changes))


def publish(origin: Origin, **bodies: bytes) -> str:
    """Publish a sound feed of three documents, with these changes; return its URL."""
    for name, path, make in (("feed", FEED, feed), ("newer", NEWER, newer), ("older", OLDER, older)):
        body = bodies.get(name) or make()
        origin.publish(path, body, etag=f'"{hash(body)}"')
    return origin.url(FEED)


def changing(origin: Origin, path: str, *answers: bytes | Status) -> None:
    """Answer a path with these in turn."""
    count = -1

    def next_one(_request: object) -> Answer:
        nonlocal count
        count += 1
        answer = answers[count % len(answers)]
        if isinstance(answer, Status):
            return answer
        return Document(body=answer, headers=(("Content-Type", ATOM),), etag=f'"{count + 1}"')

    origin.answer(path, Computed(next_one))


def spread(body: bytes, tag: str) -> tuple[bytes, int]:
    """Put the first such tag on its own line; return the document and that line."""
    at = body.index(tag.encode())
    return body[:at] + b"\n" + body[at:], body.count(b"\n", 0, at) + 2


def findings(told: str) -> list[Said]:
    """Return the findings of `--json`, errors first."""
    said = json.loads(told)
    assert list(said) == ["errors", "warnings"]
    for each in (*said["errors"], *said["warnings"]):
        assert list(each) == ["rule", "document", "line", "text", "mend"]
        assert each["text"]
        assert each["mend"]
    return [
        Said(level, each["rule"], each["document"].split("/", 3)[3], each["line"])
        for level, name in (("error", "errors"), ("warning", "warnings"))
        for each in said[name]
    ]


def in_words(text: str) -> list[Said]:
    """Return the same findings from the text for people."""
    rows = re.findall(
        r"^(error|warning): ([a-z-]+): [a-z]+://[^/\s]+/(.*?)(?:, line (\d+))?$", text, re.MULTILINE
    )
    return [Said(level, rule, path, int(line) if line else None) for level, rule, path, line in rows]


async def said_of(check: Check, url: str) -> list[Said]:
    """Return the findings; both forms agree, and exit with 1 exactly for errors."""
    code, told, _ = await check("--json", url)
    found = findings(told)
    code_of_words, text, _ = await check(url)
    assert in_words(text) == found
    assert code == code_of_words == int(any(each.level == "error" for each in found))
    assert text.count("    mend: ") == len(found)
    return found


def error(rule: str, path: str, line: int | None = None) -> Said:
    return Said("error", rule, path.removeprefix("/"), line)


def warning(rule: str, path: str, line: int | None = None) -> Said:
    return Said("warning", rule, path.removeprefix("/"), line)


async def test_a_sound_feed_is_well(check: Check, origin: Origin, tmp_path: Path) -> None:
    """Each document is asked for twice, without conditions, and none is stored."""
    what = "3 documents, 6 entries (archived): 0 errors, 0 warnings"
    well = "All is well: readers can have the whole history of this feed."
    assert await check(publish(origin)) == (0, f"{what}\n{well}\n", "")
    assert set(origin.counts().values()) == {2}
    assert not any("if-none-match" in each.headers for each in origin.requests)
    assert await said_of(check, origin.url(FEED)) == []
    assert list(tmp_path.iterdir()) == []


async def test_what_is_no_feed_ends_in_one_line(check: Check, origin: Origin) -> None:
    """The command exits with 1 for an unreadable feed, with 2 for a malformed URL."""
    for answer in (Status(404), Document(body=b"<!doctype html><html></html>"), Document(body=b"nothing")):
        origin.fault("/none", answer, times=2)
        for arguments in ([], ["--json"]):
            code, told, said = await check(*arguments, origin.url("/none"))
            assert (code, told, said.count("\n")) == (1, "", 1)
            assert origin.url("/none") in said
    assert (await check("http://[no"))[0] == 2


async def test_an_archive_that_is_missing_is_an_error(check: Check, origin: Origin) -> None:
    """RFC 5005, section 4.1: the finding names the document, and the link to it."""
    body, line = spread(newer(), '<link rel="prev-archive"')
    url = publish(origin, newer=body)
    origin.remove(OLDER)
    assert await said_of(check, url) == [error("document-unavailable", OLDER)]
    text = (await check(url))[1]
    assert f"status 404; the prev-archive link of {origin.url(NEWER)} (line {line}) leads there" in text


async def test_a_link_that_nobody_can_follow_is_a_document_that_is_missing(
    check: Check, origin: Origin
) -> None:
    """RFC 5005, section 4.1; R2: the only link to older entries is no address of the web."""
    body, line = spread(newer(prev_archive="gopher://example.org/older"), '<link rel="prev-archive"')
    assert await said_of(check, publish(origin, newer=body)) == [error("document-unavailable", NEWER, line)]


async def test_an_archive_that_fails_the_second_time_is_an_error(check: Check, origin: Origin) -> None:
    """RFC 5005, section 4.1: a first success does not excuse it."""
    url = publish(origin)
    changing(origin, OLDER, older(), Status(500))
    assert await said_of(check, url) == [error("document-unavailable", OLDER)]


async def test_an_archive_that_cannot_be_read_is_an_error(check: Check, origin: Origin) -> None:
    """RFC 4287, section 2: the finding names the line where reading ends."""
    url = publish(
        origin, older=b'{"version": "https://jsonfeed.org/version/1.1",\n"title": "A feed",\n"items": [}'
    )
    assert await said_of(check, url) == [error("document-unreadable", OLDER, 3)]
    publish(origin, older=rss(an_item("e2", 2)))
    assert await said_of(check, url) == [error("document-unreadable", OLDER)]
    publish(origin, older=older()[:-30])
    assert error("document-unreadable", OLDER) in await said_of(check, url)


async def test_a_loop_is_an_error(check: Check, origin: Origin) -> None:
    """RFC 5005, section 6: the link back is named."""
    body, line = spread(older(prev_archive=NEWER), '<link rel="prev-archive"')
    url = publish(origin, older=body)
    assert await said_of(check, url) == [error("loop", OLDER, line)]
    body, line = spread(older(prev_archive=OLDER), '<link rel="prev-archive"')
    publish(origin, older=body)
    assert await said_of(check, url) == [error("loop", OLDER, line)]
    body, line = spread(feed(prev_archive=None, next=FEED), '<link rel="next"')
    publish(origin, feed=body)
    assert await said_of(check, url) == [error("loop", FEED, line), warning("pages-only", FEED, line)]


async def test_an_archive_that_changes_is_an_error(check: Check, origin: Origin) -> None:
    """RFC 5005, section 4: between two fetches, by its entries or by its text alone."""
    url = publish(origin)
    changing(origin, OLDER, older(), older(extra="<generator>at 12:00:01</generator>"))
    assert await said_of(check, url) == [error("archive-changed", OLDER, 2)]
    assert "the same entries, other text" in (await check(url))[1]
    changing(origin, OLDER, older(), older(items=(an_item("e2", 2), an_item("e0", 0))))
    assert await said_of(check, url) == [error("archive-changed", OLDER, 4)]
    assert "1 entry came, 1 entry went" in (await check(url))[1]


async def test_what_writes_the_time_is_seen_without_waiting_for_luck(
    check: Check, origin: Origin, monkeypatch: pytest.MonkeyPatch
) -> None:
    """RFC 5005, section 4: at least a second between two looks shows a generation time."""
    url = publish(origin)
    monkeypatch.undo()
    monkeypatch.setenv("WHOLEFEED_FETCH_ALLOW_NETWORKS", "127.0.0.0/8")
    await check(url)
    first, second = origin.requests_for(OLDER)
    assert second.at - first.at >= 1.0


async def test_a_current_that_leads_elsewhere_is_an_error(check: Check, origin: Origin) -> None:
    """RFC 5005, section 4: a redirect to the feed, and another URL of it, are sound."""
    body, line = spread(older(current="/gone"), '<link rel="current"')
    url = publish(origin, older=body)
    assert await said_of(check, url) == [error("current-elsewhere", OLDER, line)]
    origin.publish("/gone", atom(an_item("x"), feed_id="urn:other"))
    assert await said_of(check, url) == [error("current-elsewhere", OLDER, line)]
    origin.redirect("/gone", FEED, status=301)
    assert await said_of(check, url) == []
    origin.publish("/gone", feed())
    assert await said_of(check, url) == []


async def test_ids_that_differ_between_copies_are_an_error(check: Check, origin: Origin) -> None:
    """RFC 4287, section 4.2.6: one entry in two documents, or one document fetched twice."""
    copy = older().replace(b"<id>urn:e2<", b"<id>urn:other<")
    entry = copy[copy.index(b"<entry>") : copy.index(b"</entry>")] + b"</entry>\n"
    body = newer().replace(b"<entry>", entry + b"<entry>", 1)
    url = publish(origin, newer=body)
    assert await said_of(check, url) == [error("ids-differ", OLDER, 3)]
    assert f"has the id urn:e2 here, and urn:other in {origin.url(NEWER)} (line 3)" in (await check(url))[1]
    publish(origin)
    changing(origin, FEED, feed(), feed().replace(b"<id>urn:e5<", b"<id>urn:e5-again<"))
    assert error("ids-differ", FEED, 4) in await said_of(check, url)


async def test_entries_of_one_link_are_no_copies_of_one(check: Check, origin: Origin) -> None:
    """RFC 4287, section 4.2.6: titles tell them apart, unless a document repeats a title."""
    bodies = {"newer": newer(), "older": older()}
    for said, instead in (
        (rb"http://site.test/e\d", b"http://site.test/log"),
        (rb"<title>e\d", b"<title>Log"),
    ):
        bodies = {name: re.sub(said, instead, body) for name, body in bodies.items()}
        assert await said_of(check, publish(origin, **bodies)) == []


async def test_a_missing_or_future_updated_is_an_error(check: Check, origin: Origin) -> None:
    """RFC 4287, sections 4.1.1, 4.1.2 and 4.2.15: in an entry and in the feed."""
    url = publish(origin, older=older(items=(an_item("e2", 2), an_item("e1", None))))
    assert await said_of(check, url) == [error("updated-missing", OLDER, 4)]
    body = re.sub(rb"<updated>[^<]*</updated><author>", b"<author>", older())
    publish(origin, older=body)
    assert await said_of(check, url) == [error("updated-missing", OLDER, 2)]
    publish(origin, feed=feed(items=(an_item("e6", 10**6), an_item("e5", 5))))
    assert await said_of(check, url) == [error("updated-in-future", FEED, 3)]
    body, line = spread(feed(updated=10**6), "<updated>")
    publish(origin, feed=body)
    assert await said_of(check, url) == [error("updated-in-future", FEED, line)]


async def test_a_tombstone_without_a_time_is_an_error(check: Check, origin: Origin) -> None:
    """RFC 6721, section 3: `when` is absent, or no time."""
    extra = (
        f'\n<at:deleted-entry xmlns:at="{TOMBSTONE_NS}" ref="urn:a" when="2005-11-29T12:11:12Z"/>'
        f'\n<at:deleted-entry xmlns:at="{TOMBSTONE_NS}" ref="urn:b"/>'
        f"\n<at:deleted-entry xmlns:at='{TOMBSTONE_NS}' ref='c' when='soon'><a when='1'/></at:deleted-entry>"
    )
    url = publish(origin, feed=feed(extra=extra))
    assert await said_of(check, url) == [
        error("tombstone-undated", FEED, 4),
        error("tombstone-undated", FEED, 5),
    ]


async def test_a_feed_without_a_history_is_told_how_to_link_one(check: Check, origin: Origin) -> None:
    """RFC 5005, sections 2 and 4: fh:complete is an answer, too."""
    url = publish(origin, feed=feed(prev_archive=None))
    assert await said_of(check, url) == [warning("no-history", FEED)]
    assert "prev-archive, or say with fh:complete" in (await check(url))[1]
    publish(origin, feed=feed(prev_archive=None, complete=True))
    assert await said_of(check, url) == []


async def test_links_of_the_drafts_are_a_warning(check: Check, origin: Origin) -> None:
    """RFC 5005, section 4: fh:prev is followed, and prev-archive advised."""
    body, line = spread(feed(prev_archive=None, extra=f"<fh:prev>{OLDER}</fh:prev>"), "<fh:prev>")
    url = publish(origin, feed=body, older=older(next_archive=None))
    assert await said_of(check, url) == [warning("old-links", FEED, line)]


async def test_what_archives_lack_is_a_warning(check: Check, origin: Origin) -> None:
    """RFC 5005, section 4: fh:archive and current; RFC 4287, section 4.1.1: self."""
    url = publish(origin, older=older(archive=False, current=None, self=None))
    assert await said_of(check, url) == [
        warning("archive-unmarked", OLDER),
        warning("current-missing", OLDER),
        warning("self-missing", OLDER),
    ]


async def test_archives_that_caches_may_not_keep_are_a_warning(check: Check, origin: Origin) -> None:
    """RFC 5005, section 4: no-cache and no-store; so is a document without validators."""
    url = publish(origin)
    origin.publish(OLDER, older(), headers=[("Cache-Control", "no-cache")])
    origin.publish(NEWER, newer(), etag='"1"', headers=[("Cache-Control", "max-age=0, no-store")])
    assert await said_of(check, url) == [
        warning("archive-not-cacheable", NEWER),
        warning("archive-not-cacheable", OLDER),
        warning("validators-missing", OLDER),
    ]


async def test_an_archive_that_is_linked_too_early_is_a_warning(check: Check, origin: Origin) -> None:
    """RFC 5005, section 4: an archive with fewer entries than all others is incomplete."""
    body, line = spread(feed(prev_archive="/archive/3"), '<link rel="prev-archive"')
    url = publish(origin, feed=body, newer=newer(next_archive="/archive/3"))
    third = atom(
        an_item("e5", 5), updated=5, archive=True, self="/archive/3", prev_archive=NEWER, current=FEED
    )  # fmt: skip
    origin.publish("/archive/3", third, etag='"3"')
    assert await said_of(check, url) == [warning("archive-growing", FEED, line)]
    assert "/archive/3 has 1 entry, every other one 2" in (await check(url))[1]


@pytest.mark.fault("158")
async def test_archives_that_are_numbered_from_the_newest_are_a_warning(check: Check, origin: Origin) -> None:
    """R35; RFC 5005, section 4: a new entry shifts others to the next archive."""
    body, line = spread(feed(prev_archive="/archive/1"), '<link rel="prev-archive"')
    url = publish(
        origin,
        feed=body,
        older=newer(self="/archive/1", prev_archive="/archive/2"),
        newer=older(self="/archive/2", next_archive="/archive/1"),
    )
    assert await said_of(check, url) == [warning("archives-shift", FEED, line)]


async def test_links_that_contradict_each_other_are_a_warning(check: Check, origin: Origin) -> None:
    """RFC 5005, sections 2 to 4: such as fh:complete beside prev-archive, and fh:archive in the
    subscription document."""
    body, line = spread(feed(extra='<link rel="prev-archive" href="/x"/>'), '<link rel="prev-archive"')
    url = publish(origin, feed=body)
    assert await said_of(check, url) == [warning("links-contradict", FEED, line)]
    publish(origin)
    body, line = spread(feed(), '<link rel="prev-archive"')
    origin.publish(FEED, body, etag='"1"', headers=[("Link", '</x>; rel="prev-archive"')])
    assert await said_of(check, url) == [warning("links-contradict", FEED, line)]
    body, line = spread(older(next_archive=OLDER, self=NEWER), '<link rel="self"')
    publish(origin, older=body)
    assert await said_of(check, url) == 2 * [warning("links-contradict", OLDER, line)]
    body, line = spread(newer(next_archive=FEED), '<link rel="next-archive"')
    publish(origin, newer=body)
    assert await said_of(check, url) == [warning("links-contradict", NEWER, line)]
    body, line = spread(feed(complete=True), "<fh:complete/>")
    publish(origin, feed=body)
    assert await said_of(check, url) == [warning("links-contradict", FEED, line)]
    body, line = spread(feed(archive=True), "<fh:archive/>")
    publish(origin, feed=body)
    assert await said_of(check, url) == [warning("links-contradict", FEED, line)]
    publish(origin, feed=feed(next_archive="mailto:ann@site.test"))
    assert await said_of(check, url) == [warning("links-contradict", FEED, 2)]


async def test_entries_that_leave_for_nowhere_are_a_warning(check: Check, origin: Origin) -> None:
    """RFC 5005, section 4: old entries need an archive or a tombstone."""
    url = publish(origin)
    changing(origin, FEED, feed(), feed(items=(an_item("e7", 7),)))
    assert await said_of(check, url) == [warning("entries-left", FEED, 3), warning("entries-left", FEED, 4)]
    gone = "".join(
        f'<at:deleted-entry xmlns:at="{TOMBSTONE_NS}" ref="urn:e{n}" when="2026-01-01T00:00:00Z"/>'
        for n in (5, 6)
    )
    changing(origin, FEED, feed(), feed(items=(an_item("e7", 7),), extra=gone))
    assert await said_of(check, url) == []


async def test_documents_that_readers_refuse_are_a_warning(check: Check, origin: Origin) -> None:
    """docs/readers.md: a document larger than a reader accepts, with the names of these readers."""
    url = publish(origin, feed=feed(items=(an_item("e6", 6, "x" * 11_000_000),)))
    assert await said_of(check, url) == [warning("readers-refuse", FEED)]
    assert "too many for CommaFeed, Feedbin" in (await check(url))[1]


async def test_what_had_to_be_repaired_is_a_warning_and_lines_stay(check: Check, origin: Origin) -> None:
    """XML 1.0, section 2.1: line numbers are those of the sent document."""
    body = older(items=(an_item("e2", 2, "this & that"), an_item("e1", None)))
    for sent in (body, body.decode().replace("utf-8", "utf-16").encode("utf-16")):
        assert await said_of(check, publish(origin, older=sent)) == [
            error("updated-missing", OLDER, 4),
            warning("not-well-formed", OLDER, 3),
        ]


async def test_lines_of_a_document_in_another_encoding(check: Check, origin: Origin) -> None:
    """Line numbers are those of the sent document."""
    body = older(items=(an_item("e2", 2), an_item("e1", None))).decode().replace("utf-8", "utf-16")
    url = publish(origin, older=body.encode("utf-16"))
    assert await said_of(check, url) == [error("updated-missing", OLDER, 4)]
    items = json.loads(json_feed(an_item("a", 1), an_item("b", 10**6), an_item("c", 1)))["items"]
    told = {"version": "https://jsonfeed.org/version/1.1", "title": "A feed", "items": items}
    text = json.dumps(told, indent=1).encode()
    line = text[: text.index(b'"urn:b"')].count(b"\n")
    origin.publish("/json", text, content_type="application/feed+json", etag='"1"')
    assert await said_of(check, origin.url("/json")) == [
        error("updated-in-future", "/json", line),
        warning("no-history", "/json"),
    ]


async def test_a_podcast_that_names_a_new_address_is_told_to_redirect(check: Check, origin: Origin) -> None:
    """R25: apps follow the new address, and HTTP clients do not."""
    url = origin.url("/rss")
    element = '<itunes:new-feed-url xmlns:itunes="http://www.itunes.com/dtds/podcast-1.0.dtd">%s</itunes:new-feed-url>'
    body, line = spread(
        rss(an_item("e1", 1), complete=True, extra=element % "http://p.test/feed"), "<itunes:"
    )
    origin.publish("/rss", body, content_type="application/rss+xml", etag='"1"')
    assert await said_of(check, url) == [warning("new-address", "/rss", line)]
    assert "the document names 'http://p.test/feed' as the feed's new address" in (await check(url))[1]
    origin.publish(
        "/rss",
        rss(an_item("e1", 1), complete=True, extra=element % url),
        content_type="application/rss+xml",
        etag='"2"',
    )
    assert await said_of(check, url) == []


async def test_rss_is_judged_by_its_own_rules(check: Check, origin: Origin) -> None:
    """RSS needs no updated and no self, but a guid."""
    body = rss(an_item("e2", 2), an_item("e1", 1)).replace(b"<guid isPermaLink='false'>urn:e1</guid>", b"")
    origin.publish("/rss", body, content_type="application/rss+xml", etag='"1"')
    assert await said_of(check, origin.url("/rss")) == [
        warning("no-history", "/rss"),
        warning("id-missing", "/rss", 4),
    ]


async def test_ids_that_unlike_entries_share_are_a_warning(check: Check, origin: Origin) -> None:
    """RFC 4287, section 4.2.6: their texts differ."""
    body = older(items=(an_item("e2", 2), an_item("e1", 2))).replace(b"<id>urn:e1<", b"<id>urn:e2<")
    assert await said_of(check, publish(origin, older=body)) == [warning("id-repeated", OLDER)]


async def test_what_publishers_write_moves_no_cursor(check: Check, origin: Origin) -> None:
    """Control and direction characters reach neither a terminal nor `--json`."""
    evil = "&#x9b;2J&#x202e;&#x7f;"
    copy = older().replace(b"<id>urn:e2<", f"<id>urn:{evil}<".encode())
    entry = copy[copy.index(b"<entry>") : copy.index(b"</entry>")] + b"</entry>\n"
    url = publish(
        origin,
        newer=newer(extra=f'<link rel="current" href="/{evil}"/>').replace(b"<entry>", entry + b"<entry>", 1),
    )
    for arguments in ([], ["--json"]):
        told = (await check(*arguments, url))[1]
        assert "ids-differ" in told
        assert "links-contradict" in told
        assert not set(told) & {"\x9b", "\u202e", "\x7f", "\x1b"}


async def test_whatever_leads_to_the_feed_will_do(check: Check, origin: Origin) -> None:
    """R3: a page that announces it, a redirect, and an archive document."""
    publish(origin)
    head = f'<link rel="alternate" type="application/atom+xml" href="{FEED}">'
    origin.publish("/", f"<!doctype html><html><head>{head}</head></html>", content_type="text/html")
    origin.redirect("/old", FEED, status=301)
    for path in ("/", "/old", OLDER):
        code, told, _ = await check(origin.url(path))
        assert (code, told.partition(":")[0]) == (0, "3 documents, 6 entries (archived)")


async def test_what_was_not_asked_is_no_finding(check: Check, origin: Origin) -> None:
    """Documents of a host that asks to be left alone are not failures."""
    url = publish(origin)
    origin.fault(OLDER, Status(503, (("Retry-After", "60"),)))
    assert await said_of(check, url) == [error("document-unavailable", OLDER)]


async def test_of_many_findings_of_a_rule_some_are_told(check: Check, origin: Origin) -> None:
    """Twenty are shown, and the number of the rest."""
    url = publish(origin, feed=feed(items=tuple(an_item(f"x{n}", None) for n in range(50))))
    assert await said_of(check, url) == [error("updated-missing", FEED, 3 + n) for n in range(20)]
    assert "[and 30 more]" in (await check(url))[1]


async def test_nothing_is_asked_for_but_what_is_linked(check: Check, origin: Origin) -> None:
    """Neither an archive's next number nor the pages of a WordPress."""
    body = rss(an_item("a", 1), extra="<generator>https://wordpress.org/?v=6.5</generator>")
    origin.publish("/wp/feed/", body, content_type="application/rss+xml", etag='"1"')
    await check(origin.url("/wp/feed/"))
    await check(publish(origin))
    assert set(origin.counts()) == {"/wp/feed/", FEED, NEWER, OLDER}
