"""Resolve, normalise and show URLs.

Only their syntax is read here. The socket decides which addresses may be connected to, `wholefeed.fetch.base`
which site a host belongs to.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Final, NamedTuple, Self
from urllib.parse import SplitResult, quote, unquote, urlsplit

import idna


class UrlError(ValueError):
    """A URL that no feed can have.

    Args:
        message: The expectation and the finding, for people; never a user name or password.
        slug: invalid-url, ambiguous-host or userinfo-not-allowed (docs/faults.md rows 8, 17, 20).
    """

    def __init__(self, message: str, slug: str = "invalid-url") -> None:
        super().__init__(message)
        self.slug = slug


def resolve(base: str, reference: str) -> str:
    """Return the absolute URL of a reference (RFC 3986, section 5.2; rule R11); its fragment stays.

    Outer white space, line breaks and tabs are dropped, and blanks become `%20`, as in clients. A repeated
    http(s) scheme without an authority is ignored (section 5.2.2, not strict).

    Raises:
        ValueError: The result is relative, has control characters, or is http(s) without a valid authority.
    """
    if _BELOW.fullmatch(reference):
        folder = _folder(base, "/./_" if reference.startswith("/") else "./_")
        if folder:
            return folder + reference.removeprefix("/")
    if _WHOLE.fullmatch(reference):
        return reference
    cleaned = reference.strip(" \t\r\n\f").translate({9: None, 10: None, 13: None}).replace(" ", "%20")
    if _CONTROLS.search(cleaned):
        raise ValueError(f"expected a URL without control characters, got {_format_text(cleaned)}")
    there = split(cleaned)
    if there.scheme is None or _repeats_scheme(there, base):
        there = _merge(_split_base(base), there)
    if there.scheme is None:
        raise ValueError(f"expected an absolute URL, got {_format_text(cleaned)} without a usable base")
    if there.scheme.lower() in DEFAULT_PORTS:
        _split_authority(there.authority, cleaned)
    return join_parts(there._replace(path=without_dot_segments(there.path)))


def resolve_or_empty(base: str, reference: str) -> str:
    """Return the result of `resolve`, or empty if there is none."""
    if not reference.strip(" \t\r\n"):
        return ""
    try:
        return resolve(base, reference)
    except ValueError:
        return ""


def without_feed_scheme(url: str) -> str:
    """Return a URL or reference without a leading `feed:`; `feed://host/path` becomes `//host/path`."""
    match = _FEED_SCHEME.match(url)
    return url if match is None else url[match.end() :]


_FEED_SCHEME: Final = re.compile(r"feed:(?://(?=https?:))?", re.IGNORECASE)

_SEGMENT: Final = r"[A-Za-z0-9_~-]+(?:\.[A-Za-z0-9_~-]+)*"
# References without dot segments or other special characters.
_BELOW: Final = re.compile(rf"/?{_SEGMENT}(?:/{_SEGMENT})*/?")


@lru_cache(maxsize=64)  # a document has few bases, and perhaps thousands of references
def _folder(base: str, reference: str) -> str:
    # `reference` is a name of one character in the folder or root; it is cut off again. Only http(s) bases
    # count.
    return resolve(base, reference)[:-1] if HTTP_AUTHORITY.match(base) else ""


# Absolute URLs without dot segments or other special characters.
_WHOLE: Final = re.compile(
    rf"https?://[A-Za-z0-9.-]+(?::[1-9][0-9]{{0,3}})?(?:/{_SEGMENT})*/?(?:\?[A-Za-z0-9_=&~-]*)?"
)


def _repeats_scheme(reference: Parts, base: str) -> bool:
    scheme = (reference.scheme or "").lower()
    return (
        scheme in DEFAULT_PORTS
        and reference.authority is None
        and (_split_base(base).scheme or "").lower() == scheme
    )


@lru_cache(maxsize=64)  # as `_folder`
def _split_base(base: str) -> Parts:
    return split(base.strip(" \t\r\n\f"))


def is_active(url: str) -> bool:
    """Return whether a browser would run or show a URL itself in place of fetching it.

    Browsers pass over blanks and control characters (URL Standard, "basic URL parser").
    """
    return _ACTIVE.match(_IGNORED.sub("", url[: MAX_URL_CHARACTERS + 1])) is not None


_IGNORED: Final = re.compile(r"[\x00-\x20\x7f]+")
_ACTIVE: Final = re.compile("(?:javascript|vbscript|livescript|data|blob):", re.IGNORECASE)


def is_http(url: str) -> bool:
    """Return whether the URL is http(s) with a host."""
    parts = split(url)
    if parts.scheme is None or parts.scheme.lower() not in DEFAULT_PORTS:
        return False
    try:
        _split_authority(parts.authority, url)
    except ValueError:
        return False
    return True


@lru_cache(maxsize=2048)  # each request and each step of a walk asks for the few that it is about
def canonical_url(text: str) -> str:
    """Return the one spelling of an http(s) URL that identifies its document (docs/faults.md row 27).

    Raises:
        UrlError: The URL cannot be fetched (docs/faults.md rows 8, 10, 16, 17, 20).
    """
    _check_characters(text)
    parts = split(text)
    scheme = (parts.scheme or "").lower()
    if scheme not in DEFAULT_PORTS:
        raise UrlError(f"expected an http(s) URL, got {_format_text(text)}")
    userinfo, host, port = _split_authority(parts.authority, text)
    if userinfo is not None:
        raise UrlError(
            "expected a URL without user name and password, got one with them: the operator of"
            " this proxy can set them for a host, by credentials_file below [[publisher]] in the"
            " configuration",
            "userinfo-not-allowed",
        )
    # Scheme and host are lower case, the host in ASCII (IDNA, UTS 46). Default port, fragment and dot
    # segments go; an empty path becomes "/". Percent-encoding is the least possible, with capital digits (RFC
    # 3986, section 6.2.2). The result is its own canonical form.
    authority = _canonical_host(host)
    if port is not None and port != DEFAULT_PORTS[scheme]:
        authority = f"{authority}:{port}"
    path = without_dot_segments(_requote(parts.path, PATH_CHARACTERS)) or "/"
    query = None if parts.query is None else _requote(parts.query, QUERY_CHARACTERS)
    url = join_parts(Parts(scheme, authority, path, query, None))
    if len(url) > MAX_URL_CHARACTERS:
        raise UrlError(f"expected at most {MAX_URL_CHARACTERS} characters, got {len(url)}")
    return url


MAX_URL_CHARACTERS: Final = 2048
"""Longest URL of a feed, or of a document of a chain (docs/faults.md row 20)."""
DEFAULT_PORTS: Final = {"http": 80, "https": 443}


def _check_characters(text: str) -> None:
    if len(text) > MAX_URL_CHARACTERS:
        raise UrlError(f"expected at most {MAX_URL_CHARACTERS} characters, got {len(text)}")
    if " " in text or "\\" in text or _CONTROLS.search(text):
        raise UrlError(
            "expected a URL without white space, control characters and backslashes, "
            f"got {_format_text(text)}"
        )


# Characters that no text should contain (Unicode, 23.7); XML forbids some of them.
_NONCHARACTERS: Final = "\ufdd0-\ufdef" + "".join(
    f"{chr(plane + 0xFFFE)}{chr(plane + 0xFFFF)}" for plane in range(0, 0x110000, 0x10000)
)
_CONTROLS: Final = re.compile(f"[\x00-\x1f\x7f-\x9f\ud800-\udfff{_NONCHARACTERS}]")


def _split_authority(authority: str | None, url: str) -> tuple[str | None, str, int | None]:
    """Return user name and password, and host, as written; and the port."""
    match = _AUTHORITY.fullmatch(authority or "")
    if match is None or "\\" in match[0]:
        raise UrlError(f"expected a host and perhaps a port, got {_format_text(url)}")
    userinfo, host, port_text = match.groups()
    if not host:
        raise UrlError(f"expected a URL with a host, got {_format_text(url)}")
    if "[" in match[0] or "]" in match[0] or not match[0].isascii():
        _check_authority(match[0], host, url)
    if not port_text:
        return userinfo, host, None
    port = int(port_text.lstrip("0")[:6] or "0")
    if not 0 < port <= _HIGHEST_PORT:
        raise UrlError(f"expected a port from 1 to {_HIGHEST_PORT}, got {_format_text(port_text)}")
    return userinfo, host, port


def _check_authority(authority: str, host: str, url: str) -> None:
    """Refuse an authority that `urlsplit` refuses, so that `urlsplit` can split every accepted URL."""
    try:
        if host.startswith("["):
            # Brackets without an address are no URL for browsers either (docs/faults.md row 126).
            ipaddress.IPv6Address(host[1:-1])
        # Nor are characters that become delimiters when normalised: U+2100 becomes "a/c".
        urlsplit(f"//{authority}")
    except ValueError as exc:
        expected = "an IPv6 address in brackets" if host.startswith("[") else "a host and perhaps a port"
        raise UrlError(f"expected {expected}, got {_format_text(url)}") from exc


# RFC 3986, section 3.2; userinfo reaches to the last "@", as clients read it.
_AUTHORITY: Final = re.compile(r"(?:(.*)@)?(\[[^\]\[]*\]|[^\[\]:@]*)(?::([0-9]*))?", re.DOTALL)
_HIGHEST_PORT: Final = 65535


@lru_cache(maxsize=256)
def _canonical_host(written: str) -> str:
    if written.startswith("["):
        return _canonical_ipv6(written)
    host = _ascii_host(written)
    labels = host.split(".")
    if _NUMBER.fullmatch(labels[-1] or (labels[-2] if len(labels) > 1 else "")):
        return _canonical_ipv4(host)
    if labels[-1] == "" and len(labels) > 1:
        del labels[-1]
    host = ".".join(labels)
    if len(host) > _HIGHEST_HOST_CHARACTERS or not all(map(_LABEL.fullmatch, labels)):
        raise UrlError(f"expected a host name, got {_format_text(written)}")
    return host


_LABEL: Final = re.compile(r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?")

# https://url.spec.whatwg.org/#ends-in-a-number-checker
_NUMBER: Final = re.compile(r"[0-9]+|0x[0-9a-f]*")
_HIGHEST_HOST_CHARACTERS: Final = 253


def _ascii_host(written: str) -> str:
    # Names in ASCII skip IDNA, which forbids underscores: real names have them.
    try:
        host = unquote(written, errors="strict")
        return host.lower() if host.isascii() else idna.encode(host, uts46=True).decode("ascii")
    except (UnicodeError, ValueError) as exc:  # IDNAError is a UnicodeError
        raise UrlError(f"expected a host name, got {_format_text(written)}") from exc


def _canonical_ipv4(host: str) -> str:
    # Clients and resolvers disagree on other spellings, so none is accepted (docs/faults.md row 8).
    try:
        if _DOTTED_QUAD.fullmatch(host):
            return str(ipaddress.IPv4Address(host))
    except ValueError:
        pass
    raise UrlError(
        f"expected a host name or an IPv4 address as four decimal numbers, got {_format_text(host)}",
        "ambiguous-host",
    )


_DOTTED_QUAD: Final = re.compile(r"(?:0|[1-9][0-9]{0,2})(?:\.(?:0|[1-9][0-9]{0,2})){3}")


def _canonical_ipv6(written: str) -> str:
    literal = written[1:-1]
    try:
        if "%" in literal:
            raise ValueError("a zone id means nothing to anybody else (RFC 6874)")
        address = ipaddress.IPv6Address(literal)
    except ValueError as exc:
        raise UrlError(f"expected an IPv6 address without a zone, got {_format_text(written)}") from exc
    if address.ipv4_mapped is not None:  # its text differs between versions of Python
        return f"[::ffff:{int(address) >> 16 & 0xFFFF:x}:{int(address) & 0xFFFF:x}]"
    return f"[{address}]"


@lru_cache(maxsize=4096)  # a walk asks again and again for the few URLs around its tip
def document_key(url: str) -> str:
    """Return the canonical URL, else the URL without its fragment. Never raises."""
    try:
        return canonical_url(url.partition("#")[0])
    except UrlError:
        return url.partition("#")[0]


def same_document(a: str, b: str) -> bool:
    """Return whether two URLs are equal after normalisation, without fragments."""
    return a == b or document_key(a) == document_key(b)


def is_fetchable(url: str) -> bool:
    """Return whether the URL has a canonical form, its fragment aside."""
    try:
        canonical_url(url.partition("#")[0])
    except UrlError:
        return False
    return True


def host_of(url: str) -> str:
    """Return the canonical host of an http(s) URL, an IPv6 one without brackets.

    Raises:
        UrlError: Same as in `canonical_url`.
    """
    authority = split(canonical_url(url)).authority
    return _split_authority(authority, url)[1].strip("[]")


# Where a server is reached


class UrlPlaces(NamedTuple):
    """Addresses of one server: http and https are equal, and so are this machine's names."""

    known: frozenset[tuple[str, int | None, str]]
    """Host, port (None: the scheme's own) and common path, without a final slash."""

    @classmethod
    def of(cls, bases: Iterable[str]) -> Self:
        """Return the places that URLs without a final slash name; invalid URLs do not count."""
        found = [address for base in bases if base and (address := _address_of(base)) is not None]
        return cls(
            frozenset(
                (name, port, parts.path.rstrip("/"))
                for (host, port), parts in found
                for name in (_LOOPBACK if host in _LOOPBACK else (host,))
            )
        )

    def target(self, url: str) -> str | None:
        """Return a URL's request target, from the slash on; None at another server."""
        text = url.strip()
        address, authority = _address_of(text), HTTP_AUTHORITY.match(text)
        if address is None or authority is None:
            return None
        target = text[authority.end() :]
        for host, port, path in self.known:
            if address[0] == (host, port) and target.startswith(f"{path}/"):
                return target[len(path) :]
        return None


