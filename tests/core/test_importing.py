"""wholefeed.core.importing: the kept documents that belong to a feed, and their dates (I1)."""

from __future__ import annotations

import pytest

from wholefeed.core.importing import Named, refusal, time_of
from wholefeed.core.model import Family

NOW = 1_700_000_000.0
FEED = "http://site.test/feed"


def named(site_id: str = "", family: Family = Family.ATOM, **links: str) -> Named:
    return Named(family, site_id, links)


def a_feed(site_id: str = "", family: Family = Family.ATOM) -> Named:
    return Named(family, site_id, {}, (FEED,))


def why(kept: Named, feed: Named, *, has_common: bool = False, is_forced: bool = False) -> str:
    found = refusal(kept, feed, has_common=has_common, is_forced=is_forced)
    return "" if found is None else found.slug


@pytest.mark.parametrize(
    ("kept", "feed", "expected"),
    [
        (named("urn:a"), a_feed("urn:a"), ""),
        (named("http://site.test/"), a_feed("https://www.site.test"), ""),
        (named("urn:b"), a_feed("urn:a"), "another-feed"),
        (named("urn:b", self=FEED), a_feed("urn:a"), "another-feed"),
        (named("urn:b", current=FEED), a_feed("urn:a"), ""),
        (named("", self=FEED), a_feed("urn:a"), "another-feed"),
        (named("urn:a", self=FEED), a_feed(""), "another-feed"),
        (named("", self="http://www.site.test/old"), a_feed(""), ""),
        (named("", self="http://elsewhere.test/feed"), a_feed(""), "another-feed"),
        (named(""), a_feed(""), "another-feed"),
        (named("", self="file:///home/feed"), Named(Family.ATOM, "", {}, ("urn:x",)), "another-feed"),
    ],
    ids=[
        "the same id", "the same site", "another id", "self is no confirmation", "current is",
        "one names none", "the feed names none", "the host", "another host", "no host",
        "no hosts are not alike",
    ],
)  # fmt: skip
def test_a_document_belongs_by_what_it_says(kept: Named, feed: Named, expected: str) -> None:
    """I1, R24: by host only if neither has a better name."""
    assert why(kept, feed) == expected


def test_an_entry_in_common_or_its_owner_overrules_names() -> None:
    """I1: feeds change their names."""
    assert why(named("urn:b"), a_feed("urn:a"), has_common=True) == ""
    assert why(named("urn:b"), a_feed("urn:a"), is_forced=True) == ""


def test_no_one_overrules_the_format() -> None:
    """I1, R23."""
    kept = named("urn:a", Family.RSS)
    assert why(kept, a_feed("urn:a"), has_common=True, is_forced=True) == "format"


@pytest.mark.parametrize(
    ("given", "dates", "file_at", "expected"),
    [
        (5.0, [9.0], 7.0, 5.0),
        (None, [9.0, None, 3.0], 7.0, 9.0),
        (None, [None, NOW + 1], 7.0, 7.0),
        (None, [], None, NOW),
        (None, [-5.0], None, 1.0),
        (NOW + 9, [], None, NOW),
        (None, [], NOW + 9, NOW),
    ],
    ids=["said", "newest", "future", "nothing", "before 1970", "said of the future", "a file of the future"],
)
def test_its_time_is_said_or_its_newest_date_or_the_file_s(
    given: float | None, dates: list[float | None], file_at: float | None, expected: float
) -> None:
    """I1: and never in the future."""
    assert time_of(given, dates, file_at, now=NOW) == expected
