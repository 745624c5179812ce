"""Where an HTML page leads: to the feeds that it announces, or to the URL that it refreshes to.

    found = discover(body, "https://example.org/", "text/html; charset=utf-8")
    posts, comments = in_order(found)
    refresh_target(body, "https://example.org/old.xml", "text/html")    # "https://example.org/new.xml"

`<link rel="alternate">` is WHATWG HTML, 4.6.7.1; `<meta http-equiv="refresh">` is 4.2.5.3. Pages are searched
for tags alone; no tree is made of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from html.parser import HTMLParser
from itertools import islice
from typing import Final, NamedTuple
from urllib.parse import unquote

from wholefeed.core.parse.encodings import UTF8, codec_of
from wholefeed.core.text.urls import (
    MAX_URL_CHARACTERS,
    is_http,
    resolve_or_empty,
    same_document,
    without_feed_scheme,
)

# The feeds that a page announces


class Alternate(NamedTuple):
    """A feed that a page announces."""

    media_type: str
    url: str
    title: str = ""
    """The name that the page gives it."""


def discover(body: bytes, url: str, media_type: str) -> list[Alternate]:
    """Return the feeds that a page announces, each URL once, as listed; `<base href>` is minded.

    Reads the first 512 KiB; never raises.
    """
    return _search(_text(body, media_type), url).feeds()


def in_order(found: Sequence[Alternate]) -> tuple[list[Alternate], list[Alternate]]:
    """Return the feeds of posts and those of comments, each in order of preference.

    The order is that of `_FEED_TYPES`, then the page's own. A feed is of comments if its title, path and
    query say so more often than another feed's do: a site may bear the word in its name, or a folder.
    """
    ranked = sorted(found, key=lambda alternate: _FEED_TYPES[alternate.media_type])
    counts = list(map(_count_comments, ranked))
    usual = min(counts, default=0)
    posts = [each for each, count in zip(ranked, counts, strict=True) if count == usual]
    return posts, [each for each, count in zip(ranked, counts, strict=True) if count > usual]


def _count_comments(alternate: Alternate) -> int:
    path = alternate.url.partition("://")[2].partition("/")[2]
    return len(_COMMENTS.findall(alternate.title)) + len(_COMMENTS_URL.findall(unquote(path)))


_COMMENTS_URL: Final = re.compile(r"(?<![a-z])comments?(?![a-z])|commentsrss|rsscomments", re.IGNORECASE)
"""As `/comments/feed/` and `feed=comments-rss2` of WordPress, `/feeds/comments/default` of Blogger."""
_COMMENTS: Final = re.compile(
    r"\b(?:comments?|commentaires?|coment[aá]rios?|commenti|comentarii|kommenta\w*|koment[aá]\w*|kommentti\w*"
    r"|reacties|opmerkingen|replies|yorum\w*|hozzász\w*)\b"
    r"|комментар|коментар|σχόλι|תגובות|تعليق|コメント|评论|評論|留言|回應|댓글|bình luận",
    re.IGNORECASE,
)
"""The word for comments in the languages that blogs' software speaks."""

_FEED_TYPES: Final = {
    "application/atom+xml": 0,
    "application/rss+xml": 1,
    "application/rdf+xml": 2,
    "application/feed+json": 3,
    "text/xml": 4,
    "application/xml": 4,
    "application/json": 5,
}
"""Media types of feeds and their order of preference; those of any XML or JSON last."""
_JSON: Final = "application/json"
_FEED_RELATIONS: Final = frozenset({"alternate", "feed"})


# The URL that a page refreshes to


def refresh_target(body: bytes, url: str, media_type: str, field: str = "") -> str:
    """Return the http(s) URL that a page sends browsers to; empty where it is to be read itself.

    A page is not followed that waits for more than `MAX_REFRESH_SECONDS`, that leads to itself, or that
    announces feeds and leads to none of them. A feed is no page, whatever its type says. Never raises.

    Args:
        body: Of the answer, without content coding.
        url: Of the answer, after redirects.
        media_type: Content-Type as sent.
        field: The value of its header field Refresh, which counts before the page's own.
    """
    if not (field or is_html(body, media_type)):
        return ""
    text = _text(body, media_type)
    if not (field or "refresh" in text.lower()):  # hardly any has it
        return ""
    if text.lstrip(" \t\r\n\ufeff").startswith("{") or _FEED_ROOT.search(text):
        return ""
    page = _search(text, url)
    written = [(url, field), *((page.base, content) for content in page.refreshes)]
    target = next(filter(None, (_refresh_in(content, base) for base, content in written)), "")
    if not target or same_document(target, url):
        return ""
    announced = page.feeds()
    is_left = not announced or any(same_document(each.url, target) for each in announced)
    return target if is_left else ""


def _refresh_in(content: str, base: str) -> str:
    """Return where a declarative refresh leads (WHATWG HTML, 4.2.5.3); empty where nowhere, or not soon."""
    match = _REFRESH.fullmatch(content)
    if match is None or not _SOON.fullmatch(match[1]):
        return ""
    reference = match[2]
    if reference[:1] in ("'", '"'):
        reference = reference[1:].partition(reference[0])[0]
    return _http_url(base, reference)


