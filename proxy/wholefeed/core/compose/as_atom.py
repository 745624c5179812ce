"""Write a JSON Feed as Atom 1.0, for readers that know XML only (F1).

    convert_items([b'{"id": "1", "url": "https://example.org/1", "title": "A"}'], context)
    # [b'<entry><title>A</title><link rel="alternate" href="https://example.org/1"/><id>1</id>…</entry>']

Members without a place in Atom are left out: publishers' extensions, and URLs with schemes other than http
and https.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from wholefeed.core.compose.compose import MAX_HEAD_BYTES, ComposedHead, synthesize
from wholefeed.core.compose.entries import (
    LENGTH,
    TEXT_MARK,
    TEXT_MARK_NS,
    http_url,
    json_list,
    json_text,
    read_item,
    written_identity,
)
from wholefeed.core.model import EXTENSION, EntryId, Family
from wholefeed.core.parse.documents import parse
from wholefeed.core.parse.identities import SPACES
from wholefeed.core.parse.limits import UNLIMITED, ParseError
from wholefeed.core.text.dates import format_rfc3339, parse_rfc3339
from wholefeed.core.text.markup import escape, quoteattr, without_invalid
from wholefeed.core.verbatim.fragments import prefixes_in
from wholefeed.core.verbatim.json import with_values

CONVERT_VERSION: Final = b"1"
"""ETags of converted answers depend on this: no entry is composed for a tag."""
CONVERTED_PREFIXES: Final = prefixes_in(b"itunes: media:")
"""Mask of the `WELL_KNOWN_PREFIXES` that converted entries may use."""


class ConversionContext(NamedTuple):
    base: str
    """URL of the subscription document, for relative URLs in texts."""
    language: str
    """The feed's, for items without one; empty: none."""
    undated_at: float
    """Update instant of items without a date, since Atom requires one; epoch seconds."""
    ambiguous: frozenset[EntryId] = frozenset()
    """Keys that identify no item (R9)."""

    def digest(self) -> bytes:
        """Return a digest for entity tags."""
        said = "\0".join((self.base, self.language, str(self.undated_at)))
        return hashlib.blake2b(said.encode() + b"".join(sorted(self.ambiguous)), digest_size=16).digest()


# The head


def convert_head(head: bytes, *, identifier: str, updated_at: float) -> ComposedHead:
    """Return a head with this atom:id, as far as there is room."""
    members = _read_members(head)
    language = read_language(head)
    tongue = f" xml:lang={_attribute(language)}" if language else ""
    people = list(_people(members))
    made = [
        f"<title{tongue}>{_line(json_text(members.get('title'))[:_LONGEST_TITLE])}</title>",
        f"<id>{_text(identifier)}</id>",
        f"<updated>{format_rfc3339(updated_at)}</updated>",
        *_link("alternate", members.get("home_page_url"), ' type="text/html"'),
        # RFC 4287, 4.1.1 wants an author; an empty name says that the publisher names none.
        *(people or [_PERSON.format("", "")]),
        *(f"<subtitle{tongue}>{_text(said)}</subtitle>" for said in [_said(members, "description")] if said),
        *(f"<icon>{_text(url)}</icon>" for url in [_url(members.get("favicon"))] if url),
        *(f"<logo>{_text(url)}</logo>" for url in [_url(members.get("icon"))] if url),
    ]
    taken, size = list[bytes](), 0
    for each in made:
        text = each.encode() + b"\n"
        if size + len(text) <= MAX_HEAD_BYTES:
            taken.append(text)
            size += len(text)
    return ComposedHead(b"".join(taken), CONVERTED_PREFIXES, len(made) - len(taken))


_LONGEST_TITLE: Final = 20_000  # a head without a title is none


def read_language(head: bytes) -> str:
    """Return the language of a JSON Feed by its composed head; empty: none."""
    return _language(_read_members(head))


def _read_members(head: bytes) -> Mapping[str, Any]:
    return read_item(b"{%s}" % head)


# Items


def convert_items(texts: Sequence[bytes], context: ConversionContext) -> list[bytes]:
    """Return a segment's items as Atom entries."""
    return [_convert_item(text, context).encode() for text in texts]


def name_items(texts: Sequence[bytes], ambiguous: frozenset[EntryId]) -> list[bytes]:
    """Return items with ids (F2), before other changes."""
    items = ((text, read_item(text)) for text in texts)
    return [
        text if _own_id(item) else with_values(text, {"id": _identity(text, item, ambiguous)})
        for text, item in items
    ]


def _convert_item(text: bytes, context: ConversionContext) -> str:
    item = read_item(text)
    own, external = _url(item.get("url")), _url(item.get("external_url"))
    link = own or external
    published, updated = _date(item.get("date_published")), _date(item.get("date_modified"))
    tongue = _language(item) or context.language
    content = list(_content(item, context.base))
    if not content and not link:  # RFC 4287, 4.1.2: one of them has to be there
        content = ["<content/>"]
    pieces = [
        f"<entry xml:lang={_attribute(tongue)}>" if tongue else "<entry>",
        f"<title>{_line(json_text(item.get('title')))}</title>",
        *_link("alternate", link),
        *_link("related", external if external != link else ""),
        f"<id>{_text(_identity(text, item, context.ambiguous))}</id>",
        *(f"<published>{each}</published>" for each in [published] if each),
        f"<updated>{updated or published or format_rfc3339(context.undated_at)}</updated>",
        *_people(item),
        *(f"<category term={_attribute(each)}/>" for each in _tags(item)),
        *_attachments(item),
        *(f"<media:thumbnail url={_attribute(each)}/>" for each in [_url(item.get("image"))] if each),
        *(f"<summary>{_text(each)}</summary>" for each in [_said(item, "summary")] if each),
        *content,
        *_mark(item),
        "</entry>",
    ]
    return "".join(pieces)


