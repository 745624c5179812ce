"""Each note is raised by a feed that deserves it, shown in /status, and says what it is about."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.feeds import an_item, atom, publish_chain, rss
from tests.note_classes import NOTE_CLASSES
from tests.origin import Origin
from tests.running import a_config, running
from wholefeed.core import notes, reading_notes
from wholefeed.core.memento.notes import MementoServed
from wholefeed.core.notes import Note

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


def memento_served(origin: Origin) -> None:
    capture = {"timestamp": "20190501120000", "url": origin.url("/feed"), "status": "200"}
    origin.publish(f"{COLLECTION}/cdx", json.dumps(capture))
    origin.publish(f"{COLLECTION}/20190501120000id_/{origin.url('/feed')}", atom(an_item("a")))


RAISED: dict[type[Note], tuple[Publish, ...]] = {
    notes.DocumentUnavailable: (unavailable,),
    notes.NoSubscriptionDocument: (no_subscription_document,),
    notes.ChainLoop: (loop,),
    notes.NoProgress: (no_progress,),
    notes.LimitReached: (limit,),
    notes.FormatMismatch: (another_format,),
    notes.CrossOriginUnconfirmed: (another_site,),
    reading_notes.BadLink: (bad_link,),
    notes.DeadChainLink: (dead_chain_link,),
    reading_notes.ExtraLink: (extra_link,),
    notes.ArchiveChanged: (archive_that_will_change, archive_changed),
    reading_notes.EncodingRetried: (encoding_retried,),
    reading_notes.DocumentRepaired: (repaired,),
    reading_notes.DocumentTruncated: (truncated,),
    reading_notes.IdentityRepeated: (identity_repeated,),
    notes.CurrentUnavailable: (current_unavailable,),
    notes.NewerNotOlder: (newer_not_older,),
    notes.PagesAscend: (pages_ascend,),
    notes.PagesRepeat: (pages_repeat,),
    notes.PageGone: (page_gone,),
    notes.JumpedHole: (jumped_hole,),
    MementoServed: (memento_served,),
}

BESIDE: dict[type[Note], set[str]] = {notes.JumpedHole: {"DocumentUnavailable"}}
"""What a note that makes no feed partial stands beside, where that does."""


def test_every_note_is_raised_by_a_test() -> None:
    """docs/design.md#the-shape-of-the-code."""
    assert set(RAISED) == set(NOTE_CLASSES)


def name_of(note: type[Note]) -> str:
    return note.__name__


NOTES: list[type[Note]] = sorted(RAISED, key=name_of)


@pytest.mark.parametrize("note", NOTES, ids=name_of)
async def test_a_note_is_shown_with_what_it_rests_on(
    note: type[Note], tmp_path: Path, origin: Origin
) -> None:
    """R16: it travels with the reconstruction; what may lack entries makes the feed partial."""
    url = origin.url("/feed")
    history = {
        "memento": note is MementoServed,
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
    assert note.__name__ in shown
    assert shown[note.__name__]["url"] in shown[note.__name__]["text"]
    partial = {each.__name__ for each in NOTES if each.partial}
    assert note.__name__ in partial or (partial & shown.keys()) == BESIDE.get(note, set())
    assert (reply.state == "partial") is bool(partial & shown.keys())
    assert re.search(r"RFC \d+|rule R\d+", note.reference)
    assert re.fullmatch(r"[a-z-]+", note.slug)
