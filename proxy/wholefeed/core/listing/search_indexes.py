"""Read indexes for search in the browser (H11): link, title and date of all entries in one file.

`read_index` is a job for a worker; `wholefeed.core.listing.index_names` finds the files. Known formats:

    search.xml              Hexo (hexo-generator-search, hexo-generator-searchdb)
    content.json            Hexo (hexo-generator-json-content; the theme Icarus)
    index.json, search.json Hugo, Jekyll, Eleventy: an array of objects
    search-data.json        Just the Docs: an object of objects
    lunr-store.js           Minimal Mistakes: an array behind `var store =`
    search_index.en.js      Zola (elasticlunr): `documentStore.docs` by URL
    search_index.json       MkDocs: `docs` with locations
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from wholefeed.core.listing.page_dates import read_date
from wholefeed.core.listing.page_links import link_key
from wholefeed.core.listing.page_reading import MAX_LINK_CHARACTERS, MAX_TEXT_CHARACTERS, add_host
from wholefeed.core.listing.site_files import FileEntry
from wholefeed.core.listing.site_xml import MOST_FILE_BYTES, SiteXml, local_name
from wholefeed.core.parse.encodings import to_utf8
from wholefeed.core.parse.limits import ParseError
from wholefeed.core.text.dates import DAY_SECONDS, parse_rfc3339
from wholefeed.core.text.markup import unescape
from wholefeed.core.text.urls import is_http, resolve_or_empty

MOST_ENTRIES: Final = 50_000
_MOST_VALUES: Final = 2_000_000
"""JSON values; each takes up to 200 bytes of memory."""
_MOST_OBJECTS: Final = 200_000
_MOST_DEPTH: Final = 64
_FREE_ENTRIES: Final = 2000
_BYTES_PER_ENTRY: Final = 60  # least average; denser files would cost over a second per megabyte
_MOST_CHARACTERS: Final = 8 << 20
"""Limit for URLs, keys and titles of all entries together."""


class SearchIndex(NamedTuple):
    url: str
    """After redirects."""
    groups: tuple[tuple[FileEntry, ...], ...] = ()
    """Entries that stand in one array or object, in the order of the file."""
    is_cut: bool = False


def read_index(body: bytes, url: str, content_type: str) -> SearchIndex | None:
    """Return the entries of an index; None: no index, or none within limits. Never raises."""
    if len(body) > MOST_FILE_BYTES:
        return None
    try:
        text = to_utf8(body, content_type).text
    except ParseError:
        return None
    reader = _IndexReader(url, len(text))
    if text.lstrip()[:1] == b"<":
        return reader.read_xml(text)
    return reader.read_json(text)


class _IndexReader:
    def __init__(self, url: str, size_bytes: int) -> None:
        self._url = url
        self._most_entries = min(MOST_ENTRIES, _FREE_ENTRIES + size_bytes // _BYTES_PER_ENTRY)
        self._hosts: set[str] = set()
        self._groups: list[list[FileEntry]] = []
        self._count = 0
        self._room = _MOST_CHARACTERS

    @property
    def _is_full(self) -> bool:
        return self._count >= self._most_entries or self._room < 0

    def _finish(self) -> SearchIndex | None:
        groups = tuple(tuple(group) for group in self._groups if group)
        return SearchIndex(self._url, groups, self._is_full) if groups else None

    def _add(self, group: list[FileEntry], values: Mapping[str, Any], own_url: str = "") -> None:
        said = own_url or next(
            (values[name] for name in _URL_NAMES if isinstance(values.get(name), str) and values[name]), ""
        )
        if self._is_full or not said or len(said) > MAX_LINK_CHARACTERS or _BLANK.search(said):
            return
        if not add_host(said, self._hosts):
            return
        # a path without a slash in front stands below the site's root: Hexo's `path`, MkDocs' `location`
        url = resolve_or_empty(
            self._url, said if is_http(said) or said.startswith(("/", "?")) else f"/{said}"
        )
        if not url or not is_http(url):
            return
        title = next((values[name] for name in _TITLE_NAMES if isinstance(values.get(name), str)), "")
        at = next((at for name in _DATE_NAMES if (at := _instant(values.get(name))) is not None), None)
        kind = next((values[name] for name in _KIND_NAMES if isinstance(values.get(name), str)), "")
        entry = FileEntry(url.partition("#")[0], link_key(url), _plain(title), at, kind[:_LONGEST_KIND])
        group.append(entry)
        self._count += 1
        self._room -= len(entry.url) + len(entry.key) + len(entry.title)

    # JSON, or JavaScript that assigns it

    def read_json(self, text: bytes) -> SearchIndex | None:
        if text.count(b",") > _MOST_VALUES or text.count(b"{") + text.count(b"[") > _MOST_OBJECTS:
            return None
        begins = _ASSIGNED.match(text)
        if begins is None:
            return None
        try:
            value, _ = json.JSONDecoder().raw_decode(text[begins.end() :].decode("utf-8", "replace"))
        except (ValueError, RecursionError):
            return None
        self._collect(value, 0)
        return self._finish()

    def _collect(self, value: Any, depth: int) -> None:
        """Collect the groups of a value, each array or object on its own."""
        if depth > _MOST_DEPTH or self._is_full:
            return
        members: Sequence[tuple[str, Any]] = []
        if isinstance(value, list):
            members = [("", each) for each in value]
        elif isinstance(value, dict):
            members = list(value.items())
        group: list[FileEntry] = []
        for name, each in members:
            if isinstance(each, dict):
                own_url = name if name.startswith("/") or is_http(name) else ""
                before = len(group)
                self._add(group, each, own_url)
                if len(group) == before:
                    self._collect(each, depth + 1)
            elif isinstance(each, list) and each and isinstance(each[0], dict | list):
                self._collect(each, depth + 1)
        if group:
            self._groups.append(group)

    # XML

    def read_xml(self, text: bytes) -> SearchIndex | None:
        """Read Hexo's `<search>`, as far as it is well-formed and within limits."""
        group = list[FileEntry]()
        fields = _XmlFields(lambda values: self._add(group, values))
        if not fields.read(text) and not group:
            return None
        self._groups.append(group)
        return self._finish()


