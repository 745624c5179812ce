"""Documents for the parser, made from what matters to a test."""

from __future__ import annotations

from wholefeed.core.model import ATOM_NS, FH_NS, Entry, FeedDocument
from wholefeed.core.parse.documents import parse

URL = "http://example.org/blog/feed"


def atom(*inside: str, attributes: str = "", prolog: str = "") -> bytes:
    """An Atom document: the children of its feed element, and that element's further attributes."""
    return f'{prolog}<feed xmlns="{ATOM_NS}" xmlns:fh="{FH_NS}"{attributes}>{"".join(inside)}</feed>'.encode()


def rss(*inside: str, attributes: str = "", channel: str = "", prolog: str = "") -> bytes:
    """An RSS document: the children of its channel, and further attributes."""
    root = f'<rss version="2.0" xmlns:atom="{ATOM_NS}" xmlns:fh="{FH_NS}"{attributes}>'
    return f"{prolog}{root}<channel{channel}>{''.join(inside)}</channel></rss>".encode()


def slices(document: FeedDocument) -> list[bytes]:
    """The entries as the publisher wrote them."""
    return [document.text[entry.start : entry.end] for entry in document.entries]


def only(body: bytes) -> Entry:
    """The one entry of a document."""
    (entry,) = parse(body, URL).entries
    return entry


def named(document: FeedDocument) -> list[tuple[object, float | None, float | None]]:
    """What identifies each entry, or can do so, and its instants."""
    return [(entry.keys or entry.identity, entry.updated_at, entry.order_at) for entry in document.entries]
