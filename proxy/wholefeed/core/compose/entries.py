"""Read entries out of documents and segments: as objects for programs, as texts for pages.

Identities are the parser's (R9). Nothing is sanitised: content is a stranger's HTML.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import re
import zlib
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Any, Final, NamedTuple, Self, assert_never, overload
from urllib.parse import quote
from xml.etree.ElementTree import Element, ParseError, TreeBuilder, tostring

from defusedxml.ElementTree import DefusedXMLParser, fromstring

from wholefeed.core.compose.compose import newest_first, synthesize
from wholefeed.core.compose.segments import Sealed, inflate, seal
from wholefeed.core.compose.weaving import publication_dates, publication_instant
from wholefeed.core.facts import Stored
from wholefeed.core.model import (
    ATOM_03_NS,
    ATOM_NS,
    DC_NS,
    DCTERMS_NS,
    ENTRY_ID_BYTES,
    EXTENSION,
    RDF_NS,
    WELL_KNOWN_PREFIXES,
    EntryId,
    Family,
    FeedDocument,
    State,
    entry_id,
)
from wholefeed.core.parse.identities import SPACES, absolute
from wholefeed.core.text.dates import calendar_date, parse_rfc822, parse_rfc3339
from wholefeed.core.text.markup import escape, unescape
from wholefeed.core.text.urls import is_http, resolve_or_empty
from wholefeed.core.verbatim.addresses import is_permalink
from wholefeed.core.verbatim.fragments import fragments_of

_XML_BASE: Final = "{http://www.w3.org/XML/1998/namespace}base"
_ATOM: Final = f"{{{ATOM_NS}}}"
_ITUNES: Final = f"{{{WELL_KNOWN_PREFIXES['itunes']}}}"
_MEDIA: Final = f"{{{WELL_KNOWN_PREFIXES['media']}}}"


# The feed and its entries as objects


@dataclass(frozen=True, slots=True, kw_only=True)
class Feed:
    """A reconstructed feed; it needs no store.

    Its documents stay compressed in memory; entries are parsed one document at a time.
    """

    url: str
    """Canonical: the subscription document's."""
    state: State
    """A `str`. `partial`: something is missing; `loading`: `wait_seconds` ended before the walk."""
    is_stale: bool
    """Whether this is the stored feed because the publisher failed."""
    title: str
    links: tuple[Link, ...]
    missing: tuple[Missing, ...]
    entries: Entries = field(repr=False)
    """In output order. A `loading` feed may have a few more than `document`."""
    _coded: bytes = field(repr=False)

    def document(self) -> bytes:
        """Return the feed as the proxy serves it; decompresses."""
        return zlib.decompress(self._coded, wbits=_GZIP)


_GZIP: Final = 16 + zlib.MAX_WBITS


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    relation: str
    """Lower case: `alternate` is the site, `self` the feed."""
    url: str
    """Absolute."""
    media_type: str
    """Lower case, without parameters; empty: none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Missing:
    """A document that could not be fetched."""

    url: str
    reason: str
    """A slug of docs/faults.md."""
    status: int | None
    """HTTP; None: no response."""
    attempts: int
    next_attempt: datetime
    """The same store waits until then; aware, in UTC."""


@dataclass(frozen=True, slots=True)
class Progress:
    """Progress of a reconstruction."""

    documents: int
    """Obtained so far."""
    entries: int
    """In those documents."""
    fetched: int
    """Documents fetched by the current walk."""
    left: int | None
    """Documents still expected; None: unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    identity: str
    """atom:id, guid, rdf:about or JSON id; else the link; else a URN made from the content. Unique in the
    feed."""
    updated: datetime | None
    """atom:updated, dcterms:modified or date_modified; aware, in UTC. Rare in RSS."""
    published: datetime | None
    """atom:published, pubDate, dc:date or date_published; aware, in UTC."""
    title: str
    """One line, without XHTML markup; HTML stays."""
    link: str
    """Absolute, of any scheme; may be empty."""
    content: str = field(repr=False)
    """HTML as published, or text as HTML; the fullest of several. Sanitise it before display."""
    summary: str = field(repr=False)
    """Shorter; not sanitised either."""
    base: str
    """Absolute; for relative URLs in the content."""
    author: str
    """Names with commas between them, else a mail address; in Atom and JSON Feed, else the feed's author."""
    categories: tuple[Category, ...]
    enclosures: tuple[Enclosure, ...]
    """At most 20."""
    duration_seconds: float | None
    """itunes:duration, else an enclosure's."""
    source: bytes = field(repr=False)
    """Published or repaired text in UTF-8, without prefixes, language and base of its document; remembered
    copies are self-contained."""


