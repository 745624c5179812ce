"""Paged feeds with missing pages, and with pages from an older cache (R6)."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tests.answers import Status
from tests.feeds import an_item, atom, ids
from tests.origin import Origin
from tests.running import Proxy

HELD = 10
POSTS = 35


def page(posts: Sequence[int], *, next: str | None = None, last: str | None = None) -> bytes:  # noqa: A002
    held = [an_item(str(post), post) for post in posts]
    return atom(*held, updated=max(posts, default=0), next=next, last=last)


def count(body: bytes) -> int:
    """Count the posts of an answer, without the entry that announces a healed feed."""
    return sum(each.isdigit() for each in ids(body))


def publish(origin: Origin, posts: int = POSTS, *, last: str | None = "/4") -> None:
    newest = range(posts, 0, -1)
    for number, start in enumerate(range(0, posts, HELD), 1):
        behind = f"/{number + 1}" if start + HELD < posts else None
        body = page(newest[start : start + HELD], next=behind, last=last)
        origin.publish("/feed" if number == 1 else f"/{number}", body)


CASES = ("every page is the first", "empty behind the second", "repeats", "links itself", "without next")


@pytest.mark.fault("51b")
@pytest.mark.parametrize("case", CASES)
async def test_a_last_page_that_no_link_leads_to_makes_it_partial(
    proxy: Proxy, origin: Origin, case: str
) -> None:
    """R6; RFC 5005, section 3: until the pages lead to it."""
    publish(origin)
    first, second = range(35, 25, -1), range(25, 15, -1)
    match case:
        case "every page is the first":
            for path in ("/2", "/3", "/4"):
                origin.publish(path, page(first, next="/2", last="/4"))
        case "empty behind the second":
            for path, behind in (("/3", "/4"), ("/4", None)):
                origin.publish(path, page([], next=behind, last="/4"))
        case "repeats":
            for path, behind in (("/3", "/4"), ("/4", "/5"), ("/5", "/6")):
                origin.publish(path, page(second, next=behind, last="/6"))
            origin.publish("/feed", page(first, next="/2", last="/6"))
            origin.publish("/6", page(second, last="/6"))
        case "links itself":
            origin.publish("/2", page(second, next="/2", last="/4"))
        case _:
            origin.publish("/2", page(second, last="/4"))
    url = origin.url("/feed")
    reply = await proxy.whole(url)
    assert reply.state == "partial"
    assert [each["reason"] for each in (await proxy.status(url))["missing"]] == ["last-not-reached"]
    origin.forget_requests()
    await proxy.later(url, 1000)
    assert "/4" not in origin.counts(), "nothing is asked for again before its time"
    publish(origin)
    reply = await proxy.refreshed(url, full=True)
    assert (reply.state, count(reply.body)) == ("paged", POSTS)


@pytest.mark.fault("51b")
@pytest.mark.parametrize("case", ["gone", "another name", "redirect"])
async def test_a_last_page_that_is_none_of_its_own_changes_nothing(
    proxy: Proxy, origin: Origin, case: str
) -> None:
    """R6: Podlove names one page too many; others spell the URL of the last one in another way."""
    publish(origin, last="/5" if case == "gone" else "/four")
    if case == "gone":
        origin.answer("/5", Status(404))
    elif case == "another name":
        origin.publish("/four", page(range(5, 0, -1), last="/four"))
    else:
        origin.redirect("/four", "/4")
    reply = await proxy.whole(origin.url("/feed"))
    assert (reply.state, count(reply.body)) == ("paged", POSTS)
    assert origin.counts()["/5" if case == "gone" else "/four"] == 1


async def test_a_last_page_that_links_lead_to_is_named_once(proxy: Proxy, origin: Origin) -> None:
    """R6: the walk and the look at the named last page both find it missing."""
    origin.publish("/feed", page(range(20, 10, -1), next="/2", last="/3"))
    origin.publish("/2", page(range(10, 0, -1), next="/3", last="/3"))
    origin.answer("/3", Status(404))
    url = origin.url("/feed")
    assert (await proxy.whole(url)).state == "paged"
    assert [each["code"] for each in (await proxy.status(url))["notes"]] == ["PageGone"]


@pytest.mark.fault("51b")
@pytest.mark.parametrize("new", [10, 12, 25])
async def test_an_older_copy_of_a_page_leaves_no_gap(proxy: Proxy, origin: Origin, new: int) -> None:
    """R6, R30: the next refresh fetches the entries between it and the page before it."""
    url = origin.url("/feed")
    publish(origin, last=None)
    await proxy.whole(url)
    stale = {f"/{number}": body for number, body in enumerate(_pages(POSTS), 1) if number > 1}
    publish(origin, POSTS + new, last=None)
    for path, body in stale.items():
        origin.publish(path, body)
    reply = await proxy.refreshed(url)
    assert reply.state == "partial"
    assert [each["reason"] for each in (await proxy.status(url))["missing"]] == ["page-stale"]
    reply = await proxy.refreshed(url)
    assert reply.state == "partial", "it is still the older one"
    publish(origin, POSTS + new, last=None)
    reply = await proxy.later(url, 1000)
    assert (reply.state, count(reply.body)) == ("paged", POSTS + new)


@pytest.mark.fault("51b")
async def test_a_page_that_has_moved_whole_is_no_older_copy(proxy: Proxy, origin: Origin) -> None:
    """R6: a whole page of new entries; and as many that replaced others."""
    url = origin.url("/feed")
    publish(origin, last=None)
    await proxy.whole(url)
    publish(origin, POSTS + HELD, last=None)
    assert (await proxy.refreshed(url)).state == "paged"
    origin.publish("/feed", page(range(POSTS + 40, POSTS + 30, -1), next="/2"))
    assert (await proxy.refreshed(url)).state == "partial"
    await proxy.later(url, 90_000)
    assert (await proxy.later(url, 90_000)).state == "paged", "a day later it is what its publisher has"


def _pages(posts: int) -> list[bytes]:
    newest = range(posts, 0, -1)
    return [
        page(newest[start : start + HELD], next=f"/{number + 1}" if start + HELD < posts else None)
        for number, start in enumerate(range(0, posts, HELD), 1)
    ]
