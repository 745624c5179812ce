"""Cost of replaying a feed: `python -m benchmarks.replay`.

A feed of 100,000 entries (1,000 documents) is reconstructed. A replay of it numbers its entries at the first
request. It is asked for again, before and after each release: whole, its newest hundred, and with the current
ETag (304). Then the publisher adds entries, one at a time, to small feeds, some of them replayed. The CPU
time is that of the server and its children.
"""

from __future__ import annotations

import argparse
import http.client
import tempfile
import time
from contextlib import closing
from pathlib import Path
from typing import Any, Final

from benchmarks.support.feeds import Chain
from benchmarks.support.figures import Figure, show
from benchmarks.support.publisher import Publisher, running_publisher
from benchmarks.support.report import begin, expect
from benchmarks.support.server import Server, running_server
from benchmarks.support.tree import HERE, Tree, add_tree, chosen_tree

LARGE: Final = Chain(archives=999, entries=100, entry_bytes=1000)
SMALL: Final = Chain(archives=0, entries=10, entry_bytes=1200)
_STALE_SECONDS: Final = 1.3
_REST_SECONDS: Final = 0.4
_SHORT_LIVED: Final[dict[str, Any]] = {"freshness_minimum_seconds": 1, "freshness_default_seconds": 1}
_ALL_OUT: Final = "&replay=50/day&from=2001-01-01T00:00:00Z"
_FEEDS: Final = 20


def measure(tree: Tree = HERE, *, chain: Chain = LARGE, times: int = 8) -> list[Figure]:
    return [*_large(tree, chain, times), *_news(tree, times)]


def _large(tree: Tree, chain: Chain, times: int) -> list[Figure]:
    with (
        tempfile.TemporaryDirectory(prefix="wholefeed-replay-") as folder,
        running_publisher(chain) as publisher,
        running_server(Path(folder), tree=tree, freshness_default_seconds=86400) as server,
    ):
        expect("entries", server.whole(publisher.url()).entries, chain.total_entries)
        target = server.feed_target(publisher.url()) + _ALL_OUT
        found = {"begun": [_taken(server, target + "&limit=100")]}
        peak_bytes = server.peak_bytes()
        found["newest 100, nothing held"] = [
            _taken(server, f"{target}&limit={100 + n}") for n in range(times)
        ]
        etag = _ask(server, target + "&limit=100").etag
        found["304"] = [_taken(server, target + "&limit=100", etag) for _ in range(times)]
        found["whole"] = [_taken(server, target)]
        grown_bytes = server.peak_bytes() - peak_bytes
        # The same lines at another pace: what is reckoned anew when something was published.
        paces = [target.replace("2001-01-01", f"2001-01-{n + 2:02}") for n in range(times)]
        found["another pace"] = [_taken(server, f"{pace}&limit=100") for pace in paces]
    figures = [
        Figure(f"replay.{name}", "ms of CPU", [1000 * each for each in values])
        for name, values in found.items()
    ]
    return [*figures, Figure("replay.memory of a whole answer", "MB", [grown_bytes / 1e6])]


def _news(tree: Tree, times: int) -> list[Figure]:
    kinds: dict[str, list[float]] = {"": [], _ALL_OUT: []}
    with (
        tempfile.TemporaryDirectory(prefix="wholefeed-replay-") as folder,
        running_publisher(SMALL, is_conditional=True) as publisher,
        running_server(Path(folder), tree=tree, **_SHORT_LIVED) as server,
    ):
        for replayed in kinds:
            for url in _urls(publisher, replayed):
                _ask(server, server.feed_target(url))
                _ask(server, server.feed_target(url) + replayed)
        for run in range(times):
            publisher.grow()
            time.sleep(_STALE_SECONDS)
            for replayed in list(kinds)[:: 1 if run % 2 else -1]:
                before = server.cpu_seconds()
                for url in _urls(publisher, replayed):
                    _ask(server, server.feed_target(url))
                time.sleep(_REST_SECONDS)
                kinds[replayed].append(1000 * (server.cpu_seconds() - before) / _FEEDS)
    return [Figure("refresh with news, lines", "ms of CPU", kinds[_ALL_OUT], {"no lines": kinds[""]})]


def _urls(publisher: Publisher, replayed: str) -> list[str]:
    return [publisher.url(f"/f{1 + bool(replayed)}{number:03}1/feed") for number in range(_FEEDS)]


class _Reply:
    def __init__(self, status: int, etag: str) -> None:
        self.status = status
        self.etag = etag


def _ask(server: Server, target: str, etag: str = "") -> _Reply:
    while True:
        with closing(http.client.HTTPConnection("127.0.0.1", server.port, timeout=300)) as connection:
            fields = {"Accept-Encoding": "gzip"} | ({"If-None-Match": etag} if etag else {})
            connection.request("GET", target, headers=fields)
            response = connection.getresponse()
            response.read()
        if (
            response.status == (304 if etag else 200)
            and ";released=0" not in response.headers["Feed-Reconstruction"]
        ):
            return _Reply(response.status, response.headers["ETag"])
        expect("status", response.status, 200)


def _taken(server: Server, target: str, etag: str = "") -> float:
    before = server.cpu_seconds()
    _ask(server, target, etag)
    return server.cpu_seconds() - before


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure what it costs to replay a feed.")
    parser.add_argument("--archives", type=int, default=LARGE.archives, help="of 100 entries (%(default)s)")
    parser.add_argument("--times", type=int, default=8, help="runs of what can be repeated (%(default)s)")
    add_tree(parser)
    options = parser.parse_args()
    begin()
    chain = Chain(archives=options.archives, entries=LARGE.entries, entry_bytes=LARGE.entry_bytes)
    show(measure(chosen_tree(options), chain=chain, times=options.times))


if __name__ == "__main__":
    main()
