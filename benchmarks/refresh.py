"""Cost of a small feed from publisher to reader: `python -m benchmarks.refresh`.

Feeds of one document (12 KB, 10 entries) are asked for one after the other: first (fetched, stored, served),
when stale with a 304, then twice with one new entry. Only `listed` looks for histories in pages (H1): it asks
for new feeds and the proxy reads their publisher's site. The CPU time of the server and its children,
including work after the answer, is divided by the number of feeds. Beside it stand an open `requests.Session`
and feedparser for the same documents in this process: a GET and a parse, nothing stored.

Every answer's entries are counted. The publisher confirms one request for each feed.
"""

from __future__ import annotations

import argparse
import gzip
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

import feedparser
import requests

from benchmarks.support.client import Client, get, open_client
from benchmarks.support.feeds import Chain
from benchmarks.support.figures import Figure, show
from benchmarks.support.postgres import programs, running_postgres
from benchmarks.support.publisher import Publisher, running_publisher
from benchmarks.support.report import begin, expect
from benchmarks.support.server import Server, running_server
from benchmarks.support.tree import HERE, Tree, add_tree, chosen_tree
from benchmarks.support.trips import counting_trips

CHAIN: Final = Chain(archives=0, entries=10, entry_bytes=1200)
_STALE_SECONDS: Final = 1.3
"""Age at which every feed is stale."""
_REST_SECONDS: Final = 0.4
"""Time for the server's work after its answer."""
_WARM_UP: Final = 10
_ENTRY: Final = b"<entry"
_SHORT_LIVED: Final[dict[str, Any]] = {"freshness_minimum_seconds": 1, "freshness_default_seconds": 1}
_LISTED: Final = "listed"
_LISTED_REST_SECONDS: Final = 2.0
"""Time for fetches of a publisher's pages, which follow the answer."""
_CASES: Final = ("cold", "304", "changed", "again")
_ADDED: Final = {"changed": 1, "again": 2}
Amount = Callable[[], float]
"""Reads the amount before and after: a time or a count."""


def measure(tree: Tree = HERE, *, feeds: int = 40, runs: int = 4) -> list[Figure]:
    proxied: dict[str, list[float]] = {case: [] for case in _CASES}
    plain: list[float] = []
    with (
        tempfile.TemporaryDirectory(prefix="wholefeed-refresh-") as folder,
        running_publisher(CHAIN, is_conditional=True) as publisher,
        running_server(Path(folder), tree=tree, **_settings(tree, lists=False)) as server,
        open_client(server.port) as client,
        requests.Session() as session,
    ):
        session.trust_env = False
        _ask_all(client, server, _urls(publisher, 0, _WARM_UP))
        _script(session, _urls(publisher, 0, _WARM_UP))
        for run in range(runs):
            urls = _urls(publisher, run + 1, feeds)
            _one_run(client, server, publisher, urls, proxied, server.cpu_seconds)
            before = time.process_time()
            _script(session, urls)
            plain.append((time.process_time() - before) / len(urls))
    proxied[_LISTED] = _with_lists(tree, feeds=feeds, runs=runs)
    beside = {"requests + feedparser": [1000 * each for each in plain]}
    return [
        Figure(f"refresh.{case}.cpu", "ms", [1000 * each for each in values], beside)
        for case, values in proxied.items()
    ]


def _settings(tree: Tree, *, lists: bool) -> dict[str, Any]:
    """Return the settings of a checkout's server; early versions have none for lists."""
    has_lists = (tree.root / "proxy" / "wholefeed" / "core" / "listing").is_dir()
    return _SHORT_LIVED | ({"history_list": "auto" if lists else "off"} if has_lists else {})


def _with_lists(tree: Tree, *, feeds: int, runs: int) -> list[float]:
    """Measure a new feed, including the search of its publisher's pages."""
    taken = []
    with (
        tempfile.TemporaryDirectory(prefix="wholefeed-refresh-") as folder,
        running_publisher(CHAIN, is_conditional=True) as publisher,
        running_server(Path(folder), tree=tree, **_settings(tree, lists=True)) as server,
        open_client(server.port) as client,
    ):
        _ask_all(client, server, _urls(publisher, 0, _WARM_UP))
        for run in range(runs):
            before = server.cpu_seconds()
            _ask_all(client, server, _urls(publisher, run + 1, feeds))
            time.sleep(_LISTED_REST_SECONDS)
            taken.append((server.cpu_seconds() - before) / feeds)
    return taken


