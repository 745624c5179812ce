"""Rules for where something is: files, sockets, addresses to listen on, the database that replicas share.

As `wholefeed.config.rules` has them: each refuses by `ValueError`.
"""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import urlsplit

from wholefeed.config.rules import Rule, is_host, text_of

_LONGEST_SOCKET_PATH: Final = 107
"""unix(7): sun_path, with the zero behind it."""

_DATABASE_SCHEMES: Final = ("postgresql", "postgres")
_PASSWORD: Final = re.compile(r"(?<=://)([^/?@:]*):[^/?@]*@|(?<=[?&])((?:ssl)?password)=[^&]*")


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


def without_password(url: str) -> str:
    """Return the URL of a database as it may be shown."""
    return _PASSWORD.sub(lambda found: f"{found[2]}=***" if found[2] else f"{found[1]}:***@", url)


def database_url() -> Rule:
    """The URL of a PostgreSQL database, as libpq takes it, or nothing."""

    def check(value: object) -> str:
        text = text_of(value)
        if not text:
            return ""
        if not all("!" <= character <= "~" for character in text):
            raise ValueError("characters that are not allowed: percent-encode them")
        parts = urlsplit(text)
        if parts.scheme not in _DATABASE_SCHEMES or not text.partition(":")[2].startswith("//"):
            raise ValueError("no URL of a PostgreSQL database")
        if "#" in text or "@" in parts.path or parts.netloc.count("@") > 1:
            raise ValueError('a "#", "/" or "@" that is not percent-encoded, as in a password')
        if not parts.path.strip("/") and "dbname=" not in parts.query:
            raise ValueError("no name of a database in it")
        return text

    return Rule('e.g. "postgresql://wholefeed:PASSWORD@db.example.org/wholefeed", or "" (none)', check)
