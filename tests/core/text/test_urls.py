"""wholefeed.core.text.urls: a URL's meaning, its document, and the part that may be shown."""

from __future__ import annotations

from contextlib import suppress
from urllib.parse import urljoin, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wholefeed.core.text.urls import (
    MAX_URL_CHARACTERS,
    UrlError,
    canonical_url,
    document_key,
    host_of,
    is_fetchable,
    is_http,
    resolve,
    safe_url,
    same_document,
    without_credentials,
)

BASE = "http://a/b/c/d;p?q"


@given(st.from_regex(r"(/?[g.]+(/[g.]+)*/?)?(\?y/\.\./x)?(#s/\.\./x)?", fullmatch=True))
def test_resolves_as_the_specification_says(reference: str) -> None:
    """R11; RFC 3986, 5.2.4 and 5.4."""
    assert resolve(BASE, reference) == urljoin(BASE, reference)


@pytest.mark.parametrize(
    ("base", "reference", "target"),
    [
        (BASE, "g:h", "g:h"),
        (BASE, "//g", "http://g"),
        (BASE, "http:g", "http://a/b/c/g"),
        (BASE, "/g//../h;x=1", "http://a/g/h;x=1"),
        ("http://a", "g", "http://a/g"),
        ("http://a/x", "g?", "http://a/g?"),
        (" http://a/x\n", "\n\t g \r\n", "http://a/g"),
        ("http://a/x", "b c.xml", "http://a/b%20c.xml"),
        ("http://a/x", "ar\nchive", "http://a/archive"),
        ("urn:x", "HTTP://b/x", "HTTP://b/x"),
        ("https://a/x", "//b:8080/y", "https://b:8080/y"),
        ("http://a/x", "file:///etc/passwd", "file:///etc/passwd"),
        ("http://a/x", "/ä?ö", "http://a/ä?ö"),
    ],
)
def test_resolves_what_people_write(base: str, reference: str, target: str) -> None:
    """R11; RFC 3986 §5: blanks, line breaks, other cases and missing paths resolve as in browsers."""
    assert resolve(base, reference) == target


@pytest.mark.parametrize(
    ("base", "reference"),
    [
        ("", "g"),
        ("/only/a/path", "g"),
        ("http://a/", "http://"),
        ("http://a/", "http://b:port/"),
        ("http://a/", "http://[::1/"),
        ("http://a/", "//b\\@c/"),
        ("http://a/", "//b\u2100c/"),
        ("http://a/", "http://[b]/"),
        ("http://a/", "b\x00c"),
        ("http://a/", "b\ufffec"),
    ],
)
def test_raises_where_there_is_no_usable_target(base: str, reference: str) -> None:
    """XML 1.0, section 2.2: resolved URLs go out in documents, also those of header fields."""
    with pytest.raises(ValueError, match="expected"):
        resolve(base, reference)


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("http://a", True),
        ("http://", False),
        ("http://a:b/", False),
        ("http://\u00e4/", True),
        ("http://[::1]/", True),
        ("ftp://a/", False),
        ("", False),
    ],
)
def test_tells_http_urls_from_others(url: str, expected: bool) -> None:
    """Row 16: http and https URLs with a host and a valid port."""
    assert is_http(url) is expected


@pytest.mark.parametrize(
    ("text", "url"),
    [
        ("http://o.test", "http://o.test/"),
        ("HTTP://O.Test:80/Feed#top", "http://o.test/Feed"),
        ("https://o.test:443/", "https://o.test/"),
        ("http://o.test:/", "http://o.test/"),
        ("http://o.test:0080/", "http://o.test/"),
        ("http://o.test./", "http://o.test/"),
        ("http://o.test/a/./b/../c", "http://o.test/a/c"),
        ("http://o.test/a/%2e%2E/c", "http://o.test/c"),
        ("http://o.test/%7euser/%2f%c3%a9", "http://o.test/~user/%2F%C3%A9"),
        ("http://o.test/é?q=ü", "http://o.test/%C3%A9?q=%C3%BC"),
        ("http://o.test/a|b?x[]=1", "http://o.test/a%7Cb?x%5B%5D=1"),
        ("http://o.test/100%?%zz", "http://o.test/100%25?%25zz"),
        ("http://o.test/a?", "http://o.test/a?"),
        ("http://my_blog.o.test/", "http://my_blog.o.test/"),
        ("http://ex%61mple.test/", "http://example.test/"),
        ("http://Bücher.test/", "http://xn--bcher-kva.test/"),
        ("http://faß.test/", "http://xn--fa-hia.test/"),
        ("http://\uff45\uff58。test/", "http://ex.test/"),
        ("http://[2001:DB8:0:0::1]:8080/", "http://[2001:db8::1]:8080/"),
        ("http://[::ffff:127.0.0.1]/", "http://[::ffff:7f00:1]/"),
    ],
)
def test_gives_every_spelling_one_canonical_form(text: str, url: str) -> None:
    """docs/faults.md row 27; RFC 3986, 6.2.2."""
    assert canonical_url(text) == url
    assert canonical_url(url) == url


