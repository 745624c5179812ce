"""The work on whole documents that can be done in another process (docs/design.md#worker-processes).

    read = read_document(body, Sender(url=final_url, media_type=media_type, links=links, fetched_at=now))
    read.navigation, read.facts.entries, read.facts.notes

    composed = compose(Stored(body, url, media_type), tombstones)
    rendered = render([Part(Stored(body, url, media_type), live)], composed.style)

Bytes come in: what is to be known of a document comes out, read once; or what is sent of it, a head or the
sealed text of a segment (docs/design.md#segments). What comes back holds neither the text nor an object an
entry: who has the body needs no second copy of it. `JOBS` has every job by the name that it goes under, and
with them what is remembered of a document (`wholefeed.core.compose.remembering`), a page of entries for
people (`wholefeed.core.compose.reading`), what an HTML page links (`wholefeed.core.listing.page_reading`),
and what entries link to and lists are without some (`wholefeed.core.compose.listed`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from operator import or_
from typing import Any, Final, NamedTuple

from wholefeed.core.adapters.base import Marks, marks_of
from wholefeed.core.compose.compose import ComposedHead, Heading, compose_head, heading_of, newest_first
from wholefeed.core.compose.entries import said_dates
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
from wholefeed.core.merge import counted_instant
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
    """Read a document that a publisher has sent.

    Args:
        body: Without content coding.
        sender: What came with it.
        max_depth: As for `parse`.
        style: Render it for that; None: not at all.
        is_subscription: Compose its head, without others' tombstones, and render it for that.

    Raises:
        ParseError: It is no feed, or not readable as one.
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
    """What a publisher said beside the body."""

    url: str
    """Of the document, after redirects."""
    media_type: str
    """Content-Type as sent."""
    links: tuple[str, ...] = ()
    """Values of the Link fields (RFC 8288)."""
    route: str = ""
    """Value of the field X-Discourse-Route."""
    repairs: tuple[str, ...] = ()
    """What of the response was not as HTTP has it."""
    fetched_at: float
    """Epoch seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadDocument:
    """A document that has come from its publisher."""

    facts: DocumentFacts
    navigation: Navigation
    digest: bytes
    """SHA-256 of the body."""
    span: DateSpan | None
    """Of its entries' dates; None where none counts."""
    marks: Marks
    """What tells who publishes it (R26)."""
    composed: Composed | None = None
    """What it gives as a subscription document, where that was asked for."""
    rendered: Rendered | None = None
    """Its segment if all of its entries are live, where that was asked for and the format is the same."""


def describe(document: FeedDocument, body: bytes, sender: Sender) -> ReadDocument:
    """Say what is to be known of a document that has been parsed."""
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
    if dates and counted_instant(max(dates), fetched_at) is None:
        dates = [at for at in dates if counted_instant(at, fetched_at) is not None]
    return DateSpan(min(dates), max(dates)) if dates else None


def read_again(stored: Stored, dates: Sequence[CopyDates] = ()) -> DocumentFacts:
    """Read a stored document once more; its links stay as they were read.

    `dates` are those of remembered copies; they count where there is one for each entry.
    """
    document = stored.parse()
    facts = DocumentFacts.of(document, dates if len(dates) == len(document.entries) else ())
    return replace(facts, traits=dict(enumerate(read_traits(document, range(len(document.entries))))))


# What is sent of documents: the head, and the text of a segment


def compose(subscription: Document, tombstones: Sequence[Tombstone] = ()) -> Composed:
    """Return the head, and what the segments behind it are rendered for.

    Args:
        subscription: The subscription document.
        tombstones: Of the feed's other documents, to be passed on (R19).
    """
    document = _parse(subscription)
    fragments = fragments_of(document, default_namespace(document.family, document.version))
    style = Style(document.family, document.version, fragments.context)
    return Composed(compose_head(fragments, tombstones), heading_of(document), style)


Document = Stored | FeedDocument
"""As it is stored, or as it was parsed."""


def _parse(document: Document) -> FeedDocument:
    return document.parse() if isinstance(document, Stored) else document


class Composed(NamedTuple):
    """What a subscription document gives to the answer, beside its entries."""

    head: ComposedHead
    heading: Heading
    style: Style


class Style(NamedTuple):
    """What segments are rendered for: the subscription document's format, and what its entries inherit."""

    family: Family
    version: str
    context: HeadContext
    lists_members: bool = False
    """Whether to say which entries there are, for them to be put in the order of publication (R20)."""

    @property
    def namespace(self) -> str:
        """The default namespace around the entries."""
        return default_namespace(self.family, self.version)

    @property
    def digest(self) -> bytes:
        """Of what entries inherit."""
        parts = [*self.context.authors, b"", *self.context.rights, b"", self.context.language]
        return hashlib.blake2b(b"\0".join(parts), digest_size=16).digest()


def render(parts: Sequence[Part], style: Style) -> Rendered:
    """Return the live entries of documents, in output order, as one segment."""
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
    """One document's share of a segment."""

    document: Document | Rendered
    """Or all of it as it was rendered, in the same style."""
    live: Sequence[int] | None
    """The ordinals of its live entries, from the top; None: all of them, as in what is rendered."""


@dataclass(frozen=True, slots=True)
class Rendered:
    """Live entries in output order, sealed."""

    sealed: Sealed
    prefixes: int
    """Mask of the well-known prefixes that it uses."""
    newest_at: float | None
    oldest_at: float | None
    entries: int
    context: bytes | None
    """`Style.digest` where it leans on the head; None where it is the same under each head."""
    outline: bytes
    """Of the text, as `wholefeed.core.compose.segments` packs it."""
    members: bytes
    """Its entries, as `wholefeed.core.compose.weaving` packs them, by the places of their parts; empty where
    that was not asked for."""


