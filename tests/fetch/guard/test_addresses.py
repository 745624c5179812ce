"""wholefeed.fetch.guard: which targets may be connected to.

Nothing here opens a socket or asks a name server.
"""

from __future__ import annotations

import socket

import aiodns
import pytest

from tests.fetchers import Names, SilentNames, SocketSpy
from wholefeed.config.tables import FetchConfig
from wholefeed.fetch.guard import (
    AddressPolicy,
    GuardedResolver,
    NameTimeoutError,
    OwnAddressError,
    TargetRefusedError,
    guarded_socket_factory,
)


def is_refused(policy: AddressPolicy, host: str, port: int = 443) -> bool:
    try:
        policy.check_target(host, port)
    except TargetRefusedError:
        return True
    return False


@pytest.mark.parametrize("host", ["localhost", "a.localhost", "a.b.localhost", "127.0.0.1", "::1"])
def test_names_and_literals_of_this_machine_are_refused_before_a_look_up(host: str) -> None:
    """docs/faults.md row 1."""
    assert is_refused(AddressPolicy(), host)


def test_localhost_is_allowed_where_loopback_is() -> None:
    """Row 1: fetch.allow_networks with 127/8 opens `localhost` too; names that only begin so are public
    anyway."""
    policy = AddressPolicy.from_config(FetchConfig(allow_networks=("127.0.0.0/8",)))
    assert not is_refused(policy, "localhost")
    assert not is_refused(policy, "127.0.0.1")
    assert not is_refused(AddressPolicy(), "localhost.example.org")


@pytest.mark.parametrize("port", [1, 22, 25, 79, 81, 442, 444, 1023, 65536])
def test_other_ports_are_refused(port: int) -> None:
    """docs/faults.md row 18."""
    assert is_refused(AddressPolicy.from_config(FetchConfig()), "example.org", port)


@pytest.mark.parametrize("port", [80, 443, 1024, 8080, 65535])
def test_the_ports_of_the_configuration_are_allowed(port: int) -> None:
    """docs/faults.md row 18."""
    assert not is_refused(AddressPolicy.from_config(FetchConfig()), "example.org", port)
    assert is_refused(AddressPolicy.from_config(FetchConfig(ports=(70,))), "example.org", port)


def test_only_allowed_hosts_are_asked_where_some_are_named() -> None:
    """config.example.toml: fetch.allow_hosts."""
    policy = AddressPolicy.from_config(FetchConfig(allow_hosts=("example.org", "*.example.net")))
    allowed = ["example.org", "a.example.net", "a.b.example.net"]
    refused = ["www.example.org", "example.net", "badexample.net", "example.org.evil.example"]
    assert [host for host in allowed + refused if not is_refused(policy, host)] == allowed


def test_denied_hosts_are_never_asked() -> None:
    """config.example.toml: fetch.deny_hosts; it outranks allow_hosts."""
    policy = AddressPolicy.from_config(
        FetchConfig(allow_hosts=("*.example.net",), deny_hosts=("bad.example.net",))
    )
    assert is_refused(policy, "bad.example.net")
    assert not is_refused(policy, "good.example.net")


@pytest.mark.parametrize("written", ["2606:4700::dead:0", "2606:4700:0:0::DEAD:0000", "93.184.215.66"])
@pytest.mark.parametrize("address", ["2606:4700::dead:0", "93.184.215.66", "::ffff:93.184.215.66"])
def test_a_denied_address_is_denied_however_it_is_written_and_reached(written: str, address: str) -> None:
    """config.example.toml: fetch.deny_hosts; also when a name leads there."""
    policy = AddressPolicy.from_config(FetchConfig(deny_hosts=(written,)))
    is_the_same = (":" in written) == (address == "2606:4700::dead:0")
    assert is_refused(policy, address) == is_the_same
    if is_the_same:
        with pytest.raises(TargetRefusedError):
            policy.check_address(address, 443)
    else:
        policy.check_address(address, 443)


def test_an_allowed_host_is_still_guarded_at_the_socket() -> None:
    """Row 2: fetch.allow_hosts opens no private address; that takes fetch.allow_networks."""
    policy = AddressPolicy.from_config(FetchConfig(allow_hosts=("10.0.0.1",)))
    assert is_refused(policy, "10.0.0.1")


def own(address: str, port: int) -> bool:
    return address in ("127.0.0.1", "93.184.215.14") and port == 8080


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "::ffff:7f00:1", "93.184.215.14"])
def test_the_proxy_itself_is_told_from_other_refused_targets(host: str) -> None:
    """docs/faults.md row 19."""
    with pytest.raises(OwnAddressError):
        AddressPolicy(own_addresses=own).check_target(host, 8080)
    if host != "localhost":
        with pytest.raises(OwnAddressError):
            AddressPolicy(own_addresses=own).check_address(host, 8080)


