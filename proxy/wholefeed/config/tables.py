"""The configuration: every key with its default, its rule and a line of why.

The loader, `wholefeed config` and `config.example.toml` follow these tables.
"""

from __future__ import annotations

import difflib
import json
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from itertools import chain, groupby, pairwise
from pathlib import Path
from typing import Any, Final, TypeVar, cast, get_type_hints

from wholefeed import __version__
from wholefeed.config.rules import (
    ACCESS_TOKEN,
    BIND_HOST,
    DATABASE_URL,
    FILE_PATH,
    FLAG,
    HEADER_FIELDS,
    HEADER_TEXT,
    MASK,
    PUBLISHER_HOST,
    SHORTEST_TOKEN,
    SOCKET_PATH,
    UNIX_PEERS,
    KeyRule,
    automatic,
    choice,
    host_item,
    host_pattern_item,
    list_rule,
    network_item,
    peer_item,
    port_item,
    seconds,
    secret_item,
    web_url,
    whole,
    without_password,
)
from wholefeed.core.text.dates import DAY_SECONDS
from wholefeed.errors import ConfigError
from wholefeed.permissions import explain_failure

# The keys

_T = TypeVar("_T")
_YEAR: Final = 365 * DAY_SECONDS
_TIB: Final = 1 << 40
SMALLEST_ANSWER_BYTES: Final = 1024
"""A smaller answer has hardly room for a feed's head."""


def _key(default: _T, rule: KeyRule, why: str, *, secret: bool = False) -> _T:
    metadata = {"rule": rule, "why": why, "secret": secret}
    value: _T = field(default=default, metadata=metadata, repr=not secret)
    return value


def _or_empty(rule: KeyRule) -> KeyRule:
    return KeyRule(f'{rule.allowed}, or ""', lambda value: "" if value == "" else rule.check(value))


_PROXY: Final = web_url(
    'an http or https URL such as "http://proxy.example.org:3128", or ""', userinfo=True, path=False
)

