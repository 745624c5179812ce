"""The check of a publisher's feed against RFC 5005 and related specifications (docs/publishing.md).

`examine` judges one document. `check` judges documents together, and again a moment later.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from itertools import chain
from typing import Final, NamedTuple

from wholefeed.core.compose.entries import said_in
from wholefeed.core.jobs import Sender
from wholefeed.core.links import DEAD, Navigation, classify, header_links
from wholefeed.core.model import (
    FH_NS,
    NEW_FEED_URL,
    TOMBSTONE_NS,
    EntryId,
    Family,
    FeedDocument,
    Kind,
    Relation,
)
from wholefeed.core.notes import (
    BadLink,
    ChainLoop,
    DocumentRepaired,
    DocumentTruncated,
    EncodingRetried,
    ExtraLink,
    IdentityRepeated,
    IdentityUnusable,
    LimitReached,
    NewAddress,
    NewerNotOlder,
    NoProgress,
    ResponseRepaired,
)
from wholefeed.core.parse.documents import parse
from wholefeed.core.parse.encodings import to_utf8
from wholefeed.core.parse.expat import Guard
from wholefeed.core.parse.limits import ParseError
from wholefeed.core.readers import refusing
from wholefeed.core.schedule import is_uncacheable, validators_of
from wholefeed.core.text.dates import format_rfc3339, parse_rfc3339
from wholefeed.core.text.markup import attribute_places, unescape
from wholefeed.core.text.urls import document_key, safe_url
from wholefeed.core.walk.ahead import count_from_newest
from wholefeed.core.words import count_noun, printable

# The rules


class Rule(NamedTuple):
    is_error: bool
    """False: a warning."""
    name: str
    source: str
    text: str
    """Format string for the facts."""
    mend: str


_ERROR: Final = True
_WARNING: Final = False
# fmt: off
_TABLE: Final = (
    Rule(_ERROR, "document-unavailable", "RFC 5005, section 4.1", "this document could not be fetched: {why}",
         "serve it under this URL, or link to where it is"),
    Rule(_ERROR, "document-unreadable", "RFC 4287, section 2; XML 1.0, section 2.1",
         "this document could not be read: {why}", "make it a well-formed document of the feed's format"),
    Rule(_ERROR, "loop", "RFC 5005, section 6", "the {relation} link leads back to {target}",
         "leave the link out of the oldest document, and let every other one lead to the next older one"),
    Rule(_ERROR, "archive-changed", "RFC 5005, section 4", "this document had changed a moment later: {what}",
         "write nothing into an archive document that differs from build to build"),
    Rule(_ERROR, "current-elsewhere", "RFC 5005, section 4",
         "the current link leads to {target}{how}, not back to {feed}",
         "let the current link name the subscription document"),
    Rule(_ERROR, "ids-differ", "RFC 4287, section 4.2.6",
         "the same entry has the id {this} here, and {that} in {where}",
         "make the id when the entry is written, and keep it in every document for good"),
    Rule(_ERROR, "updated-missing", "RFC 4287, sections 4.1.1 and 4.1.2",
         "the {what} has no readable updated element", "add an updated element with an RFC 3339 time"),
    Rule(_ERROR, "updated-in-future", "RFC 4287, section 4.2.15",
         "the {what} says that it was updated at {when}", "write the time of the last change"),
    Rule(_ERROR, "tombstone-undated", "RFC 6721, section 3",
         "a deleted-entry without a readable when attribute",
         "add a when attribute with the time of the deletion"),
    Rule(_WARNING, "no-history", "RFC 5005, sections 2 and 4",
         "no older document is linked: entries that leave this document are lost to readers",
         "link archive documents with prev-archive, or say with fh:complete that this is all"),
    Rule(_WARNING, "pages-only", "RFC 5005, section 3",
         "pages may change while they are read, so readers may miss entries",
         "link archive documents with prev-archive"),
    Rule(_WARNING, "old-links", "RFC 5005, section 4",
         "the history is linked by {relation}, as in drafts of RFC 5005",
         "link the next older archive document with prev-archive"),
    Rule(_WARNING, "archive-unmarked", "RFC 5005, section 4", "an archive document without fh:archive",
         f'add <fh:archive xmlns:fh="{FH_NS}"/> to its head'),
    Rule(_WARNING, "archive-not-cacheable", "RFC 5005, section 4; RFC 9111, section 5.2.2",
         "an archive document with Cache-Control: {cache_control}",
         "let caches keep archive documents, for they do not change"),
    Rule(_WARNING, "archive-growing", "RFC 5005, section 4",
         "a linked archive document seems not to be full yet: {why}",
         "link an archive document when nothing will be added to it any more"),
    Rule(_WARNING, "archives-shift", "RFC 5005, section 4", "{what}",
         "number archive documents from the oldest, and link each when it is full"),
    Rule(_WARNING, "current-missing", "RFC 5005, section 4", "an archive document without a current link",
         "add a current link to the subscription document"),
    Rule(_WARNING, "self-missing", "RFC 4287, section 4.1.1", "a document without a self link",
         "add a self link with the document's own URL"),
    Rule(_WARNING, "links-contradict", "RFC 5005, sections 2 to 4", "{what}",
         "keep only the statement that is true"),
    Rule(_WARNING, "new-address", "iTunes, itunes:new-feed-url; RFC 9110, section 15.4.2", "{what}",
         "redirect this URL to the new one with 301, or take the element out"),
    Rule(_WARNING, "entries-left", "RFC 5005, section 4",
         "this entry was gone a moment later, and no other document has it",
         "let entries leave the subscription document when an archive document holds them"),
    Rule(_WARNING, "readers-refuse", "docs/readers.md", "its {size:,} bytes are too many for {readers}",
         "put fewer entries into the document"),
    Rule(_WARNING, "validators-missing", "RFC 9110, section 8.8",
         "neither ETag nor Last-Modified shows when the document changes, so every request needs"
         " the whole document",
         "let the server send one of them, with a new value for each version"),
    Rule(_WARNING, "not-well-formed", "XML 1.0, section 2.1; RFC 7303, section 3", "{what}",
         "mend the program that writes the document: many readers will not read it"),
    Rule(_WARNING, "id-missing", "RFC 4287, section 4.2.6; RSS 2.0, guid", "an entry without an id",
         "give every entry an id that never changes"),
    Rule(_WARNING, "id-repeated", "RFC 4287, section 4.2.6", "{what}", "give every entry an id of its own"),
    Rule(_WARNING, "not-read-to-the-end", "RFC 5005, section 6", "{what}",
         "let each document bring entries of its own, and the documents be fewer and larger"),
)
# fmt: on
RULES: Final[Mapping[str, Rule]] = {rule.name: rule for rule in _TABLE}
"""By name. Names are public: `--json` shows them."""
MOST_FINDINGS: Final = 20
"""Limit per rule; the last finding counts the rest."""


@dataclass(frozen=True, slots=True)
class Finding:
    rule: Rule
    document: str
    line: int | None
    """Line as sent, from 1; None: no line."""
    text: str

    @property
    def place(self) -> str:
        return self.document if self.line is None else f"{self.document}, line {self.line}"

    @property
    def said(self) -> str:
        return f"{self.text} ({self.rule.source})"

    def as_dict(self) -> dict[str, str | int | None]:
        told = {"rule": self.rule.name, "document": self.document, "line": self.line}
        return {**told, "text": self.said, "mend": self.rule.mend}


def finding(name: str, url: str, line: int | None = None, **facts: object) -> Finding:
    rule = RULES[name]
    # Publishers' text must not move a terminal's cursor.
    shown = {key: _format_text(value) if isinstance(value, str) else value for key, value in facts.items()}
    return Finding(rule, _format_text(safe_url(url, keeps_query=True)), line, rule.text.format(**shown))


_MOST_CHARACTERS: Final = 600


def _format_text(text: str) -> str:
    cut = text if len(text) <= _MOST_CHARACTERS else f"{text[:_MOST_CHARACTERS]}…"
    return printable(cut, "\ufffd")


# One document by itself, while its text is in memory


class CheckedCopy(NamedTuple):
    identity: EntryId
    id: str
    """Written form; empty: none."""
    line: int | None
    order_at: float | None
    sames: tuple[bytes, ...]
    """Digests that copies of one entry share despite different ids: link and title, link and date."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExaminedDocument:
    url: str
    keys: frozenset[str]
    """`document_key` of its URL and of URLs that led to it."""
    headers: Mapping[str, str]
    family: Family
    digest: bytes
    marks: bytes
    """Digests of its first lines, `_MARK_BYTES` each, to find a changed line."""
    size: int
    navigation: Navigation
    lines: Mapping[str, int | None]
    """Lines of the head's links, by relation, and of flags, such as `fh:archive`."""
    copies: tuple[CheckedCopy, ...]
    identities: frozenset[EntryId]
    tombstones: frozenset[EntryId]
    findings: tuple[Finding, ...]

    def leads(self, relation: str) -> str | None:
        return self.navigation.links.get(relation)

    def finding(self, name: str, relation: str = "", **facts: object) -> Finding:
        return finding(name, self.url, self.lines.get(relation), relation=relation, **facts)


