"""Find the list of a feed's entries in its site (H2 to H5, H8).

`look` is a generator without I/O: it yields one `PageRequest` at a time and is sent a `ListPage` or `NotHad`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from hashlib import blake2b
from itertools import islice
from typing import Any, Final, NamedTuple, Self, TypeVar

from wholefeed.core.adapters.base import GONE
from wholefeed.core.listing.file_search import (
    FILE_WAYS,
    INDEX,
    MOST_FILES,
    SITEMAP,
    FileAnswer,
    FileRequest,
    FileSearch,
    SiteFile,
    SitemapNames,
    SitemapNamesRequest,
)
from wholefeed.core.listing.joined_sources import (
    GivenEntries,
    ListedPage,
    SourceOutcome,
    join_sources,
)
from wholefeed.core.listing.kept import Keeping
from wholefeed.core.listing.listed_entries import EntryMaker
from wholefeed.core.listing.lists import (
    LEAST,
    NEWEST,
    OLDEST,
    SHUFFLED,
    TOPS,
    EntryList,
    FeedEntry,
    Item,
    ListedFeedEntries,
    ListRow,
    ReadListPage,
    list_like,
    lists_on,
    plain,
)
from wholefeed.core.listing.page_dates import Day, day_in
from wholefeed.core.listing.page_links import link_key
from wholefeed.core.listing.page_reading import ListPage, PageLink
from wholefeed.core.listing.post_pages import PostFacts, PostKind, says_day
from wholefeed.core.listing.search_indexes import SearchIndex
from wholefeed.core.listing.site_files import FileEntry, PageEvidence, is_page_name
from wholefeed.core.listing.sitemaps import Sitemap
from wholefeed.core.listing.ways import (
    ROOT_NAMES,
    Level,
    Next,
    archives_on,
    counts_on,
    earlier_on,
    levels_on,
    menu_on,
    next_urls,
)
from wholefeed.core.slugs import SLUGS, slug_in_words
from wholefeed.core.text.dates import DAY_SECONDS
from wholefeed.core.text.urls import resolve_or_empty, split


@dataclass(frozen=True, slots=True, kw_only=True)
class LookMemory:
    first_url: str = ""
    """Empty: no list found."""
    way: str = ""
    """`pages`, each leading to the next, `levels`, `chain`, from post to post, or one of `FILE_WAYS`."""
    shape: str = ""
    """See `EntryList`; of a chain, its relation."""
    tops: tuple[str, ...] = ()
    """Keys of the newest listed entries."""
    missing: tuple[str, ...] = ()
    """URLs of failed pages that may come later."""
    others: tuple[str, ...] = ()
    """Digests of keys: pages named by a file, but no entries."""

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Self:
        """Read stored fields; those of other versions are ignored."""
        known: dict[str, Any] = {each.name: values[each.name] for each in fields(cls) if each.name in values}
        return cls(**known | {name: tuple(it) for name, it in known.items() if isinstance(it, list)})


@dataclass(frozen=True, slots=True, kw_only=True)
class ListJob:
    feed_url: str
    """After redirects."""
    home_urls: tuple[str, ...]
    """Pages linked in the feed's head; absolute."""
    entries: tuple[FeedEntry, ...]
    site_of: Callable[[str], str]
    """Returns a URL's registrable domain; no other site is asked."""
    most_pages: int = 200
    """Pages of one list, the first included."""
    now: float
    known: LookMemory = LookMemory()
    known_keys: Container[str] = frozenset()
    """`link_key` of entries listed already or in the feed."""
    generator: str = ""


class PageRequest(NamedTuple):
    url: str
    is_guess: bool = False
    """Whether no page or file names it."""


