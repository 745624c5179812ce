"""Make a document well-formed (docs/repair.md, docs/design.md#repair; docs/faults.md rows 45, 49, 49a, 59).

Well-formed text stays byte for byte. The cost is linear for any input. Each element that begins in the result
also ends in it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum, auto
from html.entities import html5
from itertools import chain, islice
from operator import attrgetter
from typing import Final, NamedTuple

from wholefeed.core.model import WELL_KNOWN_PREFIXES
from wholefeed.core.parse.doctypes import without_subset
from wholefeed.core.parse.limits import MAX_ELEMENTS, ParseError
from wholefeed.core.text.markup import quoteattr

# Names of repairs, for `DocumentRepaired`

AFTER_END: Final = "after-end"
AMPERSANDS: Final = "ampersands"
ATTRIBUTES: Final = "attributes"
CHARACTER_REFERENCES: Final = "character-references"
COMMENTS: Final = "comments"
CONTROL_CHARACTERS: Final = "control-characters"
DECLARATION: Final = "declaration"
DOCTYPE: Final = "doctype"
END_TAGS: Final = "end-tags"
ENTITIES: Final = "entities"
LESS_THAN: Final = "less-than"
PREFIXES: Final = "prefixes"
ROOT: Final = "root"
UNESCAPED_HTML: Final = "unescaped-html"
VERSION: Final = "version"


def mend(text: bytes) -> Mended | None:
    """Return a document in UTF-8 with its defects repaired; None if it is no feed, or beyond repair.

    Raises:
        ParseError: `dtd-forbidden`: its DOCTYPE declares more than HTML's entities.
    """
    repairs: set[str] = set()
    cleaned = without_controls(text)
    if len(cleaned) != len(text):
        repairs.add(CONTROL_CHARACTERS)
    typed, cleaned = cleaned, without_subset(cleaned, late_declaration(cleaned))
    if len(typed) != len(cleaned):
        repairs.add(DOCTYPE)
    written, cleaned = cleaned, _with_root_tag(cleaned)
    if len(written) != len(cleaned):
        repairs.add(ROOT)
    try:
        return _Mender(cleaned, repairs).run()
    except TooManyRepairsError:
        return None


class Mended(NamedTuple):
    text: bytes
    repairs: tuple[str, ...]
    """Sorted names."""
    breaks_off: bool
    """Whether the document ended before its root; its incomplete end is dropped."""
    goes_on: bool
    """Whether entries or another root followed its end; they are dropped."""


class TooManyRepairsError(Exception):
    """An excess of defects. `mend` does not raise this error."""


_BLANK: Final = b" \t\r\n"
# Names of roots, without prefix and in lower case, and of their entries.
_ENTRY_OF_ROOT: Final = {b"rss": b"item", b"rdf": b"item", b"channel": b"item", b"feed": b"entry"}
# Lower-case names of elements between the root and the entries.
_HOLDERS: Final = frozenset({b"channel", b"items", b"entries"})


# The states of a document, and the ways from one to another:
#    prolog --start tag of a feed--> inside --end tag of the root--> behind
#    inside --a text element begins--> text element --its end tag--> inside
#    text element --tags that do not nest--> raw --its end tag--> inside: all of its content is escaped
#    inside, text element, raw --the document breaks off--> behind: its last whole entry ends it,
#        but the document is whole if the element that contains the entries has ended
#    behind --anything but comments--> the document ends before it; the rest is searched for entries alone
class _Mender:
    """The repair of one document without control characters; `run` may be called once."""

    def __init__(self, text: bytes, repairs: set[str]) -> None:
        self._text = text
        # Has earlier repairs, and gains further ones.
        self._repairs = repairs
        self._edits = _Edits(min(MAX_EDITS, _FREE_EDITS + len(text) // _BYTES_PER_EDIT))
        self._elements = _Elements(self._edits)
        self._starts_at = self._skip_to_declaration()
        self._root: _OpenElement | None = None
        self._prefix = b""
        self._entry = b""
        self._entry_names: frozenset[bytes] = frozenset()
        """Lower-case names of entries, without and with the root's prefix."""
        self._holder = b""
        """Lower-case name of the element that contains entries."""
        self._is_over = False
        """Whether that element has ended, and no other has begun."""
        self._texts: frozenset[bytes] = frozenset()
        self._inside: _TextElement | None = None
        self._end_tags: dict[bytes, int] = {}
        """Last end tag before the next entry, by lower-case name of text elements."""
        self._entry_at = -1
        """End of the text searched for `_end_tags`."""

    def run(self) -> Mended | None:
        """Return the mended document; None without a feed's root, or with too many tokens."""
        found = iter(tokens(self._text, self._starts_at))
        if not self._read_prolog(found):
            return None
        goes_on = False
        ends_at = len(self._text)
        elements = self._elements
        handlers: Mapping[RepairMark, Callable[[Token], None]] = {
            RepairMark.TEXT: self._on_text,
            RepairMark.START: self._on_start,
            RepairMark.EMPTY: self._on_empty,
            RepairMark.END: self._on_end,
            RepairMark.CDATA: lambda _token: None,
            RepairMark.COMMENT: self._on_comment_or_instruction,
            RepairMark.INSTRUCTION: self._on_comment_or_instruction,
            RepairMark.STRAY: self._on_stray,
            RepairMark.DOCTYPE: self._on_stray,
            RepairMark.SUBSET: self._on_stray,
        }
        most = most_tokens(self._text)
        for number, token in enumerate(found):
            if number > most:
                return None
            if elements.open and token.mark is not RepairMark.CUT:
                handlers[token.mark](token)
            elif elements.open:
                ends_at = token.start
                break
            elif _is_junk(self._text, token):
                self._repairs.add(AFTER_END)
                ends_at = token.start
                goes_on = _holds_entries(self._text, chain([token], islice(found, most)))
                break
        breaks_off = not self._is_whole(ends_at)
        if elements.open and not breaks_off:
            self._repairs.add(END_TAGS)
        self._end(ends_at)
        self._declare()
        return Mended(self._edits.apply(self._text), tuple(sorted(self._repairs)), breaks_off, goes_on)

    # Around the root.

    def _skip_to_declaration(self) -> int:
        """Drop text before the XML declaration (docs/faults.md row 45); return the declaration's start."""
        start = late_declaration(self._text)
        if start:
            self._drop(0, start, DECLARATION)
        return start

    def _read_prolog(self, found: Iterator[Token]) -> bool:
        root_at = late_root(self._text)
        for token in found:
            if token.mark in (RepairMark.START, RepairMark.EMPTY) and token.start >= root_at:
                return self._begin(token)
            if token.mark is RepairMark.CUT:
                break
            if token.mark is RepairMark.SUBSET:
                message = "expected a DOCTYPE at the beginning, got one with an internal subset elsewhere"
                raise ParseError(message, slug="dtd-forbidden")
            if _is_junk(self._text, token) and not self._is_declaration(token):
                self._drop(token.start, token.end, _DROPPED_AS.get(token.mark, DECLARATION))
        return False

    def _is_declaration(self, token: Token) -> bool:
        written = self._text[token.start : token.end]
        return token.start == self._starts_at and _WELL_FORMED_DECLARATION.fullmatch(written) is not None

    def _begin(self, token: Token) -> bool:
        folded = token.name.lower()
        self._prefix, _, name = folded.rpartition(b":")
        if name not in _ENTRY_OF_ROOT:
            return False
        self._entry = _ENTRY_OF_ROOT[name]
        self._entry_names = frozenset({self._entry, folded[: -len(name)] + self._entry})
        self._holder = b"channel" if name == b"rss" else folded
        self._texts = _ATOM_TEXTS if self._entry == b"entry" else _RSS_TEXTS
        self._root = self._elements.begin(token, self._changed_tag(token))
        if token.mark is RepairMark.EMPTY:
            self._elements.end()
        return True

    def _is_whole(self, at: int) -> bool:
        """Return whether a document that ends here lacks only its last end tags (docs/faults.md row 49b)."""
        if not self._elements.open:
            return True
        # No entry follows once the element that contains entries has ended, or its end tag has begun.
        innermost, rest = self._elements.open[-1], self._text[at:].rstrip(_BLANK)
        end_tag = b"</" + innermost.name
        if self._is_over and innermost is self._root:
            return not rest or (rest.startswith(b"</") and end_tag.startswith(rest))
        return innermost.name.lower() == self._holder and rest == end_tag

    def _end(self, at: int) -> None:
        """End the document without incomplete elements (docs/faults.md row 49)."""
        elements = self._elements
        partial = next((n for n, e in enumerate(elements.open) if n and e.name.lower() not in _HOLDERS), None)
        if partial is not None:
            at = elements.forget_from(partial)
        ends = b"".join(b"</%s>" % each.name for each in reversed(elements.open))
        if ends or at < len(self._text):
            self._edits.replace(at, len(self._text), ends)

    def _declare(self) -> None:
        """Declare undeclared prefixes in the root (Namespaces in XML 1.0, section 5)."""
        prefixes = [prefix.decode() for prefix in self._elements.undeclared]
        if not prefixes:
            return
        assert self._root is not None, "prefixes are used from the root on"
        self._repairs.add(PREFIXES)
        namespaces = [_KNOWN_NAMESPACES.get(prefix, UNKNOWN_NAMESPACE + prefix) for prefix in prefixes]
        declarations = [f" xmlns:{p}={quoteattr(uri)}" for p, uri in zip(prefixes, namespaces, strict=True)]
        added = "".join(declarations).encode()
        length = 1 + len(self._root.name)
        if self._root.edit is None:
            at = self._root.tag.start + length
            self._edits.replace(at, at, added)
        else:
            tag = self._root.edit.made
            self._root.edit.made = tag[:length] + added + tag[length:]

    def _drop(self, start: int, end: int, repair: str) -> None:
        self._repairs.add(repair)
        self._edits.replace(start, end, b"")

    # Inside of it.

    def _on_text(self, token: Token) -> None:
        if self._inside is not None and self._inside.is_raw:
            return
        written = self._text[token.start : token.end]
        made = mended_references(written, self._repairs)
        if b"]]>" in made:
            self._repairs.add(LESS_THAN)
            made = made.replace(b"]]>", b"]]&gt;")
        if made != written:
            self._edits.replace(token.start, token.end, made)

    def _on_comment_or_instruction(self, token: Token) -> None:
        if not self._is_raw and _is_junk(self._text, token):
            self._drop(token.start, token.end, _DROPPED_AS[token.mark])

    def _on_stray(self, token: Token) -> None:
        if self._inside is not None:
            self._turn_raw(self._inside)
            return
        self._repairs.add(LESS_THAN)
        written = self._text[token.start : token.end]
        self._edits.replace(token.start, token.end, _escaped_references(written))

    def _on_start(self, token: Token) -> None:
        self._is_over = False
        folded = token.name.lower()
        if folded in self._entry_names:
            self._end_before_entry(token)
        if self._inside is None or not self._is_text(token, self._inside):
            element = self._elements.begin(token, self._changed_tag(token))
            if self._inside is None and folded in self._texts:
                self._enter_text(element)

    def _end_before_entry(self, token: Token) -> None:
        # No entry stands in a text, in a leaf, or in another entry: end tags are missing. Only an entry of
        # Atom may stand in another: in a feed, an extension, or content that is XML.
        elements, at = self._elements, token.start
        depth = len(elements.open)
        is_in_text = self._inside is not None
        self._end_unclosed(at)
        while elements.open[-1].name in _LEAVES and not self._may_hold_entry(elements.open[-1]):
            elements.close(at)
        around = elements.meant_by(token.name)
        if around is not None and (is_in_text or self._entry == b"item" or self._is_unended(around)):
            elements.close_inside(around, at)
            elements.close(at)
        if is_in_text or len(elements.open) < depth:
            self._repairs.add(END_TAGS)

    def _is_unended(self, name: bytes) -> bool:
        # Whether no element, out to the innermost entry, can hold the entry that begins.
        for element in islice(reversed(self._elements.open), _MAX_LOOKED_AT):
            if element.name == name:
                return True
            if self._may_hold_entry(element):
                break
        return False

    def _may_hold_entry(self, element: _OpenElement) -> bool:
        prefix, _, local = element.name.lower().rpartition(b":")
        is_xml = local == b"content" and _XML_TYPE.search(element.tag.attributes) is not None
        return is_xml or local == b"feed" or prefix not in (b"", self._prefix)

    def _on_empty(self, token: Token) -> None:
        self._is_over = False
        if self._inside is None or not self._is_text(token, self._inside):
            self._elements.empty(token, self._changed_tag(token))

    def _on_end(self, token: Token) -> None:
        elements = self._elements
        if self._inside is not None and self._is_end_in_text(token, self._inside):
            return
        name = elements.meant_by(token.name)
        if name is not None:
            if elements.close_inside(name, token.start):
                self._repairs.add(END_TAGS)
            elements.end()
            self._is_over = name.lower() == self._holder
            if name != token.name:
                self._repairs.add(END_TAGS)
                self._edits.replace(token.start, token.end, b"</%s>" % name)
            return
        innermost = elements.open[-1]
        if innermost is not self._root and innermost.tag.end < token.start and not innermost.has_children:
            elements.close(token.start)  # its own end tag, misspelt
        self._drop(token.start, token.end, END_TAGS)

    def _changed_tag(self, token: Token) -> bytes | None:
        """Return a start tag as valid XML; None if it is valid."""
        if token.is_odd:
            self._repairs.add(ATTRIBUTES)
            made = b"".join(
                b' %s="%s"' % (name, mended_references(value, self._repairs).replace(b'"', b"&quot;"))
                for name, value in _odd_attributes(token.attributes).items()
            )
            return b"<%s%s%s>" % (token.name, made, b"/" if token.mark is RepairMark.EMPTY else b"")
        if b"&" not in token.attributes and b"xmlns:" not in token.attributes:
            return None
        written = self._text[token.start : token.end]
        declared = _NO_NAMESPACE.sub(b"", written)
        if declared != written:
            self._repairs.add(PREFIXES)
        changed = mended_references(declared, self._repairs)
        return None if changed == written else changed

    # Inside of a text element; only one is open at a time. While all tags in it nest, its content is XML and
    # stays. Otherwise all of its content counts as HTML, and is escaped when the element ends.

    @property
    def _is_raw(self) -> bool:
        return self._inside is not None and self._inside.is_raw

    def _enter_text(self, element: _OpenElement) -> None:
        # An XML type means markup, not text (RSS 2.0; RFC 4287, section 3.1.1).
        attributes = element.tag.attributes
        if _MARKUP_TYPE.search(attributes):
            return
        self._inside = _TextElement(
            element,
            is_html=self._texts is _RSS_TEXTS or _HTML_TYPE.search(attributes) is not None,
            depth=len(self._elements.open),
            repairs=frozenset(self._repairs),
            undeclared=len(self._elements.undeclared),
            is_closed=self._has_end_tag(element.name, element.tag.end),
        )

    def _has_end_tag(self, name: bytes, at: int) -> bool:
        """Return whether such an end tag comes before the next entry; `at` must ascend between calls."""
        if at > self._entry_at:
            self._end_tags.clear()
            self._entry_at = len(self._text)
            for match in _END_TAG_OR_ENTRY.finditer(self._text, at):
                if match[1] is None:
                    self._entry_at = match.start()
                    break
                self._end_tags[match[1].lower()] = match.start()
        return self._end_tags.get(name.lower(), -1) >= at

    def _is_text(self, token: Token, inside: _TextElement) -> bool:
        # Another field's tag ends a text element without an end tag.
        if not inside.is_closed and token.name in _BESIDE:
            self._end_unclosed(token.start)
        elif token.is_odd:
            self._turn_raw(inside)
        return self._is_raw

    def _end_unclosed(self, at: int) -> None:
        inside = self._inside
        if inside is not None:
            if len(self._elements.open) > inside.depth:
                self._turn_raw(inside)
            self._leave_text(inside, at)
            while len(self._elements.open) >= inside.depth:
                self._elements.close(at)
            self._repairs.add(END_TAGS)

    def _is_end_in_text(self, token: Token, inside: _TextElement) -> bool:
        """Handle an end tag in a text; return false if it ends the text element, or one around it."""
        is_deeper = len(self._elements.open) > inside.depth
        folded = token.name.lower()
        if folded == inside.element.name.lower():
            if is_deeper:
                self._turn_raw(inside)
            self._leave_text(inside, token.start)
            return False
        if folded in self._around and self._elements.meant_by(token.name) is not None:
            self._leave_text(inside, token.start)
            return False
        if is_deeper and self._elements.open[-1].name == token.name:
            self._elements.end()
        elif self._is_own_end(token.name, inside):
            self._end_unclosed(token.start)
            self._edits.replace(token.start, token.end, b"")
        else:
            self._turn_raw(inside)
        return True

    @property
    def _around(self) -> tuple[bytes, ...]:
        assert self._root is not None, "the text element stands in it"
        return (*self._entry_names, b"channel", self._root.name.lower())

    def _is_own_end(self, name: bytes, inside: _TextElement) -> bool:
        """Return whether a wrong end tag stands for the text element's own, and is not HTML."""
        folded = name.lower()
        # A tag misspelt by a letter does; so does that of another element of feeds if the own one is missing.
        if _is_misspelt(folded, inside.element.name.lower()):
            return True
        return not inside.is_closed and name in _BESIDE and not self._elements.is_open(folded)

    def _turn_raw(self, inside: _TextElement) -> None:
        if not inside.is_raw:
            inside.is_raw = True
            self._elements.forget_inside(inside.depth)

    def _leave_text(self, inside: _TextElement, at: int) -> None:
        self._inside = None
        if inside.is_raw:
            self._repairs.clear()
            self._repairs.update(inside.repairs, {UNESCAPED_HTML})
            self._elements.forget_undeclared(inside.undeclared)
            start = inside.element.tag.end
            self._edits.replace(start, at, _as_text(self._text[start:at], is_html=inside.is_html))


