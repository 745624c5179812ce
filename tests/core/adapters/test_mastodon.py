"""`wholefeed.core.adapters.others` (rules R26 to R31)."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tests.core.adapters.publisher import Entries, looked
from wholefeed.core.adapters.base import Collection, Marks, Outcome, Refused
from wholefeed.core.adapters.others import Mastodon
from wholefeed.core.model import Family

DAY = 86_400.0


class Statuses(Entries):
    """An account's statuses."""

    url = "https://social.example.org/@ann.rss"
    site_id = "https://social.example.org/@ann"

    def __init__(self, count: int = 120) -> None:
        super().__init__(range(count, 0, -1), page=20)

    @property
    def marks(self) -> Marks:
        return Marks(generator="Mastodon v4.3.0")

    def guid(self, name: str) -> str:
        return f"https://social.example.org/@ann/{name}"

    def select(self, query: dict[str, str]) -> Sequence[str] | Refused:
        return self.names[: min(200, int(query["limit"]))]

    def collect(self) -> Outcome:
        return self.play(Mastodon().collect(self.job()))

    def look(self, known: Collection) -> Outcome:
        self.asked.clear()
        return self.play(Mastodon().look(self.job(known)))


@pytest.mark.parametrize("generator", ["Mastodon v4.3.0", "Mastodon v4.3.0-alpha.0+glitch"])
def test_accounts_are_known(generator: str) -> None:
    """R26: by the generator."""
    assert Mastodon().fits(Statuses().sight(marks=Marks(generator=generator)))


@pytest.mark.parametrize(
    "changes",
    [
        {"marks": Marks()},
        {"marks": Marks(generator="Mastodon")},
        {"marks": Marks(generator="Not Mastodon v4")},
        {"marks": Marks(generator="GoToSocial 0.17")},
        {"url": "https://social.example.org/@ann.rss?limit=50"},
        {"asked_url": "https://social.example.org/@ann.rss?limit=50"},
        {"family": Family.ATOM},
    ],
)
def test_others_are_left_alone(changes: dict[str, object]) -> None:
    """R26: the path alone says nothing."""
    assert not Mastodon().fits(Statuses().sight(**changes))


@pytest.mark.parametrize("count", [21, 120, 199])
def test_all_statuses_come_at_once(count: int) -> None:
    """R28: the largest page, in one question."""
    publisher = Statuses(count)
    outcome = publisher.collect()
    assert (outcome.is_honoured, outcome.is_whole, outcome.known.collected) == (True, True, count)
    assert publisher.given == publisher.identities()
    assert publisher.targets == ["limit=200"]


@pytest.mark.parametrize("count", [200, 500])
def test_a_full_page_is_not_promised_to_be_all(count: int) -> None:
    """R31: there may be more that nothing reaches."""
    publisher = Statuses(count)
    outcome = publisher.collect()
    assert (outcome.is_honoured, outcome.is_whole) == (True, False)
    assert "200" in outcome.reason


@pytest.mark.parametrize("count", [2, 7, 20])
def test_few_statuses_are_all_there_are(count: int) -> None:
    """R27: that the parameter counts shows in a page of one."""
    publisher = Statuses(count)
    outcome = publisher.collect()
    assert (outcome.is_honoured, outcome.is_whole) == (True, True)
    assert len(publisher.asked) == 2


@pytest.mark.parametrize("count", [0, 1])
def test_nothing_is_claimed_of_one_status(count: int) -> None:
    """R27: no answer can show that the parameter is read."""
    assert not Statuses(count).collect().is_honoured


@pytest.mark.parametrize("count", [5, 20, 120])
def test_an_ignored_parameter_is_seen(count: int) -> None:
    """R27: after two questions, also while a new status comes."""
    publisher = Statuses(count)
    publisher.ignores = True
    publisher.on_ask = lambda number: publisher.names.insert(0, f"new-{number}")
    assert not publisher.collect().is_honoured
    assert len(publisher.asked) == 2


