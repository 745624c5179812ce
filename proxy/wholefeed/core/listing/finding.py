"""Where the list of a feed's entries is in its site, and what it lists (H2 to H5, H8).

`look` is a generator that decides and does nothing else: it yields one question at a time, is sent the page
or why it was not had, and returns what was found.

    steps = look(job)
    ask = next(steps)                           # Ask("https://a.example/")
    ask = steps.send(read_page(…))              # StopIteration holds Found
"""

from __future__ import annotations

import json
from collections.abc import Callable, Container, Generator
from dataclasses import asdict, dataclass
from typing import Any, Final, NamedTuple, Self

from wholefeed.core.listing.reading import ListPage


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedEntry:
    """An entry of the subscription document; they are given from its top to its bottom."""

    link: str
    """Absolute; empty where it has none."""
    title: str
    at: float | None
    """Epoch seconds of its publication."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """What a look leaves for the next one; by default as it is before the first."""

    first_url: str = ""
    """Of the page that the list begins on; empty where none was found."""
    way: str = ""
    """How the list goes on."""
    missing: tuple[str, ...] = ()
    """URLs of its pages that could not be had and may come later."""

    @classmethod
    def read(cls, text: str) -> Self:
        """Return what `written` gave; what another version knew more is left out."""
        values = json.loads(text)
        known: dict[str, Any] = {name: values[name] for name in _KNOWN_DEFAULTS if name in values}
        return cls(**known | {name: tuple(it) for name, it in known.items() if isinstance(it, list)})

    def written(self) -> str:
        """Return it as JSON, without what is as it was in the beginning."""
        return json.dumps({k: v for k, v in asdict(self).items() if v != _KNOWN_DEFAULTS[k]})


_KNOWN_DEFAULTS: Final = asdict(Known())


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """What a look starts from."""

    feed_url: str
    """After redirects."""
    home_urls: tuple[str, ...]
    """What the feed's head links as its page; absolute, may be empty."""
    entries: tuple[FeedEntry, ...]
    site_of: Callable[[str], str]
    """The registrable domain of a URL: no other site is asked."""
    most_pages: int = 200
    """Of the list."""
    now: float
    known: Known = Known()
    known_keys: Container[str] = frozenset()
    """`link_key` of what is listed already or the feed's own."""


class Ask(NamedTuple):
    """One question."""

    url: str


class NotHad(NamedTuple):
    """Why a page was not had."""

    url: str
    slug: str
    status: int | None
    is_lasting: bool
    """Whether it is not asked for again: 404, 410, forbidden by robots.txt."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedEntry:
    """An entry of the list."""

    link: str
    """Cleaned."""
    title: str
    at: float | None
    dated_by: str
    """Where the date is from: `page`, `url`, `month`, `year`, `neighbour`; empty where there is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedPage:
    """A page of the list, its entries newest first."""

    url: str
    entries: tuple[ListedEntry, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Missing:
    """A page of the list that could not be had."""

    url: str
    slug: str
    status: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Looked:
    """A page that was looked at and did not count."""

    url: str
    why: str
    """A slug of `WHY`."""


WHY: Final = {
    "no-list": "no list of entries stands there",
}
"""Why a page did not count, in words for people."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What a look comes to."""

    pages: tuple[ListedPage, ...]
    """In the order of the list, newest first; empty: nothing is listed."""
    missing: tuple[Missing, ...]
    looked: tuple[Looked, ...]
    known: Known
    is_cut: bool
    """Whether the list has more pages than may be asked for."""


def look(job: Job) -> Generator[Ask, ListPage | NotHad, Found]:
    """Ask for the pages of the list, one at a time, and return what is listed there."""
    yield from ()
    return Found(pages=(), missing=(), looked=(), known=job.known, is_cut=False)
