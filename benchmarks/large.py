"""Answers to others while a large document is processed: `python -m benchmarks.large`.

A reader asks for a feed of one document of 26 MB, then for one of 200,000 small entries (21 MB), both gzipped
by the publisher. Until each answer is complete, another reader asks for /healthz every 5 ms: its delay shows
whether the server's loop or interpreter is blocked. `peak` is the highest resident memory of the server and
its children together. Both readers run in this process. Other load on the machine shows too, so the best of
several runs counts.

Then a page of 100 entries (`pages=100`) is measured, of a feed of 100,000 entries in 100 documents and in
one: the first, a middle and the oldest page, and the oldest again as a 304. Each figure is the median of 20
answers over one connection.
"""

from __future__ import annotations

import argparse
import tempfile
import time
import urllib.request
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Final

from benchmarks.support.client import get, open_client, repeat
from benchmarks.support.feeds import Chain
from benchmarks.support.figures import Figure, show
from benchmarks.support.health import asking_health
from benchmarks.support.publisher import Publisher, running_publisher
from benchmarks.support.report import begin, expect
from benchmarks.support.server import Server, running_server
from benchmarks.support.tree import HERE, Tree, add_tree, chosen_tree
from benchmarks.support.usage import watching

BYTES: Final = Chain(archives=0, entries=8800, entry_bytes=3000)
ENTRIES: Final = Chain(archives=0, entries=200_000, entry_bytes=0)
PAGED: Final = {
    "100 documents": Chain(archives=99, entries=1000, entry_bytes=300),
    "one document": Chain(archives=0, entries=100_000, entry_bytes=300),
}
_MARK: Final = b"<entry"
_PAGE: Final = 100
_ASKED: Final = 20


def measure(tree: Tree = HERE, *, runs: int = 2, scale: float = 1.0) -> list[Figure]:
    figures = []
    for name, chain in (("26 MB", BYTES), ("200,000 entries", ENTRIES)):
        scaled = Chain(archives=0, entries=max(1, int(chain.entries * scale)), entry_bytes=chain.entry_bytes)
        with running_publisher(scaled, is_gzipped=True) as publisher:
            with urllib.request.urlopen(publisher.url(), timeout=60) as made:  # not while it is measured
                made.read()
            runs_of = [_one_run(tree, publisher, scaled) for _ in range(runs)]
        for place, (label, unit) in enumerate(
            (("healthz.p99", "ms"), ("healthz.max", "ms"), ("wall", "s"), ("cpu", "s"), ("peak", "MB"))
        ):
            figures.append(Figure(f"large.{label}, {name}", unit, [run[place] for run in runs_of]))
    return figures + _pages(tree, scale)


def _pages(tree: Tree, scale: float) -> list[Figure]:
    figures = []
    for name, chain in PAGED.items():
        scaled = replace(chain, entries=max(4, int(chain.entries * scale)))
        numbers = {
            "first": "",
            "middle": f"&page={1 + scaled.total_entries // _PAGE // 2}",
            "oldest": "&page=1",
        }
        with (
            running_publisher(scaled, is_gzipped=True) as publisher,
            tempfile.TemporaryDirectory(prefix="wholefeed-large-") as folder,
            running_server(Path(folder), tree=tree, limits_respond_within_seconds=60) as server,
        ):
            _whole(server, publisher.url())
            pages = f"{server.feed_target(publisher.url())}&pages={_PAGE}"
            with open_client(server.port) as client:
                for label, number in numbers.items():
                    asking = get(f"{pages}{number}", server.port, Accept_Encoding="gzip")
                    took = repeat([client], asking, _ASKED, 200)
                    figures.append(Figure(f"large.page.{label}, {name}", "ms", [1000 * median(took)]))
                etag = client.ask(get(f"{pages}&page=1", server.port, Accept_Encoding="gzip")).fields["etag"]
                known = get(f"{pages}&page=1", server.port, Accept_Encoding="gzip", If_None_Match=etag)
                took = repeat([client], known, _ASKED, 304)
                figures.append(Figure(f"large.page.304, {name}", "ms", [1000 * median(took)]))
    return figures


def _one_run(tree: Tree, publisher: Publisher, chain: Chain) -> tuple[float, float, float, float, float]:
    with (
        tempfile.TemporaryDirectory(prefix="wholefeed-large-") as folder,
        running_server(Path(folder), tree=tree, limits_respond_within_seconds=60) as server,
        watching(server.pid) as peak,
    ):
        before, began = server.cpu_seconds(), time.perf_counter()
        with asking_health(server) as durations:
            body = _whole(server, publisher.url())
        wall, cpu = time.perf_counter() - began, server.cpu_seconds() - before
        expect("entries", body.count(_MARK), chain.total_entries)
    return (
        1000 * durations[int(0.99 * (len(durations) - 1))],
        1000 * durations[-1],
        wall,
        cpu,
        peak.bytes / 1e6,
    )


def _whole(server: Server, url: str) -> bytes:
    with open_client(server.port) as client:
        while True:
            request = get(server.feed_target(url), server.port, Accept_Encoding="identity")
            reply = client.ask(request)
            expect(f"status: {reply.body[:300]!r}", reply.status, 200)
            if not reply.fields["feed-reconstruction"].startswith("loading"):
                return reply.body
            time.sleep(0.05)


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure /healthz while a large document is worked on.")
    parser.add_argument("--runs", type=int, default=3, help="the least and the median are shown (default 3)")
    parser.add_argument("--scale", type=float, default=1.0, help="share of the documents' size (default 1)")
    add_tree(parser)
    options = parser.parse_args()
    begin()
    show(measure(chosen_tree(options), runs=options.runs, scale=options.scale))


if __name__ == "__main__":
    main()
