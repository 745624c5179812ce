"""What an HTML page has of links, read once (H3, H5, H9): a job for a worker.

    page = read_page(body, "https://a.example/archive/", "text/html; charset=utf-8")
    [link.url for link in page.links if not link.is_aside]

The tree is libxml2's. It ends at a depth of 2,048 elements and grows in proportion to the page, but for the
attributes of one tag (`_TAGS`).
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import islice, takewhile
from typing import Any, Final, NamedTuple

from wholefeed.core.listing.page_dates import (
    LONGEST,
    Day,
    Slashed,
    may_say_day,
    read_date,
    read_heading,
    read_slashed,
)
from wholefeed.core.listing.page_links import link_key
from wholefeed.core.parse.encodings import UTF8, html_to_utf8
from wholefeed.core.text.dates import parse_rfc3339
from wholefeed.core.text.urls import is_http, resolve_or_empty


class PageLink(NamedTuple):
    """One link of a page, in the order of the document."""

    url: str
    """Absolute, without its fragment."""
    key: str
    """Its `link_key`."""
    text: str
    """A heading's in it, else all of it."""
    shape: str
    """Of its place in the document: tags and classes of what is around it, without positions."""
    place: int = 0
    """How many others of its shape stand before it in its row."""
    group: int = 0
    """Number of the heading that it stands under."""
    at: float | None = None
    """The date that stands beside it, epoch seconds."""
    dated_by: str = ""
    """How exact that is: `page` to the day, `month`, `year`; empty where there is none."""
    is_aside: bool = False
    """In an aside, nav, header or footer that is not an article's."""
    is_tabular: bool = False
    """In a table."""
    is_next: bool = False
    """Whether its relation is `next`."""
    note: str = ""
    """What stands in brackets behind it: the number of entries of a year, say."""


class ListPage(NamedTuple):
    """A page that was had."""

    url: str
    """After redirects."""
    links: tuple[PageLink, ...]
    next_url: str = ""
    """Of `<link rel=next>` in its head."""
    is_cut: bool = False
    """Whether there was more of it than is read."""


MAX_LINKS: Final = 20_000
MAX_ELEMENTS: Final = 400_000
MAX_DEPTH: Final = 2000
MAX_TEXT_CHARACTERS: Final = 300
MAX_LINK_CHARACTERS: Final = 1000
MAX_KEPT_BYTES: Final = 7_000_000
"""Of memory, for all URLs, keys and texts of a page: 350 for each of 20,000 links."""
MAX_HOSTS: Final = 500
"""Different ones that the links of a page may lead to: what leads to further ones is left out."""
_FREE_LINKS: Final = 2000
_BYTES_PER_LINK: Final = 60
"""Beyond so many links they must be so long on average, with all that stands between them."""
_FREE_ELEMENTS: Final = 20_000
_BYTES_PER_ELEMENT: Final = 12
"""The same for elements: what is denser would cost more than a second for each megabyte."""
_FREE_CHARACTERS: Final = 1 << 16
_GAIN: Final = 2
"""The URLs of links may have so many characters together, and so many times those of the page more: below a
long `<base>` a link of ten bytes has a thousand of them."""


def read_page(body: bytes, url: str, content_type: str) -> ListPage:
    """Return what an HTML page says; bounded, whatever it holds. Never raises.

    Args:
        body: As it came, without its content coding.
        url: Of the page, after redirects.
        content_type: The header field.
    """
    from lxml import etree  # noqa: PLC0415 - 4 MB that the process of the server itself has no use for

    text = html_to_utf8(body, content_type)
    whole, text = text, text[: _find_crowded(text)]
    root = etree.fromstring(text, _parser(etree)) if text.strip() else None
    page = _PageReader(url, len(text))
    if root is not None:
        page.read(etree.iterwalk(root, events=("start", "end")))
    return ListPage(url, tuple(page.finish()), page.next_url, page.is_cut or len(text) < len(whole))


def _parser(etree: Any) -> Any:
    """A parser holds the errors of what it has read: each page has its own."""
    return etree.HTMLParser(
        encoding=UTF8, remove_comments=True, remove_pis=True, huge_tree=True, no_network=True, recover=True
    )


def _find_crowded(text: bytes) -> int | None:
    """Return where the first tag begins that has too many attributes, or None.

    A tag may seem to begin inside of another one, so what is read of tags may be more than the page: by
    `_MOST_READ` times, which is more than any page that was meant to be HTML.
    """
    left = _MOST_READ * len(text)
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
"""Tags, and of each the 300th attribute: 60,000 of them take three seconds, in either library."""


# Its elements


class _LinkPlace(NamedTuple):
    """Where something stands."""

    shape: str
    is_aside: bool = False
    is_sectioned: bool = False
    """Whether a header or footer here is no page's."""
    in_article: bool = False
    is_tabular: bool = False