@dataclass(slots=True)
class _TextElement:
    element: _OpenElement
    is_html: bool
    """Whether it may contain escaped HTML, rather than plain text."""
    depth: int
    """Open elements, itself included."""
    repairs: frozenset[str]
    """Done before it."""
    undeclared: int
    is_closed: bool
    """Whether its own end tag comes before the next entry."""
    is_raw: bool = False


_RSS_TEXTS: Final = frozenset(
    {b"title", b"description", b"content:encoded", b"itunes:summary", b"itunes:subtitle"}
    | {b"media:title", b"media:description", b"googleplay:description", b"excerpt:encoded"}
)
_ATOM_TEXTS: Final = frozenset({b"title", b"subtitle", b"summary", b"content", b"rights", b"tagline"})
# Elements that contain text or nothing.
_LEAVES: Final = (
    _RSS_TEXTS
    | _ATOM_TEXTS
    | {b"link", b"guid", b"pubDate", b"category", b"comments", b"enclosure"}
    | {b"language", b"generator", b"docs", b"ttl", b"copyright", b"lastBuildDate", b"managingEditor"}
    | {b"webMaster", b"dc:creator", b"dc:date", b"id", b"updated", b"published", b"modified", b"issued"}
    | {b"created", b"icon", b"logo", b"uri", b"email"}
)
# Elements before which an unclosed text element ends. Some are HTML's too: they count only there.
_BESIDE: Final = _LEAVES.union(
    (b"item", b"entry", b"author", b"contributor", b"image", b"textInput", b"atom:link")
)
_MARKUP_TYPE: Final = re.compile(rb"\stype\s*+=\s*+[\"']\s*+(?:xhtml|[^\"']*[/+]xml)\s*+[\"']", re.IGNORECASE)
_XML_TYPE: Final = re.compile(rb"\stype\s*+=\s*+[\"'][^\"'/]*+/(?:[^\"']*\+)?xml\b", re.IGNORECASE)
_HTML_TYPE: Final = re.compile(rb"\stype\s*+=\s*+[\"']\s*+(?:text/)?html\s*+[\"']", re.IGNORECASE)