def examine(
    body: bytes, sender: Sender, *, headers: Mapping[str, str], urls: Iterable[str], max_depth: int
) -> ExaminedDocument:
    """Read a document for `check`.

    `body` has no content coding, `headers` have lower-case names, `urls` led to the document before
    redirects.

    Raises:
        ParseError: Not a readable feed.
    """
    document = parse(body, sender.url, sender.media_type, max_depth=max_depth)
    reading = _DocumentReading(document, body, sender)
    copies = tuple(reading.copies())
    found = (*reading.notes(), *reading.links(), *reading.dates(copies), *reading.tombstones())
    return ExaminedDocument(
        url=sender.url,
        keys=frozenset(map(document_key, (sender.url, *urls))),
        headers=headers,
        family=document.family,
        digest=hashlib.sha256(body).digest(),
        marks=reading.marks(),
        size=len(body),
        navigation=reading.navigation,
        lines=reading.heads,
        copies=copies,
        identities=frozenset(copy.identity for copy in copies),
        tombstones=frozenset(each.identity for each in document.head.tombstones),
        findings=tuple(in_order(found)),
    )


CLOCK_SECONDS: Final = 600
"""Tolerated difference between two clocks."""
_MOST_ID_CHARACTERS: Final = 200
_MARK_BYTES: Final = 4
_MOST_MARKS: Final = 20_000
_DATES: Final = frozenset({"updated", "modified", "lastBuildDate", "pubDate"})
_ROOT: Final = re.compile(rb"<(?:[\w.-]+:)?feed\b")
_LINE: Final = re.compile(r"\bline (\d{1,9})\b")


