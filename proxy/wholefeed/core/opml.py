"""Subscription lists in OPML: read, given other URLs, and made anew.

    document = read_opml(body)
    document.subscriptions[0].url           # "https://example.org/feed?a=1&b=2"
    document.with_urls([new, None])         # the first is changed; all else stays, byte for byte

    compose_opml("Feeds", [Listed(title, url, site)])

OPML is what readers make of it, so nobody's folders, attributes, order, comments, declaration or encoding are
touched: only the values of `xmlUrl` are, whatever its letters' case, on `outline` elements; and those of the
`htmlUrl` beside it where that is asked for.
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
"""Of one list: thirty thousand feeds with all that readers write about them."""
MAX_DEPTH: Final = 64
"""Folders in folders."""
MAX_TAG_BYTES: Final = 1 << 18
"""Of a start tag; some of up to twice that get by. A list is read on a thread, and between two tags the
server's others have their turn (docs/faults.md row 111)."""
MAX_ELEMENTS: Final = 50_000
"""Each costs a fifth of a millisecond by the time that its URL is another."""


def read_opml(body: bytes) -> OpmlDocument:
    """Read a subscription list.

    What many exports get wrong is put right: bare ampersands, entities of HTML, character references to
    nothing, control characters, bytes that are no UTF-8, and blanks before the XML declaration; markup and
    quotes in the values of outlines. Everything else that is not well-formed is refused with line and column:
    which feeds and folders there are is not for guessing, and a list that lost feeds without a word is worse
    than none.

    Raises:
        ParseError: `not-opml`; or it is not readable: `malformed-xml`, `dtd-forbidden`, `xml-limit`,
            `unsupported-encoding`, `unsupported-format`.
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
        return _read_repaired(body, decoded)
    mark = body[: decoded.encoding.mark_bytes]
    repairs = tuple(_encoding_repairs(decoded))
    return OpmlDocument(decoded.text, mark, _codec(body, decoded), *found, repairs)


class OpmlDocument(NamedTuple):
    """A subscription list as it was read."""

    text: bytes
    """In UTF-8, without a byte order mark."""
    mark: bytes
    """The byte order mark."""
    codec: str
    """What it goes out in."""
    subscriptions: tuple[OutlineSubscription, ...]
    """In the order of the document."""
    sites: tuple[OutlineSubscription, ...] = ()
    """The `htmlUrl` of subscriptions that have one, in the same way."""
    repairs: tuple[str, ...] = ()
    """What was put right so that it could be read, by name."""

    def with_urls(self, urls: Sequence[str | None], sites: Sequence[str | None] | None = None) -> bytes:
        """Return the document with other URLs.

        Args:
            urls: One for each subscription; None: it stays as it is, byte for byte.
            sites: The same for each `htmlUrl`; None: all of them stay.
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
    """One feed of a list."""

    url: str
    line: int
    """Where its start tag ends, from 1."""
    start: int
    """Where its URL stands in the text of the document, quotes included."""
    end: int


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
    """Return what the document goes out in: what it came in, if that gives the same bytes again.

    That is what it declares, to the letter: by the Encoding Standard a document is read as windows-1252 that
    says ISO-8859-1 or US-ASCII, but who takes it at its word must be able to read what is put into it.

    Raises:
        ParseError: `unsupported-encoding`.
    """
    encoding = decoded.encoding
    if UTF8 in (encoding.stated, decoded.used):
        return UTF8
    for codec in (encoding.declared, encoding.codec):
        with suppress(LookupError, ValueError):
            if from_utf8(decoded.text, codec) == body[encoding.mark_bytes :]:
                return codec
    raise ParseError(
        f"expected text in {encoding.declared or encoding.codec}, got something else: save the list as UTF-8",
        slug="unsupported-encoding",
    )


def _found(text: bytes) -> tuple[tuple[OutlineSubscription, ...], tuple[OutlineSubscription, ...]]:
    """Return the subscriptions, and their sites."""
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
            for kind, url, start, end in _urls(text, parser.CurrentByteIndex, attributes):
                found[kind].append(OutlineSubscription(url, parser.CurrentLineNumber, start, end))

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


def _urls(text: bytes, at: int, attributes: list[str]) -> Iterator[tuple[str, str, int, int]]:
    """Yield kind, value and place of each URL in the start tag of an outline, if one is a feed's."""
    values = dict(zip(attributes[::2], attributes[1::2], strict=True))
    if any(name.lower() == "xmlurl" for name in values):
        for written, start, end in attribute_places(text, at).quoted:
            name = written.decode()
            kind = name.lower()
            if kind in ("xmlurl", "htmlurl") and name in values:
                yield kind, values[name], start, end


# What many exports of subscription lists get wrong, put right

_ENCODING: Final = "encoding"
"""The repair of a text that should be in UTF-8 and is not."""


def _encoding_repairs(decoded: Decoded) -> set[str]:
    return {_ENCODING} if decoded.encoding.stated == UTF8 and decoded.used else set()


