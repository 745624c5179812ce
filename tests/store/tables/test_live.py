"""Live copies of entries: stepwise updates equal a choice from nothing."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.named_store import NamedStore
from tests.store.makers import NOW, URL, a_document, a_feed, an_entry, publish, text_of
from wholefeed.core.compose.segments import inflate
from wholefeed.core.merge import FALLEN_OUT, Burial, Copy, CopyStanding, Fullness, choose, place_of
from wholefeed.core.model import IMPORT_URL, Role, Tombstone, entry_id
from wholefeed.store.base import Database
from wholefeed.store.rows import NewDocument, NewEntry
from wholefeed.store.tables.live import find_doubtful, settle_doubtful

ARCHIVE = "http://o.test/1"
OLDER = "http://o.test/2"
MEMORY = "memory:1"

_numbers = count()


async def live(store: NamedStore, feed: int) -> set[tuple[str, str, int]]:
    """(role, URL, ordinal) of each live copy."""
    rows = await store.documents(feed)
    ordinals = await store.live_ordinals([row.id for row in rows])
    return {(row.role, row.url, at) for row in rows for at in ordinals[row.id]}


async def put(store: NamedStore, feed: int, *documents: NewDocument) -> list[int]:
    return await store.put_documents(feed, documents, now=NOW)


def deleted(name: str, when_at: float) -> Tombstone:
    return Tombstone(entry_id(name), when_at, name)


def memory(*entries: NewEntry) -> NewDocument:
    return a_document(MEMORY, *entries, role=Role.MEMORY)


def subscription(*entries: NewEntry, updated_at: float | None = None) -> NewDocument:
    return a_document(URL, *entries, role=Role.SUBSCRIPTION, updated_at=updated_at)


async def test_remembered_copies_leave_with_the_archive_that_its_publisher_takes_out(
    store: NamedStore,
) -> None:
    """R8: remembered entries outside the archive stay, since the publisher cannot have deleted them."""
    feed = (await a_feed(store)).id
    await put(store, feed, subscription(), memory(an_entry("a", 9.0), an_entry("never")))
    (archive,) = await put(store, feed, a_document(ARCHIVE, an_entry("a", 1.0)))
    assert await live(store, feed) == {("memory", MEMORY, 0), ("memory", MEMORY, 1)}

    await store.detach(feed, [archive], now=NOW, is_withdrawn=True)
    assert await live(store, feed) == {("memory", MEMORY, 1)}

    await store.attach(feed, archive, 0, now=NOW)
    assert await live(store, feed) == {("memory", MEMORY, 0), ("memory", MEMORY, 1)}


@pytest.mark.parametrize("role", [Role.SUBSCRIPTION, Role.PAGE])
async def test_what_a_document_has_held_since_is_settled_no_more(store: NamedStore, role: Role) -> None:
    """R8: a republished entry is not deleted, nor is one still published."""
    feed = (await a_feed(store)).id
    await put(store, feed, memory(an_entry("a"), an_entry("b")))
    document = a_document(URL, an_entry("a"), role=role)
    archive = a_document(ARCHIVE, an_entry("a"), an_entry("b"))
    for first, second in ((document, archive), (archive, document)):
        for each in (first, second):
            (number,) = await put(store, feed, each)
            if each is archive:
                await store.detach(feed, [number], now=NOW, is_withdrawn=True)
        await put(store, feed, replace(document, entries=()))
        assert await live(store, feed) == {("memory", MEMORY, 0)}


@pytest.mark.parametrize("role", [Role.ARCHIVE, Role.PAGE])
async def test_an_archives_or_pages_date_counts_as_at_most_the_subscription_documents(
    store: NamedStore, role: Role
) -> None:
    """R10: some generators date every document "now"; a later subscription document is judged again."""
    feed = (await a_feed(store)).id
    await put(store, feed, subscription(updated_at=100.0))
    await put(
        store,
        feed,
        a_document(ARCHIVE, an_entry("a"), role=role, updated_at=150.0),
        a_document(OLDER, an_entry("a"), role=role, rank=1, updated_at=200.0),
    )
    assert await live(store, feed) == {(role, ARCHIVE, 0)}

    for updated_at, winner in ((180.0, OLDER), (140.0, ARCHIVE), (None, OLDER), (120.0, ARCHIVE)):
        await put(store, feed, subscription(updated_at=updated_at))
        assert await live(store, feed) == {(role, winner, 0)}


async def test_documents_that_trade_places_are_judged_again(store: NamedStore) -> None:
    """R10: still equal, the copy nearer the subscription document stays."""
    feed = (await a_feed(store)).id
    first, second = await put(
        store,
        feed,
        a_document(ARCHIVE, an_entry("a"), rank=0),
        a_document(OLDER, an_entry("a"), rank=1),
    )

    await store.reorder(feed, {first: 1, second: 0}, now=NOW)
    assert await live(store, feed) == {("archive", OLDER, 0)}


async def test_an_undated_copy_dies_by_a_tombstone_that_is_as_new_or_newer(store: NamedStore) -> None:
    """R19: in its own and older documents; when documents trade places, it is judged again."""
    feed = (await a_feed(store)).id
    bearer = replace(a_document(ARCHIVE), tombstones=[deleted("a", 7.0)])
    first, second = await put(store, feed, bearer, a_document(OLDER, an_entry("a"), rank=1))
    assert await live(store, feed) == set()

    await store.arrange(feed, ranks={first: 1, second: 0}, now=NOW)
    assert await live(store, feed) == {("archive", OLDER, 0)}
    await store.arrange(feed, ranks={first: 0, second: 1}, now=NOW)
    assert await live(store, feed) == set()


async def test_tombstones_of_an_earlier_subscription_document_still_count(store: NamedStore) -> None:
    """R19: stored for good, also when the feed has moved to another URL."""
    feed = (await a_feed(store)).id
    await put(store, feed, a_document(ARCHIVE, an_entry("a", 5.0)))
    (number,) = await put(store, feed, replace(subscription(), tombstones=[deleted("a", 7.0)]))
    await store.detach(feed, [number], now=NOW)

    assert await live(store, feed) == set()
    assert [each.ref for each in await store.tombstones(feed)] == ["a"]


async def test_no_deletion_lies_in_the_future(store: NamedStore) -> None:
    """R19 with R10's caution: a publisher's broken clock buries no later entry."""
    feed = (await a_feed(store)).id
    await put(store, feed, replace(subscription(), tombstones=[deleted("a", NOW + 1e9)]))
    await put(store, feed, a_document(ARCHIVE, an_entry("a", NOW + 1)))
    assert await live(store, feed) == {("archive", ARCHIVE, 0)}


async def test_a_mark_of_unknown_cause_counts_while_an_archive_is_attached(store: NamedStore) -> None:
    """R8: the mark comes from versions that did not store why an archive left."""
    feed = (await a_feed(store)).id
    await put(store, feed, memory(an_entry("a")))

    def mark(db: Database) -> None:
        db.execute("INSERT INTO settled (feed, identity) VALUES (?, ?)", (feed, entry_id("a")))

    await store.write(mark, feed=feed)
    (archive,) = await put(store, feed, a_document(ARCHIVE, an_entry("b")))
    assert await live(store, feed) == {("archive", ARCHIVE, 0)}
    await store.detach(feed, [archive], now=NOW)
    assert await live(store, feed) == {("memory", MEMORY, 0)}
    await store.attach(feed, archive, 0, now=NOW)
    assert await live(store, feed) == {("archive", ARCHIVE, 0)}


async def test_what_stays_in_an_archive_gives_nothing_way(store: NamedStore) -> None:
    """R10, R35: an archive's loss of one entry does not lower its other copies."""
    feed = (await a_feed(store)).id
    await put(store, feed, memory(an_entry("a"), an_entry("b")))
    await put(store, feed, a_document(ARCHIVE, an_entry("a"), an_entry("b")))
    await put(store, feed, a_document(ARCHIVE, an_entry("b"), is_doubtful=True))
    assert await live(store, feed) == {("memory", MEMORY, 0), ("memory", MEMORY, 1)}
    await put(store, feed, a_document(OLDER, an_entry("a"), rank=1))
    assert await live(store, feed) == {("archive", OLDER, 0), ("memory", MEMORY, 1)}


