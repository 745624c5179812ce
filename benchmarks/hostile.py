"""Cost of hostile publishers and clients, one by one and many at once: `python -m benchmarks.hostile`.

In this order:

1. Expensive documents (`benchmarks.costly`), and reading pages, lists and heads alone (row 147). 2. Each
robots.txt and the pages of lists (`benchmarks.sites`, rows 145 and 146), bodies of requests without a token,
and bytes that are not HTTP (rows 143 and 144). 3. A thousand and more connections that never complete a
request, and how long a supervisor and a reader wait meanwhile (docs/faults.md rows 95 to 96). 4. Lists of a
hundred feeds with heads as long as 20 KB on the wire allow (rows 117 and 118). 5. People who read expensive
pages (rows 119 and 120): the pages of many feeds at once, and again. 6. Clients that hold up others: a tag of
a subscription list with endless attributes, and readers that follow walks (rows 99 and 111). 7. Peak memory
under all kinds of `benchmarks.support.hostile` at once, each at several hosts: gzip bombs, documents of 32
MiB near each limit, drips, endless bodies, silence, chains of 5,000 links, and walks along documents of 32
MiB. Meanwhile one reader asks for a stored feed, and another for unknown feeds of an innocent publisher.

`peak` is the server's highest resident memory (VmHWM). Every request must get an answer of any status;
answers of the innocent feeds must be right.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import http.client
import re
import tempfile
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final
from urllib.parse import quote

from benchmarks.costly import measure_all
from benchmarks.sites import measure_sites
from benchmarks.support.bodies import measure_bodies
from benchmarks.support.flood import FORM, HALF_A_HEAD, LONG_FORM, flooding
from benchmarks.support.hostile import HOSTS, KINDS, PAGES, Hostile, running_hostile
from benchmarks.support.reading import measure_reading
from benchmarks.support.report import Table, begin, expect
from benchmarks.support.server import Server, running_server

BOUND_BYTES: Final = 1_000_000_000
"""The bound promised in docs/operations.md."""
RESPOND_WITHIN_SECONDS: Final = 8
_ANSWER_SECONDS: Final = 120
_ENTRIES: Final = 3


def ask(server: Server, url: str) -> tuple[str, float, int]:
    """Ask for a feed; return status and state, seconds, and the number of entries."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=_ANSWER_SECONDS)
    with contextlib.closing(connection):
        began = time.monotonic()
        connection.request("GET", server.feed_target(url))
        response = connection.getresponse()
        entries, tail = 0, b""
        while piece := response.read(1 << 20):
            entries += (tail + piece).count(b"<entry")
            tail = piece[-5:]
        state = (response.headers["Feed-Reconstruction"] or "").partition(";")[0]
        return f"{response.status} {state}".strip(), time.monotonic() - began, entries


