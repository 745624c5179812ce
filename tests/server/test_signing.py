"""Signed feed URLs: what a mark grants, and to what it does not."""

from __future__ import annotations

import base64
import hashlib
import hmac

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wholefeed.server.clients import Verdict, sign, verify

URL = "http://example.org/feed?a=1"
KEYS = ("the newest of the keys", "the one before it")
NOW = 1_700_000_000


def test_a_mark_is_what_the_documentation_says() -> None:
    """Anybody must be able to make one: HMAC-SHA256 (RFC 2104) in base64url without padding."""
    text = f"wholefeed feed 1\n1800000000\n{URL}"
    digest = hmac.new(KEYS[0].encode(), text.encode(), hashlib.sha256).digest()
    expected = base64.urlsafe_b64encode(digest).decode().rstrip("=")
    assert sign(URL, KEYS, expires_at=1_800_000_000) == f"{expected}.1800000000"


@pytest.mark.parametrize("expires_at", [None, NOW + 1])
def test_a_mark_is_good_for_its_feed_and_no_other(expires_at: int | None) -> None:
    """Row 80: a signed URL opens its feed; with another URL in its place it is bad."""
    mark = sign(URL, KEYS, expires_at=expires_at)
    assert verify(URL, mark, KEYS, NOW) is Verdict.VALID
    assert verify(f"{URL}1", mark, KEYS, NOW) is Verdict.BAD


def test_the_first_key_signs_and_every_key_verifies() -> None:
    """Rotation: marks of the old key are good until it is taken out."""
    old = sign(URL, KEYS[1:])
    assert sign(URL, KEYS) == sign(URL, KEYS[:1]) != old
    assert verify(URL, old, KEYS, NOW) is Verdict.VALID
    assert verify(URL, old, KEYS[:1], NOW) is Verdict.BAD
    assert verify(URL, old, (), NOW) is Verdict.BAD


def test_a_mark_expires_at_its_instant() -> None:
    """Row 80: a signature is valid up to its instant, and expired from then on."""
    mark = sign(URL, KEYS, expires_at=NOW)
    assert verify(URL, mark, KEYS, NOW - 0.5) is Verdict.VALID
    assert verify(URL, mark, KEYS, NOW) is Verdict.EXPIRED


def test_the_expiry_cannot_be_changed_or_taken_away() -> None:
    """Row 80: whoever holds a signed URL cannot make it last longer."""
    mark = sign(URL, KEYS, expires_at=NOW)
    mac = mark.partition(".")[0]
    for forged in (mac, f"{mac}.{NOW + 1000}", f"{mac}.0{NOW}", f"{mac}.", f"{mac}.{NOW}.", f" {mark}"):
        assert verify(URL, forged, KEYS, NOW - 1) is Verdict.BAD, forged
    assert verify(URL, f"{sign(URL, KEYS)}.{NOW + 1}", KEYS, NOW) is Verdict.BAD


def test_every_character_of_a_mark_counts() -> None:
    """The last character of 43 has two bits to spare: another one with the same bits is another mark."""
    mark = sign(URL, KEYS)
    for place, character in enumerate(mark):
        for other in "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_":
            if other != character:
                forged = mark[:place] + other + mark[place + 1 :]
                assert verify(URL, forged, KEYS, NOW) is Verdict.BAD


@given(st.text())
def test_nothing_else_is_a_mark_and_nothing_raises(mark: str) -> None:
    """Row 80: no other text passes for a signature or makes the check fail with an error."""
    assert verify(URL, mark, KEYS, NOW) is Verdict.BAD


@given(st.tuples(st.text("/a1", min_size=1), st.none() | st.integers(1, 10**12 - 1)), st.data())
def test_two_grants_have_two_marks(grant: tuple[str, int | None], data: st.DataObject) -> None:
    """Nothing that belongs to the instant can be read as the URL's, nor the other way round."""
    other = data.draw(st.tuples(st.text("/a1", min_size=1), st.none() | st.integers(1, 10**12 - 1)))
    marks = {sign(url, KEYS, expires_at=expires_at).partition(".")[0] for url, expires_at in (grant, other)}
    assert len(marks) == len({grant, other})
