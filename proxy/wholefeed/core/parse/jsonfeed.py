"""Read JSON Feed 1.0 and 1.1 (https://www.jsonfeed.org/version/1.1/), and mend its JSON (RFC 8259).

The only base of relative references is the document's URL.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple, NoReturn

from wholefeed.core.model import (
    MEMORY_URL,
    Entry,
    EntryId,
    EntryKeys,
    Family,
    FeedDocument,
    Head,
    HeadChild,
    Link,
    Scope,
    entry_id,
)
from wholefeed.core.notes import Note
from wholefeed.core.parse.identities import (
    SPACES,
    absolute,
    entry_keys,
    has_id,
    site_id,
    told_apart,
)
from wholefeed.core.parse.limits import (
    MAX_ENTRIES,
    MAX_HEAD_BYTES,
    MAX_HEAD_CHILDREN,
    MAX_LANG_CHARACTERS,
    MAX_LIKE_ENTRIES,
    MAX_TITLE_CHARACTERS,
    UNLIMITED,
    ParseError,
)
from wholefeed.core.text.dates import parse_rfc3339
from wholefeed.core.text.urls import resolve_or_empty


def read_json_feed(text: str, url: str, max_depth: int, notes: Sequence[Note] = ()) -> FeedDocument:
    """Return the document in a JSON object; `notes` say how its text became readable.

    Raises:
        ParseError: The text is malformed, breaks a limit, or is no JSON Feed.
    """
    is_limited = max_depth < UNLIMITED
    if is_limited:
        _check_values(text)
    _check_depth(text, max_depth)
    scanner = _Scanner(text, url, is_limited=is_limited)
    try:
        members = scanner.members()
    except ParseError:
        raise
    except ValueError as exc:
        raise ParseError(f"expected JSON, got an error: {str(exc)[:200]}", slug="malformed-json") from exc
    version = _VERSION.fullmatch(_string(members, "version"))
    if version is None:
        raise ParseError("expected a feed, got JSON that is no JSON Feed", slug="not-a-feed")
    if is_limited:
        _check_sizes(members)
    spans = _byte_spans(text, ((entry.start, entry.end) for entry in scanner.entries))
    entries = [
        entry._replace(start=start, end=end)
        for entry, (start, end) in zip(scanner.entries, spans, strict=True)
    ]
    own_link, encoded = absolute(url, _string(members, "home_page_url")), text.encode()
    told = told_apart(url, entries, scanner.keys, scanner.titles, [own_link], encoded)
    head = _head(text, members, url)
    notes = (*notes, *told.notes)
    return FeedDocument(
        url, Family.JSON, version[1], encoded, head, told.entries, notes, ambiguous=told.ambiguous
    )


_VERSION: Final = re.compile(r"\s*https?://(?:www\.)?jsonfeed\.org/version/([0-9][0-9.]{0,14})/?\s*")


def _check_sizes(members: Mapping[str, _FeedMember]) -> None:
    expected = ""
    if len(members) > MAX_HEAD_CHILDREN:
        expected = f"{MAX_HEAD_CHILDREN} members beside the entries"
    elif sum(member.end - member.start for member in members.values()) > MAX_HEAD_BYTES:
        expected = f"{MAX_HEAD_BYTES} characters of members beside the entries"
    if expected:
        raise ParseError(f"expected at most {expected}, got more", slug="xml-limit")


def _head(text: str, members: Mapping[str, _FeedMember], url: str) -> Head:
    named = sorted(members.items(), key=lambda each: each[1].start)
    spans = _byte_spans(text, ((member.start, member.end) for _, member in named))
    children = [
        HeadChild("", name, start, end, _RELATIONS.get(name, ""))
        for (name, _), (start, end) in zip(named, spans, strict=True)
    ]
    links = [
        Link(_RELATIONS[name], resolve_or_empty(url, href), "", href)
        for name in ("feed_url", "next_url")
        if (href := _string(members, name))
    ]
    language = _string(members, "language")
    return Head(
        site_id=site_id(_string(members, "home_page_url")),
        title=_string(members, "title")[:MAX_TITLE_CHARACTERS],
        updated_at=None,
        links=tuple(links),
        history=(),
        children=tuple(children),
        scope=Scope({}, language if len(language) <= MAX_LANG_CHARACTERS else "", url),
    )


# Members of the head that are links, with their relations (R6, R21).
_RELATIONS: Final = {"feed_url": "self", "next_url": "next", "hubs": "hub"}


def _item(value: Mapping[str, Any], url: str, start: int, end: int) -> tuple[Entry, EntryKeys]:
    """Return an item's entry, and all its keys; `start` and `end` count characters."""
    # A number counts by its digits (JSON Feed 1.1, "Items").
    values = {
        "id": _text(value.get("id")),
        "link": _text(value.get("url")) or _text(value.get("external_url")),
        "title": _text(value.get("title")),
        "content": _text(value.get("content_html")) or _text(value.get("content_text")),
        "published": _text(value.get("date_published")),
        "updated": _text(value.get("date_modified")),
    }
    updated_at = parse_rfc3339(values["updated"]) if values["updated"] else None
    order_at = updated_at
    if order_at is None and values["published"]:
        order_at = parse_rfc3339(values["published"])
    keys = entry_keys(values, _enclosures(value), url)
    entry = Entry(
        entry_id(values["id"]),
        updated_at,
        order_at,
        start,
        end,
        has_author=bool(value.get("author") or value.get("authors")),
        keys=None if has_id(values) else keys,
        has_content=bool(values["content"].strip(SPACES)),
    )
    return entry, keys


