"""wholefeed.service.memory: cached feeds stay within the bound, and never fall behind the store."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import fields, replace
from typing import Any

import pytest

from tests.service.snapshots import a_snapshot, hold, url_of
from wholefeed.core.refresh.stored import Attempt
from wholefeed.service.memory import LARGEST_BLOCK_BYTES, MAX_CHANGES, Beginning, Memory
from wholefeed.store.rows import DocumentRow, Failures, Snapshot
from wholefeed.store.tables.feed_table import Version, version_of

MIB = 1 << 20


@contextmanager
def waiting(memory: Memory) -> Iterator[None]:
    """An answer waits for the refresh of the first feed."""
    with memory.await_feed(1):
        yield


def test_a_feed_is_found_by_each_url_that_was_asked_for() -> None:
    """Key and aliases lead to the same feed; unrequested URLs lead nowhere."""
    memory = Memory(MIB)
    snapshot = a_snapshot(1)
    held = hold(memory, snapshot)
    assert held is not None
    assert hold(memory, a_snapshot(1), "http://o.test/alias") is held
    assert memory.find(url_of(1)) is memory.find("http://o.test/alias") is held
    assert (held.snapshot, held.asked_at) == (snapshot, 7.0)
    assert memory.find("http://o.test/other") is None
    assert (memory.usage.feeds, memory.usage.hits, memory.usage.misses) == (1, 0, 0)
    memory.note_asked(held)
    memory.note_asked(None)
    memory.note_asked(held)
    assert (memory.usage.hits, memory.usage.misses) == (2, 1)


@pytest.mark.parametrize(
    "let_go",
    [lambda memory: memory.drop(1), lambda memory: memory.confirm(1, None), Memory.drop_all],
    ids=["changed", "forgotten", "all"],
)
def test_a_feed_that_changes_is_let_go(let_go: Callable[[Memory], None]) -> None:
    """Derived answers and a read under way go, too."""
    memory = Memory(MIB)
    before = memory.generation
    held = hold(memory, a_snapshot(1))
    assert held is not None
    held.keep_block(1, b"x" * 1000)
    let_go(memory)
    held.keep_block(2, b"x" * 1000)
    held.keep_made("key", "value", 1000)
    assert memory.put(a_snapshot(1), url_of(1), before) is None
    assert memory.find(url_of(1)) is None
    assert (memory.usage.bytes, held.made("key")) == (0, None)
    assert hold(memory, a_snapshot(1)) is not None


def test_of_two_reads_at_once_the_blocks_go_with_their_own_snapshot() -> None:
    """The same snapshot shares blocks in memory; a new one replaces them."""
    memory = Memory(MIB)
    first = hold(memory, a_snapshot(1))
    assert first is not None
    assert hold(memory, a_snapshot(1)) is first
    second = hold(memory, a_snapshot(1, revision=2))
    assert second is not first
    assert second is memory.find(url_of(1))
    used = memory.usage.bytes
    first.keep_block(1, b"x")
    assert (first.blocks, memory.usage.bytes) == ({}, used)


def test_what_is_published_is_held_at_once_where_an_answer_waits() -> None:
    """The feed's key leads to all of its text."""
    memory = Memory(MIB)
    before = memory.generation
    with waiting(memory):
        memory.replace(a_snapshot(1), {0: b"x"})
    assert memory.put(a_snapshot(1, revision=0), url_of(1), before) is None
    held = memory.find(url_of(1))
    assert held is not None
    assert (held.snapshot, held.blocks, held.is_whole) == (a_snapshot(1), {0: b"x"}, True)


def test_what_stays_of_a_publication_is_taken_over() -> None:
    """Texts in memory survive a change; if one is unknown, all go."""
    memory = Memory(MIB)
    with waiting(memory):
        memory.replace(a_snapshot(1, segments=2), {0: b"x", 1: b"y"})
        memory.renew(a_snapshot(1, segments=2, revision=2).feed)  # its documents change
        memory.replace(a_snapshot(1, segments=3, revision=2), {1: b"z", 2: b"w"})
        held = memory.of(1)
        assert held is not None
        assert held.blocks == {0: b"x", 1: b"z", 2: b"w"}
        memory.replace(a_snapshot(1, segments=4, revision=3), {})
        assert memory.of(1) is None
        memory.replace(a_snapshot(1, segments=3, revision=4), {})  # the one before left nothing
        assert memory.of(1) is None
    assert memory.usage.bytes == 0


