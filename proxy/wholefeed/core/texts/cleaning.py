"""Make the text of a page fit for a feed (T4): absolute URLs, no scripts, no forms, no trackers' pixels."""

# readers sanitise texts themselves, from publishers and from here alike

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from typing import Any, Final
from urllib.parse import urlsplit

from wholefeed.core.compose.sanitising import (
    FIT_VALUES,
    LONGEST_URL,
    SHOWN_ATTRIBUTES,
    SHOWN_TAGS,
    SILENT_TAGS,
    flatten,
)
from wholefeed.core.listing.page_reading import walk_tree
from wholefeed.core.text.markup import without_invalid
from wholefeed.core.text.urls import is_http, resolve
from wholefeed.core.texts.conventions import is_added, may_be_added, may_be_text
from wholefeed.core.texts.elements import is_named
from wholefeed.core.texts.plain import EXCERPT_SHARE, pieces_of, share_held, squeeze, without_mark

MAX_BYTES: Final = 1 << 20
"""Limit for one text, cleaned."""
_MOST_TAGS: Final = 30_000
_MOST_URLS: Final = 5000

_REMOVED: Final = frozenset(
    {
        *("script", "style", "noscript", "template", "form", "input", "button", "select", "textarea", "nav"),
        *("svg", "math", "object", "embed", "applet", "link", "meta", "base", "dialog", "canvas", "map"),
    }
)
_HIDDEN: Final = re.compile(r"display\s*:\s*none|visibility\s*:\s*hidden", re.IGNORECASE)
_LAZY: Final = ("data-src", "data-lazy-src", "data-original", "data-orig-file")
"""Where scripts find the picture that they load later."""
_TINY: Final = re.compile(r"\s*[0-3](?:px)?\s*", re.ASCII)
_TRACKERS: Final = re.compile(
    r"(?:^|\.)(?:pixel\.wp\.com|stats\.wordpress\.com|feeds\.feedburner\.com|doubleclick\.net|google-analytics\.com"
    r"|googletagmanager\.com|scorecardresearch\.com|quantserve\.com|facebook\.com|statcounter\.com|hit\.ua|chartbeat\.net)$"
)


def prepare(element: Any, base: str, excerpt: str, added: Collection[str] = ()) -> str:
    """Return an element's inner HTML without parts that belong to the page, after changes to the tree.

    Parts go by their names only if the rest has the `excerpt`. `added`: names learned from the site. `base`
    is for lazy pictures alone.
    """
    from lxml import etree  # noqa: PLC0415 - see `read_tree`

    parts = list[Any]()
    for node in list(element.iter()):
        if node is element:
            continue
        if _is_removed(node, base) or (added and is_named(node, added)):
            node.tag = _MARKED
        elif len(parts) < _MOST_PARTS and may_be_added(node):
            parts.append(node)
        elif node.tag == "img":
            _find_source(node)
        elif node.tag == "iframe":
            _link(node)
    for node in _choose_parts(element, parts, excerpt) if parts else ():
        node.tag = _MARKED
    etree.strip_elements(element, _MARKED, with_tail=False)
    written: str = etree.tostring(element, encoding="unicode", method="html", with_tail=False)
    return written[written.index(">") + 1 : written.rindex("<")] if written.endswith(">") else ""


def _choose_parts(element: Any, parts: Sequence[Any], excerpt: str) -> list[Any]:
    """Return parts that may go: the excerpt stays, or no small share of the text; no large part is one."""
    lengths, all_ = dict.fromkeys(parts, 0), 0
    for said, around in _list_words(element, parts):
        all_ += len(said)
        for part in around:
            lengths[part] += len(said)
    chosen = {
        part for part, length in lengths.items() if length <= _MOST_PART * all_ or not may_be_text(part)
    }
    rest = squeeze("".join(said for said, around in _list_words(element, chosen) if not around))
    if excerpt:
        is_whole = share_held(pieces_of(without_mark(excerpt)), rest) >= EXCERPT_SHARE
    else:
        is_whole = len(rest) >= _LEAST_REST * all_
    return list(chosen) if is_whole else []


def _list_words(element: Any, parts: Collection[Any]) -> Iterator[tuple[str, list[Any]]]:
    """Yield squeezed texts, each with the parts around it."""
    around, removed = list[Any](), 0
    for event, node in walk_tree(element):
        is_start = event == "start"
        if node.tag == _MARKED:
            removed += 1 if is_start else -1
        if node in parts:
            around = [*around, node] if is_start else around[:-1]
        text = node.text if is_start else (node.tail if node is not element else None)
        if text and not removed and (said := squeeze(text)):
            yield said, around


