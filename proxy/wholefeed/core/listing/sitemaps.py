"""Read sitemaps (sitemaps.org, protocol 0.9; H10), as a job for a worker, and choose among those of an index.

A sitemap may be XML or plain text, and compressed by gzip. Extensions are passed over.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Container, Iterable, Sequence
from itertools import takewhile
from typing import Final, NamedTuple

from wholefeed.core.listing.page_links import PathShape, link_key
from wholefeed.core.listing.page_reading import MAX_LINK_CHARACTERS, add_host
from wholefeed.core.listing.site_files import FileEntry, path_of
from wholefeed.core.listing.site_xml import MOST_FILE_BYTES, SiteXml, local_name
from wholefeed.core.parse.encodings import to_utf8
from wholefeed.core.parse.limits import ParseError
from wholefeed.core.text.dates import parse_rfc3339
from wholefeed.core.text.urls import is_http, resolve_or_empty, split

MOST_URLS: Final = 50_000
"""The protocol's own limit for a file."""
MOST_SITEMAPS: Final = 2000
_MOST_DEPTH: Final = 16
_FREE_URLS: Final = 2000
_BYTES_PER_URL: Final = 30  # least average; denser files would cost over a second per megabyte
_MOST_SECTIONS: Final = 200
_MOST_CHARACTERS: Final = 8 << 20
"""Limit for URLs and keys of all entries together."""


class Sitemap(NamedTuple):
    url: str
    """After redirects."""
    entries: tuple[FileEntry, ...] = ()
    """Pages with paths like entries', and wanted ones; in the order of the file."""
    sitemaps: tuple[str, ...] = ()
    """URLs of further sitemaps, in the order of an index."""
    total: int = 0
    root: str | None = None
    """Path of the folder that all pages are in; None: no pages."""
    sections: frozenset[str] = frozenset()
    """Names of the folders at the top of the host."""
    is_cut: bool = False
    """Whether limits or errors left out a part."""


def read_sitemap(
    body: bytes, url: str, content_type: str, shape: PathShape, wanted: frozenset[str]
) -> Sitemap | None:
    """Return a sitemap's pages that fit the shape, or have wanted keys; None: no sitemap. Never raises.

    `body` has no content coding; a file that is itself compressed is unpacked within `MOST_FILE_BYTES`.
    """
    text, is_cut = _unpack(body)
    try:
        decoded = to_utf8(text, "text/xml" if "gzip" in content_type else content_type).text
    except ParseError:
        return None
    reader = _SitemapReader(url, shape, wanted, len(decoded), is_cut=is_cut)
    if decoded.lstrip()[:1] == b"<":
        reader.read_xml(decoded)
    else:
        reader.read_lines(decoded)
    return reader.finish()


def _unpack(body: bytes) -> tuple[bytes, bool]:
    """Return the text of all members of a gzip file (RFC 1952, 2.2), and whether a part is left out."""
    if not body.startswith(_GZIP):
        return body[:MOST_FILE_BYTES], len(body) > MOST_FILE_BYTES
    texts, room, place = list[bytes](), MOST_FILE_BYTES, 0
    for _ in range(_MOST_MEMBERS):
        packed = zlib.decompressobj(_GZIP_WINDOW)
        while not packed.eof and place < len(body) and room:
            piece = body[place : place + _PIECE_BYTES]
            try:
                text = packed.decompress(piece, room)
            except zlib.error:
                return b"".join(texts), True
            texts.append(text)
            room -= len(text)
            place += len(piece) - len(packed.unused_data)
        is_end = not body[place : place + _PIECE_BYTES].strip(
            b"\0"
        )  # zeros may pad a file to a block's length
        if is_end or not packed.eof or not room:
            return b"".join(texts), not (is_end and packed.eof)
    return b"".join(texts), True


_GZIP: Final = b"\x1f\x8b"
_GZIP_WINDOW: Final = 16 + zlib.MAX_WBITS
_PIECE_BYTES: Final = 1 << 16
_MOST_MEMBERS: Final = 1000


