"""What an HTML page has of links, read once (H3, H5, H9): a job for a worker.

page = read_page(body, "https://a.example/archive/", "text/html; charset=utf-8")
[link.url for link in page.links if not link.is_aside]
"""

from __future__ import annotations

from typing import NamedTuple


class PageLink(NamedTuple):
    """One link of a page, in the order of the document."""

    url: str
    """Absolute."""
    text: str
    """A heading's in it, else all of it."""
    shape: str
    """Of its place in the document: tags and classes of what is around it, without positions."""
    group: int = 0
    """Number of the heading that it stands under."""
    at: float | None = None
    """The date that stands beside it, epoch seconds."""
    dated_by: str = ""
    """How exact that is: `page` to the day, `month`, `year`; empty where there is none."""
    is_aside: bool = False
    """In an aside, nav, header or footer that is not an article's."""
    is_tabular: bool = False
    """In a table."""
    is_next: bool = False
    """Whether its relation is `next`."""


class ListPage(NamedTuple):
    """A page that was had."""

    url: str
    """After redirects."""
    links: tuple[PageLink, ...]
    next_url: str = ""
    """Of `<link rel=next>` in its head."""
    is_cut: bool = False
    """Whether there was more of it than is read."""


def read_page(body: bytes, url: str, content_type: str) -> ListPage:
    """Return what an HTML page says; bounded, whatever it holds. Never raises.

    Args:
        body: As it came, without its content coding.
        url: Of the page, after redirects.
        content_type: The header field.
    """
    return ListPage(url, ())
