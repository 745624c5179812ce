"""Remember entries of replaced documents, and find texts cut short in their successors (R7, R8, R10).

Copies are stored in documents of the feed's own format, so one parser and one way of sending serve all. The
newest grows at its top until it is sealed, to keep segments small.
"""

from __future__ import annotations

import hashlib
import itertools
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

from wholefeed.core.compose.compose import synthesize
from wholefeed.core.compose.entries import parse_for_page
from wholefeed.core.facts import CopyDates, DocumentFacts, Stored
from wholefeed.core.merge import OTHER, Fullness, Rank, believable_instant, fullness_of, rank_copy
from wholefeed.core.model import (
    MEDIA_TYPE,
    MEMORY_URL,
    Entry,
    EntryId,
    Family,
    FeedDocument,
    default_namespace,
)
from wholefeed.core.text.markup import unescape
from wholefeed.core.verbatim.fragments import fragments_of


def remember_copies(replaced: ReplacedDocument, *, keeps_parsed: bool = False) -> RememberedCopies:
    """Return memory documents that save every entry and full text lost with a replaced document.

    None are written if all is remembered with a later date (R8). `keeps_parsed` returns them parsed, too.

    Raises:
        ParseError: Another parser stored one of the documents.
    """
    by_itself = _parse(replaced.document, replaced.ambiguous)
    document = _rename_entries(by_itself, replaced.names)
    memory, present = replaced.memory, replaced.present
    held, remembered = list[_Copy](), None
    if memory is not None:
        remembered = _parse(memory.document, replaced.ambiguous)
        held = _held(remembered, memory.dates)
    fullness = _fullness_of(document, replaced.fullness)
    cut = frozenset[EntryId]()
    if replaced.successor is not None:
        was_cut = {
            entry.identity
            for entry, own in zip(document.entries, fullness, strict=True)
            if own == Fullness.CUT
        }
        successor = _rename_entries(_parse(replaced.successor, replaced.ambiguous), replaced.names)
        cut = cut_short(document, successor, was_cut, remembered)
        if replaced.is_set_back:
            present = dict(present) | dict.fromkeys(_written_otherwise(document, successor), _NOTHING)
        present = {each: Fullness.CUT if each in cut and at != OTHER else at for each, at in present.items()}
    dated = document.head.updated_at
    if dated is not None and replaced.latest is not None:
        dated = min(dated, replaced.latest)
    fragments, copies = fragments_of(document), list[_Copy]()
    best = {copy.identity: _rank_of(copy.dates) for copy in reversed(held)}
    for n, entry in enumerate(document.entries):
        if fullness[n] <= present.get(entry.identity, _NOTHING):
            continue
        updated_at = believable_instant(entry.updated_at, replaced.fetched_at)
        dates = CopyDates(updated_at, dated, fullness[n], replaced.made_at)
        rank = best.get(entry.identity)
        if rank is None or rank <= _rank_of(dates):  # R10: of equal ones the copy that leaves now
            own = by_itself.entries[n].identity
            dates = dates if own == entry.identity else dates._replace(own=own)
            copies.append(_Copy(fragments.entry(n), entry.identity, dates))
    if not copies:
        return RememberedCopies([], cut)
    gone = {copy.identity for copy in copies}
    copies += [copy for copy in held if copy.identity not in gone]
    numbers = itertools.chain(
        [] if memory is None else [memory.number], itertools.count(replaced.next_number)
    )
    return RememberedCopies(_written(document, copies, numbers, keeps_parsed=keeps_parsed), cut)


def _written_otherwise(old: FeedDocument, new: FeedDocument) -> Iterator[EntryId]:
    fragments = fragments_of(new)
    written = {(entry.identity, fragments.entry(n)) for n, entry in enumerate(new.entries)}
    fragments = fragments_of(old)
    for n, entry in enumerate(old.entries):
        if (entry.identity, fragments.entry(n)) not in written:
            yield entry.identity


