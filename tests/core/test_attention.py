"""wholefeed.core.attention: which feeds need a person, why, and what helps."""

from __future__ import annotations

import json
from typing import Any

import pytest

from wholefeed.core.attention import (
    PARTIAL_SECONDS,
    FeedNeed,
    FeedTroubles,
    Help,
    Need,
    choose_needs,
    describe_need,
    find_need,
    read_new_address,
)
from wholefeed.core.model import State
from wholefeed.core.text.dates import DAY_SECONDS, WEEK_SECONDS

NOW = 1_700_000_000.0
A_WEEK_AGO = NOW - WEEK_SECONDS
A_MONTH_AGO = NOW - PARTIAL_SECONDS
URL = "https://example.org/blog/feed?a=1"


def troubled(**facts: Any) -> FeedTroubles:
    """A feed without failures, except these facts."""
    return FeedTroubles(**{"feed": 1, "state": State.COMPLETE, **facts})


FAILED = {"reason": "timeout", "failing_since": A_WEEK_AGO}
MISSING = {"state": State.PARTIAL, "missing": 1, "missing_since": A_MONTH_AGO, "missing_reason": "timeout"}


@pytest.mark.parametrize(
    ("troubles", "need"),
    [
        (troubled(), None),
        (troubled(**FAILED), Need.FAILED),
        (troubled(**{**FAILED, "failing_since": A_WEEK_AGO + 1}), None),
        (troubled(**{**FAILED, "failing_since": NOW + DAY_SECONDS}), None),
        (troubled(reason="publisher-status", status=410, failing_since=NOW), Need.GONE),
        (troubled(reason="publisher-status", status=404, failing_since=NOW), None),
        (troubled(reason="publisher-status", status=404, failing_since=A_WEEK_AGO), Need.GONE),
        (troubled(**MISSING), Need.PARTIAL),
        (troubled(**{**MISSING, "missing_since": A_MONTH_AGO + 1}), None),
        (troubled(**{**MISSING, "state": State.LOADING}), None),
        (troubled(**{**MISSING, "missing_reason": "memento"}), None),
        (troubled(**{**MISSING, **FAILED}), Need.FAILED),
        (troubled(new_address="https://new.test/feed"), Need.MOVED),
        (troubled(new_address="https://new.test/feed", **MISSING), Need.MOVED),
    ],
)
def test_only_lasting_troubles_need_a_person(troubles: FeedTroubles, need: Need | None) -> None:
    """A week of failures, a month with missing documents, 410 at once; no redirect and no memento."""
    found = find_need(troubles, NOW)
    assert (found and found.need) == need


@pytest.mark.parametrize(
    ("note", "address"),
    [
        ({"code": "NewAddress", "href": "https://new.test/feed"}, "https://new.test/feed"),
        ({"code": "NewAddress", "href": "http://www.example.org/blog/feed/?a=1"}, ""),
        ({"code": "NewAddress", "href": "https://moved.test/feed"}, ""),
        ({"code": "NewAddress", "href": "javascript:alert(1)"}, ""),
        ({"code": "NewAddress"}, ""),
        ({"code": "ExtraLink"}, ""),
    ],
)
def test_a_new_address_is_another_one(note: dict[str, str], address: str) -> None:
    """Not the feed's own in another spelling (H6), nor the one that the proxy asks already."""
    notes = json.dumps([{"code": "HeadCut"}, note])
    assert read_new_address(notes, URL, "http://www.moved.test/feed/") == address


def describe(troubles: FeedTroubles, *, site: str = "", is_known: bool = False) -> tuple[str, Help, str]:
    need = find_need(troubles, NOW)
    assert need is not None
    return describe_need(troubles, need, url=URL, site=site, is_address_known=is_known)


def test_each_need_has_a_sentence_and_an_act_that_helps() -> None:
    """The site is the feed's own, else its host; what passes by itself is asked again."""
    site, host = "https://example.org/blog/", "https://example.org/"
    gone = troubled(reason="publisher-status", status=410, failing_since=NOW)
    said = "The publisher says that this feed is gone for good; its entries stay here."
    assert describe(gone, site=site) == (said, Help.SITE, site)
    assert describe(gone, site="feed:nothing") == (said, Help.SITE, host)
    lost = troubled(reason="publisher-status", status=404, failing_since=A_WEEK_AGO)
    assert describe(lost)[0].startswith("Since 7 November 2023 the publisher has nothing at this address;")
    said = "Not sent since 7 November 2023: the publisher did not respond in time."
    assert describe(troubled(**FAILED)) == (said, Help.REFRESH, "")
    no_feed = troubled(**{**FAILED, "reason": "not-a-feed"})
    assert describe(no_feed, site=site)[1:] == (Help.SITE, site)
    moved = troubled(new_address="https://new.test/feed")
    assert describe(moved)[1:] == (Help.MOVE, "https://new.test/feed")
    assert describe(moved, is_known=True)[1:] == (Help.CONTINUE, "https://new.test/feed")


@pytest.mark.parametrize(
    ("facts", "words", "act"),
    [
        (
            {},
            "1 document with older entries is missing: the publisher did not respond in time.",
            Help.REFRESH,
        ),
        (
            {"missing": 1200, "missing_reason": None},
            "1,200 documents with older entries are missing.",
            Help.REFRESH,
        ),
        (
            {"missing_reason": "publisher-status", "missing_status": 404},
            "1 document with older entries is missing: the publisher responded with status 404.",
            Help.CAUSE,
        ),
        (
            {"missing_reason": "limit"},
            "1 document with older entries is missing: this feed is larger than this proxy accepts.",
            Help.CAUSE,
        ),
    ],
)
def test_missing_documents_are_asked_for_again_where_that_may_help(
    facts: dict[str, Any], words: str, act: Help
) -> None:
    """Elsewhere the page of the feed says what is missing."""
    assert describe(troubled(**{**MISSING, **facts})) == (f"Since 15 October 2023 {words}", act, "")


def test_the_most_urgent_come_first() -> None:
    """By need, then those in need for the shortest time."""
    needs = {
        1: FeedNeed(Need.PARTIAL, 5.0),
        2: FeedNeed(Need.FAILED, 1.0),
        3: FeedNeed(Need.FAILED, 9.0),
        4: FeedNeed(Need.GONE, 1.0),
        5: FeedNeed(Need.MOVED, 0.0),
    }
    assert choose_needs(needs, 4) == [4, 3, 2, 5]
