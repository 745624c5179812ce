"""Work on whole documents that may run in another process (docs/design.md#worker-processes).

Results are facts, a head or a sealed segment (docs/design.md#segments), without the text: the caller has the
body.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from operator import or_
from typing import Any, Final, NamedTuple

from wholefeed.core.adapters.base import Marks, marks_of
from wholefeed.core.compose.as_atom import convert_items, name_items
from wholefeed.core.compose.compose import ComposedHead, Heading, compose_head, heading_of, newest_first
from wholefeed.core.compose.entries import said_dates, said_in
from wholefeed.core.compose.listed import named_entries, without
from wholefeed.core.compose.reading import show_entries
from wholefeed.core.compose.remembering import remember_copies
from wholefeed.core.compose.replaying import replay_entries
from wholefeed.core.compose.same_posts import read_traits
from wholefeed.core.compose.segments import (
    Sealed,
    each_of,
    inflate,
    join_outlines,
    join_sealed,
    pack_outline,
    seal,
)
from wholefeed.core.compose.weaving import Members, Weave, pack_member, publication_dates, unpack_members
from wholefeed.core.facts import CopyDates, DocumentFacts, Stored
from wholefeed.core.links import Navigation, api_url, classify
from wholefeed.core.listing.page_reading import read_page
from wholefeed.core.listing.search_indexes import read_index
from wholefeed.core.listing.sitemaps import read_sitemap
from wholefeed.core.merge import believable_instant
from wholefeed.core.model import (
    SEPARATOR,
    Family,
    FeedDocument,
    HeadContext,
    Tombstone,
    default_namespace,
    segment_end,
)
from wholefeed.core.notes import ResponseRepaired
from wholefeed.core.parse.documents import parse
from wholefeed.core.parse.identities import absolute
from wholefeed.core.saved.choosing import KnownEntry, SavedMatch, choose_feed
from wholefeed.core.saved.exports import read_export
from wholefeed.core.texts.extracting import extract_text, guess_text_element, learn_text_element
from wholefeed.core.texts.inserting import insert_texts
from wholefeed.core.texts.wanted import read_entry_pages
from wholefeed.core.verbatim.fragments import fragments_of, prefixes_in
from wholefeed.core.walk.chain import DateSpan

# Reading a document


def read_document(
    body: bytes,
    sender: Sender,
    *,
    max_depth: int,
    style: Style | None = None,
    is_subscription: bool = False,
) -> ReadDocument:
    """Read a publisher's document; `body` has no content coding.

    With a style, render the document, too. With `is_subscription`, compose its head without other documents'
    tombstones, and render in its own style.

    Raises:
        ParseError: Not a readable feed.
    """
    document = parse(body, sender.url, sender.media_type, max_depth=max_depth)
    composed, rendered = compose(document) if is_subscription else None, None
    if composed is not None:
        style = composed.style
    if style is not None and style.family is document.family:
        rendered = render([Part(document, None)], style)
    return replace(describe(document, body, sender), composed=composed, rendered=rendered)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sender:
    url: str
    """After redirects."""
    media_type: str
    """Content-Type as sent."""
    links: tuple[str, ...] = ()
    """Values of Link fields (RFC 8288)."""
    route: str = ""
    """Value of X-Discourse-Route."""
    repairs: tuple[str, ...] = ()
    """Repaired faults of the response."""
    fetched_at: float
    """Epoch seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadDocument:
    facts: DocumentFacts
    navigation: Navigation
    digest: bytes
    """SHA-256 of the body."""
    span: DateSpan | None
    """Dates of its entries; None: none counts."""
    marks: Marks
    """Evidence for adapters (R26)."""
    composed: Composed | None = None
    """None: not asked for."""
    rendered: Rendered | None = None
    """None: not asked for, or of another format."""


def describe(document: FeedDocument, body: bytes, sender: Sender) -> ReadDocument:
    facts = DocumentFacts.of(document)
    if sender.repairs:
        facts = replace(facts, notes=(*facts.notes, ResponseRepaired(sender.url, repairs=sender.repairs)))
    return ReadDocument(
        facts=facts,
        navigation=classify(document, sender.links),
        digest=hashlib.sha256(body).digest(),
        span=_span(document, sender.fetched_at),
        marks=marks_of(document, api_url=api_url(sender.links, sender.url), route=sender.route),
    )


def _span(document: FeedDocument, fetched_at: float) -> DateSpan | None:
    dates = [entry.order_at for entry in document.entries if entry.order_at is not None]
    if dates and believable_instant(max(dates), fetched_at) is None:
        dates = [at for at in dates if believable_instant(at, fetched_at) is not None]
    return DateSpan(min(dates), max(dates)) if dates else None


def read_again(stored: Stored, dates: Sequence[CopyDates] = ()) -> DocumentFacts:
    """Read a stored document again; its links stay as they were read."""
    document = stored.parse()
    # The dates of remembered copies count only if each entry has one.
    facts = DocumentFacts.of(document, dates if len(dates) == len(document.entries) else ())
    return replace(facts, traits=dict(enumerate(read_traits(document, range(len(document.entries))))))


