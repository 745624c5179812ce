"""Find the names of search indexes in a page (H11)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from typing import Final

from wholefeed.core.text.markup import unescape
from wholefeed.core.text.urls import is_http, resolve_or_empty


def find_indexes(text: bytes, base: str) -> tuple[str, ...]:
    """Return URLs of search indexes that a page names, likeliest first.

    They stand in attributes and scripts: `<link rel="preload" as="fetch" href="/index.json">`,
    `{"path": "search.xml"}`, `data-index="/search.json"`, `<script src="/lunr-store.js">`.
    """
    found: dict[str, int] = {}
    for end in islice(_ENDS.finditer(text), _MOST_NAMES):
        before = text[max(0, end.start() - _LONGEST) : end.start()]
        # backwards, because a pattern that may begin anywhere takes quadratic time
        head = _HEAD.match(before[::-1])
        if head is None:  # prose
            continue
        said = (head[1][::-1] + end[0]).decode("utf-8", "replace").replace("\\/", "/")
        name = said.rpartition("/")[2].casefold()
        rank = next((rank for rank, form in enumerate(_INDEX_NAMES) if form.fullmatch(name)), None)
        if rank is not None:
            for url in _spellings(base, unescape(said)):
                found[url] = min(rank, found.get(url, rank))
    return tuple(sorted(found, key=lambda url: found[url]))[:_MOST_INDEXES]


def _spellings(base: str, said: str) -> Iterator[str]:
    # scripts join a bare "search.xml" to the site's root, browsers to the page
    is_bare = not said.startswith(("/", ".")) and not is_http(said)
    for reference in (said, f"/{said}") if is_bare else (said,):
        url = resolve_or_empty(base, reference)
        if url and is_http(url):
            yield url


_LONGEST: Final = 300
"""Characters of a name."""
_MOST_NAMES: Final = 2000
_MOST_INDEXES: Final = 3
_ENDS: Final = re.compile(rb"\.(?:json|xml|js)(?=[\s\"'`>)?&#\\]|\Z)")
_HEAD: Final = re.compile(rb"([^\s\"'`<>()=,;]*)[\"'`(=]")
_INDEX_NAMES: Final = tuple(
    re.compile(form)
    for form in (
        r"(?:local-?)?search\.(?:json|xml)|content\.json",
        r"(?:[a-z-]{2,7}\.)?search[-_]?(?:data|index|db)?(?:\.[a-z]{2})?(?:\.min)?(?:\.[0-9a-f]{8,64})?\.json",
        r"(?:index|posts|lunr|lunr[-_]?(?:index|store|data)|searchindex|fuse|idx)(?:\.[a-z]{2}|\.min)?\.json",
        r"(?:lunr-store|search[-_]?(?:data|index|store)(?:\.[a-z]{2})?)\.js",
    )
)
