"""Head and entries -> the synthesized document (rules R16, R19 to R22).

An answer is prologue + segments + epilogue. The head is composed once, when the feed is published;
the prologue is wrapped around it for each answer, since it names the URL that was asked:

    head = compose_head(fragments_of(document, namespace))
    prologue = compose_prologue(family, head.text, prefixes=head.prefixes | segments_prefixes, ...)
    epilogue = EPILOGUE[family]

Between segments stands what `wholefeed.core.formats.segment_separator` says.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Final, NamedTuple, cast

from wholefeed.core.formats import MEDIA_TYPE, RSS_090, default_namespace, rss_version
from wholefeed.core.merge.tombstones import written
from wholefeed.core.model import Channel, HeadChild, Tombstone
from wholefeed.core.terms import (
    ATOM_03_NS,
    ATOM_NAMESPACES,
    DSIG_NS,
    EXTENSION,
    FH_NS,
    RSS_10_NS,
    WELL_KNOWN_PREFIXES,
    Family,
    Relation,
)
from wholefeed.core.text.markup import quoteattr
from wholefeed.core.verbatim.fragments import Fragments
from wholefeed.core.verbatim.json_fragments import JsonFragments
from wholefeed.core.verbatim.well_known import prefixes_in

DROPPED_RELATIONS: Final = frozenset(Relation) | {"hub"}
"""Links of the head that would mislead in the synthesized document (R21)."""

WHOLE_RELATION: Final = "urn:wholefeed:whole"
"""Leads from a document that was cut to the whole feed (RFC 4287, 4.2.7.2: not registered, so an IRI)."""

EPILOGUE: Final = {
    Family.ATOM: b"</feed>\n",
    Family.RSS: b"</channel>\n</rss>\n",
    Family.RDF: b"</rdf:RDF>\n",
    Family.JSON: b"\n]}\n",
}

_BIT: Final = {prefix: 1 << place for place, prefix in enumerate(WELL_KNOWN_PREFIXES)}
_DECLARATION: Final = b'<?xml version="1.0" encoding="utf-8"?>\n'

_OWN_PLACE: Final = b"\0"
"""Where in a head the proxy's own elements go, if not at its end; no document can hold it."""

_SEQUENCE: Final = b"<items><rdf:Seq/></items>\n"
"""RSS 1.0 wants the channel to list its items. The publisher's list names some of them only, and one of all
would have to be sent before the first of them: readers take the items from the document, as all do."""


class ComposedHead(NamedTuple):
    """The head section as it goes out, without what depends on the answer."""

    text: bytes
    prefixes: int
    """Mask of the well-known prefixes that it uses."""


class Address(NamedTuple):
    """Who the synthesized document is, and where it comes from."""

    self_url: str
    """The proxy's URL of it, without token or wait."""
    via_url: str
    """The publisher's subscription document (RFC 4287, 4.2.7.2)."""
    whole_url: str = ""
    """The proxy's URL of the whole feed, in a document that holds a part of it."""


def compose_head(fragments: Fragments | JsonFragments, tombstones: Sequence[Tombstone] = ()) -> ComposedHead:
    """Keep of the head what still holds in the synthesized document, verbatim (R21, R22).

    Args:
        fragments: Of the subscription document, for the output's namespace.
        tombstones: Those of the feed; the ones that do not stand in the document are added (R19).
    """
    document = fragments.document
    children = [child for child in document.head.children if not _is_dropped(child)]
    if isinstance(fragments, JsonFragments):
        return ComposedHead(b",\n".join(map(fragments.head_child, children)), 0)
    own = {tombstone.identity for tombstone in document.head.tombstones}
    passed_on = written([each for each in tombstones if each.identity not in own])
    if document.family is Family.RDF:
        text = _rdf_head(fragments, children, document.head.channel, passed_on)
    else:
        text = b"".join(fragments.head_child(child) + b"\n" for child in children) + passed_on
    return ComposedHead(text, prefixes_in(text))