class Entries(Sequence[Entry]):
    """The entries of a feed in output order (R20).

    Each access parses the entry's document, except for the last `_OPENED`.

    `ambiguous` keys identify no entry (R9). `order` gives places in the concatenated documents (None: as
    there).
    """

    def __init__(
        self,
        documents: Sequence[SegmentTexts],
        ambiguous: Collection[EntryId] = (),
        order: Sequence[int] | None = None,
    ) -> None:
        self._documents = [each for each in documents if each.live]
        self._ends = list(itertools.accumulate(len(each.live) for each in self._documents))
        self._ambiguous = ambiguous
        self._order = order
        self._opened: tuple[tuple[int, list[Entry]], ...] = ()

    @classmethod
    def by_publication(cls, documents: Sequence[SegmentTexts], ambiguous: Collection[EntryId] = ()) -> Self:
        """Sort entries by publication; parses each document once."""
        held = [each for each in documents if each.live]
        keys = [key for place, each in enumerate(held) for key in _keys(each, place)]
        return cls(held, ambiguous, sorted(range(len(keys)), key=keys.__getitem__))

    @classmethod
    def in_places(
        cls,
        documents: Sequence[SegmentTexts],
        ambiguous: Collection[EntryId],
        places: Sequence[Mapping[int | None, int]],
    ) -> Self:
        """Sort entries by `places`: per document, a place by ordinal, or by None for all other entries."""
        held = [(each, own) for each, own in zip(documents, places, strict=True) if each.live]
        keys = [
            (own.get(ordinal, own.get(None, _LAST)), number)
            for number, (each, own) in enumerate(held)
            for ordinal in _ordinals(_parse(each), each.live)
        ]
        return cls([each for each, _ in held], ambiguous, sorted(range(len(keys)), key=keys.__getitem__))

    def __len__(self) -> int:
        return self._ends[-1] if self._ends else 0

    def __iter__(self) -> Iterator[Entry]:
        if self._order is None:
            for place in range(len(self._documents)):
                yield from self._open(place)
        else:
            yield from (self[place] for place in range(len(self)))

    @overload
    def __getitem__(self, index: int) -> Entry: ...

    @overload
    def __getitem__(self, index: slice) -> list[Entry]: ...

    def __getitem__(self, index: int | slice) -> Entry | list[Entry]:
        if isinstance(index, slice):
            return [self[each] for each in range(*index.indices(len(self)))]
        wanted = index + len(self) if index < 0 else index
        if not 0 <= wanted < len(self):
            raise IndexError(f"expected an entry from 0 to {len(self) - 1}, got {index}")
        if self._order is not None:
            wanted = self._order[wanted]
        place = bisect_right(self._ends, wanted)
        return self._open(place)[wanted - self._ends[place]]  # counted from the end of its document

    def __repr__(self) -> str:
        return f"<{len(self)} entries>"

    def _open(self, place: int) -> list[Entry]:
        for opened, entries in self._opened:
            if opened == place:
                return entries
        entries = _read(self._documents[place], self._ambiguous)
        kept = self._opened[: _OPENED - 1] if self._order is not None else ()
        self._opened = ((place, entries), *kept)  # one assignment, for threads that share the feed
        return entries


_LAST: Final = 1 << 62  # the place of an entry not published yet
_OPENED: Final = 8


class SegmentTexts(NamedTuple):
    body: Sealed
    url: str
    media_type: str
    live: tuple[int, ...]
    """Ordinals of live entries, from the top."""


def held(document: Stored, live: Sequence[int], *, is_current: bool) -> SegmentTexts:
    """Seal a document with its live entries; unless `is_current`, without those unknown to this parser.

    Raises:
        ParseError: Only another parser could read the document.
    """
    if not is_current:
        known = len(document.parse().entries)
        live = [ordinal for ordinal in live if ordinal < known]
    return SegmentTexts(seal(document.body), document.url, document.media_type, tuple(live))


def _parse(kept: SegmentTexts) -> FeedDocument:
    body = inflate(kept.body.block, kept.body.length, kept.body.crc32)
    return Stored(body, kept.url, kept.media_type).parse()


def _ordinals(document: FeedDocument, live: Sequence[int]) -> list[int]:
    order = newest_first([document.entries[ordinal].order_at for ordinal in live])
    return [live[place] for place in order]


def _keys(kept: SegmentTexts, place: int) -> Iterator[tuple[float, int, int]]:
    document = _parse(kept)
    dates = publication_dates(document)
    return ((-dates[ordinal], place, ordinal) for ordinal in _ordinals(document, kept.live))


def _read(kept: SegmentTexts, ambiguous: Collection[EntryId]) -> list[Entry]:
    """Read entries from self-contained slices, to have their prefixes, language and base."""
    document = _parse(kept)
    document = document.identify({*ambiguous, *document.ambiguous})
    ordinals = _ordinals(document, kept.live)
    written = _written(document, ordinals)
    return [_entry(document, ordinal, each) for ordinal, each in zip(ordinals, written, strict=True)]


