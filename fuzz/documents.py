"""Properties of documents: of the parser, the repair pass, and an entry as sent."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Final
from xml.parsers.expat import ExpatError, ParserCreate, errors

from fuzz.grammar import document_of
from fuzz.meaning import said, without_namespace
from wholefeed.core.compose.compose import EPILOGUE, Address, compose_head, compose_prologue, synthesize
from wholefeed.core.links import classify
from wholefeed.core.model import ATOM_NAMESPACES, SEPARATOR, Entry, Family, FeedDocument, default_namespace
from wholefeed.core.notes import IdentityRepeated
from wholefeed.core.parse.documents import EarlyHead, parse
from wholefeed.core.parse.limits import MAX_DEPTH, MAX_LANG_CHARACTERS, UNLIMITED, ParseError
from wholefeed.core.parse.repair import mend
from wholefeed.core.verbatim.fragments import fragments_of, prefixes_in

URL: Final = "http://example.org/blog/feed"
ADDRESS: Final = Address("http://proxy.test/feed?url=x", URL)

SLUGS: Final = frozenset(
    {"malformed-xml", "malformed-json", "dtd-forbidden", "xml-limit", "not-a-feed"}
    | {"unsupported-format", "unsupported-encoding"}
)
FORBIDDEN_DECLARATIONS: Final = frozenset(
    {
        errors.XML_ERROR_UNDECLARING_PREFIX,
        errors.XML_ERROR_RESERVED_PREFIX_XML,
        errors.XML_ERROR_RESERVED_PREFIX_XMLNS,
        errors.XML_ERROR_RESERVED_NAMESPACE_URI,
    }
)
PUMPED_BYTES: Final = 200_000
FIRST_AT: Final = -62135596800.0
LAST_AT: Final = 253402300800.0

_CONTENT_TYPE: Final = re.compile(rb"Content-Type: ?([ -~]{0,100})\r?\n")


def split_type(data: bytes) -> tuple[str, bytes]:
    """Return Content-Type and body: an input may begin with a line for the type."""
    match = _CONTENT_TYPE.match(data)
    return (match[1].decode("ascii"), data[match.end() :]) if match else ("", data)


def parsed(body: bytes, media_type: str = "", *, max_depth: int = MAX_DEPTH) -> FeedDocument | None:
    """Return the document, or None for an allowed refusal."""
    try:
        return parse(body, URL, media_type, max_depth=max_depth)
    except ParseError as exc:
        assert exc.slug in SLUGS, exc.slug
        assert exc.message, "an error says what was expected and what came"
        return None


def check_document(data: bytes) -> None:
    """Parse a document; a feed's entries must be read, and sent, as written."""
    media_type, body = split_type(data)
    document = parsed(body, media_type)
    early = EarlyHead(URL, media_type)
    head = next(
        (found for at in range(0, len(body), 700) if (found := early.feed(body[at : at + 700]))), None
    )
    assert head is None or not head.entries, "an early head comes before the first entry"
    if document is None:
        return
    _check_places(document)
    classify(document)
    _check_answer(document)
    _check_remembered(document)


def check_well_formed(data: bytes) -> None:
    """Check the well-formed document generated from the input."""
    body = document_of(data)
    assert why_malformed(body) is None, "the grammar writes XML"
    check_document(body)


def _check_places(document: FeedDocument) -> None:
    """Entries are slices of the text, in its order; instants exist."""
    text, behind = document.text, 0
    opening, closing = (b"{", b"}") if document.family is Family.JSON else (b"<", b">")
    for entry in document.entries:
        assert behind <= entry.start < entry.end <= len(text), (behind, entry)
        behind = entry.end
        assert text[entry.start : entry.start + 1] == opening
        assert text[entry.end - 1 : entry.end] == closing
        assert len(entry.identity) == 16
        assert 0 <= entry.scope < len(document.scopes)
        for instant in (entry.updated_at, entry.order_at):
            assert instant is None or FIRST_AT <= instant < LAST_AT
    for child in document.head.children:
        assert 0 <= child.start < child.end <= len(text)
    assert document.head.updated_at is None or math.isfinite(document.head.updated_at)


