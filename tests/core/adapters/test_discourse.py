"""`wholefeed.core.adapters.others` (R26 to R30); what keyset publishers share is in test_github.py."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import pytest

from tests.core.adapters.publisher import NOW, Entries
from wholefeed.core.adapters.base import Collection, Marks, Outcome, Refused
from wholefeed.core.adapters.others import Discourse
from wholefeed.core.model import Family


class Posts(Entries):
    """A forum's posts, by their numbers; `spans` makes it one of before May 2024."""

    url = "https://forum.example.org/posts.rss"
    site_id = "https://forum.example.org"

    def __init__(self, numbers: Iterable[int] = range(420), *, spans: bool = False) -> None:
        super().__init__(sorted((number + 1 for number in numbers), reverse=True), page=50)
        self.spans = spans

    @property
    def marks(self) -> Marks:
        return Marks(route="posts/latest")

    def guid(self, name: str) -> str:
        return f"forum.example.org-post-{name}"

    def select(self, query: dict[str, str]) -> Sequence[str] | Refused:
        before = int(query["before"])
        lowest = before - 50 if self.spans else 0
        return [name for name in self.names if lowest <= int(name) < before][:50]

    def collect(self, known: Collection | None = None) -> Outcome:
        return self.play(Discourse().collect(self.job(known)))


def test_posts_are_known() -> None:
    """R26: by the route that the answer names and by the last guid."""
    assert Discourse().fits(Posts().sight())


@pytest.mark.parametrize(
    "changes",
    [
        {"marks": Marks(last_id="forum.example.org-post-7")},
        {"marks": Marks(route="list/latest_feed", last_id="forum.example.org-topic-7")},
        {"marks": Marks(route="posts/user_posts_feed", last_id="forum.example.org-post-7")},
        {"marks": Marks(route="posts/latest", last_id="https://forum.example.org/t/7")},
        {"marks": Marks(route="posts/latest")},
        {"url": "https://forum.example.org/posts.rss?before=9"},
        {"asked_url": "https://forum.example.org/posts.rss?before=9"},
        {"family": Family.ATOM},
    ],
)
def test_others_are_left_alone(changes: dict[str, object]) -> None:
    """R26: the path says nothing, and feeds that read no parameter are not asked for more."""
    assert not Discourse().fits(Posts().sight(**changes))


@pytest.mark.parametrize(
    ("guid", "number"),
    [
        ("forum.example.org-post-7", "7"),
        ("post-7", "7"),
        ("post-0", None),
        ("post-07", None),
        ("compost-7", None),
        ("post-7-x", None),
        ("post-99999999999999999999", None),
        ("", None),
    ],
)
def test_numbers_are_read_from_guids(guid: str, number: str | None) -> None:
    """Of this version and of older ones."""
    assert Discourse().key_of(guid) == number


@pytest.mark.parametrize("count", [1, 49, 50, 51, 100, 101, 420])
@pytest.mark.parametrize("spans", [False, True])
def test_all_posts_come(count: int, spans: bool) -> None:
    """R28: by the last post's number, a question a page and one for the end."""
    publisher = Posts(range(count), spans=spans)
    outcome = publisher.collect()
    assert (outcome.is_honoured, outcome.is_whole) == (True, True)
    assert publisher.given == publisher.identities()
    assert len(publisher.asked) <= count // 50 + 2


def test_a_span_of_private_messages_is_not_the_end() -> None:
    """Before May 2024 the fifty numbers below a post's were all that was looked at."""
    publisher = Posts([*range(100), *range(230, 420)], spans=True)
    assert publisher.collect().is_whole
    assert publisher.given == publisher.identities()


def test_a_forum_whose_first_posts_are_private_ends() -> None:
    """A few questions more, since nothing tells which version it is."""
    publisher = Posts(range(5000, 5060))
    assert publisher.collect().is_whole
    assert publisher.given == publisher.identities()
    assert len(publisher.asked) <= 1 + 1 + 3


@pytest.mark.parametrize("deleted", [["371"], ["321"], ["370"], ["100", "101"], ["1"]])
def test_a_deletion_loses_nothing(deleted: list[str]) -> None:
    """A number serves when its post is gone."""
    publisher = Posts()

    def delete(number: int) -> None:
        if number == 2:
            publisher.names = [name for name in publisher.names if name not in deleted]

    publisher.on_ask = delete
    assert publisher.collect().is_whole
    assert publisher.given >= publisher.identities()
    assert not any(ask.is_again for ask in publisher.asked)


def test_a_page_may_be_short() -> None:
    """Posts of users who are gone are left out of it."""

    class Short(Posts):
        def select(self, query: dict[str, str]) -> Sequence[str] | Refused:
            found = super().select(query)
            assert not isinstance(found, Refused)
            return found[::2] or found

    publisher = Short()
    assert publisher.collect().is_whole
    assert publisher.identity("2") in publisher.given or publisher.identity("1") in publisher.given


def test_news_beyond_a_page_come() -> None:
    """R30: more than fifty posts since the last look."""
    publisher = Posts()
    outcome = publisher.collect()
    publisher.stored = set(publisher.given)
    publisher.asked.clear()
    publisher.names[:0] = [str(number) for number in range(600, 420, -1)]
    known = replace(outcome.known, looked_at=NOW - 60)
    assert publisher.play(Discourse().look(publisher.job(known))).is_whole
    assert publisher.given == publisher.identities()
    assert len(publisher.asked) == 4
