"""Find and change the child elements of entries in XML (R22): all else stays, byte for byte."""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from typing import Final, NamedTuple

from wholefeed.core.compose.compose import synthesize
from wholefeed.core.model import (
    ATOM_NAMESPACES,
    DC_NS,
    DCTERMS_NS,
    RSS_090_NS,
    RSS_10_NS,
    RSS_NAMESPACES,
    SEPARATOR,
    WELL_KNOWN_PREFIXES,
    Family,
)
from wholefeed.core.parse.expat import Guard
from wholefeed.core.parse.limits import UNLIMITED
from wholefeed.core.text.markup import attribute_of, escape

_ENTRY_DEPTH: Final = {Family.ATOM: 2, Family.RSS: 3, Family.RDF: 2}  # the root has depth 1


class EntryChild(NamedTuple):
    """Offsets are in the combined document."""

    kind: str
    """`kind_of` the namespace, and the name."""
    start: int
    inner: int
    """Start of the content."""
    end: int
    is_empty: bool
    media_type: str
    said: str = ""
    """Text without markup, of the kinds that the caller reads."""
    is_elsewhere: bool = False
    """Whether its content stands under another URL (RFC 4287, 4.1.3.2)."""


class EntryChildren(NamedTuple):
    start: int
    end: int
    children: list[EntryChild]


def find_children(
    texts: Sequence[bytes], family: Family, namespace: str | None, *, reads: Container[str] = ()
) -> tuple[bytes, list[EntryChildren]]:
    """Return a document of these entries, and each entry's place and children in it.

    `namespace` is the default one of `texts` (None: the usual one). `reads` names the kinds of children with
    text of interest.
    """
    made = synthesize(family, "2.0", texts, namespace=namespace)
    found, start = list[EntryChildren](), made.index(texts[0]) if texts else 0
    for text, children in zip(texts, _children(made, _ENTRY_DEPTH[family], reads), strict=True):
        end = start + len(text)
        found.append(EntryChildren(start, end, children))
        start = end + len(SEPARATOR[family])
    return made, found


def _children(text: bytes, depth: int, reads: Container[str]) -> list[list[EntryChild]]:
    """Return children by entry; entries stand at `depth`."""
    guard = Guard(max_depth=UNLIMITED)
    found: list[list[EntryChild]] = []
    opened: list[tuple[str, int, str, bool]] = []
    said: list[str] = []
    level = 0

    def began(name: str, attributes: list[str]) -> None:
        nonlocal level
        level += 1
        space, _, local = name.rpartition("}")
        if level == depth and local in ("entry", "item"):
            found.append([])
        elif level == depth + 1:
            kind = f"{kind_of(space)} {local}"
            if attribute_of(attributes, "mode") == "base64":  # Atom 0.3: no text can stand in front of it
                kind += " base64"
            media_type = (attribute_of(attributes, "type") or "").strip().lower()
            is_elsewhere = attribute_of(attributes, "src") is not None
            opened.append((kind, guard.parser.CurrentByteIndex, media_type, is_elsewhere))
            if kind in reads:
                said.clear()
                guard.parser.CharacterDataHandler = said.append

    def ended(_: str) -> None:
        nonlocal level
        if level == depth + 1:
            kind, start, media_type, is_elsewhere = opened.pop()
            end, inner = guard.end_of(start), guard.end_of_tag(start)
            guard.parser.CharacterDataHandler = None
            if found:
                is_empty = text[inner - 2 : inner] == b"/>"
                text_of = "".join(said)
                found[-1].append(
                    EntryChild(kind, start, inner, end, is_empty, media_type, text_of, is_elsewhere)
                )
                said.clear()
        level -= 1

    guard.parser.StartElementHandler, guard.parser.EndElementHandler = began, ended
    try:
        guard.read(text)
    finally:
        guard.close()
    return found


def kind_of(namespace: str) -> str:
    """Return one word for all namespaces of Atom, or RSS; Apple's namespace varies in case."""
    if namespace in ATOM_NAMESPACES:
        return "atom"
    return "rss" if namespace in _RSS_LIKE else _KINDS.get(namespace.lower(), "other")


_RSS_LIKE: Final = RSS_NAMESPACES | {RSS_10_NS, RSS_090_NS}
_KINDS: Final = {
    DC_NS: "dc",
    DCTERMS_NS: "dcterms",
    **{WELL_KNOWN_PREFIXES[prefix]: prefix for prefix in ("content", "itunes", "podcast", "sy")},
}

Edit = tuple[int, int, bytes]
"""Start and end of a part, and its replacement."""


def apply_edits(text: bytes, edits: Iterable[Edit], start: int, end: int) -> bytes:
    """Return the part of a text from `start` to `end`, with edits that do not overlap."""
    pieces, position = list[bytes](), start
    for first, last, written in sorted(edits):
        pieces += (text[position:first], written)
        position = last
    return b"".join((*pieces, text[position:end]))


def tag_name(tag: bytes) -> bytes:
    return tag[1:].split(maxsplit=1)[0].rstrip(b">")


def write_child(entry: bytes, name: str, content: str, attributes: str = "") -> bytes:
    """Return an element with escaped text, in the namespace of the entry around it."""
    space, colon, _ = tag_name(entry[: entry.index(b">") + 1].removesuffix(b"/>")).rpartition(b":")
    written = b"%s%s%s" % (space, colon, name.encode())
    return b"<%s%s>%s</%s>" % (written, attributes.encode(), escape(content).encode(), written)
