"""Segments of a collected feed's entries (`wholefeed.core.compose.weaving`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.feeds import BASE_AT, an_item, atom, rss
from wholefeed.core.compose.segments import Build, Keep
from wholefeed.core.compose.weaving import (
    UNDATED,
    Members,
    Strand,
    Weave,
    WovenMember,
    compare,
    publication_dates,
    weave,
)
from wholefeed.core.parse.documents import parse
from wholefeed.core.text.dates import parse_rfc3339

TARGET = 1000


class Text(NamedTuple):
    name: str
    published_at: float
    size: int = 100


@dataclass
class Feed:
    """A collected feed as store and service have it, without texts."""

    documents: dict[int, list[Text]] = field(default_factory=dict)
    """In output order, with all entries; the first is the subscription document."""
    versions: dict[int, int] = field(default_factory=dict)
    live: dict[str, int] = field(default_factory=dict)
    """The document of the live copy, by entry."""
    segments: dict[int, Members] = field(default_factory=dict)
    """In output order."""
    dirty: set[int] = field(default_factory=set)
    written_bytes: int = 0
    next: int = 1

    def put(self, document: int, *texts: Text) -> None:
        """Add a document with live copies; entries only it had before are removed."""
        left = {name for name, holder in self.live.items() if holder == document}
        self.dirty |= {document}
        self.documents[document] = list(texts)
        self.versions[document] = self.versions.get(document, 0) + 1
        for text in texts:
            self.dirty.add(self.live.get(text.name, document))
            self.live[text.name] = document
        for name in left - {text.name for text in texts}:
            del self.live[name]
            for other, held in self.documents.items():
                if any(text.name == name for text in held):
                    self.live[name] = other
                    self.dirty.add(other)
                    break

    def publish(self, *, is_walking: bool = False) -> list[Keep | Weave | Build]:
        stamps = {document: bytes([self.versions[document]]) * 16 for document in self.documents}
        published = [Strand(number, each, size_of(each)) for number, each in self.segments.items()]
        live = {
            document: [
                n for n, text in enumerate(self.documents[document]) if self.live[text.name] == document
            ]
            for document in self.dirty & self.documents.keys()
        }
        found = compare(published, stamps, live)
        new = [
            Strand(~place, Members.of(self._members(document, ordinals), stamps), 0)
            for place, (document, ordinals) in enumerate(found.missing.items())
        ]
        steps = weave(
            [*published, *new],
            list(self.documents),
            gone=found.gone,
            is_walking=is_walking,
            target_bytes=TARGET,
        )
        segments: dict[int, Members] = {}
        for step in steps:
            if isinstance(step, Keep):
                segments[step.segment] = self.segments[step.segment]
            elif isinstance(step, Weave):
                segments[self.next] = Members.read(
                    Members.of((pick.member for pick in step.picks), stamps).written()
                )
                self.written_bytes += step.size_bytes
                self.next += 1
        self.segments, self.dirty = segments, set()
        return steps

    def _members(self, document: int, ordinals: Sequence[int]) -> list[WovenMember]:
        texts = self.documents[document]
        return [WovenMember(document, n, texts[n].size, texts[n].published_at) for n in ordinals]

    @property
    def names(self) -> list[str]:
        return [
            self.documents[each.document][each.ordinal].name
            for members in self.segments.values()
            for each in members
        ]

    @property
    def expected(self) -> list[str]:
        """All entries by publication date; equal ones in document order."""
        held = [
            (-text.published_at, place, ordinal, text.name)
            for place, (document, texts) in enumerate(self.documents.items())
            for ordinal, text in enumerate(texts)
            if self.live[text.name] == document
        ]
        return [name for *_, name in sorted(held)]


def size_of(members: Members) -> int:
    return sum(each.size for each in members)


def a_page(*published: float, size: int = 100) -> list[Text]:
    return [Text(f"at {at}", at, size) for at in published]


def a_blog(posts: int) -> Feed:
    """A blog with pages of ten posts, the newest five also in its subscription document."""
    feed = Feed()
    feed.put(0, *a_page(*range(posts, posts - 5, -1)))
    for page, newest in enumerate(range(posts - 5, 0, -10), 1):
        feed.put(page, *a_page(*range(newest, max(newest - 10, 0), -1)))
    feed.publish()
    return feed


DATES = st.integers(1, 40) | st.just(UNDATED)
PAGES = st.lists(
    st.tuples(st.integers(0, 5), st.lists(st.tuples(DATES, st.integers(1, 400)), max_size=12), st.booleans()),
    max_size=12,
)


@settings(max_examples=200)
@given(PAGES)
@example([(0, [(1, 100)], False), (1, [(1, 100), (2, 100)], False)])
def test_entries_stand_by_publication_whatever_the_order_of_arrival(
    puts: list[tuple[int, list[tuple[float, int]], bool]],
) -> None:
    """R20: each live entry appears once, dated ones newest first, undated ones in document order. Unchanged
    segments are not rewritten.
    """
    feed = Feed({document: [] for document in range(6)}, dict.fromkeys(range(6), 0))
    for document, texts, is_walking in puts:
        feed.put(document, *(Text(f"{document}:{n}:{at}", at, size) for n, (at, size) in enumerate(texts)))
        feed.publish(is_walking=is_walking)
        assert sorted(feed.names) == sorted(feed.expected)
        if not is_walking:
            assert feed.names == feed.expected
    feed.publish()
    assert feed.names == feed.expected
    feed.dirty = set(feed.documents)
    assert all(isinstance(step, Keep) for step in feed.publish()), "looked at for nothing"
    feed.documents = {document: feed.documents[document] for document in (0, 3, 5, 1, 2, 4)}
    feed.publish()
    assert feed.names == feed.expected, "documents have traded places"


def test_what_is_newer_than_all_is_appended() -> None:
    """R20: an append costs the subscription document, and rewrites departed entries a few times; older
    segments stay.
    """
    feed = a_blog(200)
    feed.written_bytes = 0
    for at in range(201, 301):
        feed.put(0, *a_page(*range(at, at - 5, -1)))
        feed.put(at, *a_page(at - 5))  # entries that left it are remembered
        feed.publish()
        assert feed.names == feed.expected
    assert feed.written_bytes <= 100 * (500 + 100 * 6)
    assert len(feed.segments) <= 2 * 300 * 100 / TARGET + 8


@given(st.integers(1, 199), st.integers(1, 999))
def test_what_is_older_has_its_own_segment_written_alone(day: int, part: int) -> None:
    """R20: at most with one neighbour."""
    feed = a_blog(200)
    feed.written_bytes = 0
    before = feed.segments
    feed.put(500, *a_page(day + part / 1000))
    feed.publish()
    assert feed.names == feed.expected
    assert feed.written_bytes <= 2 * TARGET
    assert len(before.keys() - feed.segments.keys()) <= 2
    for text in feed.documents.pop(500):
        del feed.live[text.name]
    feed.publish()
    assert feed.names == feed.expected, "what is detached is no part of any segment (R25)"


def test_an_import_is_sorted_once_at_its_end() -> None:
    """R20: each part is written alone while it comes, without existing segments."""
    feed = a_blog(200)
    feed.written_bytes = 0
    for page in range(10):
        feed.put(500 + page, *a_page(*(at + 0.5 for at in range(190 - page, 10, -10))))
        feed.publish(is_walking=True)
        assert len(feed.names) == 200 + 18 * (page + 1)
    assert feed.written_bytes <= 2 * 180 * 100
    feed.written_bytes = 0
    feed.publish()
    assert feed.names == feed.expected
    assert feed.written_bytes <= (200 + 180) * 100
    assert len(feed.segments) <= 2 * 380 * 100 / TARGET


def test_segments_are_of_about_one_size() -> None:
    """A cut segment exceeds the target by at most one entry; a longer entry is not cut."""
    feed = Feed()
    feed.put(0)
    feed.put(1, *(Text(f"e{n}", 1000 - n, 1 + n * 37 % 300) for n in range(100)), Text("long", 3.5, 5000))
    feed.publish()
    sizes = [size_of(each) for each in feed.segments.values()]
    assert [size for size in sizes if size > TARGET + 300] in ([], [max(sizes)])
    assert len(sizes) <= 2 * sum(sizes) / TARGET


def test_members_are_read_as_they_were_written() -> None:
    """Documents with their stamps, entries with or without dates."""
    stamps = {7: b"s" * 16, 1 << 40: b"t" * 16, 8: b"u" * 16}
    entries = [
        WovenMember(1 << 40, 0, 100, 17.5),
        WovenMember(7, 3, 1, UNDATED),
        WovenMember(1 << 40, 1, 2, 0.0),
    ]
    members = Members.read(Members.of(entries, stamps).written())
    assert list(members) == entries
    assert members.ends == (entries[0], entries[-1])
    assert list(members.stamps.items()) == [(7, b"s" * 16), (1 << 40, b"t" * 16)]
    assert len(members) == 3


@pytest.mark.parametrize("make", [atom, rss])
def test_undated_entries_stand_behind_their_predecessor(make: Callable[..., bytes]) -> None:
    """R20: entries before all dated ones precede the first of them. An edit moves none: atom:published stays
    when atom:updated changes.
    """
    hours = (None, 9, None, None, 5, None)
    body = make(*(an_item(str(n), at) for n, at in enumerate(hours)))
    a, b = BASE_AT + 9 * 3600, BASE_AT + 5 * 3600
    assert publication_dates(parse(body, "http://a.test/")) == [a, a, a, a, b, b]
    nothing = make(an_item("a", None), an_item("b", None))
    assert publication_dates(parse(nothing, "http://a.test/")) == [UNDATED] * 2
    edited = body.replace(b"<title>1</title>", b"<title>1</title><published>2003-01-01T00:00:00Z</published>")
    first = parse_rfc3339("2003-01-01T00:00:00Z") if make is atom else a
    assert publication_dates(parse(edited, "http://a.test/")) == [first] * 4 + [b, b]
