"""Search a site's files that name all of its pages: search indexes, sitemaps, Substack's archive (H10, H11).

    search = FileSearch(job, ask, may_ask)
    found = yield from search.find_index(urls, evidence)        # SiteFile or None
    found = yield from search.find_sitemap(evidence)

`ask` is a generator function: it has a file fetched and read, and returns None for one that is not had.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import dataclass, field
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
    """Keys of further pages to report."""


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
    """A file, or several of one index, with entries of the feed."""

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
    pages: set[str] = field(default_factory=set)
    """Keys of wanted pages that a sitemap names."""
    has_sitemap: bool = False
    """Whether a sitemap was read, so that `pages` are all there are."""

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
        selection = self._select(groups[0], evidence, is_typed=is_typed, root=root)
        if not selection.items:
            self.refuse(index.url, selection.why)
            return None
        return self._found(SiteFile(url=index.url, way=INDEX, selection=selection, is_cut=index.is_cut))

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
        selection = self._select(tuple(entries.values()), PageEvidence(), is_typed=True)
        url = _at_root(home, "archive")
        if not selection.items:
            return None
        return SiteFile(url=url, way=ARCHIVE, selection=selection)

    # Sitemaps

    def find_sitemap(
        self, evidence: PageEvidence, *, wanted: frozenset[str] = frozenset(), is_check: bool = False
    ) -> FileTalk[SiteFile | None]:
        """Ask for the sitemaps that robots.txt names, else for usual ones.

        `is_check`: another source has the entries; one guess has to do.
        """
        names = yield from self.ask(SitemapNamesRequest(self.feed.links[0]))
        named = names.urls[:_MOST_NAMED] if isinstance(names, SitemapNames) else ()
        if len(named) > 1:
            return (yield from self._read_all(named[0], named, evidence, wanted, has_indexes=True))
        for url in named or self._guesses()[: 1 if is_check else None]:
            if self.vain <= 0:
                return None
            found = yield from self.read_sitemap(url, evidence, wanted)
            if found is not None or self.has_sitemap:
                return found
        return None

    def _guesses(self) -> list[str]:
        bases = (self.home_urls[0], resolve_or_empty(self.feed.links[0], "/"))
        return list(dict.fromkeys(resolve_or_empty(base, name) for name in _SITEMAP_NAMES for base in bases))

    def read_sitemap(
        self, url: str, evidence: PageEvidence, wanted: frozenset[str] = frozenset()
    ) -> FileTalk[SiteFile | None]:
        sitemap = yield from self._ask(SitemapRequest(url, self.feed.shape, wanted))
        if not isinstance(sitemap, Sitemap):
            return None
        self.has_sitemap = True
        if sitemap.sitemaps:
            self.vain += 1
            return (yield from self._read_all(url, sitemap.sitemaps, evidence, wanted))
        self._note_pages(sitemap, wanted)
        return self._judge(url, [sitemap], evidence, is_typed=False)

    def _read_all(
        self,
        url: str,
        urls: Sequence[str],
        evidence: PageEvidence,
        wanted: frozenset[str],
        *,
        has_indexes: bool = False,
    ) -> FileTalk[SiteFile | None]:
        """Read the sitemaps of an index: those for posts, and the others if these have no entries.

        `has_indexes`: robots.txt names the files, so an index among them is followed, too.
        """
        ranked, spare = rank_sitemaps(urls), self.most_files
        for is_typed in (True, False):
            read, asked = list[Sitemap](), 0
            left = [each for each, is_named in ranked if is_named == is_typed]
            for each in islice(left, spare):
                if self.vain <= 0 or sum(len(known.entries) for known in read) >= _MOST_ENTRIES:
                    break
                asked += 1
                sitemap = yield from self._ask(SitemapRequest(each, self.feed.shape, wanted))
                if isinstance(sitemap, Sitemap):
                    self.has_sitemap = True
                    if has_indexes and sitemap.sitemaps:
                        self.vain += 1
                        found = yield from self._read_all(each, sitemap.sitemaps, evidence, wanted)
                        if found is not None:
                            return found
                        continue
                    self._note_pages(sitemap, wanted)
                    read.append(sitemap)
                    self.vain += bool(sitemap.entries)
            spare -= asked
            is_cut = asked < len(left)
            if read and (found := self._judge(url, read, evidence, is_typed=is_typed, is_cut=is_cut)):
                return found
        return None

    def _note_pages(self, sitemap: Sitemap, wanted: frozenset[str]) -> None:
        self.pages |= {each.key for each in sitemap.entries if each.key in wanted}

    def _judge(
        self,
        url: str,
        read: Sequence[Sitemap],
        evidence: PageEvidence,
        *,
        is_typed: bool,
        is_cut: bool = False,
    ) -> SiteFile | None:
        entries = [each for sitemap in read for each in sitemap.entries]
        roots = [sitemap.root for sitemap in read if sitemap.root is not None]
        root = self._root_of(f"//host/{root}" for root in roots)
        selection = self._select(entries, evidence, is_typed=is_typed, root=root)
        if not selection.items:
            self.refuse(url, selection.why)
            return None
        is_cut = is_cut or any(sitemap.is_cut for sitemap in read)
        return self._found(SiteFile(url=url, way=SITEMAP, selection=selection, is_cut=is_cut))

    # For all

    def _ask(self, request: SitemapRequest | IndexRequest) -> FileTalk[FileAnswer]:
        self.vain -= 1
        return (yield from self.ask(request))

    def _found(self, file: SiteFile) -> SiteFile:
        self.vain += 1
        return file

    def _select(
        self, entries: Sequence[FileEntry], evidence: PageEvidence, *, is_typed: bool, root: str = ""
    ) -> EntrySelection:
        return select_entries(
            entries, self.feed, evidence, is_typed=is_typed, root=root, feed_url=self.feed_url
        )

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


def _at_root(url: str, path: str) -> str:
    return resolve_or_empty(url, f"/{path}")
