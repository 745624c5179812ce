"""Who asks, and by what address: behind reverse proxies that are believed (`server.trusted_proxies`).

A reverse proxy that is believed says whom it asks for (X-Forwarded-For), and by what URL it was reached
(X-Forwarded-Host, X-Forwarded-Proto); anybody else could say anything. Of several values only the last one
is the believed proxy's own.

Whoever connects to the Unix socket has no address, and is believed only where that is said ("unix:"): that it
may open the socket does not make it a reverse proxy that sets these fields itself.

    trusted = TrustedProxies(config.server.trusted_proxies)
    trusted.client("10.0.0.2", ["203.0.113.9, 10.0.0.3"])       # 203.0.113.9
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Final, NamedTuple

_WITH_PORT: Final = re.compile(r"(?P<v4>[0-9.]+):\d+|\[(?P<v6>[0-9A-Fa-f:.]+)\](?::\d+)?")
_CLIENT_IPV6_BITS: Final = 64

UNIX: Final = "unix:"
"""The peer of a connection to the Unix socket, and what believes it."""

Address = ipaddress.IPv4Address | ipaddress.IPv6Address


class Networks:
    """Networks that somebody may be in.

    Args:
        networks: In CIDR notation.
    """

    def __init__(self, networks: Iterable[str]) -> None:
        self._networks = tuple(ipaddress.ip_network(network) for network in networks)

    def __bool__(self) -> bool:
        return bool(self._networks)

    def include(self, address: Address | None) -> bool:
        """Return whether an address is in one of them; nobody's is in none."""
        return address is not None and any(address in network for network in self._networks)


class Alone(NamedTuple):
    """A peer, of whom nobody says whom it asks for."""

    name: str
    """To count requests by: an IPv4 address, an IPv6 network, "unix"."""
    is_believed: bool
    """Whether it is a reverse proxy that may say more."""


class TrustedProxies:
    """The networks of the reverse proxies that are believed.

    Args:
        networks: In CIDR notation; `UNIX` for those that connect to the Unix socket.
    """

    def __init__(self, networks: Iterable[str]) -> None:
        given = tuple(networks)
        self._has_unix = UNIX in given
        self._networks = Networks(network for network in given if network != UNIX)
        self.alone: Final = lru_cache(maxsize=2048)(self._alone)
        """What a peer is by itself; it asks again and again."""

    def _alone(self, peer: str | None) -> Alone:
        return Alone(_alone(peer or ""), self.include(peer))

    def include(self, peer: str | None) -> bool:
        """Return whether the connection comes from one of them."""
        if peer == UNIX:
            return self._has_unix
        return bool(self._networks) and self._networks.include(_parsed(peer or ""))

    def client(self, peer: str | None, forwarded_for: Sequence[str]) -> str:
        """Return who asks, as a name to count requests by: an IPv4 address or an IPv6 network of 64 bits.

        That is the peer, or where it is believed the last address of X-Forwarded-For that is not itself that
        of a proxy. What is no address ends the search: whoever stands in front of it wrote it. All who
        connect to the Unix socket are one client, "unix", where nobody is believed who says more of them.

        Args:
            peer: The address that the connection comes from, or `UNIX`.
            forwarded_for: The X-Forwarded-For fields, in their order.
        """
        client = self.address(peer, forwarded_for) if forwarded_for else None
        return self.alone(peer).name if client is None else _name(client)

    def address(self, peer: str | None, forwarded_for: Sequence[str]) -> Address | None:
        """Return who asks, by the rule of `client`, as an address; None: it is not known, or has none."""
        hops = [hop.strip() for field in forwarded_for for hop in field.split(",")]
        vouched = hops.pop() if hops and peer == UNIX and self._has_unix else peer
        client = _parsed(vouched or "")
        while self._networks.include(client) and hops:
            before = _parsed(hops.pop())
            if before is None:
                break
            client = before
        return client


def last_value(fields: Sequence[str]) -> str:
    """Return the last value of list-valued fields; empty when there is none."""
    return fields[-1].rpartition(",")[2].strip() if fields else ""


def _parsed(text: str) -> Address | None:
    found = _WITH_PORT.fullmatch(text)
    try:
        address = ipaddress.ip_address((found["v4"] or found["v6"]) if found else text.partition("%")[0])
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return mapped or address


def _alone(peer: str) -> str:
    """Return the name of a peer of which nobody says anything."""
    if peer == UNIX:
        return "unix"
    client = _parsed(peer)
    return "unknown" if client is None else _name(client)


def _name(address: Address) -> str:
    if isinstance(address, ipaddress.IPv4Address):
        return str(address)
    return str(ipaddress.ip_network((address, _CLIENT_IPV6_BITS), strict=False))