def _entry(document: FeedDocument, ordinal: int, written: _Written) -> Entry:
    entry, scope = document.entries[ordinal], document.scopes[document.entries[ordinal].scope]
    said = _SAID[document.family](written)
    base = said.base or scope.base
    full = _SHOWN[document.family](written, said)
    return Entry(
        identity=written_identity(entry.identity, (said.id, absolute(base, said.href))),
        updated=None if entry.updated_at is None else instant(entry.updated_at),
        published=None if said.published_at is None else instant(said.published_at),
        title=" ".join(said.title.split()),
        link=resolve_or_empty(base, said.href),
        content=full.content,
        summary=full.summary,
        base=full.base or scope.base,
        author=full.author,
        categories=full.categories,
        enclosures=full.enclosures,
        duration_seconds=full.duration_seconds,
        source=document.text[entry.start : entry.end],
    )


def instant(at: float) -> datetime:
    """Return epoch seconds as an aware UTC datetime."""
    return _EPOCH + timedelta(seconds=at)


_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


NAMELESS: Final = "urn:wholefeed:entry:"
"""Prefix of an identity made from content; a digest follows."""


def identity_of(text: str) -> EntryId:
    """Return the digest of an `Entry.identity`."""
    written = text.strip(SPACES)
    digest = written.removeprefix(NAMELESS)
    is_nameless = digest != written and _DIGEST.fullmatch(digest)
    return EntryId(bytes.fromhex(digest)) if is_nameless else entry_id(written)


def sent_name(text: str) -> str:
    """Return an identity for use in a URL; a very long one becomes a digest."""
    name = text.strip(SPACES)
    return name if len(name.encode()) <= _LONGEST_SENT else f"{NAMELESS}{identity_of(name).hex()}"


_LONGEST_SENT: Final = 1000  # bytes, each up to three characters of a URL; servers read lines of 8 KiB
_DIGEST: Final = re.compile(f"[0-9a-f]{{{2 * ENTRY_ID_BYTES}}}")


def written_identity(digest: EntryId, candidates: Sequence[str]) -> str:
    """Return the candidate of this digest: only the parser knows R9."""
    texts = (text.strip(SPACES) for text in candidates)
    return next((text for text in texts if text and entry_id(text) == digest), f"{NAMELESS}{digest.hex()}")


# Publication instants


def said_dates(document: Stored | FeedDocument) -> list[float | None]:
    """Return when each entry was published, else updated (P1)."""
    parsed = document.parse() if isinstance(document, Stored) else document
    dates = [entry.order_at for entry in parsed.entries]
    updated = [place for place, entry in enumerate(parsed.entries) if entry.updated_at is not None]
    if parsed.family is Family.ATOM:
        spans = (parsed.entries[place] for place in updated)
        found = [publication_instant(parsed.text, entry.start, entry.end) for entry in spans]
    else:
        found = [each.published_at for each in said_of(parsed, updated)]
    for place, at in zip(updated, found, strict=True):
        dates[place] = dates[place] if at is None else at
    return dates


# The short fields of an entry


def said_in(document: FeedDocument) -> Iterator[WrittenFields]:
    return said_of(document, range(len(document.entries)))


def said_of(document: FeedDocument, ordinals: Sequence[int]) -> Iterator[WrittenFields]:
    return map(_SAID[document.family], _written(document, ordinals))


_Written = Any  # an `Element`, or a mapping for JSON Feed; self-contained


def _written(document: FeedDocument, ordinals: Sequence[int]) -> Iterator[_Written]:
    fragments = fragments_of(document)
    if document.family is Family.JSON:
        yield from (json.loads(fragments.entry(each), parse_int=str, parse_float=str) for each in ordinals)
        return
    for start in range(0, len(ordinals), _AT_ONCE):
        texts = [fragments.entry(ordinal) for ordinal in ordinals[start : start + _AT_ONCE]]
        yield from _elements(document, fromstring(synthesize(document.family, "", texts)))


_AT_ONCE: Final = 64  # entries in one tree, to bound memory


def _elements(document: FeedDocument, root: Element) -> list[Element]:
    if document.family is Family.ATOM:
        return list(root)
    if document.family is Family.RDF:
        return list(root)[1:]  # behind the channel
    return list(root[0])


class WrittenFields(NamedTuple):
    id: str
    title: str
    href: str
    base: str
    published_at: float | None
    published_text: str = ""
    """The text of that date."""


def _first_instant(dates: Iterable[tuple[float | None, str]]) -> tuple[float | None, str]:
    return next((each for each in dates if each[0] is not None), (None, ""))


