"""Sessions: what a browser keeps instead of the token, and what it is worth."""

from __future__ import annotations

import base64
import hashlib
import hmac

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wholefeed.server.clients import form_proof, is_form_proof, is_good_session, issue_session

TOKEN = "a token for readers"
NOW = 1_700_000_000


def test_a_session_is_an_instant_and_its_mac_and_not_the_token() -> None:
    """What stands in a cookie file opens nothing else: the token cannot be read out of it."""
    mac = hmac.new(TOKEN.encode(), b"wholefeed session 1\n1700000060", hashlib.sha256).digest()
    session = issue_session(TOKEN, expires_at=NOW + 60)
    assert session == f"1700000060.{base64.urlsafe_b64encode(mac).decode().rstrip('=')}"
    assert TOKEN not in session


def test_nobody_makes_a_login_last_longer() -> None:
    """The instant is part of what is signed."""
    _, _, mac = issue_session(TOKEN, expires_at=NOW + 60).partition(".")
    assert not is_good_session(f"{NOW + 999}.{mac}", TOKEN, NOW)


@pytest.mark.parametrize(
    "session", ["", ".", "1.", "0.x", f"{NOW}", "x" * 9000, "1700000060.\u00e9" + "a" * 42]
)
def test_what_is_no_session_is_not_good(session: str) -> None:
    """Cookies are what clients like to send."""
    assert not is_good_session(session, TOKEN, NOW)


@given(st.text(max_size=80))
def test_no_text_is_a_session_or_a_proof(text: str) -> None:
    """Whatever is sent is judged, and nothing raises."""
    assert not is_good_session(text, TOKEN, NOW)
    assert not is_form_proof(text, "1.a", TOKEN)


def test_the_proof_of_a_form_belongs_to_one_session_and_is_no_session() -> None:
    """A form made for one login is worth nothing with another, and no cookie can be made of it."""
    mine, other = issue_session(TOKEN, expires_at=NOW + 60), issue_session(TOKEN, expires_at=NOW + 61)
    proof = form_proof(mine, TOKEN)
    assert is_form_proof(proof, mine, TOKEN)
    assert not is_form_proof(proof, other, TOKEN)
    assert not is_good_session(f"{NOW + 60}.{proof}", TOKEN, NOW)
