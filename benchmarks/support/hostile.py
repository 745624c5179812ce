"""Publishers that mean harm, on loopback addresses of their own, in one process.

    with running_hostile(document_bytes=32 << 20) as hostile:
        hostile.url(3, "bomb")            # of the host 127.0.0.3

Documents are sent gzipped but badly compressed, so that they pass the limits for the wire and for the ratio
and cost the most. Each is numbered: a chain's documents differ.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import functools
import gzip
import sys
import zlib
from collections.abc import Iterator
from typing import Final

from benchmarks.support.child import running_child

HOSTS: Final = range(2, 34)
"""Last numbers of their addresses."""

WALK_DOCUMENTS: Final = 6
LINKS: Final = 5000

_SILENT_SECONDS: Final = 3600
_PIECE_BYTES: Final = 1 << 16
_BOMB_BYTES: Final = 1 << 26
_ATOM: Final = '<feed xmlns="http://www.w3.org/2005/Atom"><id>urn:x</id><title>t</title>'
_JSON: Final = '{"version":"https://jsonfeed.org/version/1.1","title":"x","items":[],"x":['
_ENTRY: Final = "<entry><id>urn:%d-%d</id><title>t</title><updated>2020-01-01T00:00:00Z</updated>%s</entry>"
_TEXT: Final = f"<content>{'Lorem ipsum dolor sit amet. ' * 100}</content>"

_UNITS: Final[dict[str, tuple[str, str, str]]] = {
    "depth": (_ATOM + "<a>" * 250, "<b/>", "</a>" * 250 + "</feed>"),
    "attributes": (_ATOM, "<a " + " ".join(f'b{n}=""' for n in range(255)) + "/>", "</feed>"),
    "namespaces": (_ATOM, f'<n:a xmlns:n="http://n.example/{"n" * 1000}"/>', "</feed>"),
    "tokens": (_ATOM, f'<entry><id>i</id><a b="{"x" * ((1 << 20) - 1)}"/></entry>', "</feed>"),
    "elements": (_ATOM, "<entry/>", "</feed>"),
    "one entry": (_ATOM + "<entry><id>i</id><content>", "x &amp; y ", "</content></entry></feed>"),
    "references": (_ATOM + "<entry><id>i</id><content>", "& &lt; ", "</content></entry></feed>"),
    "prefixes": (_ATOM, "<u:a/>", "</feed>"),
    "JSON": (_JSON, "0,", "0]}"),
}
"""Documents near a limit: beginning, repeated part, end."""

_HEAD_PREFIXES: Final = "abcdefghijklmnop"
_HEAD_ELEMENTS: Final = 18_000
"""Elements beside the entries; each needs all the namespaces where it stands alone."""

_STUCK: Final = f'{_ATOM}<link rel="prev-archive" href="/silence/0"/></feed>'.encode()
_PAGE: Final = (
    '<entry><id>urn:%d</id><title>t</title><link href="http://site.example/%d"/>'
    '<content type="html" xml:base="http://site.example/' + "long/" * 180 + '">%s</content></entry>'
)
_PAGE_ENTRIES: Final = 50
PAGES: Final = {
    "nested page": "&lt;div>" * 3277,
    "growing page": '&lt;a href="x">y&lt;/a>' * 900,
    "wide page": "&lt;ul>&lt;li>x" * 2900,
}
"""HTML in each entry of a feed, expensive on pages for people."""

KINDS: Final = ("bomb", *_UNITS, "drip", "endless", "silence", "links", "walk")


class Hostile:
    def __init__(self, port: int) -> None:
        self._port = port

    def url(self, host: int, kind: str, number: int = 0) -> str:
        """Return the URL of a feed; host 1 is innocent."""
        return f"http://127.0.0.{host}:{self._port}/{kind.replace(' ', '-')}/{number}"


@contextlib.contextmanager
def running_hostile(*, document_bytes: int) -> Iterator[Hostile]:
    with running_child(__name__, str(document_bytes)) as port:
        yield Hostile(port)


def long_head(number: int) -> bytes:
    """Return a document of 2 MB (20 KB gzipped) with a head of 8 MB once elements declare namespaces."""
    declared = "".join(f' xmlns:{name}="urn:{name}x"' for name in _HEAD_PREFIXES)
    element = "<a:a" + "".join(f' {name}:a=""' for name in _HEAD_PREFIXES[1:]) + "/>"
    begins = _ATOM.replace("<title>t<", f"<title>Costly {number}<").replace("<feed", f"<feed{declared}")
    link = f'<link href="http://site.example/{number}"/>'
    return f"{begins}{element * _HEAD_ELEMENTS}{link}{_ENTRY % (number, 0, '')}</feed>".encode()


def _gzipped(data: bytes) -> bytes:
    packer = zlib.compressobj(1, zlib.DEFLATED, 31, 9, zlib.Z_HUFFMAN_ONLY)
    return packer.compress(data) + packer.flush()


class _Server:
    def __init__(self, document_bytes: int) -> None:
        self._document_bytes = document_bytes
        self._bomb = zlib.compress(bytes(_BOMB_BYTES), 1, 31)
        self._units = functools.cache(self._repeated)
        self._bodies = functools.cache(self._entries)
        self._pages = functools.cache(_page)

    async def run(self) -> None:
        """Listen, print the port, and serve until standard input ends."""
        server = await asyncio.start_server(self._converse, "127.0.0.1", 0, backlog=256)
        port = server.sockets[0].getsockname()[1]
        hosts = [f"127.0.0.{number}" for number in HOSTS]
        others = await asyncio.start_server(self._converse, hosts, port, backlog=256)
        for kind in _UNITS:
            self._units(kind)
        for number in range(WALK_DOCUMENTS):
            self._bodies(number)
        print(port, flush=True)
        over = asyncio.Event()
        asyncio.get_running_loop().add_reader(sys.stdin, over.set)
        await over.wait()
        server.close()
        others.close()

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, EOFError, asyncio.CancelledError):
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                _, kind, number = head.split(b" ", 2)[1].decode().split("/")
                await self._answer(writer, kind.replace("-", " "), int(number))
        writer.close()

    async def _answer(self, writer: asyncio.StreamWriter, kind: str, number: int) -> None:
        match kind:
            case "silence":
                await asyncio.sleep(_SILENT_SECONDS)
            case "drip":
                await _send_for_ever(writer, b"<!-- drip -->" * 2000, 1.0)
            case "endless":
                await _send_for_ever(writer, b"<entry><id>i</id></entry>" * 2000, 0.005)
            case "bomb":
                await self._send(writer, self._bomb, coding="gzip")
            case "links":
                await self._send(writer, self._chain(number, LINKS, "links"))
            case "walk":
                await self._send(writer, self._bodies(number), coding="gzip")
            case "head":
                await self._send(writer, gzip.compress(long_head(number), 1), coding="gzip")
            case "stuck":
                await self._send(writer, _STUCK)
            case "innocent":
                await self._send(writer, self._chain(number % 1000, 3, "innocent"))
            case _:
                body = self._pages(kind) if kind in PAGES else self._units(kind)
                await self._send(writer, body, coding="gzip")

    async def _send(self, writer: asyncio.StreamWriter, body: bytes, *, coding: str = "identity") -> None:
        head = f"HTTP/1.1 200 OK\r\nContent-Encoding: {coding}\r\nContent-Length: {len(body)}\r\n\r\n"
        writer.write(head.encode())
        for at in range(0, len(body), _PIECE_BYTES):
            writer.write(body[at : at + _PIECE_BYTES])
            await writer.drain()

    def _repeated(self, kind: str) -> bytes:
        begins, unit, ends = _UNITS[kind]
        times = max(1, (self._document_bytes - len(begins) - len(ends)) // len(unit))
        return _gzipped(f"{begins}{unit * times}{ends}".encode())

    def _entries(self, number: int) -> bytes:
        times = max(1, self._document_bytes // (len(_TEXT) + 100))
        entries = "".join(_ENTRY % (number, place, _TEXT) for place in range(times))
        return _gzipped(f"{_ATOM}{_older('walk', number, WALK_DOCUMENTS)}{entries}</feed>".encode())

    def _chain(self, number: int, documents: int, kind: str) -> bytes:
        entry = _ENTRY % (number, 0, "<content>text</content>")
        return f"{_ATOM}{_older(kind, number, documents)}{entry}</feed>".encode()


def _page(kind: str) -> bytes:
    entries = "".join(_PAGE % (number, number, PAGES[kind]) for number in range(_PAGE_ENTRIES))
    return _gzipped(f"{_ATOM}{entries}</feed>".encode())


def _older(kind: str, number: int, documents: int) -> str:
    return f'<link rel="prev-archive" href="/{kind}/{number + 1}"/>' if number + 1 < documents else ""


async def _send_for_ever(writer: asyncio.StreamWriter, piece: bytes, pause_seconds: float) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n" + _ATOM.encode())
    while True:
        writer.write(piece)
        await writer.drain()
        await asyncio.sleep(pause_seconds)


def _main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("document_bytes", type=int)
    with contextlib.suppress(KeyboardInterrupt):  # it goes to the whole group; the benchmark says it
        asyncio.run(_Server(parser.parse_args().document_bytes).run())


if __name__ == "__main__":
    _main()
