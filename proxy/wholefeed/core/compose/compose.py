"""Compose all of a feed document except its entries, and documents of entries alone (R7, R16, R19 to R22).

An answer is prologue + segments + epilogue. The head is composed once, at publication, and the prologue for
each answer, because it names the requested URL.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple, cast

from wholefeed.core.merge import written
from wholefeed.core.model import (
    ATOM_03,
    ATOM_03_NS,
    ATOM_NAMESPACES,
    DC_NS,
    DCTERMS_NS,
    DSIG_NS,
    EXTENSION,
    FH_NS,
    IANA_RELATION_PREFIX,
    MEDIA_TYPE,
    NEW_FEED_URL,
    RSS_090,
    RSS_090_NS,
    RSS_10_NS,
    RSS_NAMESPACES,
    SEPARATOR,
    TOMBSTONE_NS,
    WELL_KNOWN_PREFIXES,
    Channel,
    Family,
    FeedDocument,
    HeadChild,
    Relation,
    Tombstone,
    default_namespace,
    rss_version,
    segment_end,
)
from wholefeed.core.parse.documents import parse
from wholefeed.core.parse.limits import MAX_TITLE_CHARACTERS, UNLIMITED, ParseError
from wholefeed.core.text.dates import format_rfc822, format_rfc3339
from wholefeed.core.text.markup import attribute, attribute_places, quoteattr
from wholefeed.core.text.urls import MAX_URL_CHARACTERS, is_http, resolve_or_empty
from wholefeed.core.verbatim.fragments import ALL_PREFIXES, Fragments, prefixes_in
from wholefeed.core.verbatim.json import JsonFragments


class ComposedHead(NamedTuple):
    text: bytes
    prefixes: int
    """Mask of the `WELL_KNOWN_PREFIXES` in use."""
    left_out: int = 0
    """Number of elements, members and tombstones without room."""


def compose_head(fragments: Fragments | JsonFragments, tombstones: Sequence[Tombstone] = ()) -> ComposedHead:
    """Return the head verbatim, without the parts untrue of the synthesized document (R21, R22).

    `tombstones` absent from the document are added (R19).
    """
    document, room = fragments.document, _Room()
    children = [child for child in document.head.children if not _is_dropped(child, document)]
    if isinstance(fragments, JsonFragments):
        members = [text for _, text in room.taken(children, fragments.head_child)]
        return ComposedHead(b",\n".join(members), 0, room.left_out)
    own = {tombstone.identity for tombstone in document.head.tombstones}
    others = [each for each in tombstones if each.identity not in own]
    if document.family is Family.RDF:
        text = _rdf_head(fragments, children, document.head.channel, others, room)
    else:
        taken = room.taken(children, fragments.head_child)
        text = b"".join([text + b"\n" for _, text in taken]) + room.pass_on(others)
    return ComposedHead(text, prefixes_in(text), room.left_out)


MAX_HEAD_BYTES: Final = 1 << 18
"""More is left out: 16 KB of compressed head can become 8 MiB of elements with namespaces (docs/faults.md row
118)."""


class _Room:
    def __init__(self) -> None:
        self._bytes = MAX_HEAD_BYTES
        self.left_out = 0

    def took(self, text: bytes) -> bool:
        if len(text) + 2 > self._bytes:  # 2: the longest separator
            return False
        self._bytes -= len(text) + 2
        return True

    def taken(
        self, children: Sequence[HeadChild], made: Callable[[HeadChild], bytes]
    ) -> list[tuple[HeadChild, bytes]]:
        """Return rendered children in document order; those of `_choose_needed` get room first."""
        found: dict[int, tuple[HeadChild, bytes]] = {}
        needed = _choose_needed(children)
        for child in needed:
            if child.end - child.start <= self._bytes and self.took(text := made(child)):
                found[child.start] = child, text
        first = {child.start for child in needed}
        for child in children:
            if child.start not in first:
                if not self.took(text := made(child)):
                    break
                found[child.start] = child, text
        self.left_out += len(children) - len(found)
        return [found[place] for place in sorted(found)]

    def pass_on(self, tombstones: Sequence[Tombstone]) -> bytes:
        elements = written(tombstones)
        taken = list(itertools.takewhile(self.took, elements))
        self.left_out += len(elements) - len(taken)
        return b"".join(taken)


def _choose_needed(children: Sequence[HeadChild]) -> list[HeadChild]:
    found: list[tuple[int, HeadChild]] = []
    once: set[tuple[str, str]] = set()
    for child in children:
        rank = _RANK.get(child.name)
        if rank is None or child.namespace not in _OWN_NAMESPACES or child.relation not in ("", "alternate"):
            continue
        if child.name not in _INHERITED:
            if (name := (child.namespace, child.name)) in once:
                continue
            once.add(name)
        found.append((rank, child))
    found.sort(key=lambda each: each[0])
    return [child for _, child in found]


_INHERITED: Final = ("author", "authors", "rights", "copyright")
_NEEDED: Final = (
    "version", "title", "id", "updated", "modified", "description", "home_page_url", "link", "language",
    *_INHERITED,
)  # fmt: skip
"""The most necessary first. A name counts once, except in `_INHERITED`."""
_RANK: Final = {name: rank for rank, name in enumerate(_NEEDED)}
_OWN_NAMESPACES: Final = frozenset({"", RSS_10_NS, RSS_090_NS, *ATOM_NAMESPACES, *RSS_NAMESPACES})

DROPPED_RELATIONS: Final = frozenset(Relation) | {"hub"}
"""Misleading in the synthesized document (R21)."""
_LEADING_AWAY: Final = frozenset({NEW_FEED_URL, "cloud", "podping", "self"})
"""Names (`HeadChild.plain_name`) that make apps subscribe elsewhere or await another URL's news: of iTunes,
Google Play, RSS and Podcasting 2.0."""


def _is_dropped(child: HeadChild, document: FeedDocument) -> bool:
    if document.family is Family.JSON:
        return child.relation in DROPPED_RELATIONS or child.name == EXTENSION
    if child.namespace in (FH_NS, DSIG_NS) or child.plain_name in _LEADING_AWAY:
        return True
    if child.name.lower() != "link":
        return False
    return (child.relation or _written_relation(child, document.text)) in DROPPED_RELATIONS


def _written_relation(child: HeadChild, text: bytes) -> str:
    """Return the relation of a link outside Atom's namespaces, as many apps read it."""
    written = attribute_places(text, child.start).values(text).get(b"rel", b"")
    return written.decode("utf-8", "replace").strip().lower().removeprefix(IANA_RELATION_PREFIX)


