"""wholefeed.fetch.guard: which addresses must not be asked."""

from __future__ import annotations

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wholefeed.fetch.guard import IpAddress, is_forbidden

LOOPBACK = (ipaddress.ip_network("127.0.0.0/8"),)

FORBIDDEN = {
    "row 1": ["127.0.0.1", "127.255.255.254"],
    "row 2": [
        *("10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1", "100.64.0.1", "198.18.0.1"),
        *("198.19.255.255", "192.0.0.8", "192.0.2.1", "198.51.100.1", "203.0.113.1", "192.88.99.1"),
        *("192.31.196.1", "192.52.193.1", "192.175.48.1"),
    ],
    "row 3": ["169.254.169.254", "fd00:ec2::254", "168.63.129.16", "100.100.100.200"],
    "row 4": ["0.0.0.0", "::", "255.255.255.255", "224.0.0.1", "239.1.2.3", "240.0.0.1"],
    "row 5": ["::1", "fc00::1", "fdff::1", "fe80::1", "fec0::1", "ff02::1", "2001:db8::1", "3fff::1"],
    "row 6": ["::ffff:127.0.0.1", "::ffff:7f00:1", "::ffff:10.0.0.1"],
    "row 7": [
        *("::127.0.0.1", "64:ff9b::7f00:1", "64:ff9b:1::1", "2002:7f00:1::", "2001:0:1::1", "4000::1"),
        *("2606:4700::5efe:7f00:1", "2606:4700::200:5efe:7f00:1"),
    ],
    "row 10": ["fe80::1%lo", "2606:4700::1%eth0"],
}
PUBLIC = [
    *("1.1.1.1", "93.184.215.14", "172.15.0.1", "172.32.0.1", "100.128.0.1", "168.63.129.17"),
    *("223.255.255.255", "2606:4700::1111", "2001:4860:4860::8888", "2a00:1450::1", "::ffff:1.1.1.1"),
]


@pytest.mark.parametrize(("row", "text"), [(row, text) for row, texts in FORBIDDEN.items() for text in texts])
def test_the_deny_table_refuses(row: str, text: str) -> None:
    """docs/faults.md rows 1 to 7, 10; docs/design.md#the-guard."""
    assert is_forbidden(ipaddress.ip_address(text)), row


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
