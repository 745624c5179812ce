"""wholefeed.core.words: texts about a feed, on its page and in `wholefeed explain`."""

from __future__ import annotations

import re
from typing import Any

import pytest

from wholefeed.core.adapters.table import ADAPTERS
from wholefeed.core.model import State
from wholefeed.core.notes import DocumentUnavailable, End, Ending
from wholefeed.core.replay import ReplayPace
from wholefeed.core.slugs import SLUGS, failure_in_words
from wholefeed.core.text.dates import format_rfc3339
from wholefeed.core.words import (
    PUBLISHERS,
    STALE,
    STATES,
    ago,
    asked_next,
    describe_attempt,
    duration,
    ending_in_words,
    next_step,
    passed_over_in_words,
    replay_in_words,
    state_words,
    time_left,
    words_of,
)

NOW = 1_700_000_000.0
"""2023-11-14T22:13:20Z."""


def after(seconds: float) -> str:
    """Return an instant so many seconds after NOW, in the form of /status."""
    return format_rfc3339(NOW + seconds)


def a_failure(reason: str, **changes: Any) -> dict[str, Any]:
    tried = {"status": None, "attempts": 1, "last_attempt": after(-2), "next_attempt": None}
    return {"reason": reason, **tried, **changes}


def a_status(state: str, *missing: str, **changes: Any) -> dict[str, Any]:
    found = {
        "state": state, "stale": False, "failure": None, "ending": None, "paused_until": None,
        "refreshing": False, "walking": False, "entries": 12,
        "last_refresh": after(-37 * 60), "fresh_until": after(-60), "next_refresh": None,
        "since": "2019-03-05T00:00:00Z", "collection": None,
        "missing": [{"url": f"http://o.test/{n}", **a_failure(each)} for n, each in enumerate(missing)],
    }  # fmt: skip
    return {**found, **changes}


def a_collection(**changes: Any) -> dict[str, Any]:
    known = {
        "adapter": "wordpress", "way": "paged", "pages": 12, "claimed": 1200, "collected": 1150,
        "walked": "2023-11-01T08:00:00Z", "next_attempt": None, "reason": None,
    }  # fmt: skip
    return {**known, **changes}


def a_listing(**changes: Any) -> dict[str, Any]:
    known = {
        "url": "http://o.test/archive/", "pages": 3, "entries": 1234, "guessed": 0, "limit": None,
        "passed_over": [], "looked": "2023-11-01T08:00:00Z", "next_look": "2023-12-01T08:00:00Z",
    }  # fmt: skip
    return {**known, **changes}


def passed_over(reason: str, text: str, status: int | None = None) -> dict[str, Any]:
    return {"url": f"http://o.test/{reason}", "reason": reason, "text": text, "status": status}


def test_every_state_and_publisher_has_words() -> None:
    """A person reads the state and the possible remedy, one sentence each."""
    assert list(PUBLISHERS) == [adapter.name for adapter in ADAPTERS]
    for state in State:
        found = STATES[state]
        assert found.title.lower() == state
        assert ". " not in found.meaning
        for sentence in (found.meaning, found.advice):
            assert sentence[0].isupper()
            assert sentence.endswith(".")


@pytest.mark.parametrize(
    ("missing", "told"),
    [
        (("timeout",), "tried again when the publisher is asked"),
        (("timeout", "limit"), "raise the limits"),
        (("publisher-status", "tls-certificate"), "tell the publisher"),
        (("publisher-status", "timeout"), "tried again when the publisher is asked"),
        (("history-unfinished",), "no more requests for now"),
        (("host-backoff", "publisher-status"), "no more requests for now"),
        (("truncated",), "tried again when the publisher is asked"),
        (("truncated", "timeout"), "tried again when the publisher is asked"),
        (("memento", "memento"), "replace the copies"),
    ],
)
def test_advice_of_a_partial_feed_goes_by_what_is_missing(missing: tuple[str, ...], told: str) -> None:
    """R16: limits, publishers and networks have different remedies."""
    found = state_words(a_status("partial", *missing))
    assert told in found.advice
    for each in (unavailable := a_status("partial", "publisher-status"))["missing"]:
        each["status"] = 503
    assert "tried again when the publisher is asked" in state_words(unavailable).advice, "503 may pass"
    assert ("broke off" in found.meaning) == (missing == ("truncated",)), "row 49"