def test_a_publication_that_is_too_large_or_nobody_waits_for_is_not_held() -> None:
    """Readers of the store need its segments readable."""
    memory = Memory(MIB)
    with waiting(memory):
        with waiting(memory):
            memory.replace(a_snapshot(1, head=b"x" * MIB), {0: b"x"})
        memory.replace(a_snapshot(2), {0: b"x"})
        assert memory.usage == (0, 0, 0, 0)
        memory.replace(a_snapshot(1), {0: b"x"})
        assert memory.feeds == [1]
    memory.replace(a_snapshot(1, revision=2), {0: b"x"})
    assert memory.feeds == []


def test_what_was_not_asked_for_longest_goes_first() -> None:
    """The bytes stay within the bound."""
    memory = Memory(100_000)
    for feed in range(1, 6):
        assert hold(memory, a_snapshot(feed, head=b"x" * 10_000)) is not None
    assert memory.usage.bytes <= 100_000
    memory.note_asked(memory.find(url_of(1)))
    for feed in range(6, 10):
        assert hold(memory, a_snapshot(feed, head=b"x" * 10_000)) is not None
        assert memory.usage.bytes <= 100_000
    held = [feed for feed in range(1, 10) if memory.find(url_of(feed)) is not None]
    assert held[0] == 1
    assert 2 not in held
    assert held[-4:] == [6, 7, 8, 9]


def test_blocks_that_are_large_and_feeds_that_are_too_large_are_not_held() -> None:
    """The limits are 256 KiB for a block, and a quarter of the memory for a feed."""
    memory = Memory(8 * MIB)
    held = hold(memory, a_snapshot(1, segments=20))
    assert held is not None
    held.keep_block(0, b"x" * (LARGEST_BLOCK_BYTES + 1))
    assert held.blocks == {}
    for segment in range(20):
        held.keep_block(segment, b"x" * LARGEST_BLOCK_BYTES)
    assert len(held.blocks) == 6  # of 256 KiB, in 1.75 MiB with the rest
    assert memory.usage.bytes <= 2 * MIB
    assert hold(memory, a_snapshot(2, head=b"x" * (3 * MIB))) is None
    assert memory.find(url_of(2)) is None


def test_what_is_counted_is_what_it_takes() -> None:
    """Rows, blocks and derived answers count with the objects around them."""
    memory = Memory(MIB)
    snapshot = a_snapshot(1, head=b"x" * 10_000, segments=100)
    held = hold(memory, snapshot)
    assert held is not None
    rows = sum(sys.getsizeof(each) + sys.getsizeof(each.digest) for each in snapshot.segments)
    assert memory.usage.bytes > rows + 10_000
    before = memory.usage.bytes
    held.keep_block(5, b"x" * 5000)
    held.keep_made("key", object(), 700)
    assert memory.usage.bytes >= before + sys.getsizeof(b"x" * 5000) + 700


def test_what_is_made_of_a_feed_is_limited_in_number() -> None:
    """Ever new names push out the oldest, with its bytes."""
    memory = Memory(MIB)
    held = hold(memory, a_snapshot(1))
    assert held is not None
    for number in range(16):
        held.keep_made(number, f"value {number}", 100)
    full = memory.usage.bytes
    for number in range(16, 100):
        held.keep_made(number, f"value {number}", 100)
    assert memory.usage.bytes == full
    assert (held.made(0), held.made(99)) == (None, "value 99")


@pytest.mark.parametrize("max_bytes", [0, 5000])
def test_a_memory_without_room_holds_nothing(max_bytes: int) -> None:
    """`store.memory_bytes` 0 turns it off."""
    memory = Memory(max_bytes)
    assert hold(memory, a_snapshot(1)) is None
    assert memory.find(url_of(1)) is None
    assert memory.usage[:2] == (0, 0)


def a_version(snapshot: Snapshot, **changes: Any) -> Version:
    """A feed's version by another process."""
    return version_of(replace(snapshot.feed, **changes))


def test_what_is_confirmed_stays_with_the_times_of_now() -> None:
    """Another process may have validated the feed: its derived answers are still good."""
    memory = Memory(MIB)
    snapshot = a_snapshot(1)
    held = hold(memory, snapshot)
    assert held is not None
    held.keep_made("key", "value", 10)
    memory.confirm(1, a_version(snapshot, checked_at=70.0, fresh_until=90.0))

    found = memory.find(url_of(1))
    assert found is held
    assert (found.snapshot.feed.checked_at, found.snapshot.feed.fresh_until) == (70.0, 90.0)
    assert found.made("key") == "value"


