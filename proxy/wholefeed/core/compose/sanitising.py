"""Make a stranger's HTML fit for our pages (docs/security.md).

nh3 (ammonia), with a browser's parser, lets few elements and attributes pass. Before that, tags, references,
URLs and nesting are limited. Excess is shown as text and marked.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final, NamedTuple
from urllib.parse import quote

from wholefeed.core.compose.entries import MARKUP, paragraphs
from wholefeed.core.text.markup import unescape
from wholefeed.core.text.urls import UrlError, UrlPlaces, canonical_url, is_http, resolve

# HTML's rules of mending let a few KB make millions of elements, or block the parser for seconds: a tag may
# cost as much as all elements around it (docs/faults.md row 119).
_MOST_TAGS: Final = 6000  # per entry
_MOST_REFERENCES: Final = 30_000  # per entry: `&amp;` and the like


@dataclass(slots=True)
class Allowance:
    tags: int = 40_000
    references: int = 200_000
    urls: int = 8000


class Cut(Enum):
    """The part of an entry not shown as published."""

    NOTHING = "nothing"
    MARKUP = "markup"
    """Shown as text."""
    END = "end"
    """Shown as text, and its end is missing."""


class Clean(NamedTuple):
    html: str
    cut: Cut


def is_elsewhere(url: str, own: UrlPlaces) -> bool:
    """Return whether a URL is none of the proxy's (docs/faults.md row 97).

    Browsers would load the proxy's own with the reader's session.
    """
    try:
        return own.target(canonical_url(url)) is None
    except UrlError:  # browsers may read it as anything
        return False


def sanitise(
    content: str, base: str, left: Allowance, *, most_bytes: int, loads_all_but: UrlPlaces | None = None
) -> Clean:
    """Return HTML fit for a page, at most `most_bytes` of UTF-8; reduces `left`.

    Media load except from `loads_all_but` (None: all become links).
    """
    shown = _DATA.sub("data:", content).encode("utf-8", "replace").decode()
    tags, references = shown.count("<"), shown.count("&")
    if tags <= min(left.tags, _MOST_TAGS) and references <= min(left.references, _MOST_REFERENCES):
        left.tags -= tags
        left.references -= references
        judge = _Judge(base, left, most_bytes, loads_all_but)
        made = _clean(shown, judge, most_bytes, has_media=loads_all_but is not None)
        if made is not None:
            return Clean(made, Cut.NOTHING)
    text = _CONTROLS.sub("", unescape(MARKUP.sub(" ", shown)))
    made = paragraphs(text)
    if len(made.encode()) <= most_bytes:
        return Clean(made, Cut.MARKUP)
    beginning = text.strip()[: most_bytes // _LONGEST_CHARACTER - 3].rstrip()
    return Clean(paragraphs(f"{beginning} …"), Cut.END)


_DATA: Final = re.compile(r"\bdata:[a-z]+/[^\s\"'<>]*", re.IGNORECASE)
_LONGEST_CHARACTER: Final = 5  # bytes, as in `&amp;`; a line break has a character beside it


_CONTROLS: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
"""Control characters, and changes of direction; isolation does the rest."""


def plain(text: str, longest: int) -> str:
    """Return a line without characters that reverse or break it."""
    shown = _CONTROLS.sub("", text)
    return shown if len(shown) <= longest else shown[:longest].rstrip() + "…"


def plain_url(url: str) -> str:
    """Return a URL or host, with characters that reverse or break lines encoded (RFC 3987, 4.1).

    It then looks like no other URL (docs/faults.md row 110).
    """
    return _TURNING.sub(lambda found: quote(found[0]), url)


_TURNING: Final = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")


# Which elements and attributes pass

# fmt: off
SHOWN_TAGS: Final = frozenset({
    "a", "abbr", "bdi", "br", "cite", "code", "del", "dfn", "em", "ins", "kbd", "mark", "q", "rp", "rt",
    "ruby", "samp", "span", "strong", "sub", "sup", "time", "var", "wbr",
    "blockquote", "dd", "details", "div", "dl", "dt", "figcaption", "figure", "h3", "h4", "h5", "h6", "hr",
    "li", "ol", "p", "pre", "summary", "ul",
    "caption", "col", "colgroup", "table", "tbody", "td", "tfoot", "th", "thead", "tr",
})
# fmt: on
_EMBEDDED: Final = frozenset({"img", "audio", "video", "source", "iframe"})
_MEDIA: Final = _EMBEDDED - {"iframe"}
SILENT_TAGS: Final = frozenset({"script", "style", "template", "svg", "math", "title", "select", "textarea"})
"""Removed with their content."""
SHOWN_ATTRIBUTES: Final = {
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


def _clean(content: str, judge: _Judge, most_bytes: int, *, has_media: bool) -> str | None:
    """Return sanitised HTML; None: too large or too deep."""
    from nh3 import clean  # noqa: PLC0415 - 2 MB that only these pages need

    first = clean(
        flatten(content),
        tags={*SHOWN_TAGS, *_EMBEDDED, "h1", "h2"},
        clean_content_tags=set(SILENT_TAGS),
        attributes={**SHOWN_ATTRIBUTES, **_OF_EMBEDDED},
        attribute_filter=judge,
        url_schemes={"http", "https", "mailto"},
        link_rel=None,
    )
    first = _HEADING.sub(lambda found: f"<{found[1]}h{min(int(found[2]) + 2, 6)}", first)
    first = _EMPTY_HEADING.sub("", first)
    if len(first) > most_bytes or _levels_of(first) > _MOST_MENDED_LEVELS:
        return None
    # The sanitiser has the last word: it reads the changes once more.
    made = clean(
        _Linking(has_media=has_media).sub(_CONTROLS.sub("", first)),
        tags={*SHOWN_TAGS, *(_MEDIA if has_media else ())},
        clean_content_tags=set(SILENT_TAGS),
        attributes={**SHOWN_ATTRIBUTES, **(_OF_MEDIA if has_media else {})},
        attribute_filter=judge.again,
        url_schemes={"http", "https", "mailto"},
        set_tag_attribute_values=_SET if has_media else None,
        link_rel="noopener noreferrer nofollow",
    )
    return made if len(made.encode()) <= most_bytes else None


_URLS: Final = frozenset({"href", "src"})
FIT_VALUES: Final = {
    "dir": re.compile("ltr|rtl|auto", re.IGNORECASE),
    "lang": re.compile("[A-Za-z0-9-]{1,35}", re.ASCII),
    "start": re.compile("-?[0-9]{1,6}", re.ASCII),
    "value": re.compile("-?[0-9]{1,6}", re.ASCII),
    "colspan": re.compile("[1-9]|1[0-9]|20", re.ASCII),
    "rowspan": re.compile("[1-9]|1[0-9]|20", re.ASCII),
    "scope": re.compile("col|row", re.IGNORECASE),
    "datetime": re.compile("[0-9TZ:.+-]{1,40}", re.ASCII),
}
LONGEST_URL: Final = 2000


class _Judge:
    """A filter for attributes; it makes URLs absolute and limits their total."""

    def __init__(self, base: str, left: Allowance, most_bytes: int, loads_all_but: UrlPlaces | None) -> None:
        self._base = base
        self._own = loads_all_but
        self._allowance = left
        self._left_bytes = most_bytes

    def __call__(self, tag: str, name: str, value: str) -> str | None:
        if name in _URLS:
            return self._url(tag, value)
        return self.again(tag, name, value)

    def again(self, tag: str, name: str, value: str) -> str | None:
        if name in _URLS:
            return value if is_http(value) or (tag == "a" and value.startswith("mailto:")) else None
        pattern = FIT_VALUES.get(name)
        return value if pattern is None or pattern.fullmatch(value) else None

    def _url(self, tag: str, value: str) -> str | None:
        self._allowance.urls -= 1
        if len(value) > LONGEST_URL or self._allowance.urls < 0:
            return None
        try:
            url = resolve(self._base, value) if self._base else value.strip()
        except ValueError:
            return None
        if tag in _MEDIA and self._own is not None and not is_elsewhere(url, self._own):
            return None
        self._left_bytes -= len(url)
        return self.again(tag, "src", url) if self._left_bytes >= 0 else None


_LINKED: Final = re.compile(
    r"<(?P<end>/?)(?P<name>a|img|iframe|audio|video|source)(?P<attributes>(?: [a-z-]+=\"[^\"]*\")*)>"
)
_ATTRIBUTE: Final = re.compile(r' ([a-z-]+)="([^"]*)"')
_SPOKEN: Final = {"img": "Image", "iframe": "Embedded page", "audio": "Audio", "video": "Video"}


class _Linking:
    """A converter of media to links, or to words within a link: links do not nest."""

    def __init__(self, *, has_media: bool) -> None:
        self._loaded = _MEDIA if has_media else frozenset()
        self._is_in_link = False

    def sub(self, text: str) -> str:
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


# Nesting

_MOST_LEVELS: Final = 64  # nested elements: people write a dozen, page builders forty
# fmt: off
_RENAMED: Final = {
    **dict.fromkeys(("big", "font", "nobr", "small", "tt", "u", "noscript", "center"), "span"),
    **dict.fromkeys(("s", "strike"), "del"),
    "b": "strong",
    "i": "em",
}
"""Parsers reopen unclosed formatting, so few kinds may stay."""
_FORMATTING: Final = frozenset({"strong", "em", "code", "a"})
_BARE: Final = frozenset({*_RENAMED, "strong", "em", "code"})  # written without attributes
_VOID: Final = frozenset({
    "area", "base", "br", "col", "embed", "hr", "img", "input", "keygen", "link", "meta", "param", "source",
    "track", "wbr",
})
_UNSHOWN: Final = frozenset({
    "script", "style", "textarea", "title", "iframe", "noembed", "noframes", "svg", "math", "template",
    "select",
})
"""No tag in these is shown."""
_IGNORED: Final = frozenset({
    "html", "head", "body", "frameset", "frame", "form", "button", "object", "applet", "marquee", "xmp",
    "plaintext", "listing",
})
"""Without meaning here, or changing how others are read."""
_CELLS: Final = frozenset({"td", "th", "caption"})
_PARTS: Final = frozenset({*_CELLS, "tr", "thead", "tbody", "tfoot", "colgroup"})
_SCOPE: Final = frozenset({*_CELLS, "table"})
_TABLE: Final = frozenset({"table"})
_BLOCKS: Final = frozenset({
    "address", "article", "aside", "blockquote", "details", "dd", "dir", "div", "dl", "dt", "fieldset",
    "figcaption", "figure", "footer", "h1", "h2", "h3", "h4", "h5", "h6", "header", "hgroup", "hr", "li",
    "main", "menu", "nav", "ol", "p", "pre", "search", "section", "summary", "ul",
})
"""Start tags that end a paragraph."""
# fmt: on
_HEADINGS: Final = frozenset({"h1", "h2", "h3", "h4", "h5", "h6"})  # any end tag ends any heading
_SPECIAL: Final = _BLOCKS | _PARTS | _TABLE
_AROUND_ITEM: Final = _SPECIAL - {"address", "div", "p"}
_AROUND_END: Final[Mapping[str, frozenset[str]]] = {
    **dict.fromkeys(_SPECIAL, _SCOPE),
    **dict.fromkeys(_PARTS | _TABLE, _TABLE),
    "li": _SCOPE | {"ul", "ol"},
    **dict.fromkeys(_FORMATTING, _SCOPE),
}
"""Elements that stop the search for the one to end; for other tags, all of `_SPECIAL`."""
_ENDED: Final[Mapping[str, tuple[frozenset[str], frozenset[str]]]] = {
    "li": (frozenset({"li"}), _AROUND_ITEM),
    **dict.fromkeys(("dt", "dd"), (frozenset({"dt", "dd"}), _AROUND_ITEM)),
    **dict.fromkeys(("td", "th"), (_CELLS, _TABLE)),
    "tr": (_CELLS | {"tr"}, _TABLE),
    **dict.fromkeys(("thead", "tbody", "tfoot", "colgroup", "caption"), (_PARTS, _TABLE)),
    "table": (_TABLE, _CELLS),
    "a": (frozenset({"a"}), _SCOPE),
}
"""By start tag: elements it ends beside paragraphs, up to the outermost; elements that stop the search."""
_PARAGRAPH: Final = frozenset({"p"})
_B: Final = r"[ \t\n\f\r]"
_TOKEN: Final = re.compile(
    r"<(?:"
    r"!--(?:-?>|.*?(?:--!?>|\Z))"
    r"|(?:[!?]|/(?![A-Za-z]))[^>]*+(?:>|\Z)"
    r"|(?P<end>/?)(?P<name>[A-Za-z][^ \t\n\f\r/>]*+)"
    rf"(?P<attributes>(?:(?:{_B}|/)++|[^ \t\n\f\r/>][^ \t\n\f\r/>=]*+"
    rf"(?:{_B}*+={_B}*+(?:\"[^\"]*+\"|'[^']*+'|[^ \t\n\f\r>\"'][^ \t\n\f\r>]*+|(?=>))|(?!{_B}*+=)))*+)>"
    r"|(?P<endless>/?[A-Za-z]))",
    re.DOTALL,
)
"""Comments and tags (HTML, 13.2.5); an unclosed tag swallows the rest."""


def flatten(content: str) -> str:
    """Return HTML of limited nesting, however a parser mends it.

    Only tags written here remain. Deeper elements lose their tags and keep their words.
    """
    levels = _Levels()
    at = 0
    while found := _TOKEN.search(content, at):
        levels.text(content[at : found.start()])
        at = found.end()
        if found["endless"]:
            return "".join(levels.written)
        if not found["name"]:
            continue
        name = found["name"].lower()
        if name in _UNSHOWN and not found["end"]:
            at = levels.skip(name, found, content)
        elif name not in _IGNORED:
            attributes = "" if name in _BARE else found["attributes"]
            levels.tag(_RENAMED.get(name, name), attributes, is_end=bool(found["end"]))
    levels.text(content[at:])
    return "".join(levels.written)


_MOST_MENDED_LEVELS: Final = 3 * _MOST_LEVELS  # after mending: parsers add elements to tables
_WRITTEN: Final = re.compile(r"<(/?)(?!(?:br|hr|wbr|col|img|source)[ >])[a-z]")


def _levels_of(written: str) -> int:
    now = deepest = 0
    for found in _WRITTEN.finditer(written):
        now += -1 if found[1] else 1
        deepest = max(deepest, now)
    return deepest


class _Levels:
    """A writer of tags that omits those too deep.

    It tracks open elements (HTML, 13.2.6), erring towards too many.
    """

    def __init__(self) -> None:
        self._open: list[str] = []
        self._left_out = Counter[str]()
        """Omitted start tags; their end tags go, too."""
        self._endless = set[str]()
        """Elements without a further end tag."""
        self.written: list[str] = []

    def text(self, text: str) -> None:
        self.written.append(text.replace("<", "&lt;"))

    def skip(self, name: str, found: re.Match[str], content: str) -> int:
        if name == "iframe":  # its place stays
            self.written.append(f"<iframe{found['attributes']}></iframe>")
        end = None if name in self._endless else _END_OF[name].search(content, found.end())
        if end is not None:
            return end.end()
        self._endless.add(name)
        # a foreign element may end with the first tag that does not belong there
        return found.end() if name in _FOREIGN else len(content)

    def tag(self, name: str, attributes: str, *, is_end: bool) -> None:
        if is_end:
            self._end(name)
        elif name in _PARTS and "table" not in self._open:
            return  # outside tables
        elif name in _VOID or self._is_begun(name):
            self.written.append(f"<{name}{attributes}>")

    def _is_begun(self, name: str) -> bool:
        """Open an element; return False to omit it."""
        is_twice = name in _FORMATTING and name != "a" and name in self._open
        if not is_twice:
            if name in _BLOCKS or name == "table":
                self._leave(_PARAGRAPH, _SCOPE)
            if name in _HEADINGS and self._open and self._open[-1] in _HEADINGS:
                self._open.pop()
            if name in _ENDED:
                self._leave(*_ENDED[name])
        if is_twice or len(self._open) >= _MOST_LEVELS:
            self._left_out[name] += 1
            return False
        self._open.append(name)
        return True

    def _end(self, name: str) -> None:
        if self._left_out[name]:
            self._left_out[name] -= 1
        elif self._leave(
            _HEADINGS if name in _HEADINGS else {name}, _AROUND_END.get(name, _SPECIAL), is_outermost=False
        ):
            self.written.append(f"</{name}>")
        elif name == "br":
            self.written.append("<br>")

    def _leave(self, names: Collection[str], around: Collection[str], *, is_outermost: bool = True) -> bool:
        """Close an element with its content; return whether there was one.

        Formatting continues behind the element it began in.
        """
        found = None
        for place in range(len(self._open) - 1, -1, -1):
            if self._open[place] in names:
                found = place
                if not is_outermost:
                    break
            elif self._open[place] in around:
                break
        if found is None:
            return False
        ended = self._open[found]
        within = self._open[found + 1 :]
        keeps = within if ended in _FORMATTING else [each for each in within if each in _FORMATTING]
        self._open[found:] = keeps
        return True


_FOREIGN: Final = frozenset({"svg", "math", "select", "template"})
_END_OF: Final = {name: re.compile(rf"</{name}(?=[\s/>])[^>]*>", re.IGNORECASE) for name in _UNSHOWN}
