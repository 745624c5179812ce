"""Known readers: their limits, and how each adds a feed.

Sizes are without content coding, as readers count. Requested sizes stay a little below, because some
readers may refuse the limit itself, and show nothing of a larger feed.
"""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final
from urllib.parse import quote, urlsplit

from wholefeed.core.text.dates import format_rfc3339

_MIB: Final = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class ReaderLimits:
    name: str
    """Its makers' spelling."""
    max_bytes: int | None = None
    """None: no known limit."""
    max_entries: int | None = None
    patience_seconds: int | None = None
    """Longest wait for an answer; None: unlimited."""
    answer_bytes: int | None = None
    """Requested maximum."""
    limit: int | None = None
    """Requested maximum of entries."""
    pages: int | None = None
    """Entries per page, for a reader that follows pages."""
    starts_now: bool = False
    """Whether to send only new entries, because it forwards each to people."""
    reads_json: bool = False
    """Whether it recognises JSON Feed by itself."""
    adds_at: str = ""
    """URL that adds a feed, except for the feed's own URL at its end.

    A path is below the address of a reader that people host themselves. Empty: there is none.
    """
    own_paths: tuple[str, ...] = ()
    """Paths that people copy together with the address of a reader that they host."""
    hint: str
    """Advice for its user, one sentence."""

    @property
    def is_self_hosted(self) -> bool:
        return self.adds_at.startswith("/")

    def parameters(self, now: float, *, is_json: bool = False) -> dict[str, str]:
        """Return parameters for a feed's URL, which may be of a JSON Feed; `now` is epoch seconds."""
        added = {}
        if is_json and not self.reads_json:
            added["as"] = "atom"
        if self.starts_now:
            added["since"] = format_rfc3339(now)
        for name in ("answer_bytes", "limit", "pages"):
            if (number := getattr(self, name)) is not None:
                added[name] = str(number)
        return added


