"""Client addresses, request limits, signed URLs and logins.

Instants are arguments. Secrets are compared in constant time.
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

# Clients and trusted proxies

UNIX: Final = "unix:"
"""The peer of a connection to the Unix socket, and its item in `server.trusted_proxies`."""


class TrustedProxies:
    """The reverse proxies that may set X-Forwarded fields; only the last value is trusted.

    Peers of the Unix socket are trusted only if "unix:" is listed: they may pass on a client's own fields.
    """

    def __init__(self, networks: Iterable[str]) -> None:
        given = tuple(networks)
        self._has_unix = UNIX in given
        self._networks = Networks(network for network in given if network != UNIX)
        self.peer: Final = lru_cache(maxsize=2048)(self._peer)
        """Cached, since the same peers return often."""

    def _peer(self, address: str | None) -> Peer:
        if address == UNIX:
            return Peer("unix", self._has_unix)
        found = _parsed_address(address or "")
        name = "unknown" if found is None else _client_name(found)
        return Peer(name, self._networks.include(found))

    def client(self, peer: str | None, forwarded_for: Sequence[str]) -> str:
        """Return the name to count by: IPv4 address, IPv6 network of 64 bits, "unix" or "unknown"."""
        client = self.address(peer, forwarded_for) if forwarded_for else None
        return self.peer(peer).name if client is None else _client_name(client)

    def address(self, peer: str | None, forwarded_for: Sequence[str]) -> Address | None:
        """Return the client's address, the last one outside the trusted networks; None: unknown or Unix."""
        hops = [hop.strip() for field in forwarded_for for hop in field.split(",")]
        vouched = hops.pop() if hops and peer == UNIX and self._has_unix else peer
        client = _parsed_address(vouched or "")
        while self._networks.include(client) and hops:
            before = _parsed_address(hops.pop())
            if before is None:  # a client may have written it, and all before it
                break
            client = before
        return client


class Peer(NamedTuple):
    name: str
    """Name to count requests by, as `TrustedProxies.client` returns it."""
    is_believed: bool


def last_value(fields: Sequence[str]) -> str:
    return fields[-1].rpartition(",")[2].strip() if fields else ""


_CLIENT_IPV6_BITS: Final = 64


def _client_name(address: Address) -> str:
    if isinstance(address, ipaddress.IPv4Address):
        return str(address)
    return str(ipaddress.ip_network((address, _CLIENT_IPV6_BITS), strict=False))


Address = ipaddress.IPv4Address | ipaddress.IPv6Address


class Networks:
    def __init__(self, networks: Iterable[str]) -> None:
        self._networks = tuple(ipaddress.ip_network(network) for network in networks)

    def __bool__(self) -> bool:
        return bool(self._networks)

    def include(self, address: Address | None) -> bool:
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


# Request limits

MAX_CLIENTS: Final = 10_000

_MINUTE_SECONDS: Final = 60.0
_ROUNDING_SECONDS: Final = 1e-6
"""Tolerance for sums of fractions."""


class Buckets:
    """One token bucket per client, refilled evenly within a minute.

    Beyond `max_clients`, the least recent clients start anew.
    """

    def __init__(self, per_minute: int, max_clients: int = MAX_CLIENTS) -> None:
        self._per_minute = per_minute
        self._max_clients = max_clients
        self._full_at: OrderedDict[str, float] = OrderedDict()

    def take(self, client: str, now: float) -> float:
        """Take one request from a client's bucket; return 0 or the seconds to wait.

        A refused request takes nothing. `now` is monotonic.
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
    """Return the mark for a canonical URL; its holder may read that feed until `expires_at` (epoch seconds).

    The mark is an HMAC-SHA256 (RFC 2104) by the first key, in unpadded base64url (RFC 4648, section 5), then
    a dot and the instant if it expires. Request options (limit, since, wait) are not signed.
    """
    mac = _mac(keys[0], _FEED_PURPOSE, "" if expires_at is None else str(expires_at), url)
    return mac if expires_at is None else f"{mac}.{expires_at}"


def verify(url: str, mark: str, keys: Sequence[str], now: float) -> AccessVerdict:
    """Check a mark for a canonical URL at `now` (epoch seconds); any key counts, so that keys can change."""
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
    # No line contains a line break, so no two grants share a text.
    digest = hmac.digest(key.encode(), "\n".join(lines).encode(), hashlib.sha256)
    return base64.urlsafe_b64encode(digest).decode("ascii").rstrip("=")


# Logins

SESSION_SECONDS: Final = 30 * DAY_SECONDS

_SESSION_PURPOSE: Final = "wholefeed session 1"
_FORM_PURPOSE: Final = "wholefeed form 1"
_SESSION: Final = re.compile(r"(?P<expires_at>[1-9][0-9]{0,11})\.(?P<mac>[A-Za-z0-9_-]{43})", re.ASCII)


def issue_session(token: str, *, expires_at: int) -> str:
    """Return the browser's substitute for the access token until `expires_at` (epoch seconds).

    It does not reveal the token, and a new token ends it.
    """
    return f"{expires_at}.{_mac(token, _SESSION_PURPOSE, str(expires_at))}"


def is_good_session(session: str, token: str, now: float) -> bool:
    """Whether a session belongs to this token at `now` (epoch seconds); False for an empty token."""
    found = _SESSION.fullmatch(session)
    if found is None or not token:
        return False
    expected = _mac(token, _SESSION_PURPOSE, found["expires_at"])
    return hmac.compare_digest(found["mac"], expected) and now < int(found["expires_at"])


def form_proof(session: str, token: str) -> str:
    return _mac(token, _FORM_PURPOSE, session)


def is_form_proof(given: str, session: str, token: str) -> bool:
    expected = form_proof(session, token)
    return hmac.compare_digest(given.encode("utf-8", "surrogatepass"), expected.encode())