def _is_misspelt(written: bytes, meant: bytes) -> bool:
    pairs = enumerate(zip(written, meant, strict=False))
    at = next((place for place, (one, other) in pairs if one != other), min(len(written), len(meant)))
    # One letter may be missing, extra or different, or two may be swapped.
    left, right = written[at:], meant[at:]
    return (
        left == right[1:]
        or left[1:] in (right, right[1:])
        or (left[:2] == right[1::-1] and left[2:] == right[2:])
    )


_END_TAG_OR_ENTRY: Final = re.compile(
    rb"</(%s)\s*>|<(?:item|entry)(?=[\s/>])" % b"|".join(sorted(map(re.escape, _RSS_TEXTS | _ATOM_TEXTS))),
    re.IGNORECASE,
)


_ESCAPED_MARKUP: Final = re.compile(rb"&lt;(?:/?[A-Za-z]|!--)")


def _as_text(source: bytes, *, is_html: bool) -> bytes:
    # Partly escaped markup is not escaped twice.
    source = source.replace(b"<![CDATA[", b"").replace(b"]]>", b"")
    if is_html and not _ESCAPED_MARKUP.search(source):
        return _escaped_references(source)
    return mended_references(source, set()).replace(b"<", b"&lt;").replace(b">", b"&gt;")


