"""Rules for the values of configuration keys.

A rule refuses a value by `ValueError`. It knows no key, file or environment.
"""

# ruff: noqa: TRY004 - every rule refuses by ValueError, a wrong type too

from __future__ import annotations

import ipaddress
import math
import re
import shlex
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote, urlsplit


@dataclass(frozen=True, slots=True)
class KeyRule:
    """One kind of value: its description, its check, and the reader of a variable's text."""

    allowed: str
    check: Callable[[object], object]
    from_text: Callable[[str], object] = str


def whole(low: int, high: int, *, zero: str = "") -> KeyRule:
    """Return a rule for a whole number; `zero` is the meaning of 0, if allowed."""
    return _number(int, "a whole number", low, high, zero)


def seconds(low: float, high: float, *, zero: str = "") -> KeyRule:
    """Return a rule for seconds, fractions allowed; `zero` as in `whole`."""
    return _number(float, "a number of seconds", low, high, zero)


def _number(kind: type[int | float], noun: str, low: float, high: float, zero: str) -> KeyRule:
    def check(value: object) -> float:
        if isinstance(value, bool) or not isinstance(value, (int, kind)) or not abs(value) < math.inf:
            raise ValueError(f"not {noun}")
        if not (low <= value <= high or (zero and value == 0)):
            raise ValueError("out of range")
        return value

    # `int` and `float` both accept text with blanks around it.
    return KeyRule(f"{noun} from {low} to {high}" + (f", or 0 ({zero})" if zero else ""), check, kind)


def automatic(low: int, high: int) -> KeyRule:
    def check(value: object) -> int | str:
        if isinstance(value, str) and value.strip().lower() == "auto":
            return "auto"
        if isinstance(value, bool) or not isinstance(value, int):
            raise ValueError('neither a whole number nor "auto"')
        if not low <= value <= high:
            raise ValueError("out of range")
        return value

    def from_text(text: str) -> object:
        return int(text) if text.strip().lstrip("+-").isdecimal() else text

    return KeyRule(f'a whole number from {low} to {high}, or "auto"', check, from_text)


_TRUTH: Final = {
    **dict.fromkeys(("true", "1", "yes", "on"), True),
    **dict.fromkeys(("false", "0", "no", "off"), False),
}


def _truth(value: object) -> bool:
    if not isinstance(value, bool):
        raise ValueError("neither true nor false")
    return value


FLAG: Final = KeyRule("true or false", _truth, lambda text: _TRUTH.get(text.strip().lower(), text))


def choice(*names: str) -> KeyRule:
    def check(value: object) -> str:
        word = _text_of(value).lower()
        if word not in names:
            raise ValueError("not one of them")
        return word

    return KeyRule("one of " + ", ".join(names), check)


def _visible(value: object, lowest: str = "!") -> str:
    """Return printable ASCII text, safe in header fields."""
    text = _text_of(value)
    if text != text.strip() or not all(lowest <= character <= "~" for character in text):
        raise ValueError("characters that are not allowed")
    if not text:
        raise ValueError("empty")
    return text


HEADER_TEXT: Final = KeyRule("printable ASCII, not empty", lambda value: _visible(value, " "))


