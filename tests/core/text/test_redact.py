"""wholefeed.core.text.urls: what of a URL may be shown."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wholefeed.core.text.urls import safe_url, without_credentials


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("http://example.org/feed", "http://example.org/feed"),
        ("http://example.org/feed?token=secret", "http://example.org/feed?…"),
        ("http://example.org?token=secret", "http://example.org?…"),
        ("http://example.org/feed&token=secret", "http://example.org/feed?…"),
        ("http://example.org/feed&amp;signed=secret?a", "http://example.org/feed?…"),
        ("http://example.org/feed%26token%3Dsecret", "http://example.org/feed?…"),
        ("http://example.org/feed%3ftoken=secret", "http://example.org/feed?…"),
        ("http://u:secret@example.org:81/feed?x#y", "http://example.org:81/feed?…"),
        ("http://u:secret@x@example.org/", "http://example.org/"),
        ("http://example.org/a#secret?secret", "http://example.org/a"),
        ("https://medium.com/@ann/feed", "https://medium.com/@ann/feed"),
        ("https://medium.com:443/@ann/feed@x", "https://medium.com:443/@ann/feed@x"),
        ("http://[::1]:80/@ann", "http://[::1]:80/@ann"),
        ("/@ann/feed", "/@ann/feed"),
        ("http://u:secret/secret@x@example.org/feed", "http://example.org/feed"),
        ("not a url", "not a url"),
        ("u:secret@example.org/feed", "example.org/feed"),
        ("http:u:secret@example.org/feed", "example.org/feed"),
        ("http:/u:secret@example.org/feed", "http:/example.org/feed"),
        ("http:///u:secret@example.org/feed", "http:///example.org/feed"),
        ("http:\\\\u:secret@example.org/feed", "http:\\\\example.org/feed"),
    ],
)
def test_a_url_is_shown_without_credentials_and_query(url: str, shown: str) -> None:
    """docs/design.md#fetching: never credentials, never a query string in full."""
    assert safe_url(url) == shown


def test_a_url_keeps_its_query_where_only_credentials_go() -> None:
    """Row 17: a password is cut out of a URL, and nothing else of it, even with @ in the query."""
    assert without_credentials("http://u:p@example.org/?q=a@b#c") == "http://example.org/?q=a@b#c"


def test_a_message_shows_the_query() -> None:
    """A URL of 5,000 characters takes a bounded room in a log line."""
    assert safe_url("http://u:p@example.org/?q=a@b", keeps_query=True) == "http://example.org/?q=a@b"


@pytest.mark.parametrize("keeps_query", [False, True])
def test_a_long_url_is_cut(keeps_query: bool) -> None:
    """A log line keeps its length, whatever URL a publisher sends."""
    assert len(safe_url("http://example.org/" + "x" * 5000, keeps_query=keeps_query)) < 600


_STARTS = st.sampled_from(["http://", "https://", "HTTP:/", "http:", "//", "", "feed:", "\\\\"])
_PATHS = st.text("ab/@:.-", max_size=12).map(lambda text: f"/{text}")
_HOSTS = st.sampled_from(["o.test", "o.test:8080", "127.0.0.1", "[::1]", "[::1]:80", "localhost"])


@given(
    _STARTS,
    st.text(alphabet=st.characters(exclude_characters="S/\\?#"), min_size=1),
    st.text(alphabet=st.characters(exclude_characters="S?#@")),
    _HOSTS,
    _PATHS,
)
def test_no_password_is_ever_shown(start: str, name: str, rest: str, host: str, path: str) -> None:
    """docs/design.md#fetching: whatever the name, and whatever stands behind the password's first
    characters."""
    for password in ("S", f"S{rest}", f"{name}S"):
        url = f"{start}{name}:{password}@{host}{path}"
        assert "S" not in without_credentials(url)
        assert "S" not in safe_url(url)
        assert "S" not in safe_url(url, keeps_query=True)


@given(st.sampled_from(["http://", "https://", "//"]), _HOSTS, _PATHS, st.text("ab@:/", max_size=6))
def test_a_url_without_credentials_stays_whole(start: str, host: str, path: str, query: str) -> None:
    """What is no secret is shown as it is, an `@` in the path included."""
    url = f"{start}{host}{path}"
    assert (
        without_credentials(f"{url}?{query}")
        == safe_url(f"{url}?{query}", keeps_query=True)
        == f"{url}?{query}"
    )
    assert safe_url(f"{url}?{query}") == f"{url}?…"


@given(st.text())
def test_nothing_raises(text: str) -> None:
    """Row 79: masking any text for the log never fails, since it runs while errors are reported."""
    for url in (text, f"http://{text}"):
        assert safe_url(safe_url(url)) == safe_url(url)
        assert without_credentials(without_credentials(url)) == without_credentials(url)