@pytest.mark.parametrize("state", State)
def test_of_a_feed_without_entries_it_is_said_that_none_is_here(state: str) -> None:
    """A feed may be empty, or be broken from its first entry on."""
    for changes in ({}, {"stale": True}):
        meaning = state_words(a_status(state, "timeout", entries=0, **changes)).meaning
        assert re.search("[Nn]o entry .*(is here|has come)", meaning)
    broken = state_words(a_status("partial", "truncated", entries=0))
    assert broken.meaning.endswith("broke off before the end of its first entry: none is here.")


LASTING = [state for state in State if state not in (State.LOADING, State.PARTIAL)]


@pytest.mark.parametrize("state", LASTING)
@pytest.mark.parametrize("changes", [{"stale": True}, {"failure": a_failure("timeout")}])
def test_of_a_stale_feed_nothing_is_said_of_the_present(state: State, changes: dict[str, Any]) -> None:
    """A publisher that fails may have more by now."""
    said = state_words(a_status(state, **changes)).meaning
    assert said != STATES[state].meaning
    assert re.search("(publisher|feed) (had|offered|linked)", said)
    assert not re.search("(publisher|site) (has|offers|answers)|feed (has|links)", said)


def test_a_remembered_feed_says_since_when_and_what_was_tried() -> None:
    """R7, R27: entries from before the first sight are absent; a publisher may have more."""
    plain = words_of(a_status("remembered"), NOW)
    assert "only its newest entries" in plain.state.meaning
    assert plain.remarks == ("Seen by this proxy, in this format, since 5 March 2019.",)
    known = a_collection(walked=None, reason="publisher-status", next_attempt="2023-11-20T00:00:00Z")
    tried = words_of(a_status("remembered", collection=known), NOW)
    assert "looks like one of WordPress" in tried.state.meaning
    assert "publisher-status" not in tried.state.meaning
    assert tried.remarks[-1].endswith(
        "document; tried again with the first refresh from 20 November 2023 on."
    )


def test_a_collected_feed_says_how_it_was_found() -> None:
    """R31: the site's claim stands beside the count on its pages."""
    (remark,) = words_of(a_status("collected", collection=a_collection()), NOW).remarks
    assert "1,150 entries of 1,200 that the site claims to have on 12 pages" in remark
    assert "1 November 2023" in remark
    begun = words_of(a_status("loading", collection=a_collection(walked=None)), NOW)
    assert "not all have been read yet" in begun.remarks[-1]


def test_a_listed_feed_says_where_its_entries_stand() -> None:
    """H7: no promise of completeness; counts of entries and pages, and the next look."""
    said = words_of(a_status("listed", listing=a_listing()), NOW)
    assert "found in lists on the site, and are here as they stand there" in said.state.meaning
    assert "may not name every entry" in said.state.advice
    (remark,) = said.remarks
    assert remark == (
        "1,234 older entries stand in a list on 3 pages of the site, looked at on 1 November 2023;"
        " the site is looked at again on 1 December 2023."
    )
    listing = a_listing(entries=1, pages=1, guessed=1, limit=200, next_look="1970-01-01T00:00:00Z")
    first, *others = words_of(a_status("partial", listing=listing), NOW).remarks
    assert first.startswith("1 older entry stands in a list on 1 page of the site, ")
    assert first.endswith("the site is looked at again soon.")
    assert others == [
        "1 entry stands there without an exact date: with a month or a year alone, or with none.",
        "The list goes on: no more than 200 of its pages are asked for.",
    ]


