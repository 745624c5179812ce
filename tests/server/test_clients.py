"""Who asks, behind reverse proxies that are believed and others."""

from __future__ import annotations

import pytest

from wholefeed.server.clients import UNIX, TrustedProxies, last_value

TRUSTED = TrustedProxies(("10.0.0.0/8", "fd00::/8"))


@pytest.mark.parametrize(
    ("peer", "forwarded_for", "client"),
    [
        ("203.0.113.9", [], "203.0.113.9"),
        ("203.0.113.9", ["198.51.100.1"], "203.0.113.9"),
        ("10.0.0.1", [], "10.0.0.1"),
        ("10.0.0.1", ["198.51.100.1"], "198.51.100.1"),
        ("10.0.0.1", ["192.0.2.66, 198.51.100.1, 10.0.0.2"], "198.51.100.1"),
        ("10.0.0.1", ["192.0.2.66", "198.51.100.1", "10.0.0.2 , 10.0.0.3"], "198.51.100.1"),
        ("10.0.0.1", ["10.0.0.7, 10.0.0.8"], "10.0.0.7"),
        ("10.0.0.1", ["192.0.2.66, unknown"], "10.0.0.1"),
        ("10.0.0.1", ["192.0.2.66, <script>, 10.0.0.2"], "10.0.0.2"),
        ("10.0.0.1", [""], "10.0.0.1"),
        ("10.0.0.1", ["198.51.100.1:4711"], "198.51.100.1"),
        ("::ffff:10.0.0.1", ["::ffff:198.51.100.1"], "198.51.100.1"),
        ("fd00::1", ["[2001:db8:1:2:3::4]:4711"], "2001:db8:1:2::/64"),
        ("2001:db8:1:2::9", [], "2001:db8:1:2::/64"),
        ("fe80::1%eth0", [], "fe80::/64"),
        (None, ["198.51.100.1"], "unknown"),
        ("", [], "unknown"),
    ],
)
def test_a_client_is_the_last_address_that_nobody_vouches_for(
    peer: str | None, forwarded_for: list[str], client: str
) -> None:
    """Row 80: a client cannot choose its address by a forged X-Forwarded-For; IPv6 counts by its /64."""
    assert TRUSTED.client(peer, forwarded_for) == client


@pytest.mark.parametrize(
    ("believed", "forwarded_for", "client"),
    [
        ((), [], "unix"),
        ((), ["198.51.100.1"], "unix"),
        (("10.0.0.0/8",), ["198.51.100.1"], "unix"),
        (("unix:",), [], "unix"),
        (("unix:",), ["nonsense"], "unix"),
        (("unix:",), ["192.0.2.66, 198.51.100.1"], "198.51.100.1"),
        (("unix:", "10.0.0.0/8"), ["192.0.2.66, 198.51.100.1, 10.0.0.2"], "198.51.100.1"),
        (("unix:",), ["192.0.2.66, 10.0.0.2"], "10.0.0.2"),
    ],
)
def test_who_connects_to_the_unix_socket_is_believed_only_on_request(
    believed: tuple[str, ...], forwarded_for: list[str], client: str
) -> None:
    """Row 80: who may open the socket is no reverse proxy yet; "unix:" says that all who do are."""
    trusted = TrustedProxies(believed)
    assert trusted.client(UNIX, forwarded_for) == client
    assert trusted.peer(UNIX).is_believed is ("unix:" in believed)
    assert not trusted.peer("").is_believed
    assert trusted.client("", forwarded_for) == "unknown"


def test_of_several_values_the_last_one_is_the_proxy_s_own() -> None:
    """Row 77: of several X-Forwarded-Host the nearest proxy's counts, not what the client sent."""
    assert last_value([]) == ""
    assert last_value(["evil.example, a.example"]) == "a.example"
    assert last_value(["evil.example", "a.example"]) == "a.example"
