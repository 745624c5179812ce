"""Each note is raised by a feed that deserves it, stands in /status, and names its subject."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.answers import Request
from tests.feeds import an_item, atom, publish_chain, rss
from tests.listing import LISTS, looked
from tests.note_kinds import NOTE_KINDS, STORED_WITH_DOCUMENTS
from tests.origin import Origin
from tests.patching import set_constant
from tests.publishers.archive_page import ArchivePage
from tests.publishers.wordpress import WordPress
from tests.running import a_config, running
from tests.shifting import Shifting
from tests.sqlite_faults import rows

COLLECTION = "/pywb/feeds"
NEWER_PARSER = 10_000


GUID = (
    "<item><guid>{}</guid><title>a</title><link>http://site.test/a</link>"
    "<pubDate>Sat, 13 Dec 2003 18:30:02 GMT</pubDate></item>"
)


DOCUMENTS: dict[str, tuple[dict[str, bytes], ...]] = {
    "DocumentUnavailable": ({"/feed": atom(an_item("a"), prev_archive="/gone")},),
    "NoSubscriptionDocument": ({"/feed": atom(an_item("a"), archive=True)},),
    "ChainLoop": (
        {
            "/feed": atom(an_item("a"), prev_archive="/1"),
            "/1": atom(an_item("b"), archive=True, prev_archive="/feed"),
        },
    ),
    "NoProgress": (
        {"/feed": atom(an_item("a"), prev_archive="/60")}
        | {
            f"/{n}": atom(an_item("a"), archive=True, prev_archive=f"/{n - 1}", extra=f"<!-- {n} -->")
            for n in range(60, 0, -1)
        },
    ),
    "FormatChanged": (
        {"/feed": rss(an_item("b", 2), an_item("a", 1))},
        {"/feed": atom(an_item("c", 3))},
    ),
    "FormatMismatch": (
        {"/feed": atom(an_item("a"), prev_archive="/1"), "/1": rss(an_item("b"), archive=True)},
    ),
    "BadLink": ({"/feed": atom(an_item("a"), next_archive="mailto:x@o.test")},),
    "DeadChainLink": ({"/feed": atom(an_item("a"), prev_archive="ftp://o.test/1")},),
    "ExtraLink": (
        {
            "/feed": atom(an_item("a"), prev_archive="/1", extra='<link rel="prev-archive" href="/2"/>'),
            "/1": atom(an_item("b"), archive=True),
        },
    ),
    "ArchiveChanged": (
        {
            "/feed": atom(an_item("a"), updated=1, prev_archive="/1"),
            "/1": atom(an_item("b"), archive=True),
        },
        {
            "/feed": atom(an_item("a"), updated=2, prev_archive="/1"),
            "/1": atom(an_item("b"), an_item("c"), archive=True),
        },
    ),
    "HeadCut": ({"/feed": atom(an_item("a"), extra=f"<subtitle>{'x' * 300_000}</subtitle>")},),
    "NewAddress": (
        {
            "/feed": rss(
                an_item("a"),
                extra='<i:new-feed-url xmlns:i="http://www.itunes.com/dtds/podcast-1.0.dtd">http://x.test/f'
                "</i:new-feed-url>",
            )
        },
    ),
    "EncodingRetried": ({"/feed": atom(an_item("a", 0, "caf\xe9")).decode().encode("latin-1")},),
    "DocumentRepaired": ({"/feed": atom(an_item("a", 0, "caf&eacute;"))},),
    "DocumentTruncated": ({"/feed": atom(an_item("a"), an_item("b"))[:-30]},),
    "IdentityRepeated": ({"/feed": atom(an_item("a", 1, "one"), an_item("a", 1, "another"))},),
    "IdentityUnusable": (
        {
            "/feed": rss(
                extra="<item><guid>N/A</guid><title>a</title><link>http://site.test/a</link></item>"
                "<item><guid>N/A</guid><title>b</title><link>http://site.test/b</link></item>"
            )
        },
    ),
    "IdsChanged": ({"/feed": rss(extra=GUID.format("a"))}, {"/feed": rss(extra=GUID.format("b"))}),
    "IdsUnstable": tuple({"/feed": rss(extra=GUID.format(n))} for n in range(4)),
    "CurrentUnavailable": ({"/feed": atom(an_item("a"), archive=True, current="/gone")},),
    "NewerNotOlder": ({"/feed": atom(an_item("a", 1), prev="/2"), "/2": atom(an_item("b", 2))},),
    "PagesAscend": ({"/feed": atom(an_item("a", 1), next="/2"), "/2": atom(an_item("b", 2))},),
    "PagesRepeat": (
        {
            path: atom(an_item("a"), next=f"/{number}")
            for path, number in (("/feed", 2), ("/2", 3), ("/3", 4))
        },
    ),
    "LastNotReached": (
        {
            "/feed": atom(an_item("c", 3), next="/2", last="/3"),
            "/2": atom(an_item("b", 2)),
            "/3": atom(an_item("a", 1)),
        },
    ),
    "PageStale": (
        {"/feed": atom(an_item("c", 3), next="/2"), "/2": atom(an_item("b", 2), an_item("a", 1))},
        {"/feed": atom(an_item("f", 6), next="/2")},
    ),
    "PageGone": ({"/feed": atom(an_item("a"), next="/gone")},),
    "ArchivesShift": tuple(Shifting(size=2).documents(count) for count in (7, 8, 9)),
    "ValidatorsDoubted": (
        {"/feed": atom(an_item("a", 1))},
        {"/feed": atom(an_item("b", 2), an_item("a", 1))},
    ),
    "TextsShortened": (
        {"/feed": atom(an_item("a", text="one two three four"))},
        {"/feed": atom(an_item("a", text="one two\u2026"), updated=1)},
    ),
    "HistoryNotOffered": (
        {
            "/feed": rss(
                an_item("a", 2),
                an_item("b", 1),
                extra="<generator>https://wordpress.org/?v=6.6</generator>",
            )
        },
    ),
}
"""Documents that raise each note, at one look or several."""


def another_site(origin: Origin) -> None:
    origin.publish("/feed", atom(an_item("a"), prev_archive="/1"))
    origin.redirect("/1", origin.url("/2").replace("127.0.0.1", "localhost"))
    origin.publish("/2", atom(an_item("b"), archive=True, feed_id="urn:other"))


def jumped_hole(origin: Origin) -> None:
    publish_chain(origin, archives=3)
    origin.remove("/archive/2")


def memento_served(origin: Origin) -> None:
    capture = {"timestamp": "20190501120000", "url": origin.url("/feed"), "status": "200"}
    origin.publish(f"{COLLECTION}/cdx", json.dumps(capture))
    origin.publish(f"{COLLECTION}/20190501120000id_/{origin.url('/feed')}", atom(an_item("a")))


def history_unfinished(origin: Origin) -> None:
    site = WordPress(origin, posts=25)
    site.queries = "ignored"
    for post in site.posts:  # more of one day than a feed holds
        post.published = site.posts[0].published + post.id


def history_short(origin: Origin) -> None:
    site = WordPress(origin, posts=25)

    def shrink(_number: int, request: Request) -> None:
        if request.method == "GET" and len(site.posts) > 22 and "paged" in request.target:
            site.delete(*site.posts[:3])

    site.on_request = shrink


def dates_guessed(origin: Origin) -> None:
    ArchivePage(origin, posts=12, has_days=False).publish()


def response_repaired(origin: Origin) -> None:
    origin.publish("/feed", atom(an_item("a")), headers=[("Content-Encoding", "utf-8")])


PUBLISHERS: dict[str, Callable[[Origin], object]] = {
    "LimitReached": lambda origin: publish_chain(origin, archives=70),
    "CrossOriginUnconfirmed": another_site,
    "JumpedHole": jumped_hole,
    "HistoryUnfinished": history_unfinished,
    "HistoryShort": history_short,
    "MementoServed": memento_served,
    "DatesGuessed": dates_guessed,
    "ResponseRepaired": response_repaired,
}

BESIDE: dict[str, set[str]] = {"JumpedHole": {"DocumentUnavailable"}}
"""A note about no loss, and the note of the loss beside it."""


PARTIAL = {
    *("ChainLoop", "CrossOriginUnconfirmed", "CurrentUnavailable", "DeadChainLink", "DocumentTruncated"),
    *("DocumentUnavailable", "FormatMismatch", "HistoryUnfinished", "LimitReached", "MementoServed"),
    *("LastNotReached", "NoProgress", "NoSubscriptionDocument", "PageStale"),
}
"""Notes that entries may be missing."""


def test_every_note_is_raised_by_a_test() -> None:
    """docs/design.md#the-shape-of-the-code."""
    assert {*DOCUMENTS, *PUBLISHERS} == {note.code for note in NOTE_KINDS}


