"""Publishers that change their archives: entries that stay or leave, and requests (R8, R13 to R15, R25).

Every scenario changes one chain, /feed > /may > /april > /march, of two entries each. A day and an hour pass
before each refresh, so that the newest archive is fetched (R13) and no other stored document.
"""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from tests.feeds import Item, an_item, atom, ids
from tests.origin import Origin
from tests.running import Proxy, Reply

DAY_SECONDS = 90_000.0
STATEFUL = "<fh:stateful>1</fh:stateful>"


def archive(entries: str, older: str | None = None) -> bytes:
    """`a` is the oldest entry."""
    return atom(*items(entries), archive=True, prev_archive=older, updated=20)


def items(entries: str) -> list[Item]:
    return [an_item(letter, ord(letter) - ord("a")) for letter in entries]


MARCH, APRIL, MAY = archive("ba"), archive("dc", "/march"), archive("fe", "/april")
EVERYTHING = "hgfedcba"


@dataclass(frozen=True)
class Scenario:
    newest: str | None = "/may"
    """New target of the subscription document's link."""
    documents: tuple[tuple[str, bytes | None], ...] = ()
    """Other changed documents; None: gone."""
    entries: str = EVERYTHING
    """In output order, after a refresh."""
    asked: tuple[str, ...] = ()
    """Requests beside the subscription document."""
    state: str = "complete"
    full: str | None = None
    """After `/refresh?full=1`, if different."""
    stateful: str | None = None
    """Under fh:stateful 1, if different."""


SCENARIOS = {
    "nothing": Scenario(asked=("/may",)),
    "renamed throughout": Scenario(
        "/c",
        (("/c", archive("fe", "/b")), ("/b", archive("dc", "/a")), ("/a", MARCH)),
        asked=("/c", "/b", "/a"),
    ),
    "renamed throughout, an entry deleted": Scenario(
        "/c",
        (("/c", archive("fe", "/b")), ("/b", archive("c", "/a")), ("/a", MARCH)),
        "hgfecbad",
        ("/c", "/b", "/a"),
        full="hgfecba",
    ),
    "reordered": Scenario(
        "/april",
        (("/april", archive("dc", "/may")), ("/may", archive("fe", "/march"))),
        "hgdcba",
        full="hgdcfeba",
        stateful="hgfedcba",
    ),
    "reordered behind the newest": Scenario(
        "/may",
        (("/may", archive("fe", "/march")), ("/march", archive("ba", "/april")), ("/april", archive("dc"))),
        "hgfeba",
        ("/may",),
        full="hgfebadc",
        stateful="hgfedcba",
    ),
    "an entry moved to the newest archive": Scenario(
        documents=(("/may", archive("fed", "/april")), ("/april", archive("c", "/march"))), asked=("/may",)
    ),
    "an entry moved to an older archive": Scenario(
        "/may-b",
        (("/may-b", archive("f", "/april-b")), ("/april-b", archive("edc", "/march"))),
        asked=("/may-b", "/april-b"),
    ),
    "an archive dropped from the middle": Scenario(
        documents=(("/may", archive("fe", "/march")), ("/april", None)),
        entries="hgfeba",
        asked=("/may",),
        stateful="hgfedcba",
    ),
    "an archive replaced in the middle": Scenario(
        documents=(("/may", archive("fe", "/april-b")), ("/april-b", archive("d", "/march"))),
        entries="hgfedba",
        asked=("/may", "/april-b"),
        stateful="hgfedcba",
    ),
    "an archive revised under a new URL": Scenario(
        "/may-b",
        (("/may-b", archive("f", "/april")),),
        "hgfdcba",
        ("/may-b",),
        stateful="hgfedcba",
    ),
    "the chain rewritten up to an old archive": Scenario(
        "/may-b",
        (("/may-b", archive("e", "/april-b")), ("/april-b", archive("d", "/march"))),
        "hgedba",
        ("/may-b", "/april-b"),
        stateful="hgedfcba",
    ),
    "an archive emptied under a new URL": Scenario(
        "/may-b", (("/may-b", archive("", "/april")),), "hgdcba", ("/may-b",), stateful="hgfedcba"
    ),
    "an empty archive in front": Scenario(
        "/june", (("/june", archive("", "/may")),), asked=("/june", "/may")
    ),
    "a link straight to the oldest archive": Scenario("/march", (), "hgba", stateful="hgfedcba"),
    "a link that is lost": Scenario(None, state="remembered"),
    "a trimmed tail": Scenario(
        documents=(("/may", archive("fe")), ("/april", None), ("/march", None)), asked=("/may",), full="hgfe"
    ),
    "relinked where nobody looks": Scenario(
        documents=(("/april", archive("dc")), ("/march", None)), asked=("/may",), full="hgfedc"
    ),
    "a tail that is gone though it is linked": Scenario(
        documents=(("/april", None), ("/march", None)), asked=("/may",)
    ),
    "an aborted walk": Scenario("/gone", state="partial", asked=("/gone",)),
    "a partial walk": Scenario(
        "/june",
        (("/june", archive("f", "/gone")),),
        asked=("/june", "/gone"),
        state="partial",
    ),
    "a partial walk past the newest archive": Scenario(
        documents=(("/may", archive("f", "/gone")),),
        entries="hgfedcba",  # the missing document may have it (R35)
        asked=("/may", "/gone"),
        state="partial",
    ),
}