@dataclass(slots=True)
class _Element:
    """One that is open, or has links in it."""

    tag: str
    place: _LinkPlace
    parent: _Element | None
    start: _LinkCounts
    end: _LinkCounts
    heading: tuple[Day, int]
    """What stands above it, and the level of that."""
    row: _Element | None
    """The row that it stands in, if it stands in one."""
    texts: list[str] = field(default_factory=list)
    """What is read in it, up to what a date may have."""
    characters: int = 0
    """Of `texts`."""
    keys: dict[str, dict[str, int]] = field(default_factory=dict)
    """Of a row: the links in it by their shapes, each with its place."""


class _LinkCounts(NamedTuple):
    """How many there are before a place of the page."""

    links: int
    marks: int
    titles: int


class _LinkMark(NamedTuple):
    """A day that is said somewhere."""

    link: int
    """How many links stand before it."""
    said: float | Slashed
    is_marked_up: bool = False
    is_heading: bool = False


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
_PLAIN: Final = frozenset({"b", "i", "u", "em", "strong", "font", "small", "big", "center", "tbody", "thead"})
"""What makes no difference of place: some entries are bold, and people forget to close them."""
_ITEMS: Final = frozenset({"li", "article", "tr", "td", "dd", "dt", "p"})
"""What stands in a row often; classes tell one from the other, by its tags or its number."""
_ROWS: Final = frozenset({"li", "article", "tr", "dd"})
"""What holds an entry and what belongs to it."""
_SIDES: Final = frozenset({"sidebar", "widget", "widget-area"})
_VARYING: Final = re.compile(
    r"(?:post|category|cat|tag|author|status|format|type|term|label|page)-.*|sticky|odd|even|first|last|alt"
    r"|current|active|visited|has-.*|hentry"
)
_DIGITS: Final = re.compile(r"[0-9]+")
_HOST: Final = re.compile(r"\s*(?:https?:)?[/\\]{2}([^/\\?#]*)", re.IGNORECASE)
_BLANKS: Final = re.compile(r"\s+")
_NOTE: Final = re.compile(r"\s{0,9}[(\[]\s{0,3}([0-9]{1,6})\b[^()\[\]]{0,20}[)\]]")
_WHOLE: Final = _LinkPlace("")
_NOTHING: Final = Day(None, None, None)


