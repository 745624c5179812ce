"""What is to be done after a look at a lease, and how a failure is told in one."""

from __future__ import annotations

from dataclasses import replace

import pytest

from wholefeed.core.parse.discovery import Alternate
from wholefeed.errors import (
    DocumentError,
    ForbiddenTargetError,
    LeaseLostError,
    LoopDetectedError,
    NothingYetError,
    OverloadedError,
    PublisherError,
    PublisherStatusError,
    PublisherTimeoutError,
    QueueFullError,
    StorageFullError,
    StoreError,
    UnknownFeedError,
    UnreadableError,
    WorkError,
    WorkTooLargeError,
    WorkTooLongError,
)
from wholefeed.service.sharing import error_of, judge, judge_claim, outcome_of, remembered_seconds
from wholefeed.service.sources import SeveralFeedsError
from wholefeed.store.tables.leases import DEAD_SECONDS, LeaseRow, Verdict

HELD = LeaseRow(
    name="feed:1",
    replica="other",
    token="other.1",
    progress="",
    outcome="",
    ended_seconds=None,
    silent_seconds=1.0,
)
OWN = replace(HELD, replica="me")
DEAD = replace(HELD, silent_seconds=DEAD_SECONDS)
FORGOTTEN = replace(HELD, silent_seconds=None)
FAILED = replace(HELD, ended_seconds=5.0, outcome=outcome_of(PublisherError("", url="http://o.test/")))
UNUSABLE = replace(HELD, ended_seconds=5.0, outcome=outcome_of(WorkError("")))
LONG_AGO = replace(FAILED, ended_seconds=60.0)
WAITED, DONE, INSISTS, OPENING = "has_waited", "is_done", "insists", "is_opening"


@pytest.mark.parametrize(
    ("lease", "facts", "verdict"),
    [
        (None, (), Verdict.TAKE),
        (None, (DONE,), Verdict.DONE),
        (None, (INSISTS,), Verdict.TAKE),
        (HELD, (), Verdict.WAIT),
        (HELD, (DONE,), Verdict.WAIT),
        (HELD, (INSISTS,), Verdict.WAIT),
        (OWN, (DONE,), Verdict.TAKE),
        (DEAD, (), Verdict.TAKE),
        (DEAD, (DONE,), Verdict.DONE),
        (FORGOTTEN, (), Verdict.TAKE),
        (FAILED, (), Verdict.TAKE),
        (FAILED, (OPENING,), Verdict.FAILED),
        (FAILED, (WAITED,), Verdict.FAILED),
        (FAILED, (WAITED, INSISTS), Verdict.TAKE),
        (FAILED, (DONE,), Verdict.DONE),
        (UNUSABLE, (), Verdict.FAILED),
        (LONG_AGO, (OPENING,), Verdict.TAKE),
        (replace(FAILED, ended_seconds=-1.0), (OPENING,), Verdict.TAKE),
    ],
)
def test_who_looks_at_a_lease_knows_what_to_do(
    lease: LeaseRow | None, facts: tuple[str, ...], verdict: Verdict
) -> None:
    """Nobody does what a live replica is at, or what is done; what a dead one has left is taken."""
    assert judge(lease, "me", **dict.fromkeys(facts, True)) is verdict


@pytest.mark.parametrize(
    ("lease", "is_wanted", "verdict"),
    [
        (None, True, Verdict.TAKE),
        (None, False, Verdict.TAKE),  # there is no row to be asked
        (HELD, True, Verdict.WAIT),
        (OWN, True, Verdict.WAIT),
        (DEAD, True, Verdict.TAKE),
        (FAILED, True, Verdict.TAKE),
    ],
)
def test_what_is_claimed_is_nobodys(lease: LeaseRow | None, is_wanted: bool, verdict: Verdict) -> None:
    """Not this replica's either: whatever it has it is at already."""
    assert judge_claim(lambda _: is_wanted)(lease, None) is verdict


