"""Make a document well-formed (docs/design.md#repair; docs/faults.md rows 45, 49 and 59).

    mended = mend(text)         # None: no feed, or nothing that this can help
    mended.text, mended.repairs, mended.breaks_off

What XML reads as it stands is left as it is, byte for byte. The states of a `Mender`:

    prolog --start tag of a feed--> inside --end tag of the root--> behind
    inside --a text element begins--> text element --its end tag--> inside
    text element --what does not nest--> raw --its end tag--> inside: all of its content is escaped
    inside, text element, raw --the document breaks off--> behind: its last whole entry ends it
    behind --anything but comments--> the document ends before it; the rest is searched for entries alone
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import chain, islice
from typing import Final, NamedTuple

from wholefeed.core.parse.errors import ParseError
from wholefeed.core.parse.repair import references
from wholefeed.core.parse.repair.behind import holds_entries, is_junk
from wholefeed.core.parse.repair.edits import Edits, TooManyError, most_edits
from wholefeed.core.parse.repair.elements import Elements, Open
from wholefeed.core.parse.repair.prolog import is_comment, is_declaration, is_instruction, late_declaration
from wholefeed.core.parse.repair.roots import ROOT, without_spaces
from wholefeed.core.parse.repair.text_elements import END_TAGS, LEAVES, TextElements
from wholefeed.core.parse.repair.tokens import Mark, Token, most_tokens, odd_attributes, tokens

AFTER_END: Final = "after-end"
ATTRIBUTES: Final = "attributes"
COMMENTS: Final = "comments"
DECLARATION: Final = "declaration"
DOCTYPE: Final = "doctype"
LESS_THAN: Final = "less-than"
PREFIXES: Final = "prefixes"

_BLANK: Final = b" \t\r\n"
_ROOTS: Final = {b"rss": b"item", b"RDF": b"item", b"feed": b"entry"}
"""What a feed's root is called, without prefix, and what its entries are."""


class Mended(NamedTuple):
    """A document that was made well-formed, as far as this pass knows."""

    text: bytes
    repairs: tuple[str, ...]
    """What was done, by name, sorted."""
    breaks_off: bool
    """Whether it ended before its root did; what was not whole then is left out."""
    goes_on: bool
    """Whether entries or a further root stood behind its end; like all that may not stand there they are
    left out."""


def mend(text: bytes) -> Mended | None:
    """Return the document with what is not well-formed in it repaired, or None where it is no feed.

    Args:
        text: In UTF-8.

    Raises:
        ParseError: `dtd-forbidden`: it has a document type of its own.
    """
    repairs: set[str] = set()
    cleaned = references.without_controls(text)
    if len(cleaned) != len(text):
        repairs.add(references.CONTROL_CHARACTERS)
    spaced, cleaned = cleaned, without_spaces(cleaned)
    if len(spaced) != len(cleaned):
        repairs.add(ROOT)
    try:
        return Mender(cleaned, repairs).run()
    except TooManyError:
        return None