# The elements that are open, and the edits

# Open elements to look at when an entry begins in another: each entry costs as much.
_MAX_LOOKED_AT: Final = 16
# Elements of HTML without content (WHATWG HTML, 13.1.2) that no feed format has.
_VOID: Final = frozenset({b"br", b"hr", b"img", b"input", b"wbr"})


class _Elements:
    def __init__(self, edits: _Edits) -> None:
        self.open: list[_OpenElement] = []
        self.undeclared: dict[bytes, None] = {}
        """Prefixes used out of scope, in order."""
        self._edits = edits
        self._names: dict[bytes, int] = {}
        self._declared: Counter[bytes] = Counter()

    def is_open(self, name: bytes) -> bool:
        return self._names.get(name, 0) > 0

    def meant_by(self, name: bytes) -> bytes | None:
        """Return the name of the innermost open element that an end tag means, in any case."""
        if self.open[-1].name == name:
            return name
        folded = name.lower()
        if not self._names.get(folded):
            return None
        # Callers close that element, so all elements that this search sees leave the stack.
        return next(each.name for each in reversed(self.open) if each.name.lower() == folded)

    def begin(self, tag: Token, made: bytes | None) -> _OpenElement:
        """Open an element; `made` replaces its start tag, None leaves it."""
        before = len(self._edits)
        edit = None if made is None else self._edits.replace(tag.start, tag.end, made)
        element = _OpenElement(tag, tag.name, self._declare(tag, made), before, edit)
        self.open.append(element)
        folded = tag.name.lower()
        self._names[folded] = self._names.get(folded, 0) + 1
        return element

    def empty(self, tag: Token, made: bytes | None) -> None:
        if made is not None:
            self._edits.replace(tag.start, tag.end, made)
        self._declared.subtract(self._declare(tag, made))

    def end(self) -> _OpenElement:
        element = self.open.pop()
        self._names[element.name.lower()] -= 1
        if element.declared:
            self._declared.subtract(element.declared)
        return element

    def close(self, at: int) -> None:
        # The element has no end tag of its own.
        element = self.end()
        if element.name not in _VOID:
            self._edits.replace(at, at, b"</%s>" % element.name)
        elif element.edit is None:
            self._edits.replace(element.tag.end - 1, element.tag.end - 1, b"/")
        else:
            element.edit.made = element.edit.made[:-1] + b"/>"

    def close_inside(self, name: bytes, at: int) -> bool:
        """End the elements inside the innermost one of that name; return whether there were any."""
        depth = len(self.open)
        while self.open[-1].name != name:
            self.close(at)
        return len(self.open) < depth

    def forget_inside(self, depth: int) -> None:
        """Drop elements beyond `depth`, and all edits inside the last one that stays."""
        while len(self.open) > depth:
            self.end()
        element = self.open[-1]
        del self._edits[element.edits_before + (element.edit is not None) :]

    def forget_from(self, place: int) -> int:
        element = self.open[place]
        while len(self.open) > place:
            self.end()
        del self._edits[element.edits_before :]
        return element.tag.start

    def forget_undeclared(self, since: int) -> None:
        while len(self.undeclared) > since:
            self.undeclared.popitem()

    def _declare(self, tag: Token, made: bytes | None) -> tuple[bytes, ...]:
        """Note the prefixes that a start tag uses; return those that it declares."""
        if self.open:
            self.open[-1].has_children = True
        attributes = tag.attributes if made is None else made[1 + len(tag.name) :]
        if b":" not in tag.name and b":" not in attributes:
            return ()
        used, declared = [], []
        if b":" in tag.name:
            used.append(tag.name.partition(b":")[0])
        for prefix, local in _PREFIX_AND_NAME.findall(attributes):
            if local and prefix == b"xmlns":
                declared.append(local)
            elif local:
                used.append(prefix)
        self._declared.update(declared)
        for prefix in used:
            if not self._declared[prefix] and prefix not in _XML_PREFIXES:
                self.undeclared[prefix] = None
        return tuple(declared)


