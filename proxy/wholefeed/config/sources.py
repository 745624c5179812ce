"""The values of configuration keys: where they come from, and what each may be.

Generic over the list of keys, which is in `wholefeed.config.tables`. Later sources win: a TOML file, the
environment, the flags of the command line. Every value that is refused is named with its key, its value, its
place and what is allowed; a secret is not shown.

A `Rule` per kind of value says what it may be, and how the text of an environment variable becomes one. It
knows no key, file or environment and refuses by `ValueError`; `Rule.allowed` says in words what it takes, for
the message that names the key.

    rule = whole(1, 65535)
    rule.check(80)                      # 80
    rule.check(rule.from_text("80"))    # 80
    rule.check(True)                    # ValueError
"""

# ruff: noqa: TRY004 - every rule refuses by ValueError, a wrong type too

from __future__ import annotations

import difflib
import ipaddress
import math
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from wholefeed.errors import ConfigError

# Where values come from

FILE_VARIABLE: Final = "WHOLEFEED_CONFIG"
DEFAULT_FILE: Final = "config.toml"
_PREFIX: Final = "WHOLEFEED_"
FILE_SUFFIX: Final = "_FILE"
"""Behind the variable of a key: that of the variable which names a file with its value."""


@dataclass(frozen=True, slots=True)
class Key:
    """One configuration key: its default, the rule for its value, a line of why, and whether it is secret."""

    section: str
    key: str
    default: object
    rule: Rule
    why: str
    secret: bool = False

    @property
    def name(self) -> str:
        """The dotted name, as messages and flags use it."""
        return f"{self.section}.{self.key}"

    @property
    def variable(self) -> str:
        """The environment variable that sets it."""
        return f"{_PREFIX}{self.section}_{self.key}".upper()


_Values = Iterator[tuple[Key, object, str]]
"""From one source: each with its key, and with the place where it stands, for messages."""


def read_values(
    keys: Sequence[Key], path: Path | None, environ: Mapping[str, str], overrides: Mapping[str, object]
) -> dict[str, dict[str, Any]]:
    """Every section with the values that were given for its keys, checked; defaults are not filled in.

    Raises:
        ConfigError: As `wholefeed.config.tables.load_config` says.
    """
    by_name = {key.name: key for key in keys}
    return _checked(
        keys,
        _from_file(by_name, path, environ),
        _from_environment(by_name, environ),
        _from_flags(by_name, overrides),
    )


def read_tables(keys: Sequence[Key], tables: Mapping[str, object]) -> dict[str, dict[str, Any]]:
    """The same of a mapping that a program gives: what the TOML file would be read as."""
    return _checked(keys, _from_tables({key.name: key for key in keys}, tables, "in the mapping"))


def _checked(keys: Sequence[Key], *sources: _Values) -> dict[str, dict[str, Any]]:
    values: dict[str, dict[str, Any]] = {key.section: {} for key in keys}
    for key, value, place in chain(*sources):
        try:
            values[key.section][key.key] = key.rule.check(value)
        except ValueError as exc:
            raise _refused(key, value, place, str(exc)) from exc
    return values


_SHOWN_CHARACTERS: Final = 80


def _refused(key: Key, value: object, place: str, reason: str) -> ConfigError:
    shown = "***" if key.secret else repr(value)
    if len(shown) > _SHOWN_CHARACTERS:
        shown = shown[:_SHOWN_CHARACTERS] + "…"
    because = f" ({reason})" if reason else ""
    return ConfigError(f"{key.name} = {shown} {place} is not allowed{because}: expected {key.rule.allowed}")


def _from_file(by_name: Mapping[str, Key], path: Path | None, environ: Mapping[str, str]) -> _Values:
    file, asked_by = _chosen_file(path, environ)
    if file is not None:
        yield from _from_tables(by_name, _read_toml(file, asked_by), f"in {file}")


def _chosen_file(path: Path | None, environ: Mapping[str, str]) -> tuple[Path | None, str]:
    if path is not None:
        return path, "--config"
    if environ.get(FILE_VARIABLE):
        return Path(environ[FILE_VARIABLE]), FILE_VARIABLE
    default = Path(DEFAULT_FILE)
    return (default if default.is_file() else None), "the default"


