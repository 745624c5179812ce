"""wholefeed.core.jobs: what is sent of documents."""

from __future__ import annotations

from dataclasses import replace

from tests.feeds import an_item, atom
from wholefeed.core.compose.segments import each_of, inflate
from wholefeed.core.compose.weaving import Members, Strand, Weave, unpack_members, weave
from wholefeed.core.facts import Stored
from wholefeed.core.jobs import JOINED_BYTES, Part, Rendered, Sheaf, compose, fragments_in, render


def a_stored(body: bytes) -> Stored:
    return Stored(body, "http://example.org/feed", "application/atom+xml")


def text(rendered: Rendered) -> str:
    sealed = rendered.sealed
    return inflate(sealed.block, sealed.length, sealed.crc32).decode() if sealed.length else ""


def places(rendered: Rendered, *names: str) -> list[int]:
    return [text(rendered).find(f"text of {name}<") for name in names]


NEWER = a_stored(atom(an_item("a", 1), an_item("b", 9), an_item("c", 5)))
EMPTY = a_stored(atom())
OLDER = a_stored(atom(an_item("x", 7), an_item("y", 8)))


def test_live_entries_stand_newest_first_in_each_document() -> None:
    """R20; the documents themselves stay in their order."""
    rendered = render([Part(NEWER, (0, 1, 2)), Part(OLDER, None)], compose(NEWER).style)
    found = places(rendered, "b", "c", "a", "y", "x")
    assert found == sorted(found)
    assert min(found) >= 0
    assert rendered.entries == 5


def test_entries_that_are_not_live_are_left_out() -> None:
    """R10; what an older parser counted beyond the last entry is none."""
    rendered = render([Part(NEWER, (0, 2, 17))], compose(NEWER).style)
    assert [at < 0 for at in places(rendered, "a", "b", "c")] == [False, True, False]
    assert rendered.entries == 2


def test_nothing_live_is_an_empty_segment() -> None:
    """No entry, no date, no byte."""
    rendered = render([Part(NEWER, ())], compose(NEWER).style)
    assert (rendered.entries, rendered.newest_at, rendered.oldest_at) == (0, None, None)
    assert rendered.sealed.length == 0


def test_what_was_rendered_before_joins_what_was_parsed() -> None:
    """One segment is the same, whichever shapes its documents are in."""
    style = compose(NEWER).style
    shapes = [Part(NEWER, None), Part(OLDER.parse(), (0, 1)), Part(EMPTY, None), Part(NEWER.parse(), None)]
    one_by_one = [Part(render([part], style), None) for part in shapes]
    assert render(one_by_one, style) == render(shapes, style)


def test_large_documents_become_one_segment_without_being_deflated_again() -> None:
    """All that is known of it is what it would be if it were; its blocks follow one another as they are."""
    style = compose(NEWER).style
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
    """An entry without an author gets its own document's where the head has another (RFC 4287, 4.2.1)."""
    by_a = a_stored(atom(an_item("a", 1), extra="<author><name>A</name></author>"))
    by_b = a_stored(atom(an_item("b", 1), extra="<author><name>B</name></author>"))
    style = compose(by_a).style
    rendered = render([Part(by_b, None)], style)
    assert rendered.context == style.digest
    assert "<name>B</name>" in text(rendered)
    assert style.digest != compose(by_b).style.digest


def test_what_is_rendered_says_which_entries_it_has() -> None:
    """R20: by part, ordinal, length and date of publication, in whatever shape the documents are."""
    style = compose(NEWER).style._replace(lists_members=True)
    parts = [Part(NEWER, None), Part(OLDER, [1, 0])]
    rendered = render(parts, style)
    fragments = fragments_in(rendered, style.family)
    members = list(unpack_members(rendered.members))
    assert [size for _, _, size, _ in members] == [len(each) for each in fragments]
    documents = [NEWER.parse(), OLDER.parse()]
    for (part, ordinal, _, published_at), fragment in zip(members, fragments, strict=True):
        entry = documents[part].entries[ordinal]
        assert fragment.endswith(documents[part].text[entry.end - 60 : entry.end])
        assert published_at == entry.order_at
    one_by_one = [Part(render([part], style), None) for part in parts]
    assert render(one_by_one, style) == rendered


def test_entries_of_several_segments_become_one() -> None:
    """R20: in the order that is wanted, with all that is known of each, as if it had been rendered so."""
    style = compose(NEWER).style._replace(lists_members=True)
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
    woven = sheaf.sealed(style)
    found = places(woven, "b", "y", "x", "c", "a")
    assert found == sorted(found)
    assert min(found) >= 0
    assert sorted(text(woven).split("<entry")) == sorted(text(both).split("<entry"))
    assert (woven.newest_at, woven.oldest_at, woven.entries) == (
        both.newest_at, both.oldest_at, both.entries
    )  # fmt: skip
    dates = [each.order_at or 0.0 for each in each_of(woven.outline)]
    assert dates == sorted(dates, reverse=True)
