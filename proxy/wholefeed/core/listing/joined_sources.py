"""Join a list's entries with those of a search index and a sitemap, and tell how they differ (H10)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from wholefeed.core.listing.page_links import link_key


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedEntry:
    link: str
    """Cleaned."""
    title: str
    """Empty: the source has none."""
    at: float | None
    dated_by: str
    """`page`, `url`, `month`, `year`, `neighbour`; empty: undated."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedPage:
    """Newest entry first."""

    url: str
    entries: tuple[ListedEntry, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceOutcome:
    kind: str
    """`list`, `index`, `sitemap` or `archive`."""
    url: str
    entries: int
    """With those of the feed."""
    alone: int = 0
    """Entries that no other source has."""
    is_served: bool = False
    """Whether entries of it are in the feed."""


class GivenEntries(NamedTuple):
    kind: str
    url: str
    pages: tuple[ListedPage, ...]
    is_cut: bool = False
    """Whether it is known to have more."""


def join_sources(
    sources: Sequence[GivenEntries], dates: Mapping[str, float]
) -> tuple[tuple[ListedPage, ...], tuple[SourceOutcome, ...]]:
    """Return the first source's pages, with entries of the others that it lacks because it ends early.

    A list leaves out pages that are no posts, so a few more pages in a sitemap are none.

    Args:
        sources: The source that counts first in front.
        dates: Days of publication by key, for entries without an exact one.
    """
    keys = [_keys(source.pages) for source in sources]
    first, titles = sources[0], _titles(sources)
    pages = [_complete(page, titles, dates) for page in first.pages]
    served, outcomes = set(keys[0]), list[SourceOutcome]()
    for number, source in enumerate(sources):
        others = set[str]().union(*(each for place, each in enumerate(keys) if place != number))
        is_served = number == 0
        if number:
            further = [_complete(page, titles, dates) for page in _further(first, source, keys[0])]
            further = [_without(page, served) for page in further]
            further = [page for page in further if page.entries]
            served |= _keys(further)
            pages += further
            is_served = bool(further)
        outcomes.append(
            SourceOutcome(
                kind=source.kind,
                url=source.url,
                entries=len(keys[number]),
                alone=len(keys[number] - others) if len(sources) > 1 else 0,
                is_served=is_served,
            )
        )
    return tuple(pages), tuple(outcomes)


def _keys(pages: Iterable[ListedPage]) -> set[str]:
    return {link_key(entry.link) for page in pages for entry in page.entries}


def _titles(sources: Iterable[GivenEntries]) -> dict[str, str]:
    found: dict[str, str] = {}
    for source in sources:
        for page in source.pages:
            for entry in page.entries:
                if entry.title:
                    found.setdefault(link_key(entry.link), entry.title)
    return found


def _complete(page: ListedPage, titles: Mapping[str, str], dates: Mapping[str, float]) -> ListedPage:
    made = []
    for entry in page.entries:
        key = link_key(entry.link)
        title = entry.title or titles.get(key, "")
        if entry.dated_by in _EXACT or key not in dates:
            made.append(replace(entry, title=title))
        else:
            made.append(replace(entry, title=title, at=dates[key], dated_by="page"))
    return replace(page, entries=tuple(made))


_EXACT: Final = frozenset({"page", "url"})


def _further(first: GivenEntries, other: GivenEntries, known: set[str]) -> Sequence[ListedPage]:
    """Return the other source's entries that the first one lacks, if it ends early."""
    given = _keys(other.pages)
    if 10 * len(known & given) < 9 * len(known):
        return ()
    pages = [_without(page, known) for page in other.pages]
    if first.is_cut or 2 * len(given - known) > len(known):
        return pages
    oldest = min((e.at for page in first.pages for e in page.entries if e.at is not None), default=None)
    return [replace(page, entries=tuple(e for e in page.entries if _is_older(e, oldest))) for page in pages]


def _is_older(entry: ListedEntry, oldest: float | None) -> bool:
    return oldest is not None and entry.at is not None and entry.dated_by in _EXACT and entry.at < oldest


def _without(page: ListedPage, known: set[str]) -> ListedPage:
    return replace(page, entries=tuple(e for e in page.entries if link_key(e.link) not in known))