def _enclosures(item: Mapping[str, Any]) -> list[str]:
    attachments = item.get("attachments")
    held = attachments if isinstance(attachments, list) else []
    return [_text(each.get("url")) for each in held if isinstance(each, dict)]


def _string(members: Mapping[str, _FeedMember], name: str) -> str:
    member = members.get(name)
    return "" if member is None or isinstance(member.value, _Number) else _text(member.value).strip(SPACES)


def _text(value: object) -> str:
    """Return a string or number as text that UTF-8 can encode, else empty."""
    if not isinstance(value, str):
        return ""
    try:
        value.encode()
    except UnicodeEncodeError:  # an escape of half a character
        return json.dumps(value)
    return value


# JSON text: its limits, and where the members of its top-level object stand


class _FeedMember(NamedTuple):
    """Offsets in characters, from its name on."""

    value: Any
    start: int
    end: int


class _Number(str):
    """A number as written: large ones keep every digit (RFC 8259, section 6)."""

    __slots__ = ()


def _byte_spans(text: str, spans: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Convert ascending spans of characters to spans of bytes in UTF-8."""
    if text.isascii():
        yield from spans
        return
    place = length = 0
    for start, end in spans:
        first = length + len(text[place:start].encode())
        place, length = end, first + len(text[start:end].encode())
        yield first, length


MAX_VALUES: Final = 2_000_000
"""Per document, at all levels: each value is an object in memory."""
_MAX_QUOTES: Final = 2 * MAX_VALUES
# An unending string reaches to the end of the text, or each quote in it would be tried again.
_WRITTEN_STRING: Final = r'"[^"\\]*+(?:\\.?[^"\\]*+)*+"?'
_STRING: Final = re.compile(_WRITTEN_STRING, re.DOTALL)


def _check_values(text: str) -> None:
    # Counted before any value is made: a digit and a comma become a hundred bytes.
    if _values(text) <= MAX_VALUES:
        return
    if text.count('"') > _MAX_QUOTES or _values(_STRING.sub("", text)) > MAX_VALUES:
        raise ParseError(f"expected at most {MAX_VALUES} JSON values, got more", slug="xml-limit")


def _values(text: str) -> int:
    return sum(map(text.count, ",[{"))


_NO_BRACKET: Final = re.compile(r"[^\[\]{}]+")


def _check_depth(text: str, max_depth: int) -> None:
    # Counted before anything recurses. Strings are cut out from the front, as JSON reads them.
    if text.count("[") + text.count("{") <= max_depth:
        return
    depth = 0
    for bracket in _NO_BRACKET.sub("", _STRING.sub("", text)):
        depth += 1 if bracket in "[{" else -1
        if depth > max_depth:
            raise ParseError(f"expected at most {max_depth} levels of JSON, got more", slug="xml-limit")


_SPACE: Final = re.compile(r"[ \t\n\r]*")
_AFTER: Final = re.compile(r"[ \t\n\r]*([,\]])[ \t\n\r]*")
# Longest item, in characters, to remember: there can be many.
_SHORT: Final = 64


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON value")


_DECODER: Final = json.JSONDecoder(parse_int=_Number, parse_float=_Number, parse_constant=_refuse_constant)


class _Scanner:
    """A reader of the top level; the standard library reads deeper levels."""

    def __init__(self, text: str, url: str, *, is_limited: bool) -> None:
        self.entries: list[Entry] = []
        """Offsets in characters."""
        self.keys: list[EntryKeys] = []
        self.titles: list[EntryId] = []
        """Digested."""
        self._text = text
        self._url = url
        self._at = 0
        self._is_limited = is_limited
        self._short = -1 if url.startswith(MEMORY_URL) else _SHORT
        self._decode = _DECODER.raw_decode

    def members(self) -> Mapping[str, _FeedMember]:
        found: dict[str, _FeedMember] = {}
        self._expect("{")
        if self._follows("}"):
            return self._end_object(found)
        while True:
            start = self._skip()
            name = self._value()
            if not isinstance(name, str) or isinstance(name, _Number):
                raise self._error("a member's name")
            self._expect(":")
            if name == "items":
                self._read_items()
            else:
                found[name] = _FeedMember(self._value(), start, self._at)
            if not self._follows(","):
                self._expect("}")
                return self._end_object(found)

    def _read_items(self) -> None:
        self.entries, self.keys, self.titles = [], [], []
        if not self._follows("["):
            self._value()
            return
        if self._follows("]"):
            return
        text, decode = self._text, self._decode
        seen: set[str] = set()
        self._skip()
        number = 0
        while True:
            if self._is_limited and number >= MAX_ENTRIES:
                raise ParseError(f"expected at most {MAX_ENTRIES} entries, got more", slug="xml-limit")
            start = self._at
            value, self._at = decode(text, start)
            written = text[start : self._at] if self._at - start <= self._short else ""
            if isinstance(value, dict) and (not written or written not in seen):
                entry, keys = _item(value, self._url, start, self._at)
                self.entries.append(entry)
                self.keys.append(keys)
                self.titles.append(entry_id(_text(value.get("title"))))
            number += 1
            if number > MAX_LIKE_ENTRIES and written.endswith("}"):
                seen.add(written)
                number += self._pass_over(f",{written}")
            after = _AFTER.match(text, self._at)
            if after is None:
                raise self._error("',' or ']'")
            self._at = after.end()
            if after[1] == "]":
                return

    def _pass_over(self, repeated: str) -> int:
        number = 0
        while self._text.startswith(repeated, self._at):
            self._at += len(repeated)
            number += 1
        return number

    def _value(self) -> Any:
        value, self._at = self._decode(self._text, self._skip())
        return value

    def _skip(self) -> int:
        match = _SPACE.match(self._text, self._at)
        assert match is not None, "no space is space enough"
        self._at = match.end()
        return self._at

    def _follows(self, character: str) -> bool:
        if self._text[self._skip() : self._at + 1] != character:
            return False
        self._at += 1
        return True

    def _expect(self, character: str) -> None:
        if not self._follows(character):
            raise self._error(repr(character))

    def _end_object(self, found: dict[str, _FeedMember]) -> dict[str, _FeedMember]:
        if self._skip() != len(self._text):
            raise self._error("the end")
        return found

    def _error(self, expected: str) -> ValueError:
        line = self._text.count("\n", 0, self._at) + 1
        column = self._at - (self._text.rfind("\n", 0, self._at) + 1) + 1
        return ValueError(f"no {expected} (line {line}, column {column})")


# Text that is almost JSON (docs/repair.md)

BLANKS: Final = "blanks"
COMMAS: Final = "commas"
ESCAPES: Final = "escapes"


def mend_json(text: str) -> tuple[str, tuple[str, ...]]:
    """Return a text with its strings and commas made valid, and the names of the repairs."""
    repairs: set[str] = set()

    def replace(match: re.Match[str]) -> str:
        if match["string"] is not None:
            made = _mend_string(match[0])
            if made != match[0]:
                repairs.add(ESCAPES)
            return made
        repairs.add(BLANKS if match["blanks"] is not None else COMMAS)
        return match["kept"] or ""

    return _MENDABLE.sub(replace, text), tuple(sorted(repairs))


# Strings; commas (one stays, or none before a closing bracket); blanks that JSON does not know.
_MENDABLE: Final = re.compile(
    rf"(?P<string>{_WRITTEN_STRING})"
    r"|(?P<kept>[\[{]|,(?!(?:\s*+,)*+\s*+[\]}]))(?:\s*+,)++"
    r"|,(?:\s*+,)*+(?=\s*+[\]}])"
    r"|(?P<blanks>[\0-\x08\x0b\x0c\x0e-\x1f\x7f-\xa0\u1680\u2000-\u200b\u2028\u2029\u202f\u205f\u3000\ufeff]++)",
    re.DOTALL,
)


def _mend_string(written: str) -> str:
    """Escape control characters, and each backslash that begins no escape."""
    if "\\" in written:
        written = _BACKSLASHES.sub(_mend_backslash, written)
    return written.translate(_CONTROL_ESCAPES) if _CONTROL.search(written) else written


def _mend_backslash(match: re.Match[str]) -> str:
    return {"\\": "\\\\", "\\'": "'"}.get(match[0], match[0])  # the latter is an escape in JavaScript


_BACKSLASHES: Final = re.compile(r"(?:\\(?:[\"\\/bfnrt]|u[0-9a-fA-F]{4}))++|\\'?+")
_CONTROL: Final = re.compile(r"[\0-\x1f]")
_CONTROL_ESCAPES: Final = {code: json.dumps(chr(code))[1:-1] for code in range(0x20)}