def _check_answer(document: FeedDocument) -> None:
    """The sent feed under its own head means the same as the publisher's document (R21, R22)."""
    family, version = document.family, document.version
    fragments = fragments_of(document, default_namespace(family, version))
    pieces = [fragments.entry(n, fragments.context) for n in range(len(document.entries))]
    text, head = SEPARATOR[family].join(pieces), compose_head(fragments)
    prologue = compose_prologue(
        family,
        head.text,
        prefixes=head.prefixes | prefixes_in(text),
        address=ADDRESS,
        is_complete=True,
        version=version,
    )
    answer = prologue + text + EPILOGUE[family]
    again = parsed(answer, max_depth=UNLIMITED)
    assert again is not None, "an answer is a feed"
    # What the entries are like stays as it is; how they were written is put right.
    kept = {note.code for note in document.notes} & {IdentityRepeated.code}
    assert {note.code for note in again.notes} <= kept, again.notes
    assert [_dates(each) for each in again.entries] == [_dates(each) for each in document.entries]
    assert not [
        link for link in again.head.links if link.relation in ("prev-archive", "next", "current", "hub")
    ]
    if family is not Family.JSON:
        _check_meaning(document, again)
    else:
        assert [again.text[each.start : each.end] for each in again.entries] == pieces


def _check_meaning(document: FeedDocument, again: FeedDocument) -> None:
    with_base = document.family is Family.ATOM
    starts, new_starts = ([entry.start for entry in each.entries] for each in (document, again))
    before = said(document.text, starts, URL, with_base=with_base)
    after = said(again.text, new_starts, URL, with_base=with_base)
    if _has_long_language(document.text):
        return
    if document.family is Family.RSS:
        for scope in document.scopes:
            default = scope.prefixes.get("", "")
            if default and default not in ATOM_NAMESPACES:
                before, after = without_namespace(before, default), without_namespace(after, default)
    assert before == after, "an entry means the same in the answer"


def _has_long_language(text: bytes) -> bool:
    """Languages above the length limit are not passed on."""
    return (
        re.search(rb"lang\s*=\s*(?:\"[^\"]{%d}|'[^']{%d})" % (MAX_LANG_CHARACTERS, MAX_LANG_CHARACTERS), text)
        is not None
    )


def _check_remembered(document: FeedDocument) -> None:
    """A document of remembered copies parses back to the same ones (R8)."""
    fragments = fragments_of(document)
    entries = document.entries
    sent = [fragments.entry(n) for n in range(len(entries))]
    made = synthesize(document.family, document.version, sent)
    again = parsed(made, max_depth=UNLIMITED)
    assert again is not None, "remembered copies are a feed"
    assert [_key(each) for each in again.entries] == [_key(each) for each in entries]
    kept = fragments_of(again)
    assert [kept.entry(n) for n in range(len(entries))] == [
        again.text[e.start : e.end] for e in again.entries
    ]


def _dates(entry: Entry) -> tuple[float | None, float | None]:
    return entry.updated_at, entry.order_at


def _key(entry: Entry) -> Sequence[object]:
    return (entry.keys or entry.identity, entry.updated_at, entry.order_at)


def check_repair(data: bytes) -> None:
    """Repair a document: well-formed text stays unchanged, other text becomes well-formed.

    Exempt are forbidden characters in names, and forbidden namespace declarations.
    """
    text = data.decode("utf-8", "replace").encode()
    made = mended(text)
    if made is None:
        return
    before, after = why_malformed(text), why_malformed(made)
    if before is None and not re.search(rb"<!DOCTYPE|<item[\s>].*<item[\s/>].*</item", text, re.DOTALL):
        assert made == text, "what XML reads stays as it is"
    assert after is None or after in FORBIDDEN_DECLARATIONS or b"}" in text or not text.isascii(), after


def mended(text: bytes) -> bytes | None:
    """Return the repaired text, or None if it is no feed."""
    try:
        made = mend(text)
    except ParseError as exc:
        assert exc.slug == "dtd-forbidden", exc.slug
        return None
    if made is None:
        return None
    assert made.repairs or made.breaks_off or made.goes_on or made.text == text, "what was done is told"
    return made.text


def why_malformed(text: bytes) -> str | None:
    """Return the error of XML or its namespaces in this text, or None."""
    try:
        ParserCreate("utf-8", "}").Parse(text, True)
    except ExpatError as exc:
        return errors.messages[exc.code]
    return None


def check_pumped(data: bytes) -> None:
    """Read a document with a part repeated many times: time must stay linear in its length.

    The first "|" and the second enclose that part. The fuzzer limits the time.
    """
    before, _, rest = data.partition(b"|")
    part, _, behind = rest.partition(b"|")
    if part:
        parsed(before + part * (PUMPED_BYTES // len(part)) + behind)
