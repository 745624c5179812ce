"""CPU time of the server for an answer of a fresh feed: `python -m benchmarks.answers`.

The feed's answer is about 20 KB (gzip). Eight connections ask, each with one request under way. The server's
CPU time is divided by the number of answers: a 304, a whole feed, and /healthz, which costs the middlewares
and the log alone. With a single connection the loop's sleeping would double the figures. Two others send the
same bytes to the same client: a bare aiohttp handler without a log, in its own process on the same
interpreter and loop, and nginx, if installed. The client's own time is not counted. All take turns on one
processor, since work beside them on the same core would slow them. With `--asyncio`, server and handler run
on asyncio's own loop.

`p50` and `p99` are wall time at the client over one connection, so other load on the machine moves them.
"""

from __future__ import annotations

import argparse
import contextlib
import gzip
import json
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from benchmarks.support.child import started_child
from benchmarks.support.client import Client, Reply, get, open_client, repeat
from benchmarks.support.feeds import Chain
from benchmarks.support.figures import Figure, show
from benchmarks.support.publisher import running_publisher
from benchmarks.support.report import begin, expect
from benchmarks.support.server import running_server
from benchmarks.support.tree import HERE, Tree, add_tree, chosen_tree
from benchmarks.support.usage import cpu_seconds, sharing_a_processor

CHAIN: Final = Chain(archives=3, entries=12, entry_bytes=1200)
_CONNECTIONS: Final = 8
_WARM_UP: Final = 20
_TURNS: Final = 4
"""Turns of each side in a run. A shared machine changes its speed within seconds, so pairs are compared."""
_NGINX_SECONDS: Final = 10
_OF_THE_CONNECTION: Final = frozenset({"content-length", "date", "server", "connection", "keep-alive"})
_NGINX: Final = """
daemon off; master_process off; pid {folder}/nginx.pid; error_log {folder}/error.log;
events {{ worker_connections 64; }}
http {{
    access_log off; keepalive_requests 1000000000; default_type application/atom+xml;
    client_body_temp_path {folder}; proxy_temp_path {folder}; fastcgi_temp_path {folder};
    uwsgi_temp_path {folder}; scgi_temp_path {folder};
    server {{ listen 127.0.0.1:{port}; root {folder}; add_header Content-Encoding gzip; }}
}}
"""


class Case(NamedTuple):
    name: str
    who: str
    pid: int
    clients: list[Client]
    request: bytes
    status: int


class Measured(NamedTuple):
    cpu_us: float
    durations: list[float]


def measure(
    tree: Tree = HERE, *, requests: int = 800, runs: int = 5, on_asyncio: bool = False
) -> list[Figure]:
    with contextlib.ExitStack() as stack:
        if on_asyncio:
            shadows = stack.enter_context(tempfile.TemporaryDirectory(prefix="wholefeed-asyncio-"))
            tree = tree.without_uvloop(Path(shadows))
        cases = _cases(tree, stack)
        stack.enter_context(sharing_a_processor({case.pid for case in cases}))
        for case in cases:
            repeat(case.clients, case.request, _WARM_UP, case.status)
        measured: dict[tuple[str, str], list[Measured]] = {}
        for _ in range(runs * _TURNS):
            for case in cases:
                measured.setdefault((case.name, case.who), []).append(_measured(case, requests // _TURNS))
    names = dict.fromkeys(case.name for case in cases)
    return [
        figure
        for name in names
        for figure in _figures(
            f"asyncio.{name}" if on_asyncio else f"answer.{name}",
            {who: each for (of, who), each in measured.items() if of == name},
        )
    ]


def hops(tree: Tree = HERE) -> list[Figure]:
    """Count how often an answer calls SQLite's threads."""
    with (
        tempfile.TemporaryDirectory(prefix="wholefeed-answers-") as folder,
        running_publisher(CHAIN) as publisher,
        running_server(Path(folder), tree=tree, counts_hops=True) as server,
        open_client(server.port) as client,
    ):
        whole, unchanged = _requests(client, server.feed_target(publisher.url()), server.port)
        figures = []
        for name, request, status in (("304", unchanged, 304), ("200", whole, 200)):
            repeat([client], request, 10, status)
            time.sleep(0.3)
            before = server.hops()
            repeat([client], request, 20, status)
            figures.append(Figure(f"hops.{name}", "hops", [(server.hops() - before) / 20]))
        return figures


def _cases(tree: Tree, stack: contextlib.ExitStack) -> list[Case]:
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="wholefeed-answers-")))
    publisher = stack.enter_context(running_publisher(CHAIN))
    server = stack.enter_context(running_server(folder, tree=tree))
    clients = _opened(server.port, stack)
    whole, unchanged = _requests(clients[0], server.feed_target(publisher.url()), server.port)
    reply = clients[0].ask(whole)
    entries = gzip.decompress(reply.body).count(b"<entry")
    expect("entries", entries, CHAIN.total_entries)
    print(f"{entries} entries, {len(reply.body) / 1000:.1f} KB gzip")
    port, pid = stack.enter_context(_bare(tree, folder, reply))
    bare = _opened(port, stack)
    expect("bytes of the bare handler", bare[0].ask(get("/200", port)).body, reply.body)
    cases = [
        Case("healthz", "", server.pid, clients, get("/healthz", server.port), 200),
        Case("healthz", "aiohttp", pid, bare, get("/empty", port), 200),
        Case("304", "", server.pid, clients, unchanged, 304),
        Case("304", "aiohttp", pid, bare, get("/304", port, If_None_Match=reply.etag), 304),
        Case("200", "", server.pid, clients, whole, 200),
        Case("200", "aiohttp", pid, bare, get("/200", port, Accept_Encoding="gzip"), 200),
    ]
    if shutil.which("nginx"):
        port, pid = stack.enter_context(_nginx(folder, reply.body))
        nginx = _opened(port, stack)
        known = nginx[0].ask(get("/body", port))
        expect("bytes of nginx", known.body, reply.body)
        conditional = get("/body", port, If_None_Match=known.etag)
        cases.append(Case("304", "nginx", pid, nginx, conditional, 304))
        cases.append(Case("200", "nginx", pid, nginx, get("/body", port), 200))
    else:
        print("nginx is not installed: left out")
    return cases


