"""Part A of the faults: every spelling of tests/data/refused_targets.txt, through every door.

No test here lets a packet out: names resolve from a table, and a socket to any address but the publisher's is
stopped and noted. Canaries listen at the targets.
"""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote
from xml.sax.saxutils import quoteattr

import pytest
from structlog.testing import capture_logs

from tests.feeds import an_item, atom
from tests.fetchers import Names
from tests.guarding import asked, asked_for, named_host, watched
from tests.origin import Origin
from tests.running import Proxy, Reply

CORPUS = (Path(__file__).parent.parent / "data" / "refused_targets.txt").read_text("utf-8")
CHARACTERS = {"{TAB}": "\t", "{SPACE}": " ", "{SHY}": "\u00ad", "{ZWSP}": "\u200b"}
PREFIX = re.compile("https?://[^/]", re.IGNORECASE)
AT_ONCE = 12

ADDRESSES = {
    "localhost.localdomain": ("127.0.0.1",),
    "ip6-localhost": ("::1",),
    "127.0.0.1.nip.example": ("127.0.0.1",),
    "www.127-0-0-1.nip.example": ("127.0.0.1", "::1"),
    "host.docker.internal": ("127.0.0.1", "172.17.0.1"),
    "_under_score.example": ("127.0.0.1",),
    "router": ("192.168.0.1",),
    "inside.example": ("10.0.0.1",),
    "both.example": ("10.0.0.1", "fd00::1"),
    "kubernetes.default.svc": ("10.96.0.1",),
    "metadata.google.internal": ("169.254.169.254",),
    "instance-data": ("169.254.169.254", "fd00:ec2::254"),
    "mapped.example": ("::ffff:127.0.0.1",),
    "nat64.example": ("64:ff9b::a00:1",),
    "alias-of-denied.example": ("93.184.215.66",),
}
FURTHER_ADDRESSES = ("fe80::1%2", "fe80::1%lo", "2606:4700::1%1", "::1%1")
"""With zones, impossible in a URL."""
DENIED = ("denied.example", "*.denied.example", "2606:4700:0::dead:0", "93.184.215.66")

_ASKED = {
    "forbidden": "403 destination-forbidden",
    "ambiguous": "400 ambiguous-host",
    "userinfo": "400 userinfo-not-allowed",
    "invalid": "400 invalid-url",
    "unusable": "400 invalid-url",
    "relative": "400 invalid-url",
    "mended": "403 destination-forbidden",
    "inner-blank": "400 invalid-url",
    "feed-scheme": "403 destination-forbidden",
    "bare": "403 destination-forbidden",
    "bare-ambiguous": "400 ambiguous-host",
}
OUTCOMES = {
    "feed": _ASKED,
    "path": _ASKED,
    "redirect": {
        "forbidden": "403 destination-forbidden",
        "ambiguous": "502 bad-redirect",
        "userinfo": "502 bad-redirect",
        "invalid": "502 bad-redirect",
        "unusable": "502 bad-redirect",
        "relative": "404 publisher-status",
        "feed-scheme": "502 bad-redirect",
        "bare": "404 publisher-status",
        "bare-ambiguous": "404 publisher-status",
        "mended": "403 destination-forbidden",
        "inner-blank": "403 destination-forbidden",
    },
    "link": {
        "forbidden": "200 partial destination-forbidden",
        "ambiguous": "200 partial bad-link",
        "userinfo": "200 partial bad-link",
        "invalid": "200 partial bad-link",
        "unusable": "200 partial bad-link",
        "relative": "200 partial publisher-status",
        "feed-scheme": "200 partial bad-link",
        "bare": "200 partial publisher-status",
        "bare-ambiguous": "200 partial publisher-status",
        "mended": "200 partial destination-forbidden",
        "inner-blank": "200 partial destination-forbidden",
    },
    "base": {
        "forbidden": "200 partial destination-forbidden",
        "ambiguous": "200 partial bad-link",
        "userinfo": "200 partial bad-link",
        "invalid": "200 partial bad-link",
        "unusable": "200 complete",
        "relative": "200 partial publisher-status",
        "feed-scheme": "200 partial bad-link",
        "bare": "200 partial publisher-status",
        "bare-ambiguous": "200 partial publisher-status",
        "mended": "200 partial destination-forbidden",
        "inner-blank": "200 partial destination-forbidden",
    },
}


@dataclass(frozen=True)
class Spelling:
    kind: str
    url: str
    rows: frozenset[str]