READERS: Final = (
    ReaderLimits(
        name="AntennaPod",
        pages=200,
        hint="Follows pages: at first it has the newest 200 episodes or more, and by its button those before"
        " them; by the usual address it has all, and fetches all whenever there is a new one.",
    ),
    ReaderLimits(
        name="CommaFeed",
        max_bytes=5 * _MIB,
        patience_seconds=10,
        answer_bytes=5_000_000,
        hint="Refuses feeds above 5 MB, and keeps 500 entries of a feed, a year old at most, unless its"
        " database.cleanup settings are 0; at a private address it needs block-local-addresses=false.",
    ),
    ReaderLimits(
        name="Feedbin",
        max_bytes=10 * _MIB,
        patience_seconds=30,
        answer_bytes=10_000_000,
        reads_json=True,
        adds_at="https://feedbin.com/?subscribe=",
        hint="Refuses feeds above 10 MiB; it reaches a proxy with a public address only.",
    ),
    ReaderLimits(
        name="Feedly",
        max_entries=6_065,
        limit=5_000,
        adds_at="https://feedly.com/i/subscription/feed%2F",
        hint="Refused a feed of 6,066 entries.",
    ),
    ReaderLimits(
        name="FreshRSS",
        patience_seconds=20,
        adds_at="/i/?c=feed&a=add&url_rss=",
        own_paths=("/i",),
        hint="Takes feeds of any size; from 1.30 on a private address must be in INTERNAL_HOST_ALLOWLIST.",
    ),
    ReaderLimits(
        name="gPodder",
        patience_seconds=60,
        hint="Keeps 200 episodes unless limit.episodes is raised, or 0, before subscribing; of a feed in"
        " pages it has all at first, and with the next new episode the first page alone.",
    ),
    ReaderLimits(
        name="Inoreader",
        max_entries=3_000,
        limit=2_900,
        reads_json=True,
        adds_at="https://www.inoreader.com/?add_feed=",
        hint="Blocks feeds of more than 3,000 entries; it reaches a proxy with a public address only.",
    ),
    ReaderLimits(
        name="Liferea",
        patience_seconds=30,
        hint="Keeps 100 entries of a feed unless its cache limit is raised.",
    ),
    ReaderLimits(
        name="Miniflux",
        max_bytes=15 * _MIB,
        patience_seconds=20,
        answer_bytes=15_000_000,
        reads_json=True,
        adds_at="/bookmarklet?uri=",
        own_paths=("/unread", "/feeds", "/login", "/settings"),
        hint="Refuses feeds above 15 MiB (HTTP_CLIENT_MAX_BODY_SIZE); a private address needs"
        " FETCHER_ALLOW_PRIVATE_NETWORKS=1.",
    ),
    ReaderLimits(
        name="NetNewsWire",
        patience_seconds=15,
        reads_json=True,
        hint="Takes feeds of any size.",
    ),
    ReaderLimits(
        name="NewsBlur",
        reads_json=True,
        adds_at="https://www.newsblur.com/?url=",
        hint="Its limits are not known; it reaches a proxy with a public address only.",
    ),
    ReaderLimits(
        name="Newsboat",
        patience_seconds=30,
        hint="Takes feeds of any size.",
    ),
    ReaderLimits(
        name="Nextcloud News",
        max_bytes=100_000_000,
        patience_seconds=60,
        answer_bytes=95_000_000,
        reads_json=True,
        adds_at="/index.php/apps/news?subscribe_to=",
        own_paths=("/index.php/apps/news", "/apps/news", "/index.php/login", "/login"),
        hint="Refuses feeds above 100 MB, and keeps 200 read entries of a feed unless autoPurgeCount is -1; a"
        " private address needs allow_local_remote_servers.",
    ),
    ReaderLimits(
        name="Radio France",
        pages=200,
        hint="Follows pages.",
    ),
    ReaderLimits(
        name="rss2email",
        patience_seconds=60,
        starts_now=True,
        hint="Mails every entry that it has not seen: `since` keeps the first run from mailing the history.",
    ),
    ReaderLimits(
        name="sfeed",
        patience_seconds=15,
        hint="Takes feeds of any size.",
    ),
    ReaderLimits(
        name="The Old Reader",
        max_bytes=7_000_000,
        answer_bytes=6_500_000,
        adds_at="https://theoldreader.com/feeds/subscribe?url=",
        hint="Refused a feed of 7 MB; it reaches a proxy with a public address only.",
    ),
    ReaderLimits(
        name="Tiny Tiny RSS",
        max_bytes=16 * _MIB,
        patience_seconds=45,
        answer_bytes=16_000_000,
        hint="Refuses feeds above 16 MiB, loopback, and private addresses on ports other than 80 and 443.",
    ),
)

_BY_NAME: Final = {reader.name.casefold(): reader for reader in READERS}


def reader_named(name: str) -> ReaderLimits | None:
    return _BY_NAME.get(" ".join(name.split()).casefold())


def adding_url(reader: ReaderLimits, feed_url: str) -> str:
    """Return the URL that adds a feed to a reader; see `ReaderLimits.adds_at`."""
    return reader.adds_at + quote(feed_url, safe="")


class Reach(Enum):
    MACHINE = auto()
    NETWORK = auto()
    INTERNET = auto()


def reach_of(base: str) -> Reach:
    """Return from where a proxy at this URL can be reached, judged by its host alone.

    A name without a dot, or of a zone for local networks, is not on the internet (RFC 6761, 6762, 8375;
    ICANN's .internal).
    """
    name = (urlsplit(base).hostname or "").rstrip(".")
    try:
        address = ipaddress.ip_address(name)
    except ValueError:
        if f".{name}".endswith(".localhost"):
            return Reach.MACHINE
        is_local = "." not in name or name.endswith(_LOCAL_ZONES)
        return Reach.NETWORK if is_local else Reach.INTERNET
    if address.is_loopback or address.is_unspecified:
        return Reach.MACHINE
    return Reach.INTERNET if address.is_global else Reach.NETWORK


_LOCAL_ZONES: Final = (
    *(".local", ".localdomain", ".lan", ".home", ".home.arpa", ".internal", ".intranet", ".corp", ".private"),
    *(".test", ".invalid", ".example"),
)


def refusing(size_bytes: int) -> list[str]:
    return [each.name for each in READERS if each.max_bytes is not None and size_bytes > each.max_bytes]
