"""Read, sanitise and bound the entries of a page together.

They take at most `ENTRIES_BYTES`, and half a second of computing (docs/faults.md row 119). Each entry has a
share that no earlier one can take.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Final, NamedTuple
from urllib.parse import unquote, urlsplit

from wholefeed.core.compose.entries import Enclosure, PageEntry, WrittenDate, beginning_of, parse_for_page
from wholefeed.core.compose.sanitising import (
    LONGEST_URL,
    Allowance,
    Cut,
    is_elsewhere,
    plain,
    plain_url,
    sanitise,
)
from wholefeed.core.compose.skimming import LONGEST_TITLE, title_of
from wholefeed.core.model import Family
from wholefeed.core.origins import Origin
from wholefeed.core.text.urls import UrlPlaces

PAGE_BYTES: Final = 1 << 20
"""In UTF-8."""
ENTRIES_BYTES: Final = PAGE_BYTES - (1 << 17)
"""The rest surrounds the entries."""
_ARTICLE_BYTES: Final = 2400  # markup around any entry
_FILE_BYTES: Final = 400  # markup around any file of an entry, with type and size
_LEAST_BYTES: Final = 1 << 12  # for files and content of each entry, if available
_FILES_BYTES: Final = 1 << 14  # for the files of one entry
_LONGEST_NAME: Final = 120


class EntryText(NamedTuple):
    text: bytes
    is_cut: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Article:
    name: str
    """See `name_entry`; unique on its page."""
    title: str
    """Text, like all fields but `content`; the beginning of the content if the entry has none."""
    link: str
    date: WrittenDate
    """Publication, else update."""
    updated: WrittenDate
    author: str
    content: str
    """Sanitised HTML."""
    cut: Cut
    duration_seconds: float | None
    files: tuple[File, ...]
    """Artwork first."""
    files_left: int
    """Not shown."""
    is_of_page: bool = False
    """Whether the content was taken from the entry's page (T4)."""
    origin: Origin | None = None
    """The source of its document; None: unknown."""


class File(NamedTuple):
    url: str
    name: str
    kind: str
    """Media type; may be empty."""
    length: int | None
    may_load: bool


def show_entries(
    entries: Sequence[EntryText],
    family: Family,
    *,
    namespace: str,
    base: str,
    loads_all_but: UrlPlaces | None = None,
) -> list[Article]:
    """Return a page's entries; media load except from `loads_all_but` (None: all become links).

    `base` resolves relative URLs by default.
    """
    parsed = [
        parse_for_page(family, text, namespace=namespace, is_cut=is_cut)
        for text, is_cut in _of_few_elements(entries)
    ]
    read = [_shorten(each) for each in parsed]
    left_bytes = ENTRIES_BYTES - sum(
        _ARTICLE_BYTES + sum(map(_escaped_bytes, (each.title, each.link, each.author))) for each in read
    )
    least_bytes = min(_LEAST_BYTES, left_bytes // max(1, len(read)))
    left, made, names = Allowance(), [], _unique(each.name for each in parsed)
    for number, (entry, name) in enumerate(zip(read, names, strict=True), 1):
        room_bytes = left_bytes - least_bytes * (len(read) - number)
        article, taken_bytes = _article(entry, name, room_bytes, left, base, loads_all_but)
        made.append(article)
        left_bytes -= taken_bytes
    return made


def _unique(names: Iterable[str]) -> Iterator[str]:
    times = Counter[str]()
    for name in names:
        times[name] += 1
        yield name if times[name] == 1 else f"{name}-{times[name]}"


_MOST_ELEMENTS: Final = 50_000  # `<` characters in one page; escaped content has none
_LEAST_ELEMENTS: Final = 500  # per entry
_TAG: Final = re.compile(b"<")


def _of_few_elements(entries: Sequence[EntryText]) -> Iterator[EntryText]:
    """Cut entries of very many elements short: XHTML may be nothing but elements."""
    left = _MOST_ELEMENTS - _LEAST_ELEMENTS * len(entries)
    for each in entries:
        count, most = each.text.count(b"<"), _LEAST_ELEMENTS + max(left, 0)
        left -= max(0, min(count, most) - _LEAST_ELEMENTS)
        if count <= most:
            yield each
        else:
            beyond = next(islice(_TAG.finditer(each.text), most, None))
            yield EntryText(each.text[: beyond.start()], is_cut=True)


def _shorten(entry: PageEntry) -> PageEntry:
    return replace(
        entry,
        title=plain(entry.title, LONGEST_TITLE),
        link=_short(plain_url(entry.link)),
        author=plain(entry.author, _LONGEST_NAME),
    )


def _short(url: str) -> str:
    return url if len(url) <= LONGEST_URL else ""


def _escaped_bytes(text: str) -> int:
    return len(text.encode("utf-8", "replace")) + 4 * sum(map(text.count, "&<>'\""))


def _article(
    entry: PageEntry, name: str, room_bytes: int, left: Allowance, base: str, own: UrlPlaces | None
) -> tuple[Article, int]:
    """Return the article, and the bytes of its files and content."""
    files_left_bytes = files_bytes = min(room_bytes // 2, _FILES_BYTES)
    enclosures = (*([Enclosure(entry.image, "image")] if entry.image else ()), *entry.enclosures)
    files = []
    for enclosure in enclosures:
        file = _file(enclosure, own)
        size = _FILE_BYTES + 2 * _escaped_bytes(file.url) + 3 * _escaped_bytes(file.name)
        if file.url and size <= files_left_bytes:
            files_left_bytes -= size
            files.append(file)
    room_bytes -= (taken_bytes := files_bytes - files_left_bytes)
    content, cut = sanitise(entry.content, entry.base or base, left, most_bytes=room_bytes, loads_all_but=own)
    article = Article(
        name=name,
        title=title_of(entry.title, beginning_of(content)),
        link=entry.link,
        date=entry.date,
        updated=entry.updated,
        author=entry.author,
        content=content,
        cut=Cut.END if entry.is_cut else cut,
        duration_seconds=entry.duration_seconds,
        files=tuple(files),
        files_left=len(enclosures) - len(files),
        is_of_page=bool(entry.text_page),
    )
    return article, taken_bytes + len(content.encode())


def _file(file: Enclosure, own: UrlPlaces | None) -> File:
    url = _short(plain_url(file.url))
    parts = urlsplit(url)
    name = plain(unquote(parts.path.rpartition("/")[2], errors="replace"), _LONGEST_NAME)
    kind = plain(file.media_type.partition(";")[0].strip().lower(), 60)
    return File(
        url=url,
        name=name or parts.netloc,
        kind=kind,
        length=file.length,
        may_load=own is not None and is_elsewhere(url, own),
    )
