"""Judge the pages that a sitemap or search index names: which are entries, and their days (H10, H11).

    selection = select_entries(entries, feed, evidence)
    selection.items         # newest first, the feed's own among them; empty: see selection.why

Such a file names pages of every kind, in any order. So the shape of paths has to tell entries from pages, and
something has to show that the feed is not of one subject alone.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple, Self

from wholefeed.core.listing.lists import LEAST, Item, ListedFeedEntries, lists_on
from wholefeed.core.listing.page_dates import day_in
from wholefeed.core.listing.page_reading import ListPage, PageLink
from wholefeed.core.listing.post_pages import PostFacts
from wholefeed.core.text.dates import DAY_SECONDS


class FileEntry(NamedTuple):
    url: str
    key: str
    title: str = ""
    at: float | None = None
    """Epoch seconds that the file says; in sitemaps, the time of the last change."""
    kind: str = ""
    """The file's own word, such as `posts`; may be empty."""
    has_below: bool = False
    """Whether the file names pages below this one."""


def path_of(key: str) -> str:
    return key.partition("?")[0].removeprefix("//").partition("/")[2]


@dataclass(frozen=True, slots=True, kw_only=True)
class PageEvidence:
    linked: frozenset[str] = frozenset()
    """Keys linked in the same way as the feed's entries."""
    menu: frozenset[str] = frozenset()
    """Keys in menus, beside other pages."""
    is_mixed: bool = False
    """Whether a page lists further entries between the feed's: the feed is of a part of the site."""
    posts: Mapping[str, PostFacts] = field(default_factory=dict)
    """Entries by key, shown by their pages."""
    known: Container[str] = frozenset()
    """Keys of entries listed before."""
    is_other: Callable[[str], bool] = lambda _: False
    """Returns whether a key is known to be no entry's."""

    @classmethod
    def of(
        cls,
        pages: Iterable[ListPage],
        feed: ListedFeedEntries,
        *,
        posts: Mapping[str, PostFacts],
        known: Container[str],
        is_other: Callable[[str], bool],
    ) -> Self:
        linked, menu, is_mixed = set[str](), set[str](), False
        for page in pages:
            own: dict[str, set[str]] = {}
            for link in page.links:
                if link.key in feed.order and not link.is_aside:
                    own.setdefault(link.shape, set()).add(link.key)
            # a menu may link one or two
            shapes = {shape for shape, keys in own.items() if feed.has_met(keys) >= LEAST}
            linked |= {link.key for link in page.links if link.shape in shapes}
            menu.update(_find_menus(page, feed))
            is_mixed |= any(
                each.met >= LEAST and _is_mixed(each.keys, feed) for each in lists_on(page, feed)[:1]
            )
        return cls(
            linked=frozenset(linked),
            menu=frozenset(menu - linked),
            is_mixed=is_mixed,
            posts=posts,
            known=known,
            is_other=is_other,
        )


def _find_menus(page: ListPage, feed: ListedFeedEntries) -> Iterator[str]:
    """Yield the keys in rows of links without an entry of the feed, but with other pages."""
    rows: dict[tuple[str, int], list[str]] = {}
    for link in page.links:
        if link.is_aside:
            rows.setdefault((link.shape, link.block), []).append(link.key)
    for keys in rows.values():
        # popular posts stand aside, too, but among themselves
        has_others = any(not feed.shape.fits(key) or is_page_name(key) or not path_of(key) for key in keys)
        if has_others and not feed.has_met(keys):
            yield from keys


def _is_mixed(keys: Sequence[str], feed: ListedFeedEntries) -> bool:
    """Return whether many others stand between the feed's entries."""
    places = [place for place, key in enumerate(keys) if key in feed.order]
    others = places[-1] - places[0] + 1 - len(places)
    return 2 * others > len(places)


@dataclass(frozen=True, slots=True, kw_only=True)
class EntrySelection:
    items: tuple[Item, ...] = ()
    """Newest first, so far as dates or the order of the file tell."""
    why: str = ""
    """A slug: why there are no items."""
    is_dated: bool = False
    """Whether the file's dates are those of publication."""
    in_doubt: int = 0
    """Number of pages with paths like entries' that nothing shows to be entries."""
    doubtful: tuple[FileEntry, ...] = ()
    """Those with pages that may show it, in the order of the file."""
    unsure: tuple[FileEntry, ...] = ()
    """New entries without days, or with short names; likely lists first."""
    dates: Mapping[str, float] = field(default_factory=dict)
    """Days of publication by key, for entries without better ones."""