def _atom_said(entry: Element) -> WrittenFields:
    own = entry.tag.rpartition("}")[0] + "}"
    link = next((each for each in entry.iterfind(f"{own}link") if each.get("rel", "") in _ALTERNATE), None)
    base = entry.get(_XML_BASE, "")
    if link is not None and (inner := link.get(_XML_BASE)):
        base = resolve_or_empty(base, inner) or base
    texts = (_text_of(entry, f"{own}{name}") for name in _ATOM_PUBLISHED)
    at, written = _first_instant((parse_rfc3339(text), text) for text in texts)
    return WrittenFields(
        id=_text_of(entry, f"{own}id"),
        title=_text_of(entry, f"{own}title"),
        href=link.get("href", "") if link is not None else "",
        base=base,
        published_at=at,
        published_text=written,
    )


_ALTERNATE: Final = frozenset({"", "alternate", "http://www.iana.org/assignments/relation/alternate"})
_ATOM_PUBLISHED: Final = ("published", "issued", "created")


def _rss_said(item: Element) -> WrittenFields:
    space, brace, _ = item.tag.rpartition("}")
    own = space + brace
    guid = item.find(f"{own}guid")
    href = _text_of(item, f"{own}link")
    if not href and (link := item.find(f"{_ATOM}link")) is not None:
        href = link.get("href", "") if link.get("rel", "") in _ALTERNATE else ""
    if not href and guid is not None:
        text = _text_of(item, f"{own}guid")
        is_url = text.startswith(("http:", "https:")) or ":" not in text.partition("/")[0]
        href = text if is_url and is_permalink(text, guid.get("isPermaLink")) else ""
    dates = (
        (read, _text_of(item, name))
        for read, name in (
            (parse_rfc3339, f"{_ATOM}published"),
            (parse_rfc822, f"{own}pubDate"),
            (parse_rfc822, f"{{{DC_NS}}}date"),
        )
    )
    at, written = _first_instant((read(text), text) for read, text in dates)
    return WrittenFields(
        id=item.get(_ABOUT, "") or _text_of(item, f"{own}guid"),
        title=_text_of(item, f"{own}title"),
        href=href,
        base=item.get(_XML_BASE, ""),
        published_at=at,
        published_text=written,
    )


_ABOUT: Final = f"{{{RDF_NS}}}about"


def _text_of(element: Element, name: str) -> str:
    child = element.find(name)
    return "" if child is None else "".join(child.itertext()).strip(SPACES)


def _item_said(item: Mapping[str, Any]) -> WrittenFields:
    published = json_text(item.get("date_published"))
    return WrittenFields(
        id=json_text(item.get("id")),
        title=json_text(item.get("title")),
        href=json_text(item.get("url")) or json_text(item.get("external_url")),
        base="",
        published_at=parse_rfc3339(published),
        published_text=published,
    )


def json_text(value: Any) -> str:
    """Return a text; half a character, possible in JSON, becomes `?`."""
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else ""


# Entries for pages


class WrittenDate(NamedTuple):
    at: float | None
    """Epoch seconds; None: no date."""
    on: str = ""
    """The date if no time of day is written: `2019-03-03`, `2019-03` or `2019`."""

    @classmethod
    def of(cls, at: float | None, text: str) -> Self:
        return cls(at, "" if at is None else calendar_date(text))


NO_DATE: Final = WrittenDate(None)


@dataclass(frozen=True, slots=True, kw_only=True)
class PageEntry:
    identity: str
    """The written id; empty: none."""
    title: str
    """One line without markup."""
    link: str
    """http, https or empty."""
    published: WrittenDate
    updated: WrittenDate
    author: str
    content: str
    """HTML as published, or escaped text; not sanitised."""
    base: str
    """For relative URLs in the content; empty: the feed's URL."""
    enclosures: tuple[Enclosure, ...]
    summary: str = ""
    """Shorter; not sanitised either."""
    categories: tuple[Category, ...] = ()
    duration_seconds: float | None = None
    image: str = ""
    """An episode's artwork: http, https or empty."""
    is_cut: bool = False
    """Whether only the beginning was read."""
    text_page: str = ""
    """The page that the content was taken from (T4); empty: the content is the feed's own."""

    @property
    def date(self) -> WrittenDate:
        """The date that pages show: publication, else update."""
        return self.updated if self.published.at is None else self.published

    @property
    def name(self) -> str:
        return name_entry(self.identity, self.title, self.date.at)


def name_entry(identity: str, title: str, at: float | None) -> str:
    """Return a short name for links to an entry; several entries may have the same."""
    told = identity or f"{title[:_NAMING_CHARACTERS]}\n{at}"
    return f"e{hashlib.blake2b(told.encode('utf-8', 'replace'), digest_size=NAME_BYTES).hexdigest()}"


