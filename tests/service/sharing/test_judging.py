"""Decisions after a look at a lease, and failures told through it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.service.snapshots import a_snapshot
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
from wholefeed.service.results import UnderWay
from wholefeed.service.sharing import Wanted, error_of, failure_in, is_to_be_done, outcome_of
from wholefeed.service.sources import SeveralFeedsError
from wholefeed.store.rows import FeedRow
from wholefeed.store.tables.leases import DEAD_SECONDS, LeaseRow

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
OWN_FAILED = replace(FAILED, replica="me")
LONG_AGO = replace(FAILED, ended_seconds=60.0)
FEED = a_snapshot(1).feed
NEW = replace(FEED, digest=None)
WAITED, DONE, INSISTS, NEW_FEED, OPENING = "waited", "done", "insists", "new feed", "opening"


@pytest.mark.parametrize(
    ("lease", "facts", "outcome"),
    [
        (None, (), "begun"),
        (None, (DONE,), "done"),
        (None, (INSISTS, DONE), "begun"),
        (None, (NEW_FEED, DONE), "begun"),
        (OWN, (DONE,), "begun"),  # it was claimed for this
        (DEAD, (), "begun"),
        (DEAD, (DONE,), "done"),
        (FORGOTTEN, (), "begun"),
        (FAILED, (), "begun"),
        (FAILED, (OPENING,), "failed"),
        (FAILED, (NEW_FEED,), "failed"),
        (FAILED, (WAITED,), "failed"),
        (FAILED, (WAITED, INSISTS), "begun"),
        (FAILED, (DONE,), "done"),
        (OWN_FAILED, (OPENING, WAITED), "begun"),
        (UNUSABLE, (), "failed"),
        (LONG_AGO, (OPENING,), "begun"),
        (LONG_AGO, (OPENING, WAITED), "failed"),
        (replace(FAILED, ended_seconds=-1.0), (OPENING,), "begun"),
    ],
)
def test_who_can_have_a_lease_knows_what_to_do(
    lease: LeaseRow | None, facts: tuple[str, ...], outcome: str
) -> None:
    """Nobody repeats finished or just failed work; a dead replica's work is continued."""
    feed = None if OPENING in facts else NEW if NEW_FEED in facts else FEED
    wanted = Wanted(
        feed=FEED, insists=lambda _: INSISTS in facts, is_due=lambda _: DONE not in facts, tell=UnderWay
    )
    has_waited = WAITED in facts
    begins = is_to_be_done("me", None if feed is None else wanted, has_waited, lease, feed)
    failure = failure_in(lease, feed, "me", has_waited=has_waited)
    assert ("begun" if begins else "done" if failure is None else "failed") == outcome


URL = "https://o.test/\x00\ud800"
"""A URL may hold characters that no column accepts."""


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
    """The failure is a text that every column accepts."""
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
    """Otherwise each replica would ask the publisher for a useless document."""
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
    again = error_of(outcome_of(SeveralFeedsError("https://o.test/", feeds)))
    assert isinstance(again, SeveralFeedsError)
    assert (again.feeds, again.url) == (feeds, "https://o.test/")


def test_an_error_of_another_version_is_a_document_that_failed() -> None:
    """During an update two versions share the database."""
    outcome = outcome_of(PublisherError("expected a", url=URL)).replace("PublisherError", "NewerError")
    assert type(error_of(outcome)) is DocumentError


@pytest.mark.parametrize(
    ("error", "feed", "seconds"),
    [
        (PublisherError("", url=URL), None, 60.0),
        (PublisherError("", url=URL, retry_after_seconds=1.5), None, 1.5),
        (PublisherError("", url=URL, retry_after_seconds=3600), None, 60.0),
        (PublisherError("", url=URL), FEED, 0.0),
        (StorageFullError(""), FEED, 60.0),
        (SeveralFeedsError(URL, ()), None, 60.0),
    ],
)
def test_a_failure_counts_for_a_minute_at_most(
    error: Exception, feed: FeedRow | None, seconds: float
) -> None:
    """docs/faults.md row 21; a stored feed's row has the next attempt."""
    for ended_seconds in (0.0, 1.0, 30.0, 59.0, 61.0):
        lease = replace(HELD, ended_seconds=ended_seconds, outcome=outcome_of(error))
        counts = failure_in(lease, feed, "me", has_waited=False) is not None
        assert counts == (ended_seconds < seconds)


@pytest.mark.parametrize("ended_seconds", [10.0, 50.0])
def test_when_to_ask_again_is_the_later_of_two(ended_seconds: float) -> None:
    """The publisher's Retry-After, and the rest of the failure's time."""
    choice = replace(FAILED, ended_seconds=ended_seconds, outcome=outcome_of(SeveralFeedsError(URL, ())))
    told = replace(choice, outcome=outcome_of(PublisherError("", url=URL, retry_after_seconds=3600)))
    for lease, seconds in ((choice, 60 - ended_seconds), (told, 3600)):
        again = failure_in(lease, None, "me", has_waited=False)
        assert isinstance(again, DocumentError)
        assert again.retry_after_seconds == seconds