OWN_PLACE: Final = b"\0"
"""Place of the proxy's own elements, if not at the end. No document contains this byte."""


def _rdf_head(
    fragments: Fragments,
    children: Sequence[HeadChild],
    channel: Channel | None,
    tombstones: Sequence[Tombstone],
    room: _Room,
) -> bytes:
    document, tag = fragments.document, b"<channel>"
    inside: list[HeadChild] = []
    beside: list[HeadChild] = []
    for child in children:
        if channel is not None and channel.tag.start < child.start < channel.end:
            if (child.namespace, child.name) != (RSS_10_NS, "items"):  # it lacks most items
                inside.append(child)
        elif child.name != "channel":
            beside.append(child)
    if channel is not None:
        own = fragments.channel(channel)
        if room.took(own):
            tag = own
        else:
            # the children rely on the namespaces, language and base of the channel's start tag
            room.left_out += 1 + len(inside)
            inside = []
    end = b"</%s>\n" % tag[1:].replace(b">", b" ").split(maxsplit=1)[0]

    def made(child: HeadChild) -> bytes:
        if channel is not None and child in within:
            return fragments.channel_child(child, channel)
        return fragments.head_child(child)

    within = set(inside)
    taken = room.taken([*inside, *beside], made)
    sequence = b"" if document.version == RSS_090 else _in_default(_SEQUENCE, tag)
    own_texts = [text + b"\n" for child, text in taken if child in within]
    others = [text + b"\n" for child, text in taken if child not in within]
    passed_on = room.pass_on(tombstones)
    return b"".join([tag, b"\n", *own_texts, passed_on, sequence, OWN_PLACE, end, *others])


# RSS 1.0 requires a list, and readers ignore it. A complete one would have to precede the first item.
_SEQUENCE: Final = b"<items><rdf:Seq/></items>\n"


def _in_default(sequence: bytes, tag: bytes) -> bytes:
    """Declare the namespace: a prefixed channel may change the default one."""
    declared = f"<items xmlns={quoteattr(RSS_10_NS)}>".encode()
    return sequence.replace(b"<items>", declared) if b"xmlns=" in tag else sequence


def page_head(family: Family, version: str, head: bytes, *, is_first: bool) -> bytes:
    """Return a composed head for a page of the feed, without dates and counts (G1).

    Each publication changes those. Tombstones stay only on the first page to read.
    """
    if family is Family.JSON or (read := read_head(family, version, head)) is None:
        return head
    document, begins = read
    kept: list[bytes] = []
    end = 0
    for child in document.head.children:
        is_tombstone = child.namespace == TOMBSTONE_NS and not is_first
        if is_tombstone or child.name in _COUNTS or (child.namespace, child.name) in _DATES:
            kept.append(head[end : child.start - begins])
            end = child.end - begins
            end += head.startswith(b"\n", end)
    return b"".join([*kept, head[end:]])


