"""Rules for where something is on this machine: files, sockets, addresses to listen on.

As `wholefeed.config.rules` has them: each refuses by `ValueError`.
"""

from __future__ import annotations

from typing import Final

from wholefeed.config.rules import Rule, is_host, text_of

_LONGEST_SOCKET_PATH: Final = 107
"""unix(7): sun_path, with the zero behind it."""


def file_path() -> Rule:
    """The path of a file."""

    def check(value: object) -> str:
        text = text_of(value)
        if not text.strip() or "\0" in text or text == ":memory:":
            raise ValueError("no path")
        return text

    return Rule("the path of a file", check)


def socket_path() -> Rule:
    """The path of a Unix socket, or nothing."""

    def check(value: object) -> str:
        text = text_of(value)
        if text and (not text.strip() or "\0" in text):
            raise ValueError("no path")
        if len(text.encode()) > _LONGEST_SOCKET_PATH:
            raise ValueError("too long")
        return text

    return Rule(f'the path of a socket, {_LONGEST_SOCKET_PATH} bytes at most, or "" (none)', check)


def bind_host() -> Rule:
    """An address or a name to listen on."""

    def check(value: object) -> str:
        text = text_of(value)
        if not is_host(text):
            raise ValueError("neither an address nor a name")
        return text

    return Rule('an IP address without brackets, or a host name, e.g. "127.0.0.1", "0.0.0.0" or "::"', check)