_LOOPBACK: Final = ("127.0.0.1", "::1", "localhost")
HTTP_AUTHORITY: Final = re.compile(r"https?://[^/?#]*", re.IGNORECASE)


def _address_of(url: str) -> tuple[tuple[str, int | None], SplitResult] | None:
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return None
    if parts.scheme not in DEFAULT_PORTS or not parts.hostname:
        return None
    return (parts.hostname, None if port == DEFAULT_PORTS[parts.scheme] else port), parts


# The generic syntax of RFC 3986: components, references, percent-encoding. It knows neither http nor hosts.


class Parts(NamedTuple):
    """The five components of RFC 3986, section 3; None where the delimiter is absent."""

    scheme: str | None
    authority: str | None
    path: str
    query: str | None
    fragment: str | None


def split(text: str) -> Parts:
    """Split a URI reference; every text is one (RFC 3986, appendix B)."""
    match = _COMPONENTS.fullmatch(text)
    assert match is not None, "every text matches: RFC 3986, appendix B"
    scheme, authority, path, query, fragment = match.groups()
    return Parts(scheme, authority, path, query, fragment)


# RFC 3986, appendix B, with the scheme as strict as section 3.1.
_COMPONENTS: Final = re.compile(
    r"(?:([A-Za-z][A-Za-z0-9+.\-]*):)?(?://([^/?#]*))?([^?#]*)(?:\?([^#]*))?(?:#(.*))?", re.DOTALL
)