def test_where_nothing_is_listed_it_says_what_was_looked_at() -> None:
    """H7: the count of pages, and each reason once, most frequent first; also before any look."""
    error = passed_over("http-status", "the publisher responded with an error", 404)
    pages = [error, *[passed_over("no-list", "no list stands there")] * 2]
    nothing = a_listing(url=None, pages=0, entries=0, passed_over=pages, next_look=None)
    said = words_of(a_status("remembered", listing=nothing), NOW)
    assert said.remarks[-1] == (
        "On 1 November 2023 3 pages of the site were looked at, and none lists the feed's entries:"
        " no list stands there (2); the publisher responded with an error (1)."
    )
    assert passed_over_in_words(error) == "the publisher responded with an error (status 404)"
    why = "the publisher's robots.txt asks programs not to read it"
    one = {**nothing, "passed_over": [passed_over("robots", why)]}
    (_, remark) = words_of(a_status("remembered", listing=one), NOW).remarks
    assert remark.endswith(f"lists the feed's entries: {why}.")
    gone = {**nothing, "passed_over": [], "entries": 7}
    assert words_of(a_status("listed", listing=gone), NOW).remarks == (
        "No page of the site could be searched for a list of older entries on 1 November 2023.",
        "7 entries of a list that was found earlier are still served.",
    )
    first = a_listing(url=None, looked=None, next_look="2023-11-14T22:00:00Z")
    assert words_of(a_status("remembered", listing=first), NOW).remarks[-1] == (
        "The site's pages are searched for older entries soon, for the first time."
    )


def test_a_page_of_a_list_that_is_missing_ends_no_walk() -> None:
    """H7: older entries need not follow it."""
    ending = Ending(None, (DocumentUnavailable("http://o.test/2", reason="timeout"),)).as_dict()
    said = words_of(a_status("partial", "timeout", listing=a_listing(), ending=ending), NOW)
    assert said.ending == "a page of the publisher's list could not be fetched"
    said = words_of(a_status("partial", "timeout", ending=ending), NOW)
    assert said.ending.endswith("only that document leads to the older ones")


def test_a_stale_feed_says_when_it_was_tried_and_when_it_was_heard_of() -> None:
    """Row 75: stored documents serve. The last attempt and the last contact differ; any response is
    contact.
    """
    failure = a_failure("publisher-status", status=503, attempts=3)
    said = words_of(a_status("complete", stale=True, failure=failure), NOW)
    assert said.stale is not None
    assert said.stale.meaning == (
        "When the feed was last asked for, 2 seconds ago, the publisher responded with status 503 (3 times in"
        " a row by now); this is the feed as the publisher sent it 37 minutes ago."
    )
    assert (said.state.advice, said.heard) == ("", ""), "nothing that contradicts it"
    assert said.stale.advice == "Readers get what is here meanwhile.", "503 may pass"
    gone = a_status("complete", stale=True, failure=a_failure("publisher-status", status=404))
    assert "another address" in str(words_of(gone, NOW).stale)
    fine = words_of(a_status("complete"), NOW)
    assert (fine.stale, fine.heard) == (None, "The publisher was asked 37 minutes ago, and responded.")
    assert fine.state.advice
    first = a_status("loading", failure=a_failure("timeout"), last_refresh=None)
    told = words_of(first, NOW).stale
    assert told is not None
    assert told.meaning.endswith("2 seconds ago, the publisher did not respond in time.")
    unasked = words_of(a_status("complete", stale=True), NOW).stale
    assert unasked is STALE, "it was not asked, so nobody knows"
    assert words_of(a_status("complete", last_refresh=None), NOW).heard.endswith("has not been asked yet.")


@pytest.mark.parametrize(
    ("reason", "status", "told"),
    [
        ("publisher-status", 503, "the publisher responded with status 503"),
        ("publisher-status", 404, "the publisher responded with status 404"),
        ("connection-failed", None, "the publisher could not be reached: the connection failed"),
        ("dns-error", None, "the publisher could not be reached: no address was found for its name"),
        ("tls-certificate", None, "the publisher could not be reached: its certificate is not valid"),
        ("not-a-feed", 200, "the document there is no feed"),
    ],
)
def test_what_failed_is_told_exactly(reason: str, status: int | None, told: str) -> None:
    """A server that answers is reachable; else the connection's error is named."""
    assert failure_in_words(reason, status) == told


@pytest.mark.parametrize("state", State)
def test_a_stale_feed_is_never_told_that_nothing_needs_to_be_done(state: State) -> None:
    """The publisher may still have gaps to repair."""
    status = a_status(state, "publisher-status", stale=True, failure=a_failure("timeout"))
    said = words_of(status, NOW)
    assert said.stale is not None
    whole = " ".join((said.state.meaning, said.state.advice, said.stale.meaning, said.stale.advice))
    assert "Nothing needs" not in whole
    assert ("tell the publisher" in whole) == (state is State.PARTIAL)