@dataclass(slots=True)
class _OpenElement:
    tag: Token
    name: bytes
    declared: tuple[bytes, ...]
    edits_before: int
    edit: _Edit | None
    has_children: bool = False


MAX_EDITS: Final = 200_000
"""A document with more defects was never meant as XML."""
_FREE_EDITS: Final = 10_000
# Beyond `_FREE_EDITS`, a document with denser defects was not meant as XML either.
_BYTES_PER_EDIT: Final = 32


class _Edits(list["_Edit"]):
    """Changes of a text, in any order; removed ones count towards `most`."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self._left = most

    def replace(self, start: int, end: int, made: bytes) -> _Edit:
        """Note another text for a span that overlaps no other.

        Raises:
            TooManyRepairsError: `most` edits exist.
        """
        self._left -= 1
        if self._left < 0:
            raise TooManyRepairsError
        edit = _Edit(start, end, made)
        self.append(edit)
        return edit

    def apply(self, text: bytes) -> bytes:
        pieces, position = [], 0
        for edit in sorted(self, key=attrgetter("start")):
            assert edit.start >= position, "edits do not overlap"
            pieces += [text[position : edit.start], edit.made]
            position = edit.end
        pieces.append(text[position:])
        return b"".join(pieces)


@dataclass(slots=True)
class _Edit:
    start: int
    end: int
    made: bytes


# Namespace prefixes: their declarations, and the meaning of undeclared ones (docs/faults.md row 45)

# The declaration of a prefix that binds it to nothing (Namespaces in XML 1.0, section 5).
_NO_NAMESPACE: Final = re.compile(rb"\s++xmlns:[^\s=]++\s*+=\s*+(?:\"\"|'')")
UNKNOWN_NAMESPACE: Final = "urn:wholefeed:undeclared-prefix:"
"""Followed by the prefix: the namespace of an undeclared unknown prefix, the same in all documents."""
_PREFIX_AND_NAME: Final = re.compile(
    rb"\s([^\s=:\"']++)(?::([^\s=\"']++))?+\s*+=\s*+(?:\"[^\"]*+\"|'[^']*+')"
)
_KNOWN_NAMESPACES: Final = {
    **WELL_KNOWN_PREFIXES,
    "rdf": "http://www.w3.org/1999/02/22-rdf-syntax-ns#",
    "rdfs": "http://www.w3.org/2000/01/rdf-schema#",
    "rss": "http://purl.org/rss/1.0/",
    "admin": "http://webns.net/mvcb/",
    "annotate": "http://purl.org/rss/1.0/modules/annotate/",
    "audio": "http://media.tangent.org/rss/1.0/",
    "blogger": "http://schemas.google.com/blogger/2008",
    "cf": "http://www.microsoft.com/schemas/rss/core/2005",
    "ev": "http://purl.org/rss/1.0/modules/event/",
    "foaf": "http://xmlns.com/foaf/0.1/",
    "g": "http://base.google.com/ns/1.0",
    "gd": "http://schemas.google.com/g/2005",
    "icbm": "http://postneo.com/icbm",
    "openSearch": "http://a9.com/-/spec/opensearch/1.1/",
    "pingback": "http://madskills.com/public/xml/rss/module/pingback/",
    "prism": "http://prismstandard.org/namespaces/basic/2.0/",
    "rawvoice": "http://www.rawvoice.com/rawvoiceRssModule/",
    "spotify": "http://www.spotify.com/ns/rss",
    "svg": "http://www.w3.org/2000/svg",
    "taxo": "http://purl.org/rss/1.0/modules/taxonomy/",
    "trackback": "http://madskills.com/public/xml/rss/module/trackback/",
    "xlink": "http://www.w3.org/1999/xlink",
    "xsi": "http://www.w3.org/2001/XMLSchema-instance",
    "yt": "http://www.youtube.com/xml/schemas/2015",
}
_XML_PREFIXES: Final = (b"xml", b"xmlns")


# Characters and references that XML does not know, in text and in attribute values (docs/faults.md row 45)

_CONTROLS: Final = bytes(set(range(0x20)) - {0x09, 0x0A, 0x0D})
_NONCHARACTERS: Final = re.compile(rb"\xef\xbf[\xbe\xbf]")


def without_controls(text: bytes) -> bytes:
    """Return the text without characters that XML 1.0, section 2.2, forbids."""
    cleaned = text.translate(None, _CONTROLS)
    return _NONCHARACTERS.sub(b"", cleaned) if b"\xef\xbf" in cleaned else cleaned


MAX_REFERENCES: Final = 1_000_000
"""Per text or attribute value."""
_REFERENCE: Final = re.compile(
    rb"&(?:#(?:([0-9]{1,10}+)|[xX]([0-9a-fA-F]{1,8}+))|([A-Za-z][A-Za-z0-9]{0,31}+));|&"
)
_PREDEFINED: Final = frozenset({b"amp", b"lt", b"gt", b"quot", b"apos"})
_HTML_ENTITIES: Final = {
    name.removesuffix(";").encode(): text for name, text in html5.items() if name[-1:] == ";"
}


def mended_references(text: bytes, repairs: set[str]) -> bytes:
    """Return text or an attribute value with references that XML knows; `repairs` gains names.

    Raises:
        TooManyRepairsError: There are too many ampersands.
    """
    if text.count(b"&") > MAX_REFERENCES:  # each costs a hundred bytes of memory
        raise TooManyRepairsError

    done_up_to = 0

    def replaced(match: re.Match[bytes]) -> bytes:
        nonlocal done_up_to
        if match.start() < done_up_to:
            return b""
        # An entity of HTML becomes numbers. An ampersand that begins no known reference is escaped. Two
        # references to the halves of a UTF-16 pair become one to the character.
        name = match[3]
        if name in _PREDEFINED:
            return match[0]
        if name in _HTML_ENTITIES:
            repairs.add(ENTITIES)
            return "".join(f"&#{ord(each)};" for each in _HTML_ENTITIES[name]).encode()
        code = _code_of(match)
        if code >= 0:
            made, done_up_to = _character_reference(match, code)
            if made != match[0]:
                repairs.add(CHARACTER_REFERENCES)
            return made
        repairs.add(AMPERSANDS)
        return b"&amp;" + match[0][1:]

    return _REFERENCE.sub(replaced, text) if b"&" in text else text


def _code_of(reference: re.Match[bytes] | None) -> int:
    """Return the code point in a numeric reference, else -1."""
    if reference is None or reference[1] is reference[2] is None:
        return -1
    return int(reference[1]) if reference[1] is not None else int(reference[2], 16)


def _character_reference(written: re.Match[bytes], code: int) -> tuple[bytes, int]:
    """Return a valid reference to the character, or to U+FFFD, and where the written one ends."""
    if any(code in allowed for allowed in _ALLOWED_CHARACTERS):
        return written[0].replace(b"X", b"x", 1), written.end()
    following = _REFERENCE.match(written.string, written.end()) if code in _FIRST_HALVES else None
    second = _code_of(following)
    if following is None or second not in _SECOND_HALVES:
        return _REPLACEMENT, written.end()
    return b"&#%d;" % (((code - 0xD800) << 10) + (second - 0xDC00) + 0x10000), following.end()


_FIRST_HALVES: Final = range(0xD800, 0xDC00)
_SECOND_HALVES: Final = range(0xDC00, 0xE000)
# XML 1.0, production 2.
_ALLOWED_CHARACTERS: Final = (
    *(range(code, code + 1) for code in (0x09, 0x0A, 0x0D)),
    *(range(0x20, 0xD800), range(0xE000, 0xFFFE), range(0x10000, 0x110000)),
)
_REPLACEMENT: Final = b"&#65533;"


def _escaped_references(source: bytes) -> bytes:
    return source.replace(b"&", b"&amp;").replace(b"<", b"&lt;").replace(b">", b"&gt;")


# XML declarations, their look-alikes, and comments (docs/faults.md row 45; XML 1.0, productions 15, 16, 22
# and 23).

_PROLOG_BYTES: Final = 4096
_ROOT_TAG: Final = re.compile(rb"<(?:[A-Za-z_][\w.-]*+:)?+(?:rss|feed|RDF)[\s>]", re.IGNORECASE)
_DECLARATION: Final = re.compile(rb"<\?xml\s")


def late_declaration(text: bytes) -> int:
    """Return where the XML declaration begins if something precedes it, else 0."""
    declaration = _DECLARATION.search(text, 0, _PROLOG_BYTES)
    # A declaration behind the start of a feed belongs to its content.
    if declaration is None or _ROOT_TAG.search(text, 0, declaration.start()):
        return 0
    return declaration.start()


# More than a root's name, since texts about feeds contain that too.
_FEED_BEGINS: Final = re.compile(
    rb"<rss(?:\s[^<>]*+)?+>?+\s*+(?:<!--(?:[^<>-]|-(?!->))*+-->\s*+)?+<channel[\s>]"
    rb"|<(?:[A-Za-z_][\w.-]*+:)?+feed\s(?=[^<>]*(?:w3\.org/2005/Atom|purl\.org/atom/ns|xml:ns:atom))"
    rb"|<(?:[A-Za-z_][\w.-]*+:)?+RDF\s(?=[^<>]*w3\.org/1999/02/22-rdf-syntax-ns)",
    re.IGNORECASE,
)


def late_root(text: bytes) -> int:
    """Return where a feed's root begins if something precedes it, else 0."""
    root = _FEED_BEGINS.search(text, 0, 2 * _PROLOG_BYTES)
    return 0 if root is None else root.start()


