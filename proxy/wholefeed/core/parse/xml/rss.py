"""RSS 2.0 and its forebears 0.9x, but for those in RDF.

All have an `rss` root. Some documents put it in a default namespace of their own making; then its elements
are those of that namespace. In RSS 0.90's manner items may also stand beside the channel; some stand in a
further one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Set
from typing import ClassVar, Final

from wholefeed.core.model import Entry, Head, written_id
from wholefeed.core.parse.identities import MAX_TITLE_CHARACTERS, SPACES, site_id
from wholefeed.core.parse.xml.family import FamilyParser
from wholefeed.core.parse.xml.frames import Frame, Options, nothing
from wholefeed.core.parse.xml.guard import Guard
from wholefeed.core.parse.xml.plain import (
    DATE,
    TEXT,
    Plain,
    entry_pattern,
    leaf,
    leaf_or,
    once,
    other_than,
    skipped,
)
from wholefeed.core.terms import ATOM_NS, DC_NS, DCTERMS_NS, RSS_NAMESPACES, WELL_KNOWN_PREFIXES, Family
from wholefeed.core.text.dates import parse_rfc822, parse_rfc3339
from wholefeed.core.text.markup import attribute_of

_CONTENT_NS: Final = "http://purl.org/rss/1.0/modules/content/"

_HEAD: Final = {"link": "link", "title": "title", "lastBuildDate": "built", "pubDate": "published"}
_PLAIN: Final = {"guid": "id", "pubDate": "pubDate"}
_PLAIN_FULL: Final = {**_PLAIN, "link": "link", "title": "title", "description": "summary"} | {
    "enclosure": "enclosure"
}
_FOREIGN: Final = {
    f"{ATOM_NS}}}updated": "updated",
    f"{DCTERMS_NS}}}modified": "modified",
    f"{ATOM_NS}}}published": "published",
    f"{DC_NS}}}date": "date",
}
_MEDIA: Final = "media"
_FOREIGN_FULL: Final = {
    **_FOREIGN,
    f"{_CONTENT_NS}}}encoded": "content",
    f"{WELL_KNOWN_PREFIXES['media']}}}content": _MEDIA,
}
_MAX_VERSION_CHARACTERS: Final = 16
# An item with a date of another kind than these may be of another instant than its pubDate says; dc:date
# counts only where there is none.
_OTHER_DATES: Final = ("updated", "modified", "published")
_TEXTS: Final = ("title", "link", "description", "category", "comments", "author")
_FOREIGN_TEXTS: Final = ("dc:creator", "content:encoded")
_PLAIN_ITEM: Final = entry_pattern(
    "item",
    once(2, "guid", TEXT + rb"|<!\[CDATA\[[^\]\r]++\]\]>"),
    once(3, "pubDate", DATE),
    leaf_or(map(leaf, _TEXTS + _FOREIGN_TEXTS), skipped(other_than(*_PLAIN, *_OTHER_DATES), b"other")),
)
_CDATA_BEGINS: Final = b"<![CDATA["
_CDATA_ENDS: Final = b"]]>"


def plain_names(names: Mapping[str, str], namespaces: Set[str]) -> dict[str, str]:
    """Return RSS's own element names as expat reports them in any of these namespaces."""
    return {
        f"{namespace}}}{name}" if namespace else name: slot
        for namespace in namespaces
        for name, slot in names.items()
    }


