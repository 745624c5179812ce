"""Entries that are written plainly, each read by one match instead of a call for each of its elements.

Most entries are: an identity and a date in text that needs no decoding, and other children that mean nothing
to the parser. What expat would tell of such an entry one match of its family's pattern finds, at a fifth of
the cost. expat still reads every byte, with no handlers for elements, so nothing is taken for well-formed
that is not. An entry that does not match goes through the handlers, and the next is tried again.

    read_plainly(guard, lambda: opening.family)         # instead of guard.read(text)

A pattern holds for a piece of a well-formed document that begins where an entry may. In it each "<" outside
of a CDATA section begins a tag; the first end tag of a child's name behind its start tag is its own unless
another one of that name begins before. No match needs more than a few looks at each byte. In what is
well-formed none looks further than the entry's end; in what is not expat stops behind the first that does.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Callable, Iterable
from typing import Final, NamedTuple, Protocol

from wholefeed.core.model import Entry
from wholefeed.core.parse.limits import (
    FREE_NAME_CHARACTERS,
    MAX_ATTRIBUTES,
    MAX_ELEMENTS,
    MAX_ENTRIES,
    NAME_CHARACTERS_PER_BYTE,
)
from wholefeed.core.parse.xml.frames import CarefulNeededError
from wholefeed.core.parse.xml.guard import Guard
from wholefeed.core.text.markup import ATTRIBUTE_VALUE

_MAX_TAGS: Final = 400
"""In one child of a plain entry: they cannot nest deeper than half of that."""
_LEAST_DEPTH: Final = _MAX_TAGS // 2 + 16
"""Where fewer levels of elements are allowed, every one is looked at."""
_FREE_MISSES: Final = 8
_SMALLEST_TAG_BYTES: Final = 4
"""`<a/>`; no attribute is smaller."""

_SPACE: Final = rb"[ \t\r\n]"
_NAME: Final = rb"[^\s<>/=\"'!?]++"
_ATTRIBUTES: Final = rb"(?:%(s)s++%%(but)s%(name)s%(s)s*+=%(s)s*+%(value)s){0,%(most)d}+%(s)s*+" % {
    b"s": _SPACE,
    b"name": _NAME,
    b"value": ATTRIBUTE_VALUE,
    b"most": MAX_ATTRIBUTES,
}
_ANY: Final = _ATTRIBUTES % {b"but": b""}
DECLARES_NOTHING: Final = _ATTRIBUTES % {b"but": b"(?!xmlns)"}
"""What may stand in a start tag behind the name, where the name has to mean what it means around it."""
TEXT: Final = rb"[^<&\r]++"
"""Text that means what is written."""
DATE: Final = rb"[ \t\n!-%'-;=-~]++"
"""The same in ASCII."""
_CDATA: Final = rb"<!\[CDATA\[(?:[^\]]++|\](?!\]>))*+\]\]>"


def skipped(name: bytes, group: bytes, attributes: bytes = _ANY) -> bytes:
    """Return the pattern of a child that is passed over, behind the "<" of its start tag.

    Args:
        name: The pattern of its name.
        group: A name for what is remembered of it.
        attributes: The pattern of its attributes.
    """
    inside = rb"(?:%s|(?!</?(?P=%s)[\s/>])</?%s%s/?>)" % (_CDATA, group, _NAME, _ANY)
    body = rb"[^<]*+(?:%s[^<]*+){0,%d}+" % (inside, _MAX_TAGS)
    return rb"(?P<%s>%s)(?=[\s/>])%s(?:/>|>%s</(?P=%s)\s*+>)" % (group, name, attributes, body, group)


def leaf(name: str, attributes: bytes = _ANY) -> bytes:
    """Return the pattern of a child without elements in it, behind the "<" of its start tag.

    Args:
        name: Its name.
        attributes: The pattern of its attributes.
    """
    text = rb"[^<]*+(?:%s[^<]*+)*+" % _CDATA
    return rb"%s%s(?:/>|>%s</%s\s*+>)" % (name.encode(), attributes, text, name.encode())


def leaf_or(leaves: Iterable[bytes], other: bytes) -> bytes:
    """Return the pattern of a child that is one of these leaves, as most are, else the other one.

    It takes half as long as the other one alone. No child matches in two ways: of an entry that does not
    match in the end each way would be tried with each of all others.
    """
    either = b"|".join(leaves)
    return rb"%s|(?!%s)%s" % (either, either, other)


def once(number: int, name: str, text: bytes) -> bytes:
    """Return the pattern of a child whose text counts, behind the "<" of its start tag.

    A second one in the same entry does not match: the first one counts (rule R9).

    Args:
        number: Of the group that its text becomes, by its place in the whole pattern.
        name: Its name.
        text: The pattern of its text.
    """
    only = rb"(?(%d)(?!)|(%s))" % (number, text)
    return rb"%s%s>%s</%s\s*+>" % (name.encode(), DECLARES_NOTHING, only, name.encode())


def other_than(*names: str) -> bytes:
    """Return the pattern of a name, with a prefix or without, that ends in none of these."""
    return rb"(?!(?:[^\s<>/=\"'!?:]++:)?+(?:%s)[\s/>])%s" % ("|".join(names).encode(), _NAME)


def entry_pattern(tag: str, *children: bytes) -> re.Pattern[bytes]:
    """Return the pattern of an entry that holds nothing but such children, and of the blanks before it.

    A group that one child sets keeps what it has where another child matches in the end: no two patterns may
    begin to match the same child. Group 1 is where the entry begins.
    """
    name = tag.encode()
    inside = rb"\s*+(?:<(?:%s)\s*+)*" % b"|".join(children)
    return re.compile(rb"[ \t\r\n]*+(<)%s%s>%s</%s\s*+>" % (name, DECLARES_NOTHING, inside, name))


class Plain(NamedTuple):
    """How the plain entries of a document are read."""

    end_tag: bytes
    """Behind which the next is looked for where an entry is not plain."""
    pattern: re.Pattern[bytes]
    """Of an entry, without a "<!" in it but for CDATA sections."""
    made: Callable[[re.Match[bytes]], Entry | None]
    """Makes the entry that was found; None: it has to be looked at closely."""


class PlainParser(Protocol):
    """The parser of a document, as far as its plain entries are concerned."""

    @property
    @abstractmethod
    def entries(self) -> list[Entry]:
        """What was read so far."""

    @abstractmethod
    def plain_at(self, at: int) -> Plain | None:
        """Return how plain entries are read that begin there, where expat is; None: there can be none."""

    @abstractmethod
    def look_away(self) -> None:
        """Be told nothing by expat until `look_again`."""

    @abstractmethod
    def look_again(self) -> None:
        """Go on where `look_away` was called, behind whole entries."""


_BEGINS: Final = re.compile(rb"<(?:entry|item)(?=[\s>])")
_NOTHING_MORE: Final = re.compile(rb"(?:\s++|</[^<>]*+>|<!--(?:[^-]++|-(?!->))*+-->)*+\Z")


def read_plainly(guard: Guard, parser: Callable[[], PlainParser | None]) -> None:
    """Read the rest of the guard's document.

    Args:
        guard: The document; its root has not begun.
        parser: Returns who reads it, once the root has begun.

    Raises:
        ParseError: As `Guard.read` does.
        CarefulNeededError: Whether a limit is broken shows only when every element is looked at.
    """
    text = guard.text
    found = None if guard.must_measure or guard.max_depth < _LEAST_DEPTH else _BEGINS.search(text)
    hits = misses = 0
    while found is not None and misses <= hits + _FREE_MISSES:
        at = found.start()
        guard.feed_to(at)
        reader = parser()
        plain = reader.plain_at(at) if reader is not None else None
        if reader is None or plain is None:
            break
        before = len(reader.entries)
        stop = _taken(reader.entries, plain, text, at)
        hits += len(reader.entries) - before
        if stop == at:
            misses += 1
            stop = text.find(plain.end_tag, at)
            found = None if stop < 0 else _BEGINS.search(text, stop)
            continue
        is_rest = _NOTHING_MORE.match(text, stop) is not None
        reader.look_away()
        guard.feed_to(len(text) if is_rest else stop)
        if is_rest:
            break
        reader.look_again()
        found = _BEGINS.search(text, stop)
    guard.finish()
    if hits and guard.is_limited and not _is_within_limits(guard):
        raise CarefulNeededError


def _taken(entries: list[Entry], plain: Plain, text: bytes | bytearray, at: int) -> int:
    """Add the plain entries that follow one another from there; return where the last of them ends."""
    match, made, add = plain.pattern.match, plain.made, entries.append
    room = MAX_ENTRIES - len(entries)
    while room > 0:
        room -= 1
        found = match(text, at)
        entry = made(found) if found is not None else None
        if entry is None:
            break
        add(entry)
        at = entry.end
    return at


def _is_within_limits(guard: Guard) -> bool:
    """Whether no limit on all elements together can be broken, in whatever of them nobody looked at."""
    size = len(guard.text)
    most_characters = FREE_NAME_CHARACTERS + NAME_CHARACTERS_PER_BYTE * size
    tags = attributes = size // _SMALLEST_TAG_BYTES
    for _ in range(2):
        names = (tags + attributes) * (guard.longest_namespace + 1)
        if tags <= MAX_ELEMENTS and size + names <= most_characters:
            return True
        tags, attributes = guard.text.count(b"<"), guard.text.count(b"=")
    return False
