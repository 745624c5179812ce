"""Bytes -> `FeedDocument`: the one entry to parsing (design, section 5).

    document = parse(body, "http://example.org/feed", "application/atom+xml; charset=utf-8")
    document.text[document.entries[0].start : document.entries[0].end]      # as the publisher wrote it

A document whose entries have all that entries should have is read once. Where one lacks its id (or in Atom
its update instant), it is read once more from the start, with all that can stand in for them.
"""

from __future__ import annotations

import re
from typing import Final, NoReturn

from proxy.core.fragments import Fragments
from proxy.core.model import EntryId, FeedDocument
from proxy.core.notes import EncodingRetried, Note
from proxy.core.parse.atom import AtomReader
from proxy.core.parse.encodings import Decoded, is_utf8, mended, to_utf8
from proxy.core.parse.errors import ParseError
from proxy.core.parse.frames import Options
from proxy.core.parse.guard import MAX_DEPTH, UNLIMITED, Guard
from proxy.core.parse.identities import FieldsNeededError
from proxy.core.parse.reader import FeedReader
from proxy.core.parse.rss import RSS_NAMESPACES, RssReader
from proxy.core.terms import ATOM_NS, IDENTITIES_TARGET

MAX_GAIN_FACTOR: Final = 4
MAX_GAIN_BYTES: Final = 1 << 20
"""All that entries and head gain may come to so many times their document's size, and so much more."""

_RDF_NS: Final = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
_ATOM_03_NS: Final = "http://purl.org/atom/ns#"
_SHOWN_CHARACTERS: Final = 60
_SNIFF_BYTES: Final = 4096
_HTML: Final = re.compile(
    rb"\s*(?:<\?xml[^>]*>\s*)?(?:<!--(?:[^-]|-(?!->))*-->\s*)*<(?:!doctype\s+html|html|head|body)\b",
    re.IGNORECASE | re.DOTALL,
)


def parse(body: bytes, url: str, media_type: str = "", *, max_depth: int = MAX_DEPTH) -> FeedDocument:
    """Return the feed document that the bytes are.

    Args:
        body: Without content coding.
        url: Of the document, after redirects.
        media_type: The whole Content-Type value; may be empty.
        max_depth: Levels of elements that are accepted. From `UNLIMITED` on no other limit holds either: the
            document is stored, or made of entries of stored ones.

    Raises:
        ParseError: It is no feed, or not readable as one. Never anything else.
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
    decoded = to_utf8(body, media_type)
    refuse_other_formats(decoded.text)
    try:
        return _read(decoded, url, max_depth)
    except ParseError as exc:
        is_mislabelled = decoded.encoding.codec == "utf-8" and not decoded.used
        if exc.slug != "malformed-xml" or not is_mislabelled or is_utf8(decoded.text):
            raise
    return _read(mended(body, decoded.encoding), url, max_depth)


def _read(decoded: Decoded, url: str, max_depth: int) -> FeedDocument:
    notes: tuple[Note, ...] = ()
    if decoded.used:
        notes = (EncodingRetried(url, declared=decoded.encoding.declared or "nothing", used=decoded.used),)
    try:
        reader = _run(decoded.text, url, max_depth, is_full=False)
    except FieldsNeededError:
        reader = _run(decoded.text, url, max_depth, is_full=True)
    document = reader.document(decoded.text, notes)
    if max_depth < UNLIMITED:
        _check_gain(document)
    return document


def _check_gain(document: FeedDocument) -> None:
    """See to it that what every entry would repeat does not make much out of little.

    Raises:
        ParseError: `xml-limit`.
    """
    limit_bytes = MAX_GAIN_FACTOR * len(document.text) + MAX_GAIN_BYTES
    if not Fragments(document).gain_at_most(limit_bytes):
        raise ParseError(
            f"expected at most {limit_bytes} bytes of what the entries inherit (namespaces, language, base, "
            "authors, rights), got more",
            slug="xml-limit",
        )


def _run(text: bytes, url: str, max_depth: int, *, is_full: bool) -> FeedReader:
    guard = Guard(max_depth=max_depth)
    opening = Opening(guard, url, Options(is_full=is_full))
    try:
        guard.read(text)
        reader = opening.reader
        assert reader is not None, "expat reports a document without a root as malformed"
        if not is_full:
            reader.check_listed()
    finally:
        guard.close()
    return reader


class Opening:
    """Waits for the root of a document and hands over to the reader of its family.

    Args:
        guard: The document's parser.
        url: Of the document, after redirects.
        options: What is wanted of the reading.
    """

    def __init__(self, guard: Guard, url: str, options: Options) -> None:
        self.reader: FeedReader | None = None
        self._guard = guard
        self._url = url
        self._options = options
        self._identities: tuple[EntryId, ...] = ()
        guard.parser.ProcessingInstructionHandler = self._instruction
        guard.parser.StartElementHandler = self._root_began

    def _instruction(self, target: str, data: str) -> None:
        if target != IDENTITIES_TARGET:
            return
        try:
            self._identities = tuple(EntryId(bytes.fromhex(word)) for word in data.split())
        except ValueError:
            self._identities = ()

    def _root_began(self, name: str, attributes: list[str]) -> None:
        self._guard.parser.ProcessingInstructionHandler = None
        namespace, _, local = name.rpartition("}")
        options = self._options._replace(identities=self._identities)
        reader: FeedReader
        if local == "rss" and (namespace in RSS_NAMESPACES or self._guard.is_written("rss")):
            reader = RssReader(self._guard, self._url, options, namespace)
        elif local == "feed" and namespace == ATOM_NS:
            reader = AtomReader(self._guard, self._url, options)
        else:
            self._refuse(namespace, local)
        self.reader = reader
        reader.take_over(attributes)

    def _refuse(self, namespace: str, local: str) -> NoReturn:
        if local == "feed":
            found = "Atom 0.3" if namespace == _ATOM_03_NS else f"a feed element in namespace {namespace!r}"
            self._guard.stop("unsupported-format", "Atom 1.0 or RSS", found)
        if namespace == _RDF_NS and local == "RDF":
            self._guard.stop("unsupported-format", "Atom 1.0 or RSS", "RDF (RSS 1.0 or 0.90)")
        if local == "rss":
            found = f"an rss element with a prefix, in namespace {namespace!r}"
            self._guard.stop("unsupported-format", "Atom 1.0 or RSS", found)
        if local == "entry" and namespace == ATOM_NS:
            self._guard.stop("not-a-feed", "a feed", "a single Atom entry")
        found = "HTML" if local.lower() == "html" else f"a document of <{local[:_SHOWN_CHARACTERS]}>"
        self._guard.stop("not-a-feed", "a feed", found)


def refuse_other_formats(text: bytes) -> None:
    """Recognise what is no XML feed from its first bytes.

    Raises:
        ParseError: `not-a-feed` or `unsupported-format`.
    """
    beginning = text[:_SNIFF_BYTES]
    if _HTML.match(beginning):
        raise ParseError("expected a feed, got HTML", slug="not-a-feed")
    visible = beginning.lstrip()
    if visible.startswith(b"{"):
        if b"jsonfeed.org" in beginning:
            raise ParseError("expected Atom 1.0 or RSS, got JSON Feed", slug="unsupported-format")
        raise ParseError("expected a feed, got JSON", slug="not-a-feed")
    if not visible:
        raise ParseError(
            "expected a feed, got nothing" if not text.strip() else "expected a feed, got blanks",
            slug="not-a-feed",
        )
    if not visible.startswith(b"<"):
        raise ParseError("expected a feed, got no XML", slug="not-a-feed")
