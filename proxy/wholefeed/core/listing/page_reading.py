"""Read the links of an HTML page once (H3, H5, H9), as a job for a worker.

libxml2's tree ends at a depth of 2,048 and grows in proportion to the page, except for the attributes of one
tag (`_TAGS`).
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import islice, takewhile
from typing import Any, Final, NamedTuple
from zlib import crc32

from wholefeed.core.listing.index_names import find_indexes
from wholefeed.core.listing.page_dates import (
    LONGEST,
    Day,
    Slashed,
    may_say_day,
    read_date,
    read_heading,
    read_slashed,
    says_only_date,
)
from wholefeed.core.listing.page_links import link_key
from wholefeed.core.parse.encodings import UTF8, html_to_utf8
from wholefeed.core.text.dates import parse_rfc3339
from wholefeed.core.text.urls import is_http, resolve_or_empty


class PageLink(NamedTuple):
    url: str
    """Absolute, without fragment."""
    key: str
    text: str
    """A heading's inside the link, else all."""
    shape: str
    """Digest of the tags and classes around it, without positions."""
    place: int = 0
    """Links of the same shape before it in its row."""
    group: int = 0
    """Number of the heading above."""
    at: float | None = None
    """The date beside it, epoch seconds."""
    dated_by: str = ""
    """Exactness: `page` (day), `month`, `year`; empty: undated."""
    is_aside: bool = False
    """In an aside, nav, header or footer outside articles."""
    is_tabular: bool = False
    is_next: bool = False
    note: str = ""
    """Number in brackets behind it."""
    block: int = 0
    """Number of the element that holds the items of its row."""
    tail: str = ""
    """Digests of the innermost elements around it, four digits each: all that a part of a page has."""
    heading: str = ""
    """For a text that is only a date: the heading or `p-name` beside the link."""


class ListPage(NamedTuple):
    url: str
    """After redirects."""
    links: tuple[PageLink, ...]
    next_url: str = ""
    """`<link rel=next>` in the head."""
    is_cut: bool = False
    """Whether limits left out a part of the page."""
    more_urls: tuple[str, ...] = ()
    """URLs of buttons and elements that fetch more of a list."""
    is_part: bool = False
    """Whether it is no whole page, but elements to insert into one."""
    previous_urls: tuple[str, ...] = ()
    """Targets of `rel=prev`."""
    following_urls: tuple[str, ...] = ()
    """Targets of `rel=next`."""
    title: str = ""
    """Title, if this is the page of a post: `p-name`, `og:title`, or the first heading."""
    at: float | None = None
    """Date, if this is the page of a post, epoch seconds: metadata's, a `<time>`'s, or the first."""
    indexes: tuple[str, ...] = ()
    """URLs of search indexes that the page names (H11)."""
    parts: frozenset[int] = frozenset()
    """Digests of its elements' tags, classes and ids: pages of one kind have most of them in common."""


MAX_LINKS: Final = 20_000
MAX_ELEMENTS: Final = 400_000
MAX_DEPTH: Final = 2000
MAX_TEXT_CHARACTERS: Final = 300
MAX_LINK_CHARACTERS: Final = 1000
MAX_KEPT_BYTES: Final = 7_000_000
"""Memory for URLs, keys and texts of a page: 350 for each of 20,000 links."""
MAX_HOSTS: Final = 500
"""Links to further hosts are left out."""
_FREE_LINKS: Final = 2000
_BYTES_PER_LINK: Final = 60  # least average, with everything between two links
_FREE_ELEMENTS: Final = 20_000
_BYTES_PER_ELEMENT: Final = 16  # denser pages would cost over a second per megabyte
_FREE_DATES: Final = 4000
_BYTES_PER_DATE: Final = 50  # least average of different texts; each takes as long as five elements
_FREE_CHARACTERS: Final = 1 << 16
# Link URLs may total `_FREE_CHARACTERS` and this many times the page: below a long `<base>`, a link of ten
# bytes has a URL of a thousand.
_GAIN: Final = 2