_REFRESH: Final = re.compile(
    r"\s*(\d*(?:\.[\d.]*)?)(?:\s*[;,]|\s)\s*(?:url\s*=\s*)?(.*)", re.IGNORECASE | re.DOTALL
)
_SOON: Final = re.compile(r"0*(?:10|[0-9])(?:\.[\d.]*)?|\.[\d.]*")
MAX_REFRESH_SECONDS: Final = 10
"""Pages that have moved lead on within this; those that reload themselves, or show an ad, wait longer."""
_FEED_ROOT: Final = re.compile(r"<(?:[\w.-]+:)?(?:rss|feed|rdf|channel|item|entry)(?=[\s/>])", re.IGNORECASE)


def is_html(body: bytes, media_type: str) -> bool:
    """Whether an answer that is no feed is a page to look for feeds in."""
    essence = media_type.partition(";")[0].strip().lower()
    return essence in ("text/html", "application/xhtml+xml") or b"<html" in body[:4096].lower()


# The tags of a page

_SEARCHED_BYTES: Final = 512 * 1024
_MAX_TAGS: Final = 1000
_MAX_TAG_CHARACTERS: Final = 8192
_MAX_FEEDS: Final = 200
_HIDING: Final = ("script", "style", "textarea", "title")
_TELLING: Final = ("link", "base", "meta")
_BEGINS: Final = re.compile(rf"<(!--|(?:{'|'.join((*_TELLING, *_HIDING))})(?=[\s/>]))", re.IGNORECASE)
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
        if name in _TELLING:
            limit = begun.start() + _MAX_TAG_CHARACTERS
            tag = _TAG.match(page, begun.start(), limit)
            position = limit if tag is None else tag.end()
            if tag is not None and (name != "meta" or "http-equiv" in tag[0].lower()):
                yield tag[0]
            continue
        end = _ENDS[name].search(page, position)
        if end is None:
            return
        position = end.end()


def _search(page: str, url: str) -> _LinkFinder:
    finder = _LinkFinder(url)
    for tag in islice(_tags(page), _MAX_TAGS):
        with suppress(AssertionError):  # html.parser gives up on what is broken beyond its measure
            finder.feed(tag)
    return finder


def _text(body: bytes, media_type: str) -> str:
    return body[:_SEARCHED_BYTES].decode(_charset(media_type), "replace")


def _charset(media_type: str) -> str:
    match = re.search(r"charset\s*=\s*[\"']?([\w.:-]+)", media_type, re.IGNORECASE)
    return (codec_of(match[1]) if match else "") or UTF8


_MAX_TITLE_CHARACTERS: Final = 200


class _LinkFinder(HTMLParser):
    """The tags of a page that lead elsewhere, resolved when all of them are known.

    A `<base>` counts for the whole page, also for what stands before it (WHATWG HTML, 4.2.3).
    """

    def __init__(self, url: str) -> None:
        super().__init__()
        self.base = url
        self.refreshes: list[str] = []
        """The contents of `<meta http-equiv="refresh">`."""
        self._links: list[tuple[str, str, str]] = []
        """Media type, reference and title of each feed."""
        self._has_base = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if tag == "base" and not self._has_base and given.get("href"):
            self._has_base = True
            self.base = _http_url(self.base, given["href"]) or self.base
        elif tag == "meta" and given.get("http-equiv", "").strip().lower() == "refresh":
            self.refreshes.append(given.get("content", ""))
        elif tag == "link":
            self._add_link(given)

    def _add_link(self, given: dict[str, str]) -> None:
        """Keep a link to a feed. Plain JSON counts as one if it is called a feed: most of it is an API's."""
        if len(self._links) >= _MAX_FEEDS:
            return
        relations = set(given.get("rel", "").lower().split())
        media_type = given.get("type", "").partition(";")[0].strip().lower()
        if not relations & _FEED_RELATIONS or media_type not in _FEED_TYPES:
            return
        href, title = given.get("href", ""), " ".join(given.get("title", "").split())
        if media_type != _JSON or ("feed" in f"{href} {title}".lower() and "/wp-json/" not in href):
            self._links.append((media_type, href, title[:_MAX_TITLE_CHARACTERS]))

    def feeds(self) -> list[Alternate]:
        """Return the feeds, each URL once."""
        by_url: dict[str, Alternate] = {}
        for media_type, href, title in self._links:
            if target := _http_url(self.base, href):
                by_url.setdefault(target, Alternate(media_type, target, title))
        return list(by_url.values())


def _http_url(base: str, reference: str) -> str:
    """Return the http(s) URL that a reference means, which may bear `feed:`; empty where it means none."""
    target = resolve_or_empty(base, without_feed_scheme(reference.strip()))
    return target if len(target) <= MAX_URL_CHARACTERS and is_http(target) else ""
