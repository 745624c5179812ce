"""wholefeed.core.jobs: what leaves a document is written into memory documents."""

from __future__ import annotations

import hashlib

from tests.feeds import an_item, atom, json_feed
from wholefeed.core.jobs import Stored, StoredMemory, read_again, remember_copies
from wholefeed.core.merge import OTHER
from wholefeed.core.model import MEMORY_URL, EntryId

OLD = Stored(atom(an_item("a", 1), an_item("b", 2), updated=5), "http://a.test/", "application/atom+xml")


def identities(stored: Stored) -> list[EntryId]:
    return list(read_again(stored).entries.identities())


def test_what_left_is_written_as_a_document_that_can_be_stored() -> None:
    """R8: its body, what is in it, and the dates that its copies are remembered with."""
    stays, leaves = identities(OLD)
    ((written,), _) = remember_copies(OLD, {stays: OTHER}, None, fetched_at=2e9, next_number=4)
    assert (written.number, written.is_sealed) == (4, False)
    assert written.document.url == f"{MEMORY_URL}4"
    assert written.digest == hashlib.sha256(written.document.body).digest()
    assert identities(written.document) == [leaves]
    (entry,) = written.facts.entries
    assert entry.identity == leaves
    assert entry.document_updated_at == read_again(OLD).updated_at


def test_the_open_memory_document_takes_in_more() -> None:
    """The newest on top, under the number that it has; its copies keep their dates. Parsed before or not."""
    first, second = identities(OLD)
    ((written,), _) = remember_copies(OLD, {first: OTHER}, None, fetched_at=2e9, next_number=1)
    dates = [(each.updated_at, each.document_updated_at) for each in written.facts.entries]
    memory = StoredMemory(1, written.document, written.facts.entries.copy_dates())
    ((grown,), _) = remember_copies(OLD, {second: OTHER}, memory, fetched_at=2e9, next_number=2)
    assert grown.number == 1
    assert identities(grown.document) == [first, second]
    assert [(each.updated_at, each.document_updated_at) for each in grown.facts.entries][1:] == dates
    parsed = memory._replace(document=written.document.parse())
    again = remember_copies(OLD.parse(), {second: OTHER}, parsed, fetched_at=2e9, next_number=2)
    assert again.written == [grown]


def test_nothing_is_written_where_nothing_left() -> None:
    """All that stood there is there still."""
    present = dict.fromkeys(identities(OLD), OTHER)
    assert remember_copies(OLD, present, None, fetched_at=2e9, next_number=1).written == []


def test_memory_is_of_the_format_of_what_left() -> None:
    """A JSON Feed's copies wait in a JSON document."""
    old = Stored(json_feed(an_item("a", 1)), "http://a.test/", "application/feed+json")
    ((written,), _) = remember_copies(old, {}, None, fetched_at=2e9, next_number=1)
    assert written.facts.family == "json"
    assert written.document.media_type == "application/feed+json"