def join_parts(parts: Parts) -> str:
    """Join the components (RFC 3986, section 5.3)."""
    return "".join(
        (
            "" if parts.scheme is None else f"{parts.scheme}:",
            "" if parts.authority is None else f"//{parts.authority}",
            parts.path,
            "" if parts.query is None else f"?{parts.query}",
            "" if parts.fragment is None else f"#{parts.fragment}",
        )
    )


def _merge(base: Parts, reference: Parts) -> Parts:
    # RFC 3986, section 5.2.2; dot segments stay.
    if reference.authority is not None:
        return reference._replace(scheme=base.scheme)
    path, query = reference.path, reference.query
    if not path:
        path = base.path
        query = base.query if query is None else query
    elif not path.startswith("/"):
        if base.authority is not None and not base.path:
            path = f"/{path}"
        else:
            path = base.path[: base.path.rfind("/") + 1] + path
    return Parts(base.scheme, base.authority, path, query, reference.fragment)


def without_dot_segments(path: str) -> str:
    """Remove "." and ".." (RFC 3986, section 5.2.4); only a path from the root has a hierarchy."""
    end = path.find("/.")
    if end < 0 or not path.startswith("/"):
        return path
    kept: list[str] = []
    segments = path[end + 1 :].split("/")
    for segment in segments:
        if segment != "..":
            kept += [segment] if segment != "." else []
        elif kept:
            kept.pop()
        else:
            end = max(path.rfind("/", 0, end), 0)
    if segments[-1] in (".", ".."):
        kept.append("")
    return f"{path[:end]}/{'/'.join(kept)}"