NAME_BYTES: Final = 5
_NAMING_CHARACTERS: Final = 200


@dataclass(frozen=True, slots=True)
class Category:
    """atom:category, category, dc:subject or tag."""

    term: str
    label: str = ""
    """For people, if different."""
    scheme: str = ""
    """Mostly a URL."""


@dataclass(frozen=True, slots=True)
class Enclosure:
    url: str
    """http or https."""
    media_type: str = ""
    length: int | None = None
    """Bytes, as published."""
    duration_seconds: float | None = None


def parse_for_page(family: Family, text: bytes, *, namespace: str = "", is_cut: bool = False) -> PageEntry:
    """Parse an entry from its text in a segment with that default namespace."""
    if family is Family.JSON:
        written: _Written = read_item(text, is_cut=is_cut)
    else:
        written = _element(family, text, namespace, is_cut=is_cut)
    made = _SHOWN[family](written, _SAID[family](written))
    return replace(made, is_cut=is_cut, text_page=_text_page(family, written))


class EntryHeading(NamedTuple):
    name: str
    title: str
    """One line without markup; empty: none."""
    date: WrittenDate
    lead: str = ""
    """The beginning of its text, if it has no title."""


def read_heading(family: Family, written: _Written) -> EntryHeading:
    said = _SAID[family](written)
    title = _find_title(written, said)
    date = WrittenDate.of(said.published_at, said.published_text)
    if date.at is None:
        date = _find_update(family, written)
    lead = "" if title else next((text for text, _ in _TEXTS[family](written) if text.strip()), "")
    return EntryHeading(name_entry(said.id, title, date.at), title, date, beginning_of(lead))


def read_item_heading(text: bytes, *, is_cut: bool) -> EntryHeading:
    return read_heading(Family.JSON, read_item(text, is_cut=is_cut))


def beginning_of(html: str) -> str:
    beginning = html[:_LEAD_CHARACTERS]
    if len(html) > _LEAD_CHARACTERS and (tag := beginning.rfind("<")) > beginning.rfind(">"):
        beginning = beginning[:tag]
    return strip_markup(beginning, " ")


_LEAD_CHARACTERS: Final = 2000


TEXT_MARK: Final = "wholefeed:text"
"""Element of an entry whose content was taken from its page (T4); the attribute `page` names that."""
TEXT_MARK_NS: Final = "urn:wholefeed:"
_TEXT_MARK: Final = f"{{{TEXT_MARK_NS}}}{TEXT_MARK.partition(':')[2]}"


def _text_page(family: Family, written: _Written) -> str:
    if family is Family.JSON:
        own = written.get(EXTENSION)
        return http_url("", json_text(own.get("text"))) if isinstance(own, dict) else ""
    mark = written.find(_TEXT_MARK)
    return "" if mark is None else http_url("", mark.get("page", ""))


def _element(family: Family, text: bytes, namespace: str, *, is_cut: bool) -> Element:
    around = synthesize(family, "", [text], namespace=namespace)
    if is_cut:
        around = around[: around.index(text) + len(text)]
    tree = _Tree()
    with suppress(ParseError):  # the readable part is shown
        DefusedXMLParser(target=tree).feed(around)
    root = tree.root()
    entries = root if family is not Family.RSS else root[0]
    name = "entry" if family is Family.ATOM else "item"
    return next((each for each in entries if each.tag.rpartition("}")[2] == name), Element(name))


class _Tree(TreeBuilder):
    """Builder for entries that may break off."""

    def __init__(self) -> None:
        super().__init__()
        self._open: list[str] = []

    def start(self, tag: str, attrs: dict[Any, Any], /) -> Element:
        self._open.append(tag)
        return super().start(tag, attrs)

    def end(self, tag: str, /) -> Element:
        self._open.pop()
        return super().end(tag)

    def root(self) -> Element:
        for tag in reversed(self._open[:]):
            self.end(tag)
        return self.close()


def read_item(text: bytes, *, is_cut: bool = False) -> Mapping[str, Any]:
    for candidate in _close_object(text) if is_cut else (text,):
        try:
            item = json.loads(candidate.decode("utf-8", "ignore"), parse_int=str, parse_float=str)
        except (ValueError, RecursionError):
            continue
        if isinstance(item, dict):
            return item
    return {}


def _close_object(text: bytes) -> Iterator[bytes]:
    """Yield a cut object completed: whole, then up to the last comma."""
    end, comma_at = 0, 0
    closing: list[bytes] = []
    while token := _JSON_TOKEN.match(text, end):
        end = token.end()
        match token[0]:
            case b"{":
                closing.append(b"}")
            case b"[":
                closing.append(b"]")
            case b"}" | b"]" if closing:
                closing.pop()
            case b"," if len(closing) == 1:
                comma_at = token.start()
    begun = _JSON_STRING_BEGUN.match(text, end)
    yield text[:end] + (begun[0] + b'"' if begun else b"") + b"".join(reversed(closing))
    yield text[:comma_at] + b"}"


