"""The links of lists: cleaned, compared, and what shape their paths have (H3, H5, H6).

clean_link("https://a.example/2009/03/post/?utm_source=x#top")     # https://a.example/2009/03/post/
link_key("http://a.example/2009/03/post/index.html")               # //a.example/2009/03/post
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, NamedTuple, Self

from wholefeed.core.text.urls import MAX_URL_CHARACTERS, UrlError, canonical_url, join_parts, split


def clean_link(url: str) -> str:
    """Return the link that an entry has: without fragment and `utm_` parameters, else as it is written."""
    while (cleaned := _clean(url)) != url:  # what stands behind may bare what is no part of it either
        url = cleaned
    return url


def _clean(url: str) -> str:
    parts = split(url.strip(" \t\r\n\f"))
    query = parts.query
    if query is not None:
        kept = [each for each in query.split("&") if not each.lower().startswith("utm_")]
        query = "&".join(kept) if kept != [""] and kept else None
    return join_parts(parts._replace(query=query, fragment=None))


def own_link(url: str) -> str:
    """Return the link that an entry of a list has: cleaned, percent-encoded in one way.

    So it is among the `link_variants` of whatever has its key. Never raises.
    """
    link = clean_link(url)
    try:
        return canonical_url(link)
    except UrlError:
        return link


def link_key(url: str) -> str:
    """Return what all spellings of one entry's link have in common. Never raises.

    `http` and `https`, a trailing slash, `index.html`, `index.htm` and `index.php` make no difference, nor
    does what `clean_link` takes away, nor how characters are percent-encoded.
    """
    plain = _PLAIN.fullmatch(url) if len(url) <= MAX_URL_CHARACTERS else None
    if plain is not None and "utm_" not in url.lower() and (host := _host_key(plain[1])):
        return f"//{host}{_stem(plain[2])}{plain[3] or ''}"
    link = clean_link(url)
    try:
        parts = split(canonical_url(link))
    except UrlError:
        return link
    authority = (parts.authority or "").removesuffix(":80").removesuffix(":443")
    return join_parts(parts._replace(scheme=None, authority=authority, path=_stem(parts.path)))


_PLAIN: Final = re.compile(
    r"https?://([a-z0-9-]+(?:\.[a-z0-9-]+)*)((?:/[A-Za-z0-9_~-]+(?:\.[A-Za-z0-9_~-]+)*)*/?)"
    r"(\?[A-Za-z0-9_=&~.-]+)?"
)
"""Links that are clean and canonical as they are written, as most are: five times as fast."""


@lru_cache(maxsize=512)
def _host_key(host: str) -> str:
    """Return a host as keys have it; empty where it is none."""
    return "" if (key := link_key(f"HTTP://{host}")).startswith("HTTP:") else key[2:]


def link_variants(url: str) -> tuple[str, ...]:
    """Return the cleaned links that have the key of this one: as it is written, and each usual spelling."""
    link = clean_link(url)
    try:
        canonical = canonical_url(link)
    except UrlError:
        return (link,)
    parts = split(canonical)
    spellings = (
        join_parts(parts._replace(scheme=scheme, path=_stem(parts.path) + end))
        for scheme in ("https", "http")
        for end in ("", "/", *_INDEXES)
    )
    return tuple(dict.fromkeys((link, canonical, *spellings)))


def _stem(path: str) -> str:
    """Return a path without the slashes, and the names of indexes, that it ends in."""
    stem = path.rstrip("/")
    while (index := next((each for each in _INDEXES if stem.endswith(each)), "")) != "":
        stem = stem[: -len(index)].rstrip("/")
    return stem


_INDEXES: Final = ("/index.html", "/index.htm", "/index.php")


# The paths of entries


class _Path(NamedTuple):
    """What of the key of a link is compared."""

    host: str
    segments: list[str]
    names: tuple[str, ...]
    """Of the parameters of its query."""
    suffix: str


def _path_of(key: str) -> _Path:
    place, _, query = key.partition("?")
    host, _, path = place.removeprefix("//").partition("/")
    names = tuple(sorted(each.partition("=")[0] for each in query.split("&"))) if query else ()
    suffix = _SUFFIX.search(path[-8:])
    return _Path(host, path.split("/"), names, suffix[0] if suffix else "")


_SUFFIX: Final = re.compile(r"\.[a-z]{2,5}[0-9]?\Z")
_DIGITS: Final = re.compile(r"[0-9]+")


@dataclass(frozen=True, slots=True)
class PathShape:
    """What the paths of links have in common: as many segments, the same words, digits where digits are."""

    hosts: frozenset[str]
    forms: dict[tuple[int, tuple[str, ...], str], tuple[str, ...]]
    """By the number of segments, the names in the query and the suffix: the word of each segment, `0` where
    it is of digits, empty where it may be anything."""

    @classmethod
    def of(cls, keys: Iterable[str]) -> Self:
        """Return what links have in common, by their keys."""
        paths = [_path_of(key) for key in keys]
        forms: dict[tuple[int, tuple[str, ...], str], list[_Path]] = {}
        for path in paths:
            forms.setdefault((len(path.segments), path.names, path.suffix), []).append(path)
        common = {form: _common([each.segments for each in alike]) for form, alike in forms.items()}
        return cls(frozenset(path.host for path in paths), common)

    def fits(self, key: str) -> bool:
        """Whether a link of this key has this shape."""
        path = _path_of(key)
        words = self.forms.get((len(path.segments), path.names, path.suffix))
        if words is None or path.host not in self.hosts:
            return False
        return all(
            not word or (_DIGITS.fullmatch(segment) is not None if word == _NUMBER else segment == word)
            for word, segment in zip(words, path.segments, strict=True)
        )


def _common(alike: Sequence[list[str]]) -> tuple[str, ...]:
    """Return what the segments of paths have in common; of a single path all but the last."""
    words = []
    for place, segments in enumerate(zip(*alike, strict=True)):
        if all(map(_DIGITS.fullmatch, segments)):
            words.append(_NUMBER)
        elif len(set(segments)) == 1 and (len(alike) > 1 or place + 1 < len(alike[0])):
            words.append(segments[0])
        else:
            words.append("")
    return tuple(words)


_NUMBER: Final = "0"