_WELL_FORMED_DECLARATION: Final = re.compile(
    rb"<\?xml\s+version\s*=\s*(?:\"1\.[0-9]+\"|'1\.[0-9]+')"
    rb"(?:\s+encoding\s*=\s*(?:\"[A-Za-z][A-Za-z0-9._-]*\"|'[A-Za-z][A-Za-z0-9._-]*'))?"
    rb"(?:\s+standalone\s*=\s*(?:\"(?:yes|no)\"|'(?:yes|no)'))?\s*\?>"
)


_INSTRUCTION: Final = re.compile(rb"<\?(?!xml[\s?])[A-Za-z_\x80-\xff][\w.\x80-\xff-]*+[\s?]", re.IGNORECASE)


def _is_junk(text: bytes, token: Token) -> bool:
    """Return whether a token may not stand beside the root (XML 1.0, production 27)."""
    written = text[token.start : token.end]
    match token.mark:
        case RepairMark.TEXT:
            return bool(written.strip(_BLANK))
        case RepairMark.COMMENT:
            return b"--" in written[4:-3] or written.endswith(b"--->")  # production 15
        case RepairMark.INSTRUCTION:
            return _INSTRUCTION.match(written) is None
    return True


# Roots that do not stand as they should: in a page of HTML that shows nothing else, written `< rss`, or
# without the ">" of their start tag