async def test_feeds_do_not_share_identities(store: NamedStore) -> None:
    """docs/faults.md row 23: identity is scoped to the feed."""
    mine, hostile = (await a_feed(store)).id, (await a_feed(store, "http://x.test/")).id
    await put(store, mine, a_document(ARCHIVE, an_entry("a", 1.0)))
    await put(store, hostile, a_document(ARCHIVE, an_entry("a", 9.0)))

    assert await live(store, mine) == {("archive", ARCHIVE, 0)}


async def test_many_copies_of_one_identity_are_decided_in_chunks(store: NamedStore) -> None:
    """docs/faults.md row 57: duplicate ids in one document and across documents, more than one chunk."""
    feed = (await a_feed(store)).id
    same = [an_entry("same", float(at % 997)) for at in range(1500)]
    await put(store, feed, a_document(ARCHIVE, *same, an_entry("z", 1.0)))
    assert await live(store, feed) == {("archive", ARCHIVE, 996), ("archive", ARCHIVE, 1500)}

    await put(store, feed, a_document(OLDER, *[an_entry("same", 998.0)] * 700, rank=1))
    assert await live(store, feed) == {("archive", OLDER, 0), ("archive", ARCHIVE, 1500)}

    (older,) = [row.id for row in await store.documents(feed) if row.url == OLDER]
    await store.detach(feed, [older], now=NOW)
    assert await live(store, feed) == {("archive", ARCHIVE, 996), ("archive", ARCHIVE, 1500)}