def spellings(port: int) -> Iterator[Spelling]:
    rows: frozenset[str] = frozenset()
    for line in CORPUS.splitlines():
        if line.startswith("["):
            rows = frozenset(line[1 : line.index("]")].split(", "))
        elif line and not line.startswith("#"):
            kind, _, url = line.partition(" ")
            for name, character in (CHARACTERS | {"{PORT}": str(port)}).items():
                url = url.replace(name, character)
            yield Spelling(kind, url, rows)


@asynccontextmanager
async def canaries() -> AsyncIterator[tuple[Origin, Origin]]:
    """Two listeners on one port that must get no connection."""
    async with Origin("127.0.0.1") as canary, Origin("::1", port=canary.port) as other:
        yield canary, other
        assert (canary.total_connections, other.total_connections) == (0, 0)


Door = Callable[[Proxy, Origin, str, int], Awaitable[str]]


def outcome(reply: Reply) -> str:
    problem = json.loads(reply.body)
    assert problem["type"] == f"urn:wholefeed:{problem['type'].rpartition(':')[2]}"
    assert b"hidden" not in reply.body
    return f"{reply.status} {problem['type'].rpartition(':')[2]}"


async def through_the_feed(proxy: Proxy, origin: Origin, url: str, number: int) -> str:
    return outcome(await asked_for(proxy, url))


async def through_the_path(proxy: Proxy, origin: Origin, url: str, number: int) -> str:
    return outcome(await asked(proxy, "/" + quote(url, safe="")))


async def through_a_redirect(proxy: Proxy, origin: Origin, url: str, number: int) -> str:
    origin.redirect(f"/{number}", url)
    return outcome(await proxy.get(origin.url(f"/{number}")))


async def through_a_link(proxy: Proxy, origin: Origin, url: str, number: int) -> str:
    return await walked(proxy, origin, f'<link rel="prev-archive" href={quoteattr(url)}/>', number)


async def through_a_base(proxy: Proxy, origin: Origin, url: str, number: int) -> str:
    origin.publish(f"/{number}/older", atom(an_item(f"older-{number}"), archive=True))
    return await walked(
        proxy, origin, f'<link xml:base={quoteattr(url)} rel="prev-archive" href="older"/>', number
    )


async def walked(proxy: Proxy, origin: Origin, link: str, number: int) -> str:
    """Check that a feed with such a link in its head is served and stored as far as possible."""
    origin.publish(f"/{number}/feed", atom(an_item(f"newer-{number}"), extra=link))
    reply = await proxy.whole(origin.url(f"/{number}/feed"))
    assert f"urn:newer-{number}<".encode() in reply.body
    assert (b"fh:complete" in reply.body) == (reply.state == "complete")
    missing = (await proxy.status(origin.url(f"/{number}/feed")))["missing"]
    assert "hidden" not in str(missing)
    return " ".join([str(reply.status), reply.state, *(each["reason"] for each in missing)])


DOORS: dict[str, Door] = {
    "feed": through_the_feed,
    "path": through_the_path,
    "redirect": through_a_redirect,
    "link": through_a_link,
    "base": through_a_base,
}


async def outcomes(door: Door, proxy: Proxy, origin: Origin, urls: list[str]) -> dict[str, str]:
    places = asyncio.Semaphore(AT_ONCE)

    async def one(number: int, url: str) -> str:
        async with places:
            return await door(proxy, origin, url, number)

    return dict(zip(urls, await asyncio.gather(*(one(n, url) for n, url in enumerate(urls))), strict=True))


def hosts(found: dict[str, str]) -> set[str]:
    return {named_host(url) for url, result in found.items() if result.endswith("destination-forbidden")}


