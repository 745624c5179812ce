"""wholefeed.core.jobs: one reading of a document yields its facts and its sent text."""

from __future__ import annotations

import hashlib
from dataclasses import replace

import pytest

from tests.feeds import an_item, atom
from tests.workers.samples import BODIES, a_sender
from wholefeed.core.compose.same_posts import read_traits
from wholefeed.core.compose.segments import each_of, inflate
from wholefeed.core.compose.weaving import Members, Strand, Weave, unpack_members, weave
from wholefeed.core.facts import CopyDates, Stored
from wholefeed.core.jobs import (
    JOINED_BYTES,
    Part,
    Rendered,
    Sheaf,
    compose,
    fragments_in,
    read_again,
    read_document,
    render,
)
from wholefeed.core.links import classify
from wholefeed.core.parse.documents import parse
from wholefeed.core.parse.limits import ParseError
from wholefeed.core.walk.chain import DateSpan

DEPTH = 256


@pytest.mark.parametrize("name", BODIES)
def test_a_document_is_told_as_the_parser_reads_it(name: str) -> None:
    """No fact is lost, and sending needs no second reading."""
    body, sender = BODIES[name], a_sender(name)
    document, stored = parse(body, sender.url, sender.media_type), Stored(body, sender.url, sender.media_type)
    composed = compose(stored)
    read = read_document(body, sender, max_depth=DEPTH, is_subscription=True)
    facts, head = read.facts, document.head
    assert (facts.family, facts.version, facts.site_id) == (document.family, document.version, head.site_id)
    assert (facts.updated_at, facts.tombstones) == (head.updated_at, head.tombstones)
    assert facts.notes == document.notes
    assert [(each.identity, each.updated_at, each.order_at, each.size) for each in facts.entries] == [
        (each.identity, each.updated_at, each.order_at, each.end - each.start) for each in document.entries
    ]
    assert read.navigation == classify(document, sender.links)
    assert read.digest == hashlib.sha256(body).digest()
    again = read_again(stored)
    assert replace(again, traits={}) == facts
    assert again.traits == dict(enumerate(read_traits(document, range(len(facts.entries)))))  # R36
    assert read.composed == composed
    assert read.rendered == render([Part(stored, range(len(facts.entries)))], composed.style)
    archive = read_document(body, sender, max_depth=DEPTH, style=composed.style)
    assert (archive.rendered, archive.composed) == (read.rendered, None)


def test_a_document_of_another_family_is_not_rendered() -> None:
    """R23: it does not join the feed or its segments."""
    style = compose(Stored(BODIES["atom"], "http://a.test/", "")).style
    assert read_document(BODIES["rss"], a_sender(), max_depth=DEPTH, style=style).rendered is None
    assert read_document(BODIES["rss"], a_sender(), max_depth=DEPTH).rendered is None


def test_instants_far_in_the_future_do_not_count_for_the_span() -> None:
    """R10: a date over a day after the fetch does not count."""
    body = BODIES["atom"]
    read = read_document(body, a_sender(), max_depth=DEPTH)
    known = sorted(each.order_at for each in read.facts.entries if each.order_at is not None)
    assert read.span == DateSpan(known[0], known[-1])
    early = a_sender(fetched_at=known[0] - 3 * 86400)
    assert read_document(body, early, max_depth=DEPTH).span is None


def test_the_dates_of_copies_count_where_there_is_one_for_each() -> None:
    """A newer parser may find another count than was written."""
    stored = Stored(BODIES["atom"], "http://a.test/", "")
    dates = [CopyDates(float(n), 9.0, None, None) for n in range(3)]
    assert [each.updated_at for each in read_again(stored, dates).entries] == [0.0, 1.0, 2.0]
    assert read_again(stored, dates[:2]) == read_again(stored)


def test_what_is_no_feed_is_refused_as_the_parser_does() -> None:
    """With its slug; a stored body has no limit of depth."""
    deep = BODIES["atom"].replace(b"<entry>", b"<entry>" + b"<d>" * 300 + b"</d>" * 300, 1)
    for body, slug in ((deep, "xml-limit"), (b"<html/>", "not-a-feed")):
        with pytest.raises(ParseError) as caught:
            read_document(body, a_sender(), max_depth=DEPTH)
        assert caught.value.slug == slug
    assert len(read_again(Stored(deep, "http://a.test/", "")).entries) == 3


# Sent parts of documents


def a_stored(body: bytes) -> Stored:
    return Stored(body, "http://example.org/feed", "application/atom+xml")


def text(rendered: Rendered) -> str:
    sealed = rendered.sealed
    return inflate(sealed.block, sealed.length, sealed.crc32).decode() if sealed.length else ""


def order(rendered: Rendered, names: str) -> str:
    """Entries of that name, from the top."""
    places = {text(rendered).find(f"text of {name}<"): name for name in names}
    return "".join(name for place, name in sorted(places.items()) if place >= 0)


