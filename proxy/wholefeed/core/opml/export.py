"""A subscription list made anew (OPML 2.0)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from wholefeed.core.parse.repair.references import without_controls
from wholefeed.core.text.markup import escape, quoteattr


class Listed(NamedTuple):
    """One feed of the list."""

    title: str
    url: str
    """To subscribe to."""
    site: str
    """Of the page that it is about; may be empty."""


def compose_opml(title: str, feeds: Iterable[Listed]) -> bytes:
    """Return the list, in the order given.

    Args:
        title: Of the list.
        feeds: One outline each. Their type is `rss`, which is what readers write for every format.
    """
    outlines = "".join(map(_outline, feeds))
    made = (
        '<?xml version="1.0" encoding="utf-8"?>\n<opml version="2.0">\n'
        f"<head><title>{escape(title)}</title></head>\n<body>\n{outlines}</body>\n</opml>\n"
    )
    return without_controls(made.encode("utf-8", "replace"))


def _outline(feed: Listed) -> str:
    name = quoteattr(feed.title)
    site = f" htmlUrl={quoteattr(feed.site)}" if feed.site else ""
    return f'<outline type="rss" text={name} title={name} xmlUrl={quoteattr(feed.url)}{site}/>\n'
