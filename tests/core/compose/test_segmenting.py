from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from wholefeed.core.compose.segments import Build, Keep, Placed, plan

TARGET = 1000

PLACED = st.builds(
    Placed,
    document=st.just(0),
    segment=st.none() | st.integers(1, 5),
    is_clean=st.booleans(),
    is_settled=st.booleans(),
    live_bytes=st.integers(0, 600) | st.just(5000),
)
FEEDS = st.lists(PLACED, max_size=20).map(
    lambda placed: [one._replace(document=100 + at) for at, one in enumerate(placed)]
)


def a_document(number: int, **changes: object) -> Placed:
    return Placed(number, None, False, True, 100)._replace(**changes)  # type: ignore[arg-type]


class Executed:
    """What the store makes of a plan: new numbers for new segments, links and clean documents."""

    def __init__(self, documents: list[Placed]) -> None:
        self.documents = documents
        self.built_bytes = 0
        self.next = 1000

    def run(self) -> list[Keep | Build]:
        steps = plan(self.documents, target_bytes=TARGET)
        links: dict[int, int] = {}
        for step in steps:
            if isinstance(step, Build):
                links |= dict.fromkeys(step.documents, self.next)
                self.next += 1
        kept = {step.segment for step in steps if isinstance(step, Keep)}
        self.built_bytes += sum(d.live_bytes for d in self.documents if d.document in links)
        self.documents = [
            d._replace(segment=links.get(d.document, d.segment if d.segment in kept else None), is_clean=True)
            for d in self.documents
        ]
        return steps


def contents(documents: list[Placed], steps: list[Keep | Build]) -> list[int]:
    out: list[int] = []
    for step in steps:
        match step:
            case Build(numbers):
                out.extend(numbers)
            case Keep(segment):
                out.extend(d.document for d in documents if d.segment == segment and d.live_bytes)
    return out


@given(FEEDS)
def test_every_live_document_is_in_one_segment_in_order(documents: list[Placed]) -> None:
    """R20: no document with live entries is left out of an answer, sent twice, or out of its place."""
    steps = plan(documents, target_bytes=TARGET)

    assert contents(documents, steps) == [d.document for d in documents if d.live_bytes]
    assert all(step.documents for step in steps if isinstance(step, Build))


@given(FEEDS)
def test_a_segment_that_holds_a_changed_document_is_not_kept(documents: list[Placed]) -> None:
    """A segment with an entry that was replaced is built anew; else readers would get the old copy."""
    steps = plan(documents, target_bytes=TARGET)

    kept = {step.segment for step in steps if isinstance(step, Keep)}
    assert not kept & {d.segment for d in documents if not d.is_clean}


@given(FEEDS)
def test_only_settled_neighbours_within_the_target_share(documents: list[Placed]) -> None:
    """Only settled archives share a segment, and only up to its target size, so that a rebuild stays
    small."""
    by_number = {d.document: d for d in documents}

    for step in plan(documents, target_bytes=TARGET):
        if isinstance(step, Build) and len(step.documents) > 1:
            members = [by_number[number] for number in step.documents]
            assert all(member.is_settled for member in members)
            assert sum(member.live_bytes for member in members) <= TARGET


@given(FEEDS)
def test_planning_again_after_executing_keeps_everything(documents: list[Placed]) -> None:
    """A feed that did not change has no segment rebuilt by the next refresh."""
    feed = Executed(documents)
    feed.run()

    assert all(isinstance(step, Keep) for step in feed.run())


@given(FEEDS, st.integers(1, 1200))
def test_a_document_put_in_front_builds_one_segment(documents: list[Placed], live_bytes: int) -> None:
    """Work is proportional to the change: one segment, of at most the target or the document's own size."""
    feed = Executed(documents)
    feed.run()
    feed.built_bytes = 0
    feed.documents.insert(0, a_document(1, live_bytes=live_bytes))

    steps = feed.run()

    assert sum(isinstance(step, Build) for step in steps) == 1
    assert feed.built_bytes <= max(live_bytes, TARGET)


SIZES = st.lists(st.integers(1, 60), min_size=1, max_size=120)


