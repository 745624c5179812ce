"""Subscription lists in OPML: read, rewrite, compose.

A rewrite changes only `xmlUrl` values of `outline` elements, and on request the `htmlUrl` beside them. All
else stays, byte for byte.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Final, NamedTuple

from wholefeed.core.parse.doctypes import without_subset
from wholefeed.core.parse.documents import is_html
from wholefeed.core.parse.encodings import UTF8, Decoded, from_utf8, to_utf8
from wholefeed.core.parse.expat import Guard
from wholefeed.core.parse.limits import ParseError
from wholefeed.core.parse.repair import (
    ATTRIBUTES,
    CONTROL_CHARACTERS,
    DECLARATION,
    DOCTYPE,
    LESS_THAN,
    QNAME,
    RepairMark,
    Token,
    TooManyRepairsError,
    mended_references,
    most_tokens,
    tokens,
    without_controls,
)
from wholefeed.core.text.markup import attribute_places, escape, quoteattr

MAX_BYTES: Final = 8 << 20
"""Limit of a list: 30,000 feeds with everything that readers add."""
MAX_DEPTH: Final = 64
MAX_TAG_BYTES: Final = 1 << 18
"""Limit of a start tag; some up to twice as long pass. Other threads run only between two tags
(docs/faults.md row 111)."""
MAX_ELEMENTS: Final = 50_000
"""Each costs 0.2 ms when its URL changes."""


def read_opml(body: bytes) -> OpmlDocument:
    """Read a subscription list, and repair common faults of exports.

    Other faults are refused with line and column: a guess could lose feeds silently.

    Raises:
        ParseError: `not-opml`, `malformed-xml`, `dtd-forbidden`, `xml-limit`, `unsupported-encoding` or
            `unsupported-format`.
    """
    if len(body) > MAX_BYTES:
        raise ParseError(f"expected OPML of at most {MAX_BYTES} bytes, got {len(body)}", slug="xml-limit")
    decoded = to_utf8(body, "")
    _refuse_others(decoded.text)
    try:
        found = _found(decoded.text)
    except ParseError as exc:
        if exc.slug not in ("malformed-xml", "dtd-forbidden"):
            raise
        # Repairs: bare ampersands, HTML's entities, references to nothing, control characters, bytes outside
        # UTF-8, blanks before the declaration, and markup or quotes in values of outlines.
        return _read_repaired(body, decoded)
    mark = body[: decoded.encoding.mark_bytes]
    repairs = tuple(_encoding_repairs(decoded))
    return OpmlDocument(decoded.text, mark, _codec(body, decoded), *found, repairs)


class OpmlDocument(NamedTuple):
    text: bytes
    """UTF-8, without byte order mark."""
    mark: bytes
    codec: str
    subscriptions: tuple[OutlineSubscription, ...]
    sites: tuple[OutlineSubscription, ...] = ()
    """The `htmlUrl` values beside them."""
    repairs: tuple[str, ...] = ()
    """Names of repairs."""

    def with_urls(self, urls: Sequence[str | None], sites: Sequence[str | None] | None = None) -> bytes:
        """Return the document with other URLs, one per subscription; None: no change.

        `sites` does the same for each `htmlUrl`; None: all stay.
        """
        others = () if sites is None else zip(self.sites, sites, strict=True)
        changes = [*zip(self.subscriptions, urls, strict=True), *others]
        pieces, position = [], 0
        for each, url in sorted(changes, key=lambda change: change[0].start):
            if url is None:
                continue
            quote = self.text[each.start : each.start + 1]
            pieces += [self.text[position : each.start], quote, escape(url, _QUOTED[quote]).encode(), quote]
            position = each.end
        return self.mark + from_utf8(b"".join([*pieces, self.text[position:]]), self.codec)


class OutlineSubscription(NamedTuple):
    url: str
    line: int
    """Line where the start tag ends, from 1."""
    start: int
    """Offset of the quoted URL in the document's text."""
    end: int
    title: str = ""