_DATES: Final = frozenset(
    {(namespace, name) for namespace in ATOM_NAMESPACES for name in ("updated", "modified")}
    | {(namespace, name) for namespace in RSS_NAMESPACES for name in ("lastBuildDate", "pubDate")}
    | {(namespace, "date") for namespace in (DC_NS, DCTERMS_NS)}
    | {(DCTERMS_NS, name) for name in ("issued", "modified")}
)
_COUNTS: Final = frozenset({"totalResults", "startIndex", "itemsPerPage"})  # OpenSearch, as in Blogger


class Address(NamedTuple):
    self_url: str
    """The proxy's, without token or wait."""
    via_url: str
    """The subscription document (RFC 4287, 4.2.7.2)."""
    whole_url: str = ""
    """The whole feed, if this document is a part."""
    pages: Sequence[tuple[str, str]] = ()
    """Relations and URLs of other pages (RFC 5005, 3)."""


def compose_prologue(
    family: Family,
    head: bytes,
    *,
    prefixes: int,
    address: Address,
    is_complete: bool,
    version: str = "",
    warning: bytes = b"",
    dated_at: float | None = None,
) -> bytes:
    """Return everything before the first entry, with `warning` as a pseudo-entry (R16).

    `prefixes` covers head and entries; an empty `version` is the usual one. `dated_at` dates a head without
    date. JSON Feed has neither that date nor fh:complete (RFC 5005, 2).
    """
    if family is Family.JSON:
        return _json_prologue(head, address) + warning
    # The channel of an RDF document may have bound the prefixes otherwise.
    atom, fh = (_bound("atom"), _bound("fh")) if family is Family.RDF else ("", "")
    link = "link" if family is Family.ATOM else f"atom:link{atom}"
    own = [
        f'<{link} rel="self" type="{MEDIA_TYPE[family]}" href={quoteattr(address.self_url)}/>\n',
        f'<{link} rel="via" href={quoteattr(address.via_url)}/>\n',
    ]
    whole = ((_WHOLE_RELATION, address.whole_url),) if address.whole_url else ()
    own += [
        f'<{link} rel="{relation}" href={quoteattr(url)}/>\n' for relation, url in (*whole, *address.pages)
    ]
    if dated_at is not None:
        own.append(_date(family, version, dated_at))
    if is_complete:
        own.append(f"<fh:complete{fh}/>\n")
        prefixes |= _BIT["fh"]
    if family is not Family.ATOM:
        prefixes |= _BIT["atom"]
    if warning and family is Family.RDF:
        prefixes |= _BIT["dc"]
    before, _, behind = head.partition(OWN_PLACE)
    root = _root(family, version, prefixes)
    return b"".join([_DECLARATION, root, before, "".join(own).encode(), behind, warning])


def _date(family: Family, version: str, dated_at: float) -> str:
    instant = format_rfc3339(int(dated_at))
    if family is Family.ATOM:
        name = "modified" if version == ATOM_03 else "updated"
        return f"<{name}>{instant}</{name}>\n"
    if family is Family.RDF:
        return f"<dc:date{_bound('dc')}>{instant}</dc:date>\n"
    return f"<pubDate>{format_rfc822(dated_at)}</pubDate>\n"


_WHOLE_RELATION: Final = "urn:wholefeed:whole"  # an IRI, because it is unregistered (RFC 4287, 4.2.7.2)
_DECLARATION: Final = b'<?xml version="1.0" encoding="utf-8"?>\n'
_BIT: Final = {prefix: 1 << place for place, prefix in enumerate(WELL_KNOWN_PREFIXES)}


def _bound(prefix: str) -> str:
    return f" xmlns:{prefix}={quoteattr(WELL_KNOWN_PREFIXES[prefix])}"


def _declare(prefixes: int) -> str:
    return "".join(_bound(prefix) for prefix, bit in _BIT.items() if prefixes & bit)


def _json_prologue(head: bytes, address: Address) -> bytes:
    extension = {"via": address.via_url} | ({"whole": address.whole_url} if address.whole_url else {})
    extension |= address.pages
    following = extension.pop("next", "")  # JSON Feed 1.1 has a word for that one alone
    members = {"feed_url": address.self_url} | ({"next_url": following} if following else {})
    own = json.dumps({**members, EXTENSION: extension}, ensure_ascii=False)
    return b'{%s%s,\n"items":[\n' % (head and head + b",\n", own[1:-1].encode())


