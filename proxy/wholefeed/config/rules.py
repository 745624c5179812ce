"""What the value of a configuration key may be, and how the text of an environment variable becomes one.

A `Rule` per kind of value; nothing here knows a key, a file or the environment. Every rule refuses by
`ValueError`; `Rule.allowed` says in words what it takes, for the message that names the key.

    rule = whole(1, 65535)
    rule.check(80)                      # 80
    rule.check(rule.from_text("80"))    # 80
    rule.check(True)                    # ValueError
"""

# ruff: noqa: TRY004 - every rule refuses by ValueError, a wrong type too

from __future__ import annotations

import ipaddress
import math
import re
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

SHORTEST_TOKEN: Final = 16
"""Characters of an access token or a signing key that nobody finds by trying."""

UNIX_PEERS: Final = "unix:"
"""Of the networks of reverse proxies: those that connect to `server.socket`."""

_HOST_NAME: Final = re.compile(
    r"(?=.{1,253}$)[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?(\.[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?)*",
    re.IGNORECASE,
)
_PLAIN_PATH: Final = re.compile(r"(?:/(?!\.{1,2}(?:/|\Z))[A-Za-z0-9._~-]+)*/?")
_PORT_RANGE: Final = re.compile(r"\s*([0-9]{1,5})\s*(?:-\s*([0-9]{1,5})\s*)?")
_HIGHEST_PORT: Final = 65535
_TRUTH: Final = {
    "true": True,
    "1": True,
    "yes": True,
    "on": True,
    "false": False,
    "0": False,
    "no": False,
    "off": False,
}


@dataclass(frozen=True, slots=True)
class Rule:
    """One kind of value: what is allowed in words, the check, and the reading of a variable's text."""

    allowed: str
    check: Callable[[object], object]
    from_text: Callable[[str], object] = str


def whole(low: int, high: int, *, zero: str = "") -> Rule:
    """A whole number from `low` to `high`; with `zero`, also 0, which means what that word says."""
    return _number((int,), "a whole number", low, high, zero, int)


def automatic(low: int, high: int) -> Rule:
    """A whole number from `low` to `high`, or "auto" in any case."""

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

    return Rule(f'a whole number from {low} to {high}, or "auto"', check, from_text)


def seconds(low: float, high: float, *, zero: str = "") -> Rule:
    """A number of seconds from `low` to `high`, fractions allowed; `zero` as in `whole`."""
    return _number((int, float), "a number of seconds", low, high, zero, float)


def _number(
    types: tuple[type[int | float], ...],
    noun: str,
    low: float,
    high: float,
    zero: str,
    from_text: Callable[[str], object],  # both take text with blanks around it
) -> Rule:
    def check(value: object) -> float:
        if isinstance(value, bool) or not isinstance(value, types) or not abs(value) < math.inf:
            raise ValueError(f"not {noun}")
        if not (low <= value <= high or (zero and value == 0)):
            raise ValueError("out of range")
        return value

    return Rule(f"{noun} from {low} to {high}" + (f", or 0 ({zero})" if zero else ""), check, from_text)


def flag() -> Rule:
    """True or false."""

    def check(value: object) -> bool:
        if not isinstance(value, bool):
            raise ValueError("neither true nor false")
        return value

    def from_text(text: str) -> object:
        return _TRUTH.get(text.strip().lower(), text)

    return Rule("true or false", check, from_text)


def choice(*names: str) -> Rule:
    """One of a few words, in any case."""

    def check(value: object) -> str:
        word = text_of(value).lower()
        if word not in names:
            raise ValueError("not one of them")
        return word

    return Rule("one of " + ", ".join(names), check)


def visible(allowed: str, *, spaces: bool = False) -> Rule:
    """Printable ASCII text, not empty, as header fields take it; `spaces` allows blanks inside it."""

    def check(value: object) -> str:
        text = text_of(value)
        lowest = " " if spaces else "!"
        if text != text.strip() or not all(lowest <= character <= "~" for character in text):
            raise ValueError("characters that are not allowed")
        if not text:
            raise ValueError("empty")
        return text

    return Rule(allowed, check)