_NOTHING: Final = -1  # less than any `Fullness`


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplacedDocument:
    document: Stored | FeedDocument
    present: Mapping[EntryId, int]
    """Fullness of entries that stay; fuller copies are remembered. `OTHER`: none."""
    memory: StoredMemory | None = None
    """The newest memory document, unless sealed."""
    successor: Stored | FeedDocument | None = None
    fullness: Sequence[int | None] = ()
    """Stored values, per entry."""
    ambiguous: Collection[EntryId] = ()
    """Keys that identify nothing (R9)."""
    names: Mapping[EntryId, EntryId] = field(default_factory=dict)
    """Identities of entries known under another id (R36)."""
    fetched_at: float
    """Epoch seconds."""
    next_number: int
    """Number of the first new document; others count up."""
    latest: float | None = None
    """Upper limit of the document's date: for a page, the subscription document's (R10)."""
    made_at: float | None = None
    """Epoch seconds, if the document's age counts (R10)."""
    is_set_back: bool = False
    """Whether the successor is older, from a cache: then all entries written differently are remembered."""

    @property
    def documents(self) -> list[Stored | FeedDocument]:
        remembered = None if self.memory is None else self.memory.document
        return [each for each in (self.document, self.successor, remembered) if each is not None]


class StoredMemory(NamedTuple):
    number: int
    document: Stored | FeedDocument
    dates: Sequence[CopyDates]
    """Per entry."""


