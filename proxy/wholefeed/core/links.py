"""The dialects of links between feed documents, and the targets of links (R0 to R7, R11, R12).

`recognise` uses only stored facts, so `recall` needs no body.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Final, NamedTuple
from urllib.parse import unquote

from wholefeed.core.model import (
    IANA_RELATION_PREFIX,
    NEW_FEED_URL,
    Family,
    FeedDocument,
    HistoryElement,
    Kind,
    Link,
    Relation,
)
from wholefeed.core.notes import BadLink, DeadChainLink, ExtraLink, NewAddress, Note
from wholefeed.core.text.markup import attribute_places, unescape
from wholefeed.core.text.urls import is_fetchable, resolve, resolve_or_empty, safe_url, same_document

DEAD: Final = "dead:"
"""Prefix of a key of `Navigation.links`: the target cannot be followed."""
FH_PREV: Final = "fh:prev"
"""Key for the fh:prev element (drafts -03, -04)."""
FH_INCREMENTAL: Final = "fh:incremental"
"""Key for the flags: "true", "false" or absent."""


def classify(document: FeedDocument, http_links: Sequence[str] = ()) -> Navigation:
    """Classify a document by its links and flags.

    `http_links` are raw values of Link fields (RFC 8288). `kind` counts for the subscription document only
    (R0).
    """
    links, notes = _usable_links(document, header_links(http_links, document.url))
    flag = incremental_flag(document.head.history)
    if flag is not None:
        links[FH_INCREMENTAL] = "true" if flag else "false"
    names = {element.name for element in document.head.history}
    is_archive = "archive" in names
    is_whole = not any(note.partial for note in document.notes)
    finding = recognise(links, is_archive=is_archive, is_complete="complete" in names, is_whole=is_whole)
    return Navigation(
        url=document.url,
        kind=finding.kind,
        links=links,
        is_archive=is_archive,
        older_relation=finding.relation,
        is_tentative=finding.is_tentative,
        notes=(*notes, *_new_address(document)),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Navigation:
    url: str
    """After redirects."""
    kind: Kind
    links: Mapping[str, str]
    """Usable http(s) target per relation, and the other keys that `recall` needs."""
    is_archive: bool
    """Whether fh:archive is present (RFC 5005, section 4)."""
    older_relation: str
    """Relation to the older documents of a chain; empty: none."""
    is_tentative: bool = False
    """Whether the chain counts only if the linked document is not newer (R4)."""
    notes: tuple[Note, ...] = ()

    @property
    def current_url(self) -> str | None:
        return self.links.get(Relation.CURRENT)

    @property
    def newer_url(self) -> str | None:
        return self.links.get(Relation.NEXT_ARCHIVE)


def recall(links: Mapping[str, str], *, is_archive: bool) -> LinkFinding:
    """Recognise the dialect of a stored document; never finds it complete (R1, R5)."""
    return recognise(links, is_archive=is_archive, is_whole=False)


def says_incremental(links: Mapping[str, str]) -> bool:
    """Return whether a flag says that earlier entries are part of the feed (-00, section 3; R15)."""
    return links.get(FH_INCREMENTAL) == "true"


def dead_link(links: Mapping[str, str], relation: str, url: str) -> Note | None:
    """Return a note if the only link to older documents cannot be followed (R2)."""
    href = links.get(f"{DEAD}{relation}")
    return None if href is None else DeadChainLink(url, href=href)


def current_elsewhere(navigation: Navigation, *own_urls: str) -> str | None:
    """Return the subscription document that a document names, if it is another one (R3; -05, 6.1).

    `own_urls` are the document's URLs before and after redirects.
    """
    # R3: the caller follows the link once; the document there serves, even if it names yet another.
    current = navigation.current_url
    is_itself = current is None or any(same_document(current, url) for url in own_urls)
    return None if is_itself else current


# One target per relation

_RELATIONS: Final = (*Relation, FH_PREV)
_KNOWN_RELATIONS: Final = frozenset(_RELATIONS)
_NOTED_RELATIONS: Final = _KNOWN_RELATIONS - {Relation.SELF, Relation.THIS}
MAX_LINK_NOTES: Final = 20


def _usable_links(
    document: FeedDocument, from_header: Sequence[Link]
) -> tuple[dict[str, str], tuple[Note, ...]]:
    own, beside = _by_relation(_head_links(document)), _by_relation(from_header)
    links: dict[str, str] = {}
    notes: list[Note] = []
    for relation in _RELATIONS:
        mine, others = own.get(relation, []), beside.get(relation, [])
        if not (mine or others):  # nearly all relations
            continue
        # R12: the document's own links precede those of the header.
        chosen = _chosen(mine, document.family) or _chosen(others, document.family)
        if chosen is not None:
            links[relation] = chosen.target.partition("#")[0]
        elif (dead := next((link for link in mine + others if link.href.strip()), None)) is not None:
            links[f"{DEAD}{relation}"] = safe_url(dead.href, keeps_query=True)
        if relation in _NOTED_RELATIONS:
            notes += _link_notes(mine or others, chosen, document.url)
    return links, tuple(notes[:MAX_LINK_NOTES])


def _head_links(document: FeedDocument) -> list[Link]:
    links = [link for link in document.head.links if link.relation != FH_PREV]
    for element in document.head.history:
        # -03, -04: the content of fh:prev is a link, relative to the base.
        if element.name == "prev":
            target = resolve_or_empty(document.head.scope.base, element.text)
            links.append(Link(FH_PREV, target, "", element.text))
    return links


# A hostile head can hold any number of links.
_MAX_LINKS_PER_RELATION: Final = 20


def _by_relation(links: Sequence[Link]) -> dict[str, list[Link]]:
    grouped: dict[str, list[Link]] = {}
    for link in links:
        if link.relation in _KNOWN_RELATIONS:
            group = grouped.setdefault(link.relation, [])
            if len(group) < _MAX_LINKS_PER_RELATION:
                group.append(link)
    return grouped


_XML_TYPES: Final = frozenset({"application/xml", "text/xml"})
_FITTING_TYPES: Final = {
    Family.ATOM: _XML_TYPES | {"application/atom+xml"},
    Family.RSS: _XML_TYPES | {"application/rss+xml", "application/x-rss+xml", "text/rss", "text/rss+xml"},
    Family.RDF: _XML_TYPES | {"application/rdf+xml", "application/rss+xml", "text/rdf", "text/rdf+xml"},
    Family.JSON: frozenset({"application/feed+json", "application/json"}),
}


def _chosen(links: Sequence[Link], family: Family) -> Link | None:
    # R12: the first http(s) link of a fitting type, else the first http(s) link.
    usable = [link for link in links if is_fetchable(link.target)]
    fitting = (link for link in usable if not link.media_type or link.media_type in _FITTING_TYPES[family])
    return next(fitting, usable[0] if usable else None)


def _link_notes(links: Sequence[Link], chosen: Link | None, url: str) -> list[Note]:
    notes: list[Note] = []
    for link in links:
        if not is_fetchable(link.target):
            notes.append(BadLink(url, **_as_written(link)))
        elif chosen is not None and not same_document(link.target, chosen.target):
            notes.append(ExtraLink(url, **_as_written(link)))
    return notes


def _as_written(link: Link) -> dict[str, str]:
    return {"relation": link.relation, "href": safe_url(link.href, keeps_query=True)}


# The new address that a feed names


def _new_address(document: FeedDocument) -> Iterator[Note]:
    child = next((each for each in document.head.children if each.plain_name == NEW_FEED_URL), None)
    if child is None or document.family is Family.JSON:
        return
    start = attribute_places(document.text, child.start).end
    written = document.text[start : min(child.end, start + _MAX_ADDRESS_BYTES)].rpartition(b"</")[0]
    href = unescape(_CDATA_MARKS.sub(b"", written).decode("utf-8", "replace")).strip()
    target = resolve_or_empty(document.head.scope.base, href)
    # The element stays for years, also at the new address.
    if target and not same_document(target, document.url):
        yield NewAddress(document.url, href=safe_url(target, keeps_query=True))


_MAX_ADDRESS_BYTES: Final = 8192
_CDATA_MARKS: Final = re.compile(rb"<!\[CDATA\[|\]\]>|<!--.*?-->", re.DOTALL)


# The dialects


def recognise(
    links: Mapping[str, str], *, is_archive: bool = False, is_complete: bool = False, is_whole: bool = True
) -> LinkFinding:
    """Return the finding of the first dialect that fits, in the order of R0.

    `links` are those of `Navigation`; targets do not matter. `is_whole`: the document was received whole.
    """
    borne = {relation.removeprefix(DEAD) for relation in links}
    flag = links.get(FH_INCREMENTAL)
    is_paged = not borne.isdisjoint(_PAGING)
    finding = LinkFinding(Kind.PAGED if is_paged else Kind.PLAIN)  # R6; RFC 5005, section 3
    if (is_complete or flag == "false") and is_whole and not is_archive:
        # R1; RFC 5005, section 2: fh:complete, which means nothing on an archive document. R5 is alike.
        finding = LinkFinding(Kind.COMPLETE)
    elif Relation.PREV_ARCHIVE in borne:
        # R2; RFC 5005, section 4.2: also beside paging links.
        finding = LinkFinding(Kind.ARCHIVED, Relation.PREV_ARCHIVE)
    elif FH_PREV in borne and flag != "false":
        # R4; -03, -04: the element implies an incremental feed, unless a flag says no.
        finding = LinkFinding(Kind.LEGACY, FH_PREV)
    elif Relation.PREV in borne and (flag == "true" or Relation.THIS in borne):
        # R4; -00, 4; PaceFeedState: the document says that it is one state of its feed.
        finding = LinkFinding(Kind.LEGACY, Relation.PREV)
    elif Relation.PREVIOUS in borne and (is_archive or Relation.CURRENT in borne):
        # R4; -05, 4. Publishers of pages bear both, too.
        finding = LinkFinding(Kind.LEGACY, Relation.PREVIOUS, is_tentative=is_paged)
    elif not is_paged and not borne.isdisjoint(_BACK):
        # R4: a bare `prev` or `previous`.
        relation = Relation.PREV if Relation.PREV in borne else Relation.PREVIOUS
        finding = LinkFinding(Kind.LEGACY, relation, is_tentative=True)
    return finding


class LinkFinding(NamedTuple):
    kind: Kind
    relation: str = ""
    """See `Navigation.older_relation`."""
    is_tentative: bool = False


_PAGING: Final = (Relation.NEXT, Relation.FIRST, Relation.LAST)
_BACK: Final = (Relation.PREV, Relation.PREVIOUS)
_FLAGS: Final = frozenset({"stateful", "incremental"})
_FLAG_VALUES: Final = {"1": True, "true": True, "0": False, "false": False}


def incremental_flag(history: Iterable[HistoryElement]) -> bool | None:
    """Return the value of fh:stateful and fh:incremental (-00, 3; -04); None: absent or unknown."""
    values = {_FLAG_VALUES.get(element.text.strip().lower()) for element in history if element.name in _FLAGS}
    # If flags disagree, the feed is incremental: the other reading takes entries away.
    return True if True in values else False if False in values else None


# Link header fields (RFC 8288)

MAX_HEADER_LINKS: Final = 200
HEADER_RELATIONS: Final = frozenset(
    {
        *(Relation.CURRENT, Relation.PREV_ARCHIVE, Relation.NEXT_ARCHIVE),
        *(Relation.FIRST, Relation.LAST, Relation.NEXT, Relation.PREVIOUS, Relation.PREV),
    }
)
"""RFC 5005's relations, and `prev`, the registered name of `previous`."""