class _PageReader:
    """A page while it is read, in the order of its text."""

    def __init__(self, url: str, size_bytes: int) -> None:
        self.next_url = ""
        self.is_cut = False
        self._base = url
        self._has_base = False
        self._targets: dict[str, str] = {}
        self._keys: dict[str, str] = {}
        self._hosts: set[str] = set()
        """What links name as their hosts."""
        self._most_elements = min(MAX_ELEMENTS, _FREE_ELEMENTS + size_bytes // _BYTES_PER_ELEMENT)
        self._most_links = min(MAX_LINKS, _FREE_LINKS + size_bytes // _BYTES_PER_LINK)
        self._room = _FREE_CHARACTERS + _GAIN * size_bytes
        """Characters that the URLs of links may still have."""
        self._room_bytes = MAX_KEPT_BYTES
        self._shapes: dict[tuple[str, str, str], str] = {}
        self._places: dict[tuple[_LinkPlace, str, str, str, str], _LinkPlace] = {}
        self._links: list[_PageAnchor] = []
        self._marks: list[_LinkMark] = []
        self._slashed: set[bool | None] = set()
        """Which number of dates in numbers is the day, as far as it shows."""
        self._titles: list[str] = []
        """Of headings that link nothing."""
        self._group = 0
        self._heading, self._level = _NOTHING, 0
        self._anchors = 0
        """How many links are open."""

    def read(self, events: Iterable[tuple[str, Any]]) -> None:
        """Read all elements, each as it begins and as it ends."""
        open_: list[_Element] = []
        unread = 0
        for count, (event, node) in enumerate(events):
            if count > 2 * self._most_elements or self._is_full or len(open_) > MAX_DEPTH:
                self.is_cut = True
                break
            tag = node.tag
            if event == "start":
                unread += tag in _UNREAD
                if not unread:
                    open_.append(self._begin(node, tag, open_[-1] if open_ else None))
                    if text := node.text:
                        self._say(text, open_)
                continue
            if unread:
                unread -= tag in _UNREAD
            else:
                self._end(open_.pop())
            if not unread and open_ and (text := node.tail):
                self._say(text, open_, behind=tag)

    @property
    def _is_full(self) -> bool:
        """Whether it has as many links as it may have, or as long ones."""
        return len(self._links) >= self._most_links or self._room < 0 or self._room_bytes <= 0

    def _begin(self, node: Any, tag: str, parent: _Element | None) -> _Element:
        said = node.get("class") or "", node.get("id") or "", node.get("role") or ""
        around = parent.place if parent else _WHOLE
        place = self._places.get((around, tag, *said))
        if place is None:
            place = self._places[around, tag, *said] = self._find_place(tag, around, *said)
        counts = self._counts()
        row = parent if parent is None or parent.tag in _ROWS else parent.row
        element = _Element(tag, place, parent, counts, counts, (self._heading, self._level), row)
        if tag == "a":
            self._anchors += 1
            self._link(node, element)
        elif tag in ("link", "base"):
            self._relate(node, tag)
        elif tag == "time" and (said := node.get("datetime")):
            at = parse_rfc3339(said) if read_date(said[:10], is_alone=True) else None
            if at is not None:
                self._marks.append(_LinkMark(len(self._links), at, is_marked_up=True))
        return element

    def _counts(self) -> _LinkCounts:
        return _LinkCounts(len(self._links), len(self._marks), len(self._titles))

    def _find_place(self, tag: str, around: _LinkPlace, names: str, own: str, role: str) -> _LinkPlace:
        tokens = f"{names} {own}".lower().split()[:8] if names or own else []
        is_side = not _SIDES.isdisjoint(tokens) and tag not in ("html", "body")
        is_region = is_side or tag in _REGIONS or role in ("navigation", "complementary")
        return _LinkPlace(
            self._shape(around.shape, tag, tokens),
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

    def _relate(self, node: Any, tag: str) -> None:
        href = node.get("href")
        if not href:
            return
        if tag == "base" and not self._has_base:
            self._has_base = True
            self._base = self._target(href) or self._base
            self._targets.clear()
        elif tag == "link" and not self.next_url and "next" in (node.get("rel") or "").lower().split():
            self.next_url = self._target(href)

    def _link(self, node: Any, element: _Element) -> None:
        href = node.get("href")
        if not href or href.startswith("#") or not (url := self._target(href)):
            return
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
        """Count the memory that a text takes."""
        self._room_bytes -= text.__sizeof__()
        return text

    def _target(self, href: str) -> str:
        if href not in self._targets:
            is_followed = len(href) < MAX_LINK_CHARACTERS and self._knows_host(href)
            url = resolve_or_empty(self._base, href.partition("#")[0]) if is_followed else ""
            self._room -= len(url)
            self._targets[href] = url if url and is_http(url) else ""
        return self._targets[href]

    def _knows_host(self, href: str) -> bool:
        """Whether a link names a host that others have named before, none, or one of `MAX_HOSTS`.

        A host that is not ASCII, or in brackets, takes as long as a hundred bytes of others.
        """
        named = _HOST.match(href)
        if named is None or named[1] in self._hosts:
            return True
        if len(self._hosts) < MAX_HOSTS:
            self._hosts.add(named[1])
            return True
        return False

    def _end(self, element: _Element) -> None:
        element.end = self._counts()
        self._anchors -= element.tag == "a"
        has_links = element.start.links < element.end.links
        joined = " ".join(element.texts)
        if element.tag in _HEADINGS and joined and not has_links:
            self._titles.append(joined)
        if has_links or self._anchors:
            return
        has_days = element.start.marks < element.end.marks
        if len(element.texts) > 1 and not has_days:
            self._mark(joined, element)
            if element.start.marks < len(self._marks):
                self._heading, self._level = element.heading
                return
        is_short = joined and len(joined) <= LONGEST and element.tag != "time"
        self._head(element, read_heading(joined) if is_short else None, has_days=has_days)

    def _head(self, element: _Element, said: Day | None, *, has_days: bool) -> None:
        """Mind a heading, and what is one without being marked up as such: a year, the month of one."""
        level = _HEADINGS.get(element.tag, 0)
        self._group += level > 0
        if said is None:
            if level and level <= (self._level or level) and not has_days:
                self._heading, self._level = _NOTHING, 0
        elif said.year is not None and not element.place.is_aside:
            self._heading, self._level = said, level
        elif self._heading.year is not None and not element.place.is_aside:
            self._heading = self._heading._replace(month=said.month)

    def _say(self, text: str, open_: Sequence[_Element], *, behind: str = "") -> None:
        """Mind a text, which stands in the last of the elements that are open."""
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
        slashed = read_slashed(said)
        if slashed is not None:
            self._slashed.add(slashed.is_day_first)
            self._marks.append(_LinkMark(links, slashed, is_heading=is_heading))
            return
        day = read_date(said, is_alone=bool(self._anchors))
        if day is None or (not day.year and self._anchors):
            return
        at = day._replace(year=day.year or self._heading.year).at
        if at is not None:
            self._marks.append(_LinkMark(links, at, is_heading=is_heading))

    def finish(self) -> Iterator[PageLink]:
        """Return the links with the dates that are theirs."""
        known = self._slashed - {None}
        is_day_first = known.pop() if len(known) == 1 else None
        items = _Items(self._links, self._marks)
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
            )

    def _name_link(self, link: _PageAnchor, title: int | None) -> str:
        """Return what a link without a text is called, while there is room."""
        if self._room_bytes <= 0:
            self.is_cut = True
            return ""
        return self._kept(("" if title is None else self._titles[title]) or _label(link.node))


def _place_in_row(element: _Element, key: str) -> int:
    """Return how many other links of the shape of this one stand before it in its row."""
    row = element.row or element.parent
    if row is None:
        return 0
    places = row.keys.setdefault(element.place.shape, {})
    return places.setdefault(key, len(places))


def _title(node: Any) -> str:
    """Return the text of a heading in a link, else all of it but for dates.

    It ends before a link in the link, so that what stands in both is read once.
    """
    inner = list(takewhile(lambda each: each is node or each.tag != "a", islice(node.iter(), 100)))
    for each in inner[:50]:
        if each.tag in _HEADINGS and (text := _all_text(_texts_in(each))):
            return text
    parts = [node.text]
    for each in inner[1:]:
        parts += [None if each.tag in _UNTITLED else each.text, each.tail]
    return _all_text(part for part in parts if part) or _all_text(_texts_in(node))


def _texts_in(node: Any) -> Iterator[str]:
    """Yield the texts of the first hundred elements in an element, up to a link in it, in order."""
    from lxml import etree  # noqa: PLC0415 - as in `read_page`

    for event, inner in islice(etree.iterwalk(node, events=("start", "end")), 200):
        if event == "start" and inner.tag == "a" and inner is not node:
            return
        text = inner.text if event == "start" else inner.tail if inner is not node else None
        if text:
            yield text


_UNTITLED: Final = frozenset({"time", "script", "style"})


def _label(node: Any) -> str:
    """Return what a link without a text is called."""
    pictures = (picture.get("alt") for picture in islice(node.iter("img"), 3))
    return _all_text(text for text in (node.get("aria-label"), node.get("title"), *pictures) if text)


def _all_text(parts: Iterator[str]) -> str:
    text = "".join(part[: 2 * MAX_TEXT_CHARACTERS] for part in islice(parts, 100))
    return _BLANKS.sub(" ", text[: 4 * MAX_TEXT_CHARACTERS]).strip()[:MAX_TEXT_CHARACTERS]


class _Items:
    """What belongs to which link: what is in the largest element that has no other link of its shape."""

    def __init__(self, links: Sequence[_PageAnchor], marks: Sequence[_LinkMark]) -> None:
        self._links = links
        self._marks = marks
        self._shapes = [link.element.place.shape for link in links]
        self._before: list[int] = []
        """For each link, the last one before it of its shape; -1 where there is none."""
        self._behind = [len(links)] * len(links)
        """The first one behind it."""
        last: dict[str, int] = {}
        for number, shape in enumerate(self._shapes):
            before = last.get(shape, -1)
            if before >= 0:
                self._behind[before] = number
            self._before.append(before)
            last[shape] = number
        self.of = [self._item(link.element, number) for number, link in enumerate(links)]
        """The elements."""
        self._dated = {self._shapes[n] for n, each in enumerate(self.of) if each.start.marks < each.end.marks}
        self._leads: dict[str, bool] = {}
        """For each shape, whether dates stand in front where links and dates stand in one row."""

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

    def title_of(self, number: int) -> int | None:
        """Return the number of the heading that is nearest to a link."""
        around = next(
            (each for each in self._elements_around(number) if each.start.titles < each.end.titles), None
        )
        return around.start.titles if around else None

    def mark_of(self, number: int) -> _LinkMark | None:
        """Return the date of a link; None: it has none."""
        for around in self._elements_around(number):
            inside = self._marks[around.start.marks : around.end.marks][:_LOOKED_AT]
            if inside:
                return next((mark for mark in inside if mark.is_marked_up), inside[0])
        row = self.of[number].parent
        if row is None or self._is_single(number) or self._shapes[number] in self._dated:
            return None
        return self._beside(number, row)

    def _elements_around(self, number: int) -> Iterator[_Element]:
        """Yield the elements around a link that have no other of its shape, from the link on."""
        element, item = self._links[number].element, self.of[number]
        while element is not item and element.parent is not None:
            yield element
            element = element.parent
        yield item

    def _beside(self, number: int, row: _Element) -> _LinkMark | None:
        """Return the date of a link that stands in one row with others and their dates."""
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


_LOOKED_AT: Final = 8
"""Of the dates of one entry."""