# Parts of an answer: the head, and the text of a segment


def compose(subscription: Document, tombstones: Sequence[Tombstone] = ()) -> Composed:
    """Compose the head, and the style of the segments behind it.

    `tombstones` come from the feed's other documents (R19).
    """
    document = _parse(subscription)
    fragments = fragments_of(document, default_namespace(document.family, document.version))
    style = Style(document.family, document.version, fragments.context)
    return Composed(compose_head(fragments, tombstones), heading_of(document), style)


Document = Stored | FeedDocument


def _parse(document: Document) -> FeedDocument:
    return document.parse() if isinstance(document, Stored) else document


class Composed(NamedTuple):
    """The subscription document's part of an answer, without entries."""

    head: ComposedHead
    heading: Heading
    style: Style


class Style(NamedTuple):
    family: Family
    version: str
    context: HeadContext
    lists_members: bool = False
    """Whether the segment lists its members, for sorting by publication (R20)."""

    @property
    def namespace(self) -> str:
        return default_namespace(self.family, self.version)

    @property
    def digest(self) -> bytes:
        """Digest of the inherited context."""
        parts = [*self.context.authors, b"", *self.context.rights, b"", self.context.language]
        return hashlib.blake2b(b"\0".join(parts), digest_size=16).digest()


def render(parts: Sequence[Part], style: Style) -> Rendered:
    rendered = [document for document, _ in parts if isinstance(document, Rendered)]
    if len(rendered) == len(parts) and _can_join(rendered, style.family):
        return _join(rendered)
    text = _Text()
    for number, (document, live) in enumerate(parts):
        if isinstance(document, Rendered):
            text.add_rendered(number, document, style.family)
        else:
            text.add(number, document, live, style)
    return text.seal(style)


class Part(NamedTuple):
    document: Document | Rendered
    """The document, or all of it as rendered in the same style."""
    live: Sequence[int] | None
    """Ordinals of its live entries, from the top; None: all."""


@dataclass(frozen=True, slots=True)
class Rendered:
    sealed: Sealed
    prefixes: int
    """Bit mask of well-known prefixes."""
    newest_at: float | None
    oldest_at: float | None
    entries: int
    context: bytes | None
    """`Style.digest` if the text depends on the head, else None."""
    outline: bytes
    """Packed by `pack_outline`."""
    members: bytes
    """Packed by `pack_member`; empty unless the style lists members."""


class DocumentInMemory(NamedTuple):
    """A new document, ready to be sent: parsed if small, else rendered."""

    digest: bytes
    """SHA-256 of the body."""
    document: FeedDocument | None = None
    composed: Composed | None = None
    rendered: Rendered | None = None
    style: Style | None = None
    """Style of `rendered`."""

    @property
    def size_bytes(self) -> int:
        parsed_bytes = 0 if self.document is None else 2 * len(self.document.text)
        return parsed_bytes + (0 if self.rendered is None else len(self.rendered.sealed.block))

    @property
    def has_text(self) -> bool:
        return self.document is not None or self.rendered is not None

    def fits(self, style: Style) -> bool:
        """Return whether `rendered` can be sent in this style."""
        if self.rendered is None or self.style is None:
            return False
        is_alike = self.style.namespace == style.namespace and self.style.family is style.family
        is_alike = is_alike and self.style.lists_members >= style.lists_members
        return is_alike and self.rendered.context in (None, style.digest)


JOINED_BYTES: Final = 1 << 16
"""From this mean text size on, blocks are joined unchanged: deflating again took a twelfth of a first walk.
"""


def _can_join(rendered: Sequence[Rendered], family: Family) -> bool:
    text_bytes = sum(each.sealed.length for each in rendered)
    # Blocks can stand in a row only if each ends with a separator.
    return SEPARATOR[family] == segment_end(family) and text_bytes >= len(rendered) * JOINED_BYTES


def _join(rendered: Sequence[Rendered]) -> Rendered:
    newest = [each.newest_at for each in rendered if each.newest_at is not None]
    oldest = [each.oldest_at for each in rendered if each.oldest_at is not None]
    return Rendered(
        sealed=join_sealed([each.sealed for each in rendered]),
        prefixes=reduce(or_, (each.prefixes for each in rendered)),
        newest_at=max(newest, default=None),
        oldest_at=min(oldest, default=None),
        entries=sum(each.entries for each in rendered),
        context=next((each.context for each in rendered if each.context is not None), None),
        outline=join_outlines(each.outline for each in rendered),
        members=b"".join(
            pack_member(part, *member)
            for part, each in enumerate(rendered)
            for _, *member in unpack_members(each.members)
        ),
    )