# What the store keeps true step by step must be what a choice from nothing comes to.

INSTANTS = st.sampled_from([None, 1.0, 2.0, NOW + 90_000.0])
DATES = st.sampled_from([None, 10.0, 20.0, 30.0])
ENTRIES = st.lists(
    st.builds(
        an_entry,
        st.sampled_from("abcde"),
        INSTANTS,
        document_updated_at=DATES,
        fullness=st.sampled_from(Fullness),
    ),
    max_size=4,
)
SLOTS = [(Role.SUBSCRIPTION, 0), (Role.MEMORY, 1), (Role.MEMORY, 2), (Role.PAGE, 4), (Role.PAGE, 5)]
SLOTS += [(Role.ARCHIVE, n) for n in range(4)]
IMPORT = 6
SLOTS += [(Role.PAGE, IMPORT), (Role.PAGE, IMPORT + 1)]
"""The last two are documents that were imported (I1)."""
RANKS = st.integers(0, 4)
TOMBSTONES = st.just(()) | st.lists(
    st.builds(deleted, st.sampled_from("abc"), st.sampled_from([0.5, 1.0, 2.0, NOW + 8e4])),
    max_size=2,
    unique_by=lambda tombstone: tombstone.identity,
)
PUTS = st.tuples(
    st.just("put"),
    st.sampled_from(SLOTS),
    ENTRIES,
    DATES,
    RANKS | st.none(),
    st.sampled_from([NOW, NOW + 9e4]),
    TOMBSTONES,
    st.booleans(),
)
ARRANGEMENTS = st.tuples(
    st.just("arrange"),
    st.dictionaries(st.integers(0, 6), RANKS, max_size=7),
    st.sets(st.integers(0, 6), max_size=2),
    st.booleans(),
)
STEPS = st.lists(
    PUTS | ARRANGEMENTS | st.sampled_from([("purge",), ("publish",), ("settle doubtful",)]), max_size=12
)


def named(document: NewDocument) -> set[bytes]:
    return {entry.identity for entry in document.entries}


def full(document: NewDocument) -> set[bytes]:
    """The identities with full content in a document (R10)."""
    return {entry.identity for entry in document.entries if entry.fullness == Fullness.FULL}