_MINUTE = 60.0


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"refreshing": True}, "The publisher is being asked now, whether anybody waits for it or not."),
        ({"refreshing": True, "walking": True}, "Older documents are being fetched now, whether anybody"),
        # a walk that broke off: nobody goes on with it
        ({"walking": True}, "is asked next when a reader asks; a refresh by hand asks at once."),
        # nobody asks by itself
        ({}, "is asked next when a reader asks; a refresh by hand asks at once."),
        ({"fresh_until": None}, "is asked next when a reader asks; a refresh by hand asks at once."),
        (
            {"fresh_until": after(14 * _MINUTE)},
            "is asked next when a reader asks, in 14 minutes or later; a refresh by hand asks at once.",
        ),
        # its host is left alone: by a refresh by hand, too
        ({"paused_until": after(10 * _MINUTE)}, "next when a reader asks, in 10 minutes or later."),
        (
            {"paused_until": after(10 * _MINUTE), "fresh_until": after(14 * _MINUTE)},
            "next when a reader asks, in 14 minutes or later.",
        ),
        # it is polled
        (
            {"next_refresh": after(12 * _MINUTE)},
            "is asked next in 12 minutes, or sooner when a reader asks; a refresh by hand asks at once.",
        ),
        (
            {"next_refresh": after(12 * _MINUTE), "fresh_until": after(12 * _MINUTE)},
            "is asked next in 12 minutes; a refresh by hand asks at once.",
        ),
        ({"next_refresh": after(-5)}, "is asked next soon; a refresh by hand asks at once."),
        (
            {"next_refresh": after(-5), "paused_until": after(10 * _MINUTE)},
            "is asked next in 10 minutes.",
        ),
    ],
)
def test_what_comes_next_is_what_comes(changes: dict[str, Any], told: str) -> None:
    """R7, R14: the text promises nothing that depends on a reader's request."""
    assert told in next_step(a_status("complete", **changes), NOW)
    assert words_of(a_status("complete", **changes), NOW).next == next_step(
        a_status("complete", **changes), NOW
    )


def test_a_list_of_feeds_says_the_same() -> None:
    """An object of GET /feeds has all the fields it needs."""
    feed = {"fresh_until": after(14 * _MINUTE), "next_refresh": None}
    assert asked_next(feed, NOW) == "when a reader asks, in 14 minutes or later"
    assert asked_next({**feed, "next_refresh": after(3600)}, NOW) == "in 1 hour, or sooner when a reader asks"


def test_a_site_that_is_left_alone_is_told_of() -> None:
    """R32: the text says until when, and that nothing shortens the pause."""
    said = words_of(a_status("complete", paused_until=after(10 * _MINUTE)), NOW)
    assert said.pause.startswith("The publisher's site gets no requests for another 10 minutes, not even")
    assert words_of(a_status("complete"), NOW).pause == ""


def test_what_is_missing_is_tried_again_with_a_refresh() -> None:
    """R14: the last attempt, the count of attempts, and the time of the next."""
    assert describe_attempt(a_failure("timeout"), NOW) == "tried 2 seconds ago; again with the next refresh"
    often = a_failure("timeout", attempts=3, next_attempt=after(3600))
    assert describe_attempt(often, NOW) == (
        "tried 3 times, last 2 seconds ago; again with the next refresh, in 1 hour or later"
    )


def test_an_end_is_told_in_words() -> None:
    """R2, R16: true ends in their own words, others without slugs and URLs; unknown ones as stored."""
    for end in End:
        assert ending_in_words(Ending(end).as_dict()) == Ending(end).as_dict()["text"]
    for code in ("unavailable", "loop", "limit", "history-unfinished", "page-gone"):
        found = ending_in_words({"code": code, "text": "expected x, got y (timeout): http://o.test/"})
        assert "http" not in found
        assert " " in found
    assert "something-new" not in SLUGS
    assert ending_in_words({"code": "something-new", "text": "it stopped"}) == "it stopped"