def read_page(body: bytes, url: str, content_type: str) -> ListPage:
    """Return an HTML page's links within limits. Never raises.

    `body` has no content coding.
    """
    tree = read_tree(body, content_type)
    page = _PageReader(url, len(tree.text))
    if tree.root is not None:
        page.read(walk_tree(tree.root))
    return ListPage(
        url,
        tuple(page.finish()),
        page.next_url,
        is_cut=page.is_cut or tree.is_cut,
        more_urls=tuple(page.more_urls),
        is_part=not _WHOLE_PAGE.search(tree.text, 0, _MOST_PROLOGUE),
        previous_urls=tuple(page.previous_urls),
        following_urls=tuple(page.following_urls),
        title=next(filter(None, map(page.names.get, ("p-name", "og:title", "heading"))), ""),
        at=page.said_at or _read_publication(tree.text) or page.at,
        indexes=find_indexes(tree.text, url),
        parts=frozenset(page.parts),
    )


def _read_publication(text: bytes) -> float | None:
    """Return the only date of publication in JSON-LD, or None."""
    said = {each[1] for each in islice(_JSON_PUBLISHED.finditer(text), 2)}
    return _instant(said.pop().decode("ascii", "replace")) if len(said) == 1 else None


def _read_any(text: str) -> Day | Slashed | None:
    return read_slashed(text) or read_date(text)


def _read_alone(text: str) -> Day | Slashed | None:
    return read_slashed(text) or read_date(text, is_alone=True)


def _instant(text: str) -> float | None:
    return parse_rfc3339(text) if read_date(text[:10], is_alone=True) else None


_JSON_PUBLISHED: Final = re.compile(rb'"datePublished"\s{0,9}:\s{0,9}"([0-9][^"\\]{7,34})"')
_PUBLISHED: Final = frozenset(
    ("article:published_time", "datePublished", "date", "dcterms.created", "DC.date")
)
_WHOLE_PAGE: Final = re.compile(rb"<(?:!doctype|html|head|body)\b", re.IGNORECASE)
_MOST_PROLOGUE: Final = 4096


class HtmlTree(NamedTuple):
    """A page as libxml2 reads it, at most 2,048 levels deep."""

    root: Any
    """None: nothing is there."""
    text: bytes
    """The text read, in UTF-8."""
    is_cut: bool
    """Whether the page ends before a tag with too many attributes."""


def read_tree(body: bytes, content_type: str) -> HtmlTree:
    """Return an HTML page's elements, without comments. Never raises.

    `body` has no content coding.
    """
    from lxml import etree  # noqa: PLC0415 - 4 MB of no use in the server's own process

    text = html_to_utf8(body, content_type)
    whole, text = text, text[: _find_crowded(text)]
    # one for each page: a parser keeps the errors of everything read
    parser = etree.HTMLParser(
        encoding=UTF8, remove_comments=True, remove_pis=True, huge_tree=True, no_network=True, recover=True
    )
    root = etree.fromstring(text, parser) if text.strip() else None
    return HtmlTree(root, text, len(text) < len(whole))


def walk_tree(root: Any) -> Iterator[tuple[str, Any]]:
    """Yield the start and the end of each element, without recursion."""
    from lxml import etree  # noqa: PLC0415 - see `read_tree`

    events: Iterator[tuple[str, Any]] = etree.iterwalk(root, events=("start", "end"))
    return events


def _find_crowded(text: bytes) -> int | None:
    """Return the offset of the first tag with too many attributes, or None."""
    left = _MOST_READ * len(text)  # tags may seem to start inside others; no real page has so much
    for tag in _TAGS.finditer(text):
        left -= tag.end(1) - tag.start()
        if tag[2] is not None or left < 0:
            return tag.start()
    return None


_MOST_READ: Final = 4
_HTML_ATTRIBUTE: Final = rb"[\s/]++=?+[^\s>/=]*+(?:\s*+=\s*+(?:\"[^\"]*+\"?+|'[^']*+'?+|[^\s>]*+))?+"
_TAGS: Final = re.compile(
    rb"<(?=([A-Za-z][^\s>/]*+(?:%s){0,299}+)(%s)?+)" % (_HTML_ATTRIBUTE, _HTML_ATTRIBUTE)
)
"""Tags, and the 300th attribute of each: 60,000 take three seconds, in either library."""


# Elements of a page


class _LinkPlace(NamedTuple):
    shape: str
    tail: str = ""
    is_aside: bool = False
    is_sectioned: bool = False
    """Whether headers and footers here are a section's."""
    in_article: bool = False
    is_tabular: bool = False


