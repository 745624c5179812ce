"""HTML of strangers, made fit to stand in a page of ours (docs/security.md has what stands against what).

    sanitised(entry.content, base, Allowance())                           # Markup

What comes out is made of a short list of elements and attributes, by nh3 (ammonia), whose parser is a
browser's. Before it stand limits: HTML's rules of mending let a few KB make millions of elements, or keep the
parser busy for seconds. What goes beyond them is shown as text.
"""

from __future__ import annotations

import html
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote

from markupsafe import Markup

from wholefeed.core.compose.entries import paragraphs
from wholefeed.core.text.urls import is_http, resolve

_MOST_TAGS: Final = 6000
"""Of an entry; each may cost as much time as there are elements around it."""
_MOST_REFERENCES: Final = 30_000
"""Of an entry: `&amp;` and the like."""
LONGEST_BYTES: Final = 1 << 20
"""What an entry may come to: URLs grow as they are made absolute."""
_LONGEST_OF_PAGE: Final = 1 << 23
_SECONDS_OF_PAGE: Final = 3.0
"""What the sanitiser may work for one page before the rest of it is shown as text."""


@dataclass(slots=True)
class Allowance:
    """What is left for the entries of one page."""

    length: int = _LONGEST_OF_PAGE
    seconds: float = _SECONDS_OF_PAGE


_DATA: Final = re.compile(r"\bdata:[a-z]+/[^\s\"'<>]*", re.IGNORECASE)
_TAG: Final = re.compile(r"<(?:/?[A-Za-z][^<>]*|![^<>]*)>")


MayLoad = Callable[[str], bool]
"""Says whether a picture, audio or video at a URL may be loaded."""


def sanitised(content: str, base: str, left: Allowance, *, may_load: MayLoad | None = None) -> Markup:
    """Return HTML of a stranger as a page may show it.

    Args:
        content: As published.
        base: What relative URLs count from.
        left: What is left for this page; what is used of it is taken away.
        may_load: Which pictures, audio and video are loaded, the others being left out; None: none is, and
            all become links.
    """
    shown = _DATA.sub("data:", content)
    started = time.monotonic()
    if shown.count("<") > _MOST_TAGS or shown.count("&") > _MOST_REFERENCES or left.seconds < 0:
        made = _CONTROLS.sub("", paragraphs(html.unescape(_TAG.sub(" ", shown))))
    else:
        made = _cleaned(shown, base, may_load)
    left.seconds -= time.monotonic() - started
    left.length -= len(made)
    if len(made) > LONGEST_BYTES or left.length < 0:
        return Markup("<p>(Too long to be shown here.)</p>")
    return Markup(made)  # noqa: S704 - it is what the sanitiser has made


_CONTROLS: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
"""What people do not see and layouts do: control characters, and what turns the direction of all that
follows. Isolation does the rest."""


def plain(text: str, longest: int) -> str:
    """Return a text for one line, without what would turn or break the lines around it."""
    shown = _CONTROLS.sub("", text)
    return shown if len(shown) <= longest else shown[:longest].rstrip() + "…"


def plain_url(url: str) -> str:
    """Return a URL, or its host, with what would turn or break the line encoded (RFC 3987, 4.1 forbids it).

    What it leads to is the same; what it looks like is no other's any more (docs/faults.md row 110).
    """
    return _TURNING.sub(lambda found: quote(found[0]), url)


_TURNING: Final = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")


# Which elements and attributes pass

# fmt: off
_TAGS: Final = frozenset({
    "a", "abbr", "bdi", "br", "cite", "code", "del", "dfn", "em", "ins", "kbd", "mark", "q", "rp", "rt",
    "ruby", "samp", "span", "strong", "sub", "sup", "time", "var", "wbr",
    "blockquote", "dd", "details", "div", "dl", "dt", "figcaption", "figure", "h3", "h4", "h5", "h6", "hr",
    "li", "ol", "p", "pre", "summary", "ul",
    "caption", "col", "colgroup", "table", "tbody", "td", "tfoot", "th", "thead", "tr",
})
# fmt: on
_EMBEDDED: Final = frozenset({"img", "audio", "video", "source", "iframe"})
_MEDIA: Final = _EMBEDDED - {"iframe"}
_SILENT: Final = frozenset({"script", "style", "template", "svg", "math", "title", "select", "textarea"})
"""Elements that go with all that stands in them."""
_ATTRIBUTES: Final = {
    "*": {"dir", "lang"},
    "a": {"href"},
    "abbr": {"title"},
    "dfn": {"title"},
    "ol": {"start", "reversed"},
    "li": {"value"},
    "td": {"colspan", "rowspan"},
    "th": {"colspan", "rowspan", "scope"},
    "time": {"datetime"},
}
_OF_MEDIA: Final = {"img": {"src", "alt"}, "audio": {"src"}, "video": {"src"}, "source": {"src", "type"}}
_OF_EMBEDDED: Final = {**_OF_MEDIA, "iframe": {"src"}, "h1": set[str](), "h2": set[str]()}
_SET: Final = {
    "img": {"loading": "lazy", "referrerpolicy": "no-referrer"},
    "audio": {"controls": "", "preload": "none"},
    "video": {"controls": "", "preload": "none"},
}
_HEADING: Final = re.compile(r"<(/?)h([1-6])(?=[ >])")
_EMPTY_HEADING: Final = re.compile(r"<h[3-6](?: [^<>]*)?>\s*</h[3-6]>")


