"""`wholefeed.core.adapters.others`, and what all keyset publishers have in common (rules R26 to R30)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from tests.core.adapters.publisher import Entries, looked
from wholefeed.core.adapters.base import Collection, Marks, Outcome, Refused
from wholefeed.core.adapters.others import GitHub
from wholefeed.core.model import Family

DAY = 86_400.0
UNAVAILABLE = Refused("http-503", 503)
GONE = Refused("http-404", 404)


class Releases(Entries):
    """A repository's releases; `lost` says what it gives behind a tag that it has not."""

    url = "https://github.com/some/thing/releases.atom"
    family = Family.ATOM
    site_id = "tag:github.com,2008:https://github.com/some/thing/releases"

    def __init__(self, count: int = 95) -> None:
        super().__init__((f"v{number}" for number in range(count, 0, -1)), page=10)
        self.lost: Callable[[], Sequence[str] | Refused] = lambda: ()
        self.repeats_last = False

    def guid(self, name: str) -> str:
        return f"tag:github.com,2008:Repository/7/{name}"

    def select(self, query: dict[str, str]) -> Sequence[str] | Refused:
        if query["after"] not in self.names:
            return self.lost()
        place = self.names.index(query["after"]) + 1
        if self.repeats_last and place == len(self.names):
            return self.names[-5:]
        return self.names[place : place + 10]

    def delete(self, *names: str) -> None:
        self.names = [name for name in self.names if name not in names]

    def collect(self, known: Collection | None = None) -> Outcome:
        return self.play(GitHub().collect(self.job(known)))

    def look(self, known: Collection) -> Outcome:
        self.asked.clear()
        return self.play(GitHub().look(self.job(known)))


# ---- Whose feed it is


@pytest.mark.parametrize("path", ["some/thing/releases.atom", "some/thing/tags.atom"])
def test_releases_and_tags_are_known(path: str) -> None:
    """R26: by the host and by the ids of feed and entries."""
    assert GitHub().fits(Releases().sight(url=f"https://github.com/{path}"))


@pytest.mark.parametrize(
    "changes",
    [
        {"url": "https://git.example.org/some/thing/releases.atom"},
        {"url": "https://github.com.example.org/some/thing/releases.atom"},
        {"url": "https://github.com/some/thing/commits/main.atom"},
        {"url": "https://github.com/some.atom"},
        {"url": "https://github.com/some/thing/releases.atom?after=v9"},
        {"asked_url": "https://github.com/some/thing/releases.atom?after=v9"},
        {"site_id": "tag:git.example.org,2008:https://git.example.org/some/thing/releases"},
        {"site_id": ""},
        {"marks": Marks()},
        {"marks": Marks(last_id="tag:github.com,2008:Grit::Commit/0a1b2c")},
        {"family": Family.RSS},
    ],
)
def test_others_are_left_alone(changes: dict[str, object]) -> None:
    """R26: neither other hosts, nor GitHub's other feeds, nor one that is a page already."""
    assert not GitHub().fits(Releases().sight(**changes))


@pytest.mark.parametrize(
    ("identity", "tag"),
    [
        ("tag:github.com,2008:Repository/7/v1.0", "v1.0"),
        ("tag:github.com,2008:Repository/7/sub/module/v1.0", "sub/module/v1.0"),
        ("tag:github.com,2008:Repository/7/a&amp;b", "a&b"),
        ("tag:github.com,2008:Repository/7/", None),
        ("tag:github.com,2008:Repository/x/v1.0", None),
        ("urn:v1.0", None),
        ("", None),
    ],
)
def test_tags_are_read_from_ids(identity: str, tag: str | None) -> None:
    """The tag is all that stands behind the repository's number."""
    assert GitHub().key_of(identity) == tag


def test_tags_are_quoted() -> None:
    """A tag may hold whatever means something in a URL."""
    publisher = Releases(30)
    publisher.names[9] = "pkg/v1+a&b=c d%"
    publisher.collect()
    assert publisher.targets[0] == "after=pkg%2Fv1%2Ba%26b%3Dc%20d%25"
    assert publisher.given == publisher.identities()


# ---- All pages


