"""Which feed an HTML page announces: `<link rel="alternate">` (WHATWG HTML, 4.6.7.1).

    found = discover(body, "https://example.org/", "text/html; charset=utf-8")
    best = preferred(found)

Pages are searched for tags alone; no tree is made of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from html.parser import HTMLParser
from itertools import islice
from typing import Final, NamedTuple

from wholefeed.core.parse.encodings import UTF8, codec_of
from wholefeed.core.parse.limits import ParseError
from wholefeed.core.text.urls import is_http, resolve_or_empty


class Alternate(NamedTuple):
    """A feed that a page announces."""

    media_type: str
    url: str
    title: str = ""
    """What the page calls it."""


def discover(body: bytes, url: str, media_type: str) -> list[Alternate]:
    """Return the feeds that a page announces, as listed; `<base href>` is minded.

    Reads the first 512 KiB; never raises.
    """
    finder = _LinkFinder(url)
    page = body[:_SEARCHED_BYTES].decode(_charset(media_type), "replace")
    for tag in islice(_tags(page), _MAX_TAGS):
        with suppress(AssertionError):  # html.parser gives up on what is broken beyond its measure
            finder.feed(tag)
    return finder.found


def preferred(found: Sequence[Alternate]) -> Alternate | None:
    """Return the one to take: by `_FEED_TYPES`, the first listed of its type; None when there is none."""
    return min(found, key=lambda alternate: _FEED_TYPES[alternate.media_type], default=None)


_FEED_TYPES: Final = {
    "application/atom+xml": 0,
    "application/rss+xml": 1,
    "application/rdf+xml": 2,
    "application/feed+json": 3,
}
"""Media types of feeds and their order of preference."""


def is_html(body: bytes, media_type: str) -> bool:
    """Whether an answer that is no feed is a page to look for feeds in."""
    essence = media_type.partition(";")[0].strip().lower()
    return essence in ("text/html", "application/xhtml+xml") or b"<html" in body[:4096].lower()


_SEARCHED_BYTES: Final = 512 * 1024
_MAX_TAGS: Final = 1000
_MAX_TAG_CHARACTERS: Final = 8192
_HIDING: Final = ("script", "style", "textarea", "title")
_BEGINS: Final = re.compile(rf"<(!--|(?:link|base|{'|'.join(_HIDING)})(?=[\s/>]))", re.IGNORECASE)
_ENDS: Final = {
    "!--": re.compile("-->"),
    **{name: re.compile(f"</{name}", re.IGNORECASE) for name in _HIDING},
}
_TAG: Final = re.compile(r"<(?:[^\"'>]|\"[^\"]*\"|'[^']*')*+>")


def _tags(page: str) -> Iterator[str]:
    """Yield the tags that may say something, but for those in comments and scripts.

    The parser of the standard library sees these alone: it takes a second for half a megabyte of others.
    """
    position = 0
    while (begun := _BEGINS.search(page, position)) is not None:
        position, name = begun.end(), begun[1].lower()
        if name in ("link", "base"):
            limit = begun.start() + _MAX_TAG_CHARACTERS
            tag = _TAG.match(page, begun.start(), limit)
            position = limit if tag is None else tag.end()
            if tag is not None:
                yield tag[0]
            continue
        end = _ENDS[name].search(page, position)
        if end is None:
            return
        position = end.end()


def _charset(media_type: str) -> str:
    match = re.search(r"charset\s*=\s*[\"']?([\w.:-]+)", media_type, re.IGNORECASE)
    try:
        return (codec_of(match[1]) if match else "") or UTF8
    except ParseError:
        return UTF8


_MAX_TITLE_CHARACTERS: Final = 200


class _LinkFinder(HTMLParser):
    def __init__(self, url: str) -> None:
        super().__init__()
        self.found: list[Alternate] = []
        self._base = url
        self._has_base = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if tag == "base" and not self._has_base and given.get("href"):
            self._has_base = True
            self._base = self._resolved(given["href"]) or self._base
        if tag != "link" or "alternate" not in given.get("rel", "").lower().split():
            return
        media_type = given.get("type", "").partition(";")[0].strip().lower()
        target = self._resolved(given.get("href", ""))
        if media_type in _FEED_TYPES and target:
            title = " ".join(given.get("title", "").split())[:_MAX_TITLE_CHARACTERS]
            self.found.append(Alternate(media_type, target, title))

    def _resolved(self, reference: str) -> str:
        target = resolve_or_empty(self._base, reference) if reference.strip() else ""
        return target if is_http(target) else ""
