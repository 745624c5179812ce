"""Documents that are made to cost much, by their row of docs/faults.md, and their publisher.

with publishing(documents(1_000_000)) as url:
    url("84 crossed end tags")
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Final
from urllib.parse import quote, unquote

_RSS: Final = '<rss version="2.0"><channel><title>x</title><item>'
_ODD_RSS: Final = "<RSS><Channel>"
_ATOM: Final = '<feed xmlns="http://www.w3.org/2005/Atom" xmlns:n="urn:%s"><id>urn:x</id><title>x</title>' % (
    "n" * 1000
)
_JSON: Final = '{"version":"https://jsonfeed.org/version/1.1","items":['
_MOST_ENTRIES: Final = 249_000
_MOST_VALUES: Final = 1_990_000

_Made = Callable[[int], str]

_UNITS: Final[Mapping[str, tuple[str, _Made, str]]] = {
    "84 undeclared prefixes": (_RSS, lambda n: f"<p{n}:x/><title>t</title>", ""),
    "84 crossed end tags": (_RSS, lambda _: "<a>some text<b></a></b>", ""),
    "84 head with xml:base": (_ATOM, lambda n: f'<link xml:base="b{n}/" href="x"/>', "</feed>"),
    "84 references": (_RSS + "<title>", lambda _: "&nbsp;&", ""),
    "84 items in another case": (_ODD_RSS, lambda n: f"<Item><GUID>{n}</GUID></Item>", "</Channel></RSS>"),
    "84 entries in RSS": (
        _ODD_RSS,
        lambda n: f'<entry><id>{n}</id><link href="/{n}"/></entry>',
        "</Channel></RSS>",
    ),
    "84 misspelt namespaces": (
        _ATOM,
        lambda n: f'<entry xmlns="https://www.w3.org/2005/Atom"><id>{n}</id></entry>',
        "</feed>",
    ),
    "149 entries that are not closed": (_ATOM, lambda n: f"<entry><id>{n}</id><b><b>", "</feed>"),
    "87 one item": (_JSON + '{"id":1,"x":[0', lambda _: ",1", "]}]}"),
    "87 one text": (
        _RSS + "<guid>1</guid><description>",
        lambda _: "href=x ",
        "</description></item></channel></rss>",
    ),
    "87 page of HTML": ("<html><body>", lambda _: "<p a=b>", "</body></html>"),
    "89 items of two bytes": (_JSON + "{}", lambda _: ",{}", "]}"),
    "89 small entries": (_ATOM, lambda n: f"<entry><id>{n}</id></entry>", "</feed>"),
    "92 attributes": (
        _ATOM + "<entry><id>1</id>",
        lambda _: "<a " + " ".join(f'n:a{n}=""' for n in range(250)) + "/>",
        "</entry></feed>",
    ),
}
"""Beginning, numbered repeated part, and end of each."""


def documents(size_bytes: int) -> dict[str, bytes]:
    """Return the documents, of about that size unless another limit comes first."""
    return {name: _document(size_bytes, *parts) for name, parts in _UNITS.items()}


def _document(size_bytes: int, begins: str, unit: _Made, ends: str) -> bytes:
    most = (
        _MOST_VALUES if '"x"' in begins else _MOST_ENTRIES if begins in (_JSON + "{}", _ATOM) else size_bytes
    )
    pieces, length = [begins], len(begins) + len(ends)
    for number in range(most):
        pieces.append(unit(number))
        length += len(pieces[-1])
        if length >= size_bytes:
            break
    return "".join([*pieces, ends]).encode()


@contextlib.contextmanager
def publishing(bodies: Mapping[str, bytes]) -> Iterator[Callable[[str], str]]:
    """Publish documents on loopback; yield a function from name to URL."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            name = unquote(self.path[1:])
            body = bodies[name]
            self.send_response(200)
            self.send_header("Content-Type", "text/html" if "HTML" in name else "application/octet-stream")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    serving = Thread(target=server.serve_forever, daemon=True)
    serving.start()
    try:
        yield lambda name: f"http://127.0.0.1:{server.server_address[1]}/{quote(name)}"
    finally:
        server.shutdown()
        server.server_close()
        serving.join()
