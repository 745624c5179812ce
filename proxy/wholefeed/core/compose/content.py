"""What an entry says at length, as HTML, whatever its format calls it. Nothing is sanitised here.

    content = atom_content(entry)
    content.html, content.base

Text is escaped, XHTML is written as HTML. Of several the fullest place counts: atom:content before summary,
content:encoded before description.
"""

from __future__ import annotations

import html
import re
from collections.abc import Mapping
from typing import Any, Final, NamedTuple
from xml.etree.ElementTree import Element, tostring

from wholefeed.core.compose.fields import string_of, text_of
from wholefeed.core.terms import ATOM_03_NS, ATOM_NS, WELL_KNOWN_PREFIXES
from wholefeed.core.text.markup import escape
from wholefeed.core.text.urls import resolve

XML_BASE: Final = "{http://www.w3.org/XML/1998/namespace}base"
ATOM: Final = f"{{{ATOM_NS}}}"
ITUNES: Final = f"{{{WELL_KNOWN_PREFIXES['itunes']}}}"
MEDIA: Final = f"{{{WELL_KNOWN_PREFIXES['media']}}}"
_ENCODED: Final = f"{{{WELL_KNOWN_PREFIXES['content']}}}encoded"
_XHTML: Final = f"{{{WELL_KNOWN_PREFIXES['xhtml']}}}"
_DRAWN: Final = ("{http://www.w3.org/2000/svg", "{http://www.w3.org/1998/Math/MathML")
_OLD_ATOM: Final = f"{{{ATOM_03_NS}}}"
_HTML_TYPES: Final = frozenset({"html", "text/html"})
_XHTML_TYPES: Final = frozenset({"xhtml", "application/xhtml+xml"})
_TAG: Final = re.compile(r"<(?:/?[A-Za-z][^<>]*|![^<>]*)>")
_BREAKS: Final = re.compile(r"\n[ \t]*(?:\n[ \t]*)+")


class Content(NamedTuple):
    """What stands in an entry for people to read."""

    html: str = ""
    """As published: from a stranger. Empty when there is none."""
    base: str = ""
    """What relative URLs in it count from; empty when its document does not say so."""


def atom_content(entry: Element) -> Content:
    """Return what an entry of Atom says, 0.3 included."""
    own = entry.tag.rpartition("}")[0] + "}"
    for name in ("content", "summary"):
        element = entry.find(own + name)
        if element is not None and (found := _atom_text(element)).strip():
            return Content(found, base_of(element, base_of(entry, "")))
    described = text_of(entry, f"{MEDIA}group/{MEDIA}description") or text_of(entry, f"{MEDIA}description")
    return Content(paragraphs(described), base_of(entry, ""))


def rss_content(item: Element) -> Content:
    """Return what an item of RSS says, be it one of RSS 1.0: mostly HTML, whatever its publisher meant."""
    own = item.tag.removesuffix("item")
    names = (_ENCODED, f"{own}description", f"{_XHTML}body", f"{ATOM}content", f"{ATOM}summary")
    for name in (*names, f"{ITUNES}summary", f"{MEDIA}description"):
        element = item.find(name)
        if element is None:
            continue
        found = _atom_text(element) if name.startswith(ATOM) else _html_within(element)
        if found.strip():
            return Content(found, base_of(element, base_of(item, "")))
    return Content()


def item_content(item: Mapping[str, Any]) -> Content:
    """Return what an item of a JSON Feed says."""
    for name in ("content_html", "content_text", "summary"):
        if (found := string_of(item.get(name))).strip():
            return Content(found if name == "content_html" else paragraphs(found))
    return Content()


def paragraphs(text: str) -> str:
    """Return plain text as HTML, its lines kept."""
    if not text.strip():
        return ""
    lines = escape(text.replace("\r\n", "\n").strip())
    return "<p>" + _BREAKS.sub("</p><p>", lines).replace("\n", "<br>") + "</p>"


def title_of(element: Element | None) -> str:
    """Return a title as text in one line: markup is left out, which RSS has as often as Atom says it has."""
    if element is None:
        return ""
    text = "".join(element.itertext())
    kind = element.get("type", "text").strip().lower()
    is_text = element.tag.startswith((ATOM, _OLD_ATOM)) and kind not in _HTML_TYPES
    if not is_text and kind not in _XHTML_TYPES and element.get("mode", "escaped") == "escaped":
        return unmarked(text)
    return " ".join(text.split())


def unmarked(text: str) -> str:
    """Return a title that may bear markup as text in one line."""
    return " ".join(html.unescape(_TAG.sub("", text)).split())


def base_of(element: Element, outer: str) -> str:
    """Return the base URL within an element."""
    own = element.get(XML_BASE, "")
    if not own:
        return outer
    try:
        return resolve(outer, own) if outer else own
    except ValueError:
        return outer


def _atom_text(element: Element) -> str:
    """Return a text construct as HTML (RFC 4287, 3.1 and 4.1.3; of Atom 0.3 its modes)."""
    kind = element.get("type", "text").partition(";")[0].strip().lower()
    mode = element.get("mode", "xml" if element.tag.startswith(_OLD_ATOM) else "")
    if kind in _XHTML_TYPES or (mode == "xml" and len(element)):
        return _html_within(element)
    if kind in _HTML_TYPES or mode == "escaped":
        return "".join(element.itertext())
    if mode == "base64" or (kind != "text" and not kind.startswith("text/")):
        return ""  # what is encoded, and what is no text: pictures, other XML
    return paragraphs("".join(element.itertext()))


def _html_within(element: Element) -> str:
    """Return what stands in an element as HTML: escaped there, or as elements of XHTML."""
    if not len(element):
        return element.text or ""
    for each in list(element.iter()):
        space, _, name = each.tag.rpartition("}")
        if space in _DRAWN:
            tail = each.tail
            each.clear()
            each.tail = tail
        each.tag = name
        each.attrib.pop(XML_BASE, None)
    element.tail = None
    try:
        written = tostring(element, encoding="unicode", method="html")
    except RecursionError:  # nested deeper than anybody writes
        return escape("".join(element.itertext()))
    return written[written.index(">") + 1 : written.rindex("<")]