@dataclass
class Expected:
    """The same documents in memory, judged anew each time."""

    documents: dict[int, NewDocument] = field(default_factory=dict)
    ranks: dict[int, int | None] = field(default_factory=dict)
    settled: set[bytes] = field(default_factory=set)
    """Removed from the chain, and in no document since."""
    doubtful: set[bytes] = field(default_factory=set)
    """Entries lost by an archive for an unknown reason (R35)."""
    fallen: dict[bytes, float] = field(default_factory=dict)
    """Tombstones that no document contains any more."""
    fullness: dict[tuple[int, int], int] = field(default_factory=dict)
    """By document and ordinal, for remembered copies contradicted by an archive since."""

    def put(self, number: int, document: NewDocument) -> None:
        old, were_doubtful = self.documents.get(number), set(self.doubtful)
        if old is not None and old.role is Role.ARCHIVE and self.ranks[number] is not None:
            new = named(old) - self.settled - self.doubtful
            (self.doubtful if document.is_doubtful else self.settled).update(new)
            if document.rank is not None:
                self.believe(full(old) & named(document) - full(document))
        if old is not None:
            for ordinal in range(len(old.entries)):
                self.fullness.pop((number, ordinal), None)
            borne = {tombstone.identity for tombstone in document.tombstones}
            self.keep([each for each in old.tombstones if each.identity not in borne], old)
        self.documents[number] = document
        self.ranks[number] = document.rank
        self.give_way(number, were_doubtful)
        self.hold()

    def give_way(self, number: int, doubtful: set[bytes]) -> None:
        """Prefer an archive with the doubtful entry to its remembered copy (R35)."""
        document = self.documents[number]
        if document.role is not Role.ARCHIVE or document.memento or self.ranks[number] is None:
            return
        for identity in named(document) & doubtful:
            fullness = max(each.fullness for each in document.entries if each.identity == identity)
            for at, memory in self.documents.items():
                for ordinal, entry in enumerate(memory.entries if memory.role is Role.MEMORY else ()):
                    own = self.fullness.get((at, ordinal), entry.fullness)
                    if entry.identity == identity and own <= fullness:
                        self.fullness[at, ordinal] = Fullness.CUT

    def believe(self, shortened: set[bytes]) -> None:
        for number, document in self.documents.items():
            for ordinal, entry in enumerate(document.entries):
                if document.role is Role.MEMORY and entry.identity in shortened:
                    self.fullness[number, ordinal] = Fullness.CUT

    def hold(self) -> None:
        held = {
            entry.identity
            for number, document in self.documents.items()
            if self.ranks[number] is not None and document.role is not Role.MEMORY and not document.memento
            for entry in document.entries
        }
        self.settled -= held
        self.doubtful -= held

    def keep(self, tombstones: Sequence[Tombstone], bearer: NewDocument) -> None:
        for each in tombstones:
            when_at = min(each.when_at, bearer.fetched_at)
            self.fallen[each.identity] = max(when_at, self.fallen.get(each.identity, when_at))

    def detach(self, number: int, *, is_withdrawn: bool) -> None:
        document = self.documents[number]
        if is_withdrawn and document.role is Role.ARCHIVE and self.ranks[number] is not None:
            self.settled |= named(document) - self.doubtful
        if document.role is Role.SUBSCRIPTION and self.ranks[number] is not None:
            self.keep(document.tombstones, document)
            self.documents[number] = replace(document, tombstones=())
        self.ranks[number] = None

    def burials(self, identity: bytes) -> list[Burial]:
        borne = [
            Burial(min(each.when_at, document.fetched_at), place_of(document.role, rank))
            for number, document in self.documents.items()
            for each in document.tombstones
            if (rank := self.ranks[number]) is not None and each.identity == identity
        ]
        fallen = [Burial(self.fallen[identity], FALLEN_OUT)] if identity in self.fallen else []
        return borne + fallen

    def purge(self) -> None:
        detached = [number for number, rank in self.ranks.items() if rank is None]
        for number in (each for each in detached if not self.documents[each].memento):
            del self.documents[number], self.ranks[number]

    def subscription_updated_at(self) -> float | None:
        held = [
            (rank, number)
            for number, rank in self.ranks.items()
            if rank is not None and self.documents[number].role is Role.SUBSCRIPTION
        ]
        return self.documents[min(held)[1]].updated_at if held else None

    def live(self) -> dict[int, tuple[int, ...]]:
        copies: dict[bytes, list[Copy]] = defaultdict(list)
        places: list[tuple[int, int]] = []
        for number in sorted(self.documents):
            document, rank = self.documents[number], self.ranks[number]
            for ordinal, entry in enumerate(document.entries):
                if rank is None:
                    continue
                is_memory = document.role is Role.MEMORY
                copy = Copy(
                    key=len(places),
                    updated_at=entry.updated_at,
                    role=document.role,
                    position=rank,
                    ordinal=ordinal,
                    document_updated_at=entry.document_updated_at if is_memory else document.updated_at,
                    fetched_at=document.fetched_at,
                    fullness=self.fullness.get((number, ordinal), entry.fullness),
                    standing=CopyStanding.IMPORTED if document.memento else CopyStanding.OWN,
                )
                copies[entry.identity].append(copy)
                places.append((number, ordinal))
        found: dict[int, list[int]] = {number: [] for number in self.documents}
        date = self.subscription_updated_at()
        for identity, held in copies.items():
            best = choose(
                held,
                subscription_updated_at=date,
                settled=identity in self.settled,
                burials=self.burials(identity),
            )
            if best is not None:
                found[places[best.key][0]].append(places[best.key][1])
        return {number: tuple(sorted(ordinals)) for number, ordinals in found.items()}


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(STEPS)
async def test_choosing_step_by_step_equals_choosing_from_nothing(
    store: NamedStore, steps: Sequence[tuple[object, ...]]
) -> None:
    """R8, R10, R19, I1: the result depends on the copies, not on their order of arrival; segments too."""
    feed = (await a_feed(store, f"{URL}/{next(_numbers)}")).id
    expected = Expected()
    for step in steps:
        await _take(store, feed, expected, step)
        numbers = list(expected.documents)
        assert await store.live_ordinals(numbers) == expected.live()
        live_bytes = {row.id: row.live_bytes for row in await store.documents(feed)}
        assert live_bytes == {number: 100 * len(at) for number, at in expected.live().items()}


