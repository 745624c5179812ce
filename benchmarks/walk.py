"""The first reconstruction of a feed: `python -m benchmarks.walk`.

A publisher with numbered archive documents (100 and the subscription document; 20 entries of about 1.5 KB
each) responds after 50 ms and keeps connections alive. The time from the request to the last byte of the
whole feed is measured, each run with a fresh store and server process:

* through `python -m wholefeed serve`, asked over HTTP until the answer is not loading any more; * the same
without look-ahead: one document after the other; * curl, with all URLs known and `fetch.concurrency_per_host`
connections: the bound of any walk; * a plain walk: requests, one session, and feedparser.

The second table is of a publisher with slow bodies (50 ms from the first piece to the last), without
look-ahead. There the link in the head is useful while the entries still arrive; links behind the entries show
the time without that.

Every result's entries are counted. The publisher counts `requests` and `connections`.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Final, NamedTuple

import feedparser
import requests

from benchmarks.support.feeds import Chain
from benchmarks.support.figures import Figure
from benchmarks.support.publisher import Publisher, running_publisher
from benchmarks.support.report import Table, begin, expect, seconds
from benchmarks.support.server import running_server
from benchmarks.support.tree import HERE, Tree, add_tree, chosen_tree
from wholefeed.config.tables import FetchConfig

CONNECTIONS: Final = FetchConfig().concurrency_per_host
_CURL_SECONDS: Final = 300
_CHAIN: Final = Chain(archives=100, entries=20, entry_bytes=1500)
_LATENCY_SECONDS: Final = 0.05


class Walked(NamedTuple):
    """One run."""

    seconds: float
    entries: int


Way = Callable[[Publisher, Chain], Walked]


def through_proxy(*, look_ahead: bool, tree: Tree = HERE) -> Way:
    def walk(publisher: Publisher, chain: Chain) -> Walked:
        with tempfile.TemporaryDirectory(prefix="wholefeed-walk-") as folder:
            with running_server(Path(folder), tree=tree, history_look_ahead=look_ahead) as server:
                began = time.perf_counter()
                answer = server.whole(publisher.url())
                took = time.perf_counter() - began
            expect("state", answer.state, "complete")
            return Walked(took, answer.entries)

    return walk


def with_curl(publisher: Publisher, chain: Chain) -> Walked:
    """Download all documents, their URLs known."""
    with tempfile.TemporaryDirectory(prefix="wholefeed-curl-") as folder:
        quiet = ["curl", "--no-progress-meter", "--fail", "--noproxy", "*"]
        parallel = ["--parallel", "--parallel-max", str(CONNECTIONS)]
        newest = ["--output", f"{folder}/feed.atom", publisher.url()]
        archives = ["--output", f"{folder}/#1.atom", publisher.url(f"/archive/[1-{chain.archives}]")]
        began = time.perf_counter()
        subprocess.run([*quiet, *parallel, *newest, *archives], check=True, timeout=_CURL_SECONDS)
        took = time.perf_counter() - began
        return Walked(took, sum(path.read_bytes().count(b"<entry>") for path in Path(folder).iterdir()))


def with_feedparser(publisher: Publisher, chain: Chain) -> Walked:
    """Walk as a script would: get, parse, follow."""
    identities: set[str] = set()
    began = time.perf_counter()
    with requests.Session() as session:
        session.trust_env = False
        url = publisher.url()
        for _ in range(chain.documents):
            parsed = feedparser.parse(session.get(url, timeout=30).content)
            identities |= {entry.id for entry in parsed.entries}
            url = next((link.href for link in parsed.feed.links if link.rel == "prev-archive"), "")
    expect("end of the chain", url, "")
    return Walked(time.perf_counter() - began, len(identities))


def measure(table: Table, name: str, way: Way, publisher: Publisher, chain: Chain, runs: int) -> None:
    """Run one way several times; print its row: the median, the spread, the publisher's counts."""
    publisher.counts()
    results = [way(publisher, chain) for _ in range(runs)]
    counts = publisher.counts()
    for result in results:
        expect(f"entries, {name}", result.entries, chain.total_entries)
    times = [result.seconds for result in results]
    table.row(
        name,
        f"{statistics.median(times):.2f}",
        seconds(times),
        f"{chain.total_entries}",
        f"{counts.requests / runs:.1f}",
        f"{counts.connections / runs:.1f}",
    )


def figures(tree: Tree = HERE, *, runs: int = 5) -> list[Figure]:
    """Measure the first table's first row and curl in turn, as figures to store; nothing without curl."""
    if not shutil.which("curl"):
        return []
    chain, taken = _CHAIN, (through_proxy(look_ahead=True, tree=tree), with_curl)
    walls: tuple[list[float], list[float]] = ([], [])
    with running_publisher(chain, latency_seconds=_LATENCY_SECONDS) as publisher:
        for _ in range(runs):
            for way, into in zip(taken, walls, strict=True):
                result = way(publisher, chain)
                expect("entries", result.entries, chain.total_entries)
                into.append(result.seconds)
    return [Figure("walk.50ms", "s", walls[0], {"curl": walls[1]})]


def the_table() -> Table:
    return Table("", "seconds", "min-max", "entries", "requests", "connections", first_width=52)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Measure the first reconstruction of an archived feed.")
    parser.add_argument("--archives", type=int, default=100, help="archive documents (default 100)")
    parser.add_argument("--entries", type=int, default=20, help="entries in each document (default 20)")
    parser.add_argument("--entry-bytes", type=int, default=1500, help="size of an entry (default 1500)")
    parser.add_argument("--latency-ms", type=float, default=50.0, help="before each answer (default 50)")
    parser.add_argument(
        "--body-ms", type=float, default=50.0, help="of each body in the second table (default 50)"
    )
    parser.add_argument("--runs", type=int, default=3, help="of each kind; the median is shown (default 3)")
    add_tree(parser)
    return parser.parse_args()


def main() -> None:
    options = arguments()
    tree = chosen_tree(options)
    begin()
    runs, latency_seconds, body_seconds = options.runs, options.latency_ms / 1000, options.body_ms / 1000
    chain = Chain(archives=options.archives, entries=options.entries, entry_bytes=options.entry_bytes)
    print(
        f"{chain.documents} documents, {chain.total_entries} entries;"
        f" {options.latency_ms:g} ms before each answer; median of {runs}"
    )
    table = the_table()
    with running_publisher(chain, latency_seconds=latency_seconds) as publisher:
        measure(table, "wholefeed", through_proxy(look_ahead=True, tree=tree), publisher, chain, runs)
        one_by_one = through_proxy(look_ahead=False, tree=tree)
        measure(table, "wholefeed, without look-ahead", one_by_one, publisher, chain, runs)
        if shutil.which("curl"):
            name = f"curl --parallel --parallel-max {CONNECTIONS}, URLs known"
            measure(table, name, with_curl, publisher, chain, runs)
        measure(table, "requests + feedparser", with_feedparser, publisher, chain, runs)
    print(f"\nEach body takes {options.body_ms:g} ms more; without look-ahead")
    table = the_table()
    for name, shape in (
        ("wholefeed, link taken early from the head", chain),
        ("wholefeed, link behind the entries", replace(chain, links_last=True)),
    ):
        with running_publisher(
            shape, latency_seconds=latency_seconds, body_seconds=body_seconds
        ) as publisher:
            measure(table, name, one_by_one, publisher, shape, runs)


if __name__ == "__main__":
    main()
