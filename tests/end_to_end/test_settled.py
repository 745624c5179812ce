"""Archives that leave a feed, and entries remembered beside them (R8).

Each story begins with one chain of Atom documents, /feed > /2 > /1. A publisher that changes the format
(R23), or calls one document the whole feed (R1, R5), has not deleted entries of its archives. A publisher
that takes an archive or an entry out of the chain (R13 to R15) has.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.aged import Aged, copied
from tests.feeds import Item, an_item, atom, own_ids, rss
from tests.origin import Origin
from tests.postgres import on_both
from tests.running import Clock, Proxy, a_config, running

pytestmark = on_both

DAY = 86_400.0
SNAPSHOT = "<fh:stateful>0</fh:stateful>"


def items(names: str) -> list[Item]:
    return [an_item(name, ord(name) - ord("a") + 1) for name in names]


def publish_archived(origin: Origin, names: str, *, newest: str = "dc", updated: int = 20) -> None:
    origin.publish("/feed", atom(*items(names), updated=updated, prev_archive="/2"))
    origin.publish("/2", atom(*items(newest), archive=True, prev_archive="/1"))
    origin.publish("/1", atom(*items("ba"), archive=True))


async def archived(proxy: Proxy, origin: Origin) -> None:
    publish_archived(origin, "fed")
    assert await looked(proxy, origin) == ("complete", "fedcba")


async def looked(proxy: Proxy, origin: Origin, body: bytes | None = None) -> tuple[str, str]:
    if body is not None:
        origin.publish("/feed", body)
    proxy.clock.advance(DAY + 3600)
    reply = await proxy.whole(origin.url("/feed"))
    assert reply.state
    return reply.state, "".join(own_ids(reply.body))


async def test_what_leaves_a_feed_in_another_format_is_remembered(proxy: Proxy, origin: Origin) -> None:
    """R8, R23: archives of the other format prove nothing about the same ids in this one."""
    await archived(proxy, origin)
    assert await looked(proxy, origin, rss(*items("fed"))) == ("remembered", "fed")
    assert await looked(proxy, origin, rss(*items("gfe"))) == ("remembered", "gfed")
    assert await looked(proxy, origin, rss(*items("hgf"))) == ("remembered", "hgfed")


@pytest.mark.parametrize("whole", [{"complete": True}, {"extra": SNAPSHOT}], ids=["R1", "R5"])
async def test_what_leaves_a_feed_that_called_itself_whole_is_remembered(
    proxy: Proxy, origin: Origin, whole: dict[str, bool | str]
) -> None:
    """R1, R5, R8: archives put aside settle nothing."""
    await archived(proxy, origin)
    assert await looked(proxy, origin, atom(*items("fedc"), **whole)) == ("complete", "fedc")  # type: ignore[arg-type]
    assert await looked(proxy, origin, atom(*items("fedc"), updated=21)) == ("remembered", "fedc")
    assert await looked(proxy, origin, atom(*items("gfed"), updated=22)) == ("remembered", "gfedc")
    assert await looked(proxy, origin, atom(*items("hgfe"), updated=23)) == ("remembered", "hgfedc")


async def test_what_slips_to_a_page_that_is_not_asked_for_is_remembered(proxy: Proxy, origin: Origin) -> None:
    """R6, R8, R23: from page two to page three of an RSS feed, after Atom archives held it."""

    def pages(first: str, second: str, third: str) -> bytes:
        origin.publish("/p2", rss(*items(second), next="/p3"))
        origin.publish("/p3", rss(*items(third)))
        return rss(*items(first), next="/p2")

    await archived(proxy, origin)
    assert await looked(proxy, origin, pages("fe", "dc", "ba")) == ("paged", "fedcba")
    for first, second, third in (("gf", "ed", "cba"), ("hg", "fe", "dcba")):
        state, names = await looked(proxy, origin, pages(first, second, third))
        assert (state, sorted(names)) == ("paged", sorted(first + second + third))


async def test_archives_that_were_put_aside_settle_nothing_when_they_have_expired(
    proxy: Proxy, origin: Origin
) -> None:
    """R8, R25: their 90 days are over."""
    await archived(proxy, origin)
    await looked(proxy, origin, rss(*items("fed")))
    proxy.clock.advance(91 * DAY)
    await proxy.swept()
    assert await looked(proxy, origin, rss(*items("gfe"))) == ("remembered", "gfed")


async def test_archives_that_come_back_settle_again(proxy: Proxy, origin: Origin) -> None:
    """R8, R14: entries then removed from them leave the feed."""
    await archived(proxy, origin)
    await looked(proxy, origin, atom(*items("fed"), complete=True))
    publish_archived(origin, "fed", updated=21)
    assert await looked(proxy, origin) == ("complete", "fedcba")
    publish_archived(origin, "gfe", updated=22)  # d is remembered, and stands in an archive, too
    assert await looked(proxy, origin) == ("complete", "gfedcba")
    publish_archived(origin, "gfe", newest="c", updated=22)
    reply = await proxy.refreshed(origin.url("/feed"), full=True)
    assert (reply.state, "".join(own_ids(reply.body))) == ("complete", "gfecba")


async def test_what_came_back_after_it_was_taken_out_is_remembered(proxy: Proxy, origin: Origin) -> None:
    """R8, R13: a subscription document has held it since."""
    await archived(proxy, origin)
    publish_archived(origin, "fe", newest="c", updated=21)
    assert await looked(proxy, origin) == ("complete", "fecba")
    publish_archived(origin, "gfed", newest="c", updated=22)
    assert await looked(proxy, origin) == ("complete", "gfedcba")
    publish_archived(origin, "hgf", newest="c", updated=23)
    state, names = await looked(proxy, origin)
    assert (state, sorted(names)) == ("complete", sorted("hgfedcba"))


async def test_what_its_publisher_took_out_stays_away_in_whatever_the_feed_becomes(
    proxy: Proxy, origin: Origin
) -> None:
    """R1, R8, R13: even if the archives have left for another reason."""
    await archived(proxy, origin)
    publish_archived(origin, "fe", newest="c", updated=21)
    assert await looked(proxy, origin) == ("complete", "fecba")
    await looked(proxy, origin, rss(*items("fe")))
    assert await looked(proxy, origin, atom(*items("gf"), updated=23)) == ("remembered", "gfe")


async def test_what_its_publisher_took_out_stays_away_in_a_copy_of_the_store(
    tmp_path: Path, origin: Origin, store_url: str, request: pytest.FixtureRequest
) -> None:
    """R8: a backup, and a store moved to PostgreSQL, know that it was not just put aside."""
    clock, copy = Clock(), tmp_path / "copy"
    async with running(a_config(tmp_path), clock) as proxy:
        await archived(proxy, origin)
        publish_archived(origin, "fe", newest="c", updated=21)
        assert await looked(proxy, origin) == ("complete", "fecba")
    to = request.getfixturevalue("empty_postgres_url") if store_url else ""
    await copied(tmp_path, copy, to)
    async with running(a_config(copy, store={"url": to}), clock) as proxy:
        await looked(proxy, origin, rss(*items("fe")))
        assert await looked(proxy, origin, atom(*items("gf"), updated=23)) == ("remembered", "gfe")


# Stores from before reasons for departed archives were stored


async def test_what_an_earlier_version_lost_comes_back(aged: Aged, origin: Origin) -> None:
    """R8: the reason for its lost archives is unknown."""
    clock = Clock()
    async with running(aged.config, clock) as proxy:
        await archived(proxy, origin)
        await looked(proxy, origin, rss(*items("fed")))
        await looked(proxy, origin, rss(*items("gfe")))
    aged.run(
        "UPDATE entry SET is_live = 0 WHERE is_live = 1"
        " AND document IN (SELECT id FROM document WHERE role = 'memory')"
    )
    aged.age(14)
    async with running(aged.config, clock) as proxy:
        assert await looked(proxy, origin, rss(*items("hgf"))) == ("remembered", "hgfed")


async def test_what_an_earlier_version_took_out_stays_away(aged: Aged, origin: Origin) -> None:
    """R8, R15: while an archive is attached, entries of a departed one count as removed."""
    clock = Clock()

    async def revised() -> tuple[str, str]:
        origin.publish("/2b", atom(*items("c"), archive=True, prev_archive="/1"))
        return await looked(proxy, origin, atom(*items("fe"), updated=21, prev_archive="/2b"))

    async with running(aged.config, clock) as proxy:
        await archived(proxy, origin)
        assert await revised() == ("complete", "fecba")
    aged.age(14)
    async with running(aged.config, clock) as proxy:
        body = atom(*items("gfe"), updated=22, prev_archive="/2b")
        assert await looked(proxy, origin, body) == ("complete", "gfecba")
        await looked(proxy, origin, rss(*items("gfe")))
        assert await looked(proxy, origin, body) == ("complete", "gfecba")
