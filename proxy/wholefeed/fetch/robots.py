"""What a site lets programs ask for: its robots.txt (RFC 9309), asked for once a day.

    robots = Robots(fetcher, config.fetch.user_agent)
    rule = await robots.rule("https://example.org/archive/")
    rule.may_ask, rule.delay_seconds

A library reads the file, but only what of it may concern this program (`own_rules`): the library gives each
name that a file lists all rules behind it, so that 45 KB became gigabytes. It counts for the pages that no
reader asked for (H1): a feed is what its publisher offers to readers, and is asked for without it.
"""

from __future__ import annotations

import asyncio
import codecs
import re
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from protego import Protego

from wholefeed.core.text.dates import DAY_SECONDS
from wholefeed.errors import DocumentError, QueueFullError
from wholefeed.fetch.base import Manner
from wholefeed.fetch.fetcher import Fetcher
from wholefeed.fetch.publishers import NO_PUBLISHERS, Publishers

LONGEST_DELAY_SECONDS: Final = 30.0
"""What counts of a Crawl-delay: more is mostly meant for others, who ask for everything."""
_READ_BYTES: Final = 500 * 1024
"""That much is read at least (RFC 9309, section 2.5), and here no more."""
_MOST_SITES: Final = 64
_INLINE_BYTES: Final = 1 << 14
"""Of what is read where it is: more takes milliseconds."""


class RobotsRule(NamedTuple):
    """What counts for one URL."""

    may_ask: bool
    delay_seconds: float = 0.0
    """Between two requests."""
    is_lasting: bool = True
    """Whether that is its publisher's word; else the file could not be had now, and all is forbidden."""
    was_asked: bool = False
    """Whether the publisher was asked for the file just now."""


class Robots:
    """The rules of the sites that were asked last; belongs to one event loop."""

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
        self._known: OrderedDict[str, tuple[float, Protego | None, bool]] = OrderedDict()
        """By origin: until when it counts, what it says (None: nothing may be asked), whether that lasts."""

    async def rule(self, url: str, turn: Callable[[], Awaitable[None]] | None = None) -> RobotsRule:
        """Return what counts for a URL. Only while its site is asked nothing else: that is the caller's care.

        `turn` waits until one more request may be made (`Manner`).

        Raises:
            QueueFullError: Too much waits for the site.
        """
        origin = _origin(url)
        known, was_asked = self._known.get(origin), False
        if known is None or known[0] <= self._clock():
            known, was_asked = await self._ask(origin, turn), True
            self._known[origin] = known
            if len(self._known) > _MOST_SITES:
                self._known.popitem(last=False)
        self._known.move_to_end(origin)
        _, rules, is_lasting = known
        if rules is None:
            return RobotsRule(may_ask=False, is_lasting=is_lasting, was_asked=was_asked)
        agent = self._agent_for(url)
        delay = float(rules.crawl_delay(agent) or 0.0)
        seconds = min(max(delay, 0.0), LONGEST_DELAY_SECONDS)
        return RobotsRule(bool(rules.can_fetch(url, agent)), seconds, was_asked=was_asked)

    def allows(self, url: str) -> bool:
        """Whether what is known of its site by now lets a URL be asked for."""
        _, rules, _ = self._known.get(_origin(url), _NOTHING_KNOWN)
        return rules is not None and bool(rules.can_fetch(url, self._agent_for(url)))

    def _agent_for(self, url: str) -> str:
        """Return the name that a site knows this program by."""
        own = self._publishers.of(url)
        agent = (own and own.user_agent) or self._agent
        return agent.partition("/")[0] or "wholefeed"

    async def _ask(
        self, origin: str, turn: Callable[[], Awaitable[None]] | None
    ) -> tuple[float, Protego | None, bool]:
        """Ask for the file: what is not there forbids nothing, what cannot be had everything (2.3.1)."""
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
            return until, Protego.parse("") if is_none else None, is_none or exc.slug == "too-large"
        agent = self._agent_for(origin)
        if len(body) <= _INLINE_BYTES:
            return until, _read(body, agent), True
        return until, await asyncio.to_thread(_read, body, agent), True


_NOTHING_KNOWN: Final = (0.0, None, False)


def _origin(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"


def _first_lines(body: bytes) -> bytes:
    """Return what is read of a file, in whole lines: half an `Allow` allows more than was meant."""
    if len(body) <= _READ_BYTES:
        return body
    end = max(body.rfind(each, 0, _READ_BYTES) for each in (b"\n", b"\r"))
    return body[: end + 1]


def _read(body: bytes, agent: str) -> Protego | None:
    """Return what a file says to this program; None: nothing may be asked, since it says too much."""
    text = own_rules(_text(body), agent)
    return None if text is None else Protego.parse(text)


def own_rules(text: str, agent: str) -> str | None:
    """Return what of a file may concern an agent, for a library to read: it says the same of that agent.

    These are the groups that name it, a part of its name, or all (RFC 9309, 2.2.1). None: the library would
    keep more than `_MOST_BYTES` of them. Then the file is one that could not be had, which forbids all
    (2.3.1.4): to leave out the rest could mean what it forbids.
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
"""Some 1,800 rules. The longest files of large sites have half as many for one agent."""


def _bytes_kept(line: str) -> int:
    """Return about how much the library keeps of a line for each name, as measured: some rules become two."""
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
    """Whether a group of this name may be the agent's: the library decides."""
    name, agent = name.strip().lower(), agent.lower()
    return name == "*" or name in agent or name.replace("*", "") in agent


def _text(body: bytes) -> str:
    """Return the text of a file: it has to be UTF-8 (2.2), its mark goes, and that of UTF-16 is believed."""
    encoding = "utf-16" if body.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) else "utf-8-sig"
    return body.decode(encoding, "replace")