class _SitemapReader:
    def __init__(
        self, url: str, shape: PathShape, wanted: frozenset[str], size_bytes: int, *, is_cut: bool
    ) -> None:
        self._url = url
        self._shape = shape
        self._wanted = wanted
        self._is_cut = is_cut
        self._is_sitemap = False
        self._entries: dict[str, FileEntry] = {}
        self._sitemaps: dict[str, None] = {}
        self._hosts: set[str] = set()
        self._folders: set[str] = set()
        self._root: list[str] | None = None
        self._sections: set[str] = set()
        self._total = 0
        self._room = _MOST_CHARACTERS
        self._most_urls = min(MOST_URLS, _FREE_URLS + size_bytes // _BYTES_PER_URL)
        self._xml = SiteXml(roots=_ROOTS, max_depth=_MOST_DEPTH, is_full=lambda: self._is_full)
        self._text: list[str] = []
        self._location = self._modified = ""

    def finish(self) -> Sitemap | None:
        if not self._is_sitemap:
            return None
        entries = tuple(
            each._replace(has_below=True) if each.key in self._folders else each
            for each in self._entries.values()
        )
        root = None if self._root is None else "/".join(self._root)
        return Sitemap(
            self._url,
            entries,
            tuple(self._sitemaps),
            self._total,
            root,
            frozenset(self._sections),
            is_cut=self._is_cut,
        )

    # Plain text: a URL a line

    def read_lines(self, text: bytes) -> None:
        lines = text.split(b"\n", self._most_urls)
        self._is_cut |= len(lines) > self._most_urls
        for line in lines[: self._most_urls]:
            url = line.decode("utf-8", "replace").strip()
            if not url:
                continue
            if not is_http(url):
                self._is_cut = True
                return
            self._is_sitemap = True
            if add_host(url, self._hosts):
                self._add_page(url, "")
            else:
                self._is_cut = True

    # XML

    def read_xml(self, text: bytes) -> None:
        self._is_cut |= not self._xml.read(text, begin=self._begin, end=self._end, hear=self._hear)

    def _begin(self, _: list[str]) -> None:
        self._is_sitemap = True
        self._text.clear()

    def _hear(self, text: str) -> None:
        if len(self._xml.path) == _DEPTH_OF_FIELDS and len(self._text) < _MOST_PIECES:
            self._text.append(text[:MAX_LINK_CHARACTERS])

    @property
    def _is_full(self) -> bool:
        return self._total >= self._most_urls or len(self._sitemaps) >= MOST_SITEMAPS or self._room < 0

    def _end(self, name: str) -> None:
        depth = len(self._xml.path)
        if depth == _DEPTH_OF_FIELDS - 1:
            # an extension's <image:loc> is of another namespace than the <url> around it
            if _namespace(name) == _namespace(self._xml.path[-1]):
                said = "".join(self._text).strip()
                if local_name(name) == "loc":
                    self._location = said
                elif local_name(name) == "lastmod":
                    self._modified = said
        elif depth == 1:
            self._end_item(local_name(name))
            self._location = self._modified = ""
        self._text.clear()

    def _end_item(self, name: str) -> None:
        if not self._location or len(self._location) > MAX_LINK_CHARACTERS:
            return
        if not add_host(self._location, self._hosts):
            self._is_cut = True
            return
        url = resolve_or_empty(self._url, self._location)
        if not url or not is_http(url):
            return
        if name == "sitemap":
            self._sitemaps.setdefault(url)
        elif name == "url":
            self._add_page(url, self._modified)

    def _add_page(self, url: str, modified: str) -> None:
        self._total += 1
        key = link_key(url)
        self._folders.add(key.partition("?")[0].rpartition("/")[0])
        segments = path_of(key).split("/")
        self._root = segments if self._root is None else _common_start(self._root, segments)
        if len(segments) > 1 and len(self._sections) < _MOST_SECTIONS:
            self._sections.add(segments[0])
        if key not in self._entries and (self._shape.fits(key) or key in self._wanted):
            at = parse_rfc3339(modified[:_LONGEST_DATE]) if modified else None
            self._entries[key] = FileEntry(url, key, at=at)
            self._room -= len(url) + len(key)


def _common_start(one: list[str], other: list[str]) -> list[str]:
    return [a for a, _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False))]


def _namespace(name: str) -> str:
    return name.rpartition("}")[0]


_ROOTS: Final = frozenset({"urlset", "sitemapindex"})
_DEPTH_OF_FIELDS: Final = 3
_MOST_PIECES: Final = 20
_LONGEST_DATE: Final = 40


# Choosing among the sitemaps of an index


def rank_sitemaps(urls: Iterable[str], avoided: Container[str] = ()) -> list[tuple[str, bool]]:
    """Return an index's sitemaps, those named for posts first, each with whether it is; others are left out.

    Sitemaps of tags, authors, pages and pictures list no entries.
    """
    named: list[tuple[str, bool]] = []
    unnamed: list[tuple[str, bool]] = []
    for url in urls:
        words = _words_of(url)
        if link_key(url) in avoided:
            continue
        if is_for_posts(words):
            named.append((url, True))
        elif _TERMS.isdisjoint(words):
            unnamed.append((url, False))
    return [*named, *unnamed]


def is_for_posts(words: Sequence[str]) -> bool:
    return not _POSTS.isdisjoint(words) and _TERMS.isdisjoint(words)


def _words_of(url: str) -> list[str]:
    """Return the words of a sitemap's name, or of its folder's if it has none of its own.

    WordPress names the type behind `posts`: `wp-sitemap-posts-page-1.xml` has the pages.
    """
    parts = split(url)
    folder, _, name = parts.path[-_LONGEST_NAME:].rpartition("/")
    query = _COUNTED.sub("", (parts.query or "")[:_LONGEST_NAME])
    words = _words_in(f"{_SUFFIX.sub('', name)} {query}") or _words_in(folder.rpartition("/")[2])
    if words[:2] == ["wp", "posts"] and len(words) > len(words[:2]):
        return words[2:]
    return words


def _words_in(text: str) -> list[str]:
    found = _WORDS.findall(text.casefold())
    return [each for each in found if each not in ("sitemap", "sitemaps")]


_COUNTED: Final = re.compile(r"(?:\A|&)[a-z]{1,10}=[0-9]+(?=&|\Z)")
_LONGEST_NAME: Final = 200
_SUFFIX: Final = re.compile(r"(?:\.(?:xml|txt|gz|php))+\Z", re.IGNORECASE)
_WORDS: Final = re.compile(r"[^\W\d_]+")
_POST_NAMES: Final = (
    "post posts article articles blog blogs blogpost blogposts story stories entry entries news"
)
_POSTS: Final = frozenset(_POST_NAMES.split())
_TERM_NAMES: Final = """
    page pages tag tags category categories author authors user users taxonomies taxonomy term terms
    product products image images video videos attachment attachments label labels
    section sections topic topics
"""
_TERMS: Final = frozenset(_TERM_NAMES.split())
"""Words in names of sitemaps that list no entries."""
