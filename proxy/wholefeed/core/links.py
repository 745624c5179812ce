"""What kind of feed a document belongs to, and where its links lead (rules R0 to R7, R11, R12).

Every dialect ends in one answer, the `Navigation`.

    navigation = classify(document, http_links)
    match subscription_hint(asked_url, document.url, navigation):
        case Follow(url): ...     # dereference `current`, once
        case Forward(url): ...    # an archive document; go forward while there is a URL
        case Serve(): ...         # it is the subscription document

A dialect is one of the systems that tie feed documents together. Everything that `recognise` looks at is kept
with a stored document too, so its dialect is recognised again without its body (`recall`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, NamedTuple
from urllib.parse import unquote

from wholefeed.core.model import (
    IANA_RELATION_PREFIX,
    Family,
    FeedDocument,
    HistoryElement,
    Kind,
    Link,
    Relation,
)
from wholefeed.core.notes import BadLink, DeadChainLink, ExtraLink, Note
from wholefeed.core.text.urls import is_fetchable, resolve, safe_url, same_document

DEAD: Final = "dead:"
"""Before the relation, in `Navigation.links`: a target that is not to be followed."""
FH_PREV: Final = "fh:prev"
"""The fh:prev element of the drafts -03 and -04, as a key of `Navigation.links`."""
FH_INCREMENTAL: Final = "fh:incremental"
"""What the flags say, as a key of `Navigation.links`: "true", "false", or absent."""


def classify(document: FeedDocument, http_links: Sequence[str] = ()) -> Navigation:
    """Return what a document says about its feed (rules R0 to R7, R11, R12).

    Args:
        document: Any document of a feed; `kind` is meant for the subscription document alone (R0).
        http_links: Raw values of its HTTP Link header fields (RFC 8288).
    """
    links, notes = _usable_links(document, header_links(http_links, document.url))
    flag = incremental_flag(document.head.history)
    if flag is not None:
        links[FH_INCREMENTAL] = _FLAG_TEXT[flag]
    names = {element.name for element in document.head.history}
    is_archive, is_complete = "archive" in names, "complete" in names
    is_whole = not any(note.partial for note in document.notes)
    finding = _recognised(
        tuple(links), flag, is_archive=is_archive, is_complete=is_complete, is_whole=is_whole
    )
    return Navigation(
        url=document.url,
        kind=finding.kind,
        links=links,
        is_archive=is_archive,
        older_relation=finding.relation,
        is_tentative=finding.is_tentative,
        notes=notes,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Navigation:
    """What one document says about its feed and its neighbours."""

    url: str
    """The document's own, after redirects."""
    kind: Kind
    links: Mapping[str, str]
    """The usable http(s) target per relation, and what `recall` needs. Read it by the functions below."""
    is_archive: bool
    """Whether it is marked as an archive document (fh:archive; RFC 5005, section 4)."""
    older_relation: str
    """The relation that leads to the older documents of a chain; empty when none does."""
    is_tentative: bool = False
    """Whether that is a chain only if the document it leads to is not newer (R4)."""
    notes: tuple[Note, ...] = ()

    @property
    def current_url(self) -> str | None:
        """The subscription document (RFC 5005, section 4)."""
        return self.links.get(Relation.CURRENT)

    @property
    def newer_url(self) -> str | None:
        """The next newer archive document (RFC 5005, section 4)."""
        return self.links.get(Relation.NEXT_ARCHIVE)


def recall(links: Mapping[str, str], *, is_archive: bool) -> Finding:
    """Return what a stored document said about its feed, except that it is complete (R1, R5).

    Args:
        links: As in `Navigation.links`, stored.
        is_archive: As in `Navigation.is_archive`, stored.
    """
    flag = says_incremental(links) if FH_INCREMENTAL in links else None
    return _recognised(tuple(links), flag, is_archive=is_archive, is_complete=False, is_whole=False)


_FLAG_TEXT: Final = {True: "true", False: "false"}