def header_links(fields: Iterable[str], document_url: str) -> Sequence[Link]:
    """Return the links in a document's Link fields (R12)."""
    found: list[Link] = []
    for href, parameters in chain.from_iterable(map(parse_link_field, fields)):
        # A link with a foreign `anchor` is not the document's.
        if _is_foreign(parameters.get("anchor"), document_url):
            continue
        # xml:base does not count here.
        target = resolve_or_empty(document_url, href)
        media_type = parameters.get("type", "").partition(";")[0].strip().lower()
        names = (name.lower().removeprefix(IANA_RELATION_PREFIX) for name in _relations(parameters))
        relations = [name for name in dict.fromkeys(names) if name in HEADER_RELATIONS]
        found += [Link(relation, target, media_type, href) for relation in relations]
        if len(found) >= MAX_HEADER_LINKS:
            break
    return found[:MAX_HEADER_LINKS]


def _relations(parameters: Mapping[str, str]) -> list[str]:
    extended = parameters.get("rel*", "").split("'", 2)[-1]  # RFC 8187, section 3.2: charset'language'value
    return parameters.get("rel", unquote(extended)).split()


def _is_foreign(anchor: str | None, document_url: str) -> bool:
    if anchor is None:
        return False
    try:
        context = resolve(document_url, anchor)
    except ValueError:
        return True
    # RFC 8288, section 3.2: an anchor moves the link's context, also to a part of the document.
    return bool(context.partition("#")[2]) or not same_document(context, document_url)


