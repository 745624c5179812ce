"""Repairs of invalid HTTP response heads that curl and browsers accept. Pure.

Only unambiguous heads are mended (docs/faults.md row 152). aiohttp's parser refuses the others, such as two
different lengths.
"""

from __future__ import annotations

import re
from typing import Final

STATUS_REPAIR: Final = "status-line"
"""Blanks, capitals or version of the status line."""
HEAD_REPAIR: Final = "header-fields"
"""Lines were mended or dropped."""
LENGTH_REPAIR: Final = "content-length"
"""An empty or repeated Content-Length."""


def mend_head(head: bytes) -> tuple[bytes, frozenset[str]]:
    """Return a valid head and its repairs; leave an ambiguous head unchanged."""
    if _SOUND.fullmatch(head) and _has_sound_length(head.lower()):
        return head, frozenset()
    if _AMBIGUOUS.search(head):
        return head, frozenset()
    status, *lines = (line.removesuffix(b"\r") for line in head.split(b"\n")[:-2])
    fields = _mend_fields(lines)
    mended = (_mend_status(status), *(with_one_length := _merge_lengths(fields)), b"", b"")
    looks = (
        (STATUS_REPAIR, mended[0] != status),
        (HEAD_REPAIR, fields != _join_folded(lines)),
        (LENGTH_REPAIR, with_one_length != fields),
    )
    repairs = frozenset(repair for repair, is_needed in looks if is_needed)
    return (b"\r\n".join(mended), repairs) if repairs else (head, repairs)


_TOKEN: Final = rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]++"  # RFC 9110, section 5.6.2
_SOUND: Final = re.compile(
    rb"HTTP/[0-9]\.[0-9] [0-9]{3}(?: [^\r\n\0]*+)?\r?\n(?:"
    + _TOKEN
    + rb":[^\r\n\0]*+\r?\n(?:[ \t][^\r\n\0]*+\r?\n)*+)*+\r?\n"
)
_SOUND_LENGTH: Final = re.compile(rb"\ncontent-length:[ \t]*+[0-9]++[ \t]*+\r?\n(?![ \t])")
_STATUS: Final = re.compile(
    rb"HTTP/([0-9])(\.[0-9])?[ \t]++([0-9]{3})(?![0-9])\.?[ \t]*+(.*)", re.IGNORECASE | re.DOTALL
)
_AMBIGUOUS: Final = re.compile(rb"\0|\r(?!\n)")
_FIELD: Final = re.compile(rb"(" + _TOKEN + rb")[ \t]*+:(.*)", re.DOTALL)
_LENGTH: Final = re.compile(rb"content-length:(.*)", re.IGNORECASE | re.DOTALL)
_DIGITS: Final = re.compile(rb"[0-9]+")


def _has_sound_length(head: bytes) -> bool:
    count = head.count(b"\ncontent-length:")  # a pattern that ignores case takes ten times as long
    return not count or (count == 1 and _SOUND_LENGTH.search(head) is not None)


def _mend_status(line: bytes) -> bytes:
    """Mend the status line (RFC 9112, section 4); unknown versions become 1.1."""
    match = _STATUS.fullmatch(line)
    if match is None or _SOUND.fullmatch(line + b"\r\n\r\n"):
        return line
    major, minor, status, reason = match.groups(b"")
    version = b"1.0" if major + minor == b"1.0" else b"1.1"
    return b"HTTP/%b %b %b" % (version, status, reason)


def _join_folded(lines: list[bytes]) -> list[bytes]:
    fields: list[list[bytes]] = []
    for line in lines:
        if line.startswith((b" ", b"\t")) and fields:
            fields[-1].append(line)
        else:
            fields.append([line])
    return [b"\r\n".join(parts) for parts in fields]


def _mend_fields(lines: list[bytes]) -> list[bytes]:
    """Drop lines without a field, and blanks before colons (RFC 9112, 5.1)."""
    matches = map(_FIELD.fullmatch, _join_folded(lines))
    return [match[1] + b":" + match[2] for match in matches if match]


def _merge_lengths(fields: list[bytes]) -> list[bytes]:
    """Merge equal Content-Lengths (RFC 9110, section 8.6), drop empty ones."""
    lengths = [match[1] for field in fields if (match := _LENGTH.fullmatch(field))]
    values = {value for length in lengths for part in length.split(b",") if (value := part.strip(b" \t"))}
    if not lengths or len(values) > 1 or not all(map(_DIGITS.fullmatch, values)):
        return fields
    if len(lengths) == 1 and lengths[0].strip(b" \t") in values:
        return fields
    others = [field for field in fields if not _LENGTH.fullmatch(field)]
    return [*others, *(b"Content-Length: " + value for value in values)]