@lru_cache(maxsize=256)  # there are few, and each document and each refresh has one of them
def _recognised(
    relations: tuple[str, ...], flag: bool | None, *, is_archive: bool, is_complete: bool, is_whole: bool
) -> Finding:
    """Where the links lead makes no difference to what they say."""
    links = dict.fromkeys(relations, "")
    if flag is not None:
        links[FH_INCREMENTAL] = _FLAG_TEXT[flag]
    evidence = Evidence(links=links, is_archive=is_archive, is_complete=is_complete, is_whole=is_whole)
    return recognise(evidence)


def says_incremental(links: Mapping[str, str]) -> bool:
    """Whether a flag says that earlier entries are part of the feed (-00, section 3; rule R15)."""
    return links.get(FH_INCREMENTAL) == "true"


def older_target(links: Mapping[str, str], relation: str) -> str | None:
    """Return where the relation that is being followed leads from a document; None at the chain's end.

    Args:
        links: As in `Navigation.links`, fresh or stored.
        relation: The chain's, as in `Navigation.older_relation` of its subscription document (R0).
    """
    return links.get(relation)


def dead_link(links: Mapping[str, str], relation: str, url: str) -> Note | None:
    """Return a note when a document's only link to the older ones cannot be followed (rule R2).

    Args:
        links: As in `Navigation.links`, fresh or stored.
        relation: The chain's.
        url: The document's.
    """
    href = links.get(f"{DEAD}{relation}")
    return None if href is None else DeadChainLink(url, href=href)


def subscription_hint(asked_url: str, final_url: str, navigation: Navigation) -> Serve | Follow | Forward:
    """Return how to get from a document to its feed's subscription document (rule R3; -05, section 6.1).

        asked --Follow--> the target of `current`: it serves, whatever it says itself
              --Forward-> the next newer archive document: ask again there; the result is never complete
              --Serve

    Args:
        asked_url: What was asked for.
        final_url: After redirects.
        navigation: The document's.
    """
    current = navigation.current_url
    if current is not None:
        is_itself = same_document(current, asked_url) or same_document(current, final_url)
        return Serve() if is_itself else Follow(current)
    return Forward(navigation.newer_url) if navigation.is_archive else Serve()


@dataclass(frozen=True, slots=True)
class Serve:
    """The document is the subscription document."""


@dataclass(frozen=True, slots=True)
class Follow:
    """The subscription document is the one that `current` names; dereference it once."""

    url: str


@dataclass(frozen=True, slots=True)
class Forward:
    """An archive document that names no subscription document: the result can never be complete.

    Go on with `url`, the next newer archive document, and ask again there; where it is None, this
    document serves.
    """

    url: str | None


# One target per relation

_RELATIONS: Final = (*Relation, FH_PREV)
_KNOWN_RELATIONS: Final = frozenset(_RELATIONS)
_NOTED_RELATIONS: Final = _KNOWN_RELATIONS - {Relation.SELF, Relation.THIS}
MAX_LINK_NOTES: Final = 20
"""Notes on the links of one document."""


def _usable_links(
    document: FeedDocument, from_header: Sequence[Link]
) -> tuple[dict[str, str], tuple[Note, ...]]:
    """Choose one target per relation; the document's own links before those of the header (R12)."""
    own, beside = _by_relation(_head_links(document)), _by_relation(from_header)
    links: dict[str, str] = {}
    notes: list[Note] = []
    for relation in _RELATIONS:
        mine, others = own.get(relation, []), beside.get(relation, [])
        if not (mine or others):  # as of nearly all
            continue
        chosen = _chosen(mine, document.family) or _chosen(others, document.family)
        if chosen is not None:
            links[relation] = chosen.target.partition("#")[0]
        elif (dead := next((link for link in mine + others if link.href.strip()), None)) is not None:
            links[f"{DEAD}{relation}"] = safe_url(dead.href, keeps_query=True)
        if relation in _NOTED_RELATIONS:
            notes += _link_notes(mine or others, chosen, document.url)
    return links, tuple(notes[:MAX_LINK_NOTES])