def select_entries(
    entries: Sequence[FileEntry],
    feed: ListedFeedEntries,
    evidence: PageEvidence,
    *,
    is_typed: bool = False,
    root: str = "",
    sections: Container[str] = frozenset(),
    feed_url: str = "",
) -> EntrySelection:
    """Return the entries among the pages of a file, or why there are none.

    `is_typed`: the file has posts alone, and others have the pages. `root`: the folder of the whole site.
    `sections`: names of the folders at the top of the host.
    """
    unique = {each.key: each for each in reversed(entries)}
    fitting = [each for each in reversed(unique.values()) if _fits(each, feed)]
    if not feed.is_met(each.key for each in fitting):
        return EntrySelection(why="feeds-entries-not-met")
    kinds = {each.kind for each in fitting if each.key in feed.order}
    has_kinds = "" not in kinds and len(kinds) < LEAST and len({each.kind for each in fitting}) > len(kinds)
    if has_kinds:
        fitting = [each for each in fitting if each.kind in kinds]
    fitting = _drop_undated(fitting, feed)
    trusted = _trusts_dates(fitting, feed)
    dates = _dates(fitting, feed, evidence, trusted=trusted)
    judge = _EntryJudge(feed, evidence, fitting, dates, root, sections, can_tell=is_typed or has_kinds)
    judged = [(each, judge.is_entry(each)) for each in fitting]
    kept = [each for each, is_entry in judged if is_entry]
    doubtful = tuple(each for each, is_entry in judged if is_entry is None)
    in_doubt = len(fitting) - len(kept)
    if all(each.key in feed.order for each in kept):
        why = "pages-not-told" if in_doubt else "nothing-more"
        return EntrySelection(why=why, in_doubt=in_doubt, doubtful=doubtful)
    order = _order(kept, feed)
    if not _is_of_whole_site(kept, feed, evidence, dates, order=order, trusted=trusted, feed_url=feed_url):
        return EntrySelection(why="feed-of-a-part", in_doubt=in_doubt)
    kept = _drop_newer(kept, feed, evidence)
    return EntrySelection(
        items=tuple(_sort(kept, feed, evidence, dates, order)),
        is_dated=trusted,
        in_doubt=in_doubt,
        doubtful=doubtful,
        unsure=tuple(sorted(filter(judge.is_unsure, kept), key=judge.rank)),
        dates={each.key: dates[each.key] for each in kept if each.key in dates},
    )


def _fits(entry: FileEntry, feed: ListedFeedEntries) -> bool:
    return entry.key in feed.order or feed.shape.fits(entry.key)


# Entries or pages


class _EntryJudge:
    def __init__(
        self,
        feed: ListedFeedEntries,
        evidence: PageEvidence,
        fitting: Sequence[FileEntry],
        dates: Container[str],
        root: str,
        sections: Container[str],
        *,
        can_tell: bool,
    ) -> None:
        self._feed = feed
        self._evidence = evidence
        self._dates = dates
        self._root = root
        self._sections = sections
        self._can_tell = can_tell
        self._are_folders = any(each.has_below for each in fitting if each.key in feed.order)
        self._are_numbered = any(map(is_numbered, feed.order))
        lengths = sorted(len(_name_of(key)) for key in feed.order)
        self._short = lengths[min(_FEW_SHORT, len(lengths) - 1)]

    def is_entry(self, each: FileEntry) -> bool | None:
        """Return whether a page is an entry; None: only the page shows that."""
        key, evidence = each.key, self._evidence
        is_shown = key in self._feed.order or key in evidence.posts or key in evidence.linked
        if is_shown or self._is_of_others(each):
            return is_shown
        if key in evidence.known or _has_day(each.url) or "?" in key:
            return True
        is_told = is_telling(each, self._feed, self._root)
        if is_page_name(key):
            return is_told and key in self._dates
        return True if self._can_tell or is_told else None

    def is_unsure(self, each: FileEntry) -> bool:
        """Return whether the page is worth a look."""
        key, evidence = each.key, self._evidence
        if key in self._feed.order or key in evidence.posts or key in evidence.known:
            return False
        if key not in self._dates:
            return True
        if self._can_tell or _has_day(each.url) or key in evidence.linked:
            return False
        # lists and drafts have shorter names than posts
        return len(_name_of(key)) < self._short or is_page_name(key)

    def rank(self, each: FileEntry) -> tuple[bool, bool, bool, int]:
        name = _name_of(each.key)
        return not is_page_name(each.key), each.key in self._dates, "0" in name, len(name)

    def _is_of_others(self, each: FileEntry) -> bool:
        """Return whether a page is a folder of others, a part of a list, or in a menu."""
        name = each.key.rpartition("/")[2]
        return (
            (each.has_below and not self._are_folders)
            or (is_numbered(each.key) and not self._are_numbered)
            or (name in self._sections and "?" not in each.key)
            or each.key in self._evidence.menu
            or self._evidence.is_other(each.key)
        )


