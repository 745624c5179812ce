"""Documents for the parser, with defaults for everything a test does not name."""

from __future__ import annotations

from wholefeed.core.model import ATOM_NS, FH_NS, Entry, FeedDocument
from wholefeed.core.parse.documents import parse

URL = "http://example.org/blog/feed"


def atom(*inside: str, attributes: str = "", prolog: str = "") -> bytes:
    return f'{prolog}<feed xmlns="{ATOM_NS}" xmlns:fh="{FH_NS}"{attributes}>{"".join(inside)}</feed>'.encode()


def rss(*inside: str, attributes: str = "", channel: str = "", prolog: str = "") -> bytes:
    root = f'<rss version="2.0" xmlns:atom="{ATOM_NS}" xmlns:fh="{FH_NS}"{attributes}>'
    return f"{prolog}{root}<channel{channel}>{''.join(inside)}</channel></rss>".encode()


def slices(document: FeedDocument) -> list[bytes]:
    return [document.text[entry.start : entry.end] for entry in document.entries]


def only(body: bytes) -> Entry:
    (entry,) = parse(body, URL).entries
    return entry


def named(document: FeedDocument) -> list[tuple[object, float | None, float | None]]:
    return [(entry.keys or entry.identity, entry.updated_at, entry.order_at) for entry in document.entries]