class Mender:
    """One document on its way. `run` is called once.

    Args:
        text: Without control characters.
        repairs: What was done already.
    """

    def __init__(self, text: bytes, repairs: set[str]) -> None:
        self._text = text
        self._repairs = repairs
        self._edits = Edits(most_edits(len(text)))
        self._elements = Elements(self._edits)
        self._starts_at = self._skip_to_declaration()
        self._root: Open | None = None
        self._entry = b""
        self._box = TextElements(text, self._elements, self._edits, repairs)

    def run(self) -> Mended | None:
        """Return the mended document; None where no feed begins in it."""
        found = iter(tokens(self._text, self._starts_at))
        if not self._read_prolog(found):
            return None
        goes_on = False
        ends_at = len(self._text)
        elements = self._elements
        handlers: Mapping[Mark, Callable[[Token], None]] = {
            Mark.TEXT: self._on_text,
            Mark.START: self._on_start,
            Mark.EMPTY: self._on_empty,
            Mark.END: self._on_end,
            Mark.CDATA: lambda _token: None,
            Mark.COMMENT: self._on_comment,
            Mark.INSTRUCTION: self._on_instruction,
            Mark.STRAY: self._on_stray,
            Mark.DOCTYPE: self._on_stray,
            Mark.SUBSET: self._on_stray,
        }
        most = most_tokens(len(self._text))
        for number, token in enumerate(found):
            if number > most:
                return None
            if elements.open and token.mark is not Mark.CUT:
                handlers[token.mark](token)
            elif elements.open:
                ends_at = token.start
                break
            elif is_junk(self._text, token):
                self._repairs.add(AFTER_END)
                ends_at = token.start
                goes_on = holds_entries(self._text, chain([token], islice(found, most)))
                break
        breaks_off = bool(elements.open)
        self._end(ends_at)
        self._declare()
        return Mended(self._edits.applied(self._text), tuple(sorted(self._repairs)), breaks_off, goes_on)

    # -- around the root ----------------------------------------------------------------------------------

    def _skip_to_declaration(self) -> int:
        """Return where the document should begin (docs/faults.md row 45)."""
        start = late_declaration(self._text)
        if start:
            self._drop(0, start, DECLARATION)
        return start

    def _read_prolog(self, found: Iterator[Token]) -> bool:
        """Read up to the root; return whether it is a feed's."""
        for token in found:
            if token.mark in (Mark.START, Mark.EMPTY):
                return self._begin(token)
            if token.mark is Mark.CUT:
                break
            self._in_prolog(token)
        return False

    def _in_prolog(self, token: Token) -> None:
        written = self._text[token.start : token.end]
        match token.mark:
            case Mark.SUBSET:
                message = "expected a DOCTYPE without an internal subset, got one with"
                raise ParseError(message, slug="dtd-forbidden")
            case Mark.DOCTYPE:
                self._drop(token.start, token.end, DOCTYPE)
            case Mark.COMMENT:
                self._on_comment(token)
            case Mark.INSTRUCTION if is_instruction(written) or self._is_first(token, written):
                pass
            case Mark.TEXT if not written.strip(_BLANK):
                pass
            case _:
                self._drop(token.start, token.end, DECLARATION)

    def _is_first(self, token: Token, written: bytes) -> bool:
        return token.start == self._starts_at and is_declaration(written)

    def _begin(self, token: Token) -> bool:
        """Take the root; return whether it is a feed's."""
        name = token.name.rpartition(b":")[2]
        if name not in _ROOTS:
            return False
        self._entry = _ROOTS[name]
        self._box.begin_feed(token.name, self._entry)
        self._root = self._elements.begin(token, self._changed_tag(token))
        if token.mark is Mark.EMPTY:
            self._elements.end()
        return True

    def _end(self, at: int) -> None:
        """The document ends here: what had begun and is not whole leaves (docs/faults.md row 49)."""
        elements = self._elements
        partial = next((n for n, e in enumerate(elements.open) if n and e.name != b"channel"), None)
        if partial is not None:
            at = elements.forget_from(partial)
        ends = b"".join(b"</%s>" % each.name for each in reversed(elements.open))
        if ends or at < len(self._text):
            self._edits.replace(at, len(self._text), ends)

    def _declare(self) -> None:
        """Let the root declare the prefixes that nothing declares (Namespaces in XML 1.0, section 5)."""
        added = self._elements.prefixes.declarations()
        if not added:
            return
        assert self._root is not None, "prefixes are used from the root on"
        self._repairs.add(PREFIXES)
        length = 1 + len(self._root.name)
        if self._root.edit is None:
            at = self._root.tag.start + length
            self._edits.replace(at, at, added)
        else:
            tag = self._edits.made(self._root.edit)
            self._edits.change(self._root.edit, tag[:length] + added + tag[length:])

    def _drop(self, start: int, end: int, repair: str) -> None:
        self._repairs.add(repair)
        self._edits.replace(start, end, b"")

    # -- inside -------------------------------------------------------------------------------------------

    def _on_text(self, token: Token) -> None:
        if self._box.is_raw:
            return
        written = self._text[token.start : token.end]
        made = references.mended(written, self._repairs)
        if b"]]>" in made:
            self._repairs.add(LESS_THAN)
            made = made.replace(b"]]>", b"]]&gt;")
        if made != written:
            self._edits.replace(token.start, token.end, made)

    def _on_comment(self, token: Token) -> None:
        if not self._box.is_raw and not is_comment(self._text[token.start : token.end]):
            self._drop(token.start, token.end, COMMENTS)

    def _on_instruction(self, token: Token) -> None:
        if not self._box.is_raw and not is_instruction(self._text[token.start : token.end]):
            self._drop(token.start, token.end, DECLARATION)

    def _on_stray(self, token: Token) -> None:
        if self._box.is_open:
            self._box.turn_raw()
            return
        self._repairs.add(LESS_THAN)
        written = self._text[token.start : token.end]
        self._edits.replace(token.start, token.end, references.escaped(written))

    def _on_start(self, token: Token) -> None:
        elements = self._elements
        if token.name == self._entry:
            self._end_before_entry(token)
        if not self._box.takes_tag(token):
            self._box.note(elements.begin(token, self._changed_tag(token)))

    def _end_before_entry(self, token: Token) -> None:
        """No entry stands in a text, in an element that holds nothing else, or in an item: end tags lack."""
        elements, at = self._elements, token.start
        depth = len(elements.open)
        is_in_text = self._box.end_unclosed(at)
        while elements.open[-1].name in LEAVES:
            elements.close(at)
        if elements.is_open(self._entry) and (is_in_text or self._entry == b"item"):
            elements.close_inside(self._entry, at)
            elements.close(at)
        if is_in_text or len(elements.open) < depth:
            self._repairs.add(END_TAGS)

    def _on_empty(self, token: Token) -> None:
        if not self._box.takes_tag(token):
            self._elements.empty(token, self._changed_tag(token))

    def _on_end(self, token: Token) -> None:
        elements = self._elements
        if self._box.takes_end(token):
            return
        name = elements.meant_by(token.name)
        if name is not None:
            if elements.close_inside(name, token.start):
                self._repairs.add(END_TAGS)
            elements.end()
            if name != token.name:
                self._repairs.add(END_TAGS)
                self._edits.replace(token.start, token.end, b"</%s>" % name)
            return
        innermost = elements.open[-1]
        if innermost is not self._root and innermost.tag.end < token.start and not innermost.has_children:
            elements.close(token.start)  # its own end tag, misspelt
        self._drop(token.start, token.end, END_TAGS)

    def _changed_tag(self, token: Token) -> bytes | None:
        """Return a start tag as XML has it; None where it is so already."""
        if token.is_odd:
            self._repairs.add(ATTRIBUTES)
            made = b"".join(
                b' %s="%s"' % (name, references.mended(value, self._repairs).replace(b'"', b"&quot;"))
                for name, value in odd_attributes(token.attributes).items()
            )
            return b"<%s%s%s>" % (token.name, made, b"/" if token.mark is Mark.EMPTY else b"")
        if b"&" not in token.attributes:
            return None
        written = self._text[token.start : token.end]
        changed = references.mended(written, self._repairs)
        return None if changed == written else changed
