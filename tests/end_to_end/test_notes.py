"""Each note is raised by a feed that deserves it, shown in /status, and says what it is about."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.answers import Request
from tests.feeds import an_item, atom, publish_chain, rss
from tests.note_kinds import NOTE_KINDS
from tests.origin import Origin
from tests.publishers.wordpress import WordPress
from tests.running import a_config, running

Publish = Callable[[Origin], None]
COLLECTION = "/pywb/feeds"
"""Of a web archive."""


def unavailable(origin: Origin) -> None:
    origin.publish("/feed", atom(an_item("a"), prev_archive="/gone"))


def no_subscription_document(origin: Origin) -> None:
    origin.publish("/feed", atom(an_item("a"), archive=True))


def loop(origin: Origin) -> None:
    origin.publish("/feed", atom(an_item("a"), prev_archive="/1"))
    origin.publish("/1", atom(an_item("b"), archive=True, prev_archive="/feed"))


def no_progress(origin: Origin) -> None:
    origin.publish("/feed", atom(an_item("a"), prev_archive="/60"))
    for number in range(60, 0, -1):
        extra = f"<!-- {number} -->"
        origin.publish(
            f"/{number}", atom(an_item("a"), archive=True, prev_archive=f"/{number - 1}", extra=extra)
        )


def limit(origin: Origin) -> None:
    publish_chain(origin, archives=70)


def another_format(origin: Origin) -> None:
    origin.publish("/feed", atom(an_item("a"), prev_archive="/1"))
    origin.publish("/1", rss(an_item("b"), archive=True))


def once_another_format(origin: Origin) -> None:
    origin.publish("/feed", rss(an_item("b", 2), an_item("a", 1)))


def now_another_format(origin: Origin) -> None:
    origin.publish("/feed", atom(an_item("c", 3)))


def another_site(origin: Origin) -> None:
    origin.publish("/feed", atom(an_item("a"), prev_archive="/1"))
    origin.redirect("/1", origin.url("/2").replace("127.0.0.1", "localhost"))
    origin.publish("/2", atom(an_item("b"), archive=True, feed_id="urn:other"))


def bad_link(origin: Origin) -> None:
    origin.publish("/feed", atom(an_item("a"), next_archive="mailto:x@o.test"))


def dead_chain_link(origin: Origin) -> None:
    origin.publish("/feed", atom(an_item("a"), prev_archive="ftp://o.test/1"))


def extra_link(origin: Origin) -> None:
    extra = '<link rel="prev-archive" href="/2"/>'
    origin.publish("/feed", atom(an_item("a"), prev_archive="/1", extra=extra))
    origin.publish("/1", atom(an_item("b"), archive=True))


def archive_changed(origin: Origin) -> None:
    origin.publish("/feed", atom(an_item("a"), updated=2, prev_archive="/1"))
    origin.publish("/1", atom(an_item("b"), an_item("c"), archive=True))


def head_cut(origin: Origin) -> None:
    origin.publish("/feed", atom(an_item("a"), extra=f"<subtitle>{'x' * 300_000}</subtitle>"))


def encoding_retried(origin: Origin) -> None:
    origin.publish(
        "/feed", atom(an_item("a", 0, "caf\N{LATIN SMALL LETTER E WITH ACUTE}")).decode().encode("latin-1")
    )


def repaired(origin: Origin) -> None:
    origin.publish("/feed", atom(an_item("a", 0, "caf&eacute;")))


def truncated(origin: Origin) -> None:
    origin.publish("/feed", atom(an_item("a"), an_item("b"))[:-30])


def current_unavailable(origin: Origin) -> None:
    origin.publish("/feed", atom(an_item("a"), archive=True, current="/gone"))


def newer_not_older(origin: Origin) -> None:
    origin.publish("/feed", atom(an_item("a", 1), prev="/2"))
    origin.publish("/2", atom(an_item("b", 2)))


def pages_ascend(origin: Origin) -> None:
    origin.publish("/feed", atom(an_item("a", 1), next="/2"))
    origin.publish("/2", atom(an_item("b", 2)))


def pages_repeat(origin: Origin) -> None:
    for path, number in (("/feed", 2), ("/2", 3), ("/3", 4)):
        origin.publish(path, atom(an_item("a"), next=f"/{number}"))


def page_gone(origin: Origin) -> None:
    origin.publish("/feed", atom(an_item("a"), next="/gone"))


def jumped_hole(origin: Origin) -> None:
    publish_chain(origin, archives=3)
    origin.remove("/archive/2")


def archive_that_will_change(origin: Origin) -> None:
    origin.publish("/feed", atom(an_item("a"), updated=1, prev_archive="/1"))
    origin.publish("/1", atom(an_item("b"), archive=True))


def identity_repeated(origin: Origin) -> None:
    origin.publish("/feed", atom(an_item("a", 1, "one"), an_item("a", 1, "another")))


def texts_full(origin: Origin) -> None:
    origin.publish("/feed", atom(an_item("a", text="one two three four")))


def texts_shortened(origin: Origin) -> None:
    origin.publish("/feed", atom(an_item("a", text="one two\u2026"), updated=1))


def memento_served(origin: Origin) -> None:
    capture = {"timestamp": "20190501120000", "url": origin.url("/feed"), "status": "200"}
    origin.publish(f"{COLLECTION}/cdx", json.dumps(capture))
    origin.publish(f"{COLLECTION}/20190501120000id_/{origin.url('/feed')}", atom(an_item("a")))


def history_not_offered(origin: Origin) -> None:
    generator = "<generator>https://wordpress.org/?v=6.6</generator>"
    origin.publish("/feed", rss(an_item("a", 2), an_item("b", 1), extra=generator))


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


RAISED: dict[str, tuple[Publish, ...]] = {
    "DocumentUnavailable": (unavailable,),
    "NoSubscriptionDocument": (no_subscription_document,),
    "ChainLoop": (loop,),
    "NoProgress": (no_progress,),
    "LimitReached": (limit,),
    "FormatChanged": (once_another_format, now_another_format),
    "FormatMismatch": (another_format,),
    "CrossOriginUnconfirmed": (another_site,),
    "BadLink": (bad_link,),
    "DeadChainLink": (dead_chain_link,),
    "ExtraLink": (extra_link,),
    "ArchiveChanged": (archive_that_will_change, archive_changed),
    "HeadCut": (head_cut,),
    "EncodingRetried": (encoding_retried,),
    "DocumentRepaired": (repaired,),
    "DocumentTruncated": (truncated,),
    "IdentityRepeated": (identity_repeated,),
    "CurrentUnavailable": (current_unavailable,),
    "NewerNotOlder": (newer_not_older,),
    "PagesAscend": (pages_ascend,),
    "PagesRepeat": (pages_repeat,),
    "PageGone": (page_gone,),
    "JumpedHole": (jumped_hole,),
    "HistoryNotOffered": (history_not_offered,),
    "HistoryUnfinished": (history_unfinished,),
    "HistoryShort": (history_short,),
    "MementoServed": (memento_served,),
    "TextsShortened": (texts_full, texts_shortened),
}

BESIDE: dict[str, set[str]] = {"JumpedHole": {"DocumentUnavailable"}}
"""What a note that makes no feed partial stands beside, where that does."""


PARTIAL = {
    *("ChainLoop", "CrossOriginUnconfirmed", "CurrentUnavailable", "DeadChainLink", "DocumentTruncated"),
    *("DocumentUnavailable", "FormatMismatch", "HistoryUnfinished", "LimitReached", "MementoServed"),
    *("NoProgress", "NoSubscriptionDocument"),
}
"""Those that say that entries may be missing."""


def test_every_note_is_raised_by_a_test() -> None:
    """docs/design.md#the-shape-of-the-code."""
    assert set(RAISED) == {note.code for note in NOTE_KINDS}


@pytest.mark.parametrize("note", sorted(RAISED))
async def test_a_note_is_shown_with_what_it_rests_on(note: str, tmp_path: Path, origin: Origin) -> None:
    """R16: it travels with the reconstruction; what may lack entries makes the feed partial."""
    url = origin.url("/feed")
    history = {
        "memento": note == "MementoServed",
        "memento_url": origin.url(COLLECTION),
        "memento_query_hosts": ("127.0.0.1",),
    }
    config = a_config(tmp_path, limits={"documents_per_feed": 62}, history=history)
    async with running(config) as proxy:
        reply = None
        for publish in RAISED[note]:
            publish(origin)
            proxy.clock.advance(90_000)
            reply = await proxy.whole(url)
        assert reply is not None
        shown = {each["code"]: each for each in (await proxy.status(url))["notes"]}
    assert note in shown
    assert shown[note]["url"] in shown[note]["text"]
    assert note in PARTIAL or (PARTIAL & shown.keys()) == BESIDE.get(note, set())
    assert (reply.state == "partial") is bool(PARTIAL & shown.keys())
