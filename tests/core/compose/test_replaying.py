"""Entries as they are replayed, from their texts (P3)."""

from __future__ import annotations

from wholefeed.core.compose.replaying import replay_entries
from wholefeed.core.model import Family


def test_members_that_stand_many_times_do_not_multiply_a_title() -> None:
    """P3: the last member of a name counts, and stays alone: 111 KB became 100 MB."""
    text = b'{"id":"a",' + b'"title":"",' * 100 + b'"title":"%s"' % (b"x" * 10_000)
    text += b',"date_published":"2009-03-14T10:00:00Z"}'
    (made,) = replay_entries([text], [1], Family.JSON)
    assert len(made) < 2 * len(text)