def _read_toml(file: Path, asked_by: str) -> dict[str, Any]:
    try:
        return tomllib.loads(file.read_text("utf-8-sig"))
    except OSError as exc:
        raise ConfigError(
            f"cannot read the configuration file {file} ({asked_by}): {exc.strerror};"
            " `wholefeed config --example` prints one to begin with"
        ) from exc
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as exc:
        raise ConfigError(f"expected TOML in {file}: {exc}") from exc


def _from_tables(by_name: Mapping[str, Key], tables: Mapping[str, object], place: str) -> _Values:
    sections = {key.section for key in by_name.values()}
    for section, table in tables.items():
        if not isinstance(table, Mapping):
            raise _no_section(by_name, sections, section, place)
        if section not in sections:
            raise ConfigError(f"unknown section [{section}] {place}{_hint(section, sections)}")
        for name, value in table.items():
            yield _known(by_name, f"{section}.{name}", place), value, place


def _no_section(by_name: Mapping[str, Key], sections: set[str], name: str, place: str) -> ConfigError:
    if name in sections:
        return ConfigError(f"{name} {place} must be a section, [{name}], not a value")
    places = [f"[{key.section}]" for key in by_name.values() if key.key == name]
    hint = f"; {name} belongs below {places[0]}" if places else _hint(name, sections)
    return ConfigError(f"{name} {place} is a key outside a section{hint}")


def _known(by_name: Mapping[str, Key], name: str, place: str) -> Key:
    if name in by_name:
        return by_name[name]
    last = name.rpartition(".")[2]
    elsewhere = [full for full in by_name if full.rpartition(".")[2] == last]
    hint = f"; did you mean {elsewhere[0]}?" if elsewhere else _hint(name, by_name)
    raise ConfigError(f"unknown key {name} {place}{hint}")


_MOST_LISTED: Final = 10


def _hint(name: str, known: Iterable[str]) -> str:
    names = sorted(known)
    close = difflib.get_close_matches(name, names, n=1)
    if close:
        return f"; did you mean {close[0]}?"
    return f"; known: {', '.join(names)}" if len(names) <= _MOST_LISTED else ""


def _from_environment(by_name: Mapping[str, Key], environ: Mapping[str, str]) -> _Values:
    by_variable = {key.variable: key for key in by_name.values()}
    by_file = {key.variable + FILE_SUFFIX: key for key in by_name.values() if key.secret}
    for variable, text in sorted(environ.items()):
        if not variable.startswith(_PREFIX) or variable == FILE_VARIABLE or _is_service_link(variable, text):
            continue
        if key := by_file.get(variable):
            if key.variable in environ:
                raise ConfigError(f"{key.variable} and {variable} are both set: expected one of them")
            yield key, _read_secret(key, variable, text), f"from the file {text} ({variable})"
        elif key := by_variable.get(variable):
            place = f"from the environment variable {variable}"
            try:
                value = key.rule.from_text(text)
            except ValueError as exc:
                raise _refused(key, text, place, "") from exc
            yield key, value, place
        else:
            raise _unknown_variable(variable, by_variable, by_file)


_SERVICE_LINK: Final = re.compile(
    r"WHOLEFEED_(\w+_)?(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT_[0-9]+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)"
)
"""Variables that Kubernetes puts into every pod beside a service named wholefeed: not ours, not an error."""


def _is_service_link(variable: str, value: str) -> bool:
    return bool(_SERVICE_LINK.fullmatch(variable)) or (
        variable.endswith("_PORT") and value.startswith("tcp://")
    )


def _unknown_variable(variable: str, known: Iterable[str], of_files: Iterable[str]) -> ConfigError:
    hint = _hint(variable, known)
    if variable.endswith(FILE_SUFFIX):
        hint = f"; only secrets are read from files: {', '.join(sorted(of_files))}"
    return ConfigError(f"unknown environment variable {variable}{hint}")


