"""expat under limits (docs/faults.md part D): the only place where a document's bytes meet the XML parser.

A `Guard` takes one document in pieces and hands its elements on to whoever set the handlers of its
`parser`. It watches over what the handlers do not see by themselves: document types, namespace
declarations, the version of XML, tokens without end.

    guard = Guard(max_depth=256)
    guard.parser.StartElementHandler = ...
    guard.read(text)

What the parsers of all families of feeds share stands here too: `Waiting`, which runs for every element and
keeps the limits on all of them together, and what the attributes of elements mean: bases, languages, links.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple, NoReturn
from xml.parsers.expat import ExpatError, ParserCreate, XMLParserType

from defusedxml.common import DefusedXmlException
from defusedxml.ElementTree import DefusedXMLParser

from wholefeed.core.model import (
    ATOM_NAMESPACES,
    IANA_RELATION_PREFIX,
    TOMBSTONE_NS,
    XML_NS,
    Link,
    Scope,
    Tombstone,
    entry_id,
)
from wholefeed.core.parse.identities import SPACES
from wholefeed.core.parse.limits import (
    FREE_NAME_CHARACTERS,
    MAX_ATTRIBUTES,
    MAX_DEPTH,
    MAX_ELEMENTS,
    MAX_FLAT_ATTRIBUTES,
    MAX_LANG_CHARACTERS,
    MAX_NAMESPACE_CHARACTERS,
    MAX_SCOPES,
    MAX_TAG_BYTES,
    MAX_TOKEN_CHARACTERS,
    NAME_CHARACTERS_PER_BYTE,
    UNLIMITED,
    ParseError,
)
from wholefeed.core.text.dates import parse_rfc3339
from wholefeed.core.text.markup import attribute_of
from wholefeed.core.text.urls import MAX_URL_CHARACTERS, resolve

_HANDLERS: Final = tuple(name for name in dir(ParserCreate()) if name.endswith(("Handler", "HandlerExpand")))
_CHUNK_BYTES: Final = 1 << 18
_MAX_INTERNED: Final = 1 << 12
XML_10: Final = "1.0"
_VERSION: Final = re.compile(r"1\.[0-9]+")
_NAME_ENDS: Final = (b" ", b"\t", b"\r", b"\n", b"/", b">")
_TAG_BEGINS: Final = re.compile(rb"<[^!?]")
_START_TAG: Final = re.compile(rb"<[^\"'>]*(?:\"[^\"]*\"[^\"'>]*|'[^']*'[^\"'>]*)*>")
# An entity that is not predefined, outside of what XML does not read references in.
_UNDECLARED_ENTITY: Final = re.compile(
    rb"<!\[CDATA\[.*?\]\]>|<!--.*?-->|<\?.*?\?>|<!DOCTYPE[^>]*>|&(?!(?:amp|lt|gt|quot|apos|#[0-9]+|#x[0-9a-fA-F]+);)([^;\s]*)",
    re.DOTALL,
)


class Guard:
    """One document on its way through expat.

    Handlers get names as `URI}name` and attributes as a flat list of names and values.

    Args:
        max_depth: Levels of elements; `UNLIMITED`: no limit holds.
        max_tag_bytes: Of a start tag. What expat makes of one it makes in one go, and no other thread has its
            turn meanwhile: 0.1 s for each MiB of attributes.
    """

    def __init__(self, *, max_depth: int = MAX_DEPTH, max_tag_bytes: int = MAX_TAG_BYTES) -> None:
        self.is_limited = max_depth < UNLIMITED
        self.max_depth = max_depth
        self._max_tag_bytes = max_tag_bytes
        self.text: bytes | bytearray = b""
        """What was read so far, at least."""
        self.must_measure = False
        """Whether names and values must be measured: the text has room for one that is too long."""
        self.parser: XMLParserType = DefusedXMLParser(encoding="utf-8").parser
        self.version = XML_10
        """Of XML, as the document declares it."""
        self._doctype = False
        self.longest_namespace = 0
        """Characters of the longest one that was declared."""
        self._declared: dict[str, str] = {}
        self._declared_at = -1
        self._position = 0
        self._size = _CHUNK_BYTES
        self._is_finished = False
        parser = self.parser
        # Set by ElementTree for its tree; the default handler would also make expat report every character.
        parser.DefaultHandlerExpand = None
        parser.CommentHandler = None
        parser.ProcessingInstructionHandler = None
        parser.CharacterDataHandler = None
        parser.StartElementHandler = None
        parser.EndElementHandler = None
        parser.ordered_attributes = True
        parser.buffer_text = True
        parser.XmlDeclHandler = self._xml_declared
        parser.StartDoctypeDeclHandler = self._doctype_began
        parser.StartNamespaceDeclHandler = self._namespace_declared

    def read(self, text: bytes) -> None:
        """Read a whole document in UTF-8.

        Raises:
            ParseError: The document is malformed or breaks a limit.
        """
        self.begin(text)
        self.finish()

    def begin(self, text: bytes) -> None:
        """Take a whole document in UTF-8, to read on in it with `feed_to` and `finish`."""
        self.text = text
        self.must_measure = self.is_limited and has_long_run(text)

    def feed_to(self, end: int) -> None:
        """Read on up to there; up to the end of the document it is read as its end.

        In chunks, so that a limit stops it soon (expat goes on to the end of what it was given); they grow
        while a token does not end in one, so that it is not scanned over and over
        (expat 2.5: 13 s and more for 8 MB in chunks of 1 KB). The last one is said to be the last: behind
        any other expat counts lines and columns, which takes as long as to read it.

        Raises:
            ParseError: The document is malformed or breaks a limit.
        """
        view = memoryview(self.text)
        while self._position < end:
            start, self._position = self._position, min(end, self._position + self._size)
            self._is_finished = self._position == len(view) and 2 * self._size <= MAX_TAG_BYTES
            self.feed(view[start : self._position], is_final=self._is_finished)
            self._size = max(_CHUNK_BYTES, self._pending_bytes(self._position))

    def finish(self) -> None:
        """Read the rest of the document.

        Raises:
            ParseError: The document is malformed or breaks a limit.
        """
        self.feed_to(len(self.text))
        if not self._is_finished:
            self.feed(b"", is_final=True)
        if self._doctype:
            self._check_entities()

    def feed(self, chunk: bytes | memoryview, *, is_final: bool = False) -> None:
        """Read on. The caller sees to it that `text` holds the chunk.

        Raises:
            ParseError: The document is malformed or breaks a limit.
        """
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
        """Let go of the handlers: they form cycles that would keep the text alive."""
        parser = self.parser
        for name in _HANDLERS:
            setattr(parser, name, None)
        self.text = b""

    def declarations(self) -> Mapping[str, str]:
        """Return the namespaces that the element which begins now declares, by prefix ('' the default)."""
        return self._declared if self._declared_at == self.parser.CurrentByteIndex else {}

    def end_of(self, start: int) -> int:
        """Return where the element ends that began at `start` and whose end expat reports now.

        The reported index lies before an end tag, but behind an empty-element tag.
        """
        tag = _START_TAG.match(self.text, start)
        if tag is not None and tag[0].endswith(b"/>"):
            return tag.end()
        return self.text.find(b">", self.parser.CurrentByteIndex) + 1

    def is_written(self, name: str) -> bool:
        """Whether the element that begins now is written so: without a prefix, say."""
        start = self.parser.CurrentByteIndex + 1
        end = start + len(name)
        return self.text[start:end] == name.encode() and self.text[end : end + 1] in _NAME_ENDS

    def end_of_tag(self, start: int) -> int:
        """Return where the start tag ends that begins at `start`."""
        tag = _START_TAG.match(self.text, start)
        assert tag is not None, "expat has reported it"
        return tag.end()

    def check_element(self, name: str, attributes: list[str]) -> None:
        """Measure what a start tag holds.

        Raises:
            ParseError: Too many attributes, or one name or value is too long.
        """
        if len(attributes) > MAX_FLAT_ATTRIBUTES:
            self.limit(f"at most {MAX_ATTRIBUTES} attributes", f"{len(attributes) // 2}")
        longest = max(len(name), max(map(len, attributes), default=0))
        if longest > MAX_TOKEN_CHARACTERS:
            self._limit_token(longest)

    def _limit_token(self, length: int) -> None:
        self.limit(f"names and attributes of at most {MAX_TOKEN_CHARACTERS} characters", f"one of {length}")

    def limit(self, expected: str, found: str) -> None:
        """End the reading at a limit, if limits hold for this document.

        Raises:
            ParseError: `xml-limit`.
        """
        if self.is_limited:
            self.stop("xml-limit", expected, found)

    def stop(self, slug: str, expected: str, found: str) -> NoReturn:
        """End the reading here.

        Raises:
            ParseError: Always.
        """
        raise self._error(slug, f"expected {expected}, got {found}")

    def _error(self, slug: str, message: str) -> ParseError:
        line, column = self.parser.CurrentLineNumber, self.parser.CurrentColumnNumber + 1
        return ParseError(f"{message} (line {line}, column {column})", slug=slug)

    def _pending_bytes(self, position: int) -> int:
        """Return how long the token is that expat waits for the end of."""
        start = self.parser.CurrentByteIndex
        pending = position - start
        if pending > self._max_tag_bytes and _TAG_BEGINS.match(self.text, start):
            self.limit(f"start tags of at most {self._max_tag_bytes} bytes", "a longer one")
        return pending

    def _xml_declared(self, version: str, _encoding: str | None, _standalone: int) -> None:
        """Any 1.x is read as 1.0 (XML 1.0, section 2.8)."""
        if not _VERSION.fullmatch(version):
            self.stop("unsupported-format", f"XML {XML_10}", f"XML {version[:8]}")
        self.version = version

    def _doctype_began(self, name: str, _system: str | None, _public: str | None, has_subset: int) -> None:
        """A document type without an internal subset is let pass: RSS 0.91 has one. It is never fetched."""
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
        if len(self._declared) > MAX_ATTRIBUTES:
            self.limit(f"at most {MAX_ATTRIBUTES} namespace declarations", "more")

    def _check_entities(self) -> None:
        """Under an external DOCTYPE expat passes over undeclared entities in silence; the output has none."""
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
    """Whether so many bytes stand without a "<" that one start tag might be longer than a token may be."""
    position = 0
    while len(text) - position > MAX_TOKEN_CHARACTERS:
        found = text.rfind(b"<", position + 1, position + MAX_TOKEN_CHARACTERS)
        if found < 0:
            return True
        position = found
    return False


# What runs for every element: a comparison or two, and the limits on all of them together

_SHORT_NAMES: Final = "short names, their namespaces included"


class Waiting:
    """Waits for elements that begin at one depth, and for the end of one at another.

    Args:
        guard: Of the document.
    """

    def __init__(self, guard: Guard) -> None:
        self.guard = guard
        self.parser = guard.parser
        self.wait(Frame(0, ignore, 0, nothing))

    def close(self) -> None:
        """Let go of all of it: handlers and frames form cycles, which only the collector would find."""
        vars(self).clear()

    def look(self) -> None:
        """Be told of the elements behind the root's start tag, which expat reports now."""
        self._handlers = self._made_handlers()
        self.look_again()

    def look_away(self) -> None:
        """Be told nothing by expat until `look_again`."""
        self.parser.StartElementHandler = self.parser.EndElementHandler = None

    def look_again(self) -> None:
        """Go on where `look_away` was called, behind whole elements."""
        self.parser.StartElementHandler, self.parser.EndElementHandler = self._handlers

    def _made_handlers(self) -> tuple[Callable[[str, list[str]], None], Callable[[str], None]]:
        """Make what runs for every element: closures, because they are the fastest."""
        guard, measured = self.guard, self.guard.must_measure
        depth, max_depth, left = 1, self.guard.max_depth, MAX_ELEMENTS
        characters = FREE_NAME_CHARACTERS + NAME_CHARACTERS_PER_BYTE * len(guard.text)

        def start(name: str, attributes: list[str]) -> None:
            nonlocal depth, left, characters
            depth += 1
            left -= 1
            characters -= len(name)
            if attributes:
                characters -= sum(map(len, attributes))
            if measured or len(attributes) > MAX_FLAT_ATTRIBUTES:
                guard.check_element(name, attributes)
            if depth == self.watch:
                self.on_child(name, attributes)
            elif depth > max_depth:
                guard.limit(f"at most {max_depth} levels of elements", "more")
            if left < 0 or characters < 0:
                guard.limit(f"at most {MAX_ELEMENTS} elements" if left < 0 else _SHORT_NAMES, "more")

        def end(_name: str) -> None:
            nonlocal depth
            if depth == self.until:
                self.on_end()
            depth -= 1

        return start, end

    def wait(self, frame: Frame) -> None:
        """Wait for something else from now on."""
        self.watch, self.on_child, self.until, self.on_end = frame


