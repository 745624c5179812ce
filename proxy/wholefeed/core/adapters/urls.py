"""Parameters of URLs: added to what is asked for, and looked for in what redirects led to."""

from __future__ import annotations

from urllib.parse import parse_qsl, urlsplit, urlunsplit


def page_url(url: str, **parameters: str | int) -> str:
    """Return the URL of a feed with further parameters behind its own."""
    parts = urlsplit(url)
    added = "&".join(f"{name}={value}" for name, value in parameters.items())
    query = f"{parts.query}&{added}" if parts.query else added
    return urlunsplit((parts.scheme, parts.netloc, parts.path, query, ""))


def bears(url: str, asked_url: str) -> bool:
    """Return whether a URL that redirects led to has every parameter of the one that was asked for."""
    query = set(parse_qsl(urlsplit(url).query, keep_blank_values=True))
    return set(parse_qsl(urlsplit(asked_url).query, keep_blank_values=True)) <= query


def has_parameter(name: str, *urls: str) -> bool:
    """Return whether one of the URLs has a parameter of that name."""
    return any(name in dict(parse_qsl(urlsplit(url).query, keep_blank_values=True)) for url in urls)