class RssParser(FamilyParser):
    """Reads rss, in whatever namespace it is."""

    family: ClassVar[Family] = Family.RSS

    def __init__(self, guard: Guard, url: str, options: Options, namespace: str) -> None:
        super().__init__(guard, url, options)
        self._namespaces: set[str] = set()
        self._head_slots: dict[str, str] = {}
        self._has_channel = False
        self.marks = frozenset({"enclosure", _MEDIA})
        self._place = 0
        """`Entry.scope` of the items that come."""
        self._around = self.scope
        """What is in force for items that are not in the first channel, which is the feed."""
        self._root_scope = self.scope
        self._accept({namespace, *RSS_NAMESPACES})

    def _accept(self, namespaces: set[str]) -> None:
        """Take RSS's own elements from these namespaces too."""
        self._namespaces |= namespaces
        plain, foreign = (_PLAIN_FULL, _FOREIGN_FULL) if self.is_full else (_PLAIN, _FOREIGN)
        self.fields = {**plain_names(plain, self._namespaces), **foreign}
        self._head_slots = {
            **plain_names(_HEAD, self._namespaces - {ATOM_NS}),
            f"{ATOM_NS}}}updated": "updated",
        }

    def begin(self, attributes: list[str]) -> None:
        self.version = (attribute_of(attributes, "version") or "").strip(SPACES)[
            :_MAX_VERSION_CHARACTERS
        ] or "2.0"
        self.enter(self._root_frame(), attributes)
        self._root_scope = self._around = self.scope

    def _root_frame(self) -> Frame:
        return Frame(2, self._root_child, 1, nothing)

    def _root_child(self, name: str, attributes: list[str]) -> None:
        namespace, _, local = name.rpartition("}")
        if local == "channel" and namespace in self._namespaces:
            self._place = 0
            if self._has_channel:
                self._around = self.scopes.inner(self._root_scope, attributes)
                self.contain(Frame(3, self._beside_child, 2, self._channel_ended))
            else:
                self._has_channel = True
                self.enter(Frame(3, self._channel_child, 2, self._channel_ended), attributes)
        else:
            self._beside_child(name, attributes)

    def _channel_ended(self) -> None:
        self._place = 0
        self._around = self._root_scope
        self.contain(self._root_frame())

    def _beside_child(self, name: str, attributes: list[str]) -> None:
        """Beside the first channel and in further ones only items count."""
        namespace, _, local = name.rpartition("}")
        if local == "item" and self._is_plain(namespace):
            self._place = self._place or self.scopes.numbered(self._around)
            self.item_began(attributes)

    def _channel_child(self, name: str, attributes: list[str]) -> None:
        if name == "item":
            self.item_began(attributes)
            return
        namespace, _, local = name.rpartition("}")
        if local == "item" and self._is_plain(namespace):
            self.item_began(attributes)
        else:
            self.head_child(name, attributes)

    def plain(self) -> Plain | None:
        is_usual = self._container.on_child == self._channel_child and not self.scope.prefixes.get("")
        return Plain(b"</item>", _PLAIN_ITEM, self._plain_item) if is_usual else None

    def _plain_item(self, found: re.Match[bytes]) -> Entry | None:
        written, at = found.group(2, 3)
        if not written or not at:
            return None
        if written.startswith(_CDATA_BEGINS):
            written = written[len(_CDATA_BEGINS) : -len(_CDATA_ENDS)]
        order_at = parse_rfc822(at.decode())
        if order_at is None or written.isspace():
            return None
        return Entry(written_id(written), None, order_at, found.start(1), found.end(), scope=self._place)

    def item_began(self, attributes: list[str]) -> None:
        """An item began."""
        self.entry_began(attributes, self.scopes.at(self._place, self.scope))

    def mark(self, slot: str, attributes: list[str]) -> None:
        url = attribute_of(attributes, "url")
        if url and slot == _MEDIA:  # no enclosure: such URLs change with an edit
            self.values[_MEDIA] = f"{self.values.get(_MEDIA, '')}\n{url}"
        elif url:
            self.enclosures.append(url)

    def _is_plain(self, namespace: str) -> bool:
        """An item without a prefix is one, whatever default namespace was put around it.

        With a prefix only where every reader knows its namespace: the output's rss element is in none.
        """
        if namespace in RSS_NAMESPACES:
            return True
        if not self.guard.is_written("item"):
            return False
        if namespace not in self._namespaces:
            self._accept({namespace})
        return True

    def head_slot(self, name: str) -> str:
        return self._head_slots.get(name, "")

    def entry(self, start: int, end: int) -> Entry:
        values = self.values
        updated_at = None
        if "updated" in values:
            updated_at = parse_rfc3339(values["updated"])
        if updated_at is None and "modified" in values:
            updated_at = parse_rfc3339(values["modified"])
        order_at = updated_at
        for slot in ("published", "pubDate", "date"):
            if order_at is None and slot in values:
                order_at = parse_rfc822(values[slot])
        return Entry(self.identity(), updated_at, order_at, start, end, scope=self._place)

    def head(self) -> Head:
        values = self.head_values
        dates = (parse_rfc822(values.get(slot, "")) for slot in ("updated", "built", "published"))
        return Head(
            site_id=site_id(values.get("link", "")),
            title=values.get("title", "")[:MAX_TITLE_CHARACTERS],
            updated_at=next((date for date in dates if date is not None), None),
            links=tuple(self.links),
            history=tuple(self.history),
            children=tuple(self.children),
            scope=self.scope,
            tombstones=tuple(self.tombstones),
        )
