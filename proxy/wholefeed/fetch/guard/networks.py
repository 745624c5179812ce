"""Which addresses must not be asked: this machine's, its neighbours', nobody's (docs/design.md#the-guard).

    is_forbidden(ip_address("::ffff:10.0.0.1"))                              # True
    is_forbidden(ip_address("10.0.0.1"), (ip_network("10.0.0.0/8"),))        # False: exempt

`ipaddress.is_global` alone is not enough: it takes multicast, NAT64, site-local, IPv4-compatible and
ISATAP addresses, and a cloud's platform service, for global ones.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Mapping
from typing import Final

IpAddress = ipaddress.IPv4Address | ipaddress.IPv6Address
IpNetwork = ipaddress.IPv4Network | ipaddress.IPv6Network

GLOBAL_IPV6: Final = "2000::/3"
"""What is not in here is no global unicast address (RFC 4291, section 2.4)."""

REFUSED_NETWORKS: Final[Mapping[str, str]] = {
    "0.0.0.0/8": "this network; on many systems this machine (RFC 1122)",
    "10.0.0.0/8": "private (RFC 1918)",
    "100.64.0.0/10": "behind a provider's NAT (RFC 6598); a metadata service",
    "127.0.0.0/8": "this machine (RFC 1122)",
    "168.63.129.16/32": "a cloud's platform service",
    "169.254.0.0/16": "link-local (RFC 3927); metadata services",
    "172.16.0.0/12": "private (RFC 1918)",
    "192.0.0.0/24": "protocol assignments (RFC 6890)",
    "192.0.2.0/24": "documentation (RFC 5737)",
    "192.31.196.0/24": "AS112, a sink for private reverse look-ups (RFC 7535)",
    "192.52.193.0/24": "multicast relays (RFC 7450)",
    "192.88.99.0/24": "6to4 relays (RFC 7526)",
    "192.168.0.0/16": "private (RFC 1918)",
    "192.175.48.0/24": "AS112 (RFC 7534)",
    "198.18.0.0/15": "benchmarks (RFC 2544)",
    "198.51.100.0/24": "documentation (RFC 5737)",
    "203.0.113.0/24": "documentation (RFC 5737)",
    "224.0.0.0/4": "multicast (RFC 5771)",
    "240.0.0.0/4": "reserved (RFC 1112), and broadcast",
    "2001::/23": "protocol assignments (RFC 2928): Teredo, ORCHID, benchmarks",
    "2001:db8::/32": "documentation (RFC 3849)",
    "2002::/16": "6to4: an IPv4 address in disguise (RFC 3056)",
    "3fff::/20": "documentation (RFC 9637)",
}
"""Networks by what they are for."""

_GLOBAL_IPV6: Final = ipaddress.IPv6Network(GLOBAL_IPV6)
_REFUSED: Final = tuple(map(ipaddress.ip_network, REFUSED_NETWORKS))
_ISATAP: Final = (0x0000_5EFE, 0x0200_5EFE)  # RFC 5214, section 6.1: an IPv4 address follows


def unmapped(address: IpAddress) -> IpAddress:
    """Return what an address reaches: of an IPv4-mapped one that is IPv4 (RFC 4291, section 2.5.5.2)."""
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return mapped or address


def is_forbidden(address: IpAddress, exempt: Iterable[IpNetwork] = ()) -> bool:
    """Return whether an address must not be connected to.

    Args:
        address: An IPv4-mapped one is judged by the IPv4 address in it; one with a zone is refused.
        exempt: Networks that are allowed whatever the table says (`fetch.allow_networks`).
    """
    if isinstance(address, ipaddress.IPv6Address) and address.scope_id is not None:
        return True
    address = unmapped(address)
    if any(address in network for network in exempt):
        return False
    if any(address in network for network in _REFUSED):
        return True
    return isinstance(address, ipaddress.IPv6Address) and (
        address not in _GLOBAL_IPV6 or int(address) >> 32 & 0xFFFF_FFFF in _ISATAP
    )
