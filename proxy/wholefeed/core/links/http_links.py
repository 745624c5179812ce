"""Link header fields (RFC 8288): the links of a document that stand beside it.

links = header_links(['<../2003/11>; rel="prev-archive"'], "http://example.org/feed/")
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple
from urllib.parse import unquote

from wholefeed.core.model import Link
from wholefeed.core.terms import IANA_RELATION_PREFIX, Relation
from wholefeed.core.text.urls import resolve, same_document

HEADER_RELATIONS: Final = frozenset(
    {
        Relation.CURRENT,
        Relation.PREV_ARCHIVE,
        Relation.NEXT_ARCHIVE,
        Relation.FIRST,
        Relation.LAST,
        Relation.NEXT,
        Relation.PREVIOUS,
        Relation.PREV,
    }
)
"""What is taken from a header: RFC 5005's relations, and `prev`, the registered name of `previous`."""

WORDPRESS_API: Final = "https://api.w.org/"
"""Relation of the link to a WordPress site's REST API."""

MAX_HEADER_LINKS: Final = 200
"""Links that are read from the header fields of one document."""


class LinkValue(NamedTuple):
    """One link-value as it is written (RFC 8288, section 3)."""

    href: str
    parameters: tuple[tuple[str, str], ...]
    """Name in lower case and value, unquoted, in the order of the field."""

    def parameter(self, name: str) -> str | None:
        """Return the first value of a parameter (RFC 8288, section 3.3), None when it is absent."""
        return next((value for key, value in self.parameters if key == name), None)


# RFC 8288, appendix B.2; a quoted string that is never closed reaches to the end (appendix B.4).
_BETWEEN: Final = re.compile(r"[\s,]*")
_START: Final = re.compile("<([^>]*)>")
_PARAMETER: Final = re.compile(
    r"\s*;[\s;]*([^\s=;,\"]+)\s*(?:=\s*(?:\"((?:[^\"\\]|\\.)*)(?:\"|\\?\Z)|([^;,\s]*)))?"
)
_QUOTED_PAIR: Final = re.compile(r"\\(.)", re.DOTALL)


def parse_link_field(value: str) -> Iterator[LinkValue]:
    """Yield the links of one Link field value. What is no link is skipped up to the next comma."""
    position = 0
    while value.find(">", position) >= 0:
        position = _end(_BETWEEN, value, position)
        start = _START.match(value, position)
        if start is None:
            comma = value.find(",", position)
            position = comma if comma >= 0 else len(value)
            continue
        position = start.end()
        parameters = []
        while (match := _PARAMETER.match(value, position)) is not None:
            name, quoted, token = match.groups()
            text = token or "" if quoted is None else _QUOTED_PAIR.sub(r"\1", quoted)
            parameters.append((name.lower(), text))
            position = match.end()
        yield LinkValue(start[1].strip(), tuple(parameters))


def header_links(fields: Iterable[str], document_url: str) -> Sequence[Link]:
    """Return the links of a document that its Link header fields give (rule R12).

    Targets are relative to the document's URL, whatever xml:base says; a link whose `anchor` is not the
    document itself is skipped.

    Args:
        fields: Raw values of the Link header fields.
        document_url: After redirects.
    """
    links: list[Link] = []
    for field in fields:
        for value in parse_link_field(field):
            if not _is_foreign(value.parameter("anchor"), document_url):
                links += _links_of(value, document_url)
            if len(links) >= MAX_HEADER_LINKS:
                return links[:MAX_HEADER_LINKS]
    return links


def api_url(fields: Iterable[str], document_url: str) -> str:
    """Return the target of the link to WordPress's REST API (its handbook, "Discovery"); empty where none is.

    Args:
        fields: Raw values of the Link header fields.
        document_url: After redirects.
    """
    for field in fields:
        for value in parse_link_field(field):
            if WORDPRESS_API in _relations(value).split() and value.href:
                try:
                    return resolve(document_url, value.href)
                except ValueError:
                    return ""
    return ""


def relation_name(text: str) -> str:
    """Return a relation's bare name in lower case (RFC 4287, section 4.2.7.2; rule R12)."""
    return text.strip().lower().removeprefix(IANA_RELATION_PREFIX)


def _end(pattern: re.Pattern[str], text: str, position: int) -> int:
    match = pattern.match(text, position)
    return position if match is None else match.end()


def _links_of(value: LinkValue, document_url: str) -> Iterator[Link]:
    target = ""
    if value.href:
        try:
            target = resolve(document_url, value.href)
        except ValueError:
            target = ""
    media_type = (value.parameter("type") or "").partition(";")[0].strip().lower()
    for name in dict.fromkeys(map(relation_name, _relations(value).split())):
        if name in HEADER_RELATIONS:
            yield Link(name, target, media_type, value.href)


def _relations(value: LinkValue) -> str:
    plain = value.parameter("rel")
    if plain is not None:
        return plain
    extended = value.parameter("rel*") or ""  # RFC 8187, section 3.2: charset'language'value
    return unquote(extended.split("'", 2)[-1])


def _is_foreign(anchor: str | None, document_url: str) -> bool:
    """RFC 8288, section 3.2: an anchor moves the link's context, also to a part of the document."""
    if anchor is None:
        return False
    try:
        context = resolve(document_url, anchor)
    except ValueError:
        return True
    return bool(context.partition("#")[2]) or not same_document(context, document_url)