@dataclass(slots=True)
class _Text:
    fragments: list[bytes] = field(default_factory=list)
    dates: list[float | None] = field(default_factory=list)
    members: list[bytes] = field(default_factory=list)
    prefixes: int = 0
    """Like `Rendered.prefixes`, but perhaps with unused ones."""
    needs_context: bool = False

    def add_rendered(self, part: int, rendered: Rendered, family: Family) -> None:
        self.fragments += fragments_in(rendered, family)
        self.dates += [each.order_at for each in each_of(rendered.outline)]
        self.members += [pack_member(part, *each) for _, *each in unpack_members(rendered.members)]
        self.takes(rendered.prefixes, needs_context=rendered.context is not None)

    def add(self, part: int, document: Document, live: Sequence[int] | None, style: Style) -> None:
        fragments = fragments_of(_parse(document), style.namespace)
        entries = fragments.document.entries
        count = len(entries)
        live = range(count) if live is None else [ordinal for ordinal in live if ordinal < count]
        # R20: newest first.
        ordinals = [live[place] for place in newest_first([entries[ordinal].order_at for ordinal in live])]
        made = fragments.all_sent(ordinals, style.context)
        self.fragments += made
        self.dates += [entries[ordinal].order_at for ordinal in ordinals]
        if style.lists_members:
            dates = publication_dates(fragments.document)
            self.members += [
                pack_member(part, ordinal, len(fragment), dates[ordinal])
                for ordinal, fragment in zip(ordinals, made, strict=True)
            ]
        self.takes(fragments.prefixes, needs_context=fragments.needs_context)

    def takes(self, prefixes: int, *, needs_context: bool) -> None:
        self.prefixes |= prefixes
        self.needs_context = self.needs_context or needs_context

    def seal(self, style: Style) -> Rendered:
        text = SEPARATOR[style.family].join(self.fragments)
        text += segment_end(style.family) if text else b""
        dates = [at for at in self.dates if at is not None]
        entries = list(zip(map(len, self.fragments), self.dates, strict=True))
        return Rendered(
            sealed=seal(text),
            prefixes=prefixes_in(text, self.prefixes),
            newest_at=max(dates, default=None),
            oldest_at=min(dates, default=None),
            entries=len(entries),
            context=style.digest if self.needs_context else None,
            outline=pack_outline(entries, len(SEPARATOR[style.family]), len(text)),
            members=b"".join(self.members),
        )


def fragments_in(rendered: Rendered, family: Family) -> list[bytes]:
    sealed = rendered.sealed
    text = inflate(sealed.block, sealed.length, sealed.crc32)
    joint, end_of_all = len(SEPARATOR[family]), len(segment_end(family))
    slices = list(each_of(rendered.outline))
    fragments = [text[start : end - joint] for start, end, _ in slices[:-1]]
    return fragments + [text[start : end - end_of_all] for start, end, _ in slices[-1:]]


class Sheaf:
    """A segment of entries from several others (`wholefeed.core.compose.weaving`).

    Call `take` for each of `strands`, then `seal`.
    """

    def __init__(self, weave: Weave, stamps: Mapping[int, bytes]) -> None:
        self.members = Members.of((pick.member for pick in weave.picks), stamps)
        self._wanted: dict[int, list[tuple[int, int]]] = {}
        for place, pick in enumerate(weave.picks):
            self._wanted.setdefault(pick.strand, []).append((place, pick.place))
        count = len(weave.picks)
        self._text = _Text([b""] * count, [None] * count, [self.members.packed])

    @property
    def strands(self) -> Collection[int]:
        return self._wanted.keys()

    def take(self, strand: int, rendered: Rendered, fragments: Sequence[bytes]) -> None:
        """Copy entries from segment `strand`; `fragments` are all its texts."""
        slices = list(each_of(rendered.outline))
        for place, there in self._wanted[strand]:
            self._text.fragments[place] = fragments[there]
            self._text.dates[place] = slices[there].order_at
        self._text.takes(rendered.prefixes, needs_context=rendered.context is not None)

    def seal(self, style: Style) -> Rendered:
        return self._text.seal(style)


# Files of feed readers


def match_export(body: bytes, urls: Sequence[str]) -> SavedMatch | None:
    """Return one feed's part of a feed reader's export (I4); None: not an export.

    Raises:
        ParseError: It has too many values.
    """
    file = read_export(body)
    return None if file is None else choose_feed(file, urls)


def known_entries(document: Stored) -> list[KnownEntry]:
    """Return the ids and links of a document's entries."""
    parsed = document.parse()
    return [KnownEntry(each.id, absolute(each.base or parsed.url, each.href)) for each in said_in(parsed)]


# The table of jobs


JOBS: Final[Mapping[str, Callable[..., Any]]] = {
    job.__name__: job
    for job in (
        *(read_document, read_again, read_traits, render, compose, remember_copies),
        *(show_entries, said_dates, replay_entries, name_items, convert_items),
        *(read_page, read_sitemap, read_index, named_entries, without),
        *(match_export, known_entries),
        *(read_entry_pages, extract_text, learn_text_element, guess_text_element, insert_texts),
    )
}
"""Jobs by name."""
