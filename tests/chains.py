"""Archived feeds made of plain ones, and a feed as a reader sees it.

    parts = cut(body, lambda n: origin.url(f"/{n}/feed.xml"))       # body: any well-formed Atom or RSS
    expected = [entry for part in parts for entry in seen(part.body, part.url, content_type)]
    assert not list(differences(expected, seen(answer, proxy_url, content_type)))

`cut` works on the text alone, with nothing of the package, so that it can serve to judge it.
"""

from __future__ import annotations

import codecs
import re
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from xml.parsers.expat import ExpatError, ParserCreate

import feedparser

from tests.feeds import FH_NS
from wholefeed.core.model import ATOM_NS

_DECLARED: Final = re.compile(rb"<\?xml\s[^>]*?encoding\s*=\s*[\"']([A-Za-z0-9._\-]+)[\"']")
_MARKS: Final = {codecs.BOM_UTF8: "utf-8", codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}
_UNMARKED: Final = {b"<\0": "utf-16-le", b"\0<": "utf-16-be"}
_CHAIN_LINKS: Final = {"prev-archive", "next-archive", "current", "prev", "previous", "next", "first", "last"}


CORPUS: Final = Path(__file__).parents[2] / "shared" / "corpus"
"""Real feeds, beside the project if present."""


class NotCuttableError(ValueError):
    """The document is not well-formed, or neither Atom 1.0 nor RSS."""


@dataclass(frozen=True)
class Part:
    url: str
    body: bytes


@dataclass
class Anatomy:
    """Places in a document's text, in UTF-8."""

    text: bytes
    mark: bytes
    """The byte order mark."""
    codec: str
    family: str = ""
    """The name of the root."""
    head_at: int = 0
    """Behind the start tag of the element that holds the head."""
    entries: list[tuple[int, int]] = field(default_factory=list)
    navigation: list[tuple[int, int]] = field(default_factory=list)
    """Elements that place the document in a chain."""


def anatomy(body: bytes) -> Anatomy:
    """Take a document apart.

    Raises:
        NotCuttableError: It is not well-formed, declares entities, or is neither Atom 1.0 nor RSS.
    """
    found = _decoded(body)
    try:
        _Dissector(found).parser.Parse(found.text, True)
    except ExpatError as exc:
        raise NotCuttableError(str(exc)) from exc
    if not found.head_at or found.text[found.head_at - 2 : found.head_at] == b"/>":
        raise NotCuttableError("nothing that holds entries")
    return found


class _Dissector:
    """Notes where elements begin and end."""

    def __init__(self, found: Anatomy) -> None:
        self.found = found
        self.parser = ParserCreate("utf-8", " ")
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        self.parser.StartDoctypeDeclHandler = self._doctype
        self._open: list[tuple[str, int, bool]] = []
        """For each open element: name, place, whether it is navigation."""

    def _doctype(
        self, _name: str, _system: str | None, _public: str | None, has_internal_subset: bool
    ) -> None:
        if has_internal_subset:
            raise NotCuttableError("a document type with declarations of its own")

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        local = name.rpartition(" ")[2]
        if not self._open:
            if name != f"{ATOM_NS} feed" and local != "rss":
                raise NotCuttableError(f"a document of <{name}>")
            self.found.family = local
        depth, is_atom = len(self._open) + 1, self.found.family == "feed"
        begun = self.parser.CurrentByteIndex
        is_container = depth == 1 if is_atom else depth == 2 and local == "channel"
        if is_container and not self.found.head_at:
            self.found.head_at = _end_of_tag(self.found.text, begun)
        in_head = depth == (2 if is_atom else 3)
        self._open.append((name, begun, in_head and _is_navigation(name, attributes)))

    def _end(self, name: str) -> None:
        _, begun, is_navigation = self._open[-1]
        span = (begun, _end_of_element(self.found.text, begun, self.parser.CurrentByteIndex))
        if is_navigation:
            self.found.navigation.append(span)
        if _is_entry([name for name, _, _ in self._open], self.found.family):
            self.found.entries.append(span)
        self._open.pop()


