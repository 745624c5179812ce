"""Heads of HTTP responses that curl and browsers take though they are not valid, made valid. Pure.

    mend_head(head)     # without "This is no header", and `Age : 1` as `Age: 1`; and what was mended

Only what can mean one thing is mended (docs/faults.md row 152). What two programs could read in two ways,
such as two different lengths, stays as it is, and aiohttp's parser refuses it.
"""

from __future__ import annotations

import re
from typing import Final

STATUS_REPAIR: Final = "status-line"
"""Blanks, capitals or the version of the status line."""
HEAD_REPAIR: Final = "header-fields"
"""Lines of the head were mended or left out."""
LENGTH_REPAIR: Final = "content-length"
"""Content-Length was empty, or stood there more than once with one value."""


def mend_head(head: bytes) -> tuple[bytes, frozenset[str]]:
    """Return a head with valid header fields, and what was mended; one that needs nothing as it is.

    Args:
        head: From the status line to the empty line, which may end with LF alone.
    """
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
    """Whether a head in small letters has no Content-Length, or one number."""
    count = head.count(b"\ncontent-length:")  # a pattern that ignores case takes ten times as long
    return not count or (count == 1 and _SOUND_LENGTH.search(head) is not None)


def _mend_status(line: bytes) -> bytes:
    """Return a status line with the blanks and capitals of RFC 9112, section 4; other versions are 1.1."""
    match = _STATUS.fullmatch(line)
    if match is None or _SOUND.fullmatch(line + b"\r\n\r\n"):
        return line
    major, minor, status, reason = match.groups(b"")
    version = b"1.0" if major + minor == b"1.0" else b"1.1"
    return b"HTTP/%b %b %b" % (version, status, reason)


def _join_folded(lines: list[bytes]) -> list[bytes]:
    """Return the fields of which these are the lines: a line that begins with a blank continues one."""
    fields: list[list[bytes]] = []
    for line in lines:
        if line.startswith((b" ", b"\t")) and fields:
            fields[-1].append(line)
        else:
            fields.append([line])
    return [b"\r\n".join(parts) for parts in fields]


def _mend_fields(lines: list[bytes]) -> list[bytes]:
    """Leave out lines that are no field; of the others no blank stands before the colon (RFC 9112, 5.1)."""
    matches = map(_FIELD.fullmatch, _join_folded(lines))
    return [match[1] + b":" + match[2] for match in matches if match]


def _merge_lengths(fields: list[bytes]) -> list[bytes]:
    """Put one Content-Length for equal ones (RFC 9110, section 8.6), and none for empty ones."""
    lengths = [match[1] for field in fields if (match := _LENGTH.fullmatch(field))]
    values = {value for length in lengths for part in length.split(b",") if (value := part.strip(b" \t"))}
    if not lengths or len(values) > 1 or not all(map(_DIGITS.fullmatch, values)):
        return fields
    if len(lengths) == 1 and lengths[0].strip(b" \t") in values:
        return fields
    others = [field for field in fields if not _LENGTH.fullmatch(field)]
    return [*others, *(b"Content-Length: " + value for value in values)]