@pytest.mark.parametrize(
    "change",
    [{"modified_at": 9.0}, {"is_stale": 1}, {"is_walking": 1}, {"revision": 2}, {"published_revision": 2}],
)
def test_what_is_another_one_now_is_let_go(change: dict[str, float]) -> None:
    """Any change visible to readers, or that makes the feed due, counts."""
    memory = Memory(MIB)
    hold(memory, a_snapshot(1))
    before = memory.generation
    memory.confirm(1, a_version(a_snapshot(1), **change))
    assert memory.find(url_of(1)) is None
    assert memory.put(a_snapshot(1), url_of(1), before) is None


@pytest.mark.parametrize(("change", "is_said"), [({"revision": 2}, False), ({"is_walking": True}, True)])
def test_a_row_that_says_something_else_leaves_the_text(change: dict[str, Any], is_said: bool) -> None:
    """Stored but unpublished documents change no answer; another state changes the head."""
    memory = Memory(MIB)
    held = hold(memory, a_snapshot(1), "http://o.test/alias")
    assert held is not None
    held.keep_block(0, b"x")
    held.keep_made("key", "value", 10)
    row = replace(held.snapshot.feed, **change)
    before = memory.generation
    memory.renew(row)
    assert memory.put(a_snapshot(1), url_of(1), before) is None
    found = memory.find("http://o.test/alias")
    assert found is not None
    assert (found.snapshot.feed, found.blocks) == (row, {0: b"x"})
    assert found.made("key") == (None if is_said else "value")
    memory.drop(1)
    assert memory.usage.bytes == 0


# The start of the next refresh

LONG = "https://o.test/" + "x" * 2000
TIMES = 50


def a_document(number: int, **values: Any) -> DocumentRow:
    usual: dict[str, Any] = {each.name: 0 for each in fields(DocumentRow)}
    return DocumentRow(**{**usual, "id": number, "links": {}, "notes": (), **values})


def an_attempt(number: int) -> Attempt:
    return Attempt(
        url=f"{LONG}{number}",
        reason="timeout",
        status=None,
        attempts=1,
        first_at=1.0,
        last_at=1.0,
        next_at=2.0,
    )


NOTHING_MISSING = Failures((), None)


@pytest.mark.parametrize(
    "found",
    [
        Beginning([a_document(1, links={f"r{each}": LONG for each in range(TIMES)})], NOTHING_MISSING),
        Beginning([a_document(1, notes=({"code": "a", "url": LONG},) * TIMES)], NOTHING_MISSING),
        Beginning([a_document(1)], Failures(tuple(map(an_attempt, range(TIMES))), None)),
    ],
    ids=["links", "notes", "missing"],
)
def test_what_publishers_make_long_is_counted(found: Beginning) -> None:
    """Memory stays bounded with any links, texts and omissions of feeds."""
    memory = Memory(MIB)
    hold(memory, a_snapshot(1))
    before = memory.usage.bytes
    memory.keep_beginning(1, found)
    assert memory.beginning(1) == (a_snapshot(1).feed, found)
    assert memory.usage.bytes - before >= TIMES * len(LONG)


def test_what_a_refresh_starts_from_is_as_old_as_the_last_write() -> None:
    """Any write of the feed drops it, except a validation without news."""
    memory = Memory(MIB)
    hold(memory, a_snapshot(1))
    found = Beginning([a_document(1)], NOTHING_MISSING)
    memory.keep_beginning(1, found)
    checked = replace(a_snapshot(1).feed, checked_at=70.0)
    memory.renew(checked, is_unchanged=True)
    assert memory.beginning(1) == (checked, found)
    memory.renew(checked)
    assert memory.beginning(1) is None


# Recent changes


def test_what_is_no_longer_remembered_may_have_changed() -> None:
    """The record of changes is bounded; a read from before its beginning fills nothing."""
    memory = Memory(MIB)
    before = memory.generation
    for feed in range(2, MAX_CHANGES + 3):
        memory.drop(feed)
    assert memory.put(a_snapshot(1), url_of(1), before) is None
    assert hold(memory, a_snapshot(1)) is not None