class DocumentInMemory(NamedTuple):
    """A document that is being put, in the shapes that it is sent from: parsed if small, else rendered."""

    digest: bytes
    """SHA-256 of the body."""
    document: FeedDocument | None = None
    composed: Composed | None = None
    """What it gives as a subscription document."""
    rendered: Rendered | None = None
    style: Style | None = None
    """The style in which it is rendered."""

    @property
    def size_bytes(self) -> int:
        """Bytes of memory, about."""
        parsed_bytes = 0 if self.document is None else 2 * len(self.document.text)
        return parsed_bytes + (0 if self.rendered is None else len(self.rendered.sealed.block))

    @property
    def has_text(self) -> bool:
        """Whether entries can be sent from it."""
        return self.document is not None or self.rendered is not None

    def fits(self, style: Style) -> bool:
        """Whether it can be sent as it was rendered."""
        if self.rendered is None or self.style is None:
            return False
        is_alike = self.style.namespace == style.namespace and self.style.family is style.family
        is_alike = is_alike and self.style.lists_members >= style.lists_members
        return is_alike and self.rendered.context in (None, style.digest)


JOINED_BYTES: Final = 1 << 16
"""Where rendered documents have so much text each, a segment of several is made of their blocks as they are:
to deflate them again took a twelfth of a first walk."""


def _can_join(rendered: Sequence[Rendered], family: Family) -> bool:
    """Whether the blocks that there are may stand in a row: each ends as an entry does, and is large."""
    text_bytes = sum(each.sealed.length for each in rendered)
    return SEPARATOR[family] == segment_end(family) and text_bytes >= len(rendered) * JOINED_BYTES


def _join(rendered: Sequence[Rendered]) -> Rendered:
    """Return what was rendered in one style as one segment."""
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
    """A segment while it grows."""

    fragments: list[bytes] = field(default_factory=list)
    dates: list[float | None] = field(default_factory=list)
    """Of each entry."""
    members: list[bytes] = field(default_factory=list)
    """The same entries, packed."""
    prefixes: int = 0
    """Mask of the well-known prefixes that may occur."""
    needs_context: bool = False
    """Whether entries may lean on the head."""

    def add_rendered(self, part: int, rendered: Rendered, family: Family) -> None:
        """Append what was rendered before."""
        self.fragments += fragments_in(rendered, family)
        self.dates += [each.order_at for each in each_of(rendered.outline)]
        self.members += [pack_member(part, *each) for _, *each in unpack_members(rendered.members)]
        self.takes(rendered.prefixes, needs_context=rendered.context is not None)

    def add(self, part: int, document: Document, live: Sequence[int] | None, style: Style) -> None:
        """Append the live entries of a document in output order (R20)."""
        fragments = fragments_of(_parse(document), style.namespace)
        entries = fragments.document.entries
        count = len(entries)
        live = range(count) if live is None else [ordinal for ordinal in live if ordinal < count]
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
        """Note what the text of its entries may use, and lean on."""
        self.prefixes |= prefixes
        self.needs_context = self.needs_context or needs_context

    def seal(self, style: Style) -> Rendered:
        """Return the segment, which was rendered for that style."""
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
    """Return the text of each entry of what was rendered, without what stands between two."""
    sealed = rendered.sealed
    text = inflate(sealed.block, sealed.length, sealed.crc32)
    joint, end_of_all = len(SEPARATOR[family]), len(segment_end(family))
    slices = list(each_of(rendered.outline))
    fragments = [text[start : end - joint] for start, end, _ in slices[:-1]]
    return fragments + [text[start : end - end_of_all] for start, end, _ in slices[-1:]]


class Sheaf:
    """A segment of entries that stand in several others (`wholefeed.core.compose.weaving`).

    sheaf = Sheaf(weave, stamps)
    for number in sheaf.strands:
        sheaf.take(number, rendered, fragments_in(rendered, family))
    sheaf.sealed(style)
    """

    def __init__(self, weave: Weave, stamps: Mapping[int, bytes]) -> None:
        self.members = Members.of((pick.member for pick in weave.picks), stamps)
        """Its entries."""
        self._wanted: dict[int, list[tuple[int, int]]] = {}
        for place, pick in enumerate(weave.picks):
            self._wanted.setdefault(pick.strand, []).append((place, pick.place))
        count = len(weave.picks)
        self._text = _Text([b""] * count, [None] * count, [self.members.packed])

    @property
    def strands(self) -> Collection[int]:
        """The numbers of those that its entries stand in."""
        return self._wanted.keys()

    def take(self, strand: int, rendered: Rendered, fragments: Sequence[bytes]) -> None:
        """Take its entries from one of these; `fragments` are the texts of all that stand there."""
        slices = list(each_of(rendered.outline))
        for place, there in self._wanted[strand]:
            self._text.fragments[place] = fragments[there]
            self._text.dates[place] = slices[there].order_at
        self._text.takes(rendered.prefixes, needs_context=rendered.context is not None)

    def seal(self, style: Style) -> Rendered:
        """Return the segment, once all of it is there; `style` is what it was rendered for."""
        return self._text.seal(style)


# All of it


JOBS: Final[Mapping[str, Callable[..., Any]]] = {
    job.__name__: job
    for job in (
        *(read_document, read_again, read_traits, render, compose, remember_copies),
        *(show_entries, said_dates, replay_entries),
        *(read_page, named_entries, without),
    )
}
"""What may be asked of another process."""