def _requote(text: str, allowed: frozenset[str]) -> str:
    # The least percent-encoding (RFC 3986, sections 6.2.2.1 and 6.2.2.2): forbidden characters are encoded as
    # UTF-8, and a percent sign that encodes nothing becomes `%25`.
    quoted = _PERCENT.sub(_requoted_octet, text) if "%" in text else text
    return quoted if allowed.issuperset(quoted) else quote(quoted, safe="".join(allowed))


_PERCENT: Final = re.compile("%(?:([0-9A-Fa-f]{2}))?")
_UNRESERVED: Final = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
PATH_CHARACTERS: Final = _UNRESERVED | frozenset("!$&'()*+,;=:@/%")
QUERY_CHARACTERS: Final = PATH_CHARACTERS | frozenset("?")


def _requoted_octet(match: re.Match[str]) -> str:
    if match[1] is None:
        return "%25"
    char = chr(int(match[1], 16))
    return char if char in _UNRESERVED else f"%{match[1].upper()}"


# URLs as they may be shown: never with user name or password (docs/design.md#fetching)


def safe_url(url: str, *, keeps_query: bool = False) -> str:
    """Return a URL, or any text, without credentials, in 512 characters at most. Never raises.

    `keeps_query` is for people who may see the feed. A log line has `scheme://host/path` alone, and `?…` for
    a query.
    """
    shown, mark = without_credentials(url), ""
    cut = None if keeps_query else _QUERY_OR_FRAGMENT.search(shown)
    if cut is not None:
        shown, mark = shown[: cut.start()], "" if cut[0] == "#" else "?…"
    if len(shown) > _MOST_SHOWN_CHARACTERS:
        shown = f"{shown[:_MOST_SHOWN_CHARACTERS]}…"
    return f"{shown}{mark}"