@pytest.mark.parametrize("host", ["①②⑦.⓪.⓪.①", "127。0。0。1", "\uff11\uff12\uff17.0.0.1", "%31%32%37.0.0.1"])
def test_normalises_disguised_addresses_so_that_the_guard_sees_them(host: str) -> None:
    """docs/faults.md row 9: normalised, then refused."""
    assert canonical_url(f"http://{host}/") == "http://127.0.0.1/"


AMBIGUOUS = (
    "2130706433 127.1 0 127.0.0.1. 127.0.0.1%2e 0177.0.0.1 0X7F.1 127.0.0.0x1 256.0.0.1 1.2.3.4.5 ①②⑦.①"
)


@pytest.mark.parametrize("host", AMBIGUOUS.split())
def test_refuses_ambiguous_spellings_of_addresses(host: str) -> None:
    """docs/faults.md row 8."""
    with pytest.raises(UrlError, match="four decimal numbers") as caught:
        canonical_url(f"http://{host}/")
    assert caught.value.slug == "ambiguous-host"


@pytest.mark.parametrize("text", ["http://user:pw@o.test/", "http://user@o.test/", "http://@o.test/"])
def test_refuses_user_names_without_repeating_them(text: str) -> None:
    """docs/faults.md row 17."""
    with pytest.raises(UrlError) as caught:
        canonical_url(text)
    assert caught.value.slug == "userinfo-not-allowed"
    assert "pw" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("o.test/feed", "expected an http"),
        ("ftp://o.test/", "expected an http"),
        ("http:o.test", "with a host"),
        ("http:///feed", "with a host"),
        ("http://:80/", "with a host"),
        ("http://o.test:0/", "port from 1"),
        ("http://o.test:65536/", "port from 1"),
        ("http://o.test:٣/", "a host and perhaps a port"),
        ("http://[::1]x/", "a host and perhaps a port"),
        ("http://[fe80::1%25lo]/", "without a zone"),
        ("http://[1.2.3.4]/", "an IPv6 address"),
        ("http://a..b/", "host name"),
        ("http://-a.test/", "host name"),
        ("http://a%00b.test/", "host name"),
        ("http://a%ffb.test/", "host name"),
        ("http://" + "a" * 64 + ".test/", "host name"),
        ("http://" + "a." * 130 + "test/", "host name"),
        ("http://\u2028.test/", "host name"),
        ("http://o.test\\@evil.test/", "backslashes"),
        (" http://o.test/", "white space"),
        ("http://o.test/a\r\nHost: b", "control characters"),
        ("http://o.test/\ud800", "control characters"),
        ("http://o.test/\ufdd0", "control characters"),
        ("http://o.test/\U0010ffff", "control characters"),
        ("http://o.test/" + "a" * MAX_URL_CHARACTERS, "at most 2048 characters"),
        ("http://o.test/" + "é" * 1000, "at most 2048 characters, got 6014"),
    ],
)
def test_refuses_what_is_no_url_of_a_feed(text: str, message: str) -> None:
    """docs/faults.md rows 10, 16 and 20."""
    with pytest.raises(UrlError, match=message) as caught:
        canonical_url(text)
    assert caught.value.slug == "invalid-url"


def test_takes_a_url_of_exactly_the_greatest_length() -> None:
    """Row 20."""
    url = "http://o.test/" + "a" * (MAX_URL_CHARACTERS - 14)
    assert canonical_url(url) == url


@given(
    st.builds(
        "{}://{}{}/{}{}".format,
        st.sampled_from(["http", "HTTPS"]),
        st.sampled_from(["o.test", "O.TEST.", "bücher.test", "192.0.2.1", "[2001:DB8::1]", "a_b"]),
        st.sampled_from(["", ":", ":80", ":443", ":8080"]),
        st.text(st.sampled_from("a/.%2eEfF~ü?&=+[]|'é"), max_size=40),
        st.sampled_from(["", "?", "?%", "?a=%41%zz", "#f"]),
    )
)
def test_a_canonical_url_is_its_own_canonical_form(text: str) -> None:
    """docs/faults.md row 27."""
    url = canonical_url(text)
    assert canonical_url(url) == url
    assert url.isascii()


@given(st.text(max_size=60), st.text(max_size=60), st.sampled_from(["", "http://"]))
def test_any_text_is_refused_or_understood(a: str, b: str, start: str) -> None:
    """R11, R17, row 27: no unforeseen error, and a canonical spelling is its own."""
    a = start + a
    with suppress(UrlError):
        assert canonical_url(canonical_url(a)) == canonical_url(a)
    with suppress(ValueError):
        assert ":" in resolve(a, b)
    assert same_document(a, b) == same_document(b, a) == (document_key(a) == document_key(b))


