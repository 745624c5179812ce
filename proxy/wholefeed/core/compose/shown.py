"""An entry as people read it: from its text in a segment to its title, author, content and enclosures.

    shown(family, text, is_cut=False).title

The text may be the beginning of an entry alone. Nothing is sanitised: `content` is HTML of a stranger.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, NamedTuple
from urllib.parse import quote
from xml.etree.ElementTree import Element, ParseError, TreeBuilder

from defusedxml.ElementTree import DefusedXMLParser

from wholefeed.core.compose.content import (
    ATOM,
    ITUNES,
    MEDIA,
    Content,
    atom_content,
    base_of,
    item_content,
    rss_content,
    title_of,
)
from wholefeed.core.compose.fields import Said, atom_said, item_said, rss_said, string_of, text_of
from wholefeed.core.compose.synthesize import synthesize
from wholefeed.core.terms import DC_NS, DCTERMS_NS, Family
from wholefeed.core.text.dates import parse_rfc3339
from wholefeed.core.text.urls import is_http, resolve

_OF_URLS: Final = "%/:=&?~#+!$,;'@()*[]"
"""What stays of a URL as it is written; other characters are percent-encoded (RFC 3987, 3.1)."""
_MOST_ENCLOSURES: Final = 20
_ITUNES_AUTHOR: Final = f"{ITUNES}author"
_UPDATED: Final = (f"{ATOM}updated", f"{{{DCTERMS_NS}}}modified")
_NAME_IN_REMARK: Final = re.compile(r"\s*\S+@\S+\s*\((?P<name>[^()]+)\)\s*")
"""RSS 2.0: the author's mail address, and mostly the name behind it."""
_LENGTH: Final = re.compile(r"[0-9]{1,15}", re.ASCII)
_JSON_TOKEN: Final = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"|[][{},]|[^][{},"]+', re.DOTALL)
_JSON_STRING_BEGUN: Final = re.compile(rb'"[^"\\]*+(?:\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})[^"\\]*+)*+')


class Enclosure(NamedTuple):
    """A file that goes with an entry."""

    url: str
    """By http or https."""
    media_type: str = ""
    length: int | None = None
    """In bytes, as its publisher says; None: nothing is said."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """One entry as it is shown."""

    identity: str
    """Its id as written; empty when it has none."""
    title: str
    """As text in one line, without markup; empty when there is none."""
    link: str
    """The page it stands for, by http or https; empty when there is none."""
    published: float | None
    """Epoch seconds."""
    updated: float | None
    author: str
    """The names, as text; empty when nobody is named."""
    content: str
    """HTML as published, or text escaped; empty when there is none. It comes from a stranger: sanitise it."""
    base: str
    """What relative URLs in the content count from; empty: from the feed's URL."""
    enclosures: tuple[Enclosure, ...]
    is_cut: bool
    """Whether its text was too long to be read to its end."""


def shown(family: Family, text: bytes, *, namespace: str = "", is_cut: bool = False) -> Shown:
    """Return an entry from its text in a segment.

    Args:
        family: Of the feed.
        text: The entry, or its beginning.
        namespace: The default one around it.
        is_cut: Whether its end is missing.
    """
    if family is Family.JSON:
        return _of_item(_item(text, is_cut=is_cut), is_cut=is_cut)
    entry = _element(family, text, namespace, is_cut=is_cut)
    of_family = _of_atom if family is Family.ATOM else _of_rss
    return of_family(entry, is_cut=is_cut)


class _Tree(TreeBuilder):
    """Builds a tree of an entry that may break off."""

    def __init__(self) -> None:
        super().__init__()
        self._open: list[str] = []

    def start(self, tag: str, attrs: dict[Any, Any], /) -> Element:
        self._open.append(tag)
        return super().start(tag, attrs)

    def end(self, tag: str, /) -> Element:
        self._open.pop()
        return super().end(tag)

    def root(self) -> Element:
        """Return the tree, with everything ended that is not."""
        for tag in reversed(self._open[:]):
            self.end(tag)
        return self.close()


def _element(family: Family, text: bytes, namespace: str, *, is_cut: bool) -> Element:
    around = synthesize(family, "", [text], namespace=namespace)
    if is_cut:
        around = around[: around.index(text) + len(text)]
    tree = _Tree()
    with suppress(ParseError):  # what could be read is shown
        DefusedXMLParser(target=tree).feed(around)
    root = tree.root()
    entries = root if family is not Family.RSS else root[0]
    name = "entry" if family is Family.ATOM else "item"
    return next((each for each in entries if each.tag.rpartition("}")[2] == name), Element(name))


def _item(text: bytes, *, is_cut: bool) -> Mapping[str, Any]:
    for candidate in _closed(text) if is_cut else (text,):
        try:
            item = json.loads(candidate.decode("utf-8", "ignore"), parse_int=str, parse_float=str)
        except (ValueError, RecursionError):
            continue
        if isinstance(item, dict):
            return item
    return {}


