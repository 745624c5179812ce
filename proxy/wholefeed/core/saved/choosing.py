"""Choose one feed of a file, and find ids for entries saved without them (I4)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import Final, NamedTuple
from urllib.parse import parse_qsl, urldefrag

from wholefeed.core.importing import HOW_TO_FORCE
from wholefeed.core.listing.page_links import PathShape, link_key
from wholefeed.core.parse.limits import ParseError
from wholefeed.core.saved.saved_entries import SavedEntry, SavedFeed, SavedFile, is_feed_url
from wholefeed.core.text.urls import (
    is_active,
    is_http,
    resolve_or_empty,
    safe_url,
    split,
    without_credentials,
    without_feed_scheme,
)


class SavedMatch(NamedTuple):
    program: str
    url: str
    """The feed's URL in the file; empty: none of the file's URLs is the feed's."""
    entries: list[SavedEntry]
    unnamed: list[SavedFeed]
    """Feeds without a URL, if no other matches."""
    others: list[str]
    """URLs of other feeds, the nearest first, if none matches."""
    feeds: int
    """All feeds of the file."""


def choose_feed(file: SavedFile, urls: Iterable[str]) -> SavedMatch:
    wanted = wanted_keys(urls)
    own = [feed for feed in file.feeds if feed.url and wanted & url_keys(feed.url)]
    entries = [absolute for feed in own for absolute in _absolute(feed)]
    is_missing = not own
    return SavedMatch(
        program=file.program,
        url=own[0].url if own else "",
        entries=entries,
        unnamed=[feed for feed in file.feeds if not feed.url] if is_missing else [],
        others=nearest_urls((feed.url for feed in file.feeds), wanted) if is_missing else [],
        feeds=len(file.feeds),
    )


def _absolute(feed: SavedFeed) -> Iterable[SavedEntry]:
    for entry in feed.entries:
        link = entry.link if is_http(entry.link) else resolve_or_empty(feed.url, entry.link) or entry.link
        base = entry.base or link or feed.url
        enclosures = tuple(
            each if is_http(each.url) else each._replace(url=resolve_or_empty(base, each.url) or each.url)
            for each in entry.enclosures
        )
        yield entry._replace(link=link, enclosures=enclosures)


# URLs of feeds


def wanted_keys(urls: Iterable[str]) -> frozenset[str]:
    return frozenset(key for url in urls if url for key in url_keys(url))


def url_keys(url: str) -> frozenset[str]:
    """Return the spelling-free forms of a feed's URL (H6), also without `www.`.

    A proxy's URL may stand for the publisher's URL in it.
    """
    found = {_url_key(url)}
    parts = split(url)
    if (parts.path or "").rstrip("/").endswith("/feed"):
        inside = (value for name, value in parse_qsl(parts.query or "") if name == "url")
        found |= {_url_key(value) for value in inside if is_feed_url(value)}
    if is_http(inner := url.partition(parts.authority or "\0")[2].lstrip("/")):
        found.add(_url_key(inner))
    return frozenset(found)


def _url_key(url: str) -> str:
    key = link_key(without_credentials(without_feed_scheme(url.strip())))
    return key.replace("//www.", "//", 1) if key.startswith("//www.") else key


MOST_OTHERS: Final = 3


def nearest_urls(urls: Iterable[str], wanted: frozenset[str]) -> list[str]:
    """Rank URLs by host, then by the length of the common start."""
    found = dict.fromkeys(url for url in urls if url)
    ranked = sorted(found, key=lambda url: max((_likeness(_url_key(url), key) for key in wanted), default=0))
    return [safe_url(url, keeps_query=True) for url in ranked[: -MOST_OTHERS - 1 : -1]]


def _likeness(key: str, wanted: str) -> int:
    hosts = [each.removeprefix("//").partition("/")[0] for each in (key, wanted)]
    common = next((n for n, (a, b) in enumerate(zip(key, wanted, strict=False)) if a != b), len(key))
    is_same = hosts[0] == hosts[1]
    is_near = hosts[0].split(".")[-2:] == hosts[1].split(".")[-2:]
    return common + (_HOST_WEIGHT if is_same else 0) + (_SITE_WEIGHT if is_near else 0)


_HOST_WEIGHT: Final = 1 << 20
_SITE_WEIGHT: Final = 1 << 18


# Entries that say too little


class KnownEntry(NamedTuple):
    id: str
    link: str


