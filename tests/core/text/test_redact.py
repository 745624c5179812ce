"""wholefeed.core.text.redact: what of a URL may be shown."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wholefeed.core.text.redact import safe_url, without_credentials


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("http://example.org/feed", "http://example.org/feed"),
        ("http://example.org/feed?token=secret", "http://example.org/feed?…"),
        ("http://example.org?token=secret", "http://example.org?…"),
        ("http://u:secret@example.org:81/feed?x#y", "http://example.org:81/feed?…"),
        ("http://u:secret@x@example.org/", "http://example.org/"),
        ("http://example.org/a#secret?secret", "http://example.org/a"),
        ("http://example.org/@a", "http://example.org/@a"),
        ("not a url", "not a url"),
        ("u:secret@example.org/feed", "example.org/feed"),
        ("http:u:secret@example.org/feed", "example.org/feed"),
        ("http:/u:secret@example.org/feed", "http:/example.org/feed"),
        ("http:///u:secret@example.org/feed", "http:///example.org/feed"),
        ("http:\\\\u:secret@example.org/feed", "http:\\\\example.org/feed"),
    ],
)
def test_a_url_is_shown_without_credentials_and_query(url: str, shown: str) -> None:
    """FAULTS, terms: never credentials, never a query string in full."""
    assert safe_url(url) == shown


def test_a_url_keeps_its_query_where_only_credentials_go() -> None:
    """Row 17: a password is cut out of a URL, and nothing else of it, even with @ in the query."""
    assert without_credentials("http://u:p@example.org/?q=a@b#c") == "http://example.org/?q=a@b#c"


def test_a_long_url_is_cut() -> None:
    """A URL of 5,000 characters takes a bounded room in a log line."""
    assert len(safe_url("http://example.org/" + "x" * 5000)) < 600


@given(st.text())
def test_nothing_raises(text: str) -> None:
    """Row 79: masking any text for the log never fails, since it runs while errors are reported."""
    safe_url(text)
    without_credentials(f"http://{text}")
