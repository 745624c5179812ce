"""The document that is sent but for its entries, and documents of entries alone (R7, R16, R19 to R22).

An answer is prologue + segments + epilogue. The head is composed once, when the feed is published;
the prologue is wrapped around it for each answer, since it names the URL that was asked:

    head = compose_head(fragments_of(document, namespace))
    prologue = compose_prologue(family, head.text, prefixes=head.prefixes | segments_prefixes, ...)
    epilogue = EPILOGUE[family]

Between segments stands what `wholefeed.core.model.segment_separator` says.

Self-contained entries alone make a minimal feed document of their family, which parses back to the same
ones. Entries that left the subscription document are kept in such documents:

    fragments = fragments_of(document)
    text = synthesize(document.family, document.version, [fragments.entry(0)])
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
    """The head section as it goes out, without what depends on the answer."""

    text: bytes
    prefixes: int
    """Mask of the well-known prefixes that it uses."""
    left_out: int = 0
    """Elements, members and tombstones that there was no room for."""


def compose_head(fragments: Fragments | JsonFragments, tombstones: Sequence[Tombstone] = ()) -> ComposedHead:
    """Keep of the head what still holds in the synthesized document, verbatim (R21, R22).

    It comes to `MAX_HEAD_BYTES` at most: what is behind that is left out. Tombstones of the feed that do not
    stand in the document are added (R19).
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
"""Of a head that is sent: each answer bears it. Sixteen kilobytes on the wire can be 2 MiB of elements, and
those, each with the namespaces that it needs, 8 MiB (docs/faults.md row 118)."""


class _Room:
    """What is left of the space that a head has."""

    def __init__(self) -> None:
        self._bytes = MAX_HEAD_BYTES
        self.left_out = 0

    def took(self, text: bytes) -> bool:
        """Whether there was room for a text, which has it now."""
        if len(text) + 2 > self._bytes:  # what is put behind it is no longer
            return False
        self._bytes -= len(text) + 2
        return True

    def taken(
        self, children: Sequence[HeadChild], made: Callable[[HeadChild], bytes]
    ) -> list[tuple[HeadChild, bytes]]:
        """Return the children that there is room for, in their order, each as it goes out.

        What readers need comes first, wherever it stands; of the rest the last ones are left out.
        """
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
        """Return the tombstones that there is room for, the newest."""
        elements = written(tombstones)
        taken = list(itertools.takewhile(self.took, elements))
        self.left_out += len(elements) - len(taken)
        return b"".join(taken)


def _choose_needed(children: Sequence[HeadChild]) -> list[HeadChild]:
    """Return what a document is no feed without, or what its entries lean on, in the order of `_NEEDED`."""
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
"""Children of heads, the most necessary first; of each but those that entries inherit the first one."""
_RANK: Final = {name: rank for rank, name in enumerate(_NEEDED)}
_OWN_NAMESPACES: Final = frozenset({"", RSS_10_NS, RSS_090_NS, *ATOM_NAMESPACES, *RSS_NAMESPACES})

DROPPED_RELATIONS: Final = frozenset(Relation) | {"hub"}
"""Links of the head that would mislead in the synthesized document (R21)."""
_LEADING_AWAY: Final = frozenset({NEW_FEED_URL, "cloud", "podping", "self"})
"""Elements by `HeadChild.plain_name` that have apps subscribe elsewhere, or wait for news of another URL: of
iTunes and Google Play, of RSS and its `source` namespace, of Podcasting 2.0."""


def _is_dropped(child: HeadChild, document: FeedDocument) -> bool:
    if document.family is Family.JSON:
        return child.relation in DROPPED_RELATIONS or child.name == EXTENSION
    if child.namespace in (FH_NS, DSIG_NS) or child.plain_name in _LEADING_AWAY:
        return True
    if child.name.lower() != "link":
        return False
    return (child.relation or _written_relation(child, document.text)) in DROPPED_RELATIONS


def _written_relation(child: HeadChild, text: bytes) -> str:
    """Return the relation of a link that is in no namespace of Atom's, as many an app reads it."""
    written = attribute_places(text, child.start).values(text).get(b"rel", b"")
    return written.decode("utf-8", "replace").strip().lower().removeprefix(IANA_RELATION_PREFIX)


OWN_PLACE: Final = b"\0"
"""Marks where in a head the proxy's own elements go, if not at its end; no document can hold it."""


def _rdf_head(
    fragments: Fragments,
    children: Sequence[HeadChild],
    channel: Channel | None,
    tombstones: Sequence[Tombstone],
    room: _Room,
) -> bytes:
    """Return the channel, its children as they are, and what stands beside it except items.

    Where there is no room for the channel's own start tag, there is none for what leans on it.
    """
    document, tag = fragments.document, b"<channel>"
    inside: list[HeadChild] = []
    beside: list[HeadChild] = []
    for child in children:
        if channel is not None and channel.tag.start < child.start < channel.end:
            if (child.namespace, child.name) != (RSS_10_NS, "items"):
                inside.append(child)
        elif child.name != "channel":
            beside.append(child)
    if channel is not None:
        own = fragments.channel(channel)
        if room.took(own):
            tag = own
        else:
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