def _closed(text: bytes) -> Iterator[bytes]:
    """Yield what the beginning of an object may be made of: all of it, then what is before the last comma."""
    end, comma_at = 0, 0
    closing: list[bytes] = []
    while token := _JSON_TOKEN.match(text, end):
        end = token.end()
        match token[0]:
            case b"{":
                closing.append(b"}")
            case b"[":
                closing.append(b"]")
            case b"}" | b"]" if closing:
                closing.pop()
            case b"," if len(closing) == 1:
                comma_at = token.start()
    begun = _JSON_STRING_BEGUN.match(text, end)
    yield text[:end] + (begun[0] + b'"' if begun else b"") + b"".join(reversed(closing))
    yield text[:comma_at] + b"}"


def _of_atom(entry: Element, *, is_cut: bool) -> Shown:
    own = entry.tag.rpartition("}")[0] + "}"
    names = (
        text_of(author, f"{own}name") or text_of(author, f"{own}email")
        for author in entry.iterfind(f"{own}author")
    )
    base = base_of(entry, "")
    links = (
        (base_of(each, base), each.get("href", ""), each.get("type", ""), each.get("length", ""))
        for each in entry.iterfind(f"{own}link")
        if each.get("rel", "").lower() == "enclosure"
    )
    updated = text_of(entry, f"{own}updated") or text_of(entry, f"{own}modified")
    return _shown(
        atom_said(entry),
        atom_content(entry),
        title=title_of(entry.find(f"{own}title")),
        updated=parse_rfc3339(updated),
        authors=names,
        enclosures=links,
        is_cut=is_cut,
    )


def _of_rss(item: Element, *, is_cut: bool) -> Shown:
    own = item.tag.removesuffix("item")
    mailed = text_of(item, f"{own}author")
    named = _NAME_IN_REMARK.fullmatch(mailed)
    names = [creator.text or "" for creator in item.iterfind(f"{{{DC_NS}}}creator")]
    names = [name for name in names if name.strip()] or [named["name"] if named else mailed]
    if not any(names):
        names = [text_of(item, _ITUNES_AUTHOR) or text_of(item, f"{ATOM}author/{ATOM}name")]
    base = base_of(item, "")
    enclosures = [*item.iterfind(f"{own}enclosure"), *filter(_is_played, item.iter(f"{MEDIA}content"))]
    dates = (parse_rfc3339(text_of(item, name)) for name in _UPDATED)
    return _shown(
        rss_said(item),
        rss_content(item),
        title=title_of(item.find(f"{own}title")),
        updated=next((at for at in dates if at is not None), None),
        authors=names,
        enclosures=[
            (base, each.get("url", ""), each.get("type", ""), each.get("length", each.get("fileSize", "")))
            for each in enclosures
        ],
        is_cut=is_cut,
    )


def _is_played(content: Element) -> bool:
    """Whether a media:content is more than a picture."""
    media = content.get("medium", "") or content.get("type", "").partition("/")[0]
    return media in ("audio", "video")


def _of_item(item: Mapping[str, Any], *, is_cut: bool) -> Shown:
    authors = item.get("authors")
    people = [*(authors if isinstance(authors, list) else ()), item.get("author")]
    attachments = item.get("attachments")
    files = [
        each for each in (attachments if isinstance(attachments, list) else ()) if isinstance(each, dict)
    ]
    said = item_said(item)
    return _shown(
        said,
        item_content(item),
        title=" ".join(said.title.split()),
        updated=parse_rfc3339(string_of(item.get("date_modified"))),
        authors=(string_of(each.get("name")) for each in people if isinstance(each, dict)),
        enclosures=[
            ("", *(string_of(each.get(name)) for name in ("url", "mime_type", "size_in_bytes")))
            for each in files
        ],
        is_cut=is_cut,
    )


def _shown(
    said: Said,
    content: Content,
    *,
    title: str,
    updated: float | None,
    authors: Iterable[str],
    enclosures: Iterable[tuple[str, ...]],
    is_cut: bool,
) -> Shown:
    found: dict[str, Enclosure] = {}
    for base, url, media_type, length in enclosures:
        if (absolute := _http_url(base, url)) and len(found) < _MOST_ENCLOSURES:
            size = int(length) if _LENGTH.fullmatch(length) else None
            found.setdefault(absolute, Enclosure(absolute, media_type.strip(), size or None))
    return Shown(
        identity=said.id,
        title=title,
        link=_http_url(said.base, said.href),
        published=said.published_at,
        updated=updated,
        author=", ".join(dict.fromkeys(name for each in authors if (name := " ".join(each.split())))),
        content=content.html,
        base=content.base,
        enclosures=tuple(found.values()),
        is_cut=is_cut,
    )


def _http_url(base: str, reference: str) -> str:
    try:
        url = resolve(base, reference.strip()) if base else reference.strip()
    except ValueError:
        return ""
    return quote(url, safe=_OF_URLS) if url and is_http(url) else ""