@given(SIZES | SIZES.map(sorted) | SIZES.map(lambda sizes: sorted(sizes, reverse=True)), st.booleans())
def test_each_byte_is_sealed_logarithmically_often(sizes: list[int], at_front: bool) -> None:
    """The documented cost, whether a feed grows at its new or its old end; and the segments stay few."""
    feed = Executed([])
    for number, size in enumerate(sizes):
        feed.documents.insert(0 if at_front else number, a_document(number, live_bytes=size))
        feed.run()

    assert feed.built_bytes <= sum(sizes) * (math.log(TARGET / min(sizes), 1.5) + 2)
    segments = len({d.segment for d in feed.documents})
    assert segments <= 4 * sum(sizes) / TARGET + math.log2(TARGET / min(sizes)) + 2


def test_new_small_archives_fill_segments_from_the_old_end() -> None:
    """A new archive in front of full segments is placed without moving the older ones."""
    documents = [a_document(n, live_bytes=300) for n in range(1, 8)]

    assert plan(documents, target_bytes=TARGET) == [Build((1,)), Build((2, 3, 4)), Build((5, 6, 7))]


def test_a_kept_segment_is_drawn_in_only_by_a_neighbour_of_half_its_size() -> None:
    """A stored segment is rewritten for a new neighbour only when that brings at least half its bytes."""
    kept = a_document(2, segment=7, is_clean=True, live_bytes=101)

    assert plan([a_document(1, live_bytes=50), kept], target_bytes=TARGET) == [Build((1,)), Keep(7)]
    assert plan([a_document(1, live_bytes=51), kept], target_bytes=TARGET) == [Build((1, 2))]
    assert plan([kept, a_document(1, live_bytes=50)], target_bytes=TARGET) == [Keep(7), Build((1,))]
    assert plan([kept, a_document(1, live_bytes=51)], target_bytes=TARGET) == [Build((2, 1))]


def test_a_segment_of_half_the_target_is_left_alone() -> None:
    """From half the target size on a stored segment is kept: new archives do not make it be written again."""
    for live_bytes, step in ((500, Keep(7)), (499, Build((1, 2)))):
        kept = a_document(2, segment=7, is_clean=True, live_bytes=live_bytes)

        assert plan([a_document(1, live_bytes=500), kept], target_bytes=TARGET)[-1] == step


def test_a_document_that_stands_between_two_of_one_segment_breaks_it() -> None:
    """R20: when a new document comes between two that share a segment, they are parted to keep the order."""
    one, two = (a_document(n, segment=7, is_clean=True) for n in (1, 3))

    assert plan([one, two], target_bytes=TARGET) == [Keep(7)]
    assert plan([one, a_document(2, is_settled=False), two], target_bytes=TARGET) == [
        Build((1,)),
        Build((2,)),
        Build((3,)),
    ]


def test_documents_without_live_bytes_belong_to_no_segment() -> None:
    """A document whose entries were all superseded makes no empty segment and parts no kept one."""
    one, two = (a_document(n, segment=7, is_clean=True) for n in (1, 3))
    empty = a_document(2, live_bytes=0, is_clean=True)

    assert plan([empty], target_bytes=TARGET) == []
    assert plan([one, empty, two, empty], target_bytes=TARGET) == [Keep(7)]


def test_a_document_that_lost_its_last_live_entry_rebuilds_its_segment() -> None:
    """The segment of a document that lost all its entries is built without them, so that they leave the
    answer."""
    one = a_document(1, segment=7, is_clean=True)
    lost = a_document(2, segment=7, is_clean=False, live_bytes=0)

    assert plan([one, lost], target_bytes=TARGET) == [Build((1,))]


def test_unsettled_documents_stand_alone() -> None:
    """R13: a document that may still change has a segment of its own, so that its change rebuilds nothing
    else."""
    documents = [a_document(n, is_settled=n != 2) for n in (1, 2, 3)]

    assert plan(documents, target_bytes=TARGET) == [Build((1,)), Build((2,)), Build((3,))]


def test_what_is_drawn_in_draws_in_the_next() -> None:
    """The rule of half the size is applied to what has grown, so that small segments do not pile up."""
    kept = [
        a_document(2, segment=8, is_clean=True, live_bytes=60),
        a_document(3, segment=7, is_clean=True, live_bytes=200),
    ]

    assert plan([a_document(1, live_bytes=50), *kept], target_bytes=TARGET) == [Build((1, 2, 3))]
    assert plan([a_document(1, live_bytes=30), *kept], target_bytes=TARGET) == [Build((1, 2)), Keep(7)]