@dataclass(slots=True)
class _Element:
    tag: str
    place: _LinkPlace
    parent: _Element | None
    start: _LinkCounts
    end: _LinkCounts
    heading: tuple[Day, int]
    """Date in the heading above, and level of that heading."""
    row: _Element | None
    """The nearest of `_ROWS` around it."""
    texts: list[str] = field(default_factory=list)
    """Up to a date's length."""
    characters: int = 0
    """Length of `texts`."""
    gap: int = 0
    """Dates up to the end of the last link in it."""
    is_name: bool = False
    """Whether it is a `p-name` (microformats2)."""
    keys: dict[str, dict[str, int]] = field(default_factory=dict)
    """In rows: links' places by shape and key."""


class _LinkCounts(NamedTuple):
    links: int
    marks: int
    titles: int


class _LinkMark(NamedTuple):
    link: int
    said: float | Slashed
    is_marked_up: bool = False
    is_heading: bool = False
    is_title: bool = False


class _PageAnchor(NamedTuple):
    node: Any
    url: str
    key: str
    text: str
    element: _Element
    place: int
    group: int
    heading: Day
    is_next: bool
    noted: list[str]


_HEADINGS: Final = {"h1": 1, "h2": 2, "h3": 3, "h4": 4, "h5": 5, "h6": 6, "dt": 7}
_ARTICLES: Final = frozenset({"article", "section", "main", "li"})
_REGIONS: Final = frozenset({"aside", "nav"})
_ENDS: Final = frozenset({"header", "footer"})
_UNREAD: Final = frozenset({"script", "style", "noscript", "template", "textarea", "select", "title"})
_FRAMES: Final = frozenset({"html", "body"})
"""Their classes vary by the number of a page (WordPress, Ghost), and are no part of shapes."""
_PLAIN: Final = frozenset({"b", "i", "u", "em", "strong", "font", "small", "big", "center", "tbody", "thead"})
"""No part of shapes: some entries are bold, and people forget end tags."""
_ITEMS: Final = frozenset({"li", "article", "tr", "td", "dd", "dt", "p"})
"""Their classes vary by blog tag or number, and are no part of shapes."""
_ROWS: Final = frozenset({"li", "article", "tr", "dd"})  # they hold an entry with its belongings
_SIDES: Final = frozenset({"sidebar", "widget", "widget-area"})
_VARYING: Final = re.compile(
    r"(?:post|category|cat|tag|author|status|format|type|term|label|page)-.*|sticky|odd|even|first|last|alt"
    r"|current|active|visited|has-.*|hentry"
)
_TAIL: Final = 32  # eight elements
_MOST_PARTS: Final = 5  # of a date: weekday, day, month, year, time
_MOST_PAGE_PARTS: Final = 600
_LONGEST_NAMES: Final = 400
_TELLING: Final = frozenset({"article", "h1", "main", "time"})
"""Elements that tell the kind of a page by themselves."""
_MOST_BUTTONS: Final = 50
_MOST_NAMES: Final = 20
_MOST_MORE: Final = 4
_MOST_ORDERED: Final = 4
_PREVIOUS: Final = frozenset({"prev", "previous"})
_FOLLOWING: Final = frozenset({"next"})
_URLS: Final = ("/", "?", "http://", "https://")
_BUTTONS: Final = frozenset({"a", "button", "div", "span", "p", "li", "tr", "article", "section", "nav"})
_MORE_ATTRIBUTES: Final = frozenset(
    (
        *("hx-get", "data-hx-get", "data-url", "data-href", "data-load-more", "data-load-more-url"),
        *("data-more-url", "data-next", "data-next-url", "data-next-href", "data-next-page"),
    )
)
_MORE_NAME: Final = re.compile(
    r"(?:[a-z]{1,6}[-_])?(?:load|show|view|see)[-_]?more(?:[-_].*)?|infinite.*"
    r"|more[-_](?:posts|entries|articles|stories)|(?:next|older)[-_](?:page|posts|entries|url|link)"
)
_MORE_TEXT: Final = re.compile(
    r"(?:load|show|view|see) (?:\w{1,12} )?(?:more|older)\b|more|older", re.IGNORECASE
)
_DIGITS: Final = re.compile(r"[0-9]+")
_HOST: Final = re.compile(r"\s*(?:https?:)?[/\\]{2}([^/\\?#]*)", re.IGNORECASE)
_BLANKS: Final = re.compile(r"\s+")
_NOTE: Final = re.compile(r"\s{0,9}[(\[]\s{0,3}([0-9]{1,6})\b[^()\[\]]{0,20}[)\]]")
_WHOLE: Final = _LinkPlace("")
_NOTHING: Final = Day(None, None, None)