URL = "https://o.test/\x00\ud800"
"""A URL is shown as it was given, and may hold what no column takes."""


@pytest.mark.parametrize(
    "kind",
    [
        DocumentError,
        ForbiddenTargetError,
        LoopDetectedError,
        NothingYetError,
        PublisherError,
        PublisherStatusError,
        PublisherTimeoutError,
        UnreadableError,
    ],
)
def test_how_a_document_failed_is_the_same_at_another_replica(kind: type[DocumentError]) -> None:
    """Class, slug, status, words and when to ask again; in a text that every column takes."""
    error = kind("expected a, got b", url=URL, slug="timeout", publisher_status=410, retry_after_seconds=7.5)
    outcome = outcome_of(error)
    assert outcome.isascii()
    assert "\x00" not in outcome
    again = error_of(outcome)
    assert type(again) is kind
    assert isinstance(again, DocumentError)
    assert vars(again) == vars(error)
    assert str(again) == str(error)
    assert again.answer_status == error.answer_status


@pytest.mark.parametrize("kind", [StoreError, StorageFullError, WorkError, WorkTooLongError])
def test_what_could_not_be_kept_or_rendered_is_told(kind: type[StoreError | WorkError]) -> None:
    """The publisher is not asked once by each replica for what none of them can use."""
    again = error_of(outcome_of(kind("no room", slug="storage-full")))
    assert (type(again), str(again), again.slug) == (kind, "no room", "storage-full")


@pytest.mark.parametrize(
    "error",
    [
        OverloadedError("busy"),
        LeaseLostError("another"),
        QueueFullError("busy", url=URL),
        WorkTooLargeError("no memory"),
        UnreadableError("no memory", url=URL, slug="memory-short"),
        UnknownFeedError("gone"),
        ValueError("a defect"),
    ],
)
def test_what_is_a_replicas_own_trouble_is_not_told(error: Exception) -> None:
    """The others try for themselves."""
    assert outcome_of(error) == ""


def test_a_choice_of_feeds_is_told_with_the_feeds() -> None:
    """A person who asks another replica chooses from the same ones."""
    feeds = (Alternate("application/atom+xml", "https://o.test/a", "A"), Alternate("", "https://o.test/b"))
    again = error_of(outcome_of(SeveralFeedsError("https://o.test/", feeds)), retry_after_seconds=3)
    assert isinstance(again, SeveralFeedsError)
    assert (again.feeds, again.url, again.retry_after_seconds) == (feeds, "https://o.test/", 3)


def test_an_error_of_another_version_is_a_document_that_failed() -> None:
    """While an update is rolled out, two versions share the database."""
    outcome = outcome_of(PublisherError("expected a", url=URL)).replace("PublisherError", "NewerError")
    assert type(error_of(outcome)) is DocumentError


@pytest.mark.parametrize(
    ("error", "is_opening", "seconds"),
    [
        (PublisherError("", url=URL), True, 60.0),
        (PublisherError("", url=URL, retry_after_seconds=1.5), True, 1.5),
        (PublisherError("", url=URL, retry_after_seconds=3600), True, 60.0),
        (PublisherError("", url=URL), False, 0.0),
        (StorageFullError(""), False, 60.0),
        (SeveralFeedsError(URL, ()), True, 60.0),
    ],
)
def test_a_failure_counts_for_a_minute_at_most(error: Exception, is_opening: bool, seconds: float) -> None:
    """docs/faults.md row 21; of a feed that is stored its row says when the publisher may be asked again."""
    assert remembered_seconds(outcome_of(error), is_opening=is_opening) == seconds


def test_when_to_ask_again_is_the_later_of_two() -> None:
    """What the publisher asked for, and what is left of the minute."""
    outcome = outcome_of(PublisherError("", url=URL, retry_after_seconds=30))
    for seconds, expected in ((10.0, 30), (50.0, 50.0)):
        again = error_of(outcome, retry_after_seconds=seconds)
        assert isinstance(again, DocumentError)
        assert again.retry_after_seconds == expected
