"""Cost of the first walk through a long feed: `python -m benchmarks.first`.

The feed has 7.9 MB in 101 documents of 100 entries each, from a publisher that answers at once. The CPU time
of the server and its children, from the request until half a second after the whole answer, is divided by the
size of the documents. A walk through another feed comes first, so that start-up costs do not count. Beside
it: `requests`, one session, and feedparser, in this process, one document after the other. The table also has
documents of 20 long entries: feedparser needs a third as much for a megabyte of those.

Every result's entries are counted.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path
from typing import Final

from benchmarks.support.feeds import Chain
from benchmarks.support.figures import Figure, show
from benchmarks.support.publisher import Publisher, running_publisher
from benchmarks.support.report import begin, expect
from benchmarks.support.server import Server, running_server
from benchmarks.support.tree import HERE, Tree, add_tree, chosen_tree
from benchmarks.walk import with_feedparser

CHAIN: Final = Chain(archives=100, entries=100, entry_bytes=825)
LONG: Final = Chain(archives=100, entries=20, entry_bytes=3830)
_REST_SECONDS: Final = 0.5
_WARM_UP: Final = "/f0/feed"


def measure(tree: Tree = HERE, chain: Chain = CHAIN, *, runs: int = 3, name: str = "first") -> list[Figure]:
    proxied, walls, plain, plain_walls = [], [], [], []
    size = _megabytes(chain)
    with (
        tempfile.TemporaryDirectory(prefix="wholefeed-first-") as folder,
        running_publisher(chain) as publisher,
        running_server(Path(folder), tree=tree) as server,
    ):
        _walk(server, publisher.url(_WARM_UP), chain)
        for run in range(runs):
            before = server.cpu_seconds()
            walls.append(_walk(server, publisher.url(f"/f{run + 1}/feed"), chain) / size)
            time.sleep(_REST_SECONDS)
            proxied.append((server.cpu_seconds() - before) / size)
            began = time.process_time()
            plain_walls.append(_script(publisher, chain) / size)
            plain.append((time.process_time() - began) / size)
    return [
        Figure(f"{name}.cpu", "s/MB", proxied, {"requests + feedparser": plain}),
        Figure(f"{name}.wall", "s/MB", walls, {"requests + feedparser": plain_walls}),
    ]


def hops(tree: Tree = HERE, *, archives: int = 3) -> list[Figure]:
    """Count how often the first GET of a short chain calls SQLite's threads."""
    chain = Chain(archives=archives, entries=10, entry_bytes=1200)
    with (
        tempfile.TemporaryDirectory(prefix="wholefeed-first-") as folder,
        running_publisher(chain) as publisher,
        running_server(Path(folder), tree=tree, counts_hops=True) as server,
    ):
        _walk(server, publisher.url(_WARM_UP), chain)
        time.sleep(_REST_SECONDS)
        before = server.hops()
        _walk(server, publisher.url("/f1/feed"), chain)
        time.sleep(_REST_SECONDS)
        return [Figure(f"hops.first, {archives} archives", "hops", [server.hops() - before])]


def _megabytes(chain: Chain) -> float:
    base = "http://127.0.0.1:80000/f1"
    sizes = [len(chain.archive(base, number)) for number in range(1, chain.archives + 1)]
    return (sum(sizes) + len(chain.subscription(base))) / 1e6


def _walk(server: Server, url: str, chain: Chain) -> float:
    began = time.perf_counter()
    answer = server.whole(url)
    took = time.perf_counter() - began
    expect("state", answer.state, "complete")
    expect("entries", answer.entries, chain.total_entries)
    return took


def _script(publisher: Publisher, chain: Chain) -> float:
    walked = with_feedparser(publisher, chain)
    expect("entries of feedparser", walked.entries, chain.total_entries)
    return walked.seconds


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure the CPU time of a first walk.")
    parser.add_argument("--archives", type=int, default=CHAIN.archives, help="documents (%(default)s)")
    parser.add_argument("--entries", type=int, default=CHAIN.entries, help="in each (%(default)s)")
    parser.add_argument("--entry-bytes", type=int, default=CHAIN.entry_bytes, help="(%(default)s)")
    parser.add_argument("--runs", type=int, default=3, help="the least and the median are shown (default 3)")
    parser.add_argument("--hops", action="store_true", help="count calls of SQLite's threads as well")
    add_tree(parser)
    options = parser.parse_args()
    begin()
    chain = Chain(archives=options.archives, entries=options.entries, entry_bytes=options.entry_bytes)
    print(f"{chain.documents} documents, {chain.total_entries} entries, {_megabytes(chain):.1f} MB")
    tree = chosen_tree(options)
    show([*measure(tree, chain, runs=options.runs), *(hops(tree) if options.hops else [])])


if __name__ == "__main__":
    main()