@pytest.mark.fault("1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "16", "17", "18", "20")
@pytest.mark.parametrize("door", DOORS)
@pytest.mark.sample("feed", "path", "redirect", "base")
async def test_no_spelling_of_a_refused_target_gets_through(door: str, tmp_path: Path) -> None:
    """docs/faults.md part A: status and slug of each; only the publisher gets connections or look-ups."""
    names = Names(ADDRESSES)
    async with (
        Origin("127.0.0.2") as origin,
        canaries() as (canary, _),
        watched(tmp_path, origin, names=names, fetch={"deny_hosts": DENIED, "concurrency_per_host": 32}) as (
            proxy,
            outlet,
        ),
    ):
        entries = [each for each in spellings(canary.port) if door != "path" or PREFIX.match(each.url)]
        with capture_logs() as logs:
            found = await outcomes(DOORS[door], proxy, origin, [entry.url for entry in entries])
        kept = len(json.loads((await proxy.ask("GET", "/feeds")).body))
    if door == "redirect":  # row 35: an unresolvable target leads nowhere
        found = {url: result.replace("redirect-loop", "bad-redirect") for url, result in found.items()}
    assert found == {entry.url: OUTCOMES[door][entry.kind] for entry in entries}
    assert outlet.reached <= {origin.host}
    assert set(names.asked) <= set(ADDRESSES)
    assert kept == (len(entries) if door in ("link", "base") else 0)
    assert {line["host"] for line in logs if line["event"] == "target.refused"} == hosts(found)
    assert [line for line in logs if "hidden" in str(line)] == []


def addresses(entries: Iterable[Spelling]) -> set[str]:
    found = {*FURTHER_ADDRESSES}
    for entry in entries:
        with contextlib.suppress(ValueError):
            found.add(str(ipaddress.ip_address(named_host(entry.url))))
    return found - {"127.0.0.2", "2606:4700::1111"}  # these are refused for their ports


@pytest.mark.fault("1", "2", "3", "4", "5", "6", "7", "10", "12")
async def test_no_name_leads_to_a_refused_address(tmp_path: Path) -> None:
    """docs/faults.md part A: the same when a name resolves to the address, alone or together with others."""
    async with Origin("127.0.0.2") as origin, canaries() as (canary, _):
        refused = sorted(addresses(spellings(canary.port)))
        names = Names({f"n{n}.example": (each, refused[n - 1]) for n, each in enumerate(refused)})
        async with watched(tmp_path, origin, names=names, fetch={"deny_hosts": DENIED}) as (proxy, outlet):
            urls = [f"http://{name}:{canary.port}/" for name in names.table]
            found = await outcomes(through_the_feed, proxy, origin, urls)
    assert len(refused) > 80
    assert found == dict.fromkeys(urls, "403 destination-forbidden")
    assert outlet.tried == []


async def test_a_refusal_says_nothing_of_its_reason(tmp_path: Path) -> None:
    """docs/faults.md part A: the same answer for a denied address, name and host; and for a refused port of
    these or an allowed host."""
    hosts = (
        "10.0.0.1",
        "localhost",
        "inside.example",
        "denied.example",
        "[::ffff:7f00:1]",
        "[64:ff9b::a00:1]",
    )
    async with watched(tmp_path, names=Names(ADDRESSES), fetch={"deny_hosts": DENIED}) as (proxy, _):
        of_hosts = [await asked_for(proxy, f"http://{host}/") for host in hosts]
        of_ports = [await asked_for(proxy, f"http://{host}:22/") for host in (*hosts, "example.org")]
    assert len(answers_in(of_hosts)) == len(answers_in(of_ports)) == 1


def answers_in(replies: list[Reply]) -> set[tuple[int, str, str]]:
    """Return the answers without the requested URL and the time."""
    answers = set()
    for reply in replies:
        problem = json.loads(reply.body)
        del problem["request_id"]
        problem["detail"] = problem["detail"].partition(": http")[0]
        own = {"Content-Length", "Date", "X-Request-ID"}
        fields = {name: value for name, value in reply.headers.items() if name not in own}
        answers.add((reply.status, str(problem), str(fields)))
    return answers


def test_the_corpus_has_what_the_rows_ask_for() -> None:
    """docs/faults.md part A: the rows shown by spelling."""
    entries = list(spellings(8080))
    assert len({entry.url for entry in entries}) == len(entries) >= 300
    assert {entry.kind for entry in entries} == set(OUTCOMES["feed"])
    kinds = {
        row: {entry.kind for entry in entries if row in entry.rows} for entry in entries for row in entry.rows
    }
    forbidden = {str(row): {"forbidden"} for row in (1, 2, 3, 4, 5, 6, 7, 18)}
    assert kinds == forbidden | {
        "8": {"ambiguous"},
        "9": {"forbidden", "invalid", "unusable", "ambiguous"},
        "10": {"invalid", "unusable"},
        "16": {"invalid", "feed-scheme"},
        "17": {"userinfo"},
        "20": {
            *("invalid", "unusable", "relative", "mended", "inner-blank"),
            *("bare", "bare-ambiguous"),
        },
    }
