"""Clean and compare links of lists, and find the shape of paths (H3, H5, H6)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, NamedTuple, Self

from wholefeed.core.text.urls import MAX_URL_CHARACTERS, UrlError, canonical_url, join_parts, split


def clean_link(url: str) -> str:
    """Return a link without fragment and `utm_` parameters."""
    while (cleaned := _clean(url)) != url:  # one removal may expose the next
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
    """Return a listed link: cleaned, in one percent-encoding. Never raises.

    Every link of the same key has the result among its `link_variants`.
    """
    link = clean_link(url)
    try:
        return canonical_url(link)
    except UrlError:
        return link


def link_key(url: str) -> str:
    """Return the part common to an entry link's spellings. Never raises.

    Scheme, final slash, index files, percent-encoding, fragment and `utm_` do not count.
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
"""Most links; five times as fast."""


@lru_cache(maxsize=512)
def _host_key(host: str) -> str:
    """Return a host for keys; empty: invalid."""
    return "" if (key := link_key(f"HTTP://{host}")).startswith("HTTP:") else key[2:]


def link_variants(url: str) -> tuple[str, ...]:
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
    stem = path.rstrip("/")
    while (index := next((each for each in _INDEXES if stem.endswith(each)), "")) != "":
        stem = stem[: -len(index)].rstrip("/")
    return stem


_INDEXES: Final = ("/index.html", "/index.htm", "/index.php")


# The paths of entries


class _Path(NamedTuple):
    host: str
    segments: list[str]
    names: tuple[str, ...]
    """Query parameters."""
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
    """Shape of paths: number of segments, equal words, places of digits."""

    hosts: frozenset[str]
    forms: dict[tuple[int, tuple[str, ...], str], tuple[str, ...]]
    """By number of segments, query names and suffix: each segment's word; `0`: digits; empty: anything."""

    @classmethod
    def of(cls, keys: Iterable[str]) -> Self:
        paths = [_path_of(key) for key in keys]
        forms: dict[tuple[int, tuple[str, ...], str], list[_Path]] = {}
        for path in paths:
            forms.setdefault((len(path.segments), path.names, path.suffix), []).append(path)
        common = {form: _common([each.segments for each in alike]) for form, alike in forms.items()}
        return cls(frozenset(path.host for path in paths), common)

    def words_of(self, key: str) -> tuple[str, ...] | None:
        """Return the words of the form that a key has, fitting or not; None: no entry has that form."""
        path = _path_of(key)
        return self.forms.get((len(path.segments), path.names, path.suffix))

    def fits(self, key: str) -> bool:
        path = _path_of(key)
        words = self.forms.get((len(path.segments), path.names, path.suffix))
        if words is None or path.host not in self.hosts:
            return False
        return all(
            not word or (_DIGITS.fullmatch(segment) is not None if word == _NUMBER else segment == word)
            for word, segment in zip(words, path.segments, strict=True)
        )


def _common(alike: Sequence[list[str]]) -> tuple[str, ...]:
    """Return the common segments; for a single path, all but the last."""
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