@pytest.mark.parametrize("note", [*DOCUMENTS, *PUBLISHERS])
async def test_a_note_is_shown_with_what_it_rests_on(
    note: str, tmp_path: Path, origin: Origin, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R16: it travels with the reconstruction; possible loss of entries makes the feed partial.

    A note on a document stays when a newer parser reads the document again.
    """
    url = origin.url("/feed")
    history = {
        "memento": note == "MementoServed",
        "memento_url": origin.url(COLLECTION),
        "memento_query_hosts": ("127.0.0.1",),
        **(LISTS if note == "DatesGuessed" else {}),
    }
    config = a_config(tmp_path, limits={"documents_per_feed": 62}, history=history)
    async with running(config) as proxy:
        if note in PUBLISHERS:
            PUBLISHERS[note](origin)
        for documents in DOCUMENTS.get(note, ({},)):
            for path, body in documents.items():
                origin.publish(path, body, etag='"same"' if note == "ValidatorsDoubted" else None)
            proxy.clock.advance(7 * 90_000)
            await proxy.whole(url)
        if note == "DatesGuessed":
            await looked(proxy)
        reply = await proxy.get(url)
        notes = (await proxy.status(url))["notes"]
        if note in STORED_WITH_DOCUMENTS:
            set_constant(monkeypatch, "PARSER_VERSION", NEWER_PARSER)
            await proxy.refreshed(url)
            read_by = rows(proxy.database, "SELECT DISTINCT parser_version FROM document")
            assert (read_by, (await proxy.status(url))["notes"]) == ([(NEWER_PARSER,)], notes)
    shown = {each["code"]: each for each in notes}
    assert note in shown
    assert shown[note]["url"] in shown[note]["text"]
    assert note in PARTIAL or (PARTIAL & shown.keys()) == BESIDE.get(note, set())
    assert (reply.state == "partial") is bool(PARTIAL & shown.keys())