def test_another_port_of_this_machine_is_not_the_proxy() -> None:
    """docs/faults.md row 19."""
    assert is_refused(AddressPolicy(own_addresses=own), "127.0.0.1", 8081)
    assert not is_refused(AddressPolicy(own_addresses=own), "93.184.215.14", 8081)


def test_every_refusal_has_the_same_text() -> None:
    """docs/faults.md part A: the same body whatever the reason."""
    texts = set()
    for host, port in (("127.0.0.1", 80), ("example.org", 22), ("localhost", 80)):
        with pytest.raises(TargetRefusedError) as caught:
            AddressPolicy().check_target(host, port)
        texts.add(str(caught.value))
    assert len(texts) == 1


def info(address: str, port: int = 80, family: int | None = None) -> tuple[object, ...]:
    if family is None:
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
    return (family, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", (address, port))


@pytest.mark.parametrize("address", ["127.0.0.1", "::1", "10.1.2.3", "not an address", "fe80::1%2"])
def test_the_socket_factory_opens_none_for_a_refused_address(address: str) -> None:
    """docs/faults.md row 11; docs/design.md#the-guard: it sees every address that is really connected to."""
    spy = SocketSpy()
    with pytest.raises(TargetRefusedError):
        guarded_socket_factory(AddressPolicy(), spy)(info(address))
    assert spy.opened == 0


def test_the_socket_factory_knows_internet_addresses_only() -> None:
    """A Unix socket, or any other family than IPv4 and IPv6, is refused before one is opened."""
    spy = SocketSpy()
    with pytest.raises(TargetRefusedError):
        guarded_socket_factory(AddressPolicy(), spy)(info("93.184.215.14", family=socket.AF_UNIX))
    assert spy.opened == 0


def test_the_socket_factory_opens_one_for_a_public_address() -> None:
    """The guard lets a public address through to a real socket; else no feed could be fetched."""
    spy = SocketSpy()
    with pytest.raises(OSError, match="opens no socket"):
        guarded_socket_factory(AddressPolicy(), spy)(info("93.184.215.14"))
    assert spy.opened == 1


def test_behind_a_proxy_of_the_operators_any_address_will_do() -> None:
    """config.example.toml: fetch.proxy."""
    AddressPolicy().behind_proxy().check_address("10.0.0.1", 3128)


def guarded(names: Names, *, timeout_seconds: float = 5.0) -> GuardedResolver:
    return GuardedResolver(names, AddressPolicy(own_addresses=own), timeout_seconds=timeout_seconds)


async def test_a_name_keeps_its_public_addresses_only() -> None:
    """docs/faults.md row 12."""
    names = Names({"mixed.example": ("10.0.0.1", "93.184.215.15", "::1", "2606:4700::1")})
    found = await guarded(names).resolve("mixed.example", 80)
    assert [result["host"] for result in found] == ["93.184.215.15", "2606:4700::1"]


async def test_a_name_with_private_addresses_only_is_refused() -> None:
    """docs/faults.md row 12."""
    with pytest.raises(TargetRefusedError):
        await guarded(Names({"inside.example": ("10.0.0.1", "fd00::1")})).resolve("inside.example", 80)


async def test_a_name_of_the_proxy_itself_is_told() -> None:
    """docs/faults.md row 19."""
    with pytest.raises(OwnAddressError):
        await guarded(Names({"me.example": ("127.0.0.1", "10.0.0.1")})).resolve("me.example", 8080)


async def test_a_name_without_an_address_is_an_oserror() -> None:
    """docs/faults.md row 21."""
    with pytest.raises(OSError, match="no such name") as caught:
        await guarded(Names()).resolve("nowhere.example", 80)
    assert not isinstance(caught.value, TargetRefusedError | NameTimeoutError)


async def test_an_answer_without_addresses_is_no_refusal() -> None:
    """Row 21: a name without addresses is an error of the name, not told as a forbidden target."""
    with pytest.raises(OSError, match="no address") as caught:
        await guarded(Names({"empty.example": ()})).resolve("empty.example", 80)
    assert not isinstance(caught.value, TargetRefusedError)


async def test_a_slow_look_up_is_given_up() -> None:
    """docs/faults.md row 21."""
    with pytest.raises(NameTimeoutError):
        await guarded(SilentNames(), timeout_seconds=0.02).resolve("slow.example", 80)


async def test_name_servers_that_do_not_answer_are_a_timeout() -> None:
    """docs/faults.md row 21: what aiohttp's aiodns resolver raises then."""
    given_up = OSError(None, "timed out")
    given_up.__cause__ = aiodns.error.DNSError(aiodns.error.ARES_ETIMEOUT, "timed out")
    with pytest.raises(NameTimeoutError):
        await guarded(Names({"slow.example": given_up})).resolve("slow.example", 80)