@pytest.mark.parametrize("refusal", [Refused("http-404", 404), Refused("http-503", 503), Refused("format")])
def test_nothing_is_claimed_where_the_page_cannot_be_had(refusal: Refused) -> None:
    """R27: whatever the reason is."""
    publisher = Statuses()
    publisher.refusals[1] = refusal
    outcome = publisher.collect()
    assert (outcome.is_honoured, outcome.reason, len(publisher.asked)) == (False, refusal.slug, 1)


def test_a_new_status_changes_nothing() -> None:
    """It stands in front of what is known."""
    publisher = Statuses()
    publisher.on_ask = lambda number: publisher.names.insert(0, f"new-{number}")
    assert publisher.collect().is_whole
    assert publisher.given == publisher.identities()


def test_a_deleted_status_changes_nothing() -> None:
    """Neither the first nor the last of those that are known has to be there still."""
    publisher = Statuses()
    publisher.on_ask = lambda number: [publisher.names.pop(place) for place in (19, 0)]
    assert publisher.collect().is_whole
    assert publisher.given >= publisher.identities()


@pytest.mark.parametrize("new", [0, 1, 19])
def test_nothing_is_asked_where_the_feed_reaches_back(new: int) -> None:
    """R30: the subscription document has all that is new."""
    publisher = Statuses()
    known = looked(publisher.collect())
    publisher.names[:0] = [f"new-{number}" for number in range(new)]
    assert publisher.look(known).is_whole
    assert publisher.asked == []


def test_what_the_feed_does_not_reach_is_asked_for() -> None:
    """R30: more than twenty statuses since the last look."""
    publisher = Statuses()
    known = looked(publisher.collect())
    publisher.names[:0] = [f"new-{number}" for number in range(30)]
    assert publisher.look(known).is_whole
    assert publisher.given == publisher.identities()
    assert publisher.targets == ["limit=200"]


def test_the_page_is_asked_for_once_a_day() -> None:
    """R30: what was edited shows."""
    publisher = Statuses()
    known = looked(publisher.collect(), seconds_ago=DAY + 1)
    assert publisher.look(known).is_whole
    assert len(publisher.asked) == 1


def test_what_was_cut_stays_told() -> None:
    """R31: also by a look that asks for nothing."""
    publisher = Statuses(500)
    known = looked(publisher.collect())
    outcome = publisher.look(known)
    assert (outcome.is_honoured, outcome.is_whole, publisher.asked) == (True, False, [])


@pytest.mark.parametrize(("new", "is_whole"), [(90, True), (199, True), (200, False), (300, False)])
def test_what_was_had_once_grows_beyond_a_page(new: int, is_whole: bool) -> None:
    """R31: nothing is missing as long as a page reaches what was known."""
    publisher = Statuses(120)
    known = looked(publisher.collect())
    publisher.stored = set(publisher.given)
    publisher.names[:0] = [f"new-{number}" for number in range(new)]
    outcome = publisher.look(known)
    assert outcome.is_whole is is_whole
    assert not is_whole or publisher.given == publisher.identities()
    again = publisher.look(looked(outcome))
    assert (again.is_whole, publisher.asked) == (is_whole, [])


@pytest.mark.parametrize("new", [90, 300])
def test_all_again_knows_what_was_had(new: int) -> None:
    """R31: a walk by `full` promises no more than the looks do."""
    publisher = Statuses(120)
    known = looked(publisher.collect())
    publisher.stored = set(publisher.given)
    publisher.names[:0] = [f"new-{number}" for number in range(new)]
    outcome = publisher.play(Mastodon().collect(publisher.job(known)))
    assert outcome.is_whole is (new == 90)


def test_a_look_that_fails_is_made_up_for() -> None:
    """What the feed does not reach stays unknown until a look has had it."""
    publisher = Statuses()
    known = looked(publisher.collect())
    publisher.names[:0] = [f"new-{number}" for number in range(30)]
    publisher.refusals[1] = Refused("http-503", 503)
    failed = publisher.look(known)
    assert (failed.is_whole, failed.reason, failed.known.top) == (False, "http-503", known.top)
    publisher.refusals.clear()
    assert publisher.look(failed.known).is_whole
    assert publisher.given == publisher.identities()
