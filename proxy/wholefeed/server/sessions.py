"""Sessions of people who have logged in: what a browser keeps instead of the access token.

A session is an instant and the HMAC-SHA256 (RFC 2104) of a purpose and that instant, keyed with the access
token: nobody can make one who does not know the token, nobody reads the token out of it, and all of them
are worth nothing once the token is another one.

    session = issue(token, expires_at=1_800_000_000)        # "1800000000.q1f…Zs"
    is_good(session, token, now)                            # True
    proof = form_proof(session, token)                      # for the forms of pages that it is shown
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
from typing import Final

from wholefeed.core.text.dates import DAY_SECONDS

SESSION_SECONDS: Final = 30 * DAY_SECONDS
"""How long a login lasts."""

_PURPOSE: Final = "wholefeed session 1"
_FORM_PURPOSE: Final = "wholefeed form 1"
_SESSION: Final = re.compile(r"(?P<expires_at>[1-9][0-9]{0,11})\.(?P<mac>[A-Za-z0-9_-]{43})", re.ASCII)


def issue(token: str, *, expires_at: int) -> str:
    """Return a session.

    Args:
        token: The access token.
        expires_at: The instant, in epoch seconds, from which on it is worth nothing.
    """
    return f"{expires_at}.{_mac(token, _PURPOSE, str(expires_at))}"


def is_good(session: str, token: str, now: float) -> bool:
    """Whether it was issued for this token and has not expired. How long it takes tells nothing of the token.

    Args:
        session: As it came with the request.
        token: The access token; none is good for an empty one.
        now: Epoch seconds.
    """
    found = _SESSION.fullmatch(session)
    if found is None or not token:
        return False
    expected = _mac(token, _PURPOSE, found["expires_at"])
    return hmac.compare_digest(found["mac"], expected) and now < int(found["expires_at"])


def form_proof(session: str, token: str) -> str:
    """Return what a form sends along to show that it stands on a page of ours, made for this session."""
    return _mac(token, _FORM_PURPOSE, session)


def is_form_proof(given: str, session: str, token: str) -> bool:
    """Whether a form was sent from a page that was made for this session."""
    expected = form_proof(session, token)
    return hmac.compare_digest(given.encode("utf-8", "surrogatepass"), expected.encode())


def _mac(token: str, purpose: str, text: str) -> str:
    digest = hmac.digest(token.encode(), f"{purpose}\n{text}".encode(), hashlib.sha256)
    return base64.urlsafe_b64encode(digest).decode("ascii").rstrip("=")
