"""The address of a client, how often it may ask, and its rights: clients, buckets, signed URLs, logins.

Pure: instants are arguments. Secrets are compared in constant time.

    trusted = TrustedProxies(config.server.trusted_proxies)
    client = trusted.client("10.0.0.2", ["203.0.113.9, 10.0.0.3"])              # 203.0.113.9

    buckets = Buckets(per_minute=60)
    wait_seconds = buckets.take(client, now)                                    # 0.0: let it in

    mark = sign("http://example.org/feed", keys, expires_at=1_800_000_000)      # "q1f…Zs.1800000000"
    verify("http://example.org/feed", mark, keys, now)                          # Verdict.VALID

    session = issue_session(token, expires_at=1_800_000_000)                            # "1800000000.q1f…Zs"
    is_good_session(session, token, now)                                                # True
    proof = form_proof(session, token)                      # for the forms on the pages of that session
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import ipaddress
import re
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from enum import Enum
from functools import lru_cache
from typing import Final, NamedTuple

from wholefeed.core.text.dates import DAY_SECONDS

# Clients, and the reverse proxies in front of them

UNIX: Final = "unix:"
"""The peer of a connection to the Unix socket, and what believes it."""


class TrustedProxies:
    """The networks of the reverse proxies that are believed (`server.trusted_proxies`).

    Only these may say who the client is (X-Forwarded-For), and by what URL it reached them
    (X-Forwarded-Host, X-Forwarded-Proto). Of several values only the last one is the believed proxy's own.

    A client of the Unix socket has no address, and is believed only where "unix:" is listed: a program that
    may open the socket need not be a reverse proxy that sets these fields itself.
    """

    def __init__(self, networks: Iterable[str]) -> None:
        given = tuple(networks)
        self._has_unix = UNIX in given
        self._networks = Networks(network for network in given if network != UNIX)
        self.peer: Final = lru_cache(maxsize=2048)(self._peer)
        """What is known of a peer by its address; it asks again and again."""

    def _peer(self, address: str | None) -> Peer:
        if address == UNIX:
            return Peer("unix", self._has_unix)
        found = _parsed_address(address or "")
        name = "unknown" if found is None else _client_name(found)
        return Peer(name, self._networks.include(found))

    def client(self, peer: str | None, forwarded_for: Sequence[str]) -> str:
        """Return who asks, as a name to count requests by: an IPv4 address or an IPv6 network of 64 bits.

        That is the peer, or where it is believed the last address of X-Forwarded-For that is not itself that
        of a proxy. What is no address ends the search: whoever stands in front of it wrote it. All who
        connect to the Unix socket are one client, "unix", where nobody is believed who says more of them.
        """
        client = self.address(peer, forwarded_for) if forwarded_for else None
        return self.peer(peer).name if client is None else _client_name(client)

    def address(self, peer: str | None, forwarded_for: Sequence[str]) -> Address | None:
        """Return who asks, by the rule of `client`, as an address; None: it is not known, or has none."""
        hops = [hop.strip() for field in forwarded_for for hop in field.split(",")]
        vouched = hops.pop() if hops and peer == UNIX and self._has_unix else peer
        client = _parsed_address(vouched or "")
        while self._networks.include(client) and hops:
            before = _parsed_address(hops.pop())
            if before is None:
                break
            client = before
        return client


class Peer(NamedTuple):
    """The other end of a connection: a client, or a proxy."""

    name: str
    """To count requests by, as `TrustedProxies.client` returns it."""
    is_believed: bool
    """Whether it is one of the trusted proxies."""


def last_value(fields: Sequence[str]) -> str:
    """Return the last value of list-valued fields; empty when there is none."""
    return fields[-1].rpartition(",")[2].strip() if fields else ""


_CLIENT_IPV6_BITS: Final = 64


def _client_name(address: Address) -> str:
    if isinstance(address, ipaddress.IPv4Address):
        return str(address)
    return str(ipaddress.ip_network((address, _CLIENT_IPV6_BITS), strict=False))


Address = ipaddress.IPv4Address | ipaddress.IPv6Address


class Networks:
    """A set of networks, given in CIDR notation."""

    def __init__(self, networks: Iterable[str]) -> None:
        self._networks = tuple(ipaddress.ip_network(network) for network in networks)

    def __bool__(self) -> bool:
        return bool(self._networks)

    def include(self, address: Address | None) -> bool:
        """Return whether an address is in one of them; nobody's is in none."""
        return address is not None and any(address in network for network in self._networks)


_WITH_PORT: Final = re.compile(r"(?P<v4>[0-9.]+):\d+|\[(?P<v6>[0-9A-Fa-f:.]+)\](?::\d+)?")


def _parsed_address(text: str) -> Address | None:
    found = _WITH_PORT.fullmatch(text)
    try:
        address = ipaddress.ip_address((found["v4"] or found["v6"]) if found else text.partition("%")[0])
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return mapped or address


# How much a client may ask

MAX_CLIENTS: Final = 10_000

_MINUTE_SECONDS: Final = 60.0
_ROUNDING_SECONDS: Final = 1e-6
"""What sums of fractions may be off by."""