def fit_entries(match: SavedMatch, known: Sequence[KnownEntry], *, is_forced: bool) -> list[SavedEntry]:
    """Return the entries of the feed, newest first, each once, with the ids that the feed has for them.

    Raises:
        ParseError: The file has none of this feed, or does not say so.
    """
    by_link: dict[str, KnownEntry | None] = {}
    for each in known:
        if each.link:
            key = link_key(each.link)
            by_link[key] = None if key in by_link else each
    entries = match.entries if match.url else _find_unnamed(match, by_link, is_forced=is_forced)
    entries = _drop_doubles(map(_without_active, entries))
    if not entries:
        raise ParseError(f"expected entries of this feed, got none from {match.program}", slug="another-feed")
    times = Counter(link_key(each.link) for each in entries if each.link)
    fitted = [
        _fit(each, by_link) if each.link and times[link_key(each.link)] == 1 else each for each in entries
    ]
    fitted.sort(key=lambda each: (each.order_at is None, -(each.order_at or 0.0)))
    return fitted


def _without_active(entry: SavedEntry) -> SavedEntry:
    """Drop URLs such as `javascript:`."""
    return entry._replace(
        link="" if is_active(entry.link) else entry.link,
        base="" if is_active(entry.base) else entry.base,
        enclosures=tuple(each for each in entry.enclosures if not is_active(each.url)),
    )


def _fit(entry: SavedEntry, by_link: dict[str, KnownEntry | None]) -> SavedEntry:
    """Give an entry without an id that of the only known one with its link.

    A listed entry has its link for an id (H5): with another id it would be there twice.
    """
    alike = by_link.get(link_key(entry.link))
    if alike is None or (entry.id and alike.id != alike.link):
        return entry
    fragments = {urldefrag(each).fragment for each in (entry.link, alike.link)} - {""}
    if len(fragments) > 1:  # two posts of one page, such as a list of changes
        return entry
    return entry._replace(id=alike.id, link=alike.link)


def _drop_doubles(entries: Iterable[SavedEntry]) -> list[SavedEntry]:
    """Keep the latest of those with the same id, or with the same link, title and date."""
    found: dict[tuple[object, ...], SavedEntry] = {}
    for each in entries:
        if not (each.id or each.link or each.title or each.content):
            continue
        key = (each.id,) if each.id else (each.link, each.title, each.published_at)
        other = found.get(key)
        if other is None or (other.order_at or 0.0) < (each.order_at or 0.0):
            found[key] = each
    return list(found.values())


def _find_unnamed(
    match: SavedMatch, by_link: dict[str, KnownEntry | None], *, is_forced: bool
) -> list[SavedEntry]:
    """Find the feed's entries where the file names no feed.

    Entries that the program numbered by feed belong together; others do if they are linked as the feed's
    entries are. They are the feed's if its known entries say so. Else those linked alike are, only if forced.
    """
    if not match.unnamed:
        raise ParseError(_refuse_others(match), slug="another-feed")
    if len(by_link) < _FEWEST_KNOWN:
        raise ParseError(
            f"expected entries that name their feed, got those of {match.program} that do not; too few"
            " entries of this feed are known to compare their links",
            slug="another-feed",
        )
    shape = PathShape.of(by_link)
    for feed in match.unnamed:
        entries = [each for each in feed.entries if shape.fits(link_key(each.link))]
        if feed.is_numbered:
            if len(entries) < _SHARE * len(feed.entries):
                continue
            entries = feed.entries
        if _is_of_feed(entries, by_link, is_numbered=feed.is_numbered):
            return entries
    if not is_forced:
        raise ParseError(
            f"expected entries that name their feed, got those of {match.program} that do not;"
            f" {HOW_TO_FORCE} takes those with links like the feed's own",
            slug="another-feed",
        )
    found = [each for feed in match.unnamed for each in feed.entries if shape.fits(link_key(each.link))]
    if not found:
        raise ParseError(
            f"expected entries with links like the feed's own, got none from {match.program}",
            slug="another-feed",
        )
    return found


_FEWEST_KNOWN: Final = 3
_SHARE: Final = 0.9


def _is_of_feed(entries: Sequence[SavedEntry], by_link: Mapping[str, object], *, is_numbered: bool) -> bool:
    """Return whether entries are of the feed whose links are known, the newest first.

    Some of its newest entries are there, and nine in ten of those saved since then are its own: between the
    posts of one category, a blog has others.
    """
    recent = set(islice(by_link, _RECENT))
    ordered = [link_key(each.link) for each in sorted(entries, key=lambda each: each.order_at or 0.0)]
    first = next((place for place, key in enumerate(ordered) if key in recent), len(ordered))
    known = sum(key in by_link for key in ordered[first:])
    least = 1 if is_numbered else _FEWEST_KNOWN
    return known >= least and known >= _SHARE * (len(ordered) - first)


_RECENT: Final = 20


def _refuse_others(match: SavedMatch) -> str:
    if not match.feeds:
        return f"expected entries of this feed, got a file of {match.program} without feeds"
    listed = ", ".join(match.others)
    noun = "one feed" if match.feeds == 1 else f"{match.feeds:,} feeds"
    told = f": {listed}" if match.feeds <= MOST_OTHERS else f", the nearest of them: {listed}"
    return f"expected entries of this feed, got a file of {match.program} with {noun}{told}"