@pytest.mark.parametrize(
    ("left", "seconds", "fetched", "told"),
    [
        (40, 20, 10, "1 minute"),
        (1, 1, 100, "1 second"),
        (None, 20, 10, ""),
        (0, 20, 10, ""),
        (40, 20, 2, ""),
        (40, None, 10, ""),
    ],
)
def test_the_time_left_is_told_where_it_is_known(
    left: int | None, seconds: int | None, fetched: int, told: str
) -> None:
    """Otherwise the URLs do not tell it, or too little was fetched."""
    assert time_left({"left": left, "seconds": seconds, "fetched": fetched}) == told


@pytest.mark.parametrize(
    ("seconds", "told"),
    [
        (-5, "0 seconds"),
        (1.9, "1 second"),
        (59, "59 seconds"),
        (90, "1 minute"),
        (3599, "59 minutes"),
        (7200, "2 hours"),
        (200_000, "2 days"),
        (800 * 86_400, "2 years"),
        (12_000 * 365 * 86_400, "12,000 years"),
    ],
)
def test_spans_of_time_are_told_in_their_largest_unit(seconds: float, told: str) -> None:
    """Rounded down; never below zero after a clock was set back."""
    assert duration(seconds) == told
    assert ago(1000.0, 1000.0 + seconds) == (f"{told} ago" if seconds >= 1 else "just now")


@pytest.mark.parametrize(
    ("entries", "rate", "since", "on", "expected"),
    [
        (302, "1/day", "2026-11-24T06:00:00+01:00", "", "302 entries, one a day: until September 2027"),
        (12_000, "50/day", "2026-11-24T06:00:00Z", "", "12,000 entries, 50 a day: until July 2027"),
        (7, "3/week", "2026-11-02T06:00:00Z", "", "7 entries, 3 a week: until 13 November 2026"),
        (
            4,
            "2/day",
            "2026-11-02T06:00:00Z",
            "wed,mon",
            "4 entries, 2 each Monday and Wednesday: until 4 ",
        ),
        (3, "1/day", "2026-11-02T23:00:00-05:00", "mon", "3 entries, one each Monday: until 16 November"),
        (2, "1/day", "2026-11-06T06:00:00Z", "fri,sat,sun", "one each Friday, Saturday and Sunday: until 7 "),
        (1, "1/week", "2026-11-24T23:30:00-05:00", "", "1 entry, one a week: until 24 November 2026"),
        (0, "1/week", "2026-11-24T06:00:00Z", "", "0 entries, one a week"),
    ],
)
def test_how_long_a_replay_takes_is_told(entries: int, rate: str, since: str, on: str, expected: str) -> None:
    """P8: by month, or by day if near; on the clock of the pace."""
    assert expected in replay_in_words(entries, ReplayPace.read(rate, since, on or None))


def test_it_is_said_that_archives_shift() -> None:
    """R35: a person can ask the publisher for numbers from the oldest."""
    note = {"code": "ArchivesShift", "url": "http://o.test/feed", "text": "…"}
    (said,) = words_of(a_status("complete", notes=[note]), NOW).remarks
    assert said.startswith("Each new entry pushes older ones from one archive document of this feed")


@pytest.mark.parametrize(
    ("posts", "codes", "expected"),
    [
        (1, (), "Since 2 November 2026, 1 post has come again under other ids; each is here once."),
        (2, (), "Since 2 November 2026, 2 posts have come again under other ids; each is here once."),
        (2, ("IdsUnstable",), "each is here once. Every refresh brings new ids."),
    ],
)
def test_it_is_said_that_ids_have_changed(posts: int, codes: tuple[str, ...], expected: str) -> None:
    """R36: a person can tell the publisher."""
    changed = {"code": "IdsChanged", "url": "http://o.test/feed", "text": "…", "posts": str(posts)}
    notes = [changed | {"since": "2026-11-02T06:00:00Z"}, *({"code": code} for code in codes)]
    (said,) = words_of(a_status("complete", notes=notes), NOW).remarks
    assert expected in said


def test_it_is_said_that_validators_are_not_used() -> None:
    """R14: a person can ask for a repair of the publisher's server."""
    note = {"code": "ValidatorsDoubted", "url": "http://o.test/feed", "text": "…"}
    (said,) = words_of(a_status("complete", notes=[note]), NOW).remarks
    assert said.startswith("The publisher's server does not tell when this feed changes")
    assert words_of(a_status("complete", notes=[]), NOW).remarks == ()
