"""Cost of reading hostile texts, in seconds for each megabyte, by expensive kinds.

measure_reading(1.0)        # a row for each kind, read in this process at that size and at twice that

A second figure of about twice the first shows quadratic time.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Final, NamedTuple

from benchmarks.support.report import Table
from wholefeed.core.jobs import Sender, read_document
from wholefeed.core.listing.page_reading import read_page
from wholefeed.core.opml import read_opml
from wholefeed.core.parse.discovery import discover
from wholefeed.core.parse.limits import ParseError
from wholefeed.fetch.robots import own_rules

_URL: Final = "https://a.example/feed"
_LONG: Final = f"https://a.example/{'a/' * 880}"
_ODD: Final = "\u00e9"
_RSS: Final = '<rss version="2.0"><channel><title>x</title>'
_ATOM: Final = f'<feed xmlns="http://www.w3.org/2005/Atom" xml:base="{_LONG}"><id>urn:x</id><title>x</title>'


def _page(body: bytes) -> None:
    read_page(body, _URL, "text/html")
    discover(body, _URL, "text/html")


def _robots(body: bytes) -> None:
    own_rules(body[: 500 * 1024].decode(), "wholefeed")


def _feed(body: bytes) -> None:
    sender = Sender(url=_URL, media_type="application/xml", fetched_at=0.0)
    read_document(body, sender, max_depth=200, is_subscription=True)


class Kind(NamedTuple):
    """A hostile text: beginning, repeated numbered part, end, and its parser."""

    read: Callable[[bytes], object]
    begins: str
    unit: Callable[[int], str]
    ends: str = ""

    def document(self, size_bytes: int) -> bytes:
        return b"".join(self._pieces(size_bytes))

    def _pieces(self, size_bytes: int) -> Iterator[bytes]:
        yield self.begins.encode()
        left, number = size_bytes - len(self.begins) - len(self.ends), 0
        while left > 0:
            piece = self.unit(number).encode()
            left -= len(piece)
            number += 1
            yield piece
        yield self.ends.encode()


KINDS: Final = {
    "page of <a<a": Kind(_page, "", lambda _: "<a"),
    "page of quotes": Kind(_page, "", lambda _: "<a'"),
    "page of signs": Kind(_page, "", lambda _: f"<p {'= ' * 299}>"),
    "page of links": Kind(_page, "", lambda n: f"<a href=/{n}>x</a>"),
    "page of links in headings in links": Kind(_page, "", lambda _: "<h2><a href=x>"),
    "page of links in svg in links": Kind(_page, "", lambda _: "<svg><a href=x>"),
    "page of links far below": Kind(_page, "<ul><li>" + "<div>" * 1900, lambda n: f"<a href=/{n}>x</a>"),
    "page of links to other hosts": Kind(_page, "", lambda n: f"<a href=//{_ODD}{n}.example>x</a>"),
    "page of links that end in slashes": Kind(_page, "", lambda n: f"<a href=/{n}{'/' * 900}>x</a>"),
    "page of links below a long base": Kind(
        _page, f"<base href=/{_ODD * 900}/>", lambda n: f"<a href=?{n}>x</a>"
    ),
    "page of pages": Kind(_page, "", lambda n: f"<a href=/?page={n}&p={n}>x</a>"),
    "page of dates": Kind(_page, "", lambda _: "<p>4 March 2011</p>"),
    "page of texts": Kind(_page, "", lambda _: "x<br>"),
    "page of headings": Kind(_page, "", lambda _: "<h2>2011</h2>"),
    "robots.txt of names, then rules": Kind(
        _robots, "", lambda n: "User-agent: a\n" if n < 30_000 else "Disallow: /\n"
    ),
    "robots.txt of lines": Kind(_robots, "User-agent: *\n", lambda _: "\n"),
    "feed of surrogates": Kind(_feed, _RSS, lambda _: "<item>&#55357;&#56832;x</item>", "</channel></rss>"),
    "feed with a subset": Kind(_feed, "<!DOCTYPE rss [", lambda _: '<!ENTITY nbsp "&#160;">', f"]>{_RSS}"),
    "JSON of quotes": Kind(
        _feed, '{"version": "https://jsonfeed.org/version/1.1", "items": [', lambda _: '\\"'
    ),
    "JSON with commas": Kind(
        _feed, '{"version": "https://jsonfeed.org/version/1.1", "items": [', lambda _: ",\n"
    ),
    "list of <": Kind(read_opml, "<opml><body>", lambda _: "<", "</body></opml>"),
    "list of tags": Kind(read_opml, "<opml><body>&nbsp;", lambda _: "<a></b>", "</body></opml>"),
    "head of links": Kind(_feed, _RSS, lambda _: '<link href="?x"/>', "</channel></rss>"),
    "links below a long xml:base": Kind(
        _feed, _ATOM + "<entry><id>1</id>", lambda _: '<link href="?x"/>', "</entry></feed>"
    ),
    "repair of <": Kind(_feed, _RSS, lambda _: "<", "</channel></rss>"),
    "repair of crossed tags": Kind(_feed, _RSS, lambda _: "<a><b></a></b>", "</channel></rss>"),
}


def measure_reading(megabytes: float) -> None:
    """Print a row for each kind: seconds for a megabyte at that size, and at twice that size."""
    table = Table("", "s/MB", "twice", first_width=56)
    for name, kind in KINDS.items():
        cells = [f"{_seconds(kind, int(factor * megabytes * 1e6)):.2f}" for factor in (1, 2)]
        table.row(name, *cells)


def _seconds(kind: Kind, size_bytes: int) -> float:
    body = kind.document(size_bytes)
    began = time.process_time()
    with suppress(ParseError):
        kind.read(body)
    return (time.process_time() - began) / (len(body) / 1e6)
