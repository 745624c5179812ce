"""Search indexes, sitemaps and Substack's archive, which name all pages of a site (H10, H11).

    search = FileSearch(job, ask, may_ask)
    found = yield from search.find_index(urls, evidence)        # SiteFile or None
    found = yield from search.find_sitemap(evidence)

`ask` is a generator function: it has a file fetched and read, and returns None for one that is not had.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from typing import Any, Final, NamedTuple, TypeVar

from wholefeed.core.listing.lists import ListedFeedEntries
from wholefeed.core.listing.page_links import PathShape, link_key
from wholefeed.core.listing.search_indexes import SearchIndex
from wholefeed.core.listing.site_files import (
    EntrySelection,
    FileEntry,
    PageEvidence,
    path_of,
    select_entries,
)
from wholefeed.core.listing.sitemaps import Sitemap, rank_sitemaps
from wholefeed.core.text.urls import host_of, resolve_or_empty


class SitemapRequest(NamedTuple):
    url: str
    shape: PathShape
    wanted: frozenset[str]
    is_guess: bool = False
    """Whether no file or page names it."""


class IndexRequest(NamedTuple):
    url: str


class SitemapNamesRequest(NamedTuple):
    """Asks for the `Sitemap:` lines of the robots.txt of this URL's host; the answer is a `SitemapNames`."""

    url: str


class SitemapNames(NamedTuple):
    urls: tuple[str, ...]


FileRequest = SitemapRequest | IndexRequest | SitemapNamesRequest
FileAnswer = Sitemap | SearchIndex | SitemapNames | None
T = TypeVar("T")
FileTalk = Generator[Any, Any, T]