class NotHad(NamedTuple):
    url: str
    slug: str
    status: int | None
    is_lasting: bool
    """404, 410 or robots.txt: never asked again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MissingPage:
    url: str
    slug: str
    status: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class LookOutcome:
    """A page that did not count."""

    url: str
    why: str
    """A slug of `WHY` or of a failure."""


WHY: Final = {
    "entries-elsewhere": "the entries of the feed have no pages of their own in its site",
    "no-list": "the page has no list of the feed's entries",
    "feeds-entries-not-met": "the list there has other entries than the feed",
    "out-of-order": "the list there has no order that could be recognised",
    "not-needed": "the list there stands on other pages, too",
    "nothing-more": "the entries listed there are in the feed already",
    "pages-not-told": "nothing tells posts from other pages there",
    "feed-of-a-part": "the feed seems to be of a part of the site that is listed there",
    "repeats": "its pages list the same entries again",
    "cross-origin": "the page is at another site",
    "http-status": "the publisher responded with an error",
    "robots": "the publisher's robots.txt asks programs not to read it",
    "not-had": "the page could not be fetched",
}
"""In words for people. Failures keep their slugs; a status follows `http-status`."""


def why_in_words(why: str) -> str:
    slug, _, status = why.partition(" ")
    if status.isdecimal() and int(status) in GONE:
        return "there is no such page"
    if slug in WHY:
        return WHY[slug]
    return slug_in_words(slug) if slug in SLUGS and SLUGS[slug].words else WHY["not-had"]


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundLists:
    pages: tuple[ListedPage, ...]
    """Newest first; empty: nothing is listed."""
    missing: tuple[MissingPage, ...]
    looked: tuple[LookOutcome, ...]
    known: LookMemory
    is_cut: bool
    """Whether limits left out pages, or links of one."""
    sources: tuple[SourceOutcome, ...] = ()
    """The one that counts first."""


Answer = ListPage | NotHad | Sitemap | SearchIndex | SitemapNames
T = TypeVar("T")
Asking = Generator[PageRequest | FileRequest, Answer, T]


def look(job: ListJob) -> Asking[FoundLists]:
    return (yield from _ListSearch(job).run())


MOST_ENTRIES: Final = 50_000
"""Per list."""
MOST_LOOKS: Final = 8
"""Requests for pages outside the list."""
_MOST_TRIES: Final = 4  # candidates for the next page
_KEPT: Final = 3
"""Requests that looking around leaves for the walk, once a way is known, and the menu for guesses."""
_MOST_OF_MENU: Final = 4
_MOST_OF_OTHERS: Final = 2  # pages of the menu, to compare posts with
_MOST_FAILED: Final = 3  # pages in a row that were not had
_A_FEW: Final = 10  # posts between two looks at whether the feed is of the whole site
_MOST_REMEMBERED: Final = 2000
_SAME_DAY: Final = 10  # entries in a row on one day: their dates are none
_FEW: Final = 3
_MANY: Final = 1000


@dataclass(frozen=True, slots=True)
class _Way:
    """A way to read a list, from `page` on."""

    page: ListPage
    listed: EntryList | None
    """None: the pages of `level` have the list."""
    level: Level | None
    promise: int
    """Expected entries; 0: unknown."""
    requests: int
    is_open: bool
    """Whether there may be more than promised."""
    is_dated: bool = True


class _ListWalk(NamedTuple):
    way: _Way
    pages: list[ReadListPage]
    order: str
    """An order, or a slug: why this is no list."""
    shape: str = ""
    missing: tuple[MissingPage, ...] = ()
    is_cut: bool = False

    @property
    def is_list(self) -> bool:
        return self.order in (NEWEST, OLDEST, SHUFFLED)


class _ListSearch:
    def __init__(self, job: ListJob) -> None:
        self._job = job
        self._site = job.site_of(job.feed_url)
        self._feed = ListedFeedEntries.of(job.entries, self._is_own)
        self._keeping = Keeping(self._feed)
        self._had: dict[str, ListPage | NotHad] = {}
        """Pages and failures by key."""
        self._looked: dict[str, LookOutcome] = {}
        self._spare = MOST_LOOKS
        self._requests = 0
        self._adds_slash = False
        self._posts: dict[str, PostFacts] = {}
        """Entries by key, shown by their pages."""
        self._others = dict.fromkeys(job.known.others)
        self._seen = -1, PageEvidence()
        """A number of pages, and the evidence from them."""
        self._checked = 0
        """Number of requests for pages named by a file."""
        self._lost: list[MissingPage] = []
        """Files and pages of possible entries, not had."""
        self._lasting: set[str] = set()
        """Those of them that are never asked for again."""
        self._files = FileSearch(
            feed=self._feed,
            feed_url=job.feed_url,
            home_urls=self._homes() if self._feed.is_fit else (),
            most_files=job.most_pages,
            ask=self._ask_file,
            refuse=self._note,
        )

    def run(self) -> Asking[FoundLists]:
        found = yield from self._run()
        return replace(found, known=replace(found.known, others=tuple(self._others)[-_MOST_REMEMBERED:]))

    def _run(self) -> Asking[FoundLists]:
        """Look at the known list first, else everywhere."""
        if not self._feed.is_fit:
            return self._nothing(LookOutcome(url=self._job.feed_url, why="entries-elsewhere"))
        if self._job.known.first_url:
            found = yield from self._look_again()
            if found is not None:
                return found
        ways: list[_Way] = []
        yield from self._look_around(ways, self._homes())
        index = yield from self._find_index()
        walked = None
        if index is None or not index.has_days:
            walked = yield from self._walk_best(ways)
            if walked is None:
                ways = []
                yield from self._look_around(ways, self._menu(), kept=_KEPT)
                walked = yield from self._walk_best(ways)
        guesses = self._guesses()
        sitemap = yield from self._files.find_sitemap(
            self._evidence(), wanted=frozenset(map(link_key, guesses)), listed=_whole_keys(walked, index)
        )
        if walked is None and index is None:
            named = [url for url in guesses if link_key(url) in self._files.pages]
            # a sitemap with entries names the pages that there are
            guesses = named if sitemap is not None else list(dict.fromkeys([*named, *guesses]))
            ways = []
            yield from self._look_around(ways, guesses, kept=1, are_guesses=True)
            walked = yield from self._walk_best(ways)
        if walked is None and index is None and sitemap is None:
            walked = yield from self._walk_chain()
        listed = _whole_keys(walked, None)
        index = yield from self._check_pages(INDEX, index, listed)
        sitemap = yield from self._check_pages(SITEMAP, sitemap, listed)
        return self._join(self._found(walked) if walked else None, index, sitemap)

    def _nothing(self, *further: LookOutcome) -> FoundLists:
        looked = (*self._looked.values(), *further)
        return FoundLists(pages=(), missing=(), looked=looked, known=LookMemory(), is_cut=False)

    # Places to look

    def _look_around(
        self, ways: list[_Way], urls: list[str], *, kept: int = 0, are_guesses: bool = False
    ) -> Asking[None]:
        waiting, number, guesses = list(urls), 0, len(urls) if are_guesses else 0
        while number < len(waiting) and self._may_go_on and self._spare > (_KEPT if ways else kept):
            page = yield from self._ask(waiting[number], is_guess=number < guesses)
            number += 1
            if not isinstance(page, ListPage):
                continue
            ways += self._ways_on(page)
            is_long = any(way.requests == 0 and way.is_dated and self._is_long(way) for way in ways)
            if is_long and (number > 1 or kept):
                return
            shapes = self._feed.shapes_on(page)
            named = (link.url for link in archives_on(page) if self._may_look(link, shapes))
            waiting += [url for url in islice(dict.fromkeys(named), MOST_LOOKS) if url not in waiting]

    def _is_long(self, way: _Way) -> bool:
        return way.listed is not None and way.promise > 2 * self._feed.entries

    def _homes(self) -> list[str]:
        own = [url for url in self._job.home_urls if self._is_own(url)]
        return own or [_root(self._feed.links[0])]

    def _menu(self) -> list[str]:
        page = self._had.get(link_key(self._homes()[0]))
        if not isinstance(page, ListPage) or self._keeping.has_twins:
            return []
        shapes = self._feed.shapes_on(page)
        links = (link for link in menu_on(page) if link.key not in self._had and self._may_look(link, shapes))
        return list({link.key: link.url for link in links}.values())[:_MOST_OF_MENU]

    def _guesses(self) -> list[str]:
        """Return usual addresses of lists, linked or not."""
        if self._keeping.has_twins:  # the site may answer every path with one page
            return []
        urls = [resolve_or_empty(self._homes()[0], f"/{name}") for name in ROOT_NAMES]
        keys = {url: link_key(url) for url in urls}
        return [url for url, key in keys.items() if is_page_name(key) or not self._feed.shape.fits(key)]

    def _may_look(self, link: PageLink, shapes: Container[str]) -> bool:
        """Return whether a linked page may list entries, rather than be one."""
        # where other pages have paths like entries, a menu link of another shape is no entry
        is_menu = link.is_aside and link.shape not in shapes
        is_entry = self._feed.shape.fits(link.key) and not is_menu
        if is_entry or link.key in self._feed.order:
            return False
        return self._is_own(link.url) and not _NO_PAGE.search(split(link.url).path[-80:])

    @property
    def _may_go_on(self) -> bool:
        return self._spare > 0 and not self._keeping.is_full

    def _is_own(self, url: str) -> bool:
        return self._job.site_of(url) == self._site

    def _ask(self, url: str, *, is_page: bool = False, is_guess: bool = False) -> Asking[ListPage | NotHad]:
        """Return a page. `is_page`: of a list."""
        if self._adds_slash and is_page:
            url = _with_slash(url)
        key = link_key(url)
        if key in self._had:
            return self._had[key]
        if not self._is_own(url):
            return NotHad(url, "cross-origin", None, True)
        self._spare -= 1
        self._requests += 1
        answer = yield from self._get(url, is_guess=is_guess)
        if isinstance(answer, ListPage):
            self._adds_slash |= answer.url == f"{url}/"
            answer = self._keeping.keep(answer._replace(parts=frozenset()) if is_page else answer)
        self._had[key] = answer
        if isinstance(answer, NotHad):
            why = f"{answer.slug} {answer.status}" if answer.status else answer.slug
            self._note(url, why)
        else:
            self._had.setdefault(link_key(answer.url), answer)
            self._note(url, "no-list")
        return answer

    def _get(self, url: str, *, is_guess: bool = False) -> Asking[ListPage | NotHad]:
        answer = yield PageRequest(url, is_guess)
        assert isinstance(answer, ListPage | NotHad), "the answer to a request for a page"
        if isinstance(answer, ListPage) and not self._is_own(answer.url):
            return NotHad(url, "cross-origin", None, True)
        return answer

    def _note(self, url: str, why: str) -> None:
        self._looked[link_key(url)] = LookOutcome(url=url, why=why)

    # Files that name all pages

    def _find_index(self) -> Asking[SiteFile | None]:
        found = yield from self._files.find_archive(self._job.generator)
        if found is None:
            names = (url for page in self._pages() for url in page.indexes)
            found = yield from self._files.find_index(names, self._evidence())
        return found

    def _pages(self) -> list[ListPage]:
        return [page for page in self._had.values() if isinstance(page, ListPage)]

    def _evidence(self) -> PageEvidence:
        if self._seen[0] != len(self._had):
            made = PageEvidence.of(
                self._pages(),
                self._feed,
                posts=self._posts,
                known=self._job.known_keys,
                is_other=lambda key: _digest(key) in self._others,
            )
            self._seen = len(self._had), made
        return self._seen[1]

    def _ask_file(self, request: FileRequest) -> Asking[FileAnswer]:
        if not self._is_own(request.url):
            return None
        answer = yield request
        assert not isinstance(answer, ListPage), "the answer to a request for a file"
        if not isinstance(answer, NotHad):
            return answer
        if isinstance(request, SitemapNamesRequest):  # its URL is a post's
            return None
        if answer.status not in GONE:  # most are guesses
            self._note(request.url, f"{answer.slug} {answer.status}" if answer.status else answer.slug)
        self._lost.append(MissingPage(url=answer.url, slug=answer.slug, status=answer.status))
        if answer.is_lasting:
            self._lasting.add(answer.url)
        return None

    # Pages that a file names

    def _check_pages(
        self, way: str, file: SiteFile | None, listed: frozenset[str]
    ) -> Asking[SiteFile | None]:
        """Return the file with further entries, shown by their own pages.

        `listed`: keys of a list that seems whole.
        """
        failed = frozenset(self._job.known.missing)  # those may fail again, so they come last
        doubtful, unsure = (
            sorted(it.get(way, ()), key=lambda each: each.url in failed)
            for it in (self._files.doubtful, self._files.unsure)
        )
        named = {each.key for each in doubtful} | set(file.keys if file else ())
        if not (doubtful or unsure) or 2 * len(named - listed) <= len(listed):
            return file
        kind, most = yield from self._learn_posts(is_brief=bool(file and file.has_days and not doubtful))
        is_cut = (yield from self._look_at_posts(kind, most, way, doubtful, unsure)) if kind else False
        if kind:  # those that the limit left out are missing still
            self._lost += [
                MissingPage(url=each.url, slug="limit", status=None)
                for each in (*doubtful, *unsure)
                if each.url in failed and self._is_open(each)
            ]
        evidence = self._evidence()
        found = self._files.judge_again(way, evidence)
        self._others |= {_digest(key): None for key in evidence.menu if self._feed.shape.fits(key)}
        return replace(found, is_cut=True) if found and is_cut else found

    def _is_open(self, page: FileEntry) -> bool:
        is_known = page.key in self._posts or _digest(page.key) in self._others
        return not is_known and all(page.url != each.url for each in self._lost)

    def _look_at_posts(
        self,
        kind: PostKind,
        most: int,
        way: str,
        doubtful: Sequence[FileEntry],
        unsure: Sequence[FileEntry],
    ) -> Asking[bool]:
        """Return whether possible entries are left."""
        failed, found = 0, 0
        for number, each in enumerate((*doubtful, *unsure)):
            is_told = number >= len(doubtful)
            if self._checked >= most:
                return not is_told
            if each.key in self._posts or not self._is_own(each.url):
                continue
            self._checked += 1
            page = yield from self._get(each.url)
            is_lost = isinstance(page, NotHad) and not page.is_lasting
            failed = failed + 1 if is_lost else 0
            if isinstance(page, NotHad):
                if is_lost:
                    self._lost.append(MissingPage(url=each.url, slug=page.slug, status=page.status))
                    if failed >= _MOST_FAILED or page.slug == "host-backoff":
                        return not is_told
                    continue
            elif link_key(page.url) == each.key and (
                facts := kind.read_post(page, self._feed, is_told=is_told)
            ):
                self._posts[each.key] = facts
                found += 1
                if found % _A_FEW == 0 and self._files.judge_again(way, self._evidence()) is None:
                    return False  # the feed is of a part of the site
                continue
            self._others[_digest(each.key)] = None
        return False

    def _learn_posts(self, *, is_brief: bool) -> Asking[tuple[PostKind | None, int]]:
        """Compare pages of the feed's entries with others; the number is a limit for further pages.

        `is_brief`: only the rest of the looks may be spent.
        """
        spare, requests = self._spare, self._requests
        samples = self._last_links()[1 if is_brief else 0 :]
        if is_brief and spare <= len(samples):
            return None, 0
        own = dict[str, ListPage]()
        for link in samples:
            page = yield from self._ask(link)
            if isinstance(page, NotHad) or not says_day(page, self._feed.dates.get(link_key(link))):
                return None, 0
            self._refund(link)
            own[link_key(link)] = page
        yield from self._ask(self._homes()[0])
        others = self._other_pages()
        links = (link for page in others for link in menu_on(page) if link.key not in self._had)
        urls = list({link.key: link.url for link in links if self._is_own(link.url)}.values())
        for url in urls[: 0 if is_brief else max(0, 1 + _MOST_OF_OTHERS - len(others))]:
            yield from self._ask(url)
            self._refund(url)
        kind = PostKind.learn(own, self._other_pages(), self._feed)
        if kind is not None:  # with their titles, "Issue 12" is one
            self._posts |= {key: kind.facts_of(page) for key, page in own.items()}
        left = spare - (self._requests - requests) + max(0, MOST_FILES - self._files.asked)
        return kind, self._checked + left if is_brief else self._job.most_pages

    def _other_pages(self) -> list[ListPage]:
        return [page for page in self._pages() if link_key(page.url) not in self._feed.order]

    def _last_links(self) -> list[str]:
        """Return the links of the feed's last entries, which are most like older ones."""
        return sorted(self._feed.links, key=lambda link: self._feed.order[link_key(link)])[-LEAST:]

    def _join(self, found: FoundLists | None, *files: SiteFile | None) -> FoundLists:
        """Return the entries of all sources: a dated index, a list, an index, a sitemap."""
        given = [self._given(file) for file in files if file is not None]
        if found is not None:
            is_cut = found.is_cut or bool(found.missing)
            place = 1 if given and files[0] is not None and files[0].has_days else 0
            given.insert(place, GivenEntries("list", found.known.first_url, found.pages, is_cut))
        if not given:
            return self._nothing()
        dates = {key: at for file in files if file is not None for key, at in file.selection.dates.items()}
        pages, sources = join_sources(given, dates)
        first = given[0]
        if found is None or first.kind != "list":
            file = next(each for each in files if each is not None and each.url == first.url)
            found = self._found_in(file)
        return replace(found, pages=pages, sources=sources, looked=tuple(self._looked.values()))

    def _given(self, file: SiteFile) -> GivenEntries:
        self._looked.pop(link_key(file.url), None)
        listed = EntryMaker(self._feed, self._job.now, self._pages(), is_ordered=True)
        pages = listed.list_pages([ReadListPage(file.url, list(file.selection.items))])
        is_cut = file.is_cut or any(each.url not in self._lasting for each in self._lost)
        return GivenEntries(file.way, file.url, pages, is_cut)

    def _found_in(self, file: SiteFile) -> FoundLists:
        missing = tuple(each for each in self._lost if file.way != INDEX and each.url not in self._lasting)
        known = LookMemory(
            first_url=file.url,
            way=file.way,
            tops=tuple(islice(file.keys, TOPS)),
            missing=tuple(each.url for each in missing),
        )
        return FoundLists(pages=(), missing=missing, looked=(), known=known, is_cut=file.is_cut)

    def _read_files_again(self) -> Asking[FoundLists | None]:
        """Read the known files again; None: they have changed."""
        known, evidence = self._job.known, self._evidence()
        if known.way == SITEMAP:
            file = yield from self._files.read_sitemap(known.first_url, evidence)
            file = yield from self._check_pages(SITEMAP, file, frozenset())
        elif known.way == INDEX:
            file = yield from self._files.find_index((known.first_url,), evidence)
            file = yield from self._check_pages(INDEX, file, frozenset())
        else:
            file = yield from self._files.find_archive(self._job.generator)
        if file is not None:
            return self._join(None, file)
        if self._lost and not self._lasting:
            return replace(self._nothing(), missing=tuple(self._lost), known=known)
        return None

    # Possible lists

    def _ways_on(self, page: ListPage) -> list[_Way]:
        feed, ways = self._feed, list[_Way]()
        last = max((count.last // count.step for count in counts_on(page)), default=1)
        is_open = last <= _FEW and bool(next_urls(page))
        found = lists_on(page, feed)
        for listed in [each for each in found if each.is_named or not feed.titles][:3]:
            keys = ListRow(listed, feed).keys
            if listed.met and (feed.begins(keys) or feed.is_met(listed.keys)):
                is_dated = self._has_dates(listed)
                ways.append(_Way(page, listed, None, len(keys) * last, last - 1, is_open, is_dated))
        if ways:
            self._note(page.url, "not-needed")
        elif found and found[0].met:
            self._note(page.url, "feeds-entries-not-met")
        for level in levels_on(page, feed):
            ways.append(_Way(page, None, level, level.total, len(level.urls), not level.total))
        return ways

    def _has_dates(self, listed: EntryList) -> bool:
        """Return whether a list dates its entries: not ten or more in a row on one day, or on none."""
        day, row = None, 0
        for item in listed.items:
            if item.key in self._feed.order:
                continue
            at = item.link.at if item.link.at is not None else self._feed.date_of(item)
            own = None if at is None else at // DAY_SECONDS
            row = row + 1 if own == day else 1
            day = own
            if row >= _SAME_DAY:
                return False
        return True

    def _rank(self, ways: Sequence[_Way]) -> list[_Way]:
        """Sort ways for trial; among equal promises, fewest requests first."""
        known = max((way.promise for way in ways), default=0)
        reached = min((year for way in ways if way.listed for year in _years(way.listed)), default=0)
        years = [way.level.first_year for way in ways if way.level]
        ranks = []
        for place, way in enumerate(ways):
            promise, requests = way.promise, way.requests
            if way.is_open:
                reaches = 0 < reached <= min(years, default=0) or known > 2 * self._feed.entries
                promise = known if reaches else 2 * known
            if way.is_open and way.listed:
                requests = self._pages_since(min(years, default=0), len(way.listed.keys))
            if not way.is_dated:  # dates are worth as many requests as looking around is
                requests += MOST_LOOKS
            titled = way.listed.titled if way.listed else 0
            ranks.append((promise, requests, -titled, place))
        best = max((promise for promise, *_ in ranks), default=0)
        ranks.sort(key=lambda rank: (-(best if rank[0] >= 0.9 * best else rank[0]), *rank[1:]))
        return [ways[rank[-1]] for rank in ranks]

    def _pages_since(self, year: int, page_entries: int) -> int:
        """Estimate the pages since a year, at the feed's pace."""
        dates = self._feed.dates.values()
        if not year or len(dates) < LEAST:
            return _MANY
        span = max(max(dates) - min(dates), DAY_SECONDS)
        begun = Day(year, None, None).at or 0.0
        return int(min(_MANY, (max(dates) - begun) / span * len(dates) / page_entries)) + 1

    def _walk_best(self, ways: Sequence[_Way]) -> Asking[_ListWalk | None]:
        for way in self._rank(ways):
            spare, requests = self._spare, self._requests
            walked = yield from (self._walk_levels(way) if way.level else self._walk_pages(way))
            if walked.is_list and not self._brings(walked):
                walked = walked._replace(order="nothing-more")
            if walked.is_list:
                return walked
            self._note(way.page.url, walked.order)
            self._spare = spare - (self._requests - requests)
        return None

    def _brings(self, walked: _ListWalk) -> bool:
        return any(item.key not in self._feed.order for page in walked.pages for item in page.items)

    # Pages, each leading to the next

    def _walk_pages(self, way: _Way, *, is_again: bool = False) -> Asking[_ListWalk]:
        assert way.listed is not None, "a way of pages begins with a list"
        row = ListRow(way.listed, self._feed)
        pages = [ReadListPage(way.page.url, row.items)]
        page, kind, is_cut = way.page, "", False
        missing: list[MissingPage] = []
        is_met = self._feed.begins(row.keys)
        while is_met and not (is_again and self._is_joined(pages[-1].items)):
            if len(pages) >= self._job.most_pages or len(row.keys) >= MOST_ENTRIES or self._keeping.is_full:
                is_cut = any(self._may_ask(each, row) for each in next_urls(page))
                break
            got = yield from self._follow(page, row, kind, missing)
            if got is None:
                break
            page, items, kind = got
            pages.append(ReadListPage(page.url, items))
            if not self._may_be_list(row, items):
                return _ListWalk(way, pages, "feeds-entries-not-met")
        order = self._verdict(way, pages, row, is_again=is_again)
        return _ListWalk(way, row.all_pages(pages), order, way.listed.shape, tuple(missing), is_cut)

    def _may_be_list(self, row: ListRow, items: Sequence[Item]) -> bool:
        if self._feed.has_met(item.key for item in items):  # the feed's entries come first
            return self._feed.begins(row.keys)
        return self._feed.is_met((*row.keys, *(item.key for item in row.pinned)))

    def _verdict(self, way: _Way, pages: Sequence[ReadListPage], row: ListRow, *, is_again: bool) -> str:
        if is_again and self._feed.begins(row.keys) and self._is_joined(pages[-1].items):
            return NEWEST
        pinned = [item.key for item in row.pinned]
        order = self._feed.verdict(row.keys, pinned)
        if not row.are_pinned and self._feed.is_met((*row.keys, *pinned)):
            order = SHUFFLED
        if order == SHUFFLED:
            assert way.listed is not None, "a way of pages"
            is_one = len(pages) == 1 and not next_urls(way.page) and not self._is_front(way.page)
            if not (is_one and self._feed.is_grouped(way.listed.all_items)):
                return "out-of-order"
        return order

    def _is_front(self, page: ListPage) -> bool:
        return link_key(page.url) in {link_key(url) for url in (_root(page.url), *self._job.home_urls)}

    def _follow(
        self, page: ListPage, row: ListRow, kind: str, missing: list[MissingPage], below: str = ""
    ) -> Asking[tuple[ListPage, list[Item], str] | None]:
        for count in counts_on(page):
            surroundings = count.head, count.tail
            row.ends[surroundings] = max(count.last, row.ends.get(surroundings, 0))
        row.has_named_next |= kind == "button" and bool(page.more_urls)
        further = next_urls(page, by_button=kind == "button" and not row.has_named_next)
        found = [each for each in further if each.url.startswith(below) and self._may_ask(each, row)]
        same = [each for each in found if not kind or each.kind == kind]
        for each in (same or [each for each in found if each.kind != "count"])[:_MOST_TRIES]:
            if not self._may_go_on and each.key not in self._had:
                break
            answer = yield from self._ask(each.url, is_page=True)
            row.asked.add(each.key)
            if isinstance(answer, NotHad):
                if not kind and answer.is_lasting:
                    continue
                if answer.status in GONE and not row.has_page_behind(each.url):
                    return None
                missing.append(MissingPage(url=answer.url, slug=answer.slug, status=answer.status))
                return (yield from self._skip(page, each, row, missing))
            items = row.join(answer, self._feed)
            if items:
                self._refund(each.url)
                return answer, items, each.kind
        return None

    def _skip(
        self, page: ListPage, gone: Next, row: ListRow, missing: list[MissingPage]
    ) -> Asking[tuple[ListPage, list[Item], str] | None]:
        """Ask for the page behind a failed one, where pages are numbered."""
        count = next((each for each in counts_on(page) if link_key(each.url) == gone.key), None)
        while count is not None and count.number < count.last and self._may_go_on:
            count = count.following()
            answer = yield from self._ask(count.url, is_page=True)
            row.asked.add(link_key(count.url))
            if isinstance(answer, ListPage):
                items = row.join(answer, self._feed)
                if not items:
                    return None
                self._refund(count.url)
                return answer, items, gone.kind
            missing.append(MissingPage(url=answer.url, slug=answer.slug, status=answer.status))
        return None

    def _may_ask(self, page: Next, row: ListRow) -> bool:
        return page.key not in row.asked and self._is_own(page.url)

    def _refund(self, url: str) -> None:
        self._spare += self._looked.pop(link_key(url), None) is not None

    def _is_joined(self, items: Sequence[Item]) -> bool:
        """Return whether a page has entries known from the last look."""
        tops, known, own = self._job.known.tops, self._job.known_keys, self._feed.order
        return any(item.key in tops or (item.key in known and item.key not in own) for item in items)

    # Pages of years or months

    def _walk_levels(self, way: _Way, *, is_again: bool = False) -> Asking[_ListWalk]:
        assert way.level is not None, "a way of levels"
        waiting, read = list(way.level.urls), list[list[ReadListPage]]()
        shape, seen, missing = "", set[str](), list[MissingPage]()
        is_cut = False
        while waiting:
            if (
                sum(map(len, read)) >= self._job.most_pages
                or len(seen) >= MOST_ENTRIES
                or not self._may_go_on
            ):
                is_cut = True
                break
            url = waiting.pop(0)
            page = yield from self._ask(url, is_page=True)
            if isinstance(page, NotHad):
                if not (way.level.is_chain and page.status in GONE):  # that month may have no page
                    missing.append(MissingPage(url=url, slug=page.slug, status=page.status))
                continue
            if way.level.is_chain and not waiting:
                waiting += self._earlier(page)
            listed = self._find_list(page, shape)
            if listed is None:
                months = [
                    level for level in levels_on(page, self._feed) if level.urls[0].startswith(page.url)
                ]
                waiting[:0] = months[0].urls if months else ()
                continue
            shape = listed.shape
            group = yield from self._read_level(page, listed, missing)
            keys = [item.key for each in group for item in each.items]
            if not seen.isdisjoint(keys):
                return _ListWalk(way, [], "repeats")
            seen.update(keys)
            read.append(group)
            self._refund(url)
            if self._feed.has_met(keys) and not _in_order(self._feed, read):
                return _ListWalk(way, [], "feeds-entries-not-met")
            if is_again and any(self._is_joined(each.items) for each in group):
                break
        return self._levels_walked(way, read, shape, tuple(missing), is_cut=is_cut, is_again=is_again)

    def _earlier(self, page: ListPage) -> list[str]:
        earlier = (url for span, url in earlier_on(page) if span[1] and link_key(url) not in self._had)
        return list(islice(filter(self._is_own, earlier), 1))

    def _find_list(self, page: ListPage, shape: str) -> EntryList | None:
        if shape:
            return list_like(page, self._feed, shape)
        return next((each for each in lists_on(page, self._feed) if each.met), None)

    def _read_level(
        self, page: ListPage, listed: EntryList, missing: list[MissingPage]
    ) -> Asking[list[ReadListPage]]:
        row = ListRow(listed, self._feed)
        group = [ReadListPage(page.url, row.items)]
        below = page.url.rpartition(".")[0] if page.url.endswith((".html", ".htm", ".php")) else page.url
        while len(group) < self._job.most_pages:
            got = yield from self._follow(page, row, "", missing, below)
            if got is None:
                break
            page, items, _ = got
            group.append(ReadListPage(page.url, items))
        return row.all_pages(group)

    def _levels_walked(
        self,
        way: _Way,
        read: list[list[ReadListPage]],
        shape: str,
        missing: tuple[MissingPage, ...],
        *,
        is_cut: bool,
        is_again: bool,
    ) -> _ListWalk:
        keys = [item.key for group in read for page in group for item in page.items]
        is_joined = is_again and any(self._is_joined(page.items) for group in read for page in group)
        order = _in_order(self._feed, read) if is_joined or self._feed.is_met(keys) else ""
        pages = [page for group in read for page in (_turn_round(group) if order == OLDEST else group)]
        return _ListWalk(way, pages, NEWEST if order else "feeds-entries-not-met", shape, missing, is_cut)

    # Posts that link the one before

    def _walk_chain(self, relation: str = "") -> Asking[_ListWalk | None]:
        """Follow the links from post to post, from the last ones of the feed on.

        `relation`: the known one; empty: the feed's last three entries have to show it.
        """
        own = self._last_links()
        known, is_titled = relation, True
        page: Answer = NotHad("", "", None, False)
        for place, link in enumerate(own[-1:] if known else own, 1):
            if not self._may_go_on and place == 1:  # what the first one leads to is a part of the walk
                return None
            page = yield from self._ask(link)
            if isinstance(page, NotHad):
                return None
            key = link_key(link)
            is_titled &= plain(page.title) == self._feed.titles.get(key, "")
            at = self._feed.dates.get(key)
            if page.at is None or (at is not None and abs(page.at - at) >= DAY_SECONDS):
                return None  # a manual links its pages so, too: posts have their dates
            if not known and place < len(own):
                names = (relation,) if relation else _RELATIONS
                relation = next((name for name in names if _leads(page, name, own[place])), "")
                if not relation:
                    return None
                self._refund(link)
        assert isinstance(page, ListPage), "the feed has links"
        self._refund(own[-1])
        items, missing, is_cut = yield from self._follow_posts(page, relation)
        if not is_titled:
            items = [item._replace(link=item.link._replace(text="")) for item in items]
        if not known:
            items = [*self._own_items(relation), *items]
        home = ListPage(self._homes()[0], ())
        way = _Way(home, None, None, 0, 0, is_open=False)
        pages = [ReadListPage(home.url, items)]
        return _ListWalk(way, pages, NEWEST, relation, tuple(missing), is_cut)

    def _own_items(self, relation: str) -> Iterator[Item]:
        """Yield the feed's entries, of which the pages of three were read."""
        entries = {link_key(each.link): each for each in self._job.entries}
        for key in self._feed.order:
            entry = entries[key]
            yield Item(key, PageLink(entry.link, key, entry.title, relation, at=entry.at, dated_by="page"))

    def _follow_posts(
        self, page: ListPage, relation: str
    ) -> Asking[tuple[list[Item], list[MissingPage], bool]]:
        items, missing, seen = list[Item](), list[MissingPage](), set(self._feed.order)
        known = self._job.known
        while True:
            url = next(iter(_targets(page, relation)), "")
            key = link_key(url)
            is_joined = key in known.tops or (known.way == "chain" and key in self._job.known_keys)
            if not url or key in seen or is_joined or not self._feed.shape.fits(key):
                return items, missing, False
            if len(items) >= self._job.most_pages or not self._may_go_on:
                return items, missing, True
            answer = yield from self._ask(url, is_page=True)
            if isinstance(answer, NotHad):
                if answer.status not in GONE:
                    missing.append(MissingPage(url=url, slug=answer.slug, status=answer.status))
                return items, missing, False
            if answer.at is None or (page.at is not None and answer.at > page.at + DAY_SECONDS):
                return items, missing, False
            self._refund(url)
            page = answer
            seen |= {key, link_key(page.url)}
            link = PageLink(url, key, page.title, relation, at=page.at, dated_by="page")
            items.append(Item(key, link))

    # Looking again

    def _look_again(self) -> Asking[FoundLists | None]:
        """Read the known list; None: it has changed."""
        known = self._job.known
        if known.way == "chain":
            walked = yield from self._walk_chain(known.shape)
            return self._found(walked) if walked else None
        if known.way in FILE_WAYS:
            return (yield from self._read_files_again())
        page = yield from self._ask(known.first_url)
        if isinstance(page, NotHad):
            if page.is_lasting:
                return None
            gone = MissingPage(url=page.url, slug=page.slug, status=page.status)
            return replace(self._nothing(), missing=(gone,), known=known)
        walked = None
        for way in self._ways_on(page):
            if known.way == "levels" and way.level:
                walked = yield from self._walk_levels(way, is_again=True)
            elif known.way == "pages" and way.listed and way.listed.shape == known.shape:
                walked = yield from self._walk_pages(way, is_again=True)
            if walked is not None and walked.is_list:
                break
        if walked is None or not walked.is_list:
            return None
        further, missing, is_cut = yield from self._ask_missing(walked)
        walked = walked._replace(
            pages=[*walked.pages, *further],
            missing=walked.missing + missing,
            is_cut=walked.is_cut or is_cut,
        )
        return self._found(walked)

    def _ask_missing(
        self, walked: _ListWalk
    ) -> Asking[tuple[list[ReadListPage], tuple[MissingPage, ...], bool]]:
        """Ask again for failed pages and unknown ones behind; the flag says whether there are more."""
        read, missing, is_cut = list[ReadListPage](), list[MissingPage](), False
        for url in self._job.known.missing[: self._spare]:
            left = self._job.most_pages - len(walked.pages) - len(read)
            if left <= 0 or self._keeping.is_full:
                missing.append(MissingPage(url=url, slug="limit", status=None))
                continue
            page = yield from self._ask(url, is_page=True)
            if isinstance(page, NotHad):
                missing.append(MissingPage(url=url, slug=page.slug, status=page.status))
            elif listed := list_like(page, self._feed, walked.shape):
                self._refund(url)
                behind, has_more = yield from self._behind(page, ListRow(listed, self._feed), missing, left)
                read, is_cut = [*read, *behind], is_cut or has_more
        return read, tuple(missing), is_cut

    def _behind(
        self, page: ListPage, row: ListRow, missing: list[MissingPage], most: int
    ) -> Asking[tuple[list[ReadListPage], bool]]:
        """Read on until a page read before; return whether there are more."""
        read, kind = [ReadListPage(page.url, row.items)], ""
        while len(read) < most:
            got = yield from self._follow(page, row, kind, missing)
            if got is None or self._is_joined(got[1]):
                break
            page, items, kind = got
            read.append(ReadListPage(page.url, items))
        else:
            return read, any(self._may_ask(each, row) for each in next_urls(page))
        return read, False

    # The result

    def _found(self, walked: _ListWalk) -> FoundLists:
        self._refund(walked.way.page.url)
        pages = _turn_round(walked.pages) if walked.order == OLDEST else walked.pages
        lasting = {each.url for each in self._had.values() if isinstance(each, NotHad) and each.is_lasting}
        known = LookMemory(
            first_url=walked.way.page.url,
            way="levels" if walked.way.level else "pages" if walked.way.listed else "chain",
            shape=walked.shape,
            tops=self._tops(pages),
            missing=tuple(each.url for each in walked.missing if each.url not in lasting),
        )
        had = [page for page in self._had.values() if isinstance(page, ListPage)]
        made = EntryMaker(self._feed, self._job.now, had, is_ordered=walked.order != SHUFFLED)
        listed = made.list_pages(pages)
        looked = tuple(self._looked.values())
        urls = {page.url for page in pages}
        cut = {page.url for page in self._had.values() if isinstance(page, ListPage) and page.is_cut}
        is_cut = walked.is_cut or not urls.isdisjoint(cut)
        return FoundLists(pages=listed, missing=walked.missing, looked=looked, known=known, is_cut=is_cut)

    def _tops(self, pages: Sequence[ReadListPage]) -> tuple[str, ...]:
        newest = (item.key for page in pages for item in page.items)
        return tuple(islice(dict.fromkeys((*islice(newest, TOPS), *self._job.known.tops)), TOPS))


def _digest(key: str) -> str:
    return blake2b(key.encode(), digest_size=4).hexdigest()


def _whole_keys(walked: _ListWalk | None, index: SiteFile | None) -> frozenset[str]:
    """Return the keys of a source that seems whole; empty: none does."""
    if walked is not None and not walked.is_cut and not walked.missing:
        return frozenset(item.key for page in walked.pages for item in page.items)
    if index is not None and not index.is_cut:
        return frozenset(index.keys)
    return frozenset()


_NO_PAGE: Final = re.compile(
    r"\.(?:xml|rss|atom|json|txt|pdf|zip|jpe?g|png|gif|svg)\Z|/(?:feed|rss|atom)/?\Z|/(?:19|20)[0-9]{2}/?\Z",
    re.IGNORECASE,
)


def _years(listed: EntryList) -> Iterator[int]:
    for item in listed.items[-1:]:
        day, at = day_in(item.link.url), item.link.at
        if day is not None and day.year:
            yield day.year
        elif at is not None:
            yield 1970 + int(at // (365.25 * DAY_SECONDS))


_RELATIONS: Final = ("prev", "next")
"""By which a post may link the one before it: themes disagree."""


def _targets(page: ListPage, relation: str) -> tuple[str, ...]:
    return page.previous_urls if relation == "prev" else page.following_urls


def _leads(page: ListPage, relation: str, url: str) -> bool:
    return link_key(url) in {link_key(target) for target in _targets(page, relation)[:1]}


def _root(url: str) -> str:
    return resolve_or_empty(url, "/") or url


def _with_slash(url: str) -> str:
    parts = split(url)
    if parts.query is not None or "." in parts.path.rpartition("/")[2] or parts.path.endswith("/"):
        return url
    return f"{url}/"


def _turn_round(pages: Sequence[ReadListPage]) -> list[ReadListPage]:
    return [ReadListPage(page.url, page.items[::-1]) for page in reversed(pages)]


def _in_order(feed: ListedFeedEntries, read: Sequence[Sequence[ReadListPage]]) -> str:
    """Return the order within lists, newest level first; empty: none."""
    for order in (NEWEST, OLDEST):
        pages = [page for group in read for page in (_turn_round(group) if order == OLDEST else group)]
        if feed.begins([item.key for page in pages for item in page.items]):
            return order
    return ""