class _DocumentReading:
    def __init__(self, document: FeedDocument, body: bytes, sender: Sender) -> None:
        self._document = document
        self._sender = sender
        self._offset, self._line = 0, 1
        sent = document.text
        if any(note.kind is DocumentRepaired for note in document.notes):
            sent = to_utf8(body, sender.media_type).text
        self._sent = sent
        self._is_exact = sent is document.text or sent.count(b"\n") == document.text.count(b"\n")
        self.navigation = classify(document, sender.links)
        self.heads: dict[str, int | None] = {}
        for child in document.head.children:
            name = f"fh:{child.name}" if child.namespace == FH_NS else child.relation
            name = NEW_FEED_URL if child.plain_name == NEW_FEED_URL else name
            if name:
                self.heads.setdefault(name, self._at(child.start))

    def _at(self, offset: int) -> int | None:
        # A repair has moved the lines.
        if not self._is_exact:
            return None
        # Ascending offsets are fast: counting goes on from the last one.
        if offset < self._offset:
            self._offset, self._line = 0, 1
        self._line += self._document.text.count(b"\n", self._offset, offset)
        self._offset = offset
        return self._line

    def _say(self, name: str, line: int | None = None, **facts: object) -> Finding:
        return finding(name, self._document.url, line, **facts)

    def marks(self) -> bytes:
        lines = self._sent.split(b"\n", _MOST_MARKS)[:_MOST_MARKS]
        return b"".join(hashlib.blake2b(line, digest_size=_MARK_BYTES).digest() for line in lines)

    def copies(self) -> Iterator[CheckedCopy]:
        for entry, said in zip(self._document.entries, said_in(self._document), strict=True):
            date = "" if said.published_at is None else str(said.published_at)
            sames = tuple(
                hashlib.blake2b(f"{kind}\0{said.href}\0{words}".encode(), digest_size=8).digest()
                for kind, words in enumerate((" ".join(said.title.split()), date))
                if said.href and words
            )
            own_id = said.id.strip()[:_MOST_ID_CHARACTERS]
            yield CheckedCopy(entry.identity, own_id, self._at(entry.start), entry.order_at, sames)

    def notes(self) -> Iterator[Finding]:
        if repairs := self._sender.repairs:
            what = str(ResponseRepaired(self._document.url, repairs=repairs))
            yield self._say("not-well-formed", what=what.removesuffix(f": {self._document.url}"))
        for note in (*self._document.notes, *self.navigation.notes):
            what = str(note).removesuffix(f": {note.url}")
            relation = note.facts.get("relation", "")
            if note.kind is DocumentTruncated:
                yield self._say("document-unreadable", why=what)
            elif note.kind in (BadLink, ExtraLink):
                is_needed = relation == self.navigation.older_relation
                is_dead = is_needed and f"{DEAD}{relation}" in self.navigation.links
                name = "document-unavailable" if is_dead else "links-contradict"
                yield self._say(name, self.heads.get(relation), what=what, why=what)
            elif note.kind is NewAddress:
                yield self._say("new-address", self.heads.get(NEW_FEED_URL), what=what)
            elif note.kind is DocumentRepaired:
                yield self._say("not-well-formed", self._ill_line(), what=what)
            elif note.kind in (EncodingRetried, IdentityRepeated, IdentityUnusable):
                name = "not-well-formed" if note.kind is EncodingRetried else "id-repeated"
                yield self._say(name, what=what)

    def _ill_line(self) -> int | None:
        try:
            Guard().read(self._sent)
        except ParseError as exc:
            return line_in(str(exc))
        return None

    def links(self) -> Iterator[Finding]:
        links = self.navigation.links
        for each in header_links(self._sender.links, self._document.url):
            target = links.get(each.relation)
            if target and each.target and document_key(each.target) != document_key(target):
                what = f"{each.relation} leads to {each.target} in HTTP, and to {target} in the document"
                yield self._say("links-contradict", self.heads.get(each.relation), what=what)
        more = links.keys() & {Relation.PREV_ARCHIVE, Relation.NEXT}
        if "fh:complete" in self.heads and more:
            what = (
                f"fh:complete says that this document is the whole feed, but {min(more)} says that"
                " there is more"
            )
            yield self._say("links-contradict", self.heads["fh:complete"], what=what)
        if self._document.family is Family.ATOM and Relation.SELF not in links:
            yield self._say("self-missing")

    def dates(self, copies: Sequence[CheckedCopy]) -> Iterator[Finding]:
        document, entries = self._document, self._document.entries
        dated = next((each.start for each in document.head.children if each.name in _DATES), None)
        root = _ROOT.search(document.text)
        line = self._at(dated if dated is not None else root.start() if root is not None else 0)
        instants = [
            ("entry", entry.updated_at, copy.line) for entry, copy in zip(entries, copies, strict=True)
        ]
        for what, at, line_of_it in (("feed", document.head.updated_at, line), *instants):
            if at is None and document.family is Family.ATOM:
                yield self._say("updated-missing", line_of_it, what=what)
            elif at is not None and at > self._sender.fetched_at + CLOCK_SECONDS:
                yield self._say("updated-in-future", line_of_it, what=what, when=format_rfc3339(at))
        for copy in copies:
            if not copy.id:
                yield self._say("id-missing", copy.line)

    def tombstones(self) -> Iterator[Finding]:
        text = self._document.text
        for child in self._document.head.children:
            if (child.namespace, child.name) == (TOMBSTONE_NS, "deleted-entry"):
                written = attribute_places(text, child.start).values(text).get(b"when", b"")
                when = unescape(written.decode("utf-8", "replace"))
                if parse_rfc3339(when.strip()) is None:
                    yield self._say("tombstone-undated", self._at(child.start))