# Also where only a query was meant: `&` puts an option of ours behind a URL without a query, and double
# encoding makes `%3F` (docs/faults.md row 98).
_QUERY_OR_FRAGMENT: Final = re.compile("[?#&]|%(?:3F|23|26)", re.IGNORECASE)
_MOST_SHOWN_CHARACTERS: Final = 512


def without_credentials(url: str) -> str:
    """Return the URL without the user name and password of its authority (RFC 3986, 3.2.1)."""
    if "@" not in url:  # hardly any URL has one
        return url
    match = _SHOWN_AUTHORITY.match(url)
    assert match is not None, "the empty text matches"
    start, authority, rest = match[1] or "", match[2], url[match.end() :]
    before, _, host = authority.rpartition("@")
    if before:
        authority = host
    # A password may contain a slash, so all up to the last `@` goes if no host can stand before it. An `@`
    # behind a host and its port is part of the path.
    if not _HOST_AND_PORT.fullmatch(authority) and "@" in rest:
        authority, rest = "", rest.rpartition("@")[2]
    return f"{start}{authority}{rest}"


# Text that people mean as one: the scheme may be missing, and the slashes be wrong.
_SHOWN_AUTHORITY: Final = re.compile(r"^((?:[A-Za-z][A-Za-z0-9+.-]*:)?[/\\]+)?([^/\\?#]*)", re.DOTALL)
_HOST_AND_PORT: Final = re.compile(r"@?(?:\[[^\]@]*\]|[^:@\[\]]+)(?::[0-9]{1,5})?")


def _format_text(text: str) -> str:
    return repr(safe_url(text, keeps_query=True))
