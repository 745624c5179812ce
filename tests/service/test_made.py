"""Which URLs may lead to a feed that was made after somebody looked."""

from __future__ import annotations

from wholefeed.service.opening import MAX_MADE, Made


def test_only_what_was_made_since_is_worth_another_look() -> None:
    """A feed is found under its key and under what led to it; neither other URLs nor later looks need one."""
    made = Made()
    before = made.count
    made.note("https://a.test/", "https://a.test/feed")
    assert made.has_come("https://a.test/", before)
    assert made.has_come("https://a.test/feed", before)
    assert not made.has_come("https://b.test/feed", before)
    assert not made.has_come("https://a.test/feed", made.count), "that look would have found it"


def test_whoever_has_not_looked_looks() -> None:
    """-1 is earlier than anything, also while nothing was made."""
    assert Made().has_come("https://a.test/feed", -1)


def test_what_is_no_longer_remembered_is_looked_for() -> None:
    """Memory is bounded; behind what it reaches back to any URL may have come to lead to a feed."""
    made = Made()
    for number in range(MAX_MADE + 2):
        made.note(f"https://{number}.test/")
    assert made.has_come("https://x.test/", 1)
    assert not made.has_come("https://x.test/", 2)
    assert made.has_come(f"https://{MAX_MADE + 1}.test/", 2)