def _identity(text: bytes, item: Mapping[str, Any], ambiguous: frozenset[EntryId]) -> str:
    """Return the item's id; without one, the key by which the proxy knows it (R9)."""
    if own := _own_id(item):
        return own
    try:
        found = parse(synthesize(Family.JSON, "1.1", [text]), _NO_URL, max_depth=UNLIMITED)
    except ParseError:
        return ""
    entries = found.identify(ambiguous).entries
    links = [json_text(item.get(name)) for name in ("url", "external_url") if _url(item.get(name))]
    return without_invalid(written_identity(entries[0].identity, links)) if entries else ""


def _own_id(item: Mapping[str, Any]) -> str:
    return without_invalid(json_text(item.get("id"))).strip(SPACES)


_NO_URL: Final = "http://item.invalid/"


def _content(item: Mapping[str, Any], base: str) -> Iterator[str]:
    if html := _said(item, "content_html"):
        yield f'<content type="html" xml:base={_attribute(base)}>{_text(html)}</content>'
    elif text := _said(item, "content_text"):
        yield f"<content>{_text(text)}</content>"


def _people(members: Mapping[str, Any]) -> Iterator[str]:
    """Yield authors; JSON Feed 1.0 has one in `author`, which counts if 1.1's `authors` names nobody."""
    found = list(dict.fromkeys(filter(None, map(_person, json_list(members.get("authors"))))))
    yield from found or filter(None, [_person(members.get("author"))])


def _person(said: Any) -> str:
    if not isinstance(said, dict):
        return ""
    name, url = _line(json_text(said.get("name"))), _url(said.get("url"))
    mail = _MAIL.fullmatch(without_invalid(json_text(said.get("url"))).strip())
    further = f"<uri>{_text(url)}</uri>" if url else f"<email>{_text(mail[1])}</email>" if mail else ""
    name = name or _text(url or (mail[1] if mail else ""))
    return _PERSON.format(name, further) if name else ""


_MAIL: Final = re.compile(r"mailto:([^\s?@]{1,64}@[^\s?@]{1,255})", re.IGNORECASE)
_PERSON: Final = "<author><name>{}</name>{}</author>"


def _tags(item: Mapping[str, Any]) -> Iterable[str]:
    lines = (" ".join(json_text(each).split()) for each in json_list(item.get("tags")))
    return dict.fromkeys(each for each in lines if without_invalid(each))


def _attachments(item: Mapping[str, Any]) -> Iterator[str]:
    seconds = ""
    for each in json_list(item.get("attachments")):
        if not isinstance(each, dict) or not (url := _url(each.get("url"))):
            continue
        media_type, title, size = (
            without_invalid(json_text(each.get(name))).strip()
            for name in ("mime_type", "title", "size_in_bytes")
        )
        yield "".join(
            (
                f'<link rel="enclosure" href={_attribute(url)}',
                f" type={_attribute(media_type)}" if media_type else "",
                f' length="{size}"' if LENGTH.fullmatch(size) else "",
                f" title={_attribute(title)}" if title else "",
                "/>",
            )
        )
        seconds = seconds or json_text(each.get("duration_in_seconds"))
    if whole := _SECONDS.fullmatch(seconds):
        yield f"<itunes:duration>{whole[1]}</itunes:duration>"


_SECONDS: Final = re.compile(r"([1-9][0-9]{0,8})(?:\.[0-9]{0,20})?", re.ASCII)


def _mark(item: Mapping[str, Any]) -> Iterator[str]:
    own = item.get(EXTENSION)
    if isinstance(own, dict) and (page := _url(own.get("text"))):
        prefix, _, name = TEXT_MARK.partition(":")
        yield f"<{prefix}:{name} xmlns:{prefix}={_attribute(TEXT_MARK_NS)} page={_attribute(page)}/>"


# Values


def _date(said: Any) -> str:
    """Return a date as RFC 3339, with the publisher's own offset if it is written so; empty: none."""
    written = json_text(said).strip()
    at = parse_rfc3339(written)
    if at is None:
        return ""
    return written if _RFC3339.fullmatch(written) else format_rfc3339(at)


_RFC3339: Final = re.compile(
    r"\d{4}-\d\d-\d\dT(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:\d\d)", re.ASCII
)


def _said(members: Mapping[str, Any], name: str) -> str:
    text = json_text(members.get(name))
    return text if text.strip() else ""


def _language(members: Mapping[str, Any]) -> str:
    found = _LANGUAGE.fullmatch(json_text(members.get("language")).strip())
    return found[0] if found else ""


_LANGUAGE: Final = re.compile(r"[A-Za-z]{1,8}(?:-[A-Za-z0-9]{1,8}){0,8}", re.ASCII)


def _link(relation: str, target: Any, further: str = "") -> Iterator[str]:
    if url := _url(target):
        yield f'<link rel="{relation}"{further} href={_attribute(url)}/>'


def _url(said: Any) -> str:
    return http_url("", without_invalid(json_text(said)))


def _line(text: str) -> str:
    return _text(" ".join(text.split()))


def _text(text: str) -> str:
    return escape(without_invalid(text), _RETURN)


_RETURN: Final = {"\r": "&#13;"}


def _attribute(text: str) -> str:
    return quoteattr(without_invalid(text))