SITEMAP, INDEX, ARCHIVE = "sitemap", "index", "archive"
FILE_WAYS: Final = frozenset({SITEMAP, INDEX, ARCHIVE})
"""Ways of `LookMemory` that lead to files."""
MOST_FILES: Final = 3
"""Requests for files that bring nothing."""
_MOST_NAMED: Final = 10
_MOST_ENTRIES: Final = 50_000
_SITEMAP_NAMES: Final = ("sitemap.xml", "sitemap_index.xml")
_ARCHIVE_QUERY: Final = "api/v1/archive?sort=new&search=&offset={}&limit=50"
"""Substack's own pages ask for their lists so; undocumented."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteFile:
    url: str
    way: str
    selection: EntrySelection
    is_cut: bool = False

    @property
    def keys(self) -> list[str]:
        return [item.key for item in self.selection.items]

    @property
    def has_days(self) -> bool:
        """Whether nine in ten entries have days of publication."""
        return 10 * len(self.selection.dates) >= 9 * len(self.selection.items)

    @property
    def has_titles(self) -> bool:
        items = self.selection.items
        return 10 * sum(bool(item.link.text) for item in items) >= 9 * len(items)


@dataclass(slots=True)
class FileSearch:
    feed: ListedFeedEntries
    feed_url: str
    home_urls: Sequence[str]
    """At least one."""
    most_files: int
    """Limit for one sitemap index, or for Substack's archive."""
    ask: Callable[[FileRequest], FileTalk[FileAnswer]]
    refuse: Callable[[str, str], None]
    """Notes why a file does not count."""
    vain: int = MOST_FILES
    """Further requests that may bring nothing."""
    asked: int = 0
    pages: set[str] = field(default_factory=set)
    has_sitemap: bool = False
    """Whether a sitemap was read, so that `pages` are all there are."""
    doubtful: dict[str, tuple[FileEntry, ...]] = field(default_factory=dict)
    """Pages of a file, by way; see `EntrySelection`."""
    unsure: dict[str, tuple[FileEntry, ...]] = field(default_factory=dict)
    _judges: dict[str, Callable[[PageEvidence], SiteFile | None]] = field(default_factory=dict, init=False)

    # Search indexes

    def find_index(self, urls: Iterable[str], evidence: PageEvidence) -> FileTalk[SiteFile | None]:
        """Ask for the indexes that pages name, until one has the feed's entries and more."""
        for url in dict.fromkeys(urls):
            if self.vain <= 0:
                return None
            if link_key(url) == link_key(self.feed_url):
                continue
            index = yield from self._ask(IndexRequest(url))
            if isinstance(index, SearchIndex) and (found := self._choose_group(index, evidence)):
                return found
        return None

    def _choose_group(self, index: SearchIndex, evidence: PageEvidence) -> SiteFile | None:
        """Return the group of most entries of the feed; posts and pages may stand apart."""
        root = self._root_of(entry.key for group in index.groups for entry in group)
        groups = sorted(index.groups, key=lambda group: -self.feed.has_met(each.key for each in group))
        met = {each.key for each in groups[0]}
        # an array of tags does not show that pages have one of their own
        is_typed = any(
            each.key not in met and self.feed.shape.fits(each.key) for group in groups[1:] for each in group
        )
        facts = _FileFacts(groups[0], is_typed, root, is_cut=index.is_cut)
        return self._judge(index.url, INDEX, facts, evidence)

    # Substack

    def find_archive(self, generator: str) -> FileTalk[SiteFile | None]:
        """Ask Substack's interface for all posts, by pages, if the feed is one of Substack's."""
        home = self.feed.links[0]
        if not (generator.casefold() == "substack" or host_of(home).endswith(".substack.com")):
            return None
        entries: dict[str, FileEntry] = {}
        for _ in range(self.most_files):
            page = yield from self._ask(IndexRequest(_at_root(home, _ARCHIVE_QUERY.format(len(entries)))))
            if not isinstance(page, SearchIndex):
                break
            new = {each.key: each for group in page.groups for each in group if each.key not in entries}
            if not new or not (entries or self.feed.has_met(new)):
                break
            self.vain += 1
            entries |= new
        return self._judge(
            _at_root(home, "archive"), ARCHIVE, _FileFacts(tuple(entries.values()), True), PageEvidence()
        )

    # Sitemaps

    def find_sitemap(
        self,
        evidence: PageEvidence,
        *,
        wanted: frozenset[str] = frozenset(),
        listed: frozenset[str] = frozenset(),
    ) -> FileTalk[SiteFile | None]:
        """Ask for the sitemaps that robots.txt names, else for usual ones.

        `listed`: keys of a source that seems whole; then one guess and a few files have to do.
        """
        names = yield from self.ask(SitemapNamesRequest(self.feed.links[0]))
        named = names.urls[:_MOST_NAMED] if isinstance(names, SitemapNames) else ()
        if len(named) > 1:
            return (yield from self._read_all(named[0], named, evidence, wanted, listed, has_indexes=True))
        for url in named or self._guesses()[: 1 if listed else None]:
            if self.vain <= 0:
                return None
            found = yield from self.read_sitemap(url, evidence, wanted, listed, is_guess=not named)
            if found is not None or self.has_sitemap:
                return found
        return None

    def _guesses(self) -> list[str]:
        bases = (self.home_urls[0], resolve_or_empty(self.feed.links[0], "/"))
        return list(dict.fromkeys(resolve_or_empty(base, name) for name in _SITEMAP_NAMES for base in bases))

    def read_sitemap(
        self,
        url: str,
        evidence: PageEvidence,
        wanted: frozenset[str] = frozenset(),
        listed: frozenset[str] = frozenset(),
        *,
        is_guess: bool = False,
    ) -> FileTalk[SiteFile | None]:
        sitemap = yield from self._ask(SitemapRequest(url, self.feed.shape, wanted, is_guess))
        if not isinstance(sitemap, Sitemap):
            return None
        self.has_sitemap = True
        if sitemap.sitemaps:
            self.vain += 1
            return (yield from self._read_all(url, sitemap.sitemaps, evidence, wanted, listed))
        self._note_pages(sitemap, wanted)
        return self._judge_sitemaps(url, [sitemap], evidence, is_typed=False)

    def _read_all(
        self,
        url: str,
        urls: Sequence[str],
        evidence: PageEvidence,
        wanted: frozenset[str],
        listed: frozenset[str] = frozenset(),
        *,
        has_indexes: bool = False,
    ) -> FileTalk[SiteFile | None]:
        """Read the sitemaps of an index: those for posts, and the others if these have no entries.

        `has_indexes`: robots.txt names the files, so an index among them is followed, too.
        """
        ranked, spare = rank_sitemaps(urls), self.most_files
        for is_typed in (True, False):
            read = dict[int, Sitemap]()
            left = [each for each, is_named in ranked if is_named == is_typed]
            places = _ends_first(len(left)) if listed else list(range(len(left)))
            asked = 0
            for place in islice(places, spare):
                is_enough = sum(len(known.entries) for known in read.values()) >= _MOST_ENTRIES
                if self.vain <= 0 or is_enough or (listed and asked >= _CHECKED and not _adds(read, listed)):
                    break
                asked += 1
                sitemap = yield from self._ask(SitemapRequest(left[place], self.feed.shape, wanted))
                if isinstance(sitemap, Sitemap):
                    self.has_sitemap = True
                    if has_indexes and sitemap.sitemaps:
                        self.vain += 1
                        found = yield from self._read_all(
                            left[place], sitemap.sitemaps, evidence, wanted, listed
                        )
                        if found is not None:
                            return found
                        continue
                    self._note_pages(sitemap, wanted)
                    read[place] = sitemap
                    self.vain += bool(sitemap.entries)
            spare -= asked
            in_order = [read[place] for place in sorted(read)]
            is_cut = asked < len(left)
            if read and (
                found := self._judge_sitemaps(url, in_order, evidence, is_typed=is_typed, is_cut=is_cut)
            ):
                return found
        return None

    def _note_pages(self, sitemap: Sitemap, wanted: frozenset[str]) -> None:
        self.pages |= {each.key for each in sitemap.entries if each.key in wanted}

    def _judge_sitemaps(
        self,
        url: str,
        read: Sequence[Sitemap],
        evidence: PageEvidence,
        *,
        is_typed: bool,
        is_cut: bool = False,
    ) -> SiteFile | None:
        roots = [sitemap.root for sitemap in read if sitemap.root is not None]
        facts = _FileFacts(
            [each for sitemap in read for each in sitemap.entries],
            is_typed,
            self._root_of(f"//host/{root}" for root in roots),
            frozenset[str]().union(*(sitemap.sections for sitemap in read)),
            is_cut=is_cut or any(sitemap.is_cut for sitemap in read),
        )
        return self._judge(url, SITEMAP, facts, evidence)

    # For all

    def _ask(self, request: SitemapRequest | IndexRequest) -> FileTalk[FileAnswer]:
        self.vain -= 1
        self.asked += 1
        return (yield from self.ask(request))

    def _judge(self, url: str, way: str, facts: _FileFacts, evidence: PageEvidence) -> SiteFile | None:
        """Return a file with its entries; None: it has none, noted."""
        self._judges[way] = partial(self._judge, url, way, facts)
        selection = select_entries(
            facts.entries,
            self.feed,
            evidence,
            is_typed=facts.is_typed,
            root=facts.root,
            sections=facts.sections,
            feed_url=self.feed_url,
        )
        self.doubtful[way], self.unsure[way] = selection.doubtful, selection.unsure
        if not selection.items:
            self.refuse(url, selection.why)
            return None
        self.vain += 1
        return SiteFile(url=url, way=way, selection=selection, is_cut=facts.is_cut)

    def judge_again(self, way: str, evidence: PageEvidence) -> SiteFile | None:
        return self._judges[way](evidence)

    def _root_of(self, keys: Iterable[str]) -> str:
        """Return the folder of all pages, the feed's own home page among them."""
        start: list[str] | None = None
        for key in (*map(link_key, self.home_urls), *keys):
            segments = path_of(key).split("/")
            if start is None:
                start = segments
            while start != segments[: len(start)]:
                start = start[:-1]
        return "/".join(start or [])


class _FileFacts(NamedTuple):
    entries: Sequence[FileEntry]
    is_typed: bool
    """Whether it has posts alone."""
    root: str = ""
    sections: frozenset[str] = frozenset()
    is_cut: bool = False


_CHECKED: Final = 3
"""Files of an index to compare with another source."""


def _ends_first(count: int) -> list[int]:
    """Return places, both ends first: one has the oldest entries."""
    return list(dict.fromkeys([*range(min(count, 1)), *range(max(0, count - 1), count), *range(count)]))


def _adds(read: Mapping[int, Sitemap], listed: frozenset[str]) -> bool:
    """Return whether files name so many further pages that a list may end early."""
    named = {each.key for sitemap in read.values() for each in sitemap.entries}
    return 2 * len(named - listed) > len(listed)


def _at_root(url: str, path: str) -> str:
    return resolve_or_empty(url, f"/{path}")