def line_in(message: str) -> int | None:
    found = _LINE.search(message)
    return int(found[1]) if found else None


# Two looks at a feed


@dataclass(frozen=True, slots=True)
class CheckLook:
    kind: Kind
    documents: Sequence[ExaminedDocument]
    """The subscription document, then newest to oldest; never empty."""
    gaps: Sequence[Finding] = ()
    remarks: Mapping[str, str] = field(default_factory=dict)
    """Notes on the walk: words by code."""

    @property
    def feed(self) -> ExaminedDocument:
        return self.documents[0]

    @property
    def archives(self) -> Sequence[ExaminedDocument]:
        return self.documents[1:] if self.kind in (Kind.ARCHIVED, Kind.LEGACY) else ()

    @property
    def relation(self) -> str:
        """Relation to the next older document."""
        return Relation.NEXT if self.kind is Kind.PAGED else self.feed.navigation.older_relation


def check(
    first: CheckLook, second: CheckLook, *, leads: Mapping[str, str | None], now: float
) -> list[Finding]:
    """Judge a feed by two looks, the second a moment later.

    `leads` maps `foreign_currents` to their final URLs; None: unavailable.
    """
    lost = {each.document for each in first.gaps}
    found = chain(
        first.gaps,
        (each for each in second.gaps if each.document not in lost),
        chain.from_iterable(each.findings for each in first.documents),
        _of_walk(first),
        _of_changes(first, second),
        _of_currents(first, leads),
        _of_ids(first, second),
        _of_feed(first),
        _of_archives(first, now),
        _of_answers(first, now),
    )
    return list(in_order(found))


