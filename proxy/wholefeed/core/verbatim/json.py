"""Cut items of a JSON Feed so that they mean the same in another one (rule R22).

An item without author or language gains its feed's under another head (JSON Feed 1.1, "Items"). URLs become
absolute.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from typing import Any, Final, NamedTuple

from wholefeed.core.model import FeedDocument, HeadChild, HeadContext
from wholefeed.core.verbatim.addresses import GAIN_BYTES, GAIN_FACTOR, absolute


class JsonFragments:
    prefixes: Final = 0
    """JSON has no namespaces."""

    def __init__(self, document: FeedDocument) -> None:
        self.document = document
        self._text = document.text
        self._base = document.head.scope.base

    @cached_property
    def needs_context(self) -> bool:
        """Whether `entry` depends on its context."""
        own = self.context
        lacks_author = not all(entry.has_author for entry in self.document.entries)
        return bool(own.language or (own.authors and lacks_author))

    def entry(self, index: int, context: HeadContext | None = None) -> bytes:
        """Return an item for the output, or for a synthesized document; `context` as in `Fragments.entry`."""
        entry = self.document.entries[index]
        slice_ = with_absolute_members(self._text[entry.start : entry.end], ITEM_URLS, self._base)
        own = self.context
        added: list[bytes] = []
        if not entry.has_author and (context is None or context.authors != own.authors):
            added.extend(own.authors)
        if own.language and (context is None or context.language != own.language):
            item = json.loads(slice_, parse_int=str, parse_float=str)
            if _LANGUAGE not in item:
                added.append(own.language)
        return _with_members(slice_, added)

    sent = entry
    """Kept items have absolute URLs too: nothing else keeps their base."""

    def all_sent(self, indices: Iterable[int], context: HeadContext | None = None) -> list[bytes]:
        return [self.sent(index, context) for index in indices]

    def head_child(self, child: HeadChild) -> bytes:
        """Return a member of the head with absolute URLs."""
        member = self._text[child.start : child.end]
        return with_absolute_members(b"{%s}" % member, HEAD_URLS, self._base)[1:-1]

    def gain_at_most(self, limit_bytes: int) -> bool:
        own, entries = self.context, self.document.entries
        authors = sum(len(member) + 1 for member in own.authors)
        gained = authors * sum(not entry.has_author for entry in entries)
        return gained + (len(own.language) + 1) * len(entries) <= limit_bytes

    @cached_property
    def context(self) -> HeadContext:
        """Authors and language that items inherit."""
        members = {child.name: self.head_child(child) for child in self.document.head.children}
        authors = tuple(members[name] for name in _AUTHORS if name in members and _is_said(members[name]))
        if sum(map(len, authors)) > MAX_CONTEXT_BYTES:
            authors = ()
        language = members.get(_LANGUAGE, b"") if self.document.head.scope.lang else b""
        return HeadContext(authors=authors, language=language)


MAX_CONTEXT_BYTES: Final = 4096
"""Larger authors, or rights, of a feed are not repeated in its entries."""
_AUTHORS: Final = ("author", "authors")
_LANGUAGE: Final = "language"


def _is_said(member: bytes) -> bool:
    value: dict[str, Any] = json.loads(b"{%s}" % member)
    return any(value.values())


def _with_members(slice_: bytes, members: list[bytes]) -> bytes:
    if not members:
        return slice_
    end = b"" if _EMPTY.fullmatch(slice_) else b","
    return b"{" + b",".join(members) + end + slice_[1:]


_EMPTY: Final = re.compile(rb"\{[ \t\r\n]*\}")


# Members given other values


def with_values(slice_: bytes, values: Mapping[str, object]) -> bytes:
    """Return a well-formed object with these values; missing members come first."""
    written = {name: _written(value) for name, value in values.items()}
    members = list(_members(slice_))
    # Of several members of a name the last one counts, and stays alone.
    last = {each.name: place for place, each in enumerate(members)}
    pieces: list[bytes] = []
    position = 0
    for place, each in enumerate(members):
        if each.name not in written:
            continue
        is_last = place == last[each.name]
        start, end = (each.start, each.end) if is_last else (each.named_at, members[place + 1].named_at)
        pieces += (slice_[position:start], written[each.name] if is_last else b"")
        position = end
    changed = b"".join((*pieces, slice_[position:]))
    lacking = [name for name in written if name not in last]
    return _with_members(changed, [b'"%s":%s' % (name.encode(), written[name]) for name in lacking])


def _written(value: object) -> bytes:
    # Half a character, which has no UTF-8, stays escaped.
    try:
        return json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return json.dumps(value).encode()


class _Member(NamedTuple):
    name: str
    named_at: int
    start: int
    """Start of the value."""
    end: int


def _members(slice_: bytes) -> Iterator[_Member]:
    depth, name, named_at, start = 0, b"", 0, -1
    for match in _TOKEN.finditer(slice_):
        token = match[0]
        if token in (b"}", b"]"):
            depth -= 1
        if start >= 0 and ((depth == 1 and token == b",") or depth == 0):
            value = slice_[start : match.start()]
            begins = start + len(value) - len(value.lstrip())
            yield _Member(json.loads(name), named_at, begins, start + len(value.rstrip()))
            start = -1
        elif depth == 1 and token == b":":
            start = match.end()
        elif depth == 1 and start < 0 and token.startswith(b'"'):
            name, named_at = token, match.start()
        if token in (b"{", b"["):
            depth += 1


# URLs written absolute


def with_absolute_members(slice_: bytes, paths: _Paths, base: str) -> bytes:
    """Return a well-formed object with absolute URLs at these paths."""
    if not _PERHAPS.search(slice_):
        return slice_
    pieces: list[bytes] = []
    position, room = 0, GAIN_FACTOR * len(slice_) + GAIN_BYTES
    path: list[str] = []
    is_array: list[bool] = []
    name_follows = False
    for match in _TOKEN.finditer(slice_):
        match token := match[0]:
            case b"{" | b"[":
                is_array.append(token == b"[")
                path.append("")
                name_follows = token == b"{"
            case b"}" | b"]":
                is_array.pop()
                path.pop()
                name_follows = False
            case b",":
                name_follows = not is_array[-1]
            case b":":
                name_follows = False
            case _ if name_follows:
                path[-1] = json.loads(token)
            case _ if room >= 0 and tuple(path) in paths:
                made = absolute(base, json.loads(token))
                written = _written(made)
                room -= max(0, len(written) - len(token))
                if made and room >= 0:
                    pieces += (slice_[position : match.start()], written)
                    position = match.end()
    return b"".join((*pieces, slice_[position:]))


_Paths = frozenset[tuple[str, ...]]
_PERSONS: Final = frozenset(
    (*person, name) for person in (("author",), ("authors", "")) for name in ("url", "avatar")
)
ITEM_URLS: Final[_Paths] = _PERSONS | {
    ("url",),
    ("external_url",),
    ("image",),
    ("banner_image",),
    ("attachments", "", "url"),
}
"""Paths in an item (JSON Feed 1.1); an empty name means all elements of an array."""
HEAD_URLS: Final[_Paths] = _PERSONS | {("home_page_url",), ("icon",), ("favicon",)}
_PERHAPS: Final = re.compile(
    rb'"(?:url|external_url|image|banner_image|avatar|home_page_url|icon|favicon)"\s*+:\s*+"'
    rb"(?!\s*+(?:[A-Za-z][A-Za-z0-9+.\-]*+:|\"))"
)
_TOKEN: Final = re.compile(rb'"(?:[^"\\]++|\\.)*+"|[{}\[\]:,]', re.DOTALL)
