"""wholefeed.core.words: what people are told of a feed, on its page and by `wholefeed explain`."""

from __future__ import annotations

from typing import Any

import pytest

from wholefeed.core.adapters.table import ADAPTERS
from wholefeed.core.model import State
from wholefeed.core.notes import End, Ending
from wholefeed.core.slugs import SLUGS
from wholefeed.core.words import (
    PUBLISHERS,
    STALE,
    STATES,
    ago,
    ahead,
    counted,
    duration,
    ending_in_words,
    failure_in_words,
    state_words,
    time_left,
    words_of,
)

NOW = 1_700_000_000.0
"""2023-11-14T22:13:20Z."""


def a_failure(reason: str, **changes: Any) -> dict[str, Any]:
    return {"reason": reason, "status": None, "attempts": 1, "next_attempt": None, **changes}


def a_status(state: str, *missing: str, **changes: Any) -> dict[str, Any]:
    found = {
        "state": state, "stale": False, "failure": None, "ending": None, "paused_until": None,
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


def is_sentence(text: str) -> bool:
    return text[0].isupper() and text.endswith(".") and ". " not in text


@pytest.mark.parametrize("state", State)
def test_every_state_has_a_sentence_of_meaning_and_one_of_advice(state: State) -> None:
    """A person reads what the state is and what can be done, one sentence each."""
    found = STATES[state]
    assert is_sentence(found.meaning)
    assert found.advice[0].isupper()
    assert found.advice.endswith(".")
    assert found.title.lower() == state


def test_publishers_are_those_of_the_code() -> None:
    """None is without words."""
    assert list(PUBLISHERS) == [adapter.name for adapter in ADAPTERS]


@pytest.mark.parametrize(
    ("missing", "told"),
    [
        (("timeout",), "tried again by itself"),
        (("timeout", "limit"), "raise the limits"),
        (("publisher-status", "tls-certificate"), "tell the publisher"),
        (("publisher-status", "timeout"), "tried again by itself; “Refresh”"),
        (("history-unfinished",), "no more requests for now"),
        (("host-backoff", "publisher-status"), "no more requests for now"),
        (("truncated",), "tried again by itself"),
        (("memento", "memento"), "replace the copies"),
    ],
)
def test_advice_of_a_partial_feed_goes_by_what_is_missing(missing: tuple[str, ...], told: str) -> None:
    """R16: who can help is another one when a limit, the publisher or the network is in the way."""
    assert told in state_words(a_status("partial", *missing)).advice


def test_a_feed_that_only_broke_off_is_not_said_to_lack_documents() -> None:
    """Row 49: nothing says that older entries are missing."""
    assert "broke off" in state_words(a_status("partial", "truncated")).meaning
    assert "broke off" not in state_words(a_status("partial", "truncated", "timeout")).meaning


def test_a_remembered_feed_says_since_when_and_what_was_tried() -> None:
    """R7, R27: what came before the first sight is not here; a publisher that may have more is named."""
    plain = words_of(a_status("remembered"), NOW)
    assert "only its newest entries" in plain.state.meaning
    assert plain.remarks == ("Seen by this proxy, in this format, since 5 March 2019.",)
    known = a_collection(walked=None, reason="publisher-status", next_attempt="2023-11-20T00:00:00Z")
    tried = words_of(a_status("remembered", collection=known), NOW)
    assert "looks like one of WordPress" in tried.state.meaning
    assert "publisher-status" not in tried.state.meaning
    assert tried.remarks[-1].endswith("instead of the document; tried again on 20 November 2023.")


def test_a_collected_feed_says_how_it_was_found() -> None:
    """R31: what the site claims stands beside what its pages hold."""
    (remark,) = words_of(a_status("collected", collection=a_collection()), NOW).remarks
    assert "1,150 entries of 1,200 that the site claims to have on 12 pages" in remark
    assert "1 November 2023" in remark
    begun = words_of(a_status("loading", collection=a_collection(walked=None)), NOW)
    assert "not all have been read yet" in begun.remarks[-1]


def test_a_stale_feed_says_why_and_until_when() -> None:
    """Row 75: what is stored serves, and a person learns why nothing new comes."""
    failure = a_failure("timeout", attempts=3, next_attempt="2023-11-14T23:13:20Z")
    status = a_status("complete", stale=True, failure=failure, paused_until="2023-11-14T22:23:20Z")
    said = words_of(status, NOW)
    assert said.stale is STALE
    assert "did not answer in time (timeout); tried 3 times, again in 1 hour." in said.troubles[0]
    assert "left alone for another 10 minutes" in said.troubles[1]
    assert words_of(a_status("complete"), NOW).stale is None


def test_an_attempt_whose_time_has_come_waits_for_whoever_asks() -> None:
    """R14: no moment is promised that has passed."""
    passed = a_failure("timeout", status=503, next_attempt="2023-11-14T22:00:00Z")
    assert failure_in_words(passed, NOW).endswith(
        "(timeout, status 503); tried once, again when the feed is asked for"
    )


@pytest.mark.parametrize("end", End)
def test_true_ends_are_told_in_their_own_words(end: End) -> None:
    """R2: why nothing older is looked for; the words have one home."""
    assert ending_in_words(Ending(end).as_dict()) == Ending(end).as_dict()["text"]


@pytest.mark.parametrize("code", ["unavailable", "loop", "limit", "history-unfinished", "page-gone"])
def test_other_ends_are_told_without_slugs_and_urls(code: str) -> None:
    """R16: a person is not told a note's text."""
    found = ending_in_words({"code": code, "text": "expected x, got y (timeout): http://o.test/"})
    assert "http" not in found
    assert " " in found


def test_an_end_of_another_version_says_what_it_says() -> None:
    """A database may hold codes that this version has no words for."""
    assert ending_in_words({"code": "something-new", "text": "it stopped"}) == "it stopped"
    assert "something-new" not in SLUGS


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
    """Nothing is said where the publisher's URLs do not tell, or too little has been fetched to judge by."""
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
    ],
)
def test_spans_of_time_are_told_in_their_largest_unit(seconds: float, told: str) -> None:
    """Rounded down, as a person would; of a clock that was put back none is below zero."""
    assert duration(seconds) == told
    assert ago(1000.0, 1000.0 + seconds) == (f"{told} ago" if seconds >= 1 else "just now")


def test_what_is_due_waits_for_a_reader() -> None:
    """Nothing is fetched by the clock alone: a feed whose time has come is refreshed when it is asked for."""
    assert ahead(1060.0, 1000.0) == "in 1 minute"
    assert ahead(900.0, 1000.0) == "when a reader asks"
    assert counted(12_000, "entry", "entries") == "12,000 entries"