_JSON_TOKEN: Final = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"|[][{},]|[^][{},"]+', re.DOTALL)
_JSON_STRING_BEGUN: Final = re.compile(rb'"[^"\\]*+(?:\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})[^"\\]*+)*+')


def _of_atom(entry: Element, said: WrittenFields) -> PageEntry:
    own = entry.tag.rpartition("}")[0] + "}"
    names = (
        _text_of(author, f"{own}name") or _text_of(author, f"{own}email")
        for author in entry.iterfind(f"{own}author")
    )
    base = _base_of(entry, "")
    links = (
        (_base_of(each, base), each.get("href", ""), each.get("type", ""), each.get("length", ""), "")
        for each in entry.iterfind(f"{own}link")
        if each.get("rel", "").lower() == "enclosure"
    )
    categories = [
        Category(each.get("term", ""), each.get("label", ""), each.get("scheme", ""))
        for each in entry.iterfind(f"{own}category")
    ]
    return _make_page_entry(
        said,
        _atom_texts(entry),
        title=_find_title(entry, said),
        updated=_find_update(Family.ATOM, entry),
        authors=names,
        categories=[*categories, *_subjects(entry)],
        enclosures=links,
        duration=_text_of(entry, _ITUNES_DURATION),
        image=_image_of(entry),
    )


def _of_rss(item: Element, said: WrittenFields) -> PageEntry:
    own = item.tag.removesuffix("item")
    mailed = _text_of(item, f"{own}author")
    named = _NAME_IN_REMARK.fullmatch(mailed)
    names = [creator.text or "" for creator in item.iterfind(f"{{{DC_NS}}}creator")]
    names = [name for name in names if name.strip()] or [named["name"] if named else mailed]
    if not any(names):
        names = [_text_of(item, _ITUNES_AUTHOR) or _text_of(item, f"{_ATOM}author/{_ATOM}name")]
    base = _base_of(item, "")
    enclosures = [*item.iterfind(f"{own}enclosure"), *filter(_is_played, item.iter(f"{_MEDIA}content"))]
    categories = [
        Category(each.text or "", scheme=each.get("domain", "")) for each in item.iterfind(f"{own}category")
    ]
    return _make_page_entry(
        said,
        _rss_texts(item),
        title=_find_title(item, said),
        updated=_find_update(Family.RSS, item),
        authors=names,
        categories=[*categories, *_subjects(item)],
        enclosures=[
            (
                base,
                each.get("url", ""),
                each.get("type", ""),
                each.get("length", each.get("fileSize", "")),
                each.get("duration", ""),
            )
            for each in enclosures
        ],
        duration=_text_of(item, _ITUNES_DURATION),
        image=_image_of(item),
    )


def _image_of(entry: Element) -> str:
    image = entry.find(f"{_ITUNES}image")
    return "" if image is None else http_url(_base_of(entry, ""), image.get("href", ""))


def _subjects(entry: Element) -> Iterator[Category]:
    return (Category(each.text or "") for each in entry.iterfind(f"{{{DC_NS}}}subject"))


_ITUNES_AUTHOR: Final = f"{_ITUNES}author"
_ITUNES_DURATION: Final = f"{_ITUNES}duration"
_UPDATED: Final = (f"{_ATOM}updated", f"{{{DCTERMS_NS}}}modified")
_NAME_IN_REMARK: Final = re.compile(r"\s*+[^\s@]++@[^\s(]++\s*+\((?P<name>[^()]++)\)\s*+")
"""RSS 2.0: mail address and name."""


def _is_played(content: Element) -> bool:
    media = content.get("medium", "") or content.get("type", "").partition("/")[0]
    return media in ("audio", "video")


def _of_item(item: Mapping[str, Any], said: WrittenFields) -> PageEntry:
    people = [*json_list(item.get("authors")), item.get("author")]
    files = [each for each in json_list(item.get("attachments")) if isinstance(each, dict)]
    return _make_page_entry(
        said,
        _item_texts(item),
        title=_find_title(item, said),
        updated=_find_update(Family.JSON, item),
        authors=(json_text(each.get("name")) for each in people if isinstance(each, dict)),
        categories=[Category(json_text(each)) for each in json_list(item.get("tags"))],
        enclosures=[("", *(json_text(each.get(name)) for name in _OF_ATTACHMENTS)) for each in files],
        image=http_url("", json_text(item.get("image"))),
    )


_OF_ATTACHMENTS: Final = ("url", "mime_type", "size_in_bytes", "duration_in_seconds")