def _read_repaired(body: bytes, decoded: Decoded) -> OpmlDocument:
    """Read a list that is not well-formed, after what many exports get wrong was put right.

    Raises:
        ParseError: That does not help.
    """
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
    """Return the text with what can be put right in it; `repairs` gains the names of what was done.

    Raises:
        ParseError: `xml-limit`: there are more faults, or more pieces of markup, than a list can have;
            `malformed-xml`: a tag ended too soon, so that its feed would be lost.
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
                break  # no list is well-formed that has it: what follows need not be looked at
            pieces.append(_mended_piece(cleaned, max(token.start, position), token, repairs))
    except TooManyRepairsError as exc:
        raise ParseError(
            "expected a list that can be repaired, got too much markup", slug="xml-limit"
        ) from exc
    return b"".join(pieces)


def _without_misplaced(text: bytes, repairs: set[str]) -> bytes:
    """Return a list without control characters, its own document type and blanks before its declaration.

    Raises:
        ParseError: `dtd-forbidden`: the document type declares more than HTML's entities.
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
    """Return what of a token stands behind a place, its references put right.

    Raises:
        ParseError: `malformed-xml`: it is a text with a URL in it.
        TooManyError: There is no end of ampersands.
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
    """Escape what stands bare in the values of an outline, as publishers' descriptions do in lists.

    Returns:
        The start tag, which may go up to a limit, and where it ended as it was written; None: it cannot be
        said for certain where its values end.

    Raises:
        TooManyError: There is no end of ampersands, or nothing `left` of the tokens that may be looked at.
    """
    if left < 0:
        raise TooManyRepairsError
    position = start + len(b"<outline")
    pieces, done = [text[start:position]], set[str]()
    while (attribute := _ATTRIBUTE_BEGINS.match(text, position, limit)) is not None:
        end = _end_of_value(text, attribute, limit)
        value = text[attribute.end() : end]
        if _URL_BEGINS.search(value):
            return None  # a quote lacks: the outline would lose its feed
        pieces += [attribute[0], _as_value(value, attribute[2], done), attribute[2]]
        position = end + 1
    tag_ends = _TAG_ENDS.match(text, position, limit)
    if tag_ends is None:
        return None
    repairs |= done
    return b"".join([*pieces, tag_ends[1]]), tag_ends.end(1)


_LOOKED_AT: Final = (b'"', b"'", b">")
"""In such a tag; each costs what a piece of markup does."""
_QUOTES_AND_TAGS: Final = {quote: re.compile(quote + rb"|<(?=[A-Za-z/])|>") for quote in (b'"', b"'")}
_OF_OUTLINES: Final = frozenset(
    {b"text", b"title", b"type", b"xmlurl", b"htmlurl", b"url", b"description", b"language", b"version"}
    | {b"category", b"created", b"iscomment", b"isbreakpoint"}
)
"""OPML 2.0, in small letters."""


def _end_of_value(text: bytes, attribute: re.Match[bytes], limit: int) -> int:
    """Return where the quote stands behind which the next attribute or the end of the tag follows.

    In a tag of HTML the attributes are HTML's, but for those that only outlines have.
    """
    is_in_tag = False
    for found in _QUOTES_AND_TAGS[attribute[2]].finditer(text, attribute.end(), limit):
        if found[0] in (b"<", b">"):
            is_in_tag = found[0] == b"<"
            continue
        another = _ATTRIBUTE_BEGINS.match(text, found.end(), limit)
        is_next = another is not None and not (is_in_tag and another[1].lower() not in _OF_OUTLINES)
        if is_next or _TAG_ENDS.match(text, found.end(), limit) is not None:
            return found.start()
    return limit


def _as_value(written: bytes, quote: bytes, repairs: set[str]) -> bytes:
    """Return what can stand between such quotes; `repairs` gains the names of what was done."""
    made = mended_references(written, repairs)
    if b"<" in made:
        repairs.add(LESS_THAN)
    if quote in made:
        repairs.add(ATTRIBUTES)
    return made.replace(b"<", b"&lt;").replace(quote, b"&quot;" if quote == b'"' else b"&apos;")


# A list made anew (OPML 2.0)


class OutlineEntry(NamedTuple):
    """One feed of the list."""

    title: str
    url: str
    """To subscribe to."""
    site: str
    """Of the page that it is about; may be empty."""


def compose_opml(title: str, feeds: Iterable[OutlineEntry]) -> bytes:
    """Return a list of such feeds, in order. Their type is `rss`: readers write that for every format."""
    outlines = "".join(map(_outline, feeds))
    made = (
        '<?xml version="1.0" encoding="utf-8"?>\n<opml version="2.0">\n'
        f"<head><title>{escape(title)}</title></head>\n<body>\n{outlines}</body>\n</opml>\n"
    )
    return without_controls(made.encode("utf-8", "replace"))


def _outline(feed: OutlineEntry) -> str:
    name = quoteattr(feed.title)
    site = f" htmlUrl={quoteattr(feed.site)}" if feed.site else ""
    return f'<outline type="rss" text={name} title={name} xmlUrl={quoteattr(feed.url)}{site}/>\n'
