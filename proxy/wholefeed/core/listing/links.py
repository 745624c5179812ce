"""The links of lists: cleaned, compared, and what shape their paths have (H3, H5, H6).

clean_link("https://a.example/2009/03/post/?utm_source=x#top")     # https://a.example/2009/03/post/
link_key("http://a.example/2009/03/post/index.html")               # //a.example/2009/03/post
"""

from __future__ import annotations

from typing import Final

from wholefeed.core.text.urls import UrlError, canonical_url, joined, split


def clean_link(url: str) -> str:
    """Return the link that an entry has: without fragment and `utm_` parameters, else as it is written."""
    parts = split(url.strip(" \t\r\n\f"))
    query = parts.query
    if query is not None:
        kept = [each for each in query.split("&") if not each.lower().startswith("utm_")]
        query = "&".join(kept) if kept != [""] and kept else None
    return joined(parts._replace(query=query, fragment=None))


def link_key(url: str) -> str:
    """Return what all spellings of one entry's link have in common. Never raises.

    `http` and `https`, a trailing slash, `index.html`, `index.htm` and `index.php` make no difference, nor
    does what `clean_link` takes away, nor how characters are percent-encoded.
    """
    link = clean_link(url)
    try:
        parts = split(canonical_url(link))
    except UrlError:
        return link
    authority = (parts.authority or "").removesuffix(":80").removesuffix(":443")
    return joined(parts._replace(scheme=None, authority=authority, path=_stem(parts.path)))


def link_variants(url: str) -> tuple[str, ...]:
    """Return the cleaned links that have the key of this one: as it is written, and each usual spelling."""
    link = clean_link(url)
    try:
        canonical = canonical_url(link)
    except UrlError:
        return (link,)
    parts = split(canonical)
    spellings = (
        joined(parts._replace(scheme=scheme, path=_stem(parts.path) + end))
        for scheme in ("https", "http")
        for end in ("", "/", *_INDEXES)
    )
    return tuple(dict.fromkeys((link, canonical, *spellings)))


def _stem(path: str) -> str:
    """Return a path without the slash, or the name of an index, that it ends in."""
    while (shorter := _without_end(path)) != path:
        path = shorter
    return path


def _without_end(path: str) -> str:
    return next((path[: -len(end)] for end in ("/", *_INDEXES) if path.endswith(end)), path)


_INDEXES: Final = ("/index.html", "/index.htm", "/index.php")