def in_order(findings: Iterable[Finding]) -> Iterator[Finding]:
    """Yield findings once, in the order of rules, up to `MOST_FINDINGS` per rule."""
    grouped: dict[str, dict[Finding, None]] = defaultdict(dict)
    for each in findings:
        grouped[each.rule.name].setdefault(each)
    for name in RULES:
        kept = list(grouped[name])[:MOST_FINDINGS]
        if (more := len(grouped[name]) - len(kept)) > 0:
            kept[-1] = replace(kept[-1], text=f"{kept[-1].text} [and {more} more]")
        yield from kept


def _of_walk(look: CheckLook) -> Iterator[Finding]:
    by_key = {key: each for each in reversed(look.documents) for key in each.keys}
    at, met = look.feed, set[str]()
    while (target := at.leads(look.relation)) is not None:
        met |= at.keys
        if document_key(target) in met or document_key(target) not in by_key:
            break
        at = by_key[document_key(target)]
    if target is not None and (document_key(target) in met or ChainLoop.code in look.remarks):
        yield at.finding("loop", look.relation, target=target)
    for code in (NoProgress.code, LimitReached.code, NewerNotOlder.code, UNFINISHED):
        if code in look.remarks:
            yield look.documents[-1].finding("not-read-to-the-end", what=look.remarks[code])


UNFINISHED: Final = "unfinished"
"""Remark on a walk that took too long."""


def _of_changes(first: CheckLook, second: CheckLook) -> Iterator[Finding]:
    later = {key: each for each in second.documents for key in each.keys}
    archived = frozenset[EntryId]().union(*(each.identities for each in second.archives))
    for before in first.archives:
        after = next((later[key] for key in before.keys if key in later), before)
        if before.digest != after.digest:
            differing = (after.identities - before.identities, before.identities - after.identities)
            came, went = (count_noun(len(each), "entry", "entries") for each in differing)
            what = f"{came} came, {went} went" if any(differing) else "the same entries, other text"
            pairs = zip(*(_each_mark(each.marks) for each in (before, after)), strict=False)
            line = next((number for number, (old, new) in enumerate(pairs, 1) if old != new), None)
            yield finding("archive-changed", before.url, line, what=what)
            if moved := (before.identities - after.identities) & archived:
                what = f"{count_noun(len(moved), 'entry', 'entries')} moved to another archive document"
                yield finding("archives-shift", before.url, None, what=what)
    kept = frozenset[EntryId]().union(*(each.identities | each.tombstones for each in second.documents))
    for each in first.documents[: len(first.documents) - len(first.archives)]:
        for copy in each.copies:
            if copy.identity not in kept:
                yield finding("entries-left", each.url, copy.line)


def _each_mark(marks: bytes) -> Iterator[bytes]:
    return (marks[at : at + _MARK_BYTES] for at in range(0, len(marks), _MARK_BYTES))


def foreign_currents(look: CheckLook) -> list[str]:
    """Return `current` targets other than the subscription document's URL."""
    targets = dict.fromkeys(filter(None, (each.navigation.current_url for each in look.documents)))
    return [target for target in targets if document_key(target) not in look.feed.keys]


def _of_currents(look: CheckLook, leads: Mapping[str, str | None]) -> Iterator[Finding]:
    foreign = set(foreign_currents(look))
    for each in look.documents:
        target = each.navigation.current_url
        if target is not None and target in foreign:
            there = leads.get(target, target)
            if there is None or document_key(there) not in look.feed.keys:
                how = ", which cannot be fetched" if there is None else ""
                facts = {"target": target, "how": how, "feed": look.feed.url}
                yield each.finding("current-elsewhere", Relation.CURRENT, **facts)