class _XmlFields:
    """The fields of one `<entry>` after the other: `<title>`, `<url>`, `<link href>`, perhaps `<date>`."""

    def __init__(self, add: Callable[[Mapping[str, str]], object]) -> None:
        self._add = add
        self._values: dict[str, str] = {}
        self._xml = SiteXml(roots={"search"}, max_depth=_MOST_DEPTH)

    def read(self, text: bytes) -> bool:
        """Return whether the document was read whole."""
        return self._xml.read(text, begin=self._begin, end=self._end, hear=self._hear)

    def _begin(self, attributes: list[str]) -> None:
        path = self._xml.path
        if len(path) == _DEPTH_OF_FIELDS and local_name(path[-1]) == "link" and "href" in attributes[::2]:
            self._values["link"] = attributes[2 * attributes[::2].index("href") + 1]

    def _end(self, _: str) -> None:
        if len(self._xml.path) == 1 and self._values:
            values, self._values = self._values, {}
            self._add({name: said.strip() for name, said in values.items()})

    def _hear(self, said: str) -> None:
        path = self._xml.path
        if len(path) == _DEPTH_OF_FIELDS and (name := local_name(path[-1])) in _XML_FIELDS:
            self._values[name] = (self._values.get(name, "") + said)[: 2 * MAX_LINK_CHARACTERS]


_URL_NAMES: Final = (
    *("permalink", "canonical_url", "url", "link", "uri", "href", "relpermalink", "relPermalink", "loc"),
    *("RelPermalink", "Permalink", "location", "path", "objectID", "ref", "id"),
)
_TITLE_NAMES: Final = ("title", "Title", "name", "heading")
_DATE_NAMES: Final = (
    *("date", "Date", "post_date", "published", "datePublished", "date_published", "publishDate"),
    *("pubDate", "pubdate", "created", "created_at", "time", "timestamp"),
)
_KIND_NAMES: Final = ("section", "type", "kind", "collection", "layout")
_LONGEST_KIND: Final = 60
_XML_FIELDS: Final = frozenset({"title", "url", "link", "date"})
_DEPTH_OF_FIELDS: Final = 3
_BLANK: Final = re.compile(r"\s")
_ASSIGNED: Final = re.compile(
    rb"\s*(?:(?:(?:var|let|const)\s+)?[\w.$]{1,60}\s*=(?!=)\s*)?(?=[\[{])", re.DOTALL
)
_SPACES: Final = re.compile(r"\s+")


def _plain(title: str) -> str:
    return _SPACES.sub(" ", unescape(title[: 4 * MAX_TEXT_CHARACTERS])).strip()[:MAX_TEXT_CHARACTERS]


def _instant(said: Any) -> float | None:
    """Return the instant of a date as such files write it: text, or seconds or milliseconds since 1970."""
    if isinstance(said, bool):
        return None
    if isinstance(said, int | float):
        if not _FIRST_YEAR <= said < 1000 * _MILLISECONDS:  # JSON's integers may be too large for a float
            return None
        return said / 1000 if said >= _MILLISECONDS else float(said)
    if not isinstance(said, str) or not said:
        return None
    at_or_none = parse_rfc3339(said[:_LONGEST_DATE])
    if at_or_none is not None:
        return at_or_none
    day = read_date(_SPACES.sub(" ", said[:_LONGEST_DATE]).strip())
    return day.at if day is not None else None


_LONGEST_DATE: Final = 40
_MILLISECONDS: Final = 1e11
_FIRST_YEAR: Final = 5 * 365 * DAY_SECONDS