_SPACED_ROOT_TAG: Final = re.compile(
    rb"<(\s+)((?:[A-Za-z_][\w.-]*+:)?+(?:rss|feed|RDF))(?=[\s>])", re.IGNORECASE
)


def _with_root_tag(text: bytes) -> bytes:
    # The root may be written `< rss` or `<rss <channel>`.
    unended = _UNENDED_ROOT_TAG.search(text, 0, 2 * _PROLOG_BYTES)
    if unended is not None and not _ROOT_TAG.search(text, 0, unended.start()):
        return text[: unended.end()] + b">" + text[unended.end() :]
    root = _SPACED_ROOT_TAG.search(text, 0, _PROLOG_BYTES)
    if root is None or _ROOT_TAG.search(text, 0, root.start()):
        return text
    end = re.compile(rb"</\s++(%s\s*+>)" % re.escape(root[2])).search(
        text, max(text.rfind(b"</"), root.end())
    )
    behind = (
        text[root.end(1) :] if end is None else text[root.end(1) : end.start()] + b"</" + text[end.start(1) :]
    )
    return text[: root.start(1)] + behind


_ROOT_LOOKED_AT_BYTES: Final = 1 << 16
_LOOKED_AT_TOKENS: Final = 1000
_PREFIXLESS_ROOTS: Final = frozenset({b"rss", b"feed"})
# Elements with text that a page does not show.
_UNSEEN_ELEMENTS: Final = frozenset({b"title", b"script", b"style"})


def wrapped_root(text: bytes) -> int:
    """Return where a feed's root begins in an HTML page without visible text before it, else 0."""
    unseen = b""
    for token in islice(tokens(text[:_ROOT_LOOKED_AT_BYTES]), _LOOKED_AT_TOKENS):
        name = token.name.lower()
        if token.mark is RepairMark.START and name in _PREFIXLESS_ROOTS:
            return token.start
        if token.mark is RepairMark.TEXT and not unseen and text[token.start : token.end].strip():
            return 0
        if token.mark is RepairMark.START and name in _UNSEEN_ELEMENTS:
            unseen = name
        elif token.mark is RepairMark.END and name == unseen:
            unseen = b""
    return 0


# Text behind the root (docs/faults.md rows 49 and 49a). Servers put scripts and comments there, generators
# an extra end tag: then nothing of the feed is missing. Further entries, or another feed, mean that something
# is.


_ENTRIES_AND_ROOTS: Final = frozenset({b"rss", b"rdf", b"feed", b"item", b"entry"})
# Elements of HTML with content other than markup (WHATWG HTML, 13.1.2).
_RAW_ELEMENTS: Final = frozenset({b"script", b"style"})
_ENTRY_OR_ROOT_BEGINS: Final = re.compile(
    rb"<(?:[A-Za-z_][\w.-]*+:)?+(?:rss|RDF|feed|item|entry)(?![\w.:-])", re.IGNORECASE
)


def _holds_entries(text: bytes, tokens: Iterable[Token]) -> bool:
    raw = b""
    for token in tokens:
        if token.mark is RepairMark.END and token.name.lower() == raw:
            raw = b""
        elif raw:
            continue
        elif token.mark is RepairMark.CUT:
            return _ENTRY_OR_ROOT_BEGINS.match(text, token.start) is not None
        elif token.mark in (RepairMark.START, RepairMark.EMPTY):
            if token.name.rpartition(b":")[2].lower() in _ENTRIES_AND_ROOTS:
                return True
            if token.mark is RepairMark.START and token.name.lower() in _RAW_ELEMENTS:
                raw = token.name.lower()
    return False


# Tokens of any document: every byte belongs to exactly one. No pattern looks past the next "<". If a token
# has no end, the document ends.


class RepairMark(Enum):
    TEXT = auto()
    START = auto()
    EMPTY = auto()
    END = auto()
    CDATA = auto()
    COMMENT = auto()
    INSTRUCTION = auto()
    """Also the XML declaration."""
    DOCTYPE = auto()
    SUBSET = auto()
    """A DOCTYPE with an internal subset."""
    STRAY = auto()
    """A "<" that begins nothing."""
    CUT = auto()
    """The document breaks off within markup."""


_DROPPED_AS: Final = {
    RepairMark.COMMENT: COMMENTS,
    RepairMark.INSTRUCTION: DECLARATION,
    RepairMark.DOCTYPE: DOCTYPE,
}