class _PageReader:
    def __init__(self, url: str, size_bytes: int) -> None:
        self.next_url = ""
        self.is_cut = False
        self.more_urls: list[str] = []
        self.previous_urls: list[str] = []
        self.following_urls: list[str] = []
        self.names: dict[str, str] = {}
        """Possible titles of a post's page, by where they stand."""
        self.at: float | None = None
        self.said_at: float | None = None
        """Publication, as the head says."""
        self.parts: set[int] = set()
        self._left_buttons, self._left_names = _MOST_BUTTONS, _MOST_NAMES
        """Elements left to be read as buttons and as titles of the page: each costs a hundred others."""
        self._base = url
        self._has_base = False
        self._targets: dict[str, str] = {}
        self._keys: dict[str, str] = {}
        self._hosts: set[str] = set()
        self._most_elements = min(MAX_ELEMENTS, _FREE_ELEMENTS + size_bytes // _BYTES_PER_ELEMENT)
        self._most_links = min(MAX_LINKS, _FREE_LINKS + size_bytes // _BYTES_PER_LINK)
        self._room = _FREE_CHARACTERS + _GAIN * size_bytes
        self._room_bytes = MAX_KEPT_BYTES
        self._shapes: dict[tuple[str, str, str], str] = {}
        self._places: dict[tuple[_LinkPlace, str, str, str, str], _LinkPlace] = {}
        self._links: list[_PageAnchor] = []
        self._marks: list[_LinkMark] = []
        self._said: dict[tuple[str, Callable[[str], Day | Slashed | None]], Day | Slashed | None] = {}
        """Dates by text, and by how it was read."""
        self._most_dates = _FREE_DATES + size_bytes // _BYTES_PER_DATE
        self._slashed: set[bool | None] = set()
        """Known orders of numeric dates."""
        self._titles: list[str] = []
        """Headings without links."""
        self._group = 0
        self._heading, self._level = _NOTHING, 0
        self._anchors = 0
        """Open links."""

    def read(self, events: Iterable[tuple[str, Any]]) -> None:
        open_: list[_Element] = []
        unread = 0
        for count, (event, node) in enumerate(events):
            if count > 2 * self._most_elements or self._is_full or len(open_) > MAX_DEPTH:
                self.is_cut = True
                break
            tag = node.tag
            if event == "start":
                if tag == "select" and not unread and open_:
                    self._choices(node, open_[-1])
                unread += tag in _UNREAD
                if not unread:
                    open_.append(self._begin(node, tag, open_[-1] if open_ else None))
                    if text := node.text:
                        self._say(text, open_)
                continue
            if unread:
                unread -= tag in _UNREAD
            else:
                element = open_.pop()
                self._end(element)
                if (element.is_name or tag in _HEADINGS) and not element.place.is_aside:
                    self._name_page(node, "p-name" if element.is_name else "heading")
            if not unread and open_ and (text := node.tail):
                self._say(text, open_, behind=tag)

    @property
    def _is_full(self) -> bool:
        return len(self._links) >= self._most_links or self._room < 0 or self._room_bytes <= 0

    def _begin(self, node: Any, tag: str, parent: _Element | None) -> _Element:
        said = node.get("class") or "", node.get("id") or "", node.get("role") or ""
        around = parent.place if parent else _WHOLE
        place = self._places.get((around, tag, *said))
        if place is None:
            place = self._places[around, tag, *said] = self._find_place(tag, around, *said)
            self._add_parts(tag, f"{said[0]} {said[1]}")
        counts = self._counts()
        row = parent if parent is None or parent.tag in _ROWS else parent.row
        element = _Element(tag, place, parent, counts, counts, (self._heading, self._level), row)
        element.gap, element.is_name = counts.marks, "p-name" in said[0].split()
        if tag == "a":
            self._close_gap(parent)
            self._anchors += 1
            self._link(node, element)
        elif tag == "meta":
            self._read_meta(node)
        elif tag in ("link", "base"):
            self._relate(node, tag)
        elif tag == "time" and (said := node.get("datetime")) and (at := _instant(said)) is not None:
            self._marks.append(_LinkMark(len(self._links), at, is_marked_up=True))
            self.at = at if self.at is None and not place.is_aside else self.at
        if self._left_buttons and tag in _BUTTONS:
            self._button(node, tag)
        return element

    def _read_meta(self, node: Any) -> None:
        name, content = node.get("property") or node.get("name") or "", node.get("content") or ""
        if name == "og:title":
            self.names.setdefault(name, _all_text(iter([content])))
        if name in _PUBLISHED or node.get("itemprop") in _PUBLISHED:
            self.said_at = self.said_at or _instant(content)
        if name == "og:type":
            self._add_parts("meta", content)
        elif name.startswith("article:"):
            self._add_parts("meta", name)

    def _add_parts(self, tag: str, names: str) -> None:
        if len(self.parts) < _MOST_PAGE_PARTS:
            tokens = _DIGITS.sub("0", names[:_LONGEST_NAMES]).split()
            tokens += [""] if tag in _TELLING else []
            self.parts |= {crc32(f"{tag} {each}".encode()) for each in tokens}

    def _counts(self) -> _LinkCounts:
        return _LinkCounts(len(self._links), len(self._marks), len(self._titles))

    def _find_place(self, tag: str, around: _LinkPlace, names: str, own: str, role: str) -> _LinkPlace:
        tokens = f"{names} {own}".lower().split()[:8] if names or own else []
        if tag in _FRAMES:
            tokens = []
        is_side = not _SIDES.isdisjoint(tokens)
        is_region = is_side or tag in _REGIONS or role in ("navigation", "complementary")
        return _LinkPlace(
            self._shape(around.shape, tag, tokens),
            around.tail if tag in _FRAMES else (around.tail + self._shape("", tag, tokens)[:4])[-_TAIL:],
            around.is_aside
            or (is_region and not around.in_article)
            or (tag in _ENDS and not around.is_sectioned),
            around.is_sectioned or tag in _ARTICLES,
            around.in_article or tag == "article",
            around.is_tabular or tag == "table",
        )

    def _shape(self, around: str, tag: str, tokens: Sequence[str]) -> str:
        if tag in _PLAIN:
            return around
        kept = "" if tag in _ITEMS else ".".join(sorted(t for t in tokens if not _VARYING.fullmatch(t)))
        key = around, tag, _DIGITS.sub("0", kept[:200])
        if key not in self._shapes:
            self._shapes[key] = blake2b("\0".join(key).encode(), digest_size=8).hexdigest()
        return self._shapes[key]

    def _choices(self, node: Any, parent: _Element) -> None:
        """Read the URLs that a `<select>` offers, as those of months."""
        select = self._begin(node, "select", parent)
        select.place = select.place._replace(is_aside=True)
        for option in node.iter("option"):
            value = (option.get("value") or "").strip()
            if self._is_full:
                break
            if not value.startswith(_URLS) or not (url := self._target(value)):
                continue
            key, text = self._key(url), self._kept(_all_text(_texts_in(option)))
            self._links.append(
                _PageAnchor(option, url, key, text, select, 0, self._group, self._heading, False, [])
            )
        select.end = self._counts()

    def _button(self, node: Any, tag: str) -> None:
        found = [name for name in node.keys() if name in _MORE_ATTRIBUTES]  # noqa: SIM118 - no mapping
        names = f"{node.get('class') or ''} {node.get('id') or ''}" if found or tag in ("a", "button") else ""
        says_more = any(map(_MORE_NAME.fullmatch, names.lower().split()[:8]))
        if not (found or (says_more and tag == "a")):
            return
        self._left_buttons -= 1
        says_more = says_more or _MORE_TEXT.match(_title(node)) is not None
        for name in [*found, *(["href"] if tag == "a" else [])]:
            value = (node.get(name) or "").strip()
            is_next = name.startswith("data-next") or "revealed" in (node.get("hx-trigger") or "")
            if (is_next or says_more) and ("/" in value or value.startswith("?")) and value[:1] != "#":
                url = self._target(value)
                if url and url not in self.more_urls and len(self.more_urls) < _MOST_MORE:
                    self.more_urls.append(url)

    def _relate(self, node: Any, tag: str) -> None:
        href = node.get("href")
        if not href:
            return
        if tag == "link":
            self._order(node, href)
        if tag == "base" and not self._has_base:
            self._has_base = True
            self._base = self._target(href) or self._base
            self._targets.clear()
        elif tag == "link" and not self.next_url and "next" in (node.get("rel") or "").lower().split():
            self.next_url = self._target(href)

    def _order(self, node: Any, href: str) -> None:
        """Keep the targets of `rel=prev` and `rel=next`, which lead from post to post."""
        relations = (node.get("rel") or "").lower().split()
        for names, urls in ((_PREVIOUS, self.previous_urls), (_FOLLOWING, self.following_urls)):
            if not names.isdisjoint(relations) and len(urls) < _MOST_ORDERED and (url := self._target(href)):
                urls.append(url)

    def _link(self, node: Any, element: _Element) -> None:
        href = node.get("href")
        if not href or href.startswith("#") or not (url := self._target(href)):
            return
        self._order(node, href)
        is_next = "next" in (node.get("rel") or "").lower().split()
        key, title = self._key(url), self._kept(_title(node))
        place = _place_in_row(element, key)
        self._links.append(
            _PageAnchor(node, url, key, title, element, place, self._group, self._heading, is_next, [])
        )

    def _key(self, url: str) -> str:
        if url not in self._keys:
            self._keys[self._kept(url)] = self._kept(link_key(url))
        return self._keys[url]

    def _kept(self, text: str) -> str:
        self._room_bytes -= text.__sizeof__()
        return text

    def _target(self, href: str) -> str:
        if href not in self._targets:
            is_followed = len(href) < MAX_LINK_CHARACTERS and add_host(href, self._hosts)
            url = resolve_or_empty(self._base, href.partition("#")[0]) if is_followed else ""
            self._room -= len(url)
            self._targets[href] = url if url and is_http(url) else ""
        return self._targets[href]

    def _end(self, element: _Element) -> None:
        element.end = self._counts()
        self._anchors -= element.tag == "a"
        has_links = element.start.links < element.end.links
        joined = " ".join(element.texts)
        if (element.tag in _HEADINGS or element.is_name) and joined and not has_links:
            self._titles.append(joined)
        if element.tag == "a" and not self._anchors:
            for around in islice(_elements_up(element.parent), 3):
                self._open_gap(around)
        elif has_links:
            self._close_gap(element)
        if has_links or self._anchors:
            return
        has_days = element.start.marks < element.end.marks
        if len(element.texts) > 1 and not has_days:
            self._mark(joined, element)
            if element.start.marks < len(self._marks):
                self._heading, self._level = element.heading
                return
        is_short = joined and len(joined) <= LONGEST and element.tag != "time"
        said = self._read_text(joined, read_heading) if is_short else None
        assert not isinstance(said, Slashed), "headings are years and months"
        self._head(element, said, has_days=has_days)

    def _read_text(self, text: str, read: Callable[[str], Day | Slashed | None]) -> Day | Slashed | None:
        """Return the date that a text says, unless the page has too many different ones."""
        if not may_say_day(text):
            return read(text)
        key = text, read
        if key not in self._said:
            if len(self._said) >= self._most_dates:
                self.is_cut = True
                return None
            self._said[key] = read(text)
        return self._said[key]

    def _head(self, element: _Element, said: Day | None, *, has_days: bool) -> None:
        """Note a heading, marked up or not: a year, or its month."""
        level = _HEADINGS.get(element.tag, 0)
        self._group += level > 0
        if said is None:
            if level and level <= (self._level or level) and not has_days:
                self._heading, self._level = _NOTHING, 0
        elif said.year is not None and not element.place.is_aside:
            self._heading, self._level = said, level
        elif self._heading.year is not None and not element.place.is_aside:
            self._heading = self._heading._replace(month=said.month)

    def _close_gap(self, around: _Element | None) -> None:
        """Read a date whose parts stand in elements of their own, between two links or beside one."""
        for _ in range(3):
            if around is None or self._anchors:
                return
            if 1 < len(around.texts) <= _MOST_PARTS and around.gap == len(self._marks):
                self._mark(" ".join(around.texts), around)
            self._open_gap(around)
            around = around.parent

    def _open_gap(self, around: _Element) -> None:
        around.texts, around.characters = [], 0
        around.gap = len(self._marks)

    def _name_page(self, node: Any, where: str) -> None:
        if where not in self.names and self._left_names:
            self._left_names -= 1
            text = _all_text(islice(node.itertext(), 100))
            if text:
                self.names[where] = text

    def _say(self, text: str, open_: Sequence[_Element], *, behind: str = "") -> None:
        if not (said := _BLANKS.sub(" ", text[: 4 * LONGEST]).strip()):
            return
        if behind == "a" and self._links and (note := _NOTE.match(said)):
            self._links[-1].noted.append(note[1])
        for element in islice(reversed(open_), 3):
            if element.characters <= LONGEST:
                element.texts.append(said)
                element.characters += len(said)
        self._mark(said, open_[-1])

    def _mark(self, said: str, element: _Element) -> None:
        if not may_say_day(said):
            return
        links, is_heading = len(self._links), element.tag in _HEADINGS and not self._anchors
        is_title = bool(self._anchors and self._links) and (
            element.tag in _HEADINGS or self._links[-1].text == said
        )
        day = self._read_text(said, _read_alone if self._anchors else _read_any)
        if isinstance(day, Slashed):
            self._slashed.add(day.is_day_first)
            self._marks.append(_LinkMark(links, day, is_heading=is_heading, is_title=is_title))
            return
        if day is None or (not day.year and self._anchors):
            return
        at = day._replace(year=day.year or self._heading.year).at
        if at is not None:
            self._marks.append(_LinkMark(links, at, is_heading=is_heading, is_title=is_title))

    def finish(self) -> Iterator[PageLink]:
        known = self._slashed - {None}
        is_day_first = known.pop() if len(known) == 1 else None
        items = _Items(self._links, self._marks)
        if self.at is None:
            self.at = next((each.said for each in self._marks if isinstance(each.said, float)), None)
        for number, link in enumerate(self._links):
            mark, title, place = items.mark_of(number), items.title_of(number), link.element.place
            at, by = link.heading.at, link.heading.exactness
            if mark is not None:
                said = mark.said
                at = said.day(is_day_first=is_day_first).at if isinstance(said, Slashed) else said
                by = "page"
            yield PageLink(
                url=link.url,
                key=link.key,
                text=link.text or self._name_link(link, title),
                shape=place.shape,
                place=link.place,
                group=link.group,
                at=at,
                dated_by="" if at is None else by,
                is_aside=place.is_aside,
                is_tabular=place.is_tabular,
                is_next=link.is_next,
                note="".join(link.noted[:1]),
                block=items.block_of(number),
                tail=place.tail,
                heading=self._titles[title] if title is not None and says_only_date(link.text) else "",
            )

    def _name_link(self, link: _PageAnchor, title: int | None) -> str:
        if self._room_bytes <= 0:
            self.is_cut = True
            return ""
        return self._kept(("" if title is None else self._titles[title]) or _label(link.node))


def _elements_up(element: _Element | None) -> Iterator[_Element]:
    while element is not None:
        yield element
        element = element.parent


def add_host(href: str, hosts: set[str]) -> bool:
    """Return whether a link's host is absent, known or within `MAX_HOSTS`; add it to the known ones."""
    # a host in brackets or not in ASCII takes as long as a hundred bytes of others
    named = _HOST.match(href)
    if named is None or named[1] in hosts:
        return True
    if len(hosts) < MAX_HOSTS:
        hosts.add(named[1])
        return True
    return False


def _place_in_row(element: _Element, key: str) -> int:
    row = element.row or element.parent
    if row is None:
        return 0
    places = row.keys.setdefault(element.place.shape, {})
    return places.setdefault(key, len(places))


def _title(node: Any) -> str:
    """Return a heading's text, else all but dates, up to an inner link."""
    if not len(node):  # most links; lists of elements take time
        return _all_text(iter([node.text or ""]))
    inner = list(takewhile(lambda each: each is node or each.tag != "a", islice(node.iter(), 100)))
    for each in inner[:50]:
        if each.tag in _HEADINGS and (text := _all_text(_texts_in(each))):
            return text
    parts = [node.text]
    for each in inner[1:]:
        parts += [None if each.tag in _UNTITLED else each.text, each.tail]
    return _all_text(part for part in parts if part) or _all_text(_texts_in(node))


def _texts_in(node: Any) -> Iterator[str]:
    """Yield texts of the first hundred elements, up to an inner link."""
    from lxml import etree  # noqa: PLC0415 - as in `read_page`

    for event, inner in islice(etree.iterwalk(node, events=("start", "end")), 200):
        if event == "start" and inner.tag == "a" and inner is not node:
            return
        text = inner.text if event == "start" else inner.tail if inner is not node else None
        if text:
            yield text


_UNTITLED: Final = frozenset({"time", "script", "style"})


def _label(node: Any) -> str:
    pictures = (picture.get("alt") for picture in islice(node.iter("img"), 3))
    return _all_text(text for text in (node.get("aria-label"), node.get("title"), *pictures) if text)


def _all_text(parts: Iterator[str]) -> str:
    text = "".join(part[: 2 * MAX_TEXT_CHARACTERS] for part in islice(parts, 100))
    return _BLANKS.sub(" ", text[: 4 * MAX_TEXT_CHARACTERS]).strip()[:MAX_TEXT_CHARACTERS]


class _Items:
    """Dates and titles of links; each link owns the largest element without another link of its shape."""

    def __init__(self, links: Sequence[_PageAnchor], marks: Sequence[_LinkMark]) -> None:
        self._links = links
        self._marks = marks
        self._shapes = [link.element.place.shape for link in links]
        self._before: list[int] = []
        """The last link before of its shape and another URL; -1: none."""
        self._behind = [len(links)] * len(links)
        """The first link behind."""
        rows: dict[str, list[int]] = {}  # the last links of one URL, by shape
        for number, (link, shape) in enumerate(zip(links, self._shapes, strict=True)):
            row = rows.get(shape)
            parent = link.element.parent
            if row and links[row[-1]].key == link.key and links[row[-1]].element.parent is parent:
                self._before.append(self._before[row[0]])
                row.append(number)
                continue
            for each in row or ():
                self._behind[each] = number
            self._before.append(row[-1] if row else -1)
            rows[shape] = [number]
        self.of = [self._item(link.element, number) for number, link in enumerate(links)]
        """Owned elements."""
        self._dated = {self._shapes[n] for n, each in enumerate(self.of) if each.start.marks < each.end.marks}
        self._blocks: dict[int, int] = {}
        self._leads: dict[str, bool] = {}
        """By shape, whether dates precede links in shared rows."""

    def _is_single(self, number: int) -> bool:
        return self._before[number] < 0 and self._behind[number] == len(self._behind)

    def _item(self, element: _Element, number: int) -> _Element:
        before, behind = self._before[number], self._behind[number]
        for _ in range(3 if self._is_single(number) else 12):
            around = element.parent
            if around is None or around.start.links <= before or around.end.links > behind:
                break
            element = around
        return element

    def block_of(self, number: int) -> int:
        around = self.of[number].parent
        return self._blocks.setdefault(id(around), len(self._blocks))

    def title_of(self, number: int) -> int | None:
        around = next(
            (each for each in self._elements_around(number) if each.start.titles < each.end.titles), None
        )
        return around.start.titles if around else None

    def mark_of(self, number: int) -> _LinkMark | None:
        """Return the date of a link: beside it, else the one that is its title."""
        own = self._links[number].element
        named: _LinkMark | None = None
        for around in self._elements_around(number):
            end = min(around.end.marks, around.start.marks + _LOOKED_AT)
            inside = {place: self._marks[place] for place in range(around.start.marks, end)}
            beside = [
                mark
                for place, mark in inside.items()
                if not (mark.is_title and own.start.marks <= place < own.end.marks)
            ]
            if beside:
                return next((mark for mark in beside if mark.is_marked_up), beside[0])
            named = named or next(iter(inside.values()), None)
        row = self.of[number].parent
        if named or row is None or self._is_single(number) or self._shapes[number] in self._dated:
            return named
        return self._beside(number, row)

    def _elements_around(self, number: int) -> Iterator[_Element]:
        """Yield elements around a link without others of its shape, inside out."""
        element, item = self._links[number].element, self.of[number]
        while element is not item and element.parent is not None:
            yield element
            element = element.parent
        yield item

    def _beside(self, number: int, row: _Element) -> _LinkMark | None:
        """Date a link in a row shared with others."""
        first, end = row.start.marks, row.end.marks
        if first == end:
            return None
        leads = self._leads.setdefault(self._shapes[number], self._marks[first].link <= number)
        place = bisect_right(self._marks, number, first, end, key=lambda mark: mark.link)
        if leads:
            mark = self._marks[place - 1] if place > first else None
            return mark if mark and (mark.link > self._before[number] or mark.is_heading) else None
        mark = self._marks[place] if place < end else None
        return mark if mark and mark.link <= self._behind[number] else None


_LOOKED_AT: Final = 8  # dates of one entry
