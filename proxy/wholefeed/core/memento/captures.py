"""The index of a web archive: what it says of the copies of one URL, whatever it says.

    page = parse_index(body)
    page.captures[0].timestamp          # "20190501120000"

Two servers are known, and both are understood whichever answers: the Wayback Machine's sends one array of
arrays, with the names of the columns first and a resume key last, behind an empty row; pywb's sends one
object a line. What is no usable row is passed over: an index is large, made by many programs, and perhaps
hostile.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from wholefeed.core.text.urls import MAX_URL_CHARACTERS, UrlError, canonical_url

MAX_INDEX_BYTES: Final = 1 << 20
"""Of one page: ten times what as many rows as are asked for come to."""

MAX_ROWS: Final = 1000
"""Of one page that are looked at."""

_MAX_KEY_CHARACTERS: Final = 2048
_TIMESTAMP: Final = re.compile(r"[0-9]{14}", re.ASCII)
_OK: Final = frozenset({"", "-", "200"})
_SYNONYMS: Final = {"status": "statuscode", "mime": "mimetype", "url": "original"}
"""What pywb calls the columns of the Wayback Machine."""


class BadIndexError(ValueError):
    """What came is no index; the message says what was expected."""


@dataclass(frozen=True, slots=True)
class Capture:
    """A copy that an archive has, as its index tells."""

    timestamp: str
    """When it was made: 14 digits, UTC."""
    url: str
    """Of the document, as it was asked for then."""
    media_type: str = ""
    digest: str = ""
    """Of the body, in the archive's own way; equal ones are the same body."""

    @property
    def captured_at(self) -> float:
        """When it was made, epoch seconds."""
        return instant_of(self.timestamp)


@dataclass(frozen=True, slots=True)
class IndexPage:
    """One page of an index."""

    captures: tuple[Capture, ...] = ()
    """In the order in which they came."""
    resume_key: str = ""
    """Asks for the next page; empty where the archive says that there is none, or nothing of it."""
    rows: int = 0
    """How many came, the unusable ones included: as many as were asked for, and it may have been cut."""


def instant_of(timestamp: str) -> float:
    """Return the epoch second that 14 digits mean.

    Raises:
        ValueError: They are no instant.
    """
    if not _TIMESTAMP.fullmatch(timestamp):
        raise ValueError("expected 14 digits")
    return datetime.strptime(timestamp, "%Y%m%d%H%M%S").replace(tzinfo=UTC).timestamp()


def timestamp_of(instant: float) -> str:
    """Return the 14 digits of an epoch second."""
    at = datetime.fromtimestamp(int(instant), UTC)
    return f"{at.year:04}{at:%m%d%H%M%S}"


def parse_index(body: bytes) -> IndexPage:
    """Read one page of an index.

    Raises:
        BadIndexError: It is neither of the two that are known, or larger than any that was asked for.
    """
    if len(body) > MAX_INDEX_BYTES:
        raise BadIndexError(f"expected an index of at most {MAX_INDEX_BYTES} bytes, got {len(body)}")
    text = body.decode("utf-8", "replace").strip()
    if not text:
        return IndexPage()
    return _of_lines(text) if text.startswith("{") else _of_array(text)


def _of_array(text: str) -> IndexPage:
    """The Wayback Machine's: names, rows, and behind an empty row the resume key."""
    found = _json(text)
    if not isinstance(found, list) or not all(isinstance(row, list) for row in found):
        raise BadIndexError("expected an array of arrays")
    names, rows, key = [str(name) for name in found[0]] if found else [], found[1:], ""
    match rows:
        case [*before, [], [str(key)]]:
            rows = before
        case [*before, [], [_]]:
            rows = before
        case _:
            pass
    mapped = (dict(zip(names, row, strict=False)) for row in rows[:MAX_ROWS])
    return IndexPage(tuple(_captures(mapped)), key if _is_key(key) else "", len(rows))


def _of_lines(text: str) -> IndexPage:
    """pywb's: an object a line, and no resume key."""
    rows: list[object] = [_json(line) for line in text.splitlines()[:MAX_ROWS] if line.strip()]
    mapped = ({_SYNONYMS.get(str(name), str(name)): value for name, value in row.items()} for row in rows
              if isinstance(row, dict))  # fmt: skip
    return IndexPage(tuple(_captures(mapped)), "", len(rows))


def _json(text: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as exc:
        raise BadIndexError("expected JSON") from exc


def _is_key(key: str) -> bool:
    return key.isprintable() and len(key) <= _MAX_KEY_CHARACTERS


def _captures(rows: Iterable[Mapping[str, object]]) -> Iterator[Capture]:
    for row in rows:
        values = {name: value for name, value in row.items() if isinstance(value, str)}
        url = values.get("original", "")
        if values.get("statuscode", "") not in _OK or len(url) > MAX_URL_CHARACTERS:
            continue
        try:
            capture = Capture(
                values.get("timestamp", ""), url, values.get("mimetype", ""), values.get("digest", "")
            )
            _ = capture.captured_at, canonical_url(url)
        except (UrlError, ValueError):
            continue
        yield capture
