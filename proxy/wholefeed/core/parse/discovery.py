"""Find the feeds that an HTML page announces, or the URL that it refreshes to, without building a tree.

`<link rel="alternate">` is WHATWG HTML, 4.6.7.1; `<meta http-equiv="refresh">` is 4.2.5.3.
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
from wholefeed.core.text.markup import LONG_REFERENCE
from wholefeed.core.text.urls import (
    MAX_URL_CHARACTERS,
    is_http,
    resolve_or_empty,
    same_document,
    without_feed_scheme,
)

# The feeds that a page announces


class Alternate(NamedTuple):
    media_type: str
    url: str
    title: str = ""


def discover(body: bytes, url: str, media_type: str) -> list[Alternate]:
    """Return the feeds that a page announces, in its order, each URL once.

    Reads 512 KiB at most; never raises.
    """
    return _search(_text(body, media_type), url).feeds()


def in_order(found: Sequence[Alternate]) -> tuple[list[Alternate], list[Alternate]]:
    """Return the feeds of posts and the feeds of comments, each in order of preference."""
    # A site may have "comments" in its name, or in a folder. So a feed is of comments only if its title, path
    # and query say the word more often than another feed's do.
    ranked = sorted(found, key=lambda alternate: _FEED_TYPES[alternate.media_type])
    counts = list(map(_count_comments, ranked))
    usual = min(counts, default=0)
    posts = [each for each, count in zip(ranked, counts, strict=True) if count == usual]
    return posts, [each for each, count in zip(ranked, counts, strict=True) if count > usual]


def _count_comments(alternate: Alternate) -> int:
    path = alternate.url.partition("://")[2].partition("/")[2]
    return len(_COMMENTS.findall(alternate.title)) + len(_COMMENTS_URL.findall(unquote(path)))


# WordPress writes `/comments/feed/` and `feed=comments-rss2`, Blogger `/feeds/comments/default`.
_COMMENTS_URL: Final = re.compile(r"(?<![a-z])comments?(?![a-z])|commentsrss|rsscomments", re.IGNORECASE)
# The word for comments in the languages of blog software.
_COMMENTS: Final = re.compile(
    r"\b(?:comments?|commentaires?|coment[aá]rios?|commenti|comentarii|kommenta\w*|koment[aá]\w*|kommentti\w*"
    r"|reacties|opmerkingen|replies|yorum\w*|hozzász\w*)\b"
    r"|комментар|коментар|σχόλι|תגובות|تعليق|コメント|评论|評論|留言|回應|댓글|bình luận",
    re.IGNORECASE,
)

_FEED_TYPES: Final = {
    "application/atom+xml": 0,
    "application/rss+xml": 1,
    "application/rdf+xml": 2,
    "application/feed+json": 3,
    "text/xml": 4,
    "application/xml": 4,
    "application/json": 5,
}
"""Order of preference, 0 first; media types of any XML or JSON last."""
_JSON: Final = "application/json"
_FEED_RELATIONS: Final = frozenset({"alternate", "feed"})


# The URL that a page refreshes to


def refresh_target(body: bytes, url: str, media_type: str, field: str = "") -> str:
    """Return the http(s) URL that a page sends browsers to; empty if the page itself is to be read.

    A page is not followed if it leads to itself, waits for more than `MAX_REFRESH_SECONDS`, or announces
    feeds and leads to none of them. A feed is not a page, even if its type is HTML. Never raises.

    Args:
        body: Without content coding.
        url: After redirects.
        media_type: Content-Type as sent.
        field: The header field Refresh, which counts before the page's own.
    """
    if not (field or is_html(body, media_type)):
        return ""
    text = _text(body, media_type)
    if not (field or "refresh" in text.lower()):  # hardly any page has one
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
    """Return the target of a declarative refresh (WHATWG HTML, 4.2.5.3); empty: none, or too late."""
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
"""A moved page redirects sooner; a page that reloads itself, or shows an ad, waits longer."""
_FEED_ROOT: Final = re.compile(r"<(?:[\w.-]+:)?(?:rss|feed|rdf|channel|item|entry)(?=[\s/>])", re.IGNORECASE)


def is_html(body: bytes, media_type: str) -> bool:
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
    # Only `link`, `base` and `meta` are yielded: `html.parser` takes a second for half a megabyte of other
    # tags.
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
        with suppress(AssertionError):  # html.parser gives up on very broken tags
            finder.feed(LONG_REFERENCE.sub("\ufffd", tag))
    return finder


def _text(body: bytes, media_type: str) -> str:
    return body[:_SEARCHED_BYTES].decode(_charset(media_type), "replace")


def _charset(media_type: str) -> str:
    match = re.search(r"charset\s*=\s*[\"']?([\w.:-]+)", media_type, re.IGNORECASE)
    return (codec_of(match[1]) if match else "") or UTF8


_MAX_TITLE_CHARACTERS: Final = 200


class _LinkFinder(HTMLParser):
    """A collector of links. `<base>` counts for the whole page (WHATWG HTML, 4.2.3), so URLs resolve last."""

    def __init__(self, url: str) -> None:
        super().__init__()
        self.base = url
        self.refreshes: list[str] = []
        self._links: list[tuple[str, str, str]] = []
        """Media type, reference and title."""
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
        if len(self._links) >= _MAX_FEEDS:
            return
        relations = set(given.get("rel", "").lower().split())
        media_type = given.get("type", "").partition(";")[0].strip().lower()
        if not relations & _FEED_RELATIONS or media_type not in _FEED_TYPES:
            return
        href, title = given.get("href", ""), " ".join(given.get("title", "").split())
        # Most plain JSON belongs to APIs, so it counts only if it is called a feed.
        if media_type != _JSON or ("feed" in f"{href} {title}".lower() and "/wp-json/" not in href):
            self._links.append((media_type, href, title[:_MAX_TITLE_CHARACTERS]))

    def feeds(self) -> list[Alternate]:
        by_url: dict[str, Alternate] = {}
        for media_type, href, title in self._links:
            if target := _http_url(self.base, href):
                by_url.setdefault(target, Alternate(media_type, target, title))
        return list(by_url.values())


def _http_url(base: str, reference: str) -> str:
    """Return the http(s) URL of a reference, with or without `feed:`; empty for any other."""
    target = resolve_or_empty(base, without_feed_scheme(reference.strip()))
    return target if len(target) <= MAX_URL_CHARACTERS and is_http(target) else ""