NEWER = a_stored(atom(an_item("a", 1), an_item("b", 9), an_item("c", 5)))
EMPTY = a_stored(atom())
OLDER = a_stored(atom(an_item("x", 7), an_item("y", 8)))
STYLE = compose(NEWER).style


@pytest.mark.parametrize(
    ("live", "expected"), [((0, 1, 2), "bcayx"), ((0, 2, 17), "cayx"), ((), "yx")], ids=str
)
def test_live_entries_stand_newest_first_in_each_document(live: tuple[int, ...], expected: str) -> None:
    """R10, R20: an older parser's entries beyond the last are ignored."""
    rendered = render([Part(NEWER, live), Part(OLDER, None)], STYLE)
    assert order(rendered, "abcxy") == expected
    assert rendered.entries == len(expected)
    nothing = render([Part(OLDER, ())], STYLE)
    assert (nothing.entries, nothing.newest_at, nothing.oldest_at, text(nothing)) == (0, None, None, "")


def test_what_was_rendered_before_joins_what_was_parsed() -> None:
    """A segment is the same for any shapes of its documents."""
    style = STYLE._replace(lists_members=True)
    shapes = [Part(NEWER, None), Part(OLDER.parse(), (0, 1)), Part(EMPTY, None), Part(NEWER.parse(), None)]
    one_by_one = [Part(render([part], style), None) for part in shapes]
    assert render(one_by_one, style) == render(shapes, style)


def test_large_documents_become_one_segment_without_being_deflated_again() -> None:
    """Its facts are those of any segment; its blocks follow one another unchanged."""
    style = STYLE._replace(lists_members=True)
    names = [f"{'w' * JOINED_BYTES}{number}" for number in range(4)]
    large = [
        a_stored(atom(*(an_item(name, day) for day, name in enumerate(names[n : n + 2], 1)))) for n in (0, 2)
    ]
    rendered = [render([Part(each, None)], style) for each in large]
    joined = render([Part(each, None) for each in rendered], style)
    at_once = render([Part(each, None) for each in large], style)
    assert joined.sealed.block == rendered[0].sealed.block + rendered[1].sealed.block
    assert replace(joined, sealed=replace(joined.sealed, block=b"")) == replace(
        at_once, sealed=replace(at_once.sealed, block=b"")
    )
    assert text(joined) == text(at_once)


def test_what_leans_on_the_head_says_so() -> None:
    """An entry without author gets its own document's if the head has another (RFC 4287, 4.2.1)."""
    by_a = a_stored(atom(an_item("a", 1), extra="<author><name>A</name></author>"))
    by_b = a_stored(atom(an_item("b", 1), extra="<author><name>B</name></author>"))
    style = compose(by_a).style
    rendered = render([Part(by_b, None)], style)
    assert rendered.context == style.digest != compose(by_b).style.digest
    assert "<name>B</name>" in text(rendered)


def test_what_is_rendered_says_which_entries_it_has() -> None:
    """R20: by part, ordinal, length and date of publication."""
    style = STYLE._replace(lists_members=True)
    rendered = render([Part(NEWER, None), Part(OLDER, [1, 0])], style)
    fragments = fragments_in(rendered, style.family)
    documents = [NEWER.parse(), OLDER.parse()]
    for (part, ordinal, size, published_at), fragment in zip(
        unpack_members(rendered.members), fragments, strict=True
    ):
        entry = documents[part].entries[ordinal]
        assert fragment.endswith(documents[part].text[entry.end - 60 : entry.end])
        assert (size, published_at) == (len(fragment), entry.order_at)


def test_entries_of_several_segments_become_one() -> None:
    """R20: in the requested order, with all facts, as if rendered together."""
    style = STYLE._replace(lists_members=True)
    both = render([Part(NEWER, None), Part(OLDER, None)], style)
    sources = {-1: render([Part(NEWER, None)], style), -2: render([Part(OLDER, None)], style)}
    strands = [
        Strand(number, Members({number: b"s" * 16}, source.members), source.sealed.length)
        for number, source in sources.items()
    ]
    (step,) = weave(strands, [0, -1, -2], gone={})
    assert isinstance(step, Weave)
    sheaf = Sheaf(step, dict.fromkeys(sources, b"s" * 16))
    for number in sheaf.strands:
        sheaf.take(number, sources[number], fragments_in(sources[number], style.family))
    woven = sheaf.seal(style)
    assert order(woven, "abcxy") == "byxca"
    assert sorted(text(woven).split("<entry")) == sorted(text(both).split("<entry"))
    assert (woven.newest_at, woven.oldest_at, woven.entries) == (both.newest_at, both.oldest_at, 5)
    dates = [each.order_at or 0.0 for each in each_of(woven.outline)]
    assert dates == sorted(dates, reverse=True)