class RememberedCopies(NamedTuple):
    written: list[WrittenMemory]
    cut: frozenset[EntryId]
    """Entries cut short in the successor (R10)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenMemory:
    number: int
    """From 1 up; determines URL and rank."""
    document: Stored
    facts: DocumentFacts
    digest: bytes
    """SHA-256 of the body."""
    is_sealed: bool
    """Whether no copies will follow."""
    parsed: FeedDocument | None
    """None unless requested."""


class _Copy(NamedTuple):
    fragment: bytes
    identity: EntryId
    dates: CopyDates


def _parse(document: Stored | FeedDocument, ambiguous: Collection[EntryId]) -> FeedDocument:
    parsed = document.parse() if isinstance(document, Stored) else document
    return parsed.identify(ambiguous)


def _rename_entries(document: FeedDocument, names: Mapping[EntryId, EntryId]) -> FeedDocument:
    """Put entries under the identities of their posts (R36)."""
    if not names:
        return document
    entries = (each._replace(identity=names.get(each.identity, each.identity)) for each in document.entries)
    return replace(document, entries=tuple(entries))


def _held(document: FeedDocument, dates: Sequence[CopyDates]) -> list[_Copy]:
    fragments = fragments_of(document)
    return [
        _Copy(fragments.entry(n), _identity_of(entry, dates[n]), dates[n])
        for n, entry in enumerate(document.entries)
    ]


def _identity_of(entry: Entry, dates: CopyDates) -> EntryId:
    """Return the stored identity of a copy with an id, or under another id."""
    is_by_itself = entry.keys is not None and dates.own != entry.identity
    return entry.identity if is_by_itself or dates.identity is None else dates.identity


def _fullness_of(document: FeedDocument, known: Sequence[int | None]) -> list[int]:
    told = known if len(known) == len(document.entries) else [None] * len(document.entries)
    return [
        fullness_of(entry) if own is None else own for entry, own in zip(document.entries, told, strict=True)
    ]


def _rank_of(dates: CopyDates) -> Rank:
    fullness = Fullness.UNKNOWN if dates.fullness is None else dates.fullness
    return rank_copy(dates.updated_at, fullness, dates.document_updated_at, dates.made_at)


def _written(
    like: FeedDocument, copies: Sequence[_Copy], numbers: Iterator[int], *, keeps_parsed: bool
) -> list[WrittenMemory]:
    """Fill documents from the old end: sealed ones stay."""
    media_type = MEDIA_TYPE[Family.JSON] if like.family is Family.JSON else _XML_TYPE
    written, end = [], len(copies)
    while end:
        start, is_sealed = _fill(copies, end)
        fragments, identities, dates = zip(*copies[start:end], strict=True)
        number, text = next(numbers), synthesize(like.family, like.version, fragments)
        document = Stored(text, f"{MEMORY_URL}{number}", media_type)
        parsed = document.parse()
        facts = DocumentFacts.of(parsed, dates)
        own = {n: at.own for n, at in enumerate(dates) if at.own not in (None, identities[n])}
        facts = replace(facts, entries=facts.entries.identify(dict(enumerate(identities))), own=own)
        written.append(
            WrittenMemory(
                number=number,
                document=document,
                facts=facts,
                digest=hashlib.sha256(text).digest(),
                is_sealed=is_sealed,
                parsed=parsed if keeps_parsed else None,
            )
        )
        end = start
    return written


_XML_TYPE: Final = "application/xml; charset=utf-8"
SEALED_ENTRIES: Final = 32
SEALED_BYTES: Final = 1 << 20
"""A larger entry has its own document."""


def _fill(copies: Sequence[_Copy], end: int) -> tuple[int, bool]:
    """Return the start of the document ending before `end`, and whether it is full."""
    start, size = end, 0
    while start and end - start < SEALED_ENTRIES and size < SEALED_BYTES:
        size += len(copies[start - 1].fragment)
        if start < end and size > SEALED_BYTES:
            return start, True
        start -= 1
    return start, end - start == SEALED_ENTRIES or size >= SEALED_BYTES


# Entries cut short: beginnings in place of full texts


def cut_short(
    old: FeedDocument,
    new: FeedDocument,
    was_cut: Collection[EntryId],
    remembered: FeedDocument | None = None,
) -> frozenset[EntryId]:
    """Return the entries cut short since `old` was replaced by `new`.

    No element marks a cut text. So the new text must be a beginning of the old one and end in a mark of
    cutting, and half of the entries must shrink at once. An author who shortens an entry does one or two of
    these.
    """
    before, now = _first_ones(old), _first_ones(new)
    wholes = _remembered_texts(remembered, was_cut)
    common = [identity for identity in now if identity in before]
    lost, cut, same = 0, set[EntryId](), set[EntryId]()
    texts_before = _texts(old, (before[each] for each in common))
    texts_now = _texts(new, (now[each] for each in common))
    for identity, text_before, text in zip(common, texts_before, texts_now, strict=True):
        # a text in `was_cut` stays cut if it equals the old one up to the mark, or begins the remembered one
        if identity in was_cut and _is_cut_still(text, text_before, wholes.get(identity, "")):
            same.add(identity)
        elif _is_beginning(text, text_before):
            cut.add(identity)
        elif old.entries[before[identity]].has_content and not new.entries[now[identity]].has_content:
            lost += 1
    return frozenset(same | cut if 2 * (lost + len(cut)) >= len(common) else same)


def _first_ones(document: FeedDocument) -> dict[EntryId, int]:
    return {entry.identity: place for place, entry in reversed([*enumerate(document.entries)])}


def _remembered_texts(remembered: FeedDocument | None, wanted: Collection[EntryId]) -> dict[EntryId, str]:
    if remembered is None:
        return {}
    places = {each: place for each, place in _first_ones(remembered).items() if each in wanted}
    return dict(zip(places, _texts(remembered, places.values()), strict=True))


def _texts(document: FeedDocument, places: Iterable[int]) -> Iterator[str]:
    """Yield entries' texts without markup, and without white space: cutting changes white space."""
    namespace = default_namespace(document.family, document.version)
    fragments = fragments_of(document, namespace)
    for place in places:
        said = parse_for_page(document.family, fragments.entry(place), namespace=namespace).content
        yield "".join(unescape(_TAG.sub("", said)).split())


_TAG: Final = re.compile(r"<[^<>]*>")


def _is_beginning(text: str, whole: str) -> bool:
    if len(text) >= len(whole):
        return False
    return any(whole.startswith(text[: mark.start()]) for mark in _marks(text))


def _is_cut_still(text: str, before: str, whole: str) -> bool:
    # a publisher may lengthen its excerpts, or change the mark ("Read more (4 comments)")
    if text == before or _is_beginning(text, whole):
        return True
    mark, mark_before = next(_marks(text), None), next(_marks(before), None)
    if mark is None or mark_before is None:
        return False
    return text[: mark.start()] == before[: mark_before.start()]


def _marks(text: str) -> Iterator[re.Match[str]]:
    return _MARK.finditer(text, max(0, len(text) - _LONGEST_MARK))


_LONGEST_MARK: Final = 200  # characters: "Continue reading" and the title
_MARK: Final = re.compile(
    r"[\[(]?(?:\u2026|\.{3}|\u00bb|\u2192|continuereading|read(?:the)?(?:more|rest|full)|\(more\)|\[more\])",
    re.IGNORECASE,
)
"""In texts without white space."""
