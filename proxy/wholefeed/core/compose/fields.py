"""What programs ask of an entry beside its bytes: its id in words, title, link and date.

fields = read_fields(document, [0, 2])
fields[0].title

Each entry is read from its self-contained slice, so that prefixes, language and base are those it was written
under. Nothing here decides anything: identities are the parser's (rule R9).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple
from xml.etree.ElementTree import Element

from defusedxml.ElementTree import fromstring

from wholefeed.core.compose.synthesize import synthesize
from wholefeed.core.model import EntryId, FeedDocument, entry_id
from wholefeed.core.parse.identities import SPACES, absolute
from wholefeed.core.terms import ATOM_NS, DC_NS, RDF_NS, Family
from wholefeed.core.text.dates import parse_rfc822, parse_rfc3339
from wholefeed.core.text.urls import resolve
from wholefeed.core.verbatim.addresses import is_permalink
from wholefeed.core.verbatim.fragments_of import fragments_of

NAMELESS: Final = "urn:wholefeed:entry:"
"""How the identity of an entry begins that has neither id nor link of its own; its digest is the rest."""

_AT_ONCE: Final = 64
"""Entries that are a tree in memory at a time."""
_XML_BASE: Final = "{http://www.w3.org/XML/1998/namespace}base"
_ABOUT: Final = f"{{{RDF_NS}}}about"
_ALTERNATE: Final = frozenset({"", "alternate", "http://www.iana.org/assignments/relation/alternate"})
_ATOM_PUBLISHED: Final = ("published", "issued", "created")


class Fields(NamedTuple):
    """What an entry says of itself."""

    identity: str
    """Its id as written: atom:id, guid, rdf:about, JSON id; without one its link, where that identifies it,
    else `NAMELESS`."""
    title: str
    """Without white space around it and with single spaces in it; empty when there is none."""
    link: str
    """Absolute; empty when there is none."""
    published_at: float | None


class Said(NamedTuple):
    """The same, before it is told which of it identifies the entry."""

    id: str
    title: str
    href: str
    """The link as written."""
    base: str
    """What a relative link counts from; empty when nothing was said of it."""
    published_at: float | None


def read_fields(document: FeedDocument, ordinals: Sequence[int]) -> list[Fields]:
    """Return the fields of some entries of a document, in the order of `ordinals`."""
    is_json = document.family is Family.JSON
    said = _items_said(document, ordinals) if is_json else _elements_said(document, ordinals)
    return [_fields(document, ordinal, each) for ordinal, each in zip(ordinals, said, strict=True)]


def _fields(document: FeedDocument, ordinal: int, said: Said) -> Fields:
    entry = document.entries[ordinal]
    base = said.base or document.scopes[entry.scope].base
    identity = _identity(entry.identity, (said.id, absolute(base, said.href)))
    return Fields(identity, " ".join(said.title.split()), _absolute(base, said.href), said.published_at)


def _identity(digest: EntryId, candidates: Sequence[str]) -> str:
    """Return the words that make the identity; they are looked for, so that R9 has one home."""
    texts = (text.strip(SPACES) for text in candidates)
    return next((text for text in texts if text and entry_id(text) == digest), f"{NAMELESS}{digest.hex()}")


def _absolute(base: str, href: str) -> str:
    if not href.strip(SPACES):
        return ""
    try:
        return resolve(base, href)
    except ValueError:
        return ""


def _elements_said(document: FeedDocument, ordinals: Sequence[int]) -> Iterator[Said]:
    fragments = fragments_of(document)
    said = atom_said if document.family is Family.ATOM else rss_said
    for start in range(0, len(ordinals), _AT_ONCE):
        texts = [fragments.entry(ordinal) for ordinal in ordinals[start : start + _AT_ONCE]]
        yield from map(said, _elements(document, fromstring(synthesize(document.family, "", texts))))


def _elements(document: FeedDocument, root: Element) -> list[Element]:
    if document.family is Family.ATOM:
        return list(root)
    if document.family is Family.RDF:
        return list(root)[1:]  # behind the channel
    return list(root[0])


def atom_said(entry: Element) -> Said:
    """Return what an entry of Atom says."""
    own = entry.tag.rpartition("}")[0] + "}"
    link = next((each for each in entry.iterfind(f"{own}link") if each.get("rel", "") in _ALTERNATE), None)
    base = entry.get(_XML_BASE, "")
    if link is not None and (inner := link.get(_XML_BASE)):
        base = _absolute(base, inner) or base
    dates = (parse_rfc3339(text_of(entry, f"{own}{name}")) for name in _ATOM_PUBLISHED)
    return Said(
        id=text_of(entry, f"{own}id"),
        title=text_of(entry, f"{own}title"),
        href=link.get("href", "") if link is not None else "",
        base=base,
        published_at=next((at for at in dates if at is not None), None),
    )


def rss_said(item: Element) -> Said:
    """Return what an item of RSS says, be it one of RSS 1.0."""
    space, brace, _ = item.tag.rpartition("}")
    own = space + brace
    guid = item.find(f"{own}guid")
    href = text_of(item, f"{own}link")
    if not href and (link := item.find(f"{{{ATOM_NS}}}link")) is not None:
        href = link.get("href", "") if link.get("rel", "") in _ALTERNATE else ""
    if not href and guid is not None:
        text = text_of(item, f"{own}guid")
        is_url = text.startswith(("http:", "https:")) or ":" not in text.partition("/")[0]
        href = text if is_url and is_permalink(text, guid.get("isPermaLink")) else ""
    dates = (
        parse_rfc3339(text_of(item, f"{{{ATOM_NS}}}published")),
        parse_rfc822(text_of(item, f"{own}pubDate")),
        parse_rfc822(text_of(item, f"{{{DC_NS}}}date")),
    )
    return Said(
        id=item.get(_ABOUT, "") or text_of(item, f"{own}guid"),
        title=text_of(item, f"{own}title"),
        href=href,
        base=item.get(_XML_BASE, ""),
        published_at=next((at for at in dates if at is not None), None),
    )


def text_of(element: Element, name: str) -> str:
    """Return the text of the first child of that name, with that of its markup where it has any."""
    child = element.find(name)
    return "" if child is None else "".join(child.itertext()).strip(SPACES)


def _items_said(document: FeedDocument, ordinals: Sequence[int]) -> Iterator[Said]:
    for entry in (document.entries[ordinal] for ordinal in ordinals):
        yield item_said(json.loads(document.text[entry.start : entry.end], parse_int=str, parse_float=str))


def item_said(item: Mapping[str, Any]) -> Said:
    """Return what an item of a JSON Feed says; numbers are texts."""
    return Said(
        id=string_of(item.get("id")),
        title=string_of(item.get("title")),
        href=string_of(item.get("url")) or string_of(item.get("external_url")),
        base="",
        published_at=parse_rfc3339(string_of(item.get("date_published"))),
    )


def string_of(value: Any) -> str:
    """Return a member's text; half a character, which JSON can hold, is shown as a question mark."""
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else ""
