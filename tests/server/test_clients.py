"""wholefeed.server.clients: client addresses, rates, sessions and signatures."""

from __future__ import annotations

import base64
import hashlib
import hmac

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wholefeed.server.clients import (
    UNIX,
    AccessVerdict,
    Buckets,
    TrustedProxies,
    form_proof,
    is_form_proof,
    is_good_session,
    issue_session,
    sign,
    verify,
)

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
    """Row 80: a forged X-Forwarded-For changes no client's address; IPv6 counts by its /64."""
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
    """Row 80: "unix:" declares all users of the socket reverse proxies."""
    trusted = TrustedProxies(believed)
    assert trusted.client(UNIX, forwarded_for) == client
    assert trusted.peer(UNIX).is_believed is ("unix:" in believed)
    assert not trusted.peer("").is_believed
    assert trusted.client("", forwarded_for) == "unknown"


def test_a_minute_s_worth_may_be_asked_at_once_and_then_evenly() -> None:
    """Row 80: after its minute's worth, a client is told how long to wait."""
    buckets = Buckets(per_minute=4)
    assert [buckets.take("a", 100.0) for _ in range(4)] == [0.0] * 4
    assert buckets.take("a", 100.0) == pytest.approx(15)
    assert buckets.take("a", 110.0) == pytest.approx(5)
    assert buckets.take("a", 115.0) == 0
    assert buckets.take("a", 115.0) == pytest.approx(15)


def test_those_who_asked_longest_ago_are_forgotten() -> None:
    """Row 80: the number of counted clients is bounded, and recent ones stay."""
    buckets = Buckets(per_minute=1, max_clients=2)
    for client in "abc":
        buckets.take(client, 0.0)
    assert buckets.take("c", 0.0) > 0
    assert buckets.take("a", 0.0) == 0


@given(st.integers(1, 1000), st.lists(st.floats(0, 30), max_size=300))
def test_no_minute_sees_more_than_twice_the_rate(per_minute: int, pauses: list[float]) -> None:
    """A full bucket and its refill are twice the rate."""
    buckets, now, granted = Buckets(per_minute), 0.0, []
    for pause in pauses:
        now += pause
        wait_seconds = buckets.take("a", now)
        assert 0 <= wait_seconds <= 60 / per_minute + 1e-3
        now += wait_seconds
        if wait_seconds:
            assert buckets.take("a", now) == 0
        granted.append(now)
    for start in granted:
        assert sum(start <= each < start + 60 for each in granted) <= 2 * per_minute


TOKEN = "a token for readers"
NOW = 1_700_000_000


def test_a_session_is_an_instant_and_its_mac_and_not_the_token() -> None:
    """A stolen cookie file does not reveal the token."""
    mac = hmac.new(TOKEN.encode(), b"wholefeed session 1\n1700000060", hashlib.sha256).digest()
    session = issue_session(TOKEN, expires_at=NOW + 60)
    assert session == f"1700000060.{base64.urlsafe_b64encode(mac).decode().rstrip('=')}"
    assert TOKEN not in session


def test_nobody_makes_a_login_last_longer() -> None:
    """The signature covers the instant."""
    _, _, mac = issue_session(TOKEN, expires_at=NOW + 60).partition(".")
    assert not is_good_session(f"{NOW + 999}.{mac}", TOKEN, NOW)


@given(st.text(max_size=80))
def test_no_text_is_a_session_or_a_proof(text: str) -> None:
    """Any text is judged, and nothing raises."""
    assert not is_good_session(text, TOKEN, NOW)
    assert not is_form_proof(text, "1.a", TOKEN)


def test_the_proof_of_a_form_belongs_to_one_session_and_is_no_session() -> None:
    """No cookie can be made of it."""
    mine, other = issue_session(TOKEN, expires_at=NOW + 60), issue_session(TOKEN, expires_at=NOW + 61)
    proof = form_proof(mine, TOKEN)
    assert is_form_proof(proof, mine, TOKEN)
    assert not is_form_proof(proof, other, TOKEN)
    assert not is_good_session(f"{NOW + 60}.{proof}", TOKEN, NOW)


URL = "http://example.org/feed?a=1"
KEYS = ("the newest of the keys", "the one before it")


def test_a_mark_is_what_the_documentation_says() -> None:
    """Anybody must be able to make one: HMAC-SHA256 (RFC 2104) in base64url without padding."""
    text = f"wholefeed feed 1\n1800000000\n{URL}"
    digest = hmac.new(KEYS[0].encode(), text.encode(), hashlib.sha256).digest()
    expected = base64.urlsafe_b64encode(digest).decode().rstrip("=")
    assert sign(URL, KEYS, expires_at=1_800_000_000) == f"{expected}.1800000000"


def test_the_expiry_cannot_be_changed_or_taken_away() -> None:
    """Row 80: the holder of a signed URL cannot make it last longer."""
    mark = sign(URL, KEYS, expires_at=NOW)
    mac = mark.partition(".")[0]
    for forged in (mac, f"{mac}.{NOW + 1000}", f"{mac}.0{NOW}", f"{mac}.", f"{mac}.{NOW}.", f" {mark}"):
        assert verify(URL, forged, KEYS, NOW - 1) is AccessVerdict.BAD, forged
    assert verify(URL, f"{sign(URL, KEYS)}.{NOW + 1}", KEYS, NOW) is AccessVerdict.BAD


def test_every_character_of_a_mark_counts() -> None:
    """The last character of 43 has two spare bits."""
    mark = sign(URL, KEYS)
    for place, character in enumerate(mark):
        for other in "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_":
            if other != character:
                forged = mark[:place] + other + mark[place + 1 :]
                assert verify(URL, forged, KEYS, NOW) is AccessVerdict.BAD


@given(st.text())
def test_nothing_else_is_a_mark_and_nothing_raises(mark: str) -> None:
    """Row 80: no other text passes for a signature."""
    assert verify(URL, mark, KEYS, NOW) is AccessVerdict.BAD


@given(st.tuples(st.text("/a1", min_size=1), st.none() | st.integers(1, 10**12 - 1)), st.data())
def test_two_grants_have_two_marks(grant: tuple[str, int | None], data: st.DataObject) -> None:
    """The instant cannot be read as part of the URL, nor the other way round."""
    other = data.draw(st.tuples(st.text("/a1", min_size=1), st.none() | st.integers(1, 10**12 - 1)))
    marks = {sign(url, KEYS, expires_at=expires_at).partition(".")[0] for url, expires_at in (grant, other)}
    assert len(marks) == len({grant, other})


def test_a_quiet_minute_fills_the_bucket_and_no_more() -> None:
    """Row 80: after any quiet time, a client has one minute's worth at once."""
    buckets = Buckets(per_minute=2)
    for now in (0.0, 1000.0):
        assert [buckets.take("a", now) > 0 for _ in range(3)] == [False, False, True]
