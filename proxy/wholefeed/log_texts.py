"""What no text may bring into a line of the log: credentials, controls (docs/faults.md rows 17, 79)."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

from structlog.typing import EventDict, WrappedLogger

_LINE_BREAKING: Final = re.compile("[\x00-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]")
_LINE_BREAKING_BUT_NEWLINE: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]"
)
_USERINFO: Final = re.compile(r"(?<=://)[^/?#@\s]*@")


def hide_credentials(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    """Take `user:password@` out of every URL in the event, however deep it stands."""
    for key, value in event.items():
        if isinstance(value, str):
            if "@" in value:  # most have none, and a search costs three times as much
                event[key] = without_userinfo(value)
        elif isinstance(value, list | tuple | dict):
            event[key] = _each_text(value, without_userinfo)
    return event


def without_userinfo(text: str) -> str:
    """Take it out of every URL in a text: of a value, or of the JSON of many."""
    return _USERINFO.sub("", text)


def escape_controls(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    """Escape what steers a terminal or breaks a line (docs/faults.md row 79). A traceback keeps its lines."""
    return {
        key: _each_text(value, _escape_but_newline if key == "exception" else _escape)
        for key, value in event.items()
    }


def _escape(text: str) -> str:
    return _LINE_BREAKING.sub(_escaped, text)


def _escape_but_newline(text: str) -> str:
    return _LINE_BREAKING_BUT_NEWLINE.sub(_escaped, text)


def _escaped(found: re.Match[str]) -> str:
    return found[0].encode("unicode_escape").decode("ascii")


def _each_text(value: Any, change: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return change(value)
    if isinstance(value, list | tuple):
        return [_each_text(item, change) for item in value]
    if isinstance(value, dict):
        return {key: _each_text(item, change) for key, item in value.items()}
    return value
