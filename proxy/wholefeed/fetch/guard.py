"""The guard: permitted targets (docs/design.md#the-guard; docs/faults.md part A).

`AddressPolicy.check_address` judges each address at the socket, where names, literals and redirects all
end. An earlier check of the URL saves look-ups.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import aiodns
from aiohttp.abc import AbstractResolver, ResolveResult

from wholefeed.config.tables import FetchConfig
from wholefeed.descriptors import leave_kept

IpAddress = ipaddress.IPv4Address | ipaddress.IPv6Address
IpNetwork = ipaddress.IPv4Network | ipaddress.IPv6Network
OwnAddresses = Callable[[str, int], bool]
"""Whether this proxy listens at an IP address (as text) and port."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AddressPolicy:
    """The rules of `[fetch]` for targets; compared by identity to cache verdicts."""

    exempt: tuple[IpNetwork, ...] = ()
    ports: tuple[range, ...] = (range(80, 81), range(443, 444), range(1024, 65536))
    allow_hosts: tuple[str, ...] = ()
    deny_hosts: tuple[str, ...] = ()
    own_addresses: OwnAddresses | None = None

    @classmethod
    def from_config(cls, fetch: FetchConfig, own_addresses: OwnAddresses | None = None) -> AddressPolicy:
        return cls(
            exempt=tuple(ipaddress.ip_network(network) for network in fetch.allow_networks),
            ports=tuple(map(_port_range, fetch.ports)),
            allow_hosts=tuple(map(host_pattern, fetch.allow_hosts)),
            deny_hosts=tuple(map(host_pattern, fetch.deny_hosts)),
            own_addresses=own_addresses,
        )

    def behind_proxy(self) -> AddressPolicy:
        """Return the policy for connections to the operator's proxy, at any address."""
        # The proxy guards the targets behind it; this policy still judges literals in URLs.
        everything = (ipaddress.ip_network("0.0.0.0/0"), ipaddress.ip_network("::/0"))
        return AddressPolicy(exempt=everything, own_addresses=self.own_addresses)

    def check_target(self, host: str, port: int) -> None:
        """Judge a canonical host and port before any look-up.

        Raises:
            OwnAddressError: The proxy itself.
            TargetRefusedError: A refused port, host or literal.
        """
        if any(self._is_own(address, port) for address in _addresses_of(host)):
            raise OwnAddressError
        if not any(port in ports for ports in self.ports):
            raise TargetRefusedError(port)
        if not _is_permitted(self, host):
            raise TargetRefusedError

    def check_address(self, address: str, port: int) -> None:
        """Judge an address just before the connection.

        Raises:
            OwnAddressError: The proxy itself.
            TargetRefusedError: Refused or invalid.
        """
        literal = _literal(address)
        if literal is None:
            raise TargetRefusedError
        if self._is_own(literal, port):
            raise OwnAddressError
        if is_forbidden(literal, self.exempt) or str(_unmap(literal)) in self.deny_hosts:
            raise TargetRefusedError

    def is_exempt(self, address: str) -> bool:
        literal = _literal(address)
        if literal is None or (isinstance(literal, ipaddress.IPv6Address) and literal.scope_id is not None):
            return False
        return any(_unmap(literal) in network for network in self.exempt)

    def _is_own(self, address: IpAddress, port: int) -> bool:
        return self.own_addresses is not None and self.own_addresses(str(_unmap(address)), port)


class TargetRefusedError(OSError):
    """A refused target, with one text for all addresses: answers must not map a network."""

    def __init__(self, port: int = 0) -> None:
        super().__init__(f"port {port} is not allowed" if port else "this address is not allowed")
        self.port = port


class OwnAddressError(OSError):
    def __init__(self) -> None:
        super().__init__("this address is the proxy's own")


class NameTimeoutError(OSError):
    def __init__(self) -> None:
        super().__init__("the look-up of the name took too long")


def _port_range(value: int | str) -> range:
    first, _, last = str(value).partition("-")
    return range(int(first), int(last or first) + 1)


def host_pattern(pattern: str) -> str:
    return _in_one_spelling(pattern.strip().lower().rstrip("."))


def is_matched(host: str, pattern: str) -> bool:
    """Return whether a canonical host matches a `host_pattern`; wildcards match no addresses."""
    if pattern.startswith("*."):
        return host.endswith(pattern[1:]) and _literal(host) is None
    return _in_one_spelling(host) == pattern


def _in_one_spelling(host: str) -> str:
    literal = _literal(host)
    return host if literal is None else str(_unmap(literal))


@lru_cache(maxsize=1024)
def _literal(host: str) -> IpAddress | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None


