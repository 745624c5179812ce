"""Cost of documents made expensive to read: `python -m benchmarks.costly`.

Each document of `benchmarks.support.costly` is named by its row of docs/faults.md and asked for once. A row
shows the result, the CPU seconds of the server and its workers for each megabyte, and how long /healthz took
meanwhile, asked every 5 ms. The start of a worker process for a document counts too: a quarter of a second.
"""

from __future__ import annotations

import argparse
import contextlib
import http.client
import tempfile
import time
from pathlib import Path
from typing import Final

from benchmarks.support.costly import documents, publishing
from benchmarks.support.health import asking_health
from benchmarks.support.report import Table, begin
from benchmarks.support.server import Server, running_server
from benchmarks.support.tree import HERE, Tree, add_tree, chosen_tree

_ANSWER_SECONDS: Final = 120


def _ask(server: Server, url: str) -> str:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=_ANSWER_SECONDS)
    with contextlib.closing(connection):
        while True:
            connection.request("GET", server.feed_target(url))
            response = connection.getresponse()
            body = response.read()
            state = (
                response.headers["Feed-Reconstruction"]
                or body.partition(b"urn:wholefeed:")[2].split(b'"')[0].decode()
            )
            if not state.startswith("loading"):
                return f"{response.status} {state.partition(';')[0]}"
            time.sleep(0.05)


def measure(server: Server, name: str, url: str, size_bytes: int, table: Table) -> None:
    before = server.cpu_seconds()
    with asking_health(server) as durations:
        outcome = _ask(server, url)
    cpu = server.cpu_seconds() - before
    p99, longest = durations[int(0.99 * (len(durations) - 1))], durations[-1]
    cells = (f"{size_bytes / 1e6:.2f}", f"{cpu:.2f}", f"{cpu / (size_bytes / 1e6):.2f}")
    table.row(f"{name}: {outcome}", *cells, f"{1000 * p99:.0f}", f"{1000 * longest:.0f}")


def measure_all(megabytes: float, tree: Tree = HERE) -> None:
    bodies = documents(int(megabytes * 1e6))
    table = Table("", "MB", "CPU s", "s/MB", "p99 ms", "max ms", first_width=56)
    with (
        tempfile.TemporaryDirectory(prefix="wholefeed-costly-") as folder,
        publishing(bodies) as url,
        running_server(Path(folder), tree=tree, limits_respond_within_seconds=60) as server,
    ):
        for name, body in bodies.items():
            measure(server, name, url(name), len(body), table)


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure what documents cost that are made to cost much.")
    parser.add_argument("--megabytes", type=float, default=1.0, help="size of a document (default 1)")
    add_tree(parser)
    options = parser.parse_args()
    begin()
    measure_all(options.megabytes, chosen_tree(options))


if __name__ == "__main__":
    main()