def json_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


_SAID: Final[Mapping[Family, Callable[[_Written], WrittenFields]]] = {
    Family.ATOM: _atom_said,
    Family.RSS: _rss_said,
    Family.RDF: _rss_said,
    Family.JSON: _item_said,
}
_SHOWN: Final[Mapping[Family, Callable[[_Written, WrittenFields], PageEntry]]] = {
    Family.ATOM: _of_atom,
    Family.RSS: _of_rss,
    Family.RDF: _of_rss,
    Family.JSON: _of_item,
}


def _find_title(written: _Written, said: WrittenFields) -> str:
    if not isinstance(written, Element):
        return " ".join(said.title.split())
    return _title_of(written.find(f"{written.tag[: written.tag.rfind('}') + 1]}title"))


def _find_update(family: Family, written: _Written) -> WrittenDate:
    match family:
        case Family.ATOM:
            own = written.tag.rpartition("}")[0] + "}"
            texts: Iterable[str] = [_text_of(written, f"{own}updated") or _text_of(written, f"{own}modified")]
        case Family.RSS | Family.RDF:
            texts = (_text_of(written, name) for name in _UPDATED)
        case Family.JSON:
            texts = [json_text(written.get("date_modified"))]
        case unreachable:
            assert_never(unreachable)
    return WrittenDate.of(*_first_instant((parse_rfc3339(text), text) for text in texts))


def _make_page_entry(
    said: WrittenFields,
    texts: Iterable[tuple[str, str]],
    *,
    title: str,
    updated: WrittenDate,
    authors: Iterable[str],
    categories: Iterable[Category],
    enclosures: Iterable[tuple[str, ...]],
    duration: str = "",
    image: str = "",
) -> PageEntry:
    full = (each for each in texts if each[0].strip())
    (content, content_base), (summary, _) = next(full, ("", "")), next(full, ("", ""))
    found: dict[str, Enclosure] = {}
    for base, url, media_type, length, plays in enclosures:
        if (absolute := http_url(base, url)) and len(found) < _MOST_ENCLOSURES:
            size = int(length) if LENGTH.fullmatch(length) else None
            found.setdefault(
                absolute, Enclosure(absolute, media_type.strip(), size or None, _seconds_of(plays))
            )
    durations = (_seconds_of(duration), *(each.duration_seconds for each in found.values()))
    return PageEntry(
        identity=said.id,
        title=title,
        link=http_url(said.base, said.href),
        published=WrittenDate.of(said.published_at, said.published_text),
        updated=updated,
        author=", ".join(dict.fromkeys(name for each in authors if (name := _in_a_line(each)))),
        content=content,
        base=content_base,
        enclosures=tuple(found.values()),
        summary=summary,
        categories=tuple(_terms(categories)),
        duration_seconds=next((each for each in durations if each is not None), None),
        image=image,
    )


def _terms(categories: Iterable[Category]) -> Iterator[Category]:
    tidy = (Category(*map(_in_a_line, (each.term, each.label, each.scheme))) for each in categories)
    yield from islice(dict.fromkeys(each for each in tidy if each.term), _MOST_CATEGORIES)


def _in_a_line(text: str) -> str:
    return " ".join(text.split())


def _seconds_of(duration: str) -> float | None:
    """Read `1:02:03`, `62:03` or `3723`; zero is no duration."""
    found = _DURATION.fullmatch(duration.strip())
    if found is None:
        return None
    hours, minutes, seconds = (float(each or 0) for each in found.groups())
    return hours * 3600 + minutes * 60 + seconds or None


_DURATION: Final = re.compile(r"(?:(?:([0-9]{1,4}):)?([0-9]{1,5}):)?([0-9]{1,9}(?:\.[0-9]{1,9})?)", re.ASCII)
_MOST_CATEGORIES: Final = 100
_MOST_ENCLOSURES: Final = 20
LENGTH: Final = re.compile(r"[0-9]{1,15}", re.ASCII)


def http_url(base: str, reference: str) -> str:
    url = resolve_or_empty(base, reference.strip()) if base else reference.strip()
    return quote(url, safe=_OF_URLS) if is_http(url) else ""


_OF_URLS: Final = "%/:=&?~#+!$,;'@()*[]"  # kept; others are percent-encoded (RFC 3987, 3.1)


# The texts of an entry as pairs of HTML and base URL, the fullest first; the base is empty if none is given.


def _atom_texts(entry: Element) -> Iterator[tuple[str, str]]:
    own, base = entry.tag.rpartition("}")[0] + "}", _base_of(entry, "")
    for name in ("content", "summary"):
        element = entry.find(own + name)
        if element is not None:
            yield _atom_text(element), _base_of(element, base)
    described = (_text_of(entry, f"{within}{_MEDIA}description") for within in (f"{_MEDIA}group/", ""))
    yield paragraphs(next(filter(None, described), "")), base


