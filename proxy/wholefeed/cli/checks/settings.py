"""Settings that are each allowed, and do not fit together or this machine."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator
from typing import Final
from urllib.parse import urlsplit

from wholefeed.cli.access_token import is_loopback, needs_token
from wholefeed.cli.checks.findings import Finding, good, warning, wrong
from wholefeed.cli.checks.installation import Machine
from wholefeed.config.tables import Config
from wholefeed.fetch.guard.addresses import host_pattern, is_matched
from wholefeed.server.clients import UNIX, Networks

_CHECK: Final = "settings"
_PATIENCE_SECONDS: Final = 10
"""What the least patient readers wait for an answer."""
_DOCKER_SECONDS: Final = 10
_LOOPBACK: Final = ipaddress.ip_address("127.0.0.1")


def judge_settings(config: Config, machine: Machine) -> list[Finding]:
    """Return what does not fit; one good finding where everything does."""
    found = [
        *_access(config),
        *_names(config),
        *_networks(config),
        *_times(config, machine),
        *_sizes(config, machine),
        *_history(config),
    ]
    return found or [good(_CHECK, "what is set fits together: `wholefeed config` shows it")]


def _access(config: Config) -> Iterator[Finding]:
    server = config.server
    is_closed = bool(server.access_token or server.signing_keys)
    is_public = not is_loopback(server.host)
    if needs_token(server):
        text = f"server.host {server.host} can be reached by others and no token is set"
        if config.store.url:
            text = (
                f"{text}: each replica makes one of its own, and readers of one are strangers to the others"
            )
            yield warning(
                _CHECK, text, "WHOLEFEED_SERVER_ACCESS_TOKEN=$(openssl rand -hex 16) for all of them"
            )
        else:
            yield good(
                _CHECK, f"{text}: one is made at the first start and kept in {config.store.path}.token"
            )
    if server.open and is_public and not is_closed:
        advice = "server.open = false: a token is made at the next start"
        yield warning(_CHECK, "server.open lets anybody fetch through this proxy", advice)
    if server.open and is_public and not is_closed and config.fetch.allow_networks:
        text = "server.open with fetch.allow_networks shows anybody what stands in those private networks"
        yield wrong(_CHECK, text, "empty fetch.allow_networks, or set server.access_token")
    if (server.public_url or server.socket) and not is_public and not is_closed:
        key = "server.public_url" if server.public_url else "server.socket"
        text = f"{key} is set and neither token nor signing keys are: what comes through a reverse"
        yield warning(
            _CHECK,
            f"{text} proxy looks like this machine, and anybody may use it",
            "WHOLEFEED_SERVER_ACCESS_TOKEN=$(openssl rand -hex 16)",
        )
    if server.signing_keys and not server.access_token:
        text = "server.signing_keys without server.access_token: nobody can list, refresh or forget feeds"
        yield warning(_CHECK, text, "WHOLEFEED_SERVER_ACCESS_TOKEN=$(openssl rand -hex 16)")
    url = urlsplit(server.public_url)
    if (
        url.scheme == "http"
        and is_closed
        and not is_loopback(url.hostname or "")
        and "." in (url.hostname or "")
    ):
        text = f"server.public_url {server.public_url} is http: tokens and signatures can be read on the way"
        yield warning(
            _CHECK, text, "put a reverse proxy with TLS in front, and https:// into server.public_url"
        )


def _names(config: Config) -> Iterator[Finding]:
    server = config.server
    if server.trusted_proxies and not (server.public_url or server.allowed_hosts):
        text = "server.trusted_proxies is set, and no name that readers may use: they get 421"
        yield warning(_CHECK, text, 'server.public_url = "https://feeds.example.org", with your name')
    if server.public_url and server.client_requests_per_minute and not server.trusted_proxies:
        text = "server.client_requests_per_minute counts all readers behind the reverse proxy as one"
        yield warning(_CHECK, text, 'server.trusted_proxies = ["127.0.0.1/32"], with your proxy\'s address')
    believes_socket = UNIX in server.trusted_proxies
    if server.socket and server.client_requests_per_minute and not believes_socket:
        text = "server.client_requests_per_minute counts all who come by server.socket as one client"
        yield warning(_CHECK, text, f'add "{UNIX}" to server.trusted_proxies')
    if believes_socket and not server.socket:
        text = f'server.trusted_proxies has "{UNIX}", and no server.socket is set: nobody comes that way'
        yield warning(_CHECK, text, 'server.socket = "/run/wholefeed/wholefeed.sock"')
    is_open_here = Networks(server.metrics_networks).include(_LOOPBACK)
    if is_open_here and server.public_url and not server.trusted_proxies:
        text = "server.metrics_networks holds this machine: a reverse proxy on it may show /metrics to all"
        yield warning(_CHECK, text, "set server.trusted_proxies, or refuse /metrics there")


def _networks(config: Config) -> Iterator[Finding]:
    if _everyone(config.server.trusted_proxies):
        text = "server.trusted_proxies believes everybody: whoever asks can choose its own address and name"
        yield wrong(_CHECK, text, "list the addresses of your reverse proxies alone")
    if _everyone(config.server.metrics_networks):
        text = "server.metrics_networks opens /metrics to everybody"
        yield warning(_CHECK, text, "list the address of Prometheus alone")
    if _everyone(config.fetch.allow_networks):
        text = "fetch.allow_networks turns the guard of private addresses off"
        yield warning(_CHECK, text, "list the networks that your publishers are in")
    fetch = config.fetch
    for host in sorted(set(fetch.allow_hosts) & set(fetch.deny_hosts)):
        text = f"{host} is in fetch.allow_hosts and in fetch.deny_hosts: it is never asked"
        yield warning(_CHECK, text, "take it out of one of them")


def _times(config: Config, machine: Machine) -> Iterator[Finding]:
    limits, fetch, freshness = config.limits, config.fetch, config.freshness
    if limits.respond_within_seconds > _PATIENCE_SECONDS:
        text = f"limits.respond_within_seconds is {limits.respond_within_seconds:g}: some readers wait 10 s"
        yield warning(_CHECK, text, "limits.respond_within_seconds = 8")
    if fetch.connect_timeout_seconds > fetch.document_timeout_seconds:
        text = "fetch.connect_timeout_seconds is longer than fetch.document_timeout_seconds: it never counts"
        yield warning(_CHECK, text, "make it the shorter one")
    if freshness.minimum_seconds > freshness.maximum_seconds:
        text = "freshness.minimum_seconds is larger than freshness.maximum_seconds"
        yield wrong(_CHECK, text, "exchange them")
    elif not freshness.minimum_seconds <= freshness.default_seconds <= freshness.maximum_seconds:
        text = "freshness.default_seconds is not between the minimum and the maximum, so those count instead"
        yield warning(_CHECK, text, "put it between them")
    grace_seconds = config.server.shutdown_grace_seconds
    if machine.is_container and grace_seconds >= _DOCKER_SECONDS:
        text = f"server.shutdown_grace_seconds is {grace_seconds:g}: Docker kills after 10 s"
        yield warning(
            _CHECK, text, "server.shutdown_grace_seconds = 8, or `docker stop --time` longer than it"
        )


def _sizes(config: Config, machine: Machine) -> Iterator[Finding]:
    limits, fetch, memory_bytes = config.limits, config.fetch, machine.memory_bytes
    held_bytes = config.store.memory_bytes
    if memory_bytes and held_bytes > memory_bytes:
        text = f"store.memory_bytes is {_mib(held_bytes)}, more than the {_mib(memory_bytes)} that there are"
        yield wrong(_CHECK, text, f"store.memory_bytes = {memory_bytes // 8}")
    elif memory_bytes and held_bytes > memory_bytes // 2:
        text = (
            f"store.memory_bytes is {_mib(held_bytes)}, more than half of the {_mib(memory_bytes)} there are"
        )
        yield warning(_CHECK, text, f"store.memory_bytes = {memory_bytes // 8}")
    if limits.document_bytes > limits.feed_bytes:
        text = "limits.document_bytes is larger than limits.feed_bytes: a feed ends at its first document"
        yield warning(_CHECK, text, "make limits.feed_bytes the larger one")
    if limits.workers == 0:
        text = "limits.workers is 0: the server reads large documents itself, which slows every answer"
        yield warning(_CHECK, text, 'limits.workers = "auto"')
    if fetch.concurrency_per_host > fetch.concurrency:
        text = "fetch.concurrency_per_host is larger than fetch.concurrency, which counts then"
        yield warning(_CHECK, text, "make fetch.concurrency the larger one")


def _history(config: Config) -> Iterator[Finding]:
    history = config.history
    if 0 < history.poll_seconds < config.freshness.minimum_seconds:
        text = "history.poll_seconds is shorter than freshness.minimum_seconds: most polls ask nobody"
        yield warning(_CHECK, text, "make it at least as long")
    if history.poll_seconds and not history.remember:
        text = "history.poll_seconds without history.remember: what the polls see is not kept"
        yield warning(_CHECK, text, "history.remember = true, or history.poll_seconds = 0")
    if history.memento and config.fetch.proxy == "" and config.fetch.allow_hosts:
        host = urlsplit(history.memento_url).hostname or ""
        if not any(is_matched(host, host_pattern(each)) for each in config.fetch.allow_hosts):
            text = f"history.memento asks {host}, which is not in fetch.allow_hosts"
            yield warning(_CHECK, text, f'add "{host}" to fetch.allow_hosts')


def _everyone(networks: tuple[str, ...]) -> bool:
    return any(ipaddress.ip_network(each).prefixlen == 0 for each in networks if each != UNIX)


def _mib(size: int) -> str:
    return f"{size / (1 << 20):,.0f} MiB"