def _root(family: Family, version: str, prefixes: int) -> bytes:
    if family is Family.RDF:
        prefixes |= _BIT["rdf"]
    declared = _declare(prefixes)
    if family is Family.RSS:
        return f'<rss version="{rss_version(version)}"{declared}>\n<channel>\n'.encode()
    default = default_namespace(family, version)
    name = "rdf:RDF" if family is Family.RDF else "feed"
    marked = f' version="{version}"' if default == ATOM_03_NS else ""
    return f"<{name}{marked} xmlns={quoteattr(default)}{declared}>\n".encode()


EPILOGUE: Final = {
    Family.ATOM: b"</feed>\n",
    Family.RSS: b"</channel>\n</rss>\n",
    Family.RDF: b"</rdf:RDF>\n",
    Family.JSON: b"\n]}\n",
}


def newest_first(order_at: Sequence[float | None]) -> list[int]:
    """Return a document's output order as indices (R20); undated entries keep their place."""
    dated = [n for n, at in enumerate(order_at) if at is not None]
    dated.sort(key=cast("Sequence[float]", order_at).__getitem__, reverse=True)  # equal ones stay in order
    if len(dated) == len(order_at):
        return dated
    rest = iter(dated)
    return [n if at is None else next(rest) for n, at in enumerate(order_at)]


# Documents of entries alone


def synthesize(
    family: Family,
    version: str,
    fragments: Sequence[bytes],
    *,
    namespace: str | None = None,
) -> bytes:
    """Return a minimal feed document that parses back to these self-contained entries.

    Atom and RDF are always version 1.0: older entries declare their namespace. `namespace` is the entries'
    default one (None: the usual one).
    """
    entries = SEPARATOR[family].join(fragments) + (segment_end(family) if fragments else b"")
    if family is Family.JSON:
        return b'{"version":"https://jsonfeed.org/version/%s","items":[\n%s\n]}\n' % (
            version.encode(),
            entries,
        )
    used = 0
    for fragment in fragments:
        used |= prefixes_in(fragment, ALL_PREFIXES & ~used)
    return _DECLARATION + _xml(family, version, namespace, _declare(used).encode(), entries)


def open_entries(namespace: str) -> bytes:
    """Return the start tag of an element in which entries of a segment may stand."""
    return b"<entries%s%s>\n" % (attribute("xmlns", namespace).written, _declare(ALL_PREFIXES).encode())


def _xml(family: Family, version: str, namespace: str | None, declared: bytes, entries: bytes) -> bytes:
    default = attribute("xmlns", default_namespace(family) if namespace is None else namespace).written
    if family is Family.ATOM:
        return b"<feed%s%s>\n%s</feed>\n" % (default, declared, entries)
    if family is Family.RDF:
        rdf = b"" if b" xmlns:rdf=" in declared else _bound("rdf").encode()
        return b"<rdf:RDF%s%s%s>\n<channel/>\n%s</rdf:RDF>\n" % (default, rdf, declared, entries)
    root = attribute("version", version).written + declared
    return b"<rss%s>\n<channel>\n%s</channel>\n</rss>\n" % (root, entries)


# The title and site of a feed, for lists of feeds


class Heading(NamedTuple):
    """A feed's title and site; empty if unknown."""

    title: str
    """One line, at most `MAX_TITLE_CHARACTERS`."""
    site: str
    """The page about the feed."""


def heading_of(document: FeedDocument) -> Heading:
    head = document.head
    sites = [link.target for link in head.links if link.relation == "alternate" and link.target]
    if document.family in (Family.RSS, Family.JSON) and head.site_id:
        sites.insert(0, resolve_or_empty(head.scope.base, head.site_id))
    site = next(filter(is_http, sites), "")
    title = " ".join(head.title[:MAX_TITLE_CHARACTERS].split())
    return Heading(title, site if len(site) <= MAX_URL_CHARACTERS else "")


def stored_heading(family: Family, version: str, head: bytes, via_url: str) -> Heading:
    """Read the heading of a feed published before headings were stored."""
    read = read_head(family, version, head, via_url)
    return Heading("", "") if read is None else heading_of(read[0])


def read_head(
    family: Family, version: str, head: bytes, url: str = "http://head.invalid/"
) -> tuple[FeedDocument, int] | None:
    """Return a composed head as a document without entries, and the head's offset in its text.

    None: the head is unreadable, or an earlier version made it longer than `MAX_HEAD_BYTES`.
    """
    if len(head) > MAX_HEAD_BYTES:
        return None
    before = b"{" if family is Family.JSON else _DECLARATION + _root(family, version, ALL_PREFIXES)
    behind = b'%s"items":[' % (b",\n" if head else b"") if family is Family.JSON else b""
    text = before + head.replace(OWN_PLACE, b"\n") + behind + EPILOGUE[family]
    try:
        document = parse(text, url, max_depth=UNLIMITED)
    except ParseError:
        return None
    return (document, len(before)) if document.text == text else None
