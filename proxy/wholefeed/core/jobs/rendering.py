"""Bodies -> what is sent of them: a segment's sealed text, the head (docs/design.md#segments).

composed = compose(Stored(body, url, media_type), tombstones)
rendered = render([Part(Stored(body, url, media_type), live)], composed.style)
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import reduce
from operator import or_
from typing import Final, NamedTuple

from wholefeed.core.compose import outline
from wholefeed.core.compose.compose import ComposedHead, compose_head, newest_first
from wholefeed.core.compose.deflate import Sealed, inflate, join, seal
from wholefeed.core.compose.outline import pack, unpack
from wholefeed.core.formats import SEPARATOR, default_namespace, segment_end
from wholefeed.core.model import FeedDocument, HeadContext, Tombstone
from wholefeed.core.parse.documents import parse
from wholefeed.core.parse.limits import UNLIMITED
from wholefeed.core.terms import Family
from wholefeed.core.text.dates import parse_rfc3339
from wholefeed.core.verbatim.fragments_of import AnyFragments, fragments_of
from wholefeed.core.verbatim.well_known import prefixes_in

JOINED_BYTES: Final = 1 << 16
"""Where rendered documents have so much text each, a segment of several is made of their blocks as they are:
to deflate them again took a twelfth of a first walk."""


class Stored(NamedTuple):
    """A document that is stored. It was within the limits when it was fetched, whatever they are now."""

    body: bytes
    url: str
    """After redirects."""
    media_type: str

    def parse(self) -> FeedDocument:
        """Return the document.

        Raises:
            ParseError: Only when another parser has stored it.
        """
        return parse(self.body, self.url, self.media_type, max_depth=UNLIMITED)


class Style(NamedTuple):
    """What segments are rendered for: the subscription document's format, and what its entries inherit."""

    family: Family
    version: str
    context: HeadContext

    @property
    def namespace(self) -> str:
        """The default namespace around the entries."""
        return default_namespace(self.family, self.version)

    @property
    def digest(self) -> bytes:
        """Of what entries inherit."""
        parts = [*self.context.authors, b"", *self.context.rights, b"", self.context.language]
        return hashlib.blake2b(b"\0".join(parts), digest_size=16).digest()


class Composed(NamedTuple):
    """What a subscription document gives to the answer, beside its entries."""

    head: ComposedHead
    style: Style


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
    """Of the text, as `wholefeed.core.compose.outline` packs it."""


_PUBLISHED: Final = re.compile(rb"<(?:[\w.-]{1,40}:)?published\b[^>]{0,200}>\s{0,200}([^<\s]{1,80})")


def published_at(fragment: bytes, family: Family) -> float | None:
    """Return when an entry of Atom says that it was published, which an edit leaves as it was.

    The formats of RSS have no other instant to sort by.
    """
    found = _PUBLISHED.search(fragment) if family is Family.ATOM else None
    return parse_rfc3339(found[1].decode("utf-8", "replace")) if found is not None else None


class Part(NamedTuple):
    """One document's share of a segment."""

    document: Stored | FeedDocument | AnyFragments | Rendered
    """As it is stored, as it was parsed, its slices, or all of it as it was rendered; these two in the same
    style."""
    live: Sequence[int] | None
    """The ordinals of its live entries, from the top; None: all of them, as in what is rendered."""