def access_word() -> Rule:
    """A secret that lets readers in, or nothing."""

    def check(value: object) -> str:
        return "" if value == "" else secret_item(value)

    return Rule(f'a word of at least {SHORTEST_TOKEN} printable ASCII characters, or "" (none)', check)


def listed(item: Callable[[object], object], allowed: str) -> Rule:
    """A tuple whose items all pass `item`. A variable holds it with commas or as a TOML array."""

    def check(value: object) -> tuple[object, ...]:
        if not isinstance(value, list | tuple):
            raise ValueError("not a list")
        return tuple(item(one) for one in value)

    return Rule(f"a list of {allowed}", check, _list_from_text)


def _list_from_text(text: str) -> object:
    if text.strip().startswith("["):
        return tomllib.loads(f"list = {text}")["list"]
    return [item.strip() for item in text.split(",") if item.strip()]


def port_item(value: object) -> int | str:
    """One port (80 or "80") or a range of ports ("1024-65535")."""
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise ValueError("not a port")
    found = _PORT_RANGE.fullmatch(str(value))
    if found is None:
        raise ValueError("not a port")
    low = int(found[1])
    high = int(found[2]) if found[2] else low
    if not 1 <= low <= high <= _HIGHEST_PORT:
        raise ValueError("not a port")
    return f"{low}-{high}" if found[2] else low


def network_item(value: object) -> str:
    """One network in CIDR notation, or one address."""
    text = text_of(value).strip()
    try:
        return str(ipaddress.ip_network(text))
    except ValueError as exc:
        try:
            wanted = ipaddress.ip_network(text, strict=False)
        except ValueError:
            raise ValueError("not a network") from exc
        raise ValueError(f"bits set behind the prefix: did you mean {wanted}?") from exc


def peer_item(value: object) -> str:
    """One network as in `network_item`, or `unix:`, as nginx writes it: whoever connects to the socket."""
    return UNIX_PEERS if value == UNIX_PEERS else network_item(value)


def host_item(value: object) -> str:
    """One host name or address, without a port; an IPv6 address with or without brackets. Lower case."""
    text = text_of(value).strip().lower().rstrip(".")
    if text.startswith("[") and text.endswith("]"):
        text = text[1:-1]
    if not is_host(text):
        raise ValueError("not a host without a port")
    return text


def host_pattern_item(value: object) -> str:
    """One host as in `host_item`, or `*.` and a name for everything below it."""
    text = text_of(value).strip()
    below = "*." if text.startswith("*.") else ""
    return below + host_item(text.removeprefix(below))


def secret_item(value: object) -> str:
    """One secret: visible ASCII, long enough."""
    text = str(visible("").check(value))
    if len(text) < SHORTEST_TOKEN:
        raise ValueError(f"shorter than {SHORTEST_TOKEN} characters")
    return text


def web_url(allowed: str, *, userinfo: bool = False, path: bool = True, plain_path: bool = False) -> Rule:
    """An http(s) URL without query and fragment, without its last slash; or nothing.

    With `plain_path` its path is one that is written in one way only.
    """

    def check(value: object) -> str:
        text = text_of(value)
        if not text:
            return ""
        parts = urlsplit(text)
        host, _port = parts.hostname or "", parts.port
        if parts.scheme not in ("http", "https") or not is_host(host):
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

    return Rule(allowed, check)


def text_of(value: object) -> str:
    """Return a text.

    Raises:
        ValueError: It is none.
    """
    if not isinstance(value, str):
        raise ValueError("not a text")
    return value


def is_host(text: str) -> bool:
    """Whether it is an address or a name."""
    return _is_address(text) or _HOST_NAME.fullmatch(text) is not None


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return "%" not in text
