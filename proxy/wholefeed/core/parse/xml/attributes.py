"""What the attributes of head elements mean: bases, languages, links."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from wholefeed.core.model import Link, Scope, Tombstone, entry_id
from wholefeed.core.parse.identities import SPACES
from wholefeed.core.parse.limits import MAX_LANG_CHARACTERS
from wholefeed.core.terms import ATOM_NAMESPACES, IANA_RELATION_PREFIX, TOMBSTONE_NS, XML_NS
from wholefeed.core.text.dates import parse_rfc3339
from wholefeed.core.text.markup import attribute_of
from wholefeed.core.text.urls import MAX_URL_CHARACTERS, resolve

MAX_REF_CHARACTERS: Final = 4096
MAX_SCOPE_PREFIXES: Final = 128
MAX_SCOPE: Final = 8192
"""Characters of the namespace declarations around the entries: each entry may have to repeat them."""

LINKS: Final = frozenset(f"{namespace}}}link" for namespace in ATOM_NAMESPACES)
DELETED: Final = f"{TOMBSTONE_NS}}}deleted-entry"
"""Names as expat reports them."""

_XML_BASE: Final = f"{XML_NS}}}base"
_XML_LANG: Final = f"{XML_NS}}}lang"


def inner_scope(outer: Scope, declarations: Mapping[str, str], attributes: Sequence[str]) -> Scope:
    """Return what holds inside of an element."""
    lang = attribute_of(attributes, _XML_LANG)
    if lang is None or len(lang) > MAX_LANG_CHARACTERS:
        lang = outer.lang
    prefixes = {**outer.prefixes, **declarations}
    return Scope(prefixes, lang.strip(SPACES), base_in(outer.base, attributes))


def too_much(prefixes: Mapping[str, str]) -> str:
    """Return what would be acceptable, where entries cannot be made to repeat these declarations; else ''."""
    if len(prefixes) > MAX_SCOPE_PREFIXES or sum(map(len, (*prefixes, *prefixes.values()))) > MAX_SCOPE:
        return f"at most {MAX_SCOPE_PREFIXES} namespaces of {MAX_SCOPE} characters around the entries"
    return ""


def head_link(attributes: Sequence[str], scope: Scope) -> Link:
    """Return what an atom:link of the head says (R11, R12; RFC 4287, 4.2.7)."""
    relation = (attribute_of(attributes, "rel") or "").strip(SPACES).lower() or "alternate"
    href = (attribute_of(attributes, "href") or "").strip(SPACES)
    try:
        target = resolve(base_in(scope.base, attributes), href) if href else ""
    except ValueError:
        target = ""
    media_type = (attribute_of(attributes, "type") or "").partition(";")[0].strip(SPACES).lower()
    return Link(relation.removeprefix(IANA_RELATION_PREFIX), target, media_type, href)


def tombstone(attributes: Sequence[str]) -> Tombstone | None:
    """Return what an at:deleted-entry says (RFC 6721, 3); None when its ref or its instant is missing."""
    ref = (attribute_of(attributes, "ref") or "").strip(SPACES)
    when_at = parse_rfc3339(attribute_of(attributes, "when") or "")
    if not ref or when_at is None:
        return None
    return Tombstone(entry_id(ref), when_at, ref if len(ref) <= MAX_REF_CHARACTERS else "")


def base_in(outer: str, attributes: Sequence[str]) -> str:
    """Return the base inside of an element (XML Base, 4); an xml:base that is unusable changes nothing."""
    reference = attribute_of(attributes, _XML_BASE)
    if reference is None:
        return outer
    try:
        made = resolve(outer, reference)
    except ValueError:
        return outer
    return made if len(made) <= MAX_URL_CHARACTERS else outer