_NETWORKS: Final = 'networks, e.g. ["127.0.0.0/8", "fd00::/8"]'
_NETWORK_LIST: Final = list_rule(network_item, _NETWORKS)
_HOSTS: Final = list_rule(host_pattern_item, 'hosts; "*.example.org" stands for all names below it')


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerConfig:
    host: str = _key("127.0.0.1", BIND_HOST, "the address to listen on; 0.0.0.0 or :: for all of them")
    port: int = _key(8080, whole(0, 65535), "the port to listen on; 0 takes a free one")
    public_url: str = _key(
        "",
        web_url(
            'an http or https URL without a query, e.g. "https://example.org/feeds", or ""', plain_path=True
        ),
        "the URL under which readers reach the proxy; empty: made from the Host of the request",
    )
    allowed_hosts: tuple[str, ...] = _key(
        (),
        list_rule(host_item, 'hosts without ports, e.g. ["feeds.example.org"]'),
        "names it is reached by, beside addresses, localhost and names without a dot",
    )
    trusted_proxies: tuple[str, ...] = _key(
        (),
        list_rule(peer_item, f'{_NETWORKS}; "{UNIX_PEERS}" stands for all clients of server.socket'),
        "reverse proxies whose X-Forwarded headers are believed",
    )
    access_token: str = _key(
        "",
        ACCESS_TOKEN,
        "the secret that readers must send, 16 characters or more; empty on a public address:"
        " made at the first start",
        secret=True,
    )
    signing_keys: tuple[str, ...] = _key(
        (),
        list_rule(secret_item, f"words of printable ASCII, {SHORTEST_TOKEN} characters or more each"),
        "keys for signed feed URLs; the first one signs",
        secret=True,
    )
    open: bool = _key(False, FLAG, "true lets anyone in on a public address: an open proxy, rarely wanted")
    client_requests_per_minute: int = _key(
        0, whole(1, 1_000_000, zero="off"), "requests that one reader may make; 0 is off"
    )
    shutdown_grace_seconds: float = _key(
        8, seconds(0, 600), "how long answers may take to finish on SIGTERM; Docker kills after 10 s"
    )
    metrics_networks: tuple[str, ...] = _key(
        (), _NETWORK_LIST, "networks that may read /metrics without the token"
    )
    socket: str = _key(
        "", SOCKET_PATH, "a Unix socket to listen on as well, for owner and group; for a reverse proxy"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreConfig:
    path: str = _key(
        "wholefeed.db", FILE_PATH, "the SQLite database; made when it is not there, in a folder that is"
    )
    url: str = _key(
        "",
        DATABASE_URL,
        "a PostgreSQL database in its place, which replicas share: postgresql://user:password@host/name",
        secret=True,
    )
    connections: int = _key(8, whole(2, 100), "connections to that database, at the most")
    max_bytes: int = _key(
        0,
        whole(1 << 20, 1024 * _TIB, zero="off"),
        "evict the feeds not asked for longest above this size; 0 is off",
    )
    memory_bytes: int = _key(
        1 << 26,
        whole(1 << 20, _TIB, zero="off"),
        "keep recently requested feeds in memory up to this size, for fast answers and refreshes; 0 is off",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchConfig:
    user_agent: str = _key(
        f"wholefeed/{__version__} (feed history proxy)",
        HEADER_TEXT,
        "how the proxy introduces itself to publishers; adding a way to reach you is good manners",
    )
    connect_timeout_seconds: float = _key(
        10, seconds(0.01, 600), "for the connection, its name lookup included"
    )
    read_timeout_seconds: float = _key(
        15, seconds(0.01, 600), "without any data, before a response counts as failed"
    )
    document_timeout_seconds: float = _key(60, seconds(0.01, 3600), "for one document, redirects included")
    max_redirects: int = _key(5, whole(0, 20), "redirects to follow for one document")
    concurrency: int = _key(32, whole(1, 1000), "requests at once, to all publishers together")
    concurrency_per_host: int = _key(4, whole(1, 100), "requests at once to one host")
    min_interval_per_host_seconds: float = _key(
        0, seconds(0, 3600), "pause between two requests to one host, for fragile publishers"
    )
    retries: int = _key(2, whole(0, 10), "further tries of a request that failed on the way")
    ports: tuple[int | str, ...] = _key(
        (80, 443, "1024-65535"),
        list_rule(port_item, 'ports and ranges, e.g. [80, 443, "1024-65535"]'),
        "ports that may be asked: not those of mail and other services",
    )
    allow_networks: tuple[str, ...] = _key(
        (),
        _NETWORK_LIST,
        "private networks that may be asked all the same; empty guards them all",
    )
    allow_hosts: tuple[str, ...] = _key((), _HOSTS, "when not empty, only these hosts may be asked")
    deny_hosts: tuple[str, ...] = _key((), _HOSTS, "hosts that are never asked")
    allow_downgrade: bool = _key(False, FLAG, "follow redirects from https to http")
    proxy: str = _key(
        "",
        _PROXY,
        "an HTTP proxy to ask publishers through; guarding private addresses is then its job",
        secret=True,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitsConfig:
    document_bytes: int = _key(32 << 20, whole(1024, 1 << 30), "one feed document, after decoding")
    documents_per_feed: int = _key(5000, whole(1, 1_000_000), "documents of one feed")
    feed_bytes: int = _key(1 << 30, whole(1024, _TIB), "bytes of one feed, all its documents together")
    entries_per_feed: int = _key(1_000_000, whole(1, 100_000_000), "entries of one feed")
    xml_depth: int = _key(256, whole(16, 10_000), "nesting of XML elements")
    answer_bytes: int = _key(
        0,
        whole(SMALLEST_ANSWER_BYTES, _TIB, zero="off"),
        "cut answers, newest entries first, for readers with a cap; 0 is off",
    )
    respond_within_seconds: float = _key(
        8, seconds(0.1, 120), "an answer leaves within this time, finished or not: some readers wait 10 s"
    )
    walk_seconds: float = _key(3600, seconds(1, 7 * DAY_SECONDS), "one walk through a feed's archive")
    workers: int | str = _key(
        "auto",
        automatic(0, 64),
        "processes for large documents and pages; auto: one less than there are cores, 1 to 4; 0: threads",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class FreshnessConfig:
    minimum_seconds: float = _key(
        300, seconds(0, _YEAR), "a subscription document is not asked for again sooner"
    )
    default_seconds: float = _key(
        900, seconds(0, _YEAR), "when the publisher does not say how long a document is fresh"
    )
    maximum_seconds: float = _key(
        DAY_SECONDS,
        seconds(1, _YEAR),
        "a subscription document is asked for again after this time at the latest",
    )
    retry_missing_seconds: float = _key(
        3600, seconds(1, DAY_SECONDS), "a missing archive document is tried again after this time"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryConfig:
    paged: bool = _key(True, FLAG, "follow paged feeds (RFC 5005, 3) to their end")
    collect: str = _key(
        "auto",
        choice("auto", "off"),
        "ask known publishers (WordPress …) for the pages that they do not link",
    )
    collect_deny_hosts: tuple[str, ...] = _key((), _HOSTS, "hosts that are never asked for such pages")
    list: str = _key(
        "auto",
        choice("auto", "off"),
        "look for the history of feeds that have none in the lists of their publishers' pages",
    )
    list_deny_hosts: tuple[str, ...] = _key((), _HOSTS, "hosts whose pages are never looked at")
    list_interval_seconds: float = _key(
        1.0, seconds(0.1, 3600), "between two requests for such pages at one site"
    )
    list_pages: int = _key(200, whole(1, 10_000), "pages of a list that are asked for")
    texts: str = _key(
        "auto",
        choice("auto", "off"),
        "fetch the texts of entries from their pages for readers that ask by text=full",
    )
    texts_per_day: int = _key(500, whole(1, 100_000), "pages of one feed that are asked for in a day")
    memento: bool = _key(
        False,
        FLAG,
        "ask a web archive for documents that publishers do not give any more; the archive learns their URLs",
    )
    memento_url: str = _key(
        "https://web.archive.org",
        web_url("an http or https URL without a query; with a path it is a collection of pywb"),
        "the web archive: one like the Wayback Machine, or a collection of pywb",
    )
    memento_query_hosts: tuple[str, ...] = _key(
        (),
        _HOSTS,
        "hosts whose URLs the archive may learn even if they have a query or name a private network",
    )
    remember: bool = _key(True, FLAG, "keep entries that leave a feed document")
    warn_entry: bool = _key(True, FLAG, "show one entry that says what is missing, while something is")
    look_ahead: bool = _key(True, FLAG, "guess numbered and dated archive URLs and ask for several at once")
    poll_seconds: float = _key(
        0,
        seconds(60, _YEAR, zero="off"),
        "refresh known feeds at this interval without a reader's request; 0 is off",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class LogConfig:
    format: str = _key(
        "auto", choice("auto", "console", "json"), "auto: console on a terminal, JSON otherwise"
    )
    level: str = _key(
        "info", choice("debug", "info", "warning", "error", "critical"), "the least level that is shown"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class PublisherConfig:
    """The needs of one publisher, in [[publisher]] (A1 to A6)."""

    host: str = _key("", PUBLISHER_HOST, 'its host; "*.example.org" is all names below example.org')
    user_agent: str = _key("", _or_empty(HEADER_TEXT), "how the proxy introduces itself there")
    headers: tuple[tuple[str, str], ...] = _key(
        (), HEADER_FIELDS, "header fields of requests for feeds of this host alone", secret=True
    )
    credentials_file: str = _key(
        "", _or_empty(FILE_PATH), "a file with user:password in one line, for Basic authentication"
    )
    proxy: str = _key("", _PROXY, "an HTTP proxy to ask it through, in place of fetch.proxy", secret=True)
    min_interval_seconds: float = _key(
        0,
        seconds(0.01, 3600, zero="fetch.min_interval_per_host_seconds"),
        "pause between two requests; 0: as fetch.min_interval_per_host_seconds",
    )
    credentials: str = field(default="", repr=False)
    """The content of `credentials_file` when the configuration was read."""

    @property
    def is_private(self) -> bool:
        """Whether its feeds need access control: any header may be a key."""
        return bool(self.headers or self.credentials_file)


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    server: ServerConfig = field(default_factory=ServerConfig)
    store: StoreConfig = field(default_factory=StoreConfig)
    fetch: FetchConfig = field(default_factory=FetchConfig)
    limits: LimitsConfig = field(default_factory=LimitsConfig)
    freshness: FreshnessConfig = field(default_factory=FreshnessConfig)
    history: HistoryConfig = field(default_factory=HistoryConfig)
    log: LogConfig = field(default_factory=LogConfig)
    publisher: tuple[PublisherConfig, ...] = ()


# Where values come from

FILE_VARIABLE: Final = "WHOLEFEED_CONFIG"
DEFAULT_FILE: Final = "config.toml"
_PREFIX: Final = "WHOLEFEED_"
FILE_SUFFIX: Final = "_FILE"
"""With this suffix, a key's variable names a file with the value."""


@dataclass(frozen=True, slots=True)
class Key:
    section: str
    key: str
    default: object
    rule: KeyRule
    why: str
    secret: bool

    @property
    def name(self) -> str:
        return f"{self.section}.{self.key}"

    @property
    def variable(self) -> str:
        return f"{_PREFIX}{self.section}_{self.key}".upper()


def _keys_of(section: str, table: type[Any]) -> Iterator[Key]:
    return (Key(section, one.name, one.default, **one.metadata) for one in fields(table) if one.metadata)


_PUBLISHER: Final = "publisher"
_SECTIONS: Final[Mapping[str, type[Any]]] = {
    name: table for name, table in get_type_hints(Config).items() if name != _PUBLISHER
}
KEYS: Final[tuple[Key, ...]] = tuple(
    chain.from_iterable(_keys_of(section, table) for section, table in _SECTIONS.items())
)
PUBLISHER_KEYS: Final = tuple(_keys_of(_PUBLISHER, PublisherConfig))
_BY_NAME: Final = {key.name: key for key in KEYS}
_BY_VARIABLE: Final = {key.variable: key for key in KEYS}
_BY_FILE_VARIABLE: Final = {key.variable + FILE_SUFFIX: key for key in KEYS if key.secret}

_Values = Iterator[tuple[Key, object, str]]
"""Key, value, and place for messages."""


def load_config(path: Path | None, environ: Mapping[str, str], overrides: Mapping[str, object]) -> Config:
    """Read the file, then the environment, then the flags; later wins.

    Args:
        path: None: `$WHOLEFEED_CONFIG`, else `./config.toml` if it exists.
        environ: Variables `WHOLEFEED_<SECTION>_<KEY>`.
        overrides: Flags, e.g. `{"server.port": 9000}`.

    Raises:
        ConfigError: A file is unreadable, a name unknown or a value refused.
    """
    tables, place = _read_file(path, environ)
    given = chain(_from_tables(tables, place), _from_environment(environ), _from_flags(overrides))
    return _made(given, _publishers(tables.get(_PUBLISHER, ()), place))


def config_of(tables: Mapping[str, object]) -> Config:
    """Return the configuration of a mapping shaped like the TOML file, without file or environment.

    Raises:
        ConfigError: As in `load_config`.
    """
    place = "in the mapping"
    return _made(_from_tables(tables, place), _publishers(tables.get(_PUBLISHER, ()), place))


def _made(given: _Values, publishers: tuple[PublisherConfig, ...]) -> Config:
    values: dict[str, dict[str, Any]] = {section: {} for section in _SECTIONS}
    for key, value, place in given:
        try:
            values[key.section][key.key] = key.rule.check(value)
        except ValueError as exc:
            raise _refusal(key, value, place, str(exc)) from exc
    sections = {name: table(**values[name]) for name, table in _SECTIONS.items()}
    config = Config(**sections, publisher=publishers)
    _check_order(config.freshness)
    return config


_SHOWN_CHARACTERS: Final = 80


def _refusal(key: Key, value: object, place: str, reason: str) -> ConfigError:
    shown = MASK if key.secret else repr(value)
    if len(shown) > _SHOWN_CHARACTERS:
        shown = shown[:_SHOWN_CHARACTERS] + "…"
    because = f" ({reason})" if reason else ""
    return ConfigError(f"{key.name} = {shown} {place} is not allowed{because}: expected {key.rule.allowed}")


def _check_order(freshness: FreshnessConfig) -> None:
    names = ("minimum_seconds", "default_seconds", "maximum_seconds")
    for lower, upper in pairwise(names):
        low, high = getattr(freshness, lower), getattr(freshness, upper)
        if low > high:
            raise ConfigError(
                f"freshness.{lower} = {low:g} is above freshness.{upper} = {high:g}: "
                "expected minimum_seconds <= default_seconds <= maximum_seconds"
            )


def _from_flags(overrides: Mapping[str, object]) -> _Values:
    place = "on the command line"
    for name, value in overrides.items():
        yield _known(name, place), value, place


def _read_file(path: Path | None, environ: Mapping[str, str]) -> tuple[Mapping[str, object], str]:
    if path is not None:
        file, asked_by = path, "--config"
    elif environ.get(FILE_VARIABLE):
        file, asked_by = Path(environ[FILE_VARIABLE]), FILE_VARIABLE
    else:
        file, asked_by = Path(DEFAULT_FILE), "the default"
        if not file.is_file():
            return {}, ""
    try:
        tables = tomllib.loads(file.read_text("utf-8-sig"))
    except FileNotFoundError as exc:
        raise ConfigError(
            f"cannot read the configuration file {file} ({asked_by}): {exc.strerror};"
            " `wholefeed config --example` prints one to begin with"
        ) from exc
    except OSError as exc:
        reason = explain_failure(file, exc, is_read=True)
        raise ConfigError(f"cannot read the configuration file {file} ({asked_by}): {reason}") from exc
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as exc:
        raise ConfigError(f"expected TOML in {file}: {exc}") from exc
    return tables, f"in {file}"


def _from_tables(tables: Mapping[str, object], place: str) -> _Values:
    for section, table in tables.items():
        if section == _PUBLISHER:
            continue
        if not isinstance(table, Mapping):
            raise _no_section(section, place)
        if section not in _SECTIONS:
            raise ConfigError(f"unknown section [{section}] {place}{_hint(section, _SECTIONS)}")
        for name, value in table.items():
            yield _known(f"{section}.{name}", place), value, place


def _publishers(tables: object, place: str) -> tuple[PublisherConfig, ...]:
    if not isinstance(tables, list | tuple) or not all(isinstance(each, Mapping) for each in tables):
        raise ConfigError(f"publisher {place} must be tables, each below [[publisher]]")
    return tuple(_publisher(each, f"{place}, [[publisher]] {n}") for n, each in enumerate(tables, 1))


def _publisher(table: Mapping[str, object], place: str) -> PublisherConfig:
    keys = {key.key: key for key in PUBLISHER_KEYS}
    values: dict[str, Any] = {}
    for name, value in table.items():
        if name not in keys:
            raise ConfigError(f"unknown key publisher.{name} {place}{_hint(name, keys)}")
        try:
            values[name] = keys[name].rule.check(value)
        except ValueError as exc:
            raise _refusal(keys[name], value, place, str(exc)) from exc
    publisher = PublisherConfig(**values)
    if not publisher.host:
        raise ConfigError(f"publisher.host is missing {place}: expected {keys['host'].rule.allowed}")
    if not publisher.credentials_file:
        return publisher
    if any(name.lower() == "authorization" for name, _ in publisher.headers):
        raise ConfigError(
            f"expected publisher.credentials_file or the header Authorization {place}, not both"
        )
    return replace(publisher, credentials=_read_credentials(publisher.credentials_file, place))


_CONTROLS: Final = re.compile("[\x00-\x1f\x7f-\x9f]")


def _read_credentials(path: str, place: str) -> str:
    """Return `user:password` (RFC 7617, section 2). No message shows any of it."""
    key = next(key for key in PUBLISHER_KEYS if key.key == "credentials_file")
    text = str(_read_secret(key, f"publisher.credentials_file {place}", path))
    if ":" not in text or _CONTROLS.search(text):
        raise ConfigError(
            "expected user:password without control characters"
            f" in {path} (publisher.credentials_file {place})"
        )
    return text


def _no_section(name: str, place: str) -> ConfigError:
    if name in _SECTIONS:
        return ConfigError(f"{name} {place} must be a section, [{name}], not a value")
    places = [f"[{key.section}]" for key in KEYS if key.key == name]
    hint = f"; {name} belongs below {places[0]}" if places else _hint(name, _SECTIONS)
    return ConfigError(f"{name} {place} is a key outside a section{hint}")


def _known(name: str, place: str) -> Key:
    if name in _BY_NAME:
        return _BY_NAME[name]
    last = name.rpartition(".")[2]
    elsewhere = [key.name for key in KEYS if key.key == last]
    hint = f"; did you mean {elsewhere[0]}?" if elsewhere else _hint(name, _BY_NAME)
    raise ConfigError(f"unknown key {name} {place}{hint}")


_MOST_LISTED: Final = 10


def _hint(name: str, known: Iterable[str]) -> str:
    names = sorted(known)
    close = difflib.get_close_matches(name, names, n=1)
    if close:
        return f"; did you mean {close[0]}?"
    return f"; known: {', '.join(names)}" if len(names) <= _MOST_LISTED else ""


_SERVICE_LINK: Final = re.compile(
    r"WHOLEFEED_(\w+_)?(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT_[0-9]+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)"
)
"""Kubernetes sets these beside a service named wholefeed: ignored, not unknown."""


def _from_environment(environ: Mapping[str, str]) -> _Values:
    for variable, text in sorted(environ.items()):
        if not variable.startswith(_PREFIX) or variable == FILE_VARIABLE or _is_service_link(variable, text):
            continue
        if key := _BY_FILE_VARIABLE.get(variable):
            if key.variable in environ:
                raise ConfigError(f"{key.variable} and {variable} are both set: expected one of them")
            yield key, _read_secret(key, variable, text), f"from the file {text} ({variable})"
        elif key := _BY_VARIABLE.get(variable):
            place = f"from the environment variable {variable}"
            try:
                value = key.rule.from_text(text)
            except ValueError as exc:
                raise _refusal(key, text, place, "") from exc
            yield key, value, place
        else:
            hint = _hint(variable, _BY_VARIABLE)
            if variable.endswith(FILE_SUFFIX):
                hint = f"; only secrets are read from files: {', '.join(sorted(_BY_FILE_VARIABLE))}"
            if f"{variable}_".startswith(f"{_PREFIX}{_PUBLISHER.upper()}_"):
                hint = "; [[publisher]] stands in the configuration file alone"
            raise ConfigError(f"unknown environment variable {variable}{hint}")


def _is_service_link(variable: str, value: str) -> bool:
    is_container_link = variable.endswith("_PORT") and value.startswith("tcp://")
    return is_container_link or _SERVICE_LINK.fullmatch(variable) is not None


_SECRET_BYTES: Final = 65536


def _read_secret(key: Key, variable: str, path: str) -> object:
    """Return the one line of a file, or all its lines if the key takes several values.

    Docker, Kubernetes and systemd pass secrets in files. No message shows any content.

    Raises:
        ConfigError: The file is unreadable, empty, too large or no text, or has too many lines.
    """
    if not path.strip():
        raise ConfigError(f"expected the path of a file in {variable}, got nothing")
    try:
        with Path(path).open("rb") as file:
            content = file.read(_SECRET_BYTES + 1)
    except OSError as exc:
        reason = explain_failure(Path(path), exc, is_read=True)
        raise ConfigError(f"cannot read the file {path} ({variable}): {reason}") from exc
    except ValueError as exc:
        raise ConfigError(f"cannot read the file {path} ({variable}): no path") from exc
    if len(content) > _SECRET_BYTES:
        raise ConfigError(f"expected at most {_SECRET_BYTES} bytes in {path} ({variable}), got more")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:  # without a cause: that error quotes the secret
        raise ConfigError(f"expected text in {path} ({variable}), got other bytes") from None
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if not lines:
        raise ConfigError(f"expected a secret in {path} ({variable}), got an empty file")
    if isinstance(key.default, tuple):
        return lines
    if len(lines) > 1:
        raise ConfigError(f"expected one line in {path} ({variable}), got {len(lines)}")
    return lines[0]


# Output


def mask(config: Config) -> str:
    """Return the effective configuration as TOML, with secrets as `***`.

    `load_config` refuses a masked access token: copies would share a token known to all.
    """

    def line(key: Key) -> str:
        value = getattr(getattr(config, key.section), key.key)
        return f"{key.key} = {toml_value(_masked_value(key, value))}"

    return "\n\n".join([*_toml_tables(line), *map(_masked_publisher, config.publisher)]) + "\n"


def _masked_publisher(publisher: PublisherConfig) -> str:
    values = ((key, getattr(publisher, key.key)) for key in PUBLISHER_KEYS)
    lines = [f"{key.key} = {toml_value(_masked_value(key, value))}" for key, value in values if value]
    return "\n".join(["[[publisher]]", *lines])


_USERINFO: Final = re.compile(r"(?<=://)[^/]*@")  # up to the last "@", where clients end it


def _masked_value(key: Key, value: object) -> object:
    if not key.secret or not value:
        return value
    if key.key == "proxy":
        return _USERINFO.sub(f"{MASK}@", str(value))
    if key.name == "publisher.headers":
        return {name: MASK for name, _ in cast("tuple[tuple[str, str], ...]", value)}
    if key.name == "store.url":
        return without_password(str(value))
    return (MASK,) * len(value) if isinstance(value, tuple) else MASK


_EXAMPLE_HEAD: Final = """\
# wholefeed: every key with its default. Each may be left out.
#
# The file is the one of --config, else of $WHOLEFEED_CONFIG, else ./config.toml. The environment
# goes over it (WHOLEFEED_<SECTION>_<KEY>, lists with commas), and flags go over both. For a secret
# WHOLEFEED_<SECTION>_<KEY>_FILE may name a file that holds it.
"""


def example() -> str:
    tables = _toml_tables(lambda key: f"# {key.why}\n{key.key} = {toml_value(key.default)}")
    shown = {"headers": {}, "host": "feeds.example.org"}
    lines = (
        f"# # {key.why}\n# {key.key} = {toml_value(shown.get(key.key, key.default))}"
        for key in PUBLISHER_KEYS
    )
    return (
        "\n\n".join([_EXAMPLE_HEAD.rstrip(), *tables, "\n".join([_PUBLISHER_HEAD.rstrip(), *lines])]) + "\n"
    )


_PUBLISHER_HEAD: Final = """\
# Settings for one publisher; repeat the table for others. The first table whose host matches applies.
# The environment cannot set these tables. With headers or credentials, the server needs
# server.access_token or server.signing_keys
# (docs/operations.md, Publishers with needs).
# [[publisher]]
"""


def _toml_tables(line: Callable[[Key], str]) -> Iterator[str]:
    for section, keys in groupby(KEYS, key=lambda key: key.section):
        yield "\n".join([f"[{section}]", *map(line, keys)])


def toml_value(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, tuple):
        return f"[{', '.join(toml_value(item) for item in value)}]"
    if isinstance(value, dict):
        pairs = ", ".join(f"{toml_value(name)} = {toml_value(item)}" for name, item in value.items())
        return f"{{ {pairs} }}" if pairs else "{}"
    assert isinstance(value, int | float)
    return str(int(value)) if value == int(value) else repr(value)