class Frame(NamedTuple):
    """What the parser of a family waits for at a time; depths count the root as 1."""

    watch: int
    on_child: Callable[[str, list[str]], None]
    until: int
    on_end: Callable[[], None]


def nothing() -> None:
    """An end that means nothing."""


def ignore(_name: str, _attributes: list[str]) -> None:
    """A beginning that means nothing."""


# What is in force around entries, and what the attributes of head elements mean


class FurtherScopes:
    """The surroundings of a document's entries, but for the head's: `Entry.scope` counts into them from 1.

    Args:
        guard: The document's parser.
    """

    def __init__(self, guard: Guard) -> None:
        self._guard = guard
        self.further: list[Scope] = []

    def inner(self, outer: Scope, attributes: Sequence[str]) -> Scope:
        """Return what holds inside of the element that begins now.

        Raises:
            ParseError: The entries cannot be made to repeat what is declared.
        """
        lang = attribute_of(attributes, _XML_LANG)
        if lang is None or len(lang) > MAX_LANG_CHARACTERS:
            lang = outer.lang
        prefixes = {**outer.prefixes, **self._guard.declarations()}
        if len(prefixes) > MAX_SCOPE_PREFIXES or sum(map(len, (*prefixes, *prefixes.values()))) > MAX_SCOPE:
            expected = f"at most {MAX_SCOPE_PREFIXES} namespaces of {MAX_SCOPE} characters around the entries"
            self._guard.limit(expected, "more")
        return Scope(prefixes, lang.strip(SPACES), base_in(outer.base, attributes))

    def numbered(self, scope: Scope) -> int:
        """Return the `Entry.scope` of entries that stand in these surroundings."""
        if scope not in self.further:
            if len(self.further) == MAX_SCOPES:
                self._guard.limit(f"entries in at most {MAX_SCOPES} different surroundings", "more")
            self.further.append(scope)
        return self.further.index(scope) + 1

    def at(self, place: int, head: Scope) -> Scope:
        """Return the surroundings that an `Entry.scope` counts to."""
        return self.further[place - 1] if place else head