_QUOTED: Final = {
    b'"': {'"': "&quot;", "\n": "&#10;", "\r": "&#13;", "\t": "&#9;"},
    b"'": {"'": "&apos;", "\n": "&#10;", "\r": "&#13;", "\t": "&#9;"},
}


def _refuse_others(text: bytes) -> None:
    if is_html(text):
        raise ParseError("expected OPML, got a page of HTML", slug="not-opml")
    start = text.lstrip()[:1]
    if start != b"<":
        found = "something else" if start else "nothing"
        raise ParseError(f"expected OPML, a document of XML, got {found}", slug="not-opml")


def _codec(body: bytes, decoded: Decoded) -> str:
    """Return the output encoding: the input's, if it reproduces the same bytes.

    Raises:
        ParseError: `unsupported-encoding`.
    """
    encoding = decoded.encoding
    if UTF8 in (encoding.stated, decoded.used):
        return UTF8
    # The declared one first: the Encoding Standard reads ISO-8859-1 as windows-1252, other programs take it
    # literally.
    for codec in (encoding.declared, encoding.codec):
        with suppress(LookupError, ValueError):
            if from_utf8(decoded.text, codec) == body[encoding.mark_bytes :]:
                return codec
    raise ParseError(
        f"expected text in {encoding.declared or encoding.codec}, got something else: save the list as UTF-8",
        slug="unsupported-encoding",
    )


def _found(text: bytes) -> tuple[tuple[OutlineSubscription, ...], tuple[OutlineSubscription, ...]]:
    guard = Guard(max_depth=MAX_DEPTH, max_tag_bytes=MAX_TAG_BYTES)
    parser = guard.parser
    found: dict[str, list[OutlineSubscription]] = {"xmlurl": [], "htmlurl": []}
    depth = elements = 0

    def began(name: str, attributes: list[str]) -> None:
        nonlocal depth, elements
        guard.check_element(name, attributes)
        local = name.rpartition("}")[2]
        if not depth and local.lower() != "opml":
            guard.stop("not-opml", "OPML", f"a document of <{local[:_SHOWN_CHARACTERS]}>")
        depth += 1
        elements += 1
        if elements > MAX_ELEMENTS:
            guard.limit(f"at most {MAX_ELEMENTS} elements", "more")
        if depth > MAX_DEPTH:
            guard.limit(f"at most {MAX_DEPTH} levels of elements", "more")
        if local.lower() == "outline":
            for kind, url, start, end, title in _urls(text, parser.CurrentByteIndex, attributes):
                found[kind].append(OutlineSubscription(url, parser.CurrentLineNumber, start, end, title))

    def ended(_name: str) -> None:
        nonlocal depth
        depth -= 1

    parser.StartElementHandler, parser.EndElementHandler = began, ended
    try:
        guard.read(text)
    except ParseError as exc:
        if exc.slug != "not-a-feed":
            raise
        raise ParseError("expected OPML, got HTML", slug="not-opml") from exc
    finally:
        guard.close()
    return tuple(found["xmlurl"]), tuple(found["htmlurl"])


_SHOWN_CHARACTERS: Final = 60


_TITLE_CHARACTERS: Final = 200


def _urls(text: bytes, at: int, attributes: list[str]) -> Iterator[tuple[str, str, int, int, str]]:
    values = dict(zip(attributes[::2], attributes[1::2], strict=True))
    if any(name.lower() == "xmlurl" for name in values):
        title = (values.get("title") or values.get("text") or "")[:_TITLE_CHARACTERS]
        for written, start, end in attribute_places(text, at).quoted:
            name = written.decode()
            kind = name.lower()
            if kind in ("xmlurl", "htmlurl") and name in values:
                yield kind, values[name], start, end, title


# Repair of common faults of exports

# The repair of text declared as UTF-8 but not valid.
_ENCODING: Final = "encoding"


def _encoding_repairs(decoded: Decoded) -> set[str]:
    return {_ENCODING} if decoded.encoding.stated == UTF8 and decoded.used else set()