def _head_links(document: FeedDocument) -> list[Link]:
    """Return the links of a head; the content of fh:prev is one too, relative to the base (-03, -04)."""
    links = [link for link in document.head.links if link.relation != FH_PREV]
    for element in document.head.history:
        if element.name == "prev":
            try:
                target = resolve(document.head.scope.base, element.text) if element.text else ""
            except ValueError:
                target = ""
            links.append(Link(FH_PREV, target, "", element.text))
    return links


_MAX_LINKS_PER_RELATION: Final = 20
"""Links of one relation that are looked at; a hostile head can hold any number of them."""


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
    """R12: the first http(s) link whose type fits; where none fits, the first http(s) one."""
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


# The dialects, one recogniser each


def recognise(evidence: Evidence) -> Finding:
    """Return the first dialect that fits, in the order of R0; a feed that speaks none is R7's.

    recognise(Evidence(links={"prev-archive": "http://o.test/1"}))   # Finding(Kind.ARCHIVED, "prev-archive")
    """
    for recogniser in _RECOGNISERS:
        finding = recogniser(evidence)
        if finding is not None:
            return finding
    return Finding(Kind.PLAIN)


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What the recognisers look at."""

    links: Mapping[str, str]
    """As in `Navigation.links`."""
    is_archive: bool = False
    """Whether it is marked as an archive document (fh:archive)."""
    is_complete: bool = False
    """Whether fh:complete stands in it."""
    is_whole: bool = True
    """Whether the document was received whole."""

    @property
    def is_incremental(self) -> bool | None:
        """What the flags of the drafts say; None where they say nothing."""
        flag = self.links.get(FH_INCREMENTAL)
        return None if flag is None else flag == "true"

    def has(self, *relations: str) -> bool:
        """Whether the document bears one of the relations, be it with a target that cannot be followed."""
        links = self.links
        return any([name in links or DEAD + name in links for name in relations])  # noqa: C419 - they are few


class Finding(NamedTuple):
    """What a document says its feed is."""

    kind: Kind
    relation: str = ""
    """Leads to the older documents of a chain; empty when there is none."""
    is_tentative: bool = False
    """Whether the link counts only if what it leads to is not newer (R4)."""


_FLAGS: Final = frozenset({"stateful", "incremental"})
_FLAG_VALUES: Final = {"1": True, "true": True, "0": False, "false": False}


def incremental_flag(history: Iterable[HistoryElement]) -> bool | None:
    """Return what the flags of a head say (-00, 3; -04); None where they say nothing.

    `fh:stateful` and `fh:incremental` are one question asked twice: 1 or true is yes, 0 or false is no, in
    any case and with any white space around it; anything else counts as absent. Where several are given and
    do not agree, the feed is incremental: the other answer takes entries away.
    """
    values = {_FLAG_VALUES.get(element.text.strip().lower()) for element in history if element.name in _FLAGS}
    return True if True in values else False if False in values else None


_PAGING: Final = (Relation.NEXT, Relation.FIRST, Relation.LAST)
_BACK: Final = (Relation.PREV, Relation.PREVIOUS)


def _complete(evidence: Evidence) -> Finding | None:
    """R1; RFC 5005, section 2: fh:complete, which means nothing on an archive document. R5 is alike."""
    is_all = evidence.is_complete or evidence.is_incremental is False
    if is_all and evidence.is_whole and not evidence.is_archive:
        return Finding(Kind.COMPLETE)
    return None


def _archived(evidence: Evidence) -> Finding | None:
    """R2; RFC 5005, section 4.2: prev-archive, also beside paging links."""
    if evidence.has(Relation.PREV_ARCHIVE):
        return Finding(Kind.ARCHIVED, Relation.PREV_ARCHIVE)
    return None


def _prev_element(evidence: Evidence) -> Finding | None:
    """R4; -03, -04: an fh:prev element implies an incremental feed, unless a flag says no."""
    if evidence.has(FH_PREV) and evidence.is_incremental is not False:
        return Finding(Kind.LEGACY, FH_PREV)
    return None


def _prev_of_a_state(evidence: Evidence) -> Finding | None:
    """R4; -00, 4; PaceFeedState: `prev` of a document that says it is one state of its feed."""
    if evidence.has(Relation.PREV) and (evidence.is_incremental or evidence.has(Relation.THIS)):
        return Finding(Kind.LEGACY, Relation.PREV)
    return None


def _previous_of_an_archive(evidence: Evidence) -> Finding | None:
    """R4; -05, 4: `previous` with `current` or fh:archive. Publishers of pages bear both, too."""
    if evidence.has(Relation.PREVIOUS) and (evidence.is_archive or evidence.has(Relation.CURRENT)):
        return Finding(Kind.LEGACY, Relation.PREVIOUS, is_tentative=evidence.has(*_PAGING))
    return None


def _bare_link(evidence: Evidence) -> Finding | None:
    """R4: `prev` or `previous` where no paging link stands."""
    relation = next((relation for relation in _BACK if evidence.has(relation)), None)
    if relation is not None and not evidence.has(*_PAGING):
        return Finding(Kind.LEGACY, relation, is_tentative=True)
    return None


def _paged(evidence: Evidence) -> Finding | None:
    """R6; RFC 5005, section 3."""
    return Finding(Kind.PAGED) if evidence.has(*_PAGING, *_BACK) else None


_RECOGNISERS: Final[tuple[Callable[[Evidence], Finding | None], ...]] = (
    _complete,  # R1, R5
    _archived,  # R2
    _prev_element,  # R4, in its order
    _prev_of_a_state,
    _previous_of_an_archive,
    _bare_link,
    _paged,  # R6
)


# Link header fields (RFC 8288): the links of a document that stand beside it

MAX_HEADER_LINKS: Final = 200
"""Links that are read from the header fields of one document."""


def header_links(fields: Iterable[str], document_url: str) -> Sequence[Link]:
    """Return the links of a document that its Link header fields give (rule R12).

        links = header_links(['<../2003/11>; rel="prev-archive"'], "http://example.org/feed/")

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


