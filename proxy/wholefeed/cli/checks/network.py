"""Names, and the way out: one document is fetched as the proxy would fetch it."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from aiohttp.abc import AbstractResolver
from aiohttp.resolver import DefaultResolver

from wholefeed.cli.checks.beside import beside
from wholefeed.cli.checks.database import judge_date
from wholefeed.cli.checks.findings import Finding, good, skipped, warning, wrong
from wholefeed.config.tables import Config
from wholefeed.core.parse.documents import parse
from wholefeed.core.parse.errors import ParseError
from wholefeed.core.text.dates import parse_rfc822
from wholefeed.core.text.redact import safe_url
from wholefeed.errors import DocumentError
from wholefeed.fetch.fetched import Fetched
from wholefeed.fetch.fetcher import Fetcher

EXAMPLE_HOST: Final = "example.org"
"""Is asked for where no feed is known whose host could be."""
LOOKUP_SECONDS: Final = 4.0
FETCH_SECONDS: Final = 8.0
_SLOW_SECONDS: Final = 2.0

_WAY_OUT: Final = "look whether this machine may go out: firewall, or fetch.proxy where it must use one"
_ADVICE: Final = {
    "destination-forbidden": "if it is a feed of your own network: fetch.allow_networks;"
    " else see fetch.ports, fetch.allow_hosts and fetch.deny_hosts",
    "dns-error": "look whether the name is right, and which name server answers: /etc/resolv.conf",
    "dns-timeout": "look which name server is asked: /etc/resolv.conf; in a container, its network",
    "tls-certificate": "update the system's certificates (ca-certificates), or the publisher's have run out",
    "connection-failed": _WAY_OUT,
    "timeout": _WAY_OUT,
    "downgrade": "the publisher redirects from https to http: fetch.allow_downgrade",
    "too-large": "limits.document_bytes",
}
_ELSE: Final = "the publisher answers so; `wholefeed explain URL` tells more of a feed"


async def check_names(host: str, config: Config, resolver: AbstractResolver | None = None) -> list[Finding]:
    """Look a name up as the proxy does."""
    if config.fetch.proxy:
        return [skipped("dns", "fetch.proxy looks names up")]
    names = resolver or DefaultResolver()
    started = time.monotonic()
    try:
        async with asyncio.timeout(LOOKUP_SECONDS):
            addresses = await names.resolve(host, 443)
    except TimeoutError:
        servers = await beside(_servers)
        text = f"no name server answered in {LOOKUP_SECONDS:g} s ({servers}): this machine may be offline"
        return [wrong("dns", text, _ADVICE["dns-timeout"])]
    except OSError as exc:
        servers = await beside(_servers)
        text = f"{host} could not be looked up ({servers}): {exc.strerror or exc}"
        return [wrong("dns", text, "look whether this machine is online, and /etc/resolv.conf")]
    finally:
        await names.close()
    took_seconds = time.monotonic() - started
    found = ", ".join(sorted({each["host"] for each in addresses})[:3])
    if took_seconds > _SLOW_SECONDS:
        text = f"{host} is {found}, after {took_seconds:.1f} s"
        return [warning("dns", text, "the first name server may be dead: /etc/resolv.conf")]
    return [good("dns", f"{host} is {found}")]


async def check_fetch(url: str, config: Config) -> list[Finding]:
    """Fetch one document as the proxy does, once, and judge what comes."""
    fetch = replace(
        config.fetch,
        retries=0,
        connect_timeout_seconds=min(config.fetch.connect_timeout_seconds, FETCH_SECONDS / 2),
        document_timeout_seconds=min(config.fetch.document_timeout_seconds, FETCH_SECONDS),
    )
    before = time.time()
    try:
        async with Fetcher.open(fetch, config.limits) as fetcher:
            fetched = await fetcher.fetch(url)
    except DocumentError as exc:
        return [judge_failure(exc, url)]
    date = parse_rfc822(fetched.headers.get("date", ""))
    document = await beside(lambda: judge_document(fetched, config.limits.xml_depth))
    return [document, *judge_date(date, before, time.time())]


def judge_failure(error: DocumentError, url: str) -> Finding:
    """Say why nothing came, and what may help."""
    there = f", at {safe_url(error.url)}" if error.url != url else ""
    text = f"{safe_url(url)}: {error.args[0]} ({error.slug}{there})"
    return wrong("fetch", text, _ADVICE.get(error.slug, _ELSE))


def judge_document(fetched: Fetched, max_depth: int) -> Finding:
    """Say what came, and whether it is a feed."""
    hops = len(fetched.hops) + (fetched.final_url != fetched.url)
    redirects = f" after {hops} redirect{'s' * (hops > 1)} to {safe_url(fetched.final_url)}" if hops else ""
    came = f"{fetched.status}, {len(fetched.body)} bytes of {fetched.media_type or 'no type'}{redirects}"
    try:
        document = parse(fetched.body, fetched.final_url, fetched.media_type, max_depth=max_depth)
    except ParseError as exc:
        text = f"{safe_url(fetched.url)}: {came}; it is no feed that can be read ({exc.slug})"
        return warning(
            "fetch", text, "if it is a page that announces a feed, that is enough: subscribe to it"
        )
    return good("fetch", f"{safe_url(fetched.url)}: {came}; {len(document.entries)} entries")


def host_of(url: str) -> str:
    """Return the host whose name is looked up for a URL."""
    return urlsplit(url).hostname or EXAMPLE_HOST


def _servers(path: Path = Path("/etc/resolv.conf")) -> str:
    try:
        lines = path.read_text("utf-8", "replace").splitlines()
    except OSError:
        return "no /etc/resolv.conf"
    named = [line.split()[1] for line in lines if line.startswith("nameserver") and len(line.split()) > 1]
    return ", ".join(named) or "/etc/resolv.conf names none"
