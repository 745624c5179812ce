from __future__ import annotations

import tracemalloc

from hypothesis import given
from hypothesis import strategies as st

from tests.makers import a_key
from wholefeed.core.walk.chain import EXACT_KEYS, FILTER_BITS, SeenKeys


@given(st.lists(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from([None, 0.0, 1.0, 1.5])))))
def test_an_identity_with_an_instant_is_new_once(documents: list[list[tuple[str, float | None]]]) -> None:
    """R17: a new (identity, instant)."""
    seen, model = SeenKeys(), set[tuple[str, float | None]]()
    for document in documents:
        assert seen.add(a_key(*key) for key in document) is not model.issuperset(document)
        model.update(document)


def test_nothing_brings_nothing_new() -> None:
    """R17: a document without entries counts as no progress."""
    assert SeenKeys().add(()) is False


def test_what_was_added_is_never_taken_for_new() -> None:
    """R17: whatever the number of keys, an old one is never new, so a walk in a circle ends."""
    seen = SeenKeys()
    keys = [a_key(f"urn:{n}", float(n)) for n in range(4 * EXACT_KEYS)]
    for start in range(0, len(keys), 16):
        seen.add(keys[start : start + 16])
    assert not seen.add(keys)


def test_many_keys_are_remembered_in_little_memory() -> None:
    """A filter of a fixed size, however many there are; on the way to it, some thousands of hashes."""
    assert FILTER_BITS // 8 == 2 << 20
    tracemalloc.start()
    try:
        seen = SeenKeys()
        seen.add(a_key(f"urn:{n}", float(n)) for n in range(30_000))
        held, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert held < 2.1 * (1 << 20)
    assert peak < 4 << 20


def test_new_keys_are_hardly_ever_mistaken_among_many() -> None:
    """R17: among 100,000 keys a new entry or update is nearly always seen as news, and the walk goes on."""
    seen = SeenKeys()
    seen.add(a_key(f"urn:{n}") for n in range(100_000))
    fresh = sum(seen.add([a_key(f"new:{n}")]) for n in range(2000))
    updates = sum(seen.add([a_key("urn:1", float(n))]) for n in range(2000))
    assert fresh > 1990
    assert updates > 1990
