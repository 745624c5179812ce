"""Head and entries -> the synthesized document (rules R16, R20 to R22).

An answer is prologue + segments + epilogue. The head is composed once, when the feed is published;
the prologue is wrapped around it for each answer, since it names the URL that was asked:

    head = compose_head(Fragments(document))
    prologue = compose_prologue(family, head.text, prefixes=head.prefixes | segments_prefixes, ...)
    epilogue = EPILOGUE[family]
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple
from xml.sax.saxutils import escape, quoteattr

from proxy.core.fragments import Fragments, prefixes_in
from proxy.core.model import FeedDocument, HeadChild
from proxy.core.terms import ATOM_NS, DSIG_NS, FH_NS, WELL_KNOWN_PREFIXES, Family, Relation

DROPPED_RELATIONS: Final = frozenset(Relation) | {"hub"}
"""Links of the head that would mislead in the synthesized document (R21)."""

MEDIA_TYPE: Final = {Family.ATOM: "application/atom+xml", Family.RSS: "application/rss+xml"}
EPILOGUE: Final = {Family.ATOM: b"</feed>\n", Family.RSS: b"</channel>\n</rss>\n"}

_BIT: Final = {prefix: 1 << place for place, prefix in enumerate(WELL_KNOWN_PREFIXES)}
_DECLARATION: Final = b'<?xml version="1.0" encoding="utf-8"?>\n'


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


def compose_head(document: FeedDocument) -> ComposedHead:
    """Keep of the head what still holds in the synthesized document, verbatim (R21, R22)."""
    fragments = Fragments(document)
    kept = [fragments.head_child(child) for child in document.head.children if not _is_dropped(child)]
    text = b"".join(fragment + b"\n" for fragment in kept)
    return ComposedHead(text, prefixes_in(text))


def _is_dropped(child: HeadChild) -> bool:
    if child.namespace in (FH_NS, DSIG_NS):
        return True
    return child.namespace == ATOM_NS and child.name == "link" and child.relation in DROPPED_RELATIONS


def compose_prologue(
    family: Family, head: bytes, *, prefixes: int, address: Address, is_complete: bool, warning: bytes = b""
) -> bytes:
    """Return everything before the first entry.

    Args:
        family: Atom or RSS.
        head: `ComposedHead.text`.
        prefixes: Mask of the well-known prefixes used in the head and in the entries.
        address: What rel=self and rel=via name.
        is_complete: Whether to say fh:complete (RFC 5005, 2): the state is `complete`, nothing was cut.
        warning: A pseudo-entry to stand first (R16), or nothing.
    """
    link = "link" if family is Family.ATOM else "atom:link"
    own = [
        f'<{link} rel="self" type="{MEDIA_TYPE[family]}" href={quoteattr(address.self_url)}/>\n',
        f'<{link} rel="via" href={quoteattr(address.via_url)}/>\n',
    ]
    if is_complete:
        own.append("<fh:complete/>\n")
        prefixes |= _BIT["fh"]
    if family is Family.RSS:
        prefixes |= _BIT["atom"]
    return b"".join([_DECLARATION, _root(family, prefixes), head, "".join(own).encode(), warning])


def _root(family: Family, prefixes: int) -> bytes:
    declared = "".join(
        f" xmlns:{prefix}={quoteattr(WELL_KNOWN_PREFIXES[prefix])}"
        for prefix, bit in _BIT.items()
        if prefixes & bit
    )
    if family is Family.ATOM:
        return f"<feed xmlns={quoteattr(ATOM_NS)}{declared}>\n".encode()
    return f'<rss version="2.0"{declared}>\n<channel>\n'.encode()


class Missing(NamedTuple):
    """A document that is not in the reconstruction, as the reader is told of it."""

    url: str
    reason: str


def compose_warning(
    family: Family,
    *,
    identifier: str,
    missing: Sequence[Missing],
    first_failed: str,
    first_failed_rfc822: str,
) -> bytes:
    """Return the pseudo-entry of a partial feed (R16; RFC 5005, 4.2; PaceFeedState).

    URLs and reasons only, dated at the first failure, so that it does not churn.

    Args:
        family: Atom or RSS.
        identifier: Stable atom:id or guid.
        missing: At least one.
        first_failed: RFC 3339 instant of the first failure.
        first_failed_rfc822: The same instant as RFC 822 writes it.
    """
    title = "Older entries of this feed are missing"
    said = "; ".join(f"{document.url} ({document.reason})" for document in missing)
    text = f"wholefeed could not read every document that this feed's history is kept in: {said}."
    if family is Family.ATOM:
        return (
            f"<entry><title>{escape(title)}</title><id>{escape(identifier)}</id>"
            f"<updated>{escape(first_failed)}</updated><author><name>wholefeed</name></author>"
            f"<link href={quoteattr(missing[0].url)}/><summary>{escape(text)}</summary></entry>\n"
        ).encode()
    return (
        f"<item><title>{escape(title)}</title><link>{escape(missing[0].url)}</link>"
        f'<guid isPermaLink="false">{escape(identifier)}</guid>'
        f"<pubDate>{escape(first_failed_rfc822)}</pubDate>"
        f"<description>{escape(escape(text))}</description></item>\n"
    ).encode()


def newest_first(order_at: Sequence[float | None]) -> list[int]:
    """Return the indices of a document's entries in output order (R20).

    Newest first by their dates; undated entries keep their place, equal dates their order.
    """
    dated = sorted((n for n, at in enumerate(order_at) if at is not None), key=lambda n: -_at(order_at[n]))
    rest = iter(dated)
    return [n if at is None else next(rest) for n, at in enumerate(order_at)]


def _at(instant: float | None) -> float:
    assert instant is not None
    return instant