def updated_links(
    fields: Sequence[str], document_url: str, links: Mapping[str, str]
) -> tuple[str, ...] | None:
    """Return the Link fields that a stored document has after a 304; None: it leads nowhere else.

    Those of a 304 replace the links of their relations. The others stay: many a cache bears a field of its
    own beside its 304, and none of the publisher's.

    Args:
        fields: Of the 304.
        document_url: The document's own.
        links: As in `Navigation.links`, stored.
    """
    named = {link.relation: link.target for link in header_links(fields, document_url) if link.target}
    if named.items() <= links.items():
        return None
    others = HEADER_RELATIONS & (links.keys() - named.keys())
    return (*fields, *(f'<{links[relation]}>; rel="{relation}"' for relation in sorted(others)))


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


def relation_name(text: str) -> str:
    """Return a relation's bare name in lower case (RFC 4287, section 4.2.7.2; rule R12)."""
    return text.strip().lower().removeprefix(IANA_RELATION_PREFIX)


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


_WORDPRESS_API: Final = "https://api.w.org/"
"""Relation of the link to a WordPress site's REST API."""


def api_url(fields: Iterable[str], document_url: str) -> str:
    """Return the target of the link to WordPress's REST API (its handbook, "Discovery"); empty where none is.

    Args:
        fields: Raw values of the Link header fields.
        document_url: After redirects.
    """
    for field in fields:
        for value in parse_link_field(field):
            if _WORDPRESS_API in _relations(value).split() and value.href:
                try:
                    return resolve(document_url, value.href)
                except ValueError:
                    return ""
    return ""


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


def _end(pattern: re.Pattern[str], text: str, position: int) -> int:
    match = pattern.match(text, position)
    return position if match is None else match.end()