def _text_of(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError("not a text")
    return value


SHORTEST_TOKEN: Final = 16
"""In characters; long enough against guessing."""


def secret_item(value: object) -> str:
    text = _visible(value)
    if len(text) < SHORTEST_TOKEN:
        raise ValueError(f"shorter than {SHORTEST_TOKEN} characters")
    return text


ACCESS_TOKEN: Final = KeyRule(
    f'a word of at least {SHORTEST_TOKEN} printable ASCII characters, or "" (none)',
    lambda value: "" if value == "" else secret_item(value),
)


def _path(value: object) -> str:
    text = _text_of(value)
    if not text.strip() or "\0" in text:
        raise ValueError("no path")
    return text


def _file_path(value: object) -> str:
    if value == ":memory:":
        raise ValueError("no path")
    return _path(value)


FILE_PATH: Final = KeyRule("the path of a file", _file_path)

_LONGEST_SOCKET_PATH: Final = 107
"""In bytes; `sun_path` of unix(7) without the final zero."""


def _socket_path(value: object) -> str:
    text = "" if value == "" else _path(value)
    if len(text.encode()) > _LONGEST_SOCKET_PATH:
        raise ValueError("too long")
    return text


SOCKET_PATH: Final = KeyRule(
    f'the path of a socket, {_LONGEST_SOCKET_PATH} bytes at most, or "" (none)', _socket_path
)


_HOST_NAME: Final = re.compile(
    r"(?=.{1,253}$)[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?(\.[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?)*",
    re.IGNORECASE,
)


def _is_host(text: str) -> bool:
    return _is_address(text) or _HOST_NAME.fullmatch(text) is not None


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return "%" not in text


def _bind_host(value: object) -> str:
    text = _text_of(value)
    if not _is_host(text):
        raise ValueError("neither an address nor a name")
    return text


BIND_HOST: Final = KeyRule(
    'an IP address without brackets, or a host name, e.g. "127.0.0.1", "0.0.0.0" or "::"', _bind_host
)

_PLAIN_PATH: Final = re.compile(r"(?:/(?!\.{1,2}(?:/|\Z))[A-Za-z0-9._~-]+)*/?")


def web_url(allowed: str, *, userinfo: bool = False, path: bool = True, plain_path: bool = False) -> KeyRule:
    """Return a rule for an http(s) URL without query and fragment, or an empty text.

    The check strips the last slash. `plain_path` allows only paths with a single spelling.
    """

    def check(value: object) -> str:
        text = _text_of(value)
        if not text:
            return ""
        parts = urlsplit(text)
        host, _port = parts.hostname or "", parts.port
        if parts.scheme not in ("http", "https") or not _is_host(host):
            raise ValueError("no http or https URL")
        if not all("!" <= character <= "~" for character in text) or "?" in text or "#" in text:
            raise ValueError("a query, a fragment or characters that are not allowed")
        if "@" in parts.netloc and not userinfo:
            raise ValueError("credentials are not allowed here")
        if parts.path.strip("/") and not path:
            raise ValueError("a path is not allowed here")
        if plain_path and not _PLAIN_PATH.fullmatch(parts.path):
            raise ValueError("other characters in its path than letters, digits and -._~")
        return text.rstrip("/")

    return KeyRule(allowed, check)


_DATABASE_SCHEMES: Final = ("postgresql", "postgres")


def _database_url(value: object) -> str:
    text = _text_of(value)
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


DATABASE_URL: Final = KeyRule(
    'e.g. "postgresql://wholefeed:PASSWORD@db.example.org/wholefeed", or "" (none)', _database_url
)
_PASSWORD: Final = re.compile(r"(?<=://)([^/?@:]*):[^/?@]*@|(?<=[?&])((?:ssl)?password)=[^&]*")


def without_password(url: str) -> str:
    """Return a database URL with masked passwords."""
    return _PASSWORD.sub(lambda found: f"{found[2]}=***" if found[2] else f"{found[1]}:***@", url)


def typed_url(url: str, user: str = "") -> str:
    """Quote a database URL for a shell, for `user` if given; PGPASSWORD or ~/.pgpass has the password."""
    parts = urlsplit(url)
    own, _, hosts = parts.netloc.rpartition("@")
    name = quote(user, safe="") or own.partition(":")[0]
    left_out = ("password=", "user=") if user else ("password=",)
    kept = [each for each in parts.query.split("&") if not each.startswith(left_out)]
    netloc = f"{name}@{hosts}" if name else hosts
    return shlex.quote(parts._replace(netloc=netloc, query="&".join(kept)).geturl())


# Items of lists


def list_rule(item: Callable[[object], object], allowed: str) -> KeyRule:
    """Return a rule for a tuple; an environment variable has commas or a TOML array."""

    def check(value: object) -> tuple[object, ...]:
        if not isinstance(value, list | tuple):
            raise ValueError("not a list")
        return tuple(item(one) for one in value)

    return KeyRule(f"a list of {allowed}", check, _list_from_text)


def _list_from_text(text: str) -> object:
    if text.strip().startswith("["):
        return tomllib.loads(f"list = {text}")["list"]
    return [item.strip() for item in text.split(",") if item.strip()]


_PORT_RANGE: Final = re.compile(r"\s*([0-9]{1,5})\s*(?:-\s*([0-9]{1,5})\s*)?")
_HIGHEST_PORT: Final = 65535


def port_item(value: object) -> int | str:
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise ValueError("not a port")
    found = _PORT_RANGE.fullmatch(str(value))
    low, high = (int(found[1]), int(found[2] or found[1])) if found else (0, 0)
    if not 1 <= low <= high <= _HIGHEST_PORT:
        raise ValueError("not a port")
    return f"{low}-{high}" if found and found[2] else low


def network_item(value: object) -> str:
    text = _text_of(value).strip()
    try:
        return str(ipaddress.ip_network(text))
    except ValueError as exc:
        try:
            wanted = ipaddress.ip_network(text, strict=False)
        except ValueError:
            raise ValueError("not a network") from exc
        raise ValueError(f"bits set behind the prefix: did you mean {wanted}?") from exc


UNIX_PEERS: Final = "unix:"
"""Stands for the peers of `server.socket`."""


def peer_item(value: object) -> str:
    """Return a network, or `unix:` as in nginx."""
    return UNIX_PEERS if value == UNIX_PEERS else network_item(value)


def host_item(value: object) -> str:
    text = _text_of(value).strip().lower().rstrip(".")
    if text.startswith("[") and text.endswith("]"):
        text = text[1:-1]
    if not _is_host(text):
        raise ValueError("not a host without a port")
    return text


def host_pattern_item(value: object) -> str:
    text = _text_of(value).strip()
    below = "*." if text.startswith("*.") else ""
    return below + host_item(text.removeprefix(below))


# Needs of publishers


def _publisher_host(value: object) -> str:
    import idna  # noqa: PLC0415 - the import is slow, and few configurations need it

    text = _text_of(value).strip()
    below = "*." if text.startswith("*.") else ""
    name = text.removeprefix(below)
    try:
        return host_pattern_item(below + (name if name.isascii() else idna.encode(name, uts46=True).decode()))
    except idna.IDNAError as exc:
        raise ValueError("not a host without a port") from exc


PUBLISHER_HOST: Final = KeyRule(
    'a host without a port, e.g. "feeds.example.org", or "*.example.org" for all names below that one',
    _publisher_host,
)

MASK: Final = "***"

_FIELD_NAME: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
"""RFC 9110, section 5.6.2."""
_OWN_FIELDS: Final = {
    **dict.fromkeys(("user-agent",), "set user_agent instead"),
    **dict.fromkeys(("proxy-authorization", "proxy-connection"), "they go with proxy"),
    **dict.fromkeys(
        ("host", "content-length", "transfer-encoding", "connection", "keep-alive", "te", "trailer"),
        "it says where a request goes, and where it ends",
    ),
    **dict.fromkeys(("upgrade", "expect", "via", "range", "accept-encoding"), "it is the proxy's own"),
}
"""Header fields that no configuration may set, with the reason."""


def _header_fields(value: object) -> tuple[tuple[str, str], ...]:
    """Return the header fields. No message shows a value: it may be a secret."""
    if not isinstance(value, Mapping):
        raise ValueError("not a table")
    met: set[str] = set()
    for name, text in value.items():
        lower = str(name).lower()
        if not _FIELD_NAME.fullmatch(str(name)):
            raise ValueError(f"{name!r} is no name of a header field")
        if reason := _OWN_FIELDS.get(lower, "it is the proxy's own" if lower.startswith("if-") else ""):
            raise ValueError(f"{name} is not for a configuration to set: {reason}")
        if lower in met:
            raise ValueError(f"{name} is there twice")
        met.add(lower)
        try:
            HEADER_TEXT.check(text)
        except ValueError as exc:
            raise ValueError(f"the value of {name}: {exc}") from exc
        if text == MASK:
            raise ValueError(f"the value of {name} is the mask of `wholefeed config`, not the secret")
    return tuple((str(name), str(text)) for name, text in value.items())


HEADER_FIELDS: Final = KeyRule(
    'a table of header fields with printable ASCII values, e.g. { X-Api-Key = "…" }', _header_fields
)