_SECRET_BYTES: Final = 65536


def _read_secret(key: Key, variable: str, path: str) -> object:
    """Return what a file holds: its one line, or each of its lines where the key takes several values.

    Docker, Kubernetes and systemd hand secrets to a process in files of their own. Blanks around a line do
    not count. No message shows anything of what is in the file, not even where it is no text.

    Raises:
        ConfigError: It cannot be read, is empty, too large or no text, or has more lines than one.
    """
    if not path.strip():
        raise ConfigError(f"expected the path of a file in {variable}, got nothing")
    try:
        with Path(path).open("rb") as file:
            content = file.read(_SECRET_BYTES + 1)
    except (OSError, ValueError) as exc:
        reason = getattr(exc, "strerror", None) or "no path"
        raise ConfigError(f"cannot read the file {path} ({variable}): {reason}") from exc
    if len(content) > _SECRET_BYTES:
        raise ConfigError(f"expected at most {_SECRET_BYTES} bytes in {path} ({variable}), got more")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:  # the error quotes the content, so it must not be the cause of ours
        raise ConfigError(f"expected text in {path} ({variable}), got other bytes") from None
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if not lines:
        raise ConfigError(f"expected a secret in {path} ({variable}), got an empty file")
    if isinstance(key.default, tuple):
        return lines
    if len(lines) > 1:
        raise ConfigError(f"expected one line in {path} ({variable}), got {len(lines)}")
    return lines[0]


def _from_flags(by_name: Mapping[str, Key], overrides: Mapping[str, object]) -> _Values:
    for name, value in overrides.items():
        yield _known(by_name, name, "on the command line"), value, "on the command line"


# What a value may be


@dataclass(frozen=True, slots=True)
class Rule:
    """One kind of value: what is allowed in words, the check, and the reading of a variable's text."""

    allowed: str
    check: Callable[[object], object]
    from_text: Callable[[str], object] = str


def whole(low: int, high: int, *, zero: str = "") -> Rule:
    """A whole number from `low` to `high`; with `zero`, also 0, which means what that word says."""
    return _number(int, "a whole number", low, high, zero)


def seconds(low: float, high: float, *, zero: str = "") -> Rule:
    """A number of seconds from `low` to `high`, fractions allowed; `zero` as in `whole`."""
    return _number(float, "a number of seconds", low, high, zero)


def _number(kind: type[int | float], noun: str, low: float, high: float, zero: str) -> Rule:
    def check(value: object) -> float:
        if isinstance(value, bool) or not isinstance(value, (int, kind)) or not abs(value) < math.inf:
            raise ValueError(f"not {noun}")
        if not (low <= value <= high or (zero and value == 0)):
            raise ValueError("out of range")
        return value

    # `int` and `float` both take text with blanks around it.
    return Rule(f"{noun} from {low} to {high}" + (f", or 0 ({zero})" if zero else ""), check, kind)


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


_TRUTH: Final = {
    **dict.fromkeys(("true", "1", "yes", "on"), True),
    **dict.fromkeys(("false", "0", "no", "off"), False),
}


def _truth(value: object) -> bool:
    if not isinstance(value, bool):
        raise ValueError("neither true nor false")
    return value


FLAG: Final = Rule("true or false", _truth, lambda text: _TRUTH.get(text.strip().lower(), text))


def choice(*names: str) -> Rule:
    """One of a few words, in any case."""

    def check(value: object) -> str:
        word = _text_of(value).lower()
        if word not in names:
            raise ValueError("not one of them")
        return word

    return Rule("one of " + ", ".join(names), check)


def _visible(value: object, lowest: str = "!") -> str:
    """Printable ASCII text, not empty, as header fields take it; from " " on, with blanks inside it."""
    text = _text_of(value)
    if text != text.strip() or not all(lowest <= character <= "~" for character in text):
        raise ValueError("characters that are not allowed")
    if not text:
        raise ValueError("empty")
    return text


HEADER_TEXT: Final = Rule("printable ASCII, not empty", lambda value: _visible(value, " "))


