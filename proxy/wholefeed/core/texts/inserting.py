"""Put the texts of pages into entries (T4): the excerpt stays as summary, and all else byte for byte (R22).

Atom gets `content type="html"`, RSS `content:encoded`, JSON Feed `content_html`. A mark names the page:

    <wholefeed:text xmlns:wholefeed="urn:wholefeed:" page="https://example.org/post"/>
    "_wholefeed": {"text": "https://example.org/post"}
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from wholefeed.core.compose.children import (
    Edit,
    EntryChild,
    EntryChildren,
    apply_edits,
    find_children,
    tag_name,
    write_child,
)
from wholefeed.core.compose.entries import TEXT_MARK, TEXT_MARK_NS
from wholefeed.core.model import ATOM_03_NS, EXTENSION, WELL_KNOWN_PREFIXES, Family
from wholefeed.core.text.markup import escape, quoteattr, with_children
from wholefeed.core.texts.wanted import may_insert, read_entry_pages
from wholefeed.core.verbatim.json import with_values

INSERT_VERSION: Final = b"1"
"""ETags of answers with texts depend on this: no entry is composed for a tag."""


class PageTextOf(NamedTuple):
    url: str
    """Its page."""
    html: str
    length: int
    """Letters and digits."""


def insert_texts(
    texts: Sequence[bytes],
    pages: Sequence[PageTextOf | None],
    family: Family,
    *,
    namespace: str,
) -> list[bytes]:
    """Return the entries with the texts of their pages, where those say more than the entries (T5).

    `texts` are as in a segment, without separators. None: nothing is stored of the page.
    """
    made = list(texts)
    wanted = [place for place, page in enumerate(pages) if page is not None]
    own = read_entry_pages([texts[each] for each in wanted], family, namespace=namespace)
    for place, entry in zip(wanted, own, strict=True):
        page = pages[place]
        if page is not None and may_insert(entry, page.length):
            made[place] = _insert(texts[place], page, family, namespace)
    return made


def _insert(text: bytes, page: PageTextOf, family: Family, namespace: str) -> bytes:
    if family is Family.JSON:
        return _insert_into_item(text, page)
    document, found = find_children([text], family, namespace)
    entry = found[0]
    if family is Family.ATOM:
        edited = _insert_into_atom(document, entry, page, is_old=namespace == ATOM_03_NS)
    else:
        edited = _insert_into_rss(document, entry, page)
    return text if edited is None else edited


def _insert_into_atom(
    document: bytes, entry: EntryChildren, page: PageTextOf, *, is_old: bool
) -> bytes | None:
    text = document[entry.start : entry.end]
    content = [each for each in entry.children if each.kind == "atom content"]
    is_coded = any(each.kind == "atom content base64" for each in entry.children)
    if is_coded or any(each.is_elsewhere for each in content):
        return None
    has_summary = any(each.kind == "atom summary" and not each.is_empty for each in entry.children)
    edits = [_move(document, each, "summary", is_kept=not has_summary) for each in content]
    media_type = ' type="text/html" mode="escaped"' if is_old else ' type="html"'
    added = write_child(text, "content", page.html, media_type)
    return with_children(apply_edits(document, edits, entry.start, entry.end), added + _mark(page))


def _insert_into_rss(document: bytes, entry: EntryChildren, page: PageTextOf) -> bytes:
    text = document[entry.start : entry.end]
    content = [each for each in entry.children if each.kind == "content encoded"]
    has_summary = any(each.kind == "rss description" and not each.is_empty for each in entry.children)
    edits = [(each.start, each.end, b"") for each in content]
    added = b""
    if content and not has_summary and not content[0].is_empty:
        inner = _inner(document, content[0])
        name = tag_name(write_child(text, "description", "").partition(b">")[0])
        added += b"<%s>%s</%s>" % (name, inner, name)
    space = quoteattr(WELL_KNOWN_PREFIXES["content"])
    added += f"<content:encoded xmlns:content={space}>{escape(page.html)}</content:encoded>".encode()
    return with_children(apply_edits(document, edits, entry.start, entry.end), added + _mark(page))


def _move(document: bytes, child: EntryChild, name: str, *, is_kept: bool) -> Edit:
    """Return an edit that gives an element another name, or removes it."""
    if not is_kept or child.is_empty:
        return child.start, child.end, b""
    tag = document[child.start : child.inner]
    old = tag_name(tag)
    new = old.rpartition(b":")[0] + b":" * (b":" in old) + name.encode()
    opening = b"<" + new + tag[1 + len(old) :]
    return child.start, child.end, opening + _inner(document, child) + b"</%s>" % new


def _inner(document: bytes, child: EntryChild) -> bytes:
    return document[child.inner : document.rindex(b"</", child.inner, child.end)]


def _mark(page: PageTextOf) -> bytes:
    prefix, _, name = TEXT_MARK.partition(":")
    return f'<{prefix}:{name} xmlns:{prefix}="{TEXT_MARK_NS}" page={quoteattr(page.url)}/>'.encode()


def _insert_into_item(text: bytes, page: PageTextOf) -> bytes:
    item: dict[str, Any] = json.loads(text, parse_int=str, parse_float=str)
    values: dict[str, object] = {"content_html": page.html, EXTENSION: {"text": page.url}}
    before = item.get("content_text")
    if not item.get("summary") and isinstance(before, str) and before:
        values["summary"] = before
    return with_values(text, values)
