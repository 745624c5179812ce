"""Where an archive's index and its copies stand.

    layout = Layout("https://web.archive.org")
    layout.oldest("http://example.org/feed", limit=50)          # a page of the index, the oldest copies first
    layout.copy(capture)                                        # its body as it was archived

The URL of an archive without a path is laid out as the Wayback Machine is; one with a path is a collection
of pywb. Copies are asked for with `id_`: the body as it was archived, without the links and banners that
archives write into what they show people.
"""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import quote, urlencode, urlsplit

from wholefeed.core.memento.captures import Capture, IndexPage
from wholefeed.core.text.urls import UrlError, canonical_url

_COPY: Final = re.compile(r"([0-9]{14})id_/(.+)", re.ASCII | re.DOTALL)
_FROM: Final = "from="
_RESUME: Final = "resumeKey="


class Layout:
    """The URLs of one archive.

    Args:
        base: `history.memento_url`: without a query, without its last slash.
    """

    def __init__(self, base: str) -> None:
        is_wayback = not urlsplit(base).path.strip("/")
        self._index = f"{base}/cdx/search/cdx" if is_wayback else f"{base}/cdx"
        self._copies = f"{base}/web/" if is_wayback else f"{base}/"
        self._is_wayback = is_wayback

    def oldest(self, url: str, *, limit: int, position: str = "") -> str:
        """Return the URL of a page of the index, the oldest copies first.

        Args:
            url: Of the document.
            limit: Rows.
            position: Where the page before it ended, as `position_behind` says; empty: the first one.
        """
        asked = {**self._asked(url), "limit": str(limit), "showResumeKey": "true"}
        for name in (_RESUME, _FROM):
            if position.startswith(name):
                asked[name[:-1]] = position.removeprefix(name)
        return f"{self._index}?{urlencode(asked)}"

    def newest(self, url: str, *, limit: int) -> str:
        """Return the URL of the end of the index: its newest copies, in whichever order."""
        last = {"limit": f"-{limit}"} if self._is_wayback else {"limit": str(limit), "sort": "reverse"}
        return f"{self._index}?{urlencode({**self._asked(url), **last})}"

    def copy(self, capture: Capture) -> str:
        """Return the URL of a copy, as it was archived."""
        return f"{self._copies}{capture.timestamp}id_/{quote(capture.url, safe=_UNQUOTED)}"

    def capture_at(self, url: str) -> Capture | None:
        """Return the copy that stands at a URL, where redirects may have led; None where none does."""
        if not url.startswith(self._copies):
            return None
        found = _COPY.fullmatch(url.removeprefix(self._copies))
        if found is None:
            return None
        try:
            capture = Capture(found[1], found[2])
            _ = capture.captured_at, canonical_url(capture.url)
        except (UrlError, ValueError):
            return None
        return capture

    def _asked(self, url: str) -> dict[str, str]:
        return {"url": url, "output": "json", "filter": "statuscode:200", "collapse": "digest"}


_UNQUOTED: Final = ":/?#[]@!$&'()*+,;=%-._~"


def position_behind(page: IndexPage, *, limit: int, position: str = "") -> str:
    """Return where the next page of an index begins; empty where this was the last one.

    Without a resume key an index is cut off in silence: as many rows as were asked for are no end.

    Args:
        page: What came.
        limit: How many rows were asked for.
        position: Where it began. A page that leads back to it leads nowhere.
    """
    behind = ""
    if page.resume_key:
        behind = f"{_RESUME}{page.resume_key}"
    elif page.rows >= limit and page.captures:
        behind = f"{_FROM}{max(capture.timestamp for capture in page.captures)}"
    return "" if behind == position else behind
