"""Parse bytes into a `FeedDocument`: the one entry to parsing (docs/design.md#parsing).

A missing or repeated id, or in Atom a missing update instant, causes a second reading, with all fields. A
malformed document is repaired (docs/repair.md), and read again as strictly.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Sequence
from typing import Final

from wholefeed.core.model import Family, FeedDocument
from wholefeed.core.notes import DocumentRepaired, DocumentTruncated, EncodingRetried, Note
from wholefeed.core.parse.encodings import SNIFF_BYTES, Decoded, encoding_of, to_utf8
from wholefeed.core.parse.expat import XML_10, Guard
from wholefeed.core.parse.families import Opening, is_within_limits, read_plainly
from wholefeed.core.parse.identities import FieldsNeededError, check_distinct
from wholefeed.core.parse.jsonfeed import mend_json, read_json_feed
from wholefeed.core.parse.limits import MAX_DEPTH, MAX_GAIN_BYTES, MAX_GAIN_FACTOR, UNLIMITED, ParseError
from wholefeed.core.parse.repair import (
    ROOT,
    VERSION,
    late_declaration,
    late_root,
    mend,
    wrapped_root,
)
from wholefeed.core.parse.spelling import OddSpellingError, respell
from wholefeed.core.verbatim.fragments import fragments_of, most_gained


def parse(body: bytes, url: str, media_type: str = "", *, max_depth: int = MAX_DEPTH) -> FeedDocument:
    """Return the feed document in the bytes.

    Args:
        body: Without content coding.
        url: After redirects.
        media_type: The whole Content-Type value; may be empty.
        max_depth: Levels of elements. From `UNLIMITED` on no limit holds: the document is stored, or made of
            stored entries.

    Raises:
        ParseError: The bytes are not a readable feed. `parse` raises nothing else.
    """
    try:
        return _parse(body, url, media_type, max_depth)
    except ParseError:
        raise
    except (RecursionError, MemoryError) as exc:
        raise ParseError(
            "expected a document that fits in memory, got a larger one", slug="xml-limit"
        ) from exc
    except (ValueError, LookupError) as exc:
        raise ParseError(f"expected well-formed XML, got an error: {exc}", slug="malformed-xml") from exc


def _parse(body: bytes, url: str, media_type: str, max_depth: int) -> FeedDocument:
    decoded = to_utf8(body, media_type, is_validated=False)
    if _visible(decoded.text).startswith(b"{"):
        return _read_json(to_utf8(body, media_type), url, max_depth)
    try:
        _refuse_other_formats(decoded.text)
    except ParseError as exc:
        start = wrapped_root(decoded.text) if is_html(decoded.text) else 0
        if not start:
            raise
        inside = decoded._replace(text=decoded.text[start:])
        return _read_repaired(inside, url, max_depth, exc, (ROOT,))
    try:
        return _read(decoded, url, max_depth)
    except ParseError as exc:
        if not _is_mendable(exc, decoded.text):
            raise
        # A copy, because the exception and this frame would keep each other alive.
        failure = ParseError(str(exc), slug=exc.slug)
    if not decoded.used and (decided := to_utf8(body, media_type)).used:
        decoded = decided
        try:
            return _read(decoded, url, max_depth)
        except ParseError as exc:
            if not _is_mendable(exc, decoded.text):
                raise
    return _read_repaired(decoded, url, max_depth, failure)


def _read_json(decoded: Decoded, url: str, max_depth: int) -> FeedDocument:
    """Read a JSON object; mend its text if it is almost JSON (docs/faults.md row 151)."""
    notes, text = _encoding_notes(decoded, url), decoded.text.decode()
    try:
        document = read_json_feed(text, url, max_depth, notes)
    except ParseError as exc:
        mended, repairs = mend_json(text)
        if exc.slug != "malformed-json" or not repairs:
            raise
        try:
            document = read_json_feed(
                mended, url, max_depth, (*notes, DocumentRepaired(url, repairs=repairs))
            )
        except ParseError as other:
            raise (exc if other.slug == exc.slug else other) from None
    return _check(document, max_depth)


def _encoding_notes(decoded: Decoded, url: str) -> tuple[Note, ...]:
    if not decoded.used:
        return ()
    return (EncodingRetried(url, declared=decoded.encoding.declared or "nothing", used=decoded.used),)


def _is_mendable(failure: ParseError, text: bytes) -> bool:
    # Entries that are not closed nest too deep for the strict parser.
    if failure.slug == "xml-limit":
        begun = sum(map(text.count, (b"<item>", b"<item ", b"<entry>", b"<entry ")))
        return begun - sum(map(text.count, (b"</item>", b"</entry>"))) > _LEAST_UNCLOSED
    if failure.slug in ("malformed-xml", "dtd-forbidden"):
        return True
    # Text before a document can make it look like another kind.
    return failure.slug == "not-a-feed" and _begins_late(text)


_LEAST_UNCLOSED: Final = 100


def _begins_late(text: bytes) -> bool:
    return late_declaration(text) > 0 or late_root(text) > 0


def _read_repaired(
    decoded: Decoded, url: str, max_depth: int, failure: ParseError, repairs: tuple[str, ...] = ()
) -> FeedDocument:
    """Read a document after the repair pass (docs/faults.md rows 45 and 49).

    Raises:
        ParseError: `failure` if the document stays malformed, else the repaired document's own error.
    """
    repaired = mend(decoded.text)
    if repaired is None:
        raise failure
    done = tuple(sorted({*repaired.repairs, *repairs}))
    notes: list[Note] = [DocumentRepaired(url, repairs=done)] if done else []
    if repaired.breaks_off or repaired.goes_on:
        notes.append(DocumentTruncated(url, breaks_off=repaired.breaks_off))
    try:
        return _read(decoded._replace(text=repaired.text), url, max_depth, notes)
    except ParseError as exc:
        if exc.slug == "malformed-xml" and failure.slug != "dtd-forbidden":
            raise failure from exc
        raise


def _read(decoded: Decoded, url: str, max_depth: int, repairs: Sequence[Note] = ()) -> FeedDocument:
    notes = (*_encoding_notes(decoded, url), *repairs)
    try:
        document = _read_spelt(decoded.text, url, max_depth, notes)
    except OddSpellingError:
        document = _read_respelt(decoded.text, url, max_depth, notes)
    return _check(document, max_depth)


def _read_respelt(text: bytes, url: str, max_depth: int, notes: tuple[Note, ...]) -> FeedDocument:
    respelt = respell(text, max_depth=max_depth)
    if respelt is None:
        return _read_spelt(text, url, max_depth, notes, is_respelt=True)
    notes = _with_repairs(notes, url, respelt.repairs)
    return _read_spelt(respelt.text, url, max_depth, notes, is_respelt=True)


def _read_spelt(
    text: bytes, url: str, max_depth: int, notes: tuple[Note, ...], *, is_respelt: bool = False
) -> FeedDocument:
    """Read a document by its names as they are.

    Raises:
        OddSpellingError: Names may be misspelt, and `is_respelt` is false.
    """
    try:
        return _run(text, url, max_depth, notes, is_plain=True, is_respelt=is_respelt)
    except FieldsNeededError:
        return _run(text, url, max_depth, notes, is_full=True, is_respelt=is_respelt)


def _with_repairs(notes: Sequence[Note], url: str, names: Sequence[str]) -> tuple[Note, ...]:
    done = {each for note in notes if note.kind is DocumentRepaired for each in note.facts["repairs"]}
    rest = [note for note in notes if note.kind is not DocumentRepaired]
    return (*rest, DocumentRepaired(url, repairs=tuple(sorted({*done, *names}))))


def _check(document: FeedDocument, max_depth: int) -> FeedDocument:
    """Check that text repeated in every entry does not make a small document huge.

    Raises:
        ParseError: `xml-limit`.
    """
    limit_bytes = MAX_GAIN_FACTOR * len(document.text) + MAX_GAIN_BYTES
    if max_depth >= UNLIMITED or (
        document.family is not Family.JSON and most_gained(document) <= limit_bytes
    ):
        return document
    if not fragments_of(document).gain_at_most(limit_bytes):
        raise ParseError(
            f"expected at most {limit_bytes} bytes of what the entries inherit (namespaces, language, base, "
            "authors, rights), got more",
            slug="xml-limit",
        )
    return document


def _run(
    text: bytes,
    url: str,
    max_depth: int,
    notes: tuple[Note, ...],
    *,
    is_full: bool = False,
    is_plain: bool = False,
    is_respelt: bool,
) -> FeedDocument:
    guard = Guard(max_depth=max_depth)
    opening = Opening(guard, url, is_full=is_full, is_respelt=is_respelt)
    try:
        guard.begin(text)
        has_unseen = is_plain and read_plainly(opening)
        guard.finish()
        if not has_unseen or is_within_limits(guard):
            family = opening.family
            assert family is not None, "expat reports a document without a root as malformed"
            if not is_full:
                check_distinct(url, family.entries)
            if not is_respelt and family.is_odd():
                raise OddSpellingError
            if guard.version != XML_10:
                notes = _with_repairs(notes, url, (VERSION,))
            return family.document(text, notes)
    finally:
        opening.close()
    # A limit may be broken among elements that no handler saw: the handlers see all of them now.
    return _run(text, url, max_depth, notes, is_respelt=is_respelt)


_SNIFF_BYTES: Final = 4096
_HTML: Final = re.compile(
    rb"\s*(?:<\?xml[^>]*>\s*)?(?:<!--(?:[^-]|-(?!->))*-->\s*)*<(?:!doctype\s+html|html|head|body)\b",
    re.IGNORECASE | re.DOTALL,
)


def is_html(text: bytes) -> bool:
    return _HTML.match(text[:_SNIFF_BYTES]) is not None


# White space, byte order marks, zero-width spaces (docs/faults.md row 46).
_UNSEEN: Final = re.compile(rb"\A(?:\s|\xef\xbb\xbf|\xe2\x80\x8b)*+")


def _visible(text: bytes) -> bytes:
    return _UNSEEN.sub(b"", text[:_SNIFF_BYTES], count=1)


def _refuse_other_formats(text: bytes) -> None:
    """Raise `ParseError` (`not-a-feed`) if the first bytes show no XML feed."""
    if is_html(text):
        raise ParseError("expected a feed, got HTML", slug="not-a-feed")
    visible = _visible(text)
    if not visible:
        raise ParseError(
            "expected a feed, got nothing" if not text.strip() else "expected a feed, got blanks",
            slug="not-a-feed",
        )
    if not visible.startswith(b"<") and not _begins_late(text):
        raise ParseError("expected a feed, got neither XML nor JSON Feed", slug="not-a-feed")


# The head of a document whose entries still arrive

MAX_EARLY_BYTES: Final = 256 * 1024
MAX_EARLY_TAGS: Final = 1024
"""Ten times as many as heads have. 256 KB of links would block others for 100 ms (docs/faults.md row 87)."""
_PIECE_BYTES: Final = 4096


class EarlyHead:
    """A reader of a document up to its first entry, to predict the older link (R0).

    Arguments as in `parse`. Never raises: on any trouble it returns no document.
    """

    def __init__(self, url: str, media_type: str, *, max_depth: int = MAX_DEPTH) -> None:
        self._url = url
        self._media_type = media_type
        self._max_depth = max_depth
        self._opening: Opening | None = None
        """None until enough bytes show the encoding."""
        self._text = bytearray()
        self._waiting = bytearray()
        self._decoder: codecs.IncrementalDecoder | None = None
        self._taken_bytes = self._tags = 0
        self._is_done = False

    def feed(self, chunk: bytes) -> FeedDocument | None:
        """Read a piece of the body, without content coding.

        Once, when the first entry has begun, return the document without entries.
        """
        if self._is_done:
            return None
        try:
            self._read(chunk)
            document = self._document()
        except (ValueError, LookupError, RecursionError, MemoryError, OddSpellingError):
            document = None
            self.close()
        if document is not None or self._taken_bytes > MAX_EARLY_BYTES or self._tags > MAX_EARLY_TAGS:
            self.close()
        return document

    def close(self) -> None:
        """Stop reading; otherwise the parser and its handlers keep each other alive."""
        if not self._is_done and self._opening is not None:
            self._opening.close()
        self._is_done = True
        self._text = self._waiting = bytearray()
        self._decoder = None

    def _read(self, chunk: bytes) -> None:
        if self._opening is None:
            self._waiting += chunk
            if len(self._waiting) < SNIFF_BYTES:
                return
            chunk = self._begin()
        assert self._opening is not None, "it is there as soon as enough has come"
        opening = self._opening
        chunk = chunk[: MAX_EARLY_BYTES + 1]
        self._taken_bytes += len(chunk)
        text = self._decoder.decode(chunk).encode() if self._decoder is not None else chunk
        self._text += text
        for start in range(0, len(text), _PIECE_BYTES):  # most of a chunk stands behind the first entry
            piece = text[start : start + _PIECE_BYTES]
            self._tags += piece.count(b"<")
            opening.guard.feed(piece)
            is_over = opening.family is not None and opening.family.has_entered
            if is_over or self._tags > MAX_EARLY_TAGS:
                return

    def _begin(self) -> bytes:
        body = bytes(self._waiting)
        self._waiting.clear()
        encoding = encoding_of(body, self._media_type)
        body = body[encoding.mark_bytes :]
        if encoding.codec != "utf-8":
            self._decoder = codecs.getincrementaldecoder(encoding.codec)()
        else:
            _refuse_other_formats(body)
        guard = Guard(max_depth=self._max_depth)
        guard.text = self._text
        self._opening = Opening(guard, self._url, is_early=True)
        return body

    def _document(self) -> FeedDocument | None:
        family = None if self._opening is None else self._opening.family
        if family is None or not family.has_entered:
            return None
        if family.has_misspelt_namespace():
            raise OddSpellingError
        return family.document(bytes(self._text[: family.start_at]))
