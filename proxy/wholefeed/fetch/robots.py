"""A site's robots.txt (RFC 9309), fetched once a day.

It counts for pages that no reader asked for (H1), not for feeds, which publishers offer to readers.
"""

from __future__ import annotations

import asyncio
import codecs
import re
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from itertools import islice
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from protego import Protego

from wholefeed.core.text.dates import DAY_SECONDS
from wholefeed.core.text.urls import is_http, resolve_or_empty
from wholefeed.errors import DocumentError, QueueFullError
from wholefeed.fetch.base import Manner
from wholefeed.fetch.fetcher import Fetcher
from wholefeed.fetch.publishers import NO_PUBLISHERS, Publishers

# Longer delays are mostly meant for programs that ask for everything.
LONGEST_DELAY_SECONDS: Final = 30.0
_READ_BYTES: Final = 500 * 1024
"""The minimum by RFC 9309, section 2.5."""
_MOST_SITES: Final = 64
_INLINE_BYTES: Final = 1 << 14


class RobotsRule(NamedTuple):
    may_ask: bool
    delay_seconds: float = 0.0
    is_lasting: bool = True
    """False: robots.txt is unavailable now, and all is forbidden."""
    was_asked: bool = False


class Robots:
    """The rules of recent sites; belongs to one event loop."""

    def __init__(
        self,
        fetcher: Fetcher,
        user_agent: str,
        *,
        publishers: Publishers = NO_PUBLISHERS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._fetcher = fetcher
        self._clock = clock
        self._agent = user_agent
        self._publishers = publishers
        self._known: OrderedDict[str, _KnownFile] = OrderedDict()
        """By origin."""

    async def rule(self, url: str, turn: Callable[[], Awaitable[None]] | None = None) -> RobotsRule:
        """Return the rule for a URL; the caller must send its site no other request meanwhile.

        Raises QueueFullError: too many requests wait for the site.
        """
        origin = _origin(url)
        known, was_asked = self._known.get(origin), False
        if known is None or known.until <= self._clock():
            known, was_asked = await self._ask(origin, turn), True
            self._known[origin] = known
            if len(self._known) > _MOST_SITES:
                self._known.popitem(last=False)
        self._known.move_to_end(origin)
        rules = known.rules
        if rules is None:
            return RobotsRule(may_ask=False, is_lasting=known.is_lasting, was_asked=was_asked)
        agent = self._agent_for(url)
        delay = float(rules.crawl_delay(agent) or 0.0)
        seconds = min(max(delay, 0.0), LONGEST_DELAY_SECONDS)
        return RobotsRule(bool(rules.can_fetch(url, agent)), seconds, was_asked=was_asked)

    def allows(self, url: str) -> bool:
        """Return whether the rules known so far allow a URL."""
        rules = self._known.get(_origin(url), _NOTHING_KNOWN).rules
        return rules is not None and bool(rules.can_fetch(url, self._agent_for(url)))

    def sitemaps(self, url: str) -> tuple[str, ...]:
        """Return the sitemaps that a site's known file names (sitemaps.org, "Informing search engines")."""
        return self._known.get(_origin(url), _NOTHING_KNOWN).sitemaps

    def _agent_for(self, url: str) -> str:
        own = self._publishers.of(url)
        agent = (own and own.user_agent) or self._agent
        return agent.partition("/")[0] or "wholefeed"

    async def _ask(self, origin: str, turn: Callable[[], Awaitable[None]] | None) -> _KnownFile:
        """Fetch robots.txt: a missing file forbids nothing, an unavailable one everything (2.3.1)."""
        until = self._clock() + DAY_SECONDS
        try:
            fetching = self._fetcher.fetching(
                f"{origin}/robots.txt",
                is_ahead=lambda: True,
                # of it nothing is shown to anybody
                manner=Manner(at_most=1, turn=turn, feed_url=origin, follows_refresh=False),
            )
            async with fetching as fetched:
                body = _first_lines(fetched.body)
        except QueueFullError:
            raise
        except DocumentError as exc:
            status = exc.publisher_status
            is_none = exc.slug == "empty" or (
                status is not None
                and HTTPStatus.BAD_REQUEST <= status < HTTPStatus.INTERNAL_SERVER_ERROR
                and status != HTTPStatus.TOO_MANY_REQUESTS
            )
            rules = Protego.parse("") if is_none else None
            return _KnownFile(until, rules, is_none or exc.slug == "too-large")
        agent = self._agent_for(origin)
        if len(body) <= _INLINE_BYTES:
            return _KnownFile(until, _read(body, agent), True, find_sitemaps(body, origin))
        return await asyncio.to_thread(
            lambda: _KnownFile(until, _read(body, agent), True, find_sitemaps(body, origin))
        )


class _KnownFile(NamedTuple):
    until: float
    rules: Protego | None
    """None: all is forbidden."""
    is_lasting: bool
    sitemaps: tuple[str, ...] = ()


_NOTHING_KNOWN: Final = _KnownFile(0.0, None, False)


def _origin(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"


def _first_lines(body: bytes) -> bytes:
    # Half an `Allow` allows too much.
    if len(body) <= _READ_BYTES:
        return body
    end = max(body.rfind(each, 0, _READ_BYTES) for each in (b"\n", b"\r"))
    return body[: end + 1]


def _read(body: bytes, agent: str) -> Protego | None:
    """Return the rules for this program; None: all is forbidden."""
    text = own_rules(_text(body), agent)
    return None if text is None else Protego.parse(text)


def find_sitemaps(body: bytes, origin: str) -> tuple[str, ...]:
    """Return the URLs of `Sitemap:` lines, which concern every program."""
    found = (match[1] for match in islice(_SITEMAP.finditer(_text(body)), _MOST_SITEMAPS))
    urls = (resolve_or_empty(f"{origin}/", each) for each in found if len(each) <= _LONGEST_URL)
    return tuple(dict.fromkeys(url for url in urls if url and is_http(url)))


_MOST_SITEMAPS: Final = 50
_LONGEST_URL: Final = 1000
_SITEMAP: Final = re.compile(r"^[ \t]*site-?map[ \t]*:[ \t]*([^\s#]+)", re.IGNORECASE | re.MULTILINE)


def own_rules(text: str, agent: str) -> str | None:
    """Return the lines of a file that may concern an agent (RFC 9309, 2.2.1).

    The library copies all rules for each listed name: 45 KB became gigabytes. None: above `_MOST_BYTES`;
    the file counts as unavailable (2.3.1.4), since the rest could forbid anything.
    """
    kept: list[str] = []
    names, kept_bytes = 0, 0
    is_among_names = False
    for raw in text.splitlines():
        line = raw.partition("#")[0].strip()
        if not line or _SITE_WIDE.match(line):
            continue
        named = _NAMES_AGENT.match(line)
        if named is not None:
            names = names if is_among_names else 0
            is_among_names = True
            if not _may_mean(named[1], agent):
                continue
            names += 1
        elif ":" not in line and not _KNOWN_WITHOUT_COLON.match(line):
            continue
        else:
            is_among_names = False
        if names:
            kept.append(line)
            kept_bytes += names * _bytes_kept(line)
            if kept_bytes > _MOST_BYTES:
                return None
    return "\n".join(kept)


_MOST_BYTES: Final = 900_000
"""Some 1,800 rules; the longest files of large sites have half as many."""


def _bytes_kept(line: str) -> int:
    """Estimate the library's memory for a line and name."""
    size = 400 + (4 if line.isascii() else 24) * len(line)
    if "*" in line:
        size += 500 + 70 * line.count("*")
    return size * (1 + ("$" in line)) * (1 + line.endswith("/index.html"))


# As generous as the library is: the colon may be missing, and the hyphen.
_NAMES_AGENT: Final = re.compile(
    r"(?:user[- ]?agent\s*:|user(?:-|\s+)?agent(?:\s+|$))\s*(.*)", re.IGNORECASE | re.DOTALL
)
_SITE_WIDE: Final = re.compile(r"(?:sitemaps?|site-map|host)(?:\s*:|\s|$)", re.IGNORECASE)
_KNOWN_WITHOUT_COLON: Final = re.compile(
    r"(?:dis{1,2}al{1,2}ow|diasllow|disallaw|allow|crawl[- ]delay|request[- ]rate|visit[- ]time)(?:\s|$)",
    re.IGNORECASE,
)


def _may_mean(name: str, agent: str) -> bool:
    name, agent = name.strip().lower(), agent.lower()
    return name == "*" or name in agent or name.replace("*", "") in agent


def _text(body: bytes) -> str:
    # UTF-8 (RFC 9309, 2.2), or UTF-16 by its mark.
    encoding = "utf-16" if body.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) else "utf-8-sig"
    return body.decode(encoding, "replace")
