"""wholefeed.core.facts: packed facts about entries."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.workers.samples import BODIES
from wholefeed.core.facts import CopyDates, EntryFacts, PackedEntries
from wholefeed.core.merge import Fullness, fullness_of
from wholefeed.core.model import EntryId
from wholefeed.core.parse.documents import parse

INSTANTS = st.none() | st.floats(allow_nan=False)
FACTS = st.builds(
    EntryFacts,
    identity=st.binary(min_size=16, max_size=16).map(EntryId),
    updated_at=INSTANTS,
    order_at=INSTANTS,
    size=st.integers(0, (1 << 32) - 1),
    document_updated_at=INSTANTS,
    fullness=st.sampled_from(Fullness),
    made_at=INSTANTS,
)


@given(st.lists(FACTS))
def test_what_is_packed_comes_out_as_it_was(entries: list[EntryFacts]) -> None:
    """To the bit, after any number of rounds, in each view."""
    packed = PackedEntries.pack(entries)
    assert len(packed) == len(entries)
    for _ in range(2):
        assert list(packed) == entries
        assert list(packed.dated_identities) == [(each.identity, each.updated_at) for each in entries]
    assert list(packed.identities()) == [each.identity for each in entries]
    assert list(packed.fullness) == [each.fullness for each in entries]


def test_entries_take_their_own_dates_or_those_of_copies() -> None:
    """Remembered copies have the dates stored with them (R10)."""
    document = parse(BODIES["atom"], "http://a.test/")
    first = document.entries[0]
    size = first.end - first.start
    own = next(iter(PackedEntries.of(document)))
    assert own == EntryFacts(first.identity, first.updated_at, first.order_at, size, None, fullness_of(first))
    dates = [CopyDates(1.0, 2.0, 0, 3.0)] * len(document.entries)
    copied = next(iter(PackedEntries.of(document, dates)))
    assert copied == EntryFacts(first.identity, 1.0, first.order_at, size, 2.0, 0, 3.0)