class Token(NamedTuple):
    mark: RepairMark
    start: int
    end: int
    name: bytes = b""
    attributes: bytes = b""
    """White space, names and values, as written."""
    is_odd: bool = False
    """Whether attributes lack quotes or values, or are repeated."""


_LESS_THAN: Final = ord("<")
_SLASH: Final = ord("/")
_NCNAME: Final = rb"[A-Za-z_\x80-\xff][A-Za-z0-9._\x80-\xff-]*+"
QNAME: Final = _NCNAME + rb"(?::" + _NCNAME + rb")?+"
_TAG: Final = re.compile(
    rb"<(?:/(?P<end>" + QNAME + rb")\s*+>"
    rb"|(?P<start>" + QNAME + rb")(?P<attributes>(?:\s++" + QNAME + rb"\s*+="
    rb"\s*+(?:\"[^\"<]*+\"|'[^'<]*+'))*+)\s*+(?P<empty>/?+)>)"
)
_UNENDED_ROOT_TAG: Final = re.compile(
    rb"<(?:" + _NCNAME + rb":)?+(?:rss|feed|RDF)"
    rb"(?:\s++" + QNAME + rb"\s*+=\s*+(?:\"[^\"<]*+\"|'[^'<]*+'))*+(?=\s*+<)",
    re.IGNORECASE,
)


def tokens(text: bytes, start: int = 0) -> Iterator[Token]:
    position, size = start, len(text)
    last_end = text.rfind(b">")
    tag_at, text_mark, end_mark = _TAG.match, RepairMark.TEXT, RepairMark.END  # every element comes by here
    while position < size:
        if text[position] != _LESS_THAN:
            end = text.find(b"<", position)
            end = size if end < 0 else end
            yield Token(text_mark, position, end)
        elif (tag := tag_at(text, position)) is not None:
            end = tag.end()
            name, attributes = tag.group(2, 3)
            if name is None:
                yield Token(end_mark, position, end, tag[1])
            else:
                mark = RepairMark.EMPTY if text[end - 2] == _SLASH and tag[4] else RepairMark.START
                yield Token(mark, position, end, name, attributes, bool(attributes) and _repeats(attributes))
        else:
            token = _other_token(text, position, last_end)
            end = token.end
            yield token
        position = end


_ODD_ATTRIBUTE: Final = (
    rb"\s*+(?P<name>" + QNAME + rb")(?:\s*+=\s*+(?P<value>\"[^\"<]*+\"|'[^'<]*+'|[^\s\"'<>]++))?+"
)
_ANY_ATTRIBUTE: Final = re.compile(_ODD_ATTRIBUTE)


def _repeats(attributes: bytes) -> bool:
    # XML 1.0, section 3.1, forbids repeated attributes.
    if attributes.count(b"=") == 1:
        return False
    names = [match["name"] for match in _ANY_ATTRIBUTE.finditer(attributes)]
    return len(set(names)) < len(names)


def _odd_attributes(attributes: bytes) -> dict[bytes, bytes]:
    # HTML's reading of attributes: of repeated ones the first counts.
    found: dict[bytes, bytes] = {}
    for match in _ANY_ATTRIBUTE.finditer(attributes):
        value = match["value"]
        if value is None:
            value = match["name"]
        elif value[:1] in (b'"', b"'"):
            value = value[1:-1]
        found.setdefault(match["name"], value)
    return found


def _other_token(text: bytes, start: int, last_end: int) -> Token:
    if start > last_end:
        return Token(RepairMark.CUT, start, len(text))
    for mark, begins, ends in _DELIMITED:
        if text.startswith(begins, start):
            end = text.find(ends, start + len(begins))
            return (
                Token(mark, start, end + len(ends)) if end >= 0 else Token(RepairMark.CUT, start, len(text))
            )
    return _short_token(text, start) or Token(RepairMark.STRAY, start, start + 1)


_DELIMITED: Final = ((RepairMark.COMMENT, b"<!--", b"-->"), (RepairMark.CDATA, b"<![CDATA[", b"]]>"))
_DOCTYPE: Final = re.compile(rb"<!DOCTYPE(?P<subset>[^<>\[]*+\[)?+", re.IGNORECASE)
_ODD_TAG: Final = re.compile(
    rb"<(?P<start>" + QNAME + rb")(?P<attributes>\s"
    rb"(?:" + re.sub(rb"\?P<\w+>", b"?:", _ODD_ATTRIBUTE) + rb")++)\s*+(?P<empty>/?+)>"
)


def _short_token(text: bytes, start: int) -> Token | None:
    # Only tokens that end before the next "<".
    following = text.find(b"<", start + 1)
    limit = len(text) if following < 0 else following
    if text.startswith(b"<?", start):
        end = text.find(b"?>", start + 2, limit)
        return Token(RepairMark.INSTRUCTION, start, end + 2) if end >= 0 else None
    if (doctype := _DOCTYPE.match(text, start)) is not None:
        end = text.find(b">", start, limit)
        mark = RepairMark.SUBSET if doctype["subset"] else RepairMark.DOCTYPE
        return Token(mark, start, end + 1 if end >= 0 else limit)
    if (tag := _ODD_TAG.match(text, start)) is not None and b"=" in tag["attributes"]:
        mark = RepairMark.EMPTY if tag["empty"] else RepairMark.START
        return Token(mark, start, tag.end(), tag["start"], tag["attributes"], is_odd=True)
    return None


def most_tokens(text: bytes) -> int:
    return min(_MAX_TOKENS, _FREE_TOKENS + len(text) // _BYTES_PER_TOKEN)


# A document of 32 MiB has about so many; more would keep the proxy busy for minutes.
_MAX_TOKENS: Final = MAX_ELEMENTS // 2
_FREE_TOKENS: Final = 20_000
# Least average length beyond `_FREE_TOKENS`. Real feeds have at least 11 bytes per token. A denser document
# would cost over a second for each megabyte.
_BYTES_PER_TOKEN: Final = 10
