"""From the document that was asked for to the subscription document (R3)."""

from __future__ import annotations

from collections.abc import Mapping

from tests.core.refresh.world import run
from wholefeed.core.links import Navigation
from wholefeed.core.model import Family, Kind
from wholefeed.core.notes import CurrentUnavailable, NoSubscriptionDocument
from wholefeed.core.refresh.port import Failure
from wholefeed.core.refresh.subscription import MAX_FORWARD_STEPS, Found, Seen, search

O = "http://o.test"  # noqa: E741
GONE = Failure(slug="publisher-status", publisher_status=404)


def seen(path: str, *, family: Family = Family.ATOM, is_archive: bool = True, **links: str) -> Seen[None]:
    """A document; links by relation, targets by path."""
    url = O + path
    targets = {name.replace("_", "-"): O + target for name, target in links.items()}
    navigation = Navigation(url=url, kind=Kind.PLAIN, links=targets, is_archive=is_archive, older_relation="")
    return Seen(url, url, family, navigation, None)


def found(start: Seen[None], others: Mapping[str, Seen[None]]) -> tuple[Found[None], list[str]]:
    """Search; return what was found, and the paths that were asked for."""
    asked: list[str] = []

    async def fetch(url: str) -> Seen[None] | Failure:
        asked.append(url.removeprefix(O))
        return others.get(asked[-1], GONE)

    return run(search(start.url, start, fetch)), asked


def test_a_document_that_is_no_archive_serves_itself() -> None:
    """R3: nothing is asked for."""
    feed = seen("/feed", is_archive=False)
    assert found(feed, {}) == (Found(feed.url, feed), [])


def test_current_is_dereferenced_once_whatever_it_says_itself() -> None:
    """R3; draft-05, 6.1."""
    current = seen("/feed", current="/elsewhere")
    assert found(seen("/1", current="/feed"), {"/feed": current}) == (Found(current.url, current), ["/feed"])


def test_where_current_fails_the_document_that_was_asked_for_serves() -> None:
    """R3: partial."""
    asked = seen("/1", current="/feed")
    note = CurrentUnavailable(f"{O}/feed", reason="publisher-status")
    assert found(asked, {}) == (Found(asked.url, asked, (note,)), ["/feed"])


def test_an_archive_leads_forward_to_the_newest_one() -> None:
    """R3: never complete; a failure, a circle and another format end the way."""
    one, two = seen("/1", next_archive="/2"), seen("/2", next_archive="/3")
    newest = Found(one.url, two, (NoSubscriptionDocument(two.url),))
    assert found(one, {"/2": two}) == (newest, ["/2", "/3"])
    assert found(one, {"/2": two, "/3": seen("/3", family=Family.RSS)}) == (newest, ["/2", "/3"])
    circle = seen("/2", next_archive="/1")
    assert found(one, {"/2": circle})[1] == ["/2"]


def test_an_archive_on_the_way_that_names_the_subscription_document_leads_there() -> None:
    """R3."""
    feed = seen("/feed", is_archive=False)
    others = {"/2": seen("/2", current="/feed"), "/feed": feed}
    assert found(seen("/1", next_archive="/2"), others) == (Found(feed.url, feed), ["/2", "/feed"])


def test_the_way_forward_is_not_endless() -> None:
    """R3, R18: the newest that was reached then serves."""
    others = {f"/{n}": seen(f"/{n}", next_archive=f"/{n + 1}") for n in range(2, 200)}
    result, asked = found(seen("/1", next_archive="/2"), others)
    assert len(asked) == MAX_FORWARD_STEPS
    assert result.document.url == f"{O}/{MAX_FORWARD_STEPS + 1}"