_XML_LANG: Final = f"{XML_NS}}}lang"
MAX_SCOPE_PREFIXES: Final = 128
MAX_SCOPE: Final = 8192
"""Characters of the namespace declarations around the entries: each entry may have to repeat them."""

_XML_BASE: Final = f"{XML_NS}}}base"


def base_in(outer: str, attributes: Sequence[str]) -> str:
    """Return the base inside of an element (XML Base, 4); an xml:base that is unusable changes nothing."""
    reference = attribute_of(attributes, _XML_BASE)
    if reference is None:
        return outer
    try:
        made = resolve(outer, reference)
    except ValueError:
        return outer
    return made if len(made) <= MAX_URL_CHARACTERS else outer


LINKS: Final = frozenset(f"{namespace}}}link" for namespace in ATOM_NAMESPACES)
DELETED: Final = f"{TOMBSTONE_NS}}}deleted-entry"
"""Names as expat reports them."""


def head_link(attributes: Sequence[str], scope: Scope) -> Link:
    """Return what an atom:link of the head says (R11, R12; RFC 4287, 4.2.7)."""
    relation = (attribute_of(attributes, "rel") or "").strip(SPACES).lower() or "alternate"
    href = (attribute_of(attributes, "href") or "").strip(SPACES)
    try:
        target = resolve(base_in(scope.base, attributes), href) if href else ""
    except ValueError:
        target = ""
    media_type = (attribute_of(attributes, "type") or "").partition(";")[0].strip(SPACES).lower()
    return Link(relation.removeprefix(IANA_RELATION_PREFIX), target, media_type, href)


_MAX_REF_CHARACTERS: Final = 4096


def tombstone(attributes: Sequence[str]) -> Tombstone | None:
    """Return what an at:deleted-entry says (RFC 6721, 3); None when its ref or its instant is missing."""
    ref = (attribute_of(attributes, "ref") or "").strip(SPACES)
    when_at = parse_rfc3339(attribute_of(attributes, "when") or "")
    if not ref or when_at is None:
        return None
    return Tombstone(entry_id(ref), when_at, ref if len(ref) <= _MAX_REF_CHARACTERS else "")