_FEW_SHORT: Final = 2
"""Entries of the feed with shorter names than those that need no look."""


def _name_of(key: str) -> str:
    """Return the last part of a path; numbers are as long as each other."""
    return _DIGITS.sub("0", _SUFFIX.sub("", key.partition("?")[0].rpartition("/")[2]))


_SUFFIX: Final = re.compile(r"\.[a-z]{2,5}\Z")
_DIGITS: Final = re.compile(r"[0-9]+")


def _has_day(url: str) -> bool:
    day = day_in(url)
    return day is not None and bool(day.day)


def is_telling(entry: FileEntry, feed: ListedFeedEntries, root: str = "") -> bool:
    """Return whether a path tells an entry: by a folder, a number, a day or a query of entries' own.

    `/about` has the shape of a post at the root of the site.
    """
    words = feed.shape.words_of(entry.key) or ()
    above = len(root.split("/")) if root else 0
    return "?" in entry.key or any(words[above:]) or _has_day(entry.url)


def is_page_name(key: str) -> bool:
    """Return whether a path ends like those of lists, and of pages that stand beside entries."""
    name = key.rpartition("/")[2]
    return "?" not in key and _NO_ENTRY.fullmatch(name) is not None


def is_numbered(key: str) -> bool:
    """Return whether a path ends like those of further pages of a list (`/blog/2/`), or of its years."""
    return "?" not in key and _NUMBERED.fullmatch(key.rpartition("/")[2]) is not None


_NUMBERED: Final = re.compile(r"(?:(?:page|p|index|archives?)[-_]?)?[0-9]+(?:\.[a-z]{2,5})?", re.IGNORECASE)
_NO_ENTRY: Final = re.compile(
    r"(?:archives?|tags?|categor(?:y|ies)|authors?|topics?|series|search|all|index|page|posts?|blog|articles?"
    r"|about|contact|feed|rss|subscribe|newsletter|404|sitemap|now|uses|projects?|imprint|impressum|privacy"
    r"|links|blogroll|guestbook|colophon|tag-cloud|all-posts|all-tags)(?:\.[a-z]{2,5})?",
    re.IGNORECASE,
)


def _drop_undated(entries: list[FileEntry], feed: ListedFeedEntries) -> list[FileEntry]:
    """Drop pages without dates where the feed's entries have some."""
    own = [each for each in entries if each.key in feed.order]
    if 10 * sum(each.at is not None for each in own) < 9 * len(own):
        return entries
    return [each for each in entries if each.at is not None or each.key in feed.order]


# Dates


def _trusts_dates(entries: Sequence[FileEntry], feed: ListedFeedEntries) -> bool:
    """Return whether dates are the days of publication for nine in ten of the feed's entries."""
    both = [
        (each.at, feed.dates[each.key]) for each in entries if each.at is not None and each.key in feed.dates
    ]
    good = sum(abs(at - published) <= _SAME_DAY_SECONDS for at, published in both)
    return len(both) >= LEAST and 10 * good >= 9 * len(both)


_SAME_DAY_SECONDS: Final = 1.5 * DAY_SECONDS  # files may name days, of any zone