_SEQUENCE: Final = b"<items><rdf:Seq/></items>\n"
"""RSS 1.0 wants the channel to list its items. The publisher's list names some of them only, and one of all
would have to be sent before the first of them: readers take the items from the document, as all do."""


def _in_default(sequence: bytes, tag: bytes) -> bytes:
    """A channel that is written with a prefix may have changed the default namespace."""
    declared = f"<items xmlns={quoteattr(RSS_10_NS)}>".encode()
    return sequence.replace(b"<items>", declared) if b"xmlns=" in tag else sequence


def page_head(family: Family, version: str, head: bytes, *, is_first: bool) -> bytes:
    """Return a composed head as a page of the feed bears it: without what each publication changes (G1).

    Those are dates and counts; and but on the first page to read tombstones, which a reader finds there.
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
"""Children of heads that tell when the feed changed."""
_COUNTS: Final = frozenset({"totalResults", "startIndex", "itemsPerPage"})
"""Of OpenSearch, in either of its namespaces: Blogger tells by them how many entries there are."""


class Address(NamedTuple):
    """Who the synthesized document is, and where it comes from."""

    self_url: str
    """The proxy's URL of it, without token or wait."""
    via_url: str
    """The publisher's subscription document (RFC 4287, 4.2.7.2)."""
    whole_url: str = ""
    """The proxy's URL of the whole feed, in a document that holds a part of it."""
    pages: Sequence[tuple[str, str]] = ()
    """Relations and URLs of other pages, in a document that is one (RFC 5005, 3)."""


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
    """Return everything before the first entry.

    `prefixes` are the well-known ones of head and entries, `version` is the subscription document's (empty:
    the family's usual one), `warning` a pseudo-entry to stand first (R16). `is_complete`: to say
    fh:complete (RFC 5005, 2), for which JSON Feed has no word. `dated_at` is the date of a head that has none
    of its own (`page_head`); None, as in JSON Feed: it stays without.
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


_WHOLE_RELATION: Final = "urn:wholefeed:whole"
"""Leads from a document that was cut to the whole feed (RFC 4287, 4.2.7.2: not registered, so an IRI)."""
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
    """Return the indices of a document's entries in output order (R20).

    Newest first by their dates; undated entries keep their place, equal dates their order.
    """
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
    """Return a minimal feed document of self-contained entries, made without a context.

    The version counts in RSS and JSON Feed: Atom and RDF are always 1.0, and older entries say their
    namespace. `namespace` is the default one that they were made for; the family's usual one when None.
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


def _xml(family: Family, version: str, namespace: str | None, declared: bytes, entries: bytes) -> bytes:
    default = attribute("xmlns", default_namespace(family) if namespace is None else namespace).written
    if family is Family.ATOM:
        return b"<feed%s%s>\n%s</feed>\n" % (default, declared, entries)
    if family is Family.RDF:
        rdf = b"" if b" xmlns:rdf=" in declared else _bound("rdf").encode()
        return b"<rdf:RDF%s%s%s>\n<channel/>\n%s</rdf:RDF>\n" % (default, rdf, declared, entries)
    root = attribute("version", version).written + declared
    return b"<rss%s>\n<channel>\n%s</channel>\n</rss>\n" % (root, entries)


# What a feed calls itself


class Heading(NamedTuple):
    """Kept beside what is published, for lists of feeds; empty where the head does not tell."""

    title: str
    """On one line, `MAX_TITLE_CHARACTERS` of it at most."""
    site: str
    """The URL of the page that the feed is about."""


def heading_of(document: FeedDocument) -> Heading:
    """Return what a subscription document calls its feed."""
    head = document.head
    sites = [link.target for link in head.links if link.relation == "alternate" and link.target]
    if document.family in (Family.RSS, Family.JSON) and head.site_id:
        sites.insert(0, resolve_or_empty(head.scope.base, head.site_id))
    site = next(filter(is_http, sites), "")
    title = " ".join(head.title[:MAX_TITLE_CHARACTERS].split())
    return Heading(title, site if len(site) <= MAX_URL_CHARACTERS else "")


def stored_heading(family: Family, version: str, head: bytes, via_url: str) -> Heading:
    """Return what a feed calls itself that was published before that was kept."""
    read = read_head(family, version, head, via_url)
    return Heading("", "") if read is None else heading_of(read[0])


def read_head(
    family: Family, version: str, head: bytes, url: str = "http://head.invalid/"
) -> tuple[FeedDocument, int] | None:
    """Return a composed head as a document without entries, and where in its text the head begins.

    A head of an earlier version that is longer than any is by now says nothing, nor one that cannot be read.
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