def _text_of(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError("not a text")
    return value


SHORTEST_TOKEN: Final = 16
"""Characters of an access token or a signing key that nobody finds by trying."""


def secret_item(value: object) -> str:
    """One secret: visible ASCII, long enough."""
    text = _visible(value)
    if len(text) < SHORTEST_TOKEN:
        raise ValueError(f"shorter than {SHORTEST_TOKEN} characters")
    return text


ACCESS_TOKEN: Final = Rule(
    f'a word of at least {SHORTEST_TOKEN} printable ASCII characters, or "" (none)',
    lambda value: "" if value == "" else secret_item(value),
)


def _file_path(value: object) -> str:
    text = _text_of(value)
    if not text.strip() or "\0" in text or text == ":memory:":
        raise ValueError("no path")
    return text


FILE_PATH: Final = Rule("the path of a file", _file_path)

_LONGEST_SOCKET_PATH: Final = 107
"""unix(7): sun_path, with the zero behind it."""


def _socket_path(value: object) -> str:
    text = _text_of(value)
    if text and (not text.strip() or "\0" in text):
        raise ValueError("no path")
    if len(text.encode()) > _LONGEST_SOCKET_PATH:
        raise ValueError("too long")
    return text


SOCKET_PATH: Final = Rule(
    f'the path of a socket, {_LONGEST_SOCKET_PATH} bytes at most, or "" (none)', _socket_path
)


def _bind_host(value: object) -> str:
    text = _text_of(value)
    if not _is_host(text):
        raise ValueError("neither an address nor a name")
    return text


BIND_HOST: Final = Rule(
    'an IP address without brackets, or a host name, e.g. "127.0.0.1", "0.0.0.0" or "::"', _bind_host
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


_PLAIN_PATH: Final = re.compile(r"(?:/(?!\.{1,2}(?:/|\Z))[A-Za-z0-9._~-]+)*/?")


def web_url(allowed: str, *, userinfo: bool = False, path: bool = True, plain_path: bool = False) -> Rule:
    """An http(s) URL without query and fragment, without its last slash; or nothing.

    With `plain_path` its path is one that is written in one way only.
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

    return Rule(allowed, check)


_DATABASE_SCHEMES: Final = ("postgresql", "postgres")


def _database_url(value: object) -> str:
    """The URL of a PostgreSQL database, as libpq takes it, or nothing."""
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


DATABASE_URL: Final = Rule(
    'e.g. "postgresql://wholefeed:PASSWORD@db.example.org/wholefeed", or "" (none)', _database_url
)
_PASSWORD: Final = re.compile(r"(?<=://)([^/?@:]*):[^/?@]*@|(?<=[?&])((?:ssl)?password)=[^&]*")


def without_password(url: str) -> str:
    """Return the URL of a database as it may be shown."""
    return _PASSWORD.sub(lambda found: f"{found[2]}=***" if found[2] else f"{found[1]}:***@", url)


# What the items of a list may be


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


_PORT_RANGE: Final = re.compile(r"\s*([0-9]{1,5})\s*(?:-\s*([0-9]{1,5})\s*)?")
_HIGHEST_PORT: Final = 65535


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
"""Of the networks of reverse proxies: those that connect to `server.socket`."""


def peer_item(value: object) -> str:
    """One network as in `network_item`, or `unix:`, as nginx writes it: whoever connects to the socket."""
    return UNIX_PEERS if value == UNIX_PEERS else network_item(value)


def host_item(value: object) -> str:
    """One host name or address, without a port; an IPv6 address with or without brackets. Lower case."""
    text = _text_of(value).strip().lower().rstrip(".")
    if text.startswith("[") and text.endswith("]"):
        text = text[1:-1]
    if not _is_host(text):
        raise ValueError("not a host without a port")
    return text


def host_pattern_item(value: object) -> str:
    """One host as in `host_item`, or `*.` and a name for everything below it."""
    text = _text_of(value).strip()
    below = "*." if text.startswith("*.") else ""
    return below + host_item(text.removeprefix(below))