_MOST_PARTS: Final = 50
_MOST_PART: Final = 0.5
_LEAST_REST: Final = 0.1


def _is_removed(node: Any, base: str) -> bool:
    if node.tag in _REMOVED or node.get("hidden") is not None or _HIDDEN.search(node.get("style") or ""):
        return True
    return is_added(node) or (node.tag == "img" and _is_pixel(node, base))


def _is_pixel(image: Any, base: str) -> bool:
    sizes = [image.get(name) for name in ("width", "height")]
    if all(size is not None and _TINY.fullmatch(size) for size in sizes):
        return True
    try:
        host = urlsplit(resolve(base, image.get("src") or "")).hostname or ""
    except ValueError:
        return True
    return _TRACKERS.search(host) is not None


_MARKED: Final = "wholefeed-removed"
"""Tag of elements that go, all at once: one by one the text around them would be copied for each."""


def _find_source(image: Any) -> None:
    """Give a lazy picture its source."""
    if is_http(image.get("src") or "") and not any(name in image.attrib for name in _LAZY):
        return
    for name in _LAZY:
        if value := (image.get(name) or "").strip():
            image.set("src", value)
            return
    if not (image.get("src") or "").strip() or (image.get("src") or "").startswith("data:"):
        candidates = (image.get("srcset") or image.get("data-srcset") or "").split(",")
        if first := candidates[0].split():
            image.set("src", first[0])


def _link(frame: Any) -> None:
    source = (frame.get("src") or frame.get("data-src") or "").strip()
    tail = frame.tail
    frame.clear()
    frame.tag, frame.tail = "a", tail
    if source:
        frame.set("href", source)
        frame.text = source


# fmt: off
_TAGS: Final = SHOWN_TAGS | {
    "h1", "h2", "b", "i", "u", "s", "small", "big", "center", "font", "tt", "strike", "address", "picture",
    "img", "audio", "video", "source", "article", "section", "header", "footer", "aside", "main",
}
# fmt: on
_PLAIN: Final = frozenset({"article", "section", "header", "footer", "aside", "main", "font", "center"})
"""Their content stays without them."""
_ATTRIBUTES: Final = {
    **SHOWN_ATTRIBUTES,
    "a": {"href", "title"},
    "img": {"src", "alt", "title", "width", "height"},
    "audio": {"src", "controls"},
    "video": {"src", "controls", "poster", "width", "height"},
    "source": {"src", "type"},
}
_URLS: Final = frozenset({"href", "src", "poster"})
_SIZE: Final = re.compile(r"[0-9]{1,5}", re.ASCII)


def clean_text(inner: str, base: str) -> str | None:
    """Return sanitised HTML with absolute URLs; None: it has too many tags, or is too large.

    `base` is the page's URL, or that of its `<base>`.
    """
    from nh3 import clean  # noqa: PLC0415 - 2 MB that only workers need

    if inner.count("<") > _MOST_TAGS or len(inner) > _LONGEST_FACTOR * MAX_BYTES:
        return None
    made = clean(
        flatten(inner),
        tags=set(_TAGS - _PLAIN),
        clean_content_tags=set(SILENT_TAGS),
        attributes={name: set(values) for name, values in _ATTRIBUTES.items()},
        attribute_filter=_Addresses(base),
        url_schemes={"http", "https", "mailto"},
        link_rel=None,
    )
    made = without_invalid(made).strip()
    return made if len(made.encode("utf-8", "replace")) <= MAX_BYTES else None


_LONGEST_FACTOR: Final = 2


class _Addresses:
    """A filter of attributes; it makes URLs absolute, and drops invalid ones."""

    def __init__(self, base: str) -> None:
        self._base = base
        self._left = _MOST_URLS
        self._left_bytes = MAX_BYTES

    def __call__(self, tag: str, name: str, value: str) -> str | None:
        if name in _URLS:
            return self._url(tag, value)
        if name in ("width", "height"):
            return value if _SIZE.fullmatch(value) else None
        pattern = FIT_VALUES.get(name)
        return value if pattern is None or pattern.fullmatch(value) else None

    def _url(self, tag: str, value: str) -> str | None:
        self._left -= 1
        if len(value) > LONGEST_URL or self._left < 0:
            return None
        try:
            url = resolve(self._base, value)
        except ValueError:
            return None
        self._left_bytes -= len(url)
        is_fit = is_http(url) or (tag == "a" and url.startswith("mailto:"))
        return url if is_fit and self._left_bytes >= 0 else None