def hops(tree: Tree = HERE, *, feeds: int = 5) -> list[Figure]:
    counted: dict[str, list[float]] = {case: [] for case in _CASES}
    with (
        tempfile.TemporaryDirectory(prefix="wholefeed-refresh-") as folder,
        running_publisher(CHAIN, is_conditional=True) as publisher,
        running_server(Path(folder), tree=tree, counts_hops=True, **_settings(tree, lists=False)) as server,
        open_client(server.port) as client,
    ):
        _ask_all(client, server, _urls(publisher, 0, _WARM_UP))
        _one_run(client, server, publisher, _urls(publisher, 1, feeds), counted, server.hops)
    return [Figure(f"hops.{case}", "hops", counted[case]) for case in _CASES]


def trips(tree: Tree = HERE, *, feeds: int = 10) -> list[Figure]:
    """Count how often each kind waits for PostgreSQL; none without PostgreSQL."""
    if not programs():
        return []
    counted: dict[str, list[float]] = {case: [] for case in _CASES}
    with (
        tempfile.TemporaryDirectory(prefix="wholefeed-refresh-") as folder,
        running_postgres() as postgres,
        counting_trips(postgres.url()) as relay,
        running_publisher(CHAIN, is_conditional=True) as publisher,
        running_server(
            Path(folder), tree=tree, store_url=relay.url, **_settings(tree, lists=False)
        ) as server,
        open_client(server.port) as client,
    ):
        _ask_all(client, server, _urls(publisher, 0, _WARM_UP))
        _one_run(client, server, publisher, _urls(publisher, 1, feeds), counted, lambda: relay.count)
    return [Figure(f"postgres.{case}", "trips", counted[case]) for case in _CASES]


def _one_run(
    client: Client,
    server: Server,
    publisher: Publisher,
    urls: Sequence[str],
    into: dict[str, list[float]],
    amount: Amount,
) -> None:
    """Measure all kinds with new feeds; add each feed's share of the amount."""
    for case in _CASES:
        if case != "cold":
            time.sleep(_STALE_SECONDS)
        if case in _ADDED:
            publisher.grow()
        publisher.counts()
        before = amount()
        _ask_all(client, server, urls, added=_ADDED.get(case, 0))
        time.sleep(_REST_SECONDS)
        into[case].append((amount() - before) / len(urls))
        expect(f"requests of the publisher, {case}", publisher.counts().requests, len(urls))


def _urls(publisher: Publisher, run: int, count: int) -> list[str]:
    """Return feeds of one run alone; none states its own freshness."""
    return [publisher.url(f"/f{run}{number:03}1/feed") for number in range(count)]


def _ask_all(client: Client, server: Server, urls: Sequence[str], *, added: int = 0) -> None:
    for url in urls:
        reply = client.ask(get(server.feed_target(url), server.port, Accept_Encoding="gzip"))
        expect("status", reply.status, 200)
        entries = gzip.decompress(reply.body).count(_ENTRY)
        expect("entries", entries, CHAIN.total_entries + added)


def _script(session: requests.Session, urls: Sequence[str]) -> None:
    for url in urls:
        parsed = feedparser.parse(session.get(url, timeout=30).content)
        expect("entries of feedparser", len(parsed.entries), CHAIN.entries)


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure the CPU time of a refresh.")
    parser.add_argument("--feeds", type=int, default=40, help="of each run (default 40)")
    parser.add_argument("--runs", type=int, default=5, help="the least and the median are shown (default 5)")
    parser.add_argument("--hops", action="store_true", help="count calls of SQLite's threads as well")
    parser.add_argument("--trips", action="store_true", help="count trips to PostgreSQL as well")
    add_tree(parser)
    options = parser.parse_args()
    begin()
    print(
        f"{len(CHAIN.subscription('http://127.0.0.1')) / 1000:.1f} KB, {CHAIN.total_entries} entries a feed"
    )
    figures = measure(chosen_tree(options), feeds=options.feeds, runs=options.runs)
    figures += hops(chosen_tree(options)) if options.hops else []
    show([*figures, *(trips(chosen_tree(options)) if options.trips else [])])


if __name__ == "__main__":
    main()