_LOOPBACK: Final = (ipaddress.ip_address("127.0.0.1"), ipaddress.ip_address("::1"))


@lru_cache(maxsize=1024)
def _addresses_of(host: str) -> tuple[IpAddress, ...]:
    literal = _literal(host)
    if literal is not None:
        return (literal,)
    return _LOOPBACK if host == "localhost" or host.endswith(".localhost") else ()


@lru_cache(maxsize=1024)
def _is_permitted(policy: AddressPolicy, host: str) -> bool:
    addresses = _addresses_of(host)
    return (
        not any(is_matched(host, pattern) for pattern in policy.deny_hosts)
        and not (policy.allow_hosts and not any(is_matched(host, pattern) for pattern in policy.allow_hosts))
        and not (addresses and all(is_forbidden(address, policy.exempt) for address in addresses))
    )


# At the socket


class GuardedResolver(AbstractResolver):
    """A resolver with a time limit that drops refused addresses (docs/faults.md rows 12, 21)."""

    def __init__(self, inner: AbstractResolver, policy: AddressPolicy, *, timeout_seconds: float) -> None:
        self._inner = inner
        self._policy = policy
        self._timeout_seconds = timeout_seconds

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        """Return a name's permitted addresses.

        Raises:
            NameTimeoutError: No reply in time.
            OwnAddressError: None is permitted; one is the proxy's own.
            TargetRefusedError: None is permitted.
        """
        try:
            async with asyncio.timeout(self._timeout_seconds):
                found = await self._inner.resolve(host, port, family)
        except TimeoutError as exc:
            raise NameTimeoutError from exc
        except OSError as exc:
            if _is_dns_timeout(exc.__cause__):
                raise NameTimeoutError from exc
            raise
        usable: list[ResolveResult] = []
        refusal: OSError = OSError("the name has no address")
        for result in found:
            try:
                self._policy.check_address(result["host"], port)
            except (OwnAddressError, TargetRefusedError) as exc:
                refusal = refusal if isinstance(refusal, OwnAddressError) else exc
            else:
                usable.append(result)
        if not usable:
            raise refusal
        return usable

    async def close(self) -> None:
        await self._inner.close()


def _is_dns_timeout(cause: BaseException | None) -> bool:
    return (
        isinstance(cause, aiodns.error.DNSError)
        and bool(cause.args)
        and cause.args[0] == aiodns.error.ARES_ETIMEOUT
    )


_AddressInfo = tuple[Any, ...]


def guarded_socket_factory(
    policy: AddressPolicy, make_socket: Callable[[int, int, int], socket.socket] = socket.socket
) -> Callable[[_AddressInfo], socket.socket]:
    def factory(info: _AddressInfo) -> socket.socket:
        family, kind, protocol, _, address = info
        if family not in (socket.AF_INET, socket.AF_INET6):
            raise TargetRefusedError
        # aiohttp and aiohappyeyeballs pass this OSError on as the cause.
        policy.check_address(address[0], address[1])
        return leave_kept(make_socket(family, kind, protocol))

    return factory


# Addresses that must not be asked: this machine's, its neighbours', nobody's


def is_forbidden(address: IpAddress, exempt: Iterable[IpNetwork] = ()) -> bool:
    """Return whether no connection may go to an address outside `exempt`.

    `ipaddress.is_global` is not enough: see `REFUSED_NETWORKS` and `_ISATAP`.
    """
    if isinstance(address, ipaddress.IPv6Address) and address.scope_id is not None:
        return True
    address = _unmap(address)
    if any(address in network for network in exempt):
        return False
    # `is_global` accepts multicast, NAT64, site-local, IPv4-compatible and ISATAP addresses.
    if any(address in network for network in _REFUSED):
        return True
    return isinstance(address, ipaddress.IPv6Address) and (
        address not in _GLOBAL_IPV6 or int(address) >> 32 & 0xFFFF_FFFF in _ISATAP
    )


def _unmap(address: IpAddress) -> IpAddress:
    """Return the IPv4 address inside a mapped one (RFC 4291, section 2.5.5.2), else the address."""
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return mapped or address


GLOBAL_IPV6: Final = "2000::/3"
"""All global unicast addresses (RFC 4291, section 2.4)."""

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

_GLOBAL_IPV6: Final = ipaddress.IPv6Network(GLOBAL_IPV6)
_REFUSED: Final = tuple(map(ipaddress.ip_network, REFUSED_NETWORKS))
_ISATAP: Final = (0x0000_5EFE, 0x0200_5EFE)  # RFC 5214, section 6.1: an IPv4 address follows
