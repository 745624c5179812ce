"""The configuration: every key with its default, what it may be, and a line of why.

    config = load_config(None, os.environ, {"server.port": 9000})
    config.fetch.concurrency

The tables below are the only list of keys: the loader, `wholefeed config` and `config.example.toml` follow
from them. Units stand in the names.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from itertools import groupby, pairwise
from pathlib import Path
from typing import Any, Final, TypeVar, get_type_hints

from wholefeed import __version__
from wholefeed.config.sources import (
    ACCESS_TOKEN,
    BIND_HOST,
    DATABASE_URL,
    FILE_PATH,
    FLAG,
    HEADER_TEXT,
    SHORTEST_TOKEN,
    SOCKET_PATH,
    UNIX_PEERS,
    Key,
    Rule,
    automatic,
    choice,
    host_item,
    host_pattern_item,
    listed,
    network_item,
    peer_item,
    port_item,
    read_tables,
    read_values,
    seconds,
    secret_item,
    web_url,
    whole,
    without_password,
)
from wholefeed.core.text.dates import DAY_SECONDS
from wholefeed.errors import ConfigError

_T = TypeVar("_T")
_YEAR: Final = 365 * DAY_SECONDS
_TIB: Final = 1 << 40
SMALLEST_ANSWER_BYTES: Final = 1024
"""What an answer may be cut to at the least: in less there is hardly room for a head."""


def _key(default: _T, rule: Rule, why: str, *, secret: bool = False) -> _T:
    value: _T = field(default=default, metadata={"rule": rule, "why": why, "secret": secret})
    return value


_NETWORKS: Final = 'networks, e.g. ["127.0.0.0/8", "fd00::/8"]'
_NETWORK_LIST: Final = listed(network_item, _NETWORKS)
_HOSTS: Final = listed(host_pattern_item, 'hosts; "*.example.org" stands for all names below it')


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerConfig:
    """[server]: where readers reach the proxy, and who may."""

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
        listed(host_item, 'hosts without ports, e.g. ["feeds.example.org"]'),
        "names it is reached by, beside addresses, localhost and names without a dot",
    )
    trusted_proxies: tuple[str, ...] = _key(
        (),
        listed(peer_item, f'{_NETWORKS}; "{UNIX_PEERS}" stands for whoever connects to server.socket'),
        "reverse proxies whose X-Forwarded headers are believed",
    )
    access_token: str = _key(
        "",
        ACCESS_TOKEN,
        "what readers must know, 16 characters or more; empty on a public address: made at the first start",
        secret=True,
    )
    signing_keys: tuple[str, ...] = _key(
        (),
        listed(secret_item, f"words of printable ASCII, {SHORTEST_TOKEN} characters or more each"),
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
    """[store]: the one file that holds everything, or the database that replicas share."""

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
        "what answers and refreshes of the feeds asked for lately start from; held up to this size; 0 is off",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchConfig:
    """[fetch]: how the proxy asks publishers."""

    user_agent: str = _key(
        f"wholefeed/{__version__} (feed history proxy)",
        HEADER_TEXT,
        "how the proxy introduces itself to publishers; adding a way to reach you is good manners",
    )
    connect_timeout_seconds: float = _key(
        10, seconds(0.01, 600), "for the connection, its name lookup included"
    )
    read_timeout_seconds: float = _key(15, seconds(0.01, 600), "for silence in the middle of an answer")
    document_timeout_seconds: float = _key(60, seconds(0.01, 3600), "for one document, redirects included")
    max_redirects: int = _key(5, whole(0, 20), "redirects to follow for one document")
    concurrency: int = _key(32, whole(1, 1000), "requests at once, to all publishers together")
    concurrency_per_host: int = _key(
        4, whole(1, 100), "requests at once to one host; what a browser might do"
    )
    min_interval_per_host_seconds: float = _key(
        0, seconds(0, 3600), "pause between two requests to one host, for fragile publishers"
    )
    retries: int = _key(2, whole(0, 10), "further tries of a request that failed on the way")
    ports: tuple[int | str, ...] = _key(
        (80, 443, "1024-65535"),
        listed(port_item, 'ports and ranges, e.g. [80, 443, "1024-65535"]'),
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
        web_url(
            'an http or https URL such as "http://proxy.example.org:3128", or ""', userinfo=True, path=False
        ),
        "an HTTP proxy to ask publishers through; guarding private addresses is then its job",
        secret=True,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitsConfig:
    """[limits]: where a walk ends as partial, and an answer early."""

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
    """[freshness]: how often publishers are asked again."""

    minimum_seconds: float = _key(
        300, seconds(0, _YEAR), "a subscription document is not asked for again sooner"
    )
    default_seconds: float = _key(900, seconds(0, _YEAR), "when the publisher says nothing of freshness")
    maximum_seconds: float = _key(
        DAY_SECONDS, seconds(1, _YEAR), "and asked for again after this time at the latest"
    )
    retry_missing_seconds: float = _key(
        3600, seconds(1, DAY_SECONDS), "a missing archive document is tried again after this time"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryConfig:
    """[history]: what counts as a feed's history."""

    paged: bool = _key(True, FLAG, "follow paged feeds (RFC 5005, 3) to their end")
    collect: str = _key(
        "auto",
        choice("auto", "off"),
        "ask known publishers (WordPress …) for the pages that they do not link",
    )
    collect_deny_hosts: tuple[str, ...] = _key((), _HOSTS, "hosts that are never asked for such pages")
    memento: bool = _key(
        False, FLAG, "ask a web archive for what publishers do not give any more; it learns their URLs"
    )
    memento_url: str = _key(
        "https://web.archive.org",
        web_url("an http or https URL without a query; with a path it is a collection of pywb"),
        "the web archive: one like the Wayback Machine, or a collection of pywb",
    )
    memento_query_hosts: tuple[str, ...] = _key(
        (),
        _HOSTS,
        "hosts whose URLs the archive may learn though they bear a query or are of a private network",
    )
    remember: bool = _key(True, FLAG, "keep entries that leave a feed document")
    warn_entry: bool = _key(True, FLAG, "show one entry that says what is missing, while something is")
    look_ahead: bool = _key(True, FLAG, "guess numbered and dated archive URLs and ask for several at once")
    poll_seconds: float = _key(
        0, seconds(60, _YEAR, zero="off"), "refresh known feeds unasked, so that nothing is missed; 0 is off"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class LogConfig:
    """[log]: what the process says."""

    format: str = _key(
        "auto", choice("auto", "console", "json"), "auto: console on a terminal, JSON otherwise"
    )
    level: str = _key(
        "info", choice("debug", "info", "warning", "error", "critical"), "the least level that is shown"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """The whole configuration, checked when it comes from `load_config`."""

    server: ServerConfig = field(default_factory=ServerConfig)
    store: StoreConfig = field(default_factory=StoreConfig)
    fetch: FetchConfig = field(default_factory=FetchConfig)
    limits: LimitsConfig = field(default_factory=LimitsConfig)
    freshness: FreshnessConfig = field(default_factory=FreshnessConfig)
    history: HistoryConfig = field(default_factory=HistoryConfig)
    log: LogConfig = field(default_factory=LogConfig)


_SECTIONS: Final[Mapping[str, type[Any]]] = get_type_hints(Config)
KEYS: Final[tuple[Key, ...]] = tuple(
    Key(section, one.name, one.default, one.metadata["rule"], one.metadata["why"], one.metadata["secret"])
    for section, table in _SECTIONS.items()
    for one in fields(table)
)
"""Every key, in the order of the tables."""


def load_config(path: Path | None, environ: Mapping[str, str], overrides: Mapping[str, object]) -> Config:
    """Read the configuration: the file, then the environment, then the flags; later wins.

    Args:
        path: The TOML file that was asked for; None: `$WHOLEFEED_CONFIG`, else `./config.toml` if there.
        environ: The environment: `WHOLEFEED_<SECTION>_<KEY>`, lists with commas or as a TOML array.
        overrides: What flags set, by dotted key, e.g. `{"server.port": 9000}`.

    Raises:
        ConfigError: The file cannot be read, a section, key or variable is unknown, or a value is not
            allowed; the message names the key, the value, where it stands and what is allowed.
    """
    return _made(read_values(KEYS, path, environ, overrides))


def config_of(tables: Mapping[str, object]) -> Config:
    """Return the configuration that a mapping says, with the sections and keys of the TOML file.

    Neither file nor environment counts. Errors as in `load_config`.
    """
    return _made(read_tables(KEYS, tables))


def _made(values: Mapping[str, Mapping[str, Any]]) -> Config:
    config = Config(**{name: table(**values[name]) for name, table in _SECTIONS.items()})
    _check_order(config.freshness)
    return config


def _check_order(freshness: FreshnessConfig) -> None:
    names = ("minimum_seconds", "default_seconds", "maximum_seconds")
    for lower, upper in pairwise(names):
        low, high = getattr(freshness, lower), getattr(freshness, upper)
        if low > high:
            raise ConfigError(
                f"freshness.{lower} = {low:g} is above freshness.{upper} = {high:g}: "
                "expected minimum_seconds <= default_seconds <= maximum_seconds"
            )


def masked(config: Config) -> str:
    """The effective configuration as TOML; tokens, keys, and credentials in URLs show as `***`.

    It can be read back by `load_config`, but for a masked access token: that is refused, or a copied
    configuration would have a token that everybody knows.
    """

    def line(key: Key) -> str:
        value = getattr(getattr(config, key.section), key.key)
        return f"{key.key} = {toml_value(_masked_value(key, value))}"

    return "\n\n".join(_toml_tables(line)) + "\n"


_MASK: Final = "***"
_USERINFO: Final = re.compile(r"(?<=://)[^/@]*@")


def _masked_value(key: Key, value: object) -> object:
    if not key.secret or not value:
        return value
    if key.name == "fetch.proxy":
        return _USERINFO.sub(f"{_MASK}@", str(value))
    if key.name == "store.url":
        return without_password(str(value))
    return (_MASK,) * len(value) if isinstance(value, tuple) else _MASK


_EXAMPLE_HEAD: Final = """\
# wholefeed: every key with its default. Each may be left out.
#
# The file is the one of --config, else of $WHOLEFEED_CONFIG, else ./config.toml. The environment
# goes over it (WHOLEFEED_<SECTION>_<KEY>, lists with commas), and flags go over both. For a secret
# WHOLEFEED_<SECTION>_<KEY>_FILE may name a file that holds it.
"""


def example() -> str:
    """Every key with its default and a line of why: the text of `config.example.toml`."""
    tables = _toml_tables(lambda key: f"# {key.why}\n{key.key} = {toml_value(key.default)}")
    return "\n\n".join([_EXAMPLE_HEAD.rstrip(), *tables]) + "\n"


def _toml_tables(line: Callable[[Key], str]) -> Iterator[str]:
    for section, keys in groupby(KEYS, key=lambda key: key.section):
        yield "\n".join([f"[{section}]", *map(line, keys)])


def toml_value(value: object) -> str:
    """A text, number, truth value or list of them in TOML."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, tuple):
        return f"[{', '.join(toml_value(item) for item in value)}]"
    assert isinstance(value, int | float)
    return str(int(value)) if value == int(value) else repr(value)
