"""Atom 1.0 (RFC 4287) and 0.3 (the snapshot of December 2003).

Entries of either may stand in a document of the other, each in its own namespace: that is how documents of
both come to be one feed (rule R23).
"""

from __future__ import annotations

import re
from typing import ClassVar, Final

from wholefeed.core.model import Entry, Head, written_id
from wholefeed.core.parse.identities import (
    MAX_TITLE_CHARACTERS,
    FieldsNeededError,
    absolute,
    site_id,
)
from wholefeed.core.parse.xml.attributes import base_in
from wholefeed.core.parse.xml.family import FamilyParser
from wholefeed.core.parse.xml.frames import Frame, Options, nothing
from wholefeed.core.parse.xml.guard import Guard
from wholefeed.core.parse.xml.plain import (
    DATE,
    DECLARES_NOTHING,
    TEXT,
    Plain,
    entry_pattern,
    leaf,
    leaf_or,
    once,
    other_than,
    skipped,
)
from wholefeed.core.terms import ATOM_03_NS, ATOM_NS, Family
from wholefeed.core.text.dates import parse_rfc3339
from wholefeed.core.text.markup import attribute_of
from wholefeed.core.verbatim.addresses import ABSOLUTE

# Atom 0.3's names for what RFC 4287 calls otherwise.
_OLD_NAMES: Final = {
    "updated": ("modified",),
    "published": ("issued", "created"),
    "rights": ("copyright",),
}


def _named(*names: str) -> dict[str, str]:
    """Return Atom's elements of these names as expat reports them, of both versions."""
    new = {f"{ATOM_NS}}}{name}": name for name in names}
    old = {f"{ATOM_03_NS}}}{own}": name for name in names for own in _OLD_NAMES.get(name, (name,))}
    return new | old


_ENTRIES: Final = frozenset(_named("entry"))
_PERSON_AND_RIGHTS: Final = _named("author", "rights")
_HEAD: Final = _named("id", "title", "updated")
_FIELDS: Final = _named("author", "rights", "id", "updated", "source")
_LEAVES: Final = (
    *(leaf(name, DECLARES_NOTHING) for name in ("title", "summary", "category", "published")),
    *(leaf(name, ABSOLUTE) for name in ("link", "content")),
)
"""In Atom's own namespace, as they are not renamed: of others any attribute may be a URL."""
_PLAIN: Final = entry_pattern(
    "entry",
    once(2, "id", TEXT),
    once(3, "updated", DATE),
    leaf_or(_LEAVES, skipped(other_than(*{name.rpartition("}")[2] for name in _FIELDS}), b"other")),
    skipped(rb"(?P<author>author(?=[\s/>]))|(?P<rights>rights(?=[\s/>]))", b"own", DECLARES_NOTHING),
)
_GROUPS: Final = (2, 3, *(_PLAIN.groupindex[name] for name in ("author", "rights", "other")))
_FULL_FIELDS: Final = _FIELDS | _named("published", "link", "title", "content", "summary")


class AtomParser(FamilyParser):
    """Reads atom:feed, in either namespace."""

    family: ClassVar[Family] = Family.ATOM

    def __init__(self, guard: Guard, url: str, options: Options, version: str) -> None:
        super().__init__(guard, url, options)
        self.version = version
        self.fields = _FULL_FIELDS if self.is_full else _FIELDS
        self.marks = frozenset({"author", "rights", "source", "link"})

    def begin(self, attributes: list[str]) -> None:
        self.enter(Frame(2, self._child_began, 1, nothing), attributes)

    def _child_began(self, name: str, attributes: list[str]) -> None:
        if name in _ENTRIES:
            self.entry_began(attributes, self.scope)
        else:
            self.head_child(name, attributes)

    def plain(self) -> Plain | None:
        is_usual = self.scope.prefixes.get("") == ATOM_NS
        return Plain(b"</entry>", _PLAIN, _plain_entry) if is_usual else None

    def head_slot(self, name: str) -> str:
        return _HEAD.get(name, "")

    def mark(self, slot: str, attributes: list[str]) -> None:
        if slot == "source":
            self.descend(self._source_child)
        elif slot == "link":
            relation = attribute_of(attributes, "rel") or "alternate"
            target = absolute(base_in(self.entry_base, attributes), attribute_of(attributes, "href") or "")
            if relation == "alternate":
                self.values.setdefault("link", target)
            elif relation == "enclosure":
                self.enclosures.append(target)
        else:
            super().mark(slot, attributes)

    def _source_child(self, name: str, _attributes: list[str]) -> None:
        """The author and rights of atom:source count for its entry (RFC 4287, 4.2.1 and 4.2.11)."""
        slot = _PERSON_AND_RIGHTS.get(name)
        if slot:
            self.values[slot] = ""

    def entry(self, start: int, end: int) -> Entry:
        values = self.values
        updated = values.get("updated")
        updated_at = parse_rfc3339(updated) if updated else None
        order_at = updated_at
        if updated_at is None:
            if not self.is_full:
                raise FieldsNeededError
            order_at = parse_rfc3339(values.get("published", ""))
        return Entry(
            self.identity(), updated_at, order_at, start, end, "author" in values, "rights" in values
        )

    def head(self) -> Head:
        values = self.head_values
        return Head(
            site_id=site_id(values.get("id", "")),
            title=values.get("title", "")[:MAX_TITLE_CHARACTERS],
            updated_at=parse_rfc3339(values.get("updated", "")),
            links=tuple(self.links),
            history=tuple(self.history),
            children=tuple(self.children),
            scope=self.scope,
            tombstones=tuple(self.tombstones),
        )


def _plain_entry(found: re.Match[bytes]) -> Entry | None:
    written, at, author, rights, other = found.group(*_GROUPS)
    if not written or written.isspace() or not at:
        return None
    instant = parse_rfc3339(at.decode())
    if instant is None:
        return None
    has_author, has_rights = author is not None, rights is not None
    is_absolute = other is None and not (has_author or has_rights)
    start, end = found.start(1), found.end()
    identity = written_id(written)
    return Entry(identity, instant, instant, start, end, has_author, has_rights, 0, None, is_absolute)