@dataclass(slots=True)
class _Text:
    """A segment while it grows."""

    fragments: list[bytes] = field(default_factory=list)
    entries: list[tuple[int, float | None]] = field(default_factory=list)
    """Length and date of each."""
    prefixes: int = 0
    """Mask of the well-known prefixes that may occur."""
    needs_context: bool = False

    def add_rendered(self, rendered: Rendered, family: Family) -> None:
        """Append what was rendered before."""
        sealed = rendered.sealed
        text = inflate(sealed.block, sealed.length, sealed.crc32)
        joints = len(SEPARATOR[family]), len(segment_end(family))
        slices = unpack(rendered.outline)
        for place, (start, end, order_at) in enumerate(slices, 1):
            fragment = text[start : end - joints[place == len(slices)]]
            self.fragments.append(fragment)
            self.entries.append((len(fragment), order_at))
        self.prefixes |= rendered.prefixes
        self.needs_context = self.needs_context or rendered.context is not None

    def add(self, document: FeedDocument, live: Sequence[int] | None, style: Style) -> None:
        """Append the live entries of a document in output order (R20)."""
        self.add_slices(fragments_of(document, style.namespace), live, style)

    def add_slices(self, fragments: AnyFragments, live: Sequence[int] | None, style: Style) -> None:
        """Do the same with a document's slices, which were made for that style."""
        entries = fragments.document.entries
        count = len(entries)
        ordinals = range(count) if live is None else [ordinal for ordinal in live if ordinal < count]
        order_at = [entries[ordinal].order_at for ordinal in ordinals]
        places = newest_first(order_at)
        made = fragments.all_sent([ordinals[place] for place in places], style.context)
        self.fragments += made
        self.entries += zip(map(len, made), [order_at[place] for place in places], strict=True)
        self.prefixes |= fragments.prefixes
        self.needs_context = self.needs_context or fragments.needs_context

    def sort(self, family: Family) -> None:
        """Put the entries in the order of their publication, newest first, whatever document they are of."""
        published = [
            published_at(fragment, family) or order_at
            for fragment, (_, order_at) in zip(self.fragments, self.entries, strict=True)
        ]
        places = newest_first(published)
        self.fragments = [self.fragments[place] for place in places]
        self.entries = [self.entries[place] for place in places]

    def sealed(self, style: Style) -> Rendered:
        """Return the segment."""
        text = SEPARATOR[style.family].join(self.fragments)
        text += segment_end(style.family) if text else b""
        dates = [at for _, at in self.entries if at is not None]
        return Rendered(
            sealed=seal(text),
            prefixes=prefixes_in(text, self.prefixes),
            newest_at=max(dates, default=None),
            oldest_at=min(dates, default=None),
            entries=len(self.entries),
            context=style.digest if self.needs_context else None,
            outline=pack(self.entries, len(SEPARATOR[style.family]), len(text)),
        )


def render(parts: Sequence[Part], style: Style, *, is_mixed: bool = False) -> Rendered:
    """Return the live entries of documents, one document after the other, as one segment.

    Args:
        parts: The documents, in output order.
        style: What they are rendered for.
        is_mixed: Whether to sort the entries by publication across the documents (R20).

    Raises:
        ParseError: Only when another parser has stored one of them.
    """
    rendered = [document for document, _ in parts if isinstance(document, Rendered)]
    if len(rendered) == len(parts) and not is_mixed and _can_join(rendered, style.family):
        return _joined(rendered)
    text = _Text()
    for document, live in parts:
        match document:
            case Rendered():
                text.add_rendered(document, style.family)
            case FeedDocument():
                text.add(document, live, style)
            case Stored():
                text.add(document.parse(), live, style)
            case _:
                text.add_slices(document, live, style)
    if is_mixed:
        text.sort(style.family)
    return text.sealed(style)


def _can_join(rendered: Sequence[Rendered], family: Family) -> bool:
    """Whether the blocks that there are may stand in a row: each ends as an entry does, and is large."""
    text_bytes = sum(each.sealed.length for each in rendered)
    return SEPARATOR[family] == segment_end(family) and text_bytes >= len(rendered) * JOINED_BYTES


def _joined(rendered: Sequence[Rendered]) -> Rendered:
    """Return what was rendered in one style as one segment."""
    newest = [each.newest_at for each in rendered if each.newest_at is not None]
    oldest = [each.oldest_at for each in rendered if each.oldest_at is not None]
    return Rendered(
        sealed=join([each.sealed for each in rendered]),
        prefixes=reduce(or_, (each.prefixes for each in rendered)),
        newest_at=max(newest, default=None),
        oldest_at=min(oldest, default=None),
        entries=sum(each.entries for each in rendered),
        context=next((each.context for each in rendered if each.context is not None), None),
        outline=outline.join(each.outline for each in rendered),
    )


def render_parsed(document: FeedDocument, style: Style) -> Rendered:
    """Return the segment of one document all of whose entries are live."""
    text = _Text()
    text.add(document, None, style)
    return text.sealed(style)


def compose(subscription: Stored, tombstones: Sequence[Tombstone] = ()) -> Composed:
    """Return the head, and what the segments behind it are rendered for.

    Args:
        subscription: The subscription document.
        tombstones: Of the feed's other documents, to be passed on (R19).

    Raises:
        ParseError: Only when another parser has stored it.
    """
    return compose_parsed(subscription.parse(), tombstones)


def compose_parsed(document: FeedDocument, tombstones: Sequence[Tombstone] = ()) -> Composed:
    """Do what `compose` does with a document that has been parsed."""
    return compose_slices(own_slices(document), tombstones)


def own_slices(document: FeedDocument) -> AnyFragments:
    """Return the slices of a subscription document for its own style, which head and entries share."""
    return fragments_of(document, default_namespace(document.family, document.version))


def compose_slices(fragments: AnyFragments, tombstones: Sequence[Tombstone] = ()) -> Composed:
    """Do the same with what `own_slices` returns."""
    document = fragments.document
    head = compose_head(fragments, tombstones)
    return Composed(head, Style(document.family, document.version, fragments.context()))
