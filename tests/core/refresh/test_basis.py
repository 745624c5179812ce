"""The notes of a refresh about failed documents."""

from __future__ import annotations

from tests.core.refresh.makers import DAY, HOUR, LIMITS, NOW, a_basis, an_attempt, archive
from wholefeed.core.notes import DocumentTruncated
from wholefeed.core.refresh.arrivals import Failure
from wholefeed.core.refresh.basis import Settings
from wholefeed.core.refresh.stored import SUBSCRIPTION_ATTEMPT, Attempt

URL = archive(1)
TIMEOUT = Failure(slug="timeout")
CLOSED = Failure(slug="publisher-status", publisher_status=403)


def attempted(
    failure: Failure | None, earlier: Attempt | None = None, *, url: str = URL, at: float = NOW
) -> Attempt:
    basis = a_basis(settings=Settings(limits=LIMITS, retry_missing_seconds=HOUR), now=at)
    reason = DocumentTruncated.slug if failure is None else failure.slug
    return basis.count_attempt(url, earlier, failure, reason=reason)


def test_failures_count_up_and_keep_the_time_of_the_first() -> None:
    """R14, R16: a gap's pseudo-entry keeps the date of the first failure."""
    first = attempted(TIMEOUT)
    assert first == Attempt(
        url=URL, reason="timeout", status=None, attempts=1, first_at=NOW, last_at=NOW, next_at=NOW + 60
    )
    again = attempted(Failure(slug="publisher-status", publisher_status=503), first, at=NOW + 60)
    assert again == Attempt(
        url=URL,
        reason="publisher-status",
        status=503,
        attempts=2,
        first_at=NOW,
        last_at=NOW + 60,
        next_at=NOW + 180,
    )


def test_what_was_had_and_is_not_whole_is_tried_again_in_the_usual_time() -> None:
    """R14."""
    broken_off = attempted(None)
    found = (broken_off.reason, broken_off.status, broken_off.next_at)
    assert found == (DocumentTruncated.slug, None, NOW + 3600)


def test_the_subscription_document_is_left_alone_longer_where_it_is_closed_to_us() -> None:
    """R14: for a day; others for the usual time."""
    own, other = attempted(CLOSED, url=SUBSCRIPTION_ATTEMPT), attempted(CLOSED)
    assert (own.next_at, other.next_at) == (NOW + DAY, NOW + HOUR)


def test_nothing_waits_where_a_person_insists() -> None:
    """R14: failed documents are tried at once."""
    missing = [an_attempt(URL)]
    assert a_basis(missing=missing).waits(URL)
    assert not a_basis(missing=missing).waits(archive(2))
    assert not a_basis(missing=missing, now=NOW + HOUR).waits(URL)
    assert not a_basis(missing=missing, is_forced=True).waits(URL)
    assert not a_basis(missing=missing, is_full=True).waits(URL)


def test_what_broke_off_is_known_as_such() -> None:
    """docs/faults.md row 49."""
    missing = [an_attempt(URL, reason=DocumentTruncated.slug), an_attempt(archive(2))]
    basis = a_basis(missing=missing)
    assert [basis.is_truncated(archive(n)) for n in (1, 2, 3)] == [True, False, False]
