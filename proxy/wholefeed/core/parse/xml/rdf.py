"""RSS 1.0 and 0.90: an rdf:RDF element with a channel, and the items beside it.

What the channel declares holds for its own children alone. Some documents have the items in the channel all
the same; then it holds for them too.
"""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar, Final

from wholefeed.core.formats import RSS_090
from wholefeed.core.model import Channel, Entry, Head, Span
from wholefeed.core.parse.identities import site_id
from wholefeed.core.parse.xml.frames import Frame, Options
from wholefeed.core.parse.xml.guard import Guard
from wholefeed.core.parse.xml.plain import Plain
from wholefeed.core.parse.xml.rss import RssParser
from wholefeed.core.terms import DC_NS, DCTERMS_NS, RDF_NS, RSS_090_NS, RSS_10_NS, Family
from wholefeed.core.text.markup import attribute_of

RDF_ROOT: Final = f"{RDF_NS}}}RDF"

_ABOUT: Final = f"{RDF_NS}}}about"
_OLD_NAMESPACES: Final = frozenset({RSS_090_NS, "http://channel.netscape.com/rdf/simple/0.9/"})
_NAMESPACES: Final = _OLD_NAMESPACES | {RSS_10_NS}
_HEAD: Final = {f"{DC_NS}}}date": "published", f"{DCTERMS_NS}}}modified": "updated"}


class RdfParser(RssParser):
    """Reads rdf:RDF. The channel's dc:date counts as its pubDate, for RSS 1.0 has no other (R10)."""

    family: ClassVar[Family] = Family.RDF

    def __init__(self, guard: Guard, url: str, options: Options) -> None:
        super().__init__(guard, url, options, RSS_10_NS)
        self._accept(set(_OLD_NAMESPACES))
        self.version = "1.0"
        self._site_id = ""
        self._about = ""
        self._tag_start = 0
        self._channel: Channel | None = None

    def begin(self, attributes: list[str]) -> None:
        self.enter(self._root_frame(), attributes)
        self._root_scope = self.scope

    def plain(self) -> Plain | None:
        return None  # rdf:about counts first

    def _root_child(self, name: str, attributes: list[str]) -> None:
        namespace, _, local = name.rpartition("}")
        if local == "item" and self._is_plain(namespace):
            self.item_began(attributes)
        elif local == "channel" and not self._has_channel:
            self._channel_began(namespace, attributes)
        else:
            self.head_child(name, attributes)

    def _channel_began(self, namespace: str, attributes: list[str]) -> None:
        self._has_channel = True
        self._accept({namespace})
        self.version = RSS_090 if namespace in _OLD_NAMESPACES else "1.0"
        self._site_id = attribute_of(attributes, _ABOUT) or ""
        self._tag_start = self.parser.CurrentByteIndex
        self.enter(Frame(3, self._channel_child, 2, self._channel_ended), attributes)

    def _channel_ended(self) -> None:
        start = self._tag_start
        tag = Span(start, self.guard.end_of_tag(start))
        self._channel = Channel(tag, self.guard.end_of(start))
        self.scope = self._root_scope
        super()._channel_ended()

    def item_began(self, attributes: list[str]) -> None:
        self._about = attribute_of(attributes, _ABOUT) or ""
        if self._is_in_channel and self.scope != self._root_scope:
            self._place = self.scopes.numbered(self.scope)
        super().item_began(attributes)

    @property
    def _is_in_channel(self) -> bool:
        return self._has_channel and self._channel is None

    def _is_plain(self, namespace: str) -> bool:
        """With a prefix too where every reader knows the namespace, which a channel may have made up."""
        return namespace in _NAMESPACES or super()._is_plain(namespace)

    def head_slot(self, name: str) -> str:
        if self._has_channel and self._channel is not None:
            return ""
        return super().head_slot(name) or _HEAD.get(name, "")

    def is_blank(self) -> bool:
        return not self._about and super().is_blank()

    def entry(self, start: int, end: int) -> Entry:
        if self._about:  # R9
            self.values["id"] = self._about
        return super().entry(start, end)

    def head(self) -> Head:
        head = super().head()
        return replace(head, site_id=site_id(self._site_id) or head.site_id, channel=self._channel)