def _opened(port: int, stack: contextlib.ExitStack) -> list[Client]:
    return [stack.enter_context(open_client(port)) for _ in range(_CONNECTIONS)]


def _requests(client: Client, target: str, port: int) -> tuple[bytes, bytes]:
    """Ask until the feed is whole. Return the request for all of it and the one with its ETag."""
    whole = get(target, port, Accept_Encoding="gzip")
    reply = client.ask(whole)
    while reply.fields["feed-reconstruction"].startswith("loading"):
        time.sleep(0.05)
        reply = client.ask(whole)
    expect("state", reply.fields["feed-reconstruction"].partition(";")[0], "complete")
    return whole, get(target, port, Accept_Encoding="gzip", If_None_Match=reply.etag)


@contextlib.contextmanager
def _bare(tree: Tree, folder: Path, reply: Reply) -> Iterator[tuple[int, int]]:
    (folder / "body").write_bytes(reply.body)
    fields = {name: value for name, value in reply.fields.items() if name not in _OF_THE_CONNECTION}
    options = json.dumps({"body": str(folder / "body"), "fields": fields})
    python, shadows = str(tree.python), tree.shadows
    with started_child("benchmarks.support.bare", options, python=python, import_path=shadows) as started:
        yield started


@contextlib.contextmanager
def _nginx(folder: Path, body: bytes) -> Iterator[tuple[int, int]]:
    own = folder / "nginx"
    own.mkdir()
    own.chmod(0o755)
    folder.chmod(0o755)
    (own / "body").write_bytes(body)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = int(listening.getsockname()[1])
    (own / "nginx.conf").write_text(_NGINX.format(folder=own, port=port), "utf-8")
    with (own / "output").open("wb") as output:
        process = subprocess.Popen(
            ["nginx", "-e", str(own / "error.log"), "-c", str(own / "nginx.conf")],
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    try:
        until = time.monotonic() + _NGINX_SECONDS
        while True:
            try:
                socket.create_connection(("127.0.0.1", port)).close()
                break
            except ConnectionRefusedError:
                if process.poll() is not None or time.monotonic() > until:
                    raise
                time.sleep(0.02)
        yield port, process.pid
    finally:
        process.terminate()
        process.wait()


def _measured(case: Case, requests: int) -> Measured:
    before = cpu_seconds(case.pid)
    answers = len(repeat(case.clients, case.request, requests // _CONNECTIONS, case.status))
    took = cpu_seconds(case.pid) - before
    durations = repeat(case.clients[:1], case.request, max(1, requests // 4), case.status)
    return Measured(took / answers * 1e6, durations)


def _figures(name: str, by_whom: dict[str, list[Measured]]) -> list[Figure]:
    cpu = {who: [each.cpu_us for each in runs] for who, runs in by_whom.items()}
    figures = [Figure(f"{name}.cpu", "µs", cpu.pop(""), cpu)]
    for label, share in (("p50", 0.5), ("p99", 0.99)):
        wall = {who: [_at(each.durations, share) * 1e6 for each in runs] for who, runs in by_whom.items()}
        figures.append(Figure(f"{name}.{label}", "µs", wall.pop(""), wall))
    return figures


def _at(durations: list[float], share: float) -> float:
    return sorted(durations)[int(share * (len(durations) - 1))]


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure the CPU time of an answer.")
    parser.add_argument("--requests", type=int, default=1000, help="of each kind and run (default 1000)")
    parser.add_argument("--runs", type=int, default=5, help="the least and the median are shown (default 5)")
    parser.add_argument("--hops", action="store_true", help="count calls of SQLite's threads as well")
    parser.add_argument("--asyncio", action="store_true", help="on asyncio's own loop, not on uvloop")
    add_tree(parser)
    options = parser.parse_args()
    begin()
    tree = chosen_tree(options)
    figures = measure(tree, requests=options.requests, runs=options.runs, on_asyncio=options.asyncio)
    show([*figures, *(hops(tree) if options.hops else [])])


if __name__ == "__main__":
    main()
