"""Find links to lists, and from page to page of a list (H2, H4); nothing is decided."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from typing import Final, NamedTuple

from wholefeed.core.listing.lists import ListedFeedEntries
from wholefeed.core.listing.page_dates import MONTH_IN_URL, MONTHS, Day, read_heading
from wholefeed.core.listing.page_links import link_key
from wholefeed.core.listing.page_reading import ListPage, PageLink
from wholefeed.core.text.urls import split

# The next page


class Next(NamedTuple):
    url: str
    key: str
    kind: str
    """Evidence: `rel`, `word`, `count`, `button`."""


def next_urls(page: ListPage, *, by_button: bool = False) -> list[Next]:
    """Return possible next pages, likeliest first.

    `by_button`: this page came by a button's URL, so a script may count on where it has none.
    """
    found = [Next(page.next_url, link_key(page.next_url), "rel")] if page.next_url else []
    found += [Next(link.url, link.key, "rel") for link in page.links if link.is_next]
    found += [Next(link.url, link.key, "word") for link in page.links if _is_older(link.text)]
    found += [Next(count.url, link_key(count.url), "count") for count in islice(counts_on(page), _MOST_ROWS)]
    found += [Next(url, link_key(url), "button") for url in page.more_urls]
    if by_button and not found:
        found += [
            Next(url, link_key(url), "button")
            for head, number, tail in _numbers(page.url)
            if _PAGED.search(head[-12:]) and not _OFFSET.search(head[-12:])
            for url in [f"{head}{number + 1}{tail}"]
        ]
    unique: dict[str, Next] = {}
    for each in found:
        unique.setdefault(each.key, each)
    unique.pop(link_key(page.url), None)
    return list(unique.values())


_MOST_ROWS: Final = 20


def _is_older(text: str) -> bool:
    if not text or len(text) > _LONGEST_WORDS:
        return False
    words = _BLANKS.sub(" ", _ARROWS.sub(" ", text)).strip().casefold()
    return words in _OLDER or words.startswith(_LOAD) if words else text.strip() in _POINTERS


_LONGEST_WORDS: Final = 40
_BLANKS: Final = re.compile(r"\s+")
_ARROWS: Final = re.compile(r"[«»‹›←→<>⟵⟶↩↪⇐⇒▸►◂◄\W]+")  # noqa: RUF001 - arrows
_LOAD: Final = ("load more ", "show more ", "view more ", "see more ", "load older ", "show older ")
_POINTERS: Final = frozenset({"»", "›", "→", ">", ">>", "⟶", "►", "▸", "»»"})  # noqa: RUF001
_OLDER: Final = frozenset(
    """older|older posts|older entries|older articles|older stories|earlier|earlier posts|earlier entries
    |more|more posts|more entries|more articles|load more|show more|next|next page|next posts|next entries
    |previous|previous posts|previous entries|previous page|prev|previous articles
    |ältere|ältere beiträge|ältere artikel|ältere einträge|weiter|nächste|nächste seite|vorherige beiträge
    |suivant|page suivante|articles précédents|plus anciens|anciens articles|siguiente|página siguiente
    |entradas anteriores|entradas antiguas|más antiguas|successivo|pagina successiva|articoli precedenti
    |post più vecchi|próxima|próximo|próxima página|posts anteriores|volgende|oudere berichten|vorige
    |далее|следующая|старые записи|下一页|次へ|次のページ""".replace("\n", "")
    .replace("    |", "|")
    .split("|")
)


class Count(NamedTuple):
    """A link like a page's URL except for a number."""

    url: str
    number: int
    last: int
    """Highest number of its row."""
    step: int
    head: str
    tail: str
    """Both surround the number."""

    def following(self) -> Count:
        number = self.number + self.step
        return self._replace(url=f"{self.head}{number}{self.tail}", number=number)


def counts_on(page: ListPage) -> Iterator[Count]:
    """Yield the neighbours of this page, or its successor, in rows of numbered links."""
    rows: dict[tuple[str, str], dict[int, str]] = {}
    own = list(_numbers(page.url))
    for link in page.links:
        for head, number, tail in _numbers(link.url):
            rows.setdefault((head, tail), {}).setdefault(number, link.url)
    for (head, tail), urls in rows.items():
        here = next((number for at, number, end in own if (at, end) == (head, tail)), None)
        is_offset = _OFFSET.search(head[-12:]) is not None
        following = _following(here, head, urls, is_offset=is_offset)
        if not following or (here is None and not _may_begin(page.url, head, urls)):
            continue
        for number in following:
            step = number if here is None and is_offset else 1
            yield Count(urls[number], number, max(urls), step, head, tail)