def _of_ids(first: CheckLook, second: CheckLook) -> Iterator[Finding]:
    first_of: dict[bytes, tuple[ExaminedDocument, CheckedCopy]] = {}
    documents = {(each.url, each.digest): each for each in (*first.documents, *second.documents)}
    for each in documents.values():
        times = Counter(same for copy in each.copies for same in copy.sames)
        for copy in each.copies:
            for same in copy.sames if copy.id else ():
                # Two entries of one document are different entries, even if they share link and title.
                if times[same] > 1:
                    continue
                where, other = first_of.setdefault(same, (each, copy))
                are_two = other.identity in each.identities or copy.identity in where.identities
                # So are entries of different dates, such as notices that all link to one status page.
                are_two = are_two or len({copy.order_at, other.order_at} - {None}) > 1
                if not are_two:
                    facts = {"this": copy.id, "that": other.id, "where": where.url + in_line(other.line)}
                    yield finding("ids-differ", each.url, copy.line, **facts)


def in_line(line: int | None) -> str:
    return "" if line is None else f" (line {line})"


def _of_feed(look: CheckLook) -> Iterator[Finding]:
    feed = look.feed
    if look.kind is Kind.PLAIN:
        yield feed.finding("no-history")
    elif look.kind is Kind.PAGED:
        yield feed.finding("pages-only", Relation.NEXT)
    elif look.kind is Kind.LEGACY:
        yield feed.finding("old-links", look.relation)
    if feed.navigation.is_archive:
        what = "the document that readers subscribe to has fh:archive"
        yield feed.finding("links-contradict", "fh:archive", what=what)


def _of_archives(look: CheckLook, now: float) -> Iterator[Finding]:
    known = frozenset[str]().union(*(each.keys for each in look.documents))
    for newer, each in zip(look.documents, look.archives, strict=False):
        if not each.navigation.is_archive and each.family is not Family.JSON:
            yield each.finding("archive-unmarked")
        if each.navigation.current_url is None:
            yield each.finding("current-missing")
        if is_uncacheable(each.headers):
            yield each.finding("archive-not-cacheable", cache_control=each.headers["cache-control"])
        right = {
            Relation.NEXT_ARCHIVE: newer.keys if newer is not look.feed else frozenset[str](),
            Relation.SELF: each.keys,
        }
        for relation, keys in right.items():
            target = each.leads(relation)
            if target is not None and document_key(target) in known - keys:
                what = f"{relation} names another document: {target}"
                yield each.finding("links-contradict", relation, what=what)
    if count_from_newest([each.url for each in look.archives]):
        what = "archive documents are numbered from the newest, so new entries push older ones into the next"
        yield look.feed.finding("archives-shift", look.relation, what=what)
    if len(look.archives) > 1 and (why := _why_growing(look.archives[0], look.archives[1:], now)):
        yield look.feed.finding("archive-growing", look.relation, why=f"{look.archives[0].url} {why}")


def _why_growing(newest: ExaminedDocument, others: Sequence[ExaminedDocument], now: float) -> str:
    """Return why the newest archive seems unfinished; empty: it does not.

    The others show how archives are cut: by size, by month or by year.
    """
    sizes = {len(each.copies) for each in others}
    if sizes == {len(newest.copies)}:
        return ""
    if len(sizes) == 1 and len(others) > 1 and len(newest.copies) < min(sizes):
        return f"has {count_noun(len(newest.copies), 'entry', 'entries')}, every other one {min(sizes)}"
    for name, form in (("month", "%Y-%m"), ("year", "%Y")):
        spans = [
            {_span(copy.order_at, form) for copy in each.copies if copy.order_at is not None}
            for each in (newest, *others)
        ]
        if all(len(span) == 1 for span in spans) and len(set(chain(*spans))) == len(spans):
            return f"has the entries of a {name} that is not over" if _span(now, form) in spans[0] else ""
    return ""


def _span(at: float, form: str) -> str:
    return (_EPOCH + timedelta(seconds=at)).strftime(form)


_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def _of_answers(look: CheckLook, now: float) -> Iterator[Finding]:
    for each in look.documents:
        if not any(validators_of(each.headers, now=now)):
            yield each.finding("validators-missing")
        if names := refusing(each.size):
            yield each.finding("readers-refuse", size=each.size, readers=", ".join(names))
