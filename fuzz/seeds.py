"""The fuzzer's first inputs: small ones of every kind, and words it would not find by itself."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from typing import Final

from fuzz.wire import CODERS
from tests.feeds import Item, an_item, atom, atom_03, json_feed, rdf, rss
from wholefeed.core.model import TOMBSTONE_NS

_HELD: Final = (an_item("b", 3, "x &amp; y"), Item("a", None, "<![CDATA[<b>1</b>]]>"))
_HEAD: Final = (
    f'<at:deleted-entry xmlns:at="{TOMBSTONE_NS}" ref="urn:z" when="2024-01-01T00:00:00Z"/>'
    "<p:q xmlns:p='urn:p' p:r=\"s\"/><!-- c --><?pi x?>"
)
_ENTRY: Final = (
    "<entry xml:base='deep/' xml:lang='fr'><id/><link href='x'/><title type='xhtml'>"
    "<div xmlns='http://www.w3.org/1999/xhtml'>é<br/></div></title></entry>"
)


def _feeds() -> list[bytes]:
    whole = [
        make(*_HELD, updated=3, prev_archive="/1", current="/feed", archive=True, extra=_HEAD)
        for make in (atom, atom_03, rdf, rss)
    ]
    text = whole[0].decode()
    old = b"<rss version='0.91'><channel><title>t</title><item><link>http://a.test/</link></item></channel></rss>"
    return [
        *whole,
        rss(an_item("c", 1), updated=1, complete=True, self="/feed", next="?page=2"),
        text.replace("<entry>", f"{_ENTRY}<entry>", 1).encode(),
        text.replace("<feed ", "<feed xml:lang='de' xml:base='/a/b' xmlns:dc='urn:other' ").encode(),
        text.replace('encoding="utf-8"', 'encoding="utf-16"').encode("utf-16"),
        b"Content-Type: application/atom+xml; charset=iso-8859-1\n"
        + text.replace("text of", "é").encode("latin-1"),
        b"<!DOCTYPE rss PUBLIC '-//Netscape Communications//DTD RSS 0.91//EN' 'http://a.test/rss.dtd'>" + old,
        b"<html><head><link rel='alternate'></head></html>",
        text[: len(text) // 2].encode(),
    ]


def _broken_feeds() -> list[bytes]:
    text = rss(an_item("a", 1, "caf&eacute; & <br> <p>x"), an_item("b", 2, "<i>y</b> &#0; &#xFFFF;"))
    return [
        text,
        b"  \n" + text,
        text.replace(b"</item>", b"", 1),
        text.replace(b"<title>", b"<title size=3 checked>"),
        text.replace(b"<guid", b"<q:guid"),
        text[:-40],
        text + b"<junk/>",
        atom(an_item("a", 1, "a < b && c ]]> <!-- x -- y -->"), extra="<p:q a='&nbsp;'/>"),
        *_feeds()[:4],
    ]


def _json() -> list[bytes]:
    author = [{"name": "A"}]
    return [
        json_feed(*_HELD, home_page_url="http://a.test/", next_url="?2", language="de", authors=author),
        json_feed(an_item("a"), version="1", author={"name": "A"}, _wholefeed={"identities": "00" * 16}),
        b'{"version":"https://jsonfeed.org/version/1.1","items":[{"url":"http://a.test/","title":"\\ud800"},{"id":1e400},7]}',
    ]


def _pumped() -> list[bytes]:
    return [
        b"<rss version='2.0'><channel>|<item><title>a</title></item>|</channel></rss>",
        b"<feed xmlns='http://www.w3.org/2005/Atom'>|<entry><id>|",
        b"<rss><channel><item><description>|<b <i>|</description></item></channel></rss>",
        b"<rss a='|&amp;|'><channel><item>&|",
        b'{"version":"https://jsonfeed.org/version/1.1","items":[|{"id":[]},|{}]}',
        b"|<!-- -|<rss>",
        b"<rss><channel><item>|<![CDATA[|</item>",
    ]


def _coded() -> list[bytes]:
    text = b"a feed of words, of words and of words" * 3
    made = [bytes([number, 8]) + coder(text) for number, coder in enumerate(CODERS.values())]
    return [*made, made[1] + made[1][2:], made[4] + made[4][2:], b"\x02\x03" + zlib.compress(text, wbits=-15)]


def _lines(*texts: str) -> list[bytes]:
    return [text.encode() for text in texts]


SEEDS: Final[dict[str, Callable[[], list[bytes]]]] = {
    "parser": _feeds,
    "grammar": lambda: [
        bytes((7 * place * step + step) % 256 for place in range(300)) for step in range(1, 9)
    ],
    "repair": _broken_feeds,
    "broken": _broken_feeds,
    "json": _json,
    "pumped": _pumped,
    "decoder": _coded,
    "url": lambda: _lines(
        "HTTP://user:pw@Example.org:080/a/../b?c=%7e#d\n../e?f g",
        "https://bücher.test./%zz\n//[::1]:8080/\\x",
        "http://[::ffff:1.2.3.4]/\nhttp:g",
        "http://0x7f.1/\n?y#s",
        "https://a_b.test:443\nmailto:a@b",
        "http://127.0.0.1%2f@x\nhttp:////x",
    ),
    "date": lambda: _lines(
        "2003-12-13T18:30:02.25+01:00",
        "Sat, 13 Dec 2003 18:30:02 GMT",
        "13-Dec-03 6:30 PM EST (remark)",
        "Dec 13, 2003",
        "Sat Dec 13 18:30:02 2003",
        "20031213T183002Z",
        "2003-12-13 24:00:00 -0930",
    ),
    "link": lambda: _lines(
        '<../2003/11>; rel="prev-archive current"; type="application/atom+xml; x=y", </>; rel=next',
        '<x>; anchor="#a"; rel*=utf-8\'en\'%6eext; title="a\\"b"\n<y>; rel=http://www.iana.org/assignments/relation/last',
    ),
    "freshness": lambda: _lines(
        'Cache-Control: max-age=60, s-maxage="30", no-cache="a, b", private\nAge: 5'
        "\nDate: Sat, 13 Dec 2003 18:30:02 GMT",
        "Expires: 0\nRetry-After: -1\n120\nSat, 13 Dec 2103 18:30:02 GMT\ngzip, identity",
    ),
    "query": lambda: _lines(
        "url=http%3A%2F%2Fa.test%2F&limit=3&since=2024-01-01T00:00:00Z&wait=1.5",
        "url=http://a.test/?x=1&y=2&limit=5&amp;wait=1",
        "https:/a.test/feed?x=%2F&y",
        "http%3A%2F%2Fa.test%2Ffeed",
    ),
}

_XML: Final = (
    *(
        "<feed xmlns='http://www.w3.org/2005/Atom'>",
        "</feed>",
        "<entry>",
        "</entry>",
        "<entry/>",
        "<id>",
        "</id>",
    ),
    *(
        "<rss version='2.0'>",
        "</rss>",
        "<channel>",
        "</channel>",
        "<item>",
        "</item>",
        "<item/>",
        "<guid>",
        "</guid>",
    ),
    *("<title>", "</title>", "<title type='html'>", "<description>", "</description>", "<content:encoded>"),
    *(
        "<link>",
        "</link>",
        "<link rel='prev-archive' href='/1'/>",
        "<author><name>",
        "</name></author>",
        "<rights>",
    ),
    *(
        "<updated>",
        "</updated>",
        "<pubDate>",
        "<updated>2024-01-01T00:00:00Z</updated>",
        "<source>",
        "</source>",
    ),
    *("<rdf:RDF xmlns:rdf='http://www.w3.org/1999/02/22-rdf-syntax-ns#'", " rdf:about='x'", "</rdf:RDF>"),
    *(
        " xmlns='http://purl.org/rss/1.0/'",
        " xmlns=''",
        " xmlns:p='urn:p'",
        " xmlns:dc='urn:x'",
        "<p:q>",
        "</p:q>",
    ),
    *(
        " xml:lang='en'",
        " xml:base='a/'",
        " xml:base='http://b.test/'",
        " href='c'",
        " type='xhtml'",
        ' a="&quot;"',
    ),
    *(
        "<![CDATA[",
        "]]>",
        "<!--",
        "-->",
        "--",
        "<?x ",
        "?>",
        "<?xml version='1.0' encoding='utf-8'?>",
        "<!DOCTYPE rss>",
    ),
    *(
        "&amp;",
        "&lt;",
        "&#38;",
        "&#x3c;",
        "&nbsp;",
        "&#0;",
        "<br>",
        "<br/>",
        "<fh:complete/>",
        "<fh:archive/>",
    ),
    *(
        "Content-Type: application/atom+xml; charset=",
        "utf-16",
        "windows-1252",
        "\ufeff",
        "\ufffe",
        "\x1f",
        "|",
    ),
)
_JSON: Final = (
    *(
        '"version":"https://jsonfeed.org/version/1.1"',
        '"items":[',
        '"id":',
        '"url":',
        '"authors":[{"name":"a"}]',
    ),
    *(
        '"language":"de"',
        '"date_modified":"2024-01-01T00:00:00Z"',
        '"_wholefeed":{"identities":"',
        '"author":{}',
    ),
    *("\\ud800", "\\u0000", "null", "1e400", "{}", "[]", "},{", '":"', '"next_url":'),
)
_URL: Final = (
    "http://",
    "https:",
    "//",
    "%2e%2e/",
    "/../",
    "@",
    ":80",
    "[::1]",
    "xn--",
    "%00",
    "\u3002",
    "0x7f",
    "\n",
)
_DATE: Final = (
    "T",
    "Z",
    "+01:00",
    "Sat, ",
    " Dec ",
    "GMT",
    " PM",
    "24:00",
    ":60",
    "9999",
    "0001",
    "-00:00",
    "(x)",
)
_HTTP: Final = (
    *(
        "rel=",
        "rel*=utf-8''",
        "prev-archive",
        "anchor=",
        ">; ",
        ", <",
        "type=",
        "max-age=",
        "s-maxage=",
        "no-cache",
    ),
    *("Cache-Control: ", "Expires: ", "Age: ", "Date: ", "no-store", 'private="', '\\"', "Retry-After: "),
    *("url=", "&amp;", "wait=", "limit=", "since=", "%3A%2F%2F", "://", "http:/", "token=", "1e9", "nan"),
)

WORDS: Final[dict[str, Sequence[str]]] = {
    **dict.fromkeys(("parser", "repair", "broken", "pumped"), _XML),
    "json": _JSON,
    "url": _URL,
    "date": _DATE,
    **dict.fromkeys(("link", "freshness", "query"), (*_HTTP, *_URL, *_DATE)),
}
"""By harness; the decoder's codings have none."""