@pytest.mark.parametrize("count", [11, 19, 20, 21, 30, 95, 300])
def test_all_releases_come(count: int) -> None:
    """R28: by the last entry, until nothing new comes; one question a page, and two at the end."""
    publisher = Releases(count)
    outcome = publisher.collect()
    assert publisher.given == publisher.identities()
    assert (outcome.is_honoured, outcome.is_whole, outcome.known.collected) == (True, True, count)
    assert len(publisher.asked) <= -(-count // 10) + 1


@pytest.mark.parametrize("count", [1, 5, 10])
def test_few_releases_are_all_there_are(count: int) -> None:
    """R27: an empty page behind the last entry shows that the parameter is read."""
    publisher = Releases(count)
    outcome = publisher.collect()
    assert outcome.is_honoured
    assert (outcome.known.pages, len(publisher.asked)) == (1, 1)


def test_a_feed_without_entries_is_asked_for_nothing() -> None:
    """There is no entry to ask behind."""
    publisher = Releases(0)
    assert not publisher.collect().is_honoured
    assert publisher.asked == []


def test_an_ignored_parameter_is_seen_at_once() -> None:
    """R27: the subscription document once more."""
    publisher = Releases()
    publisher.ignores = True
    assert not publisher.collect().is_honoured
    assert len(publisher.asked) == 1


def test_an_ignored_parameter_is_seen_though_a_release_came() -> None:
    """R27: one new identity does not make a page of the subscription document."""
    publisher = Releases()
    publisher.ignores = True
    publisher.on_ask = lambda number: publisher.names.insert(0, f"new-{number}")
    assert not publisher.collect().is_honoured
    assert len(publisher.asked) == 1


@pytest.mark.parametrize("refusal", [GONE, UNAVAILABLE, Refused("format")])
def test_nothing_is_claimed_where_the_first_page_cannot_be_had(refusal: Refused) -> None:
    """R27: whatever the reason is."""
    publisher = Releases()
    publisher.refusals[1] = refusal
    outcome = publisher.collect()
    assert not outcome.is_honoured
    assert outcome.reason
    assert len(publisher.asked) == 1


def test_a_page_that_cannot_be_had_ends_the_walk() -> None:
    """R31: nobody knows what stands behind it."""
    publisher = Releases()
    publisher.refusals[4] = UNAVAILABLE
    outcome = publisher.collect()
    assert (outcome.is_honoured, outcome.is_whole, outcome.reason) == (True, False, "http-503")
    assert len(publisher.asked) == 4


def test_the_last_page_for_ever_is_the_end() -> None:
    """R28: nothing new comes."""
    publisher = Releases()
    publisher.repeats_last = True
    assert publisher.collect().is_whole
    assert publisher.given == publisher.identities()
    assert len(publisher.asked) <= 12


@pytest.mark.parametrize("deleted", [["v50"], ["v66"], ["v65", "v64"], ["v95"], ["v1"], ["v20", "v70"]])
def test_a_deletion_loses_nothing(deleted: list[str]) -> None:
    """A page begins behind an entry, whatever is deleted before or behind it."""
    publisher = Releases()
    publisher.on_ask = lambda number: publisher.delete(*deleted) if number == 3 else None
    assert publisher.collect().is_whole
    assert publisher.given >= publisher.identities()


@pytest.mark.parametrize("lost", ["empty", "first", "404"])
@pytest.mark.parametrize("question", [2, 3, 6, 9])
def test_the_entry_that_is_asked_behind_may_be_deleted(lost: str, question: int) -> None:
    """Whatever GitHub gives behind a tag that is gone, the walk goes on from the one before it."""
    publisher = Releases()
    answers: dict[str, Callable[[], Sequence[str] | Refused]] = {
        "empty": lambda: (),
        "first": lambda: publisher.names[:10],
        "404": lambda: GONE,
    }
    publisher.lost = answers[lost]
    key = f"v{95 - 10 * question + 1}"
    publisher.on_ask = lambda number: publisher.delete(key) if number == question else None
    outcome = publisher.collect()
    assert outcome.is_whole
    assert publisher.given >= publisher.identities()


def test_releases_that_vanish_all_the_time_are_no_endless_walk() -> None:
    """R31: what stands behind them was not read, and that is told."""
    publisher = Releases()
    publisher.on_ask = lambda number: publisher.names.pop(19) if number > 1 else None
    outcome = publisher.collect()
    assert (outcome.is_honoured, outcome.is_whole) == (True, False)
    assert outcome.reason
    assert len(publisher.asked) < 20


@pytest.mark.parametrize("lost", [(), ("v95", "v94"), GONE])
def test_two_keys_in_a_row_that_are_gone_are_told_of(lost: Sequence[str] | Refused) -> None:
    """R31: neither the last page nor the one before it tells where it goes on."""
    publisher = Releases()
    publisher.lost = lambda: lost
    publisher.on_ask = lambda number: publisher.delete("v56", "v46") if number == 5 else None
    outcome = publisher.collect()
    assert (outcome.is_honoured, outcome.is_whole) == (True, False)


def test_a_release_may_vanish_on_each_page() -> None:
    """Each page that comes gives the walk new patience."""
    publisher = Releases(300)

    def delete(number: int) -> None:
        if number > 1 and not any(ask.is_again for ask in publisher.asked[-2:]):
            publisher.delete(publisher.targets[-1].removeprefix("after="))

    publisher.on_ask = delete
    assert publisher.collect().is_whole
    assert publisher.given >= publisher.identities()
    assert sum(ask.is_again for ask in publisher.asked) > 5


def test_a_new_release_moves_nothing() -> None:
    """What comes on top while the walk goes on is for the next look."""
    publisher = Releases()
    publisher.on_ask = lambda number: publisher.names.insert(0, f"new-{number}")
    publisher.collect()
    assert publisher.given >= publisher.identities(f"v{number}" for number in range(1, 96))


# ---- All pages again


def test_the_same_pages_are_asked_for_after_a_restart() -> None:
    """What came meanwhile stands in front; the questions of before come with their very URLs."""
    publisher = Releases()
    publisher.collect()
    before = publisher.targets
    publisher.names[:0] = ["new-2", "new-1"]
    publisher.asked.clear()
    outcome = publisher.collect(Collection(start_id=publisher.guid("v86")))
    assert publisher.targets[: len(before)] == before
    assert len(publisher.asked) == len(before) + 1
    assert outcome.is_whole
    assert publisher.given == publisher.identities()


def test_what_came_since_the_first_walk_is_asked_for_too() -> None:
    """More than a page of releases came since: they stand between the first pages and the feed."""
    publisher = Releases()
    publisher.names[:0] = [f"new-{number}" for number in range(35, 0, -1)]
    outcome = publisher.collect(Collection(start_id=publisher.guid("v86")))
    assert outcome.is_whole
    assert publisher.given == publisher.identities()


def test_a_first_key_that_is_gone_is_given_up() -> None:
    """Then the pages are those behind the feed of now."""
    publisher = Releases()
    publisher.lost = lambda: GONE
    publisher.delete("v86")
    outcome = publisher.collect(Collection(start_id=publisher.guid("v86")))
    assert outcome.is_whole
    assert publisher.given == publisher.identities()


def test_a_feed_that_shrank_reaches_behind_the_first_key() -> None:
    """The newest releases were deleted: the feed overlaps with the pages, and nothing else is asked for."""
    publisher = Releases()
    publisher.delete(*(f"v{number}" for number in range(90, 96)))
    outcome = publisher.collect(Collection(start_id=publisher.guid("v86")))
    assert outcome.is_whole
    assert publisher.given == publisher.identities()
    assert "after=v80" not in publisher.targets


# ---- News


def test_nothing_is_asked_where_the_feed_reaches_back() -> None:
    """R30: the feed of now has the entry that was the newest at the last look."""
    publisher = Releases()
    known = looked(publisher.collect())
    publisher.names[:0] = [f"new-{number}" for number in range(9, 0, -1)]
    outcome = publisher.look(known)
    assert publisher.asked == []
    assert outcome.is_whole
    assert outcome.known.top != known.top


def test_what_a_feed_does_not_reach_is_asked_for() -> None:
    """R30: page by page, until one has nothing that is not stored."""
    publisher = Releases()
    known = looked(publisher.collect())
    publisher.stored = set(publisher.given)
    publisher.names[:0] = [f"new-{number}" for number in range(25, 0, -1)]
    outcome = publisher.look(known)
    assert publisher.given == publisher.identities()
    assert (outcome.is_whole, len(publisher.asked)) == (True, 3)


def test_a_page_is_asked_for_once_a_day() -> None:
    """R30: an entry that was added under an old date shows."""
    publisher = Releases()
    known = looked(publisher.collect(), seconds_ago=DAY + 1)
    publisher.stored = set(publisher.given)
    publisher.names.insert(14, "late")
    assert publisher.look(known).is_whole
    assert publisher.given == publisher.identities()
    assert len(publisher.asked) == 2


def test_a_look_that_fails_is_made_up_for() -> None:
    """What the feed does not reach stays unknown until a look has had it."""
    publisher = Releases()
    known = looked(publisher.collect())
    publisher.stored = set(publisher.given)
    publisher.names[:0] = [f"new-{number}" for number in range(25, 0, -1)]
    publisher.refusals[1] = UNAVAILABLE
    failed = publisher.look(known)
    assert (failed.is_honoured, failed.is_whole, failed.known.top) == (True, False, known.top)
    publisher.refusals.clear()
    assert publisher.look(failed.known).is_whole
    assert publisher.given == publisher.identities()


def test_a_publisher_that_gives_up_its_pages_is_told_of() -> None:
    """What the feed does not reach cannot be had then."""
    publisher = Releases()
    known = looked(publisher.collect())
    publisher.names[:0] = [f"new-{number}" for number in range(25, 0, -1)]
    publisher.ignores = True
    outcome = publisher.look(known)
    assert (outcome.is_honoured, outcome.is_whole, len(publisher.asked)) == (True, False, 1)
    assert "any more" in outcome.reason


def test_a_publisher_that_gives_up_its_pages_may_still_be_whole() -> None:
    """Where the feed reaches back nothing is missing."""
    publisher = Releases()
    known = looked(publisher.collect(), seconds_ago=DAY + 1)
    publisher.ignores = True
    assert publisher.look(known).is_whole