@pytest.mark.fault("126")
@given(st.text(st.sampled_from("a1.:@[]/?#%\u2100\u2048\uff1a\uff20\uff0f\u00e4"), max_size=12))
def test_whatever_counts_as_http_can_be_taken_apart(text: str) -> None:
    """Row 126: accepted URLs go to urllib, which raises for some invalid hosts."""
    url = f"http://{text}"
    if is_http(url):
        parts = urlsplit(url)
        assert parts.hostname
        assert parts.port != 0


@given(st.from_regex(r"https?://[a-z0-9.:/?=&~_-]{1,40}", fullmatch=True))
def test_what_is_written_plainly_resolves_as_all_else_does(reference: str) -> None:
    """The fast way also refuses a missing host or an invalid port."""
    outcomes = []
    for written in (reference, f"{reference}#"):
        try:
            outcomes.append(resolve(BASE, written).removesuffix("#"))
        except ValueError:
            outcomes.append("")
    assert outcomes[0] == outcomes[1]


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        ("http://o.test/a", "HTTP://O.TEST:80/./a#x", True),
        ("http://o.test/a", "https://o.test/a", False),
        ("http://o.test/a", "http://o.test/a?", False),
        ("not a url", "not a url#x", True),
        ("http://u@o.test/", "http://o.test/", False),
    ],
)
def test_compares_documents_after_normalisation(a: str, b: str, expected: bool) -> None:
    """R17."""
    assert same_document(a, b) is expected


def test_names_the_host_alone_and_says_whether_a_document_can_have_a_url() -> None:
    """Rows 8, 16, 17: without port and brackets; fragments may be long."""
    assert host_of("https://O.test:8080/x") == "o.test"
    assert host_of("http://[2001:DB8::1]:8080/") == "2001:db8::1"
    assert not any(map(is_fetchable, ("ftp://o.test/", "", "http://u@o.test/", "http://127.1/")))
    assert is_fetchable("http://o.test/#" + "f" * 3000)


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("http://example.org/feed?token=secret", "http://example.org/feed?…"),
        ("http://example.org?token=secret", "http://example.org?…"),
        ("http://example.org/feed&token=secret", "http://example.org/feed?…"),
        ("http://example.org/feed&amp;signed=secret?a", "http://example.org/feed?…"),
        ("http://example.org/feed%26token%3Dsecret", "http://example.org/feed?…"),
        ("http://u:secret@example.org:81/feed?x#y", "http://example.org:81/feed?…"),
        ("http://example.org/a#secret?secret", "http://example.org/a"),
        ("https://medium.com:443/@ann/feed@x", "https://medium.com:443/@ann/feed@x"),
        ("/@ann/feed", "/@ann/feed"),
        ("http://u:secret/secret@x@example.org/feed", "http://example.org/feed"),
        ("not a url", "not a url"),
        ("http:u:secret@example.org/feed", "example.org/feed"),
        ("http:/u:secret@example.org/feed", "http:/example.org/feed"),
        ("http:///u:secret@example.org/feed", "http:///example.org/feed"),
        ("http:\\\\u:secret@example.org/feed", "http:\\\\example.org/feed"),
    ],
)
def test_a_url_is_shown_without_credentials_and_query(url: str, shown: str) -> None:
    """docs/design.md#fetching: never credentials, never a full query string."""
    assert safe_url(url) == shown


def test_credentials_go_where_the_query_stays_and_what_is_long_is_cut() -> None:
    """Row 17: in messages and log lines, even with @ in the query."""
    url = "http://u:p@example.org/?q=a@b"
    assert safe_url(url, keeps_query=True) == without_credentials(url) == "http://example.org/?q=a@b"
    for keeps_query in (False, True):
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
    """docs/design.md#fetching: for any name, and any text after the first characters."""
    for password in ("S", f"S{rest}", f"{name}S"):
        url = f"{start}{name}:{password}@{host}{path}"
        assert "S" not in without_credentials(url)
        assert "S" not in safe_url(url)
        assert "S" not in safe_url(url, keeps_query=True)


@given(st.sampled_from(["http://", "https://", "//"]), _HOSTS, _PATHS, st.text("ab@:/", max_size=6))
def test_a_url_without_credentials_stays_whole(start: str, host: str, path: str, query: str) -> None:
    """Public parts stay, including an `@` in the path."""
    url = f"{start}{host}{path}"
    assert (
        without_credentials(f"{url}?{query}")
        == safe_url(f"{url}?{query}", keeps_query=True)
        == f"{url}?{query}"
    )
    assert safe_url(f"{url}?{query}") == f"{url}?…"


@given(st.text())
def test_nothing_raises(text: str) -> None:
    """Row 79: masking runs while errors are reported, so it never fails."""
    for url in (text, f"http://{text}"):
        assert safe_url(safe_url(url)) == safe_url(url)
        assert without_credentials(without_credentials(url)) == without_credentials(url)