def _rdf_head(
    fragments: Fragments, children: Sequence[HeadChild], channel: Channel | None, passed_on: bytes
) -> bytes:
    """Return the channel, whose children stay as they are, and what stands beside it but for items."""
    document = fragments.document
    inside, beside, tag = [], [], b"<channel>"
    for child in children:
        if channel is not None and channel.tag.start < child.start < channel.end:
            if (child.namespace, child.name) != (RSS_10_NS, "items"):
                inside.append(fragments.channel_child(child, channel) + b"\n")
        elif child.name != "channel":
            beside.append(fragments.head_child(child) + b"\n")
    end = b"</channel>\n"
    if channel is not None:
        tag = fragments.channel(channel)
        end = b"</%s>\n" % tag[1:].replace(b">", b" ").split(maxsplit=1)[0]
    sequence = b"" if document.version == RSS_090 else _in_default(_SEQUENCE, tag)
    return b"".join([tag, b"\n", *inside, passed_on, sequence, _OWN_PLACE, end, *beside])


def _in_default(sequence: bytes, tag: bytes) -> bytes:
    """A channel that is written with a prefix may have changed the default namespace."""
    declared = f"<items xmlns={quoteattr(RSS_10_NS)}>".encode()
    return sequence.replace(b"<items>", declared) if b"xmlns=" in tag else sequence


def _is_dropped(child: HeadChild) -> bool:
    if not child.namespace:  # JSON
        return child.relation in DROPPED_RELATIONS or child.name == EXTENSION
    if child.namespace in (FH_NS, DSIG_NS):
        return True
    return child.namespace in ATOM_NAMESPACES and child.name == "link" and child.relation in DROPPED_RELATIONS


def compose_prologue(
    family: Family,
    head: bytes,
    *,
    prefixes: int,
    address: Address,
    is_complete: bool,
    version: str = "",
    warning: bytes = b"",
) -> bytes:
    """Return everything before the first entry.

    Args:
        family: Of the feed.
        head: `ComposedHead.text`.
        prefixes: Mask of the well-known prefixes used in the head and in the entries.
        address: What rel=self and rel=via name.
        is_complete: Whether to say fh:complete (RFC 5005, 2): the state is `complete`, nothing was cut.
            JSON Feed has no word for it.
        version: Of the subscription document; empty for the family's usual one.
        warning: A pseudo-entry to stand first (R16), or nothing.
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
    if address.whole_url:
        own.append(f'<{link} rel="{WHOLE_RELATION}" href={quoteattr(address.whole_url)}/>\n')
    if is_complete:
        own.append(f"<fh:complete{fh}/>\n")
        prefixes |= _BIT["fh"]
    if family is not Family.ATOM:
        prefixes |= _BIT["atom"]
    if warning and family is Family.RDF:
        prefixes |= _BIT["dc"]
    before, _, behind = head.partition(_OWN_PLACE)
    root = _root(family, version, prefixes)
    return b"".join([_DECLARATION, root, before, "".join(own).encode(), behind, warning])


def _bound(prefix: str) -> str:
    return f" xmlns:{prefix}={quoteattr(WELL_KNOWN_PREFIXES[prefix])}"


def _json_prologue(head: bytes, address: Address) -> bytes:
    extension = {"via": address.via_url} | ({"whole": address.whole_url} if address.whole_url else {})
    own = json.dumps({"feed_url": address.self_url, EXTENSION: extension}, ensure_ascii=False)
    return b'{%s,\n%s,\n"items":[\n' % (head, own[1:-1].encode())


def _root(family: Family, version: str, prefixes: int) -> bytes:
    if family is Family.RDF:
        prefixes |= _BIT["rdf"]
    declared = "".join(_bound(prefix) for prefix, bit in _BIT.items() if prefixes & bit)
    if family is Family.RSS:
        return f'<rss version="{rss_version(version)}"{declared}>\n<channel>\n'.encode()
    default = default_namespace(family, version)
    name = "rdf:RDF" if family is Family.RDF else "feed"
    marked = f' version="{version}"' if default == ATOM_03_NS else ""
    return f"<{name}{marked} xmlns={quoteattr(default)}{declared}>\n".encode()


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