def cut(body: bytes, url_of: Callable[[int], str]) -> list[Part]:
    """Cut a document at its entries into a subscription document and one or two archive documents.

    Each has the whole head. Existing links of a chain are left out.

    Args:
        body: Well-formed Atom 1.0 or RSS.
        url_of: The URL of the subscription document (0) and of the archive documents behind it.

    Raises:
        NotCuttableError: There is nothing to cut.
    """
    found = anatomy(body)
    count = len(found.entries)
    if not count:
        raise NotCuttableError("no entries")
    bounds = [0, count // 3, (2 * count) // 3, count] if count > 1 else [0, 0, 1]
    last = len(bounds) - 2
    parts = []
    for place in range(last + 1):
        added = _link("prev-archive", url_of(place + 1)) if place < last else b""
        if place:
            added += b'<archive xmlns="%s"/>' % FH_NS.encode() + _link("current", url_of(0))
        kept = range(bounds[place], bounds[place + 1])
        dropped = [span for n, span in enumerate(found.entries) if n not in kept] + found.navigation
        parts.append(Part(url_of(place), _edited(found, dropped, added)))
    return parts


def _decoded(body: bytes) -> Anatomy:
    for mark, codec in _MARKS.items():
        if body.startswith(mark):
            return Anatomy(_text(body[len(mark) :], codec), mark, codec)
    declared = _DECLARED.match(body)
    codec = declared[1].decode().lower() if declared else _UNMARKED.get(body[:2], "utf-8")
    return Anatomy(_text(body, codec), b"", codec)


def _text(body: bytes, codec: str) -> bytes:
    try:
        return body.decode(codec).encode()
    except (UnicodeError, LookupError) as exc:
        raise NotCuttableError(f"not in {codec}") from exc


def _is_entry(path: list[str], family: str) -> bool:
    if family == "feed":
        return len(path) == 2 and path[1] == f"{ATOM_NS} entry"
    is_item = path[-1].rpartition(" ")[2] == "item"
    return is_item and (len(path) == 2 or (len(path) == 3 and path[1].endswith("channel")))


def _is_navigation(name: str, attributes: dict[str, str]) -> bool:
    relation = attributes.get("rel", "").strip().lower().rpartition("/")[2]
    return name.startswith(f"{FH_NS} ") or (name == f"{ATOM_NS} link" and relation in _CHAIN_LINKS)


def _end_of_tag(text: bytes, start: int) -> int:
    tag = re.compile(rb"<[^\"'>]*(?:\"[^\"]*\"[^\"'>]*|'[^']*'[^\"'>]*)*>").match(text, start)
    assert tag is not None, "expat found a start tag here"
    return tag.end()


def _end_of_element(text: bytes, start: int, reported: int) -> int:
    tag_end = _end_of_tag(text, start)
    if text[tag_end - 2 : tag_end] == b"/>":
        return tag_end
    return text.index(b">", reported) + 1


def _link(relation: str, url: str) -> bytes:
    return f'<link xmlns="{ATOM_NS}" rel="{relation}" href="{url}"/>'.encode()


def _edited(found: Anatomy, dropped: list[tuple[int, int]], added: bytes) -> bytes:
    pieces = [found.text[: found.head_at], added]
    position = found.head_at
    for start, end in sorted(dropped):
        if start >= position:  # what lies in another one is gone with it
            pieces.append(found.text[position:start])
            position = end
    text = b"".join([*pieces, found.text[position:]])
    return found.mark + text.decode().encode(found.codec)


# ---- What a reader sees

Seen = dict[str, Any]
_WHERE: Final = {"base", "xml:base", "xml:lang"}
"""Places of a value; their meaning shows in the value and its language."""


def seen(body: bytes, url: str, content_type: str) -> list[Seen]:
    """Everything that feedparser reads from a document's entries, except their bases."""
    return [_without_base(entry) for entry in _read(body, url, content_type).entries]


def head_seen(body: bytes, url: str, content_type: str) -> Seen:
    """Everything that feedparser reads from a document's head, except its bases."""
    head: Seen = _without_base(_read(body, url, content_type).feed)
    return head


def _read(body: bytes, url: str, content_type: str) -> Any:
    headers = {"content-location": url, "content-type": content_type}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return feedparser.parse(body, response_headers=headers)


def _without_base(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_base(each) for name, each in value.items() if name not in _WHERE}
    if isinstance(value, list):
        return [_without_base(each) for each in value]
    return value


def differences(before: list[Seen], after: list[Seen]) -> Iterator[str]:
    """Describe the differences, in any order of entries."""
    left, right = sorted(before, key=_key), sorted(after, key=_key)
    if len(left) != len(right):
        yield f"{len(left)} entries became {len(right)}"
    for one, other in zip(left, right, strict=False):
        for name in sorted({*one, *other}):
            if not is_alike(one.get(name), other.get(name)) and not _gained(name, one, other):
                which = one.get("id") or one.get("title")
                yield f"{which!r}: {name} {one.get(name)!r} became {other.get(name)!r}"


def is_alike(before: object, after: object) -> bool:
    """Whether two values are equal, except for URLs that feedparser leaves relative and the proxy does not.

    Other tests check the absolute URL: here only its end has to agree.
    """
    if isinstance(before, str) and isinstance(after, str):
        before, after = (each.strip().replace(" ", "%20") for each in (before, after))
        tail = re.sub(r"^(?:\.{0,2}/)+", "", before)
        is_written = not re.match(r"[A-Za-z][A-Za-z0-9+.\-]*:", tail) and re.match(r"https?://", after)
        return before == after or (is_written is not None and bool(tail) and after.endswith(tail))
    if isinstance(before, dict) and isinstance(after, dict):
        return before.keys() == after.keys() and all(is_alike(before[key], after[key]) for key in before)
    if isinstance(before, list) and isinstance(after, list):
        return len(before) == len(after) and all(map(is_alike, before, after))
    return before == after


def _gained(name: str, before: Seen, after: Seen) -> bool:
    """Whether an item has gained a link from its guid (R22)."""
    link = {"rel": "alternate", "type": "text/html", "href": before.get("id")}
    return name == "links" and [*before.get("links", ()), link] == after["links"]


def _key(entry: Seen) -> tuple[str, ...]:
    return tuple(str(entry.get(name)) for name in ("id", "link", "title", "published", "summary"))


def corpus_feeds(*folders: str) -> Iterator[tuple[str, bytes]]:
    """Yield name and body of every well-formed feed of the corpus that can be cut."""
    for folder in folders:
        for path in sorted((CORPUS / folder).rglob("*")):
            if path.is_file() and _can_be_cut(body := path.read_bytes()):
                yield path.relative_to(CORPUS).as_posix(), body


def _can_be_cut(body: bytes) -> bool:
    try:
        anatomy(body)
    except NotCuttableError:
        return False
    return True