def _dates(
    entries: Sequence[FileEntry], feed: ListedFeedEntries, evidence: PageEvidence, *, trusted: bool
) -> dict[str, float]:
    """Return days of publication from the feed, pages and URLs, and the file where it may tell."""
    found: dict[str, float] = {}
    oldest = min(feed.dates.values(), default=None)
    crowded = _crowded_days(entries) if trusted else frozenset()
    for each in entries:
        own, day = feed.dates.get(each.key), day_in(each.url)
        if own is None and each.key in evidence.posts:
            own = evidence.posts[each.key].at
        if own is not None:
            found[each.key] = own
        elif day is not None and day.day and day.at is not None:
            found[each.key] = day.at
        elif trusted and each.at is not None and _may_be_published(each.at, oldest, crowded):
            found[each.key] = each.at
    return found


def _may_be_published(at: float, oldest: float | None, crowded: Container[float]) -> bool:
    # what is not in the feed is older than its entries: a later date is that of a change
    return at // DAY_SECONDS not in crowded and (oldest is None or at <= oldest + _SAME_DAY_SECONDS)


def _crowded_days(entries: Sequence[FileEntry]) -> frozenset[float]:
    """Return days on which a site was changed as a whole."""
    days = Counter(each.at // DAY_SECONDS for each in entries if each.at is not None)
    return frozenset(day for day, count in days.items() if count >= _CROWD)


_CROWD: Final = 10


# The whole site or a part


def _order(entries: Sequence[FileEntry], feed: ListedFeedEntries) -> int:
    """Return 1 if the file begins with the newest entries, -1 if it ends with them, else 0."""
    keys = [each.key for each in entries]
    if feed.begins(keys):
        return 1
    return -1 if feed.begins(keys[::-1]) else 0


def _is_of_whole_site(
    entries: Sequence[FileEntry],
    feed: ListedFeedEntries,
    evidence: PageEvidence,
    dates: Mapping[str, float],
    *,
    order: int,
    trusted: bool,
    feed_url: str,
) -> bool:
    """Return whether the feed has the newest of all entries, rather than those of one subject."""
    if order:
        return True
    own = [feed.dates[key] for key in feed.order if key in feed.dates]
    said = [
        at
        for each in entries
        if each.key not in feed.order and (at := each.at if trusted else dates.get(each.key)) is not None
    ]
    if own and len(said) >= _MOSTLY * (len(entries) - len(own)):
        between = sum(min(own) + DAY_SECONDS < at < max(own) for at in said)
        return 2 * between <= len(own)
    return not evidence.is_mixed and _PART.search(feed_url[-_LONGEST_URL:]) is None


_MOSTLY: Final = 0.5
_LONGEST_URL: Final = 200
_PART: Final = re.compile(
    r"[/?&](?:tags?|categor(?:y|ies)|cat|topics?|authors?|users?|labels?|sections?|series|search|keywords?)[/=]",
    re.IGNORECASE,
)
"""In URLs of feeds that are of a part of their site."""


def _drop_newer(entries: list[FileEntry], feed: ListedFeedEntries, evidence: PageEvidence) -> list[FileEntry]:
    """Drop supposed posts newer than the feed's oldest entry: the feed would have them."""
    oldest = min(feed.dates.values(), default=None)
    if oldest is None:
        return entries
    newer = {key for key, facts in evidence.posts.items() if facts.at > oldest + _SAME_DAY_SECONDS}
    return [each for each in entries if each.key not in newer or each.key in feed.order]


def _sort(
    entries: Sequence[FileEntry],
    feed: ListedFeedEntries,
    evidence: PageEvidence,
    dates: Mapping[str, float],
    order: int,
) -> list[Item]:
    """Return items newest first: the feed's in its own order, then by date or the order of the file."""
    ordered = entries[::-1] if order < 0 else entries
    others = [each for each in ordered if each.key not in feed.order]
    if not order or all(each.key in dates for each in others):
        dated = sorted((each for each in others if each.key in dates), key=lambda each: -dates[each.key])
        # those without a date are older than the feed's, and nothing tells how much
        others = [*(each for each in others if each.key not in dates), *dated]
    own = sorted((each for each in entries if each.key in feed.order), key=lambda each: feed.order[each.key])
    return [Item(each.key, _link_to(each, evidence, dates)) for each in (*own, *others)]


def _link_to(entry: FileEntry, evidence: PageEvidence, dates: Mapping[str, float]) -> PageLink:
    at, facts = dates.get(entry.key), evidence.posts.get(entry.key)
    title = entry.title or (facts.title if facts else "")
    return PageLink(entry.url, entry.key, title, "", at=at, dated_by="" if at is None else "page")