def _following(here: int | None, head: str, urls: dict[int, str], *, is_offset: bool) -> list[int]:
    if here is not None:
        higher = [number for number in urls if number > here]
        lower = [number for number in urls if number < here]
        return [*([min(higher)] if higher else []), *([max(lower)] if lower else [])]
    if 2 in urls:  # noqa: PLR2004 - the second page
        return [2]
    if is_offset:
        return sorted(number for number in urls if number)[:1]
    return [max(urls)] if _DOWN.search(head[-12:]) else []


def _may_begin(page_url: str, head: str, urls: dict[int, str]) -> bool:
    """Return whether a row belongs to an unnumbered page: below or beside it."""
    if len(urls) > _MOST_NUMBERS or not (_PAGED.search(head[-12:]) or head.endswith("/")):
        return False
    path = split(page_url).path
    stem = re.sub(r"(?:index)?(?:\.[a-z]{2,5})?\Z", "", path[-200:])
    folder = path[: path.rfind("/") + 1][-200:]
    start = split(head).path
    return start.startswith((stem, folder)) or path.startswith(start)


_MOST_NUMBERS: Final = 2000
_PAGED: Final = re.compile(
    r"(?:page|paged|p|pg|seite|pagina|offset|start|skip|index|from)[/:=_-]?\Z", re.IGNORECASE
)
_OFFSET: Final = re.compile(r"(?:offset|start|skip|from)[/:=]\Z", re.IGNORECASE)
_DOWN: Final = re.compile(r"(?:index|page)[-_]\Z", re.IGNORECASE)
_TAIL: Final = re.compile(r"/?|(?:/index)?\.[a-z]{2,5}|&.{1,40}")
_RUN: Final = re.compile(r"(?<![0-9])[0-9]{1,6}(?![0-9])")


def _numbers(url: str) -> Iterator[tuple[str, int, str]]:
    start = max(url.find("/", 8), len(url) - 2 * _LONGEST_WORDS, 0)
    runs = list(_RUN.finditer(url, start))[-3:]
    for run in reversed(runs):
        tail = url[run.end() :]
        if (run[0] == "0" or not run[0].startswith("0")) and _TAIL.fullmatch(tail):
            yield url[: run.start()], int(run[0]), tail


def leads_on(link: PageLink) -> bool:
    return (
        link.is_next
        or next(_numbers(link.url), None) is not None  # first, because it takes least
        or _is_older(link.text)
        or _span(link) is not None
        or _rank(link) is not None
    )


# Years and months


class Level(NamedTuple):
    urls: tuple[str, ...]
    """Newest first."""
    total: int
    """Entries counted in brackets; 0: unknown."""
    first_year: int
    is_chain: bool = False
    """Whether each page links the one before it alone, as calendars do."""


def levels_on(page: ListPage, feed: ListedFeedEntries) -> list[Level]:
    shapes = feed.shapes_on(page)
    found: dict[tuple[str, bool], dict[str, tuple[tuple[int, int], int]]] = {}
    own = link_key(page.url)
    for link in page.links:
        span = _span(link)
        if span is not None and link.key != own and link.shape not in shapes:
            alike = found.setdefault((link.shape, span[1] > 0), {})
            alike.setdefault(link.url, (span, _noted_links(link)))
    levels = []
    for alike in found.values():
        if len({span for span, _ in alike.values()}) < 2:  # noqa: PLR2004 - a single one is no list
            continue
        ordered = sorted(alike.items(), key=lambda each: each[1][0], reverse=True)
        notes = [note for _, (_, note) in ordered]
        total = sum(notes) if all(notes) else 0
        levels.append(Level(tuple(url for url, _ in ordered), total, ordered[-1][1][0][0]))
    return levels or _chain_on(page, feed)


def _chain_on(page: ListPage, feed: ListedFeedEntries) -> list[Level]:
    """Return the months from the feed's newest entry on to the one before that a calendar links."""
    found = next(((span, url) for span, url in earlier_on(page) if span[1]), None)
    if found is None:
        return []
    span, url = found
    days = (Day.of(at) for at in sorted(feed.dates.values(), reverse=True))
    known = dict.fromkeys((day.year or 0, day.month or 0) for day in days)
    later = [_with_span(url, each) for each in known if each > span]
    urls = dict.fromkeys(each for each in (*later, url) if each)
    return [Level(tuple(urls), 0, span[0], is_chain=True)]


def earlier_on(page: ListPage) -> Iterator[tuple[tuple[int, int], str]]:
    """Yield the months and years before that arrows or names of months link, the last one first."""
    own = _span_in(page.url)
    near = [
        (span, link.url)
        for link in page.links
        if (span := _span_in(link.url)) is not None and _is_near(link.text) and (own is None or span < own)
    ]
    yield from sorted(near, reverse=True)


def _is_near(text: str) -> bool:
    words = _ARROWS.sub(" ", text[:_LONGEST_WORDS]).strip().casefold()
    said = read_heading(words) if words else None
    return words in _OLDER if words and said is None else bool(text.strip())