async def _take(store: NamedStore, feed: int, expected: Expected, step: Sequence[object]) -> None:
    match step:
        case ("put", (role, slot), entries, date, rank, fetched_at, tombstones, bool(is_doubtful)):
            assert isinstance(role, Role)
            is_imported = isinstance(slot, int) and slot >= IMPORT
            document = a_document(
                f"{IMPORT_URL if is_imported else 'http://o.test/'}{slot}",
                *entries,  # type: ignore[misc]
                role=role,
                rank=rank,  # type: ignore[arg-type]
                updated_at=date,
                fetched_at=fetched_at,
                is_settled=role is not Role.SUBSCRIPTION,
                tombstones=() if is_imported else tombstones,
                memento="kept.xml" if is_imported else "",
                is_doubtful=is_doubtful,
            )
            (number,) = await put(store, feed, document)
            expected.put(number, document)
        case ("arrange", ranks, detached, bool(is_withdrawn)):
            assert isinstance(ranks, dict)
            assert isinstance(detached, set)
            numbers = dict(enumerate(sorted(expected.documents)))
            wanted = {numbers[at]: rank for at, rank in ranks.items() if at in numbers and at not in detached}
            leaving = {numbers[at] for at in detached if at in numbers}
            await store.arrange(feed, ranks=wanted, detached=leaving, now=NOW, is_withdrawn=is_withdrawn)
            coming = [number for number in wanted if expected.ranks[number] is None]
            were_doubtful = set(expected.doubtful)
            for number in leaving:
                expected.detach(number, is_withdrawn=is_withdrawn)
            expected.ranks.update(wanted)
            for number in coming:
                expected.give_way(number, were_doubtful)
            expected.hold()
        case ("publish",):
            assert await publish(store, feed) is not None
            assert await published_text(store, feed) == await text_of(
                store, await in_output_order(store, feed)
            )
        case ("settle doubtful",):
            assert await store.read(partial(find_doubtful, feed=feed)) == expected.doubtful
            await store.write(partial(settle_doubtful, feed=feed), feed=feed)
            expected.settled |= expected.doubtful
            expected.doubtful.clear()
        case ("purge",):
            await store.upkeep.purge(now=NOW + 100 * 86400)
            expected.purge()


async def in_output_order(store: NamedStore, feed: int) -> list[int]:
    return [row.id for row in await store.documents(feed) if row.rank is not None and row.live_bytes]


async def published_text(store: NamedStore, feed: int) -> bytes:
    async with store.snapshot(feed) as snapshot:
        return b"".join([inflate(await store.block(s.id), s.length, s.crc32) for s in snapshot.segments])