def publish(origin: Origin, scenario: Scenario | None = None, *, flag: str = "") -> None:
    documents: dict[str, bytes | None] = {"/may": MAY, "/april": APRIL, "/march": MARCH}
    if scenario is not None:
        documents |= dict(scenario.documents)
    for path, body in documents.items():
        if body is None:
            origin.remove(path)
        else:
            origin.publish(path, body)
    newest = "/may" if scenario is None else scenario.newest
    origin.publish("/feed", atom(*items("hg"), updated=30, prev_archive=newest, extra=flag))


async def drifted(proxy: Proxy, origin: Origin, scenario: Scenario, *, flag: str = "") -> Reply:
    publish(origin, flag=flag)
    reply = await proxy.whole(origin.url("/feed"))
    assert (reply.state, entries(reply)) == ("complete", EVERYTHING)
    origin.forget_requests()
    publish(origin, scenario, flag=flag + "<!-- changed -->")
    proxy.clock.advance(DAY_SECONDS)
    return await proxy.refreshed(origin.url("/feed"))


def entries(reply: Reply) -> str:
    return "".join(name for name in ids(reply.body) if len(name) == 1)


@pytest.mark.parametrize("scenario", SCENARIOS.values(), ids=SCENARIOS.keys())
async def test_what_a_refresh_takes_away_and_asks_for(
    proxy: Proxy, origin: Origin, scenario: Scenario
) -> None:
    """R8, R13, R15, R25: entries of replaced archives leave; unchanged documents cost nothing."""
    reply = await drifted(proxy, origin, scenario)
    assert (reply.state, entries(reply)) == (scenario.state, scenario.entries)
    assert origin.counts() == dict.fromkeys(["/feed", *scenario.asked], 1)


@pytest.mark.parametrize("scenario", SCENARIOS.values(), ids=SCENARIOS.keys())
async def test_a_full_refresh_takes_the_publishers_chain_for_the_truth(
    proxy: Proxy, origin: Origin, scenario: Scenario
) -> None:
    """R14: but only a whole one; documents lost at the publisher come from the store (docs/faults.md row
    53)."""
    await drifted(proxy, origin, scenario)
    reply = await proxy.refreshed(origin.url("/feed"), full=True)
    assert (reply.state, entries(reply)) == (scenario.state, scenario.full or scenario.entries)


@pytest.mark.parametrize("scenario", SCENARIOS.values(), ids=SCENARIOS.keys())
async def test_under_stateful_nothing_leaves(proxy: Proxy, origin: Origin, scenario: Scenario) -> None:
    """R15; -00, 3: earlier entries stay part of the feed."""
    expected = scenario.stateful or scenario.entries
    reply = await drifted(proxy, origin, scenario, flag=STATEFUL)
    assert (reply.state, entries(reply)) == (scenario.state, expected)
    reply = await proxy.refreshed(origin.url("/feed"), full=True)
    assert (reply.state, sorted(entries(reply))) == (scenario.state, sorted(expected))


@pytest.mark.parametrize("scenario", SCENARIOS.values(), ids=SCENARIOS.keys())
async def test_what_comes_back_is_attached_without_a_fetch(
    proxy: Proxy, origin: Origin, scenario: Scenario
) -> None:
    """R15: the store keeps detached documents."""
    await drifted(proxy, origin, scenario)
    origin.forget_requests()
    publish(origin)
    proxy.clock.advance(DAY_SECONDS)
    reply = await proxy.refreshed(origin.url("/feed"))
    assert (reply.state, entries(reply)) == ("complete", EVERYTHING)
    assert origin.counts().keys() <= {"/feed", "/may"}