def _with_span(url: str, span: tuple[int, int]) -> str:
    """Return a URL of a month for another one; empty: its months have names."""
    found = _SPAN.search(url)
    if found is None or not found[1] or not found[2] or not found[2].isdecimal():
        return ""
    year, month = span
    written = f"{month:02}" if found[2].startswith("0") or len(found[2]) > 1 else str(month)
    return f"{url[: found.start(1)]}{year}{url[found.end(1) : found.start(2)]}{written}{url[found.end(2) :]}"


def _span_in(url: str) -> tuple[int, int] | None:
    found = _SPAN.search(url[-80:])
    if found is None:
        return None
    month = found[2] or found[4] or "0"
    return int(found[1] or found[3]), int(month) if month.isdecimal() else MONTHS[month.casefold()]


def _span(link: PageLink) -> tuple[int, int] | None:
    """Return a link's year and month (0: all)."""
    if found := _span_in(link.url):
        return found
    said = read_heading(link.text) if len(link.text) < _LONGEST_WORDS else None
    if said and said.year and str(said.year) in link.url:
        return said.year, said.month or 0
    return None


_SPAN: Final = re.compile(
    rf"/((?:19|20)[0-9]{{2}})(?:[-/](0[1-9]|1[0-2]|[1-9]|{MONTH_IN_URL}))?(?:\.[a-z]{{3,5}}|/index\.[a-z]{{3,5}}|/)?\Z"
    r"|[?&](?:m|year|y)=((?:19|20)[0-9]{2})(0[1-9]|1[0-2])?\Z"
)
_NOTED: Final = re.compile(r"[(\[]\s{0,3}([0-9]{1,6})\b")


def _noted_links(link: PageLink) -> int:
    inside = _NOTED.search(link.text)
    return int(link.note or (inside[1] if inside else 0))


# Lists by their names


def archives_on(page: ListPage) -> list[PageLink]:
    named = [(rank, link) for link in page.links if (rank := _rank(link)) is not None]
    return [link for _, link in sorted(named, key=lambda each: each[0])]


def is_menu(link: PageLink) -> bool:
    """Return whether a link stands in a menu, and leads to a place near the root."""
    parts = split(link.url)
    return link.is_aside and parts.query is None and parts.path.strip("/").count("/") < _MENU_DEPTH


def menu_on(page: ListPage) -> list[PageLink]:
    links = [link for link in page.links if is_menu(link) and not _TAGGED.search(split(link.url).path[-80:])]
    return sorted(links, key=lambda link: _OTHER_PAGES.search(split(link.url).path[-80:]) is not None)


_MENU_DEPTH: Final = 2
_OTHER_PAGES: Final = re.compile(
    r"/(?:about(?:-.*)?|contact|search|log-?in|sign-?up|register|privacy.*|imprint|impressum|terms.*|cookies"
    r"|subscribe|newsletter|uses|now|projects|talks|cv|resume|photos|gallery|links|blogroll|donate|support"
    r"|faq|help|shop|cart|tags|categories|topics|series)/?(?:\.[a-z]{3,5})?\Z",
    re.IGNORECASE,
)
_TAGGED: Final = re.compile(
    r"/(?:tags?|tagged|category|categories|topics?|labels?|authors?)/.", re.IGNORECASE
)
"""Below these, names are those of subjects and people."""


def _rank(link: PageLink) -> int | None:
    if _TAGGED.search(split(link.url).path[-80:]):
        return None
    words = _BLANKS.sub(" ", _ARROWS.sub(" ", link.text[:_LONGEST_WORDS])).strip().casefold()
    path = split(link.url).path[-80:].rstrip("/").casefold()
    name = _FILE.sub("", path.rpartition("/")[2])
    for rank, (phrases, names) in enumerate(_ARCHIVES):
        if words in phrases or name in names:
            return rank
    return None


_FILE: Final = re.compile(r"\.(?:html?|php|aspx?)\Z")
_ARCHIVES: Final = tuple(
    (frozenset(each.strip() for each in words.split("|")), frozenset(names.split()))
    for words, names in (
        (
            """archive|archives|all posts|all articles|all entries|the archive|blog archive|post archive|all
            |full archive|complete archive|see all posts|view all posts|view all|older posts|archiv|archivo
            |archivos|archivio|arquivo|archief|alle beiträge|tous les articles|todas las entradas|архив|归档
            |アーカイブ""",
            "archive archives all-posts allposts archiv archivo archives-all blog-archive all",
        ),
        (
            """posts|blog|articles|writing|writings|history|index|all writing|weblog|journal|essays|the blog
            |list|posts by date|more posts|browse|past entries|past issues|diary|notes""",
            "posts blog articles writing writings history index weblog journal essays by-date diary notes",
        ),
    )
)
ROOT_NAMES: Final = ("archives/", "archive/", "posts/", "blog/", "archives.html", "archive.html", "articles/")