def _rss_texts(item: Element) -> Iterator[tuple[str, str]]:
    """Yield texts as HTML, as most are in RSS."""
    own, base = item.tag.removesuffix("item"), _base_of(item, "")
    names = (_ENCODED, f"{_XHTML}body", f"{own}description", f"{_ATOM}content", f"{_ATOM}summary")
    for name in (*names, f"{_ITUNES}summary", f"{_MEDIA}description"):
        element = item.find(name)
        if element is not None:
            text = _atom_text(element) if name.startswith(_ATOM) else _html_within(element)
            yield text, _base_of(element, base)


_ENCODED: Final = f"{{{WELL_KNOWN_PREFIXES['content']}}}encoded"
_XHTML: Final = f"{{{WELL_KNOWN_PREFIXES['xhtml']}}}"


def _item_texts(item: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    written, text, summary = (
        json_text(item.get(name)) for name in ("content_html", "content_text", "summary")
    )
    yield written if written.strip() else paragraphs(text), ""
    yield paragraphs(summary), ""


_TEXTS: Final[Mapping[Family, Callable[[_Written], Iterable[tuple[str, str]]]]] = {
    Family.ATOM: _atom_texts,
    Family.RSS: _rss_texts,
    Family.RDF: _rss_texts,
    Family.JSON: _item_texts,
}
TEXT_TAGS: Final = frozenset({"content", "summary", "description", "encoded", "body", "group"})
HEADING_TAGS: Final = TEXT_TAGS | frozenset(
    {"title", "id", "guid", "published", "issued", "created", "updated", "modified", "pubDate", "date"}
)


def _atom_text(element: Element) -> str:
    """Return a text construct as HTML (RFC 4287, 3.1 and 4.1.3; modes of Atom 0.3)."""
    kind = element.get("type", "text").partition(";")[0].strip().lower()
    mode = element.get("mode", "xml" if element.tag.startswith(_OLD_ATOM) else "")
    if kind in _XHTML_TYPES or (mode == "xml" and len(element)):
        return _html_within(element)
    if kind in _HTML_TYPES or mode == "escaped":
        return "".join(element.itertext())
    if mode == "base64" or (kind != "text" and not kind.startswith("text/")):
        return ""  # encoded content, or no text: pictures, other XML
    return paragraphs("".join(element.itertext()))


_OLD_ATOM: Final = f"{{{ATOM_03_NS}}}"
_HTML_TYPES: Final = frozenset({"html", "text/html"})
_XHTML_TYPES: Final = frozenset({"xhtml", "application/xhtml+xml"})


def _html_within(element: Element) -> str:
    if not len(element):
        return element.text or ""
    for each in list(element.iter()):
        space, _, name = each.tag.rpartition("}")
        if space in _DRAWN:
            tail = each.tail
            each.clear()
            each.tail = tail
        each.tag = name
        each.attrib.pop(_XML_BASE, None)
    element.tail = None
    try:
        written = tostring(element, encoding="unicode", method="html")
    except RecursionError:  # nested deeper than anybody writes
        return escape("".join(element.itertext()))
    return written[written.index(">") + 1 : written.rindex("<")]


_DRAWN: Final = ("{http://www.w3.org/2000/svg", "{http://www.w3.org/1998/Math/MathML")


def paragraphs(text: str) -> str:
    if not text.strip():
        return ""
    lines = escape(text.replace("\r\n", "\n").strip())
    return "<p>" + _BREAKS.sub("</p><p>", lines).replace("\n", "<br>") + "</p>"


_BREAKS: Final = re.compile(r"\n[ \t]*(?:\n[ \t]*)+")


def _title_of(element: Element | None) -> str:
    """Return a title in one line, without markup: RSS titles often have markup, undeclared."""
    if element is None:
        return ""
    text = "".join(element.itertext())
    kind = element.get("type", "text").strip().lower()
    is_text = element.tag.startswith((_ATOM, _OLD_ATOM)) and kind not in _HTML_TYPES
    if not is_text and kind not in _XHTML_TYPES and element.get("mode", "escaped") == "escaped":
        return strip_markup(text)
    return " ".join(text.split())


def strip_markup(text: str, gap: str = "") -> str:
    """Return a text in one line, with `gap` in place of each tag."""
    return " ".join(unescape(MARKUP.sub(gap, text)).split())


MARKUP: Final = re.compile(r"<(?:/?[A-Za-z][^<>]*|![^<>]*)>")


def _base_of(element: Element, outer: str) -> str:
    own = element.get(_XML_BASE, "")
    return (resolve_or_empty(outer, own) or outer) if outer else own