class Buckets:
    """A token bucket a client: it holds what one may ask in a minute, and fills evenly.

    A client that has asked nothing for a minute has a full bucket, and so has one that is not remembered;
    beyond `max_clients` those that asked longest ago are forgotten.
    """

    def __init__(self, per_minute: int, max_clients: int = MAX_CLIENTS) -> None:
        self._per_minute = per_minute
        self._max_clients = max_clients
        self._full_at: OrderedDict[str, float] = OrderedDict()

    def take(self, client: str, now: float) -> float:
        """Take one request out of a client's bucket; return 0, or the seconds until there is one.

        A request that is refused takes nothing. `now` is of a clock that is never put back.
        """
        step_seconds = _MINUTE_SECONDS / self._per_minute
        full_at = max(self._full_at.get(client, now), now) + step_seconds
        wait_seconds = full_at - _MINUTE_SECONDS - now
        if wait_seconds > _ROUNDING_SECONDS:
            return wait_seconds
        self._full_at[client] = full_at
        self._full_at.move_to_end(client)
        if len(self._full_at) > self._max_clients:
            self._full_at.popitem(last=False)
        return 0.0


# Signed feed URLs

_FEED_PURPOSE: Final = "wholefeed feed 1"
_MARK: Final = re.compile(r"(?P<mac>[A-Za-z0-9_-]{43})(?:\.(?P<expires_at>[1-9][0-9]{0,11}))?", re.ASCII)


def sign(url: str, keys: Sequence[str], *, expires_at: int | None = None) -> str:
    """Return the mark for a feed: in a URL it lets its holder read that feed, and nothing else.

    A mark is the HMAC-SHA256 (RFC 2104) of what is granted, in base64url without padding (RFC 4648, section
    5); one that expires has a dot and the instant behind it. What is granted is the canonical URL of the feed
    and the instant, on lines of their own behind a name and a version: neither holds a line break, so no two
    grants share a text. Options of the request (limit, since, wait) are not part of it.

    The first of the keys signs. From `expires_at` on, in epoch seconds, the mark is worth nothing.
    """
    mac = _mac(keys[0], _FEED_PURPOSE, "" if expires_at is None else str(expires_at), url)
    return mac if expires_at is None else f"{mac}.{expires_at}"


def verify(url: str, mark: str, keys: Sequence[str], now: float) -> AccessVerdict:
    """Return what a mark is worth for the feed of a canonical URL, at an instant in epoch seconds.

    Each of the keys counts, so that one can be replaced while its marks are still about.
    """
    found = _MARK.fullmatch(mark)
    if found is None:
        return AccessVerdict.BAD
    expires_at = found["expires_at"] or ""
    given = found["mac"].encode()
    matches = [hmac.compare_digest(given, _mac(key, _FEED_PURPOSE, expires_at, url).encode()) for key in keys]
    if not any(matches):
        return AccessVerdict.BAD
    return AccessVerdict.EXPIRED if expires_at and now >= int(expires_at) else AccessVerdict.VALID


class AccessVerdict(Enum):
    VALID = "valid"
    BAD = "bad"
    EXPIRED = "expired"


def _mac(key: str, *lines: str) -> str:
    digest = hmac.digest(key.encode(), "\n".join(lines).encode(), hashlib.sha256)
    return base64.urlsafe_b64encode(digest).decode("ascii").rstrip("=")


# Logins

SESSION_SECONDS: Final = 30 * DAY_SECONDS
"""How long a login lasts."""

_SESSION_PURPOSE: Final = "wholefeed session 1"
_FORM_PURPOSE: Final = "wholefeed form 1"
_SESSION: Final = re.compile(r"(?P<expires_at>[1-9][0-9]{0,11})\.(?P<mac>[A-Za-z0-9_-]{43})", re.ASCII)


def issue_session(token: str, *, expires_at: int) -> str:
    """Return a session: what the browser of somebody who has logged in keeps instead of the access token.

    A session is the instant, in epoch seconds, from which on it is worth nothing, and the HMAC-SHA256 (RFC
    2104) of a purpose and that instant, keyed with the access token: nobody can make one who does not know
    the token, nobody reads the token out of it, and all are worth nothing once the token is another one.
    """
    return f"{expires_at}.{_mac(token, _SESSION_PURPOSE, str(expires_at))}"


def is_good_session(session: str, token: str, now: float) -> bool:
    """Whether a session was issued for this token and has not expired by `now`, in epoch seconds.

    None is good for an empty token.
    """
    found = _SESSION.fullmatch(session)
    if found is None or not token:
        return False
    expected = _mac(token, _SESSION_PURPOSE, found["expires_at"])
    return hmac.compare_digest(found["mac"], expected) and now < int(found["expires_at"])


def form_proof(session: str, token: str) -> str:
    """Return what a form sends along to show that it stands on a page of ours, made for this session."""
    return _mac(token, _FORM_PURPOSE, session)


def is_form_proof(given: str, session: str, token: str) -> bool:
    """Whether a form was sent from a page that was made for this session."""
    expected = form_proof(session, token)
    return hmac.compare_digest(given.encode("utf-8", "surrogatepass"), expected.encode())