def _read_repaired(body: bytes, decoded: Decoded) -> OpmlDocument:
    repairs = _encoding_repairs(decoded)
    text = _repair(decoded.text, repairs)
    mark = body[: decoded.encoding.mark_bytes]
    return OpmlDocument(text, mark, _codec(body, decoded), *_found(text), tuple(sorted(repairs)))


_WITHOUT_REFERENCES: Final = (
    RepairMark.CDATA,
    RepairMark.COMMENT,
    RepairMark.INSTRUCTION,
    RepairMark.DOCTYPE,
    RepairMark.SUBSET,
)


def _repair(text: bytes, repairs: set[str]) -> bytes:
    """Repair a text, and add the names of repairs to `repairs`.

    Raises:
        ParseError: `xml-limit`: too much markup, or too many faults; `malformed-xml`: a feed would be lost.
    """
    cleaned = _without_misplaced(text, repairs)
    pieces: list[bytes] = []
    position, left = 0, most_tokens(cleaned)
    try:
        for token in tokens(cleaned):
            left -= 1
            if left < 0:
                raise TooManyRepairsError
            if token.end <= position:
                continue  # part of an outline's tag
            if token.mark is RepairMark.STRAY and _OUTLINE_BEGINS.match(cleaned, token.start):
                following = _OTHER_MARKUP.search(cleaned, token.start + 1)
                limit = len(cleaned) if following is None else following.start()
                left -= sum(cleaned.count(each, token.start, limit) for each in _LOOKED_AT)
                outline = _mended_outline(cleaned, token.start, limit, repairs, left)
                if outline is not None:
                    made, position = outline
                    pieces.append(made)
                    continue
            if token.mark is RepairMark.STRAY or token.is_odd:
                pieces.append(cleaned[max(token.start, position) :])
                break  # no repair makes such a list well-formed: the rest need not be searched
            pieces.append(_mended_piece(cleaned, max(token.start, position), token, repairs))
    except TooManyRepairsError as exc:
        raise ParseError(
            "expected a list that can be repaired, got too much markup", slug="xml-limit"
        ) from exc
    return b"".join(pieces)


def _without_misplaced(text: bytes, repairs: set[str]) -> bytes:
    """Remove control characters, document type, and blanks before the declaration.

    Raises:
        ParseError: `dtd-forbidden`: it declares more than HTML's entities.
    """
    cleaned = without_controls(text)
    if len(cleaned) != len(text):
        repairs.add(CONTROL_CHARACTERS)
    typed, cleaned = cleaned, without_subset(cleaned)
    if len(typed) != len(cleaned):
        repairs.add(DOCTYPE)
    begun = cleaned.lstrip()
    if len(begun) != len(cleaned) and begun.startswith(b"<?xml"):
        repairs.add(DECLARATION)
        cleaned = begun
    return cleaned


def _mended_piece(text: bytes, start: int, token: Token, repairs: set[str]) -> bytes:
    """Repair the references in the rest of a token.

    Raises:
        ParseError: `malformed-xml`: a URL outside of tags.
        TooManyRepairsError: Too many ampersands.
    """
    piece = text[start : token.end]
    if token.mark is RepairMark.TEXT and _URL_BEGINS.search(piece):
        line = text.count(b"\n", 0, token.start) + 1
        message = f"expected URLs in the tags of outlines, got one outside of them (line {line})"
        raise ParseError(message, slug="malformed-xml")
    return piece if token.mark in _WITHOUT_REFERENCES else mended_references(piece, repairs)


_OUTLINE_BEGINS: Final = re.compile(rb"<outline(?=\s)", re.IGNORECASE)
_OTHER_MARKUP: Final = re.compile(rb"</?(?:outline|body|opml)(?=[\s/>])|<!--", re.IGNORECASE)
_ATTRIBUTE_BEGINS: Final = re.compile(rb"\s++(" + QNAME + rb")\s*+=\s*+([\"'])")
_TAG_ENDS: Final = re.compile(rb"(\s*+/?+>)\s*+\Z")
_URL_BEGINS: Final = re.compile(rb"\sxmlurl\s*+=", re.IGNORECASE)