class Innocent:
    """A reader that asks throughout.

    hostile: The publishers; the first one is innocent.

    is_new: Whether each request is for another feed.
    """

    def __init__(self, server: Server, hostile: Hostile, *, is_new: bool) -> None:
        self._server = server
        self._hostile = hostile
        self._is_new = is_new
        self.seconds: list[float] = []
        self.outcomes: Counter[str] = Counter()

    def read(self, over: threading.Event) -> None:
        number = 0
        while not over.is_set():
            number += 1000 * self._is_new
            outcome, seconds, entries = ask(self._server, self._hostile.url(1, "innocent", number))
            if outcome == "200 complete":
                expect("entries", entries, _ENTRIES)
            self.outcomes[outcome] += 1
            self.seconds.append(seconds)
            over.wait(0.5)

    def show(self, table: Table, name: str) -> None:
        late = sum(seconds > RESPOND_WITHIN_SECONDS + 1 for seconds in self.seconds)
        middle = sorted(self.seconds)[len(self.seconds) // 2]
        cells = (len(self.seconds), f"{middle:.2f}", f"{max(self.seconds):.2f}", late)
        table.row(f"{name}: {said(self.outcomes)}", *map(str, cells))


def said(outcomes: Counter[str]) -> str:
    return ", ".join(f"{outcome} x{count}" for outcome, count in outcomes.most_common())


def attack(server: Server, hostile: Hostile, copies: int, table: Table) -> None:
    asked = [
        (kind, hostile.url(HOSTS[(place * copies + copy) % len(HOSTS)], kind))
        for place, kind in enumerate(KINDS)
        for copy in range(copies)
    ]
    with ThreadPoolExecutor(len(asked)) as threads:
        answers = list(threads.map(lambda each: ask(server, each[1]), asked))
    for kind in KINDS:
        own = [answer for (name, _), answer in zip(asked, answers, strict=True) if name == kind]
        seconds = [answer[1] for answer in own]
        middle = sorted(seconds)[len(seconds) // 2]
        late = sum(each > RESPOND_WITHIN_SECONDS + 1 for each in seconds)
        outcomes = said(Counter(answer[0] for answer in own))
        table.row(f"{kind}: {outcomes}", str(len(own)), f"{middle:.2f}", f"{max(seconds):.2f}", str(late))


_TOKEN: Final = "a-token-for-readers"
_FLOODS: Final = {
    "forms of 1 MB without end": (LONG_FORM, 900, 20_000),
    "forms that never end": (FORM, 2_100, 20_000),
    "half a head, 1,024 files": (HALF_A_HEAD, 2_100, 1_024),
}
"""Text sent on each connection, number of connections, and the server's limit of open files."""
_ASKED: Final = ("/healthz", f"/feeds?token={_TOKEN}")


async def flood(server: Server, request: bytes, count: int) -> tuple[Counter[str], float]:
    """Open the connections; return the answers to a supervisor and a reader, and their durations."""
    outcomes, longest = Counter[str](), 0.0
    async with flooding(server.port, request, count=count):
        for target in _ASKED:
            began = time.monotonic()
            status = await asyncio.to_thread(status_of, server, target)
            outcomes[f"{status} {target.partition('?')[0]}"] += 1
            longest = max(longest, time.monotonic() - began)
    return outcomes, longest


def status_of(server: Server, target: str) -> str:
    """Return the status of an answer, or the error in its place."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=_ANSWER_SECONDS)
    with contextlib.closing(connection):
        try:
            connection.request("GET", target)
            return str(connection.getresponse().status)
        except OSError as exc:
            return type(exc).__name__


def measure_floods() -> None:
    """Print a row for each flood, each against a server of its own."""
    table = Table("", "connections", "longest s", "peak MB", "log KB", first_width=70)
    for name, (request, count, files) in _FLOODS.items():
        before = ["sh", "-c", f'ulimit -n {files} && exec "$@"', "sh"]
        with (
            tempfile.TemporaryDirectory(prefix="wholefeed-hostile-") as folder,
            running_server(Path(folder), before=before, server_access_token=_TOKEN) as server,
        ):
            outcomes, longest = asyncio.run(flood(server, request, count))
            cells = (f"{longest:.2f}", f"{server.peak_bytes() / 1e6:.0f}", f"{server.log_bytes() / 1e3:.0f}")
            table.row(f"{name}: {said(outcomes)}", str(count), *cells)


_LISTS: Final = {"/": "text/html", "/opml": "*/*", "/feeds": "*/*"}
"""Formats that show many feeds at once, with their media types."""
_IN_A_LIST: Final = re.compile(rb"head(?:/|%2F)")


def measure_lists(feeds: int) -> None:
    table = Table("", "answer KB", "CPU s", "peak MB", first_width=70)
    with (
        tempfile.TemporaryDirectory(prefix="wholefeed-hostile-") as folder,
        running_hostile(document_bytes=1 << 10) as hostile,
        running_server(Path(folder)) as server,
    ):
        text_bytes = 0
        for number in range(feeds):
            url = hostile.url(HOSTS[number % len(HOSTS)], "head", number)
            answer = server.whole(url)
            expect("entries", answer.entries, 1)
            text_bytes = max(text_bytes, len(answer.body))
        cells = (f"{text_bytes / 1e3:.0f}", "", f"{server.peak_bytes() / 1e6:.0f}")
        table.row(f"each of {feeds} feeds with a long head", *cells)
        for target, media_type in _LISTS.items():
            before = server.cpu_seconds()
            body = listed(server, target, media_type)
            cpu = server.cpu_seconds() - before
            expect(f"feeds in {target}", len(_IN_A_LIST.findall(body)) >= feeds, True)
            cells = (f"{len(body) / 1e3:.0f}", f"{cpu:.2f}", f"{server.peak_bytes() / 1e6:.0f}")
            table.row(f"GET {target}", *cells)


def listed(server: Server, target: str, media_type: str) -> bytes:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=_ANSWER_SECONDS)
    with contextlib.closing(connection):
        connection.request("GET", target, headers={"Accept": media_type})
        return connection.getresponse().read()


# Pages that people read

_SETTLED_SECONDS: Final = 1


def measure_pages(hostile: Hostile, count: int) -> None:
    """Print two rows for each kind: pages of this many feeds at once, and the same ones again."""
    table = Table("", "longest s", "largest KB", "CPU s", "peak MB", "MB later", first_width=70)
    for kind in PAGES:
        with (
            tempfile.TemporaryDirectory(prefix="wholefeed-hostile-") as folder,
            running_server(Path(folder)) as server,
            ThreadPoolExecutor(count) as threads,
        ):
            urls = [hostile.url(HOSTS[number % len(HOSTS)], kind, number) for number in range(count)]
            for url in urls:
                server.whole(url)
            for again in ("", ", again"):
                before = server.cpu_seconds()
                pages = list(threads.map(lambda url: page(server, url), urls))
                cpu_seconds = server.cpu_seconds() - before
                time.sleep(_SETTLED_SECONDS)
                cells = (
                    f"{max(each[1] for each in pages):.2f}",
                    f"{max(each[2] for each in pages) / 1024:.0f}",
                    f"{cpu_seconds:.2f}",
                    f"{server.peak_bytes() / 1e6:.0f}",
                    f"{server.resident_bytes() / 1e6:.0f}",
                )
                table.row(f"{kind}s{again}: {said(Counter(each[0] for each in pages))}", *cells)


def page(server: Server, url: str) -> tuple[str, float, int]:
    """Open a feed as a browser does; return the status, seconds and bytes."""
    fields = {"Accept": "text/html", "Sec-Fetch-Dest": "document"}
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=_ANSWER_SECONDS)
    with contextlib.closing(connection):
        began = time.monotonic()
        connection.request("GET", f"/view?url={quote(url, safe='')}", headers=fields)
        response = connection.getresponse()
        body = response.read()
        return str(response.status), time.monotonic() - began, len(body)


# What holds up others

_ATTRIBUTES: Final = 700_000
_FOLLOWERS: Final = 300


def measure_others(hostile: Hostile) -> None:
    """Print how long others wait while one list is read, and who may follow a walk beside many others."""
    with (
        tempfile.TemporaryDirectory(prefix="wholefeed-hostile-") as folder,
        running_server(Path(folder)) as server,
    ):
        waits: list[float] = []
        over = threading.Event()
        watching = threading.Thread(target=watch, args=(server, over, waits))
        watching.start()
        status = send_list(server)
        over.set()
        watching.join()
        table = Table("", "longest s", first_width=70)
        table.row(f"/healthz beside a list of one tag: {status}", f"{max(waits):.2f}")
        one, other = (hostile.url(host, "stuck") for host in HOSTS[:2])
        for url in (one, other):
            page(server, url)
        outcomes, beside = asyncio.run(follow(server, one, other))
        table.row(f"{_FOLLOWERS} who follow one walk: {said(outcomes)}; who follows another: {beside}")


def watch(server: Server, over: threading.Event, waits: list[float]) -> None:
    while not over.is_set():
        began = time.monotonic()
        status_of(server, "/healthz")
        waits.append(time.monotonic() - began)
        over.wait(0.01)


def send_list(server: Server) -> str:
    attributes = " ".join(f'a{number}=""' for number in range(_ATTRIBUTES))
    body = f"<opml><body>&nbsp;<outline {attributes}/></body></opml>".encode()
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=_ANSWER_SECONDS)
    with contextlib.closing(connection):
        connection.request("POST", "/opml", body, {"Content-Type": "text/x-opml"})
        return str(connection.getresponse().status)


async def follow(server: Server, url: str, other: str) -> tuple[Counter[str], str]:
    """Follow one walk many times, and another once; return the answers' statuses."""
    writers: list[asyncio.StreamWriter] = []  # a connection is closed when its writer is garbage

    async def status(followed: str) -> str:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writers.append(writer)
        target = f"/events?url={quote(followed, safe='')}"
        writer.write(f"GET {target} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        return (await reader.readline()).split()[1].decode()

    try:
        outcomes = Counter([await status(url) for _ in range(_FOLLOWERS)])
        return outcomes, await status(other)
    finally:
        for writer in writers:
            writer.transport.abort()


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Measure the server's peak memory under hostile publishers.")
    parser.add_argument("--megabytes", type=float, default=31.9, help="size of a document (default 31.9)")
    parser.add_argument("--copies", type=int, default=4, help="hosts of each kind (default 4)")
    parser.add_argument("--seconds", type=float, default=120, help="how long to look on (default 120)")
    parser.add_argument(
        "--costly-megabytes", type=float, default=1.0, help="size of a document that costs much (default 1)"
    )
    parser.add_argument(
        "--body-megabytes", type=float, default=1.0, help="size of a body that nobody asked for (default 1)"
    )
    parser.add_argument("--listed", type=int, default=100, help="feeds with long heads (default 100)")
    parser.add_argument("--pages", type=int, default=20, help="pages at once of each kind (default 20)")
    return parser.parse_args()


def main() -> None:
    options = arguments()
    begin()
    measure_all(options.costly_megabytes)
    measure_reading(options.costly_megabytes)
    measure_sites()
    measure_bodies(int(options.body_megabytes * (1 << 20)))
    measure_floods()
    measure_lists(options.listed)
    with running_hostile(document_bytes=1 << 16) as hostile:
        measure_pages(hostile, options.pages)
        measure_others(hostile)
    over = threading.Event()
    with (
        tempfile.TemporaryDirectory(prefix="wholefeed-hostile-") as name,
        running_hostile(document_bytes=int(options.megabytes * (1 << 20))) as hostile,
        running_server(Path(name)) as server,
        ThreadPoolExecutor(2) as threads,
    ):
        expect("entries", server.whole(hostile.url(1, "innocent")).entries, _ENTRIES)
        print(f"peak memory before: {server.peak_bytes() / 1e6:.0f} MB")
        table = Table("", "answers", "median s", "longest s", "late", first_width=70)
        known, unknown = (Innocent(server, hostile, is_new=is_new) for is_new in (False, True))
        began = time.monotonic()
        reading = [threads.submit(each.read, over) for each in (known, unknown)]
        try:
            attack(server, hostile, options.copies, table)
            over.wait(max(0.0, options.seconds - (time.monotonic() - began)))
        finally:
            over.set()
        for each in reading:
            each.result()
        known.show(table, "innocent, stored")
        unknown.show(table, "innocent, new")
        peak_bytes = server.peak_bytes()
        print(f"peak memory: {peak_bytes / 1e6:.0f} MB, of {BOUND_BYTES / 1e6:.0f} MB that are stated")
    expect("memory within its bound", peak_bytes <= BOUND_BYTES, True)
    expect("stored feed", set(known.outcomes), {"200 complete"})


if __name__ == "__main__":
    main()
