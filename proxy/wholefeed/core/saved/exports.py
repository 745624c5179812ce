"""Read exports in JSON (I4), by a table of formats."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any, Final

from wholefeed.core.parse.limits import ParseError
from wholefeed.core.saved.feedbin import read_feedbin
from wholefeed.core.saved.google_reader import read_google_reader
from wholefeed.core.saved.interchange import read_interchange
from wholefeed.core.saved.miniflux import read_miniflux
from wholefeed.core.saved.saved_entries import SavedFile

EXPORTS: Final[tuple[Callable[[Any], SavedFile | None], ...]] = (  # None: another format
    read_interchange,
    read_google_reader,
    read_miniflux,
    read_feedbin,
)


def may_be_export(body: bytes) -> bool:
    """Return whether a body may be an export, by its first byte and a name of each format."""
    start = body[:_SNIFFED_BYTES].lstrip(b"\xef\xbb\xbf \t\r\n")
    return start[:1] in (b"{", b"[") and _MARK.search(body) is not None


_SNIFFED_BYTES: Final = 64
_MARK: Final = re.compile(rb'"(?:saved_by|streamId|published_at|created_at)"')


def read_export(body: bytes) -> SavedFile | None:
    """Return the feeds of an export; None: it is none, or no JSON.

    Raises:
        ParseError: It has too many values.
    """
    values = sum(map(body.count, (b",", b"[", b"{")))
    if values > max(_FREE_VALUES, len(body) // _BYTES_PER_VALUE):
        raise ParseError("expected an export with fewer JSON values", slug="xml-limit")
    try:
        value = json.loads(body.decode("utf-8-sig"))
    except (ValueError, RecursionError):
        return None  # the parser of feeds tells what is wrong with it
    return next((found for each in EXPORTS if (found := each(value)) is not None), None)


_FREE_VALUES: Final = 2_000_000
_BYTES_PER_VALUE: Final = 16
"""Commas of a text count, too; it has one in 80 bytes."""
