"""Documents for workers: of every family, whole and in need of repair, and a slow one."""

from __future__ import annotations

from tests.feeds import an_item, atom, atom_03, json_feed, rdf, rss
from wholefeed.core.jobs import Sender

TOMBSTONE = (
    '<at:deleted-entry xmlns:at="http://purl.org/atompub/tombstones/1.0" ref="urn:z" '
    'when="2024-01-01T00:00:00Z"/>'
)
ITEMS = (an_item("b", 3, "x &amp; y"), an_item("c", None), an_item("a", 5, "<![CDATA[<b>1</b>]]>"))

BODIES = {
    "atom": atom(*ITEMS, prev_archive="/1", extra=TOMBSTONE),
    "atom 0.3": atom_03(*ITEMS),
    "rss": rss(*ITEMS, prev_archive="/1", current="/feed"),
    "rdf": rdf(*ITEMS),
    "json": json_feed(*ITEMS, next_url="/2"),
    "empty": atom(complete=True),
    "repaired": rss(an_item("a", 1, "caf&eacute; & <br>"), an_item("b", 2, "<i>y</b> &#0;")),
    "cut": atom(*ITEMS)[:-100],
    "latin": atom(an_item("a", 1, "é")).replace("é".encode(), b"\xe9"),
    "large": atom(*(an_item(f"e{n}", n, "word " * 200) for n in range(200))),
}


def a_sender(name: str = "", **facts: object) -> Sender:
    media_type = "application/feed+json" if name == "json" else "application/xml"
    own: dict[str, object] = {
        "url": "http://example.org/feed",
        "media_type": media_type,
        "links": ('</h>; rel="next-archive"',),
        "fetched_at": 1.8e9,
    }
    return Sender(**(own | facts))  # type: ignore[arg-type]


def long_work(mebibytes: int = 4) -> bytes:
    """A document of very many entries: seconds of work for each few MiB."""
    entry = b"<entry><id>urn:%d</id><title/><updated>2020-01-01T00:00:00Z</updated></entry>"
    count = (mebibytes << 20) // (len(entry) + 4)
    head = b'<feed xmlns="http://www.w3.org/2005/Atom"><id>u</id>'
    return head + b"".join(entry % number for number in range(count)) + b"</feed>"