def _mended_outline(
    text: bytes, start: int, limit: int, repairs: set[str], left: int
) -> tuple[bytes, int] | None:
    """Escape bare markup in an outline's values, such as descriptions.

    Returns:
        The start tag, and its end as written; None: the end of a value is uncertain.

    Raises:
        TooManyRepairsError: Too many ampersands, or `left` is used up.
    """
    if left < 0:
        raise TooManyRepairsError
    position = start + len(b"<outline")
    pieces, done = [text[start:position]], set[str]()
    while (attribute := _ATTRIBUTE_BEGINS.match(text, position, limit)) is not None:
        end = _end_of_value(text, attribute, limit)
        value = text[attribute.end() : end]
        if _URL_BEGINS.search(value):
            return None  # a quote is missing: the outline would lose its feed
        pieces += [attribute[0], _as_value(value, attribute[2], done), attribute[2]]
        position = end + 1
    tag_ends = _TAG_ENDS.match(text, position, limit)
    if tag_ends is None:
        return None
    repairs |= done
    return b"".join([*pieces, tag_ends[1]]), tag_ends.end(1)


# In such a tag, each of these costs as much as a piece of markup.
_LOOKED_AT: Final = (b'"', b"'", b">")
_QUOTES_AND_TAGS: Final = {quote: re.compile(quote + rb"|<(?=[A-Za-z/])|>") for quote in (b'"', b"'")}
# OPML 2.0, in lower case.
_OF_OUTLINES: Final = frozenset(
    {b"text", b"title", b"type", b"xmlurl", b"htmlurl", b"url", b"description", b"language", b"version"}
    | {b"category", b"created", b"iscomment", b"isbreakpoint"}
)


def _end_of_value(text: bytes, attribute: re.Match[bytes], limit: int) -> int:
    # Behind the closing quote stands another attribute or the end of the tag.
    is_in_tag = False
    for found in _QUOTES_AND_TAGS[attribute[2]].finditer(text, attribute.end(), limit):
        if found[0] in (b"<", b">"):
            is_in_tag = found[0] == b"<"
            continue
        another = _ATTRIBUTE_BEGINS.match(text, found.end(), limit)
        # Inside a tag of HTML in a value, other attributes are HTML's.
        is_next = another is not None and not (is_in_tag and another[1].lower() not in _OF_OUTLINES)
        if is_next or _TAG_ENDS.match(text, found.end(), limit) is not None:
            return found.start()
    return limit


def _as_value(written: bytes, quote: bytes, repairs: set[str]) -> bytes:
    made = mended_references(written, repairs)
    if b"<" in made:
        repairs.add(LESS_THAN)
    if quote in made:
        repairs.add(ATTRIBUTES)
    return made.replace(b"<", b"&lt;").replace(quote, b"&quot;" if quote == b'"' else b"&apos;")


# A new list (OPML 2.0)


class OutlineEntry(NamedTuple):
    title: str
    url: str
    site: str
    """URL of the feed's page; may be empty."""


def compose_opml(title: str, feeds: Iterable[OutlineEntry]) -> bytes:
    outlines = "".join(map(_outline, feeds))
    made = (
        '<?xml version="1.0" encoding="utf-8"?>\n<opml version="2.0">\n'
        f"<head><title>{escape(title)}</title></head>\n<body>\n{outlines}</body>\n</opml>\n"
    )
    return without_controls(made.encode("utf-8", "replace"))


def _outline(feed: OutlineEntry) -> str:
    # Readers write `rss` for every format.
    name = quoteattr(feed.title)
    site = f" htmlUrl={quoteattr(feed.site)}" if feed.site else ""
    return f'<outline type="rss" text={name} title={name} xmlUrl={quoteattr(feed.url)}{site}/>\n'