def updated_links(
    fields: Sequence[str], document_url: str, links: Mapping[str, str]
) -> tuple[str, ...] | None:
    """Return a stored document's Link fields after a 304; None: no link has changed."""
    named = {link.relation: link.target for link in header_links(fields, document_url) if link.target}
    if named.items() <= links.items():
        return None
    # Many caches send a Link field of their own with a 304, and none of the publisher's: other relations
    # stay.
    others = HEADER_RELATIONS & (links.keys() - named.keys())
    return (*fields, *(f'<{links[relation]}>; rel="{relation}"' for relation in sorted(others)))


# Relation of the link to a WordPress site's REST API.
_WORDPRESS_API: Final = "https://api.w.org/"


def api_url(fields: Iterable[str], document_url: str) -> str:
    """Return the URL of WordPress's REST API (its handbook, "Discovery"); empty: no link."""
    for href, parameters in chain.from_iterable(map(parse_link_field, fields)):
        if href and _WORDPRESS_API in _relations(parameters):
            return resolve_or_empty(document_url, href)
    return ""


def parse_link_field(value: str) -> Iterator[tuple[str, Mapping[str, str]]]:
    """Yield target and parameters, in lower case, of each link in a Link field (RFC 8288, section 3)."""
    position, last_end = 0, value.rfind(">")
    while position <= last_end:
        position = _end(_BETWEEN, value, position)
        start = _START.match(value, position)
        if start is None:
            # Invalid text is skipped up to the next comma.
            comma = value.find(",", position)
            position = comma if comma >= 0 else len(value)
            continue
        position = start.end()
        parameters: dict[str, str] = {}
        while (match := _PARAMETER.match(value, position)) is not None:
            name, quoted, token = match.groups()
            text = token or "" if quoted is None else _QUOTED_PAIR.sub(r"\1", quoted)
            # RFC 8288, section 3.3: the first parameter of a name counts.
            parameters.setdefault(name.lower(), text)
            position = match.end()
        yield start[1].strip(), parameters


# RFC 8288, appendix B.2; a quoted string that is never closed reaches to the end (appendix B.4).
_BETWEEN: Final = re.compile(r"[\s,]*")
_START: Final = re.compile("<([^>]*)>")
_PARAMETER: Final = re.compile(
    r"\s*;[\s;]*([^\s=;,\"]+)\s*(?:=\s*(?:\"((?:[^\"\\]|\\.)*)(?:\"|\\?\Z)|([^;,\s]*)))?"
)
_QUOTED_PAIR: Final = re.compile(r"\\(.)", re.DOTALL)


def _end(pattern: re.Pattern[str], text: str, position: int) -> int:
    match = pattern.match(text, position)
    return position if match is None else match.end()
