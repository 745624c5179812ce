"""Run expat under limits (docs/faults.md part D); only here do a document's bytes meet the XML parser.

A `Guard` reads one document; its user sets handlers on `Guard.parser`. It checks the rest itself: document
types, namespace declarations, XML version, unending tokens. Every failure is a `ParseError`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, NoReturn
from xml.parsers.expat import ExpatError, ParserCreate, XMLParserType

from defusedxml.common import DefusedXmlException
from defusedxml.ElementTree import DefusedXMLParser

from wholefeed.core.parse.limits import (
    MAX_ATTRIBUTES,
    MAX_DEPTH,
    MAX_FLAT_ATTRIBUTES,
    MAX_NAMESPACE_CHARACTERS,
    MAX_TAG_BYTES,
    MAX_TOKEN_CHARACTERS,
    UNLIMITED,
    ParseError,
)

_HANDLERS: Final = tuple(name for name in dir(ParserCreate()) if name.endswith(("Handler", "HandlerExpand")))
# ElementTree's handlers, not wanted here; the default one would make expat report every character.
_TREE_HANDLERS: Final = (
    *("DefaultHandlerExpand", "CommentHandler", "ProcessingInstructionHandler"),
    *("CharacterDataHandler", "StartElementHandler", "EndElementHandler"),
)
_CHUNK_BYTES: Final = 1 << 18
_MAX_INTERNED: Final = 1 << 12
_MAX_NAMESPACES: Final = 1 << 10
XML_10: Final = "1.0"
_VERSION: Final = re.compile(r"1\.[0-9]+")
_NAME_ENDS: Final = (b" ", b"\t", b"\r", b"\n", b"/", b">")
_TAG_BEGINS: Final = re.compile(rb"<[^!?]")
_START_TAG: Final = re.compile(rb"<[^\"'>]*(?:\"[^\"]*\"[^\"'>]*|'[^']*'[^\"'>]*)*>")
# An entity that is not predefined; the first alternatives skip text in which XML reads no references.
_UNDECLARED_ENTITY: Final = re.compile(
    rb"<!\[CDATA\[.*?\]\]>|<!--.*?-->|<\?.*?\?>|<!DOCTYPE[^>]*>|&(?!(?:amp|lt|gt|quot|apos|#[0-9]+|#x[0-9a-fA-F]+);)([^;\s]*)",
    re.DOTALL,
)


class Guard:
    """A reader of one document.

    Handlers get names as `URI}name`, and attributes as a flat list of names and values.

    Args:
        max_depth: Levels of elements; `UNLIMITED`: no limit holds.
        max_tag_bytes: Of a start tag. expat blocks all threads for 0.1 s per MiB of attributes.
    """

    def __init__(self, *, max_depth: int = MAX_DEPTH, max_tag_bytes: int = MAX_TAG_BYTES) -> None:
        self.is_limited = max_depth < UNLIMITED
        self.max_depth = max_depth
        self._max_tag_bytes = max_tag_bytes
        self.text: bytes | bytearray = b""
        """At least the text read so far."""
        self.must_measure = False
        """Whether a name or value could be too long."""
        self.parser: XMLParserType = DefusedXMLParser(encoding="utf-8").parser
        self.version = XML_10
        self._doctype = False
        self.longest_namespace = 0
        """Characters of the longest declared namespace."""
        self.namespaces: set[str] = set()
        """The first `_MAX_NAMESPACES` declared ones."""
        self._declared: dict[str, str] = {}
        self._declared_at = -1
        self._position = 0
        self._size = _CHUNK_BYTES
        self._is_finished = False
        parser = self.parser
        for name in _TREE_HANDLERS:
            setattr(parser, name, None)
        parser.ordered_attributes = True
        parser.buffer_text = True
        parser.XmlDeclHandler = self._xml_declared
        parser.StartDoctypeDeclHandler = self._doctype_began
        parser.StartNamespaceDeclHandler = self._namespace_declared

    def read(self, text: bytes) -> None:
        self.begin(text)
        self.finish()

    def begin(self, text: bytes) -> None:
        """Set the document, in UTF-8, for `feed_until` and `finish`."""
        self.text = text
        self.must_measure = self.is_limited and has_long_run(text)

    def feed_until(self, end: int) -> None:
        view = memoryview(self.text)
        while self._position < end:
            # expat reads to the end of a chunk, so a limit stops it only there. Chunks grow while a token
            # does not end: expat 2.5 scans it from its start for each chunk (13 s and more for 8 MB in chunks
            # of 1 KB). Behind a chunk that is not final, expat counts lines and columns, which takes as long
            # as reading.
            start, self._position = self._position, min(end, self._position + self._size)
            self._is_finished = self._position == len(view) and 2 * self._size <= MAX_TAG_BYTES
            self.feed(view[start : self._position], is_final=self._is_finished)
            self._size = max(_CHUNK_BYTES, self._pending_bytes(self._position))

    def finish(self) -> None:
        self.feed_until(len(self.text))
        if not self._is_finished:
            self.feed(b"", is_final=True)
        if self._doctype:
            self._check_entities()

    def feed(self, chunk: bytes | memoryview, *, is_final: bool = False) -> None:
        """Read a chunk that `text` already contains."""
        try:
            self.parser.Parse(chunk, is_final)
        except ExpatError as exc:
            raise ParseError(
                f"expected well-formed XML, got an error: {_reason(exc)}", slug="malformed-xml"
            ) from exc
        except DefusedXmlException as exc:
            raise self._error(
                "dtd-forbidden", "expected a document without entity declarations, got one"
            ) from exc
        if len(self.parser.intern) > _MAX_INTERNED:
            self.parser.intern.clear()

    def close(self) -> None:
        """Remove the handlers, which form cycles that would keep the text alive."""
        parser = self.parser
        for name in _HANDLERS:
            setattr(parser, name, None)
        self.text = b""

    def declarations(self) -> Mapping[str, str]:
        """Return the namespaces that the element starting now declares, by prefix ('' the default)."""
        return self._declared if self._declared_at == self.parser.CurrentByteIndex else {}

    def end_of(self, start: int) -> int:
        """Return the end of the element that began at `start` and ends now."""
        # CurrentByteIndex lies before an end tag, but behind an empty-element tag.
        end = self.end_of_tag(start)
        if self.text[end - 2 : end] == b"/>":
            return end
        return self.text.find(b">", self.parser.CurrentByteIndex) + 1

    def is_written(self, name: str) -> bool:
        """Return whether the element starting now is written with exactly this name, without a prefix."""
        start = self.parser.CurrentByteIndex + 1
        end = start + len(name)
        return self.text[start:end] == name.encode() and self.text[end : end + 1] in _NAME_ENDS

    def end_of_tag(self, start: int) -> int:
        tag = _START_TAG.match(self.text, start)
        assert tag is not None, "expat has reported it"
        return tag.end()

    def check_element(self, name: str, attributes: list[str]) -> None:
        """Check the number of attributes, and the length of names and values."""
        if len(attributes) > MAX_FLAT_ATTRIBUTES:
            self.limit(f"at most {MAX_ATTRIBUTES} attributes", f"{len(attributes) // 2}")
        longest = max(len(name), max(map(len, attributes), default=0))
        if longest > MAX_TOKEN_CHARACTERS:
            self._limit_token(longest)

    def _limit_token(self, length: int) -> None:
        self.limit(f"names and attributes of at most {MAX_TOKEN_CHARACTERS} characters", f"one of {length}")

    def limit(self, expected: str, found: str) -> None:
        """Raise `ParseError` (`xml-limit`), if limits hold for this document."""
        if self.is_limited:
            self.stop("xml-limit", expected, found)

    def stop(self, slug: str, expected: str, found: str) -> NoReturn:
        raise self._error(slug, f"expected {expected}, got {found}")

    def _error(self, slug: str, message: str) -> ParseError:
        line, column = self.parser.CurrentLineNumber, self.parser.CurrentColumnNumber + 1
        return ParseError(f"{message} (line {line}, column {column})", slug=slug)

    def _pending_bytes(self, position: int) -> int:
        """Return the length of the unfinished token; refuse too long a start tag."""
        start = self.parser.CurrentByteIndex
        pending = position - start
        if pending > self._max_tag_bytes and _TAG_BEGINS.match(self.text, start):
            self.limit(f"start tags of at most {self._max_tag_bytes} bytes", "a longer one")
        return pending

    def _xml_declared(self, version: str, _encoding: str | None, _standalone: int) -> None:
        # Any 1.x is read as 1.0 (XML 1.0, section 2.8).
        if not _VERSION.fullmatch(version):
            self.stop("unsupported-format", f"XML {XML_10}", f"XML {version[:8]}")
        self.version = version

    def _doctype_began(self, name: str, _system: str | None, _public: str | None, has_subset: int) -> None:
        # A document type without an internal subset is accepted, since RSS 0.91 has one, but never fetched.
        if has_subset:
            self.stop("dtd-forbidden", "a DOCTYPE without an internal subset", "one with")
        if name.lower() == "html":
            self.stop("not-a-feed", "a feed", "HTML")
        self._doctype = True

    def _namespace_declared(self, prefix: str | None, uri: str | None) -> None:
        if len(uri or "") > MAX_NAMESPACE_CHARACTERS:
            self.limit(
                f"a namespace URI of at most {MAX_NAMESPACE_CHARACTERS} characters", f"{len(uri or '')}"
            )
        if len(prefix or "") > MAX_TOKEN_CHARACTERS:
            self._limit_token(len(prefix or ""))
        self.longest_namespace = max(self.longest_namespace, len(uri or ""))
        index = self.parser.CurrentByteIndex
        if index != self._declared_at:
            self._declared, self._declared_at = {}, index
        self._declared[prefix or ""] = uri or ""
        if len(self.namespaces) < _MAX_NAMESPACES:
            self.namespaces.add(uri or "")
        if len(self._declared) > MAX_ATTRIBUTES:
            self.limit(f"at most {MAX_ATTRIBUTES} namespace declarations", "more")

    def _check_entities(self) -> None:
        # Under an external DOCTYPE expat skips undeclared entities silently; the output has no DOCTYPE.
        for match in _UNDECLARED_ENTITY.finditer(self.text):
            if match[1] is not None:
                line = self.text.count(b"\n", 0, match.start()) + 1
                entity = match[1][:20].decode("utf-8", "replace")
                raise ParseError(
                    f"expected declared entities, got &{entity}; (line {line})", slug="malformed-xml"
                )


def _reason(exc: ExpatError) -> str:
    return f"{str(exc).partition(':')[0]} (line {exc.lineno}, column {exc.offset + 1})"


def has_long_run(text: bytes) -> bool:
    """Return whether the text has room between two "<" for a token beyond `MAX_TOKEN_CHARACTERS`."""
    position = 0
    while len(text) - position > MAX_TOKEN_CHARACTERS:
        found = text.rfind(b"<", position + 1, position + MAX_TOKEN_CHARACTERS)
        if found < 0:
            return True
        position = found
    return False