def _cleaned(content: str, base: str, may_load: MayLoad | None) -> str:
    from nh3 import clean  # noqa: PLC0415 - 2 MB that only these pages need

    judge, has_media = _Judge(base, may_load), may_load is not None
    first = clean(
        _NAME.sub(_renamed, content),
        tags={*_TAGS, *_EMBEDDED, "h1", "h2"},
        clean_content_tags=set(_SILENT),
        attributes={**_ATTRIBUTES, **_OF_EMBEDDED},
        attribute_filter=judge,
        url_schemes={"http", "https", "mailto"},
        link_rel=None,
    )
    first = _HEADING.sub(lambda found: f"<{found[1]}h{min(int(found[2]) + 2, 6)}", first)
    first = _EMPTY_HEADING.sub("", first)
    if len(first) > LONGEST_BYTES:
        return first  # which is refused
    # What is changed here goes through the sanitiser once more: that has the last word.
    return clean(
        _Linking(has_media=has_media).sub(_CONTROLS.sub("", first)),
        tags={*_TAGS, *(_MEDIA if has_media else ())},
        clean_content_tags=set(_SILENT),
        attributes={**_ATTRIBUTES, **(_OF_MEDIA if has_media else {})},
        attribute_filter=judge.again,
        url_schemes={"http", "https", "mailto"},
        set_tag_attribute_values=_SET if has_media else None,
        link_rel="noopener noreferrer nofollow",
    )


_RENAMED: Final = {
    **dict.fromkeys(("big", "font", "nobr", "small", "tt", "u", "noscript", "center"), "span"),
    **dict.fromkeys(("s", "strike"), "del"),
    "b": "strong",
    "i": "em",
}
"""Elements that a parser opens again wherever they were not closed are kept few, and bear no attributes."""
_NAME: Final = re.compile(
    rf"<(/?)({'|'.join(sorted((*_RENAMED, 'strong', 'em', 'code'), key=len, reverse=True))})(?=[\s/>])",
    re.IGNORECASE,
)


def _renamed(found: re.Match[str]) -> str:
    """Return the beginning of a tag, with attributes that count for nothing any more."""
    name = found[2].lower()
    kept = _RENAMED.get(name, name)
    return f"</{kept}" if found[1] else f"<{kept}><x"


_URLS: Final = frozenset({"href", "src"})
_VALUES: Final = {
    "dir": re.compile("ltr|rtl|auto", re.IGNORECASE),
    "lang": re.compile("[A-Za-z0-9-]{1,35}", re.ASCII),
    "start": re.compile("-?[0-9]{1,6}", re.ASCII),
    "value": re.compile("-?[0-9]{1,6}", re.ASCII),
    "colspan": re.compile("[1-9]|1[0-9]|20", re.ASCII),
    "rowspan": re.compile("[1-9]|1[0-9]|20", re.ASCII),
    "scope": re.compile("col|row", re.IGNORECASE),
    "datetime": re.compile("[0-9TZ:.+-]{1,40}", re.ASCII),
}
_LONGEST_URL: Final = 2000


class _Judge:
    """Says which value an attribute gets: URLs are made absolute, until they have come to a lot."""

    def __init__(self, base: str, may_load: MayLoad | None) -> None:
        self._base = base
        self._may_load = may_load
        self._left = LONGEST_BYTES

    def __call__(self, tag: str, name: str, value: str) -> str | None:
        if name in _URLS:
            return self._url(tag, value)
        return self.again(tag, name, value)

    def again(self, tag: str, name: str, value: str) -> str | None:
        """Return a value whose URLs are absolute already."""
        if name in _URLS:
            return value if is_http(value) or (tag == "a" and value.startswith("mailto:")) else None
        pattern = _VALUES.get(name)
        return value if pattern is None or pattern.fullmatch(value) else None

    def _url(self, tag: str, value: str) -> str | None:
        if len(value) > _LONGEST_URL:
            return None
        try:
            url = resolve(self._base, value) if self._base else value.strip()
        except ValueError:
            return None
        if tag in _MEDIA and self._may_load is not None and not self._may_load(url):
            return None
        self._left -= len(url)
        return self.again(tag, "src", url) if self._left >= 0 else None


_LINKED: Final = re.compile(
    r"<(?P<end>/?)(?P<name>a|img|iframe|audio|video|source)(?P<attributes>(?: [a-z-]+=\"[^\"]*\")*)>"
)
_ATTRIBUTE: Final = re.compile(r' ([a-z-]+)="([^"]*)"')
_SPOKEN: Final = {"img": "Image", "iframe": "Embedded page", "audio": "Audio", "video": "Video"}


class _Linking:
    """Turns what would be loaded into links; within a link into words, for links do not stand in links."""

    def __init__(self, *, has_media: bool) -> None:
        self._loaded = _MEDIA if has_media else frozenset()
        self._is_in_link = False

    def sub(self, text: str) -> str:
        """Return the text, which is as nh3 writes it."""
        return _LINKED.sub(self._one, text)

    def _one(self, found: re.Match[str]) -> str:
        name, attributes = found["name"], dict(_ATTRIBUTE.findall(found["attributes"]))
        if name == "a":
            self._is_in_link = not found["end"]
            return found[0]
        if name in self._loaded and (found["end"] or name != "img"):
            return found[0]
        if name in self._loaded and "src" in attributes:
            return found[0] if "alt" in attributes else f'{found[0][:-1]} alt="">'
        return "" if found["end"] else self._words(name, attributes)

    def _words(self, name: str, attributes: Mapping[str, str]) -> str:
        url, alt = attributes.get("src", ""), attributes.get("alt", "").strip()
        word = _SPOKEN.get(name, "File")
        words = f"[{word}: {alt}]" if alt else f"[{word}]"
        if url and not self._is_in_link:
            return f' <a href="{url}">{words}</a> '
        return f" {words} " if name != "source" else ""
