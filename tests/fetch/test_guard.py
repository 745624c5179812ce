"""wholefeed.fetch.guard: permitted targets of connections.

Nothing here opens a socket or asks a name server. tests/faults/test_spellings.py shows the whole table.
"""

from __future__ import annotations

import ipaddress
import socket

import aiodns
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fetchers import Names, SocketSpy
from wholefeed.config.tables import FetchConfig
from wholefeed.fetch.guard import (
    AddressPolicy,
    GuardedResolver,
    IpAddress,
    NameTimeoutError,
    TargetRefusedError,
    guarded_socket_factory,
    is_forbidden,
)

LOOPBACK = (ipaddress.ip_network("127.0.0.0/8"),)
PUBLIC = [
    *("1.1.1.1", "93.184.215.14", "172.15.0.1", "172.32.0.1", "100.128.0.1", "168.63.129.17"),
    *("223.255.255.255", "2606:4700::1111", "2001:4860:4860::8888", "2a00:1450::1", "::ffff:1.1.1.1"),
]


@pytest.mark.parametrize("text", PUBLIC)
def test_public_addresses_are_allowed(text: str) -> None:
    """Rows 2 to 5: addresses right beside the forbidden networks are public, and their feeds can be read."""
    assert not is_forbidden(ipaddress.ip_address(text))


@given(st.ip_addresses())
def test_nothing_that_is_not_global_is_allowed(address: IpAddress) -> None:
    """The table is at least as strict as `is_global` (docs/design.md#the-guard says why that alone is not
    enough)."""
    assert is_forbidden(address) or address.is_global


@given(st.ip_addresses(v=4))
def test_an_ipv4_address_is_judged_alike_when_it_is_mapped(address: ipaddress.IPv4Address) -> None:
    """docs/faults.md row 6."""
    mapped = ipaddress.IPv6Address((0xFFFF << 32) + int(address))
    assert is_forbidden(mapped, LOOPBACK) == is_forbidden(address, LOOPBACK)


def test_an_exempt_network_is_allowed_and_no_other() -> None:
    """config.example.toml: fetch.allow_networks."""
    assert not is_forbidden(ipaddress.ip_address("127.0.0.1"), LOOPBACK)
    assert not is_forbidden(ipaddress.ip_address("::ffff:127.0.0.1"), LOOPBACK)
    assert is_forbidden(ipaddress.ip_address("10.0.0.1"), LOOPBACK)
    assert is_forbidden(ipaddress.ip_address("::1"), LOOPBACK)
    assert not is_forbidden(ipaddress.ip_address("::1"), (ipaddress.ip_network("::1/128"),))


def is_refused(policy: AddressPolicy, host: str, port: int = 443) -> bool:
    try:
        policy.check_target(host, port)
    except TargetRefusedError:
        return True
    return False


def test_what_a_refused_port_is_told_with_maps_no_network() -> None:
    """docs/faults.md part A: the same for a refused host, too; the port is checked first."""
    policy = AddressPolicy.from_config(FetchConfig())
    for host in ("example.org", "10.0.0.1"):
        with pytest.raises(TargetRefusedError, match="port 25 is not allowed"):
            policy.check_target(host, 25)
    with pytest.raises(TargetRefusedError, match="this address is not allowed"):
        policy.check_target("10.0.0.1", 80)


@pytest.mark.parametrize("port", [1, 22, 25, 79, 81, 442, 444, 1023, 65536])
def test_other_ports_are_refused(port: int) -> None:
    """docs/faults.md row 18."""
    assert is_refused(AddressPolicy.from_config(FetchConfig()), "example.org", port)


@pytest.mark.parametrize("port", [80, 443, 1024, 8080, 65535])
def test_the_ports_of_the_configuration_are_allowed(port: int) -> None:
    """docs/faults.md row 18."""
    assert not is_refused(AddressPolicy.from_config(FetchConfig()), "example.org", port)
    assert is_refused(AddressPolicy.from_config(FetchConfig(ports=(70,))), "example.org", port)


@pytest.mark.parametrize("written", ["2606:4700::dead:0", "2606:4700:0:0::DEAD:0000", "93.184.215.66"])
@pytest.mark.parametrize("address", ["2606:4700::dead:0", "93.184.215.66", "::ffff:93.184.215.66"])
def test_a_denied_address_is_denied_however_it_is_written_and_reached(written: str, address: str) -> None:
    """config.example.toml: fetch.deny_hosts; including a name that leads there."""
    policy = AddressPolicy.from_config(FetchConfig(deny_hosts=(written,)))
    is_the_same = (":" in written) == (address == "2606:4700::dead:0")
    assert is_refused(policy, address) == is_the_same
    if is_the_same:
        with pytest.raises(TargetRefusedError):
            policy.check_address(address, 443)
    else:
        policy.check_address(address, 443)


def test_an_allowed_host_is_still_guarded_at_the_socket() -> None:
    """Row 2: fetch.allow_hosts opens no private address; only fetch.allow_networks does."""
    policy = AddressPolicy.from_config(FetchConfig(allow_hosts=("10.0.0.1",)))
    assert is_refused(policy, "10.0.0.1")


def own(address: str, port: int) -> bool:
    return address in ("127.0.0.1", "93.184.215.14") and port == 8080


def test_another_port_of_this_machine_is_not_the_proxy() -> None:
    """docs/faults.md row 19."""
    assert is_refused(AddressPolicy(own_addresses=own), "127.0.0.1", 8081)
    assert not is_refused(AddressPolicy(own_addresses=own), "93.184.215.14", 8081)


def info(address: str, port: int = 80, family: int | None = None) -> tuple[object, ...]:
    if family is None:
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
    return (family, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", (address, port))


@pytest.mark.parametrize("address", ["127.0.0.1", "::1", "10.1.2.3", "not an address", "fe80::1%2"])
def test_the_socket_factory_opens_none_for_a_refused_address(address: str) -> None:
    """docs/faults.md row 11; docs/design.md#the-guard: it sees every address really connected to."""
    spy = SocketSpy()
    with pytest.raises(TargetRefusedError):
        guarded_socket_factory(AddressPolicy(), spy)(info(address))
    assert spy.opened == 0


def test_the_socket_factory_knows_internet_addresses_only() -> None:
    """It refuses a Unix socket, or any other family than IPv4 and IPv6, before opening one."""
    spy = SocketSpy()
    with pytest.raises(TargetRefusedError):
        guarded_socket_factory(AddressPolicy(), spy)(info("93.184.215.14", family=socket.AF_UNIX))
    assert spy.opened == 0


def guarded(names: Names, *, timeout_seconds: float = 5.0) -> GuardedResolver:
    return GuardedResolver(names, AddressPolicy(own_addresses=own), timeout_seconds=timeout_seconds)


async def test_an_answer_without_addresses_is_no_refusal() -> None:
    """Row 21: it is an error of the name."""
    with pytest.raises(OSError, match="no address") as caught:
        await guarded(Names({"empty.example": ()})).resolve("empty.example", 80)
    assert not isinstance(caught.value, TargetRefusedError)


async def test_name_servers_that_do_not_answer_are_a_timeout() -> None:
    """docs/faults.md row 21: the exception of aiohttp's aiodns resolver."""
    given_up = OSError(None, "timed out")
    given_up.__cause__ = aiodns.error.DNSError(aiodns.error.ARES_ETIMEOUT, "timed out")
    with pytest.raises(NameTimeoutError):
        await guarded(Names({"slow.example": given_up})).resolve("slow.example", 80)
