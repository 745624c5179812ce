"""URLs of a WordPress site: its feeds, their pages, its date archives, its REST API.

Facts: WordPress reads `paged`, `orderby` and `order` on every feed of posts; a date archive's feed stands
below its own path where links are pretty; `X-WP-Total` of the REST API counts the site's published posts.
"""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import parse_qsl, urlsplit, urlunsplit

_FEED_PATH: Final = re.compile(r"^(?P<root>.*/)(?P<feed>feed(?:/(?:rss2|rss|atom|rdf))?/?)$")
_FEED_FILE: Final = re.compile(r"^(?P<root>.*/)(?:index\.php)?$")
_COMMENTS: Final = re.compile(r"/comments/feed(?:/|$)|^comments-")
_DATED: Final = re.compile(r"/\d{4}(?:/\d{2}){0,2}/$")
_PAGED_PATH: Final = re.compile(r"/page/\d+/")
_PAGING: Final = frozenset(
    [
        "paged",
        "page",
        "offset",
        "order",
        "orderby",
        "m",
        "year",
        "monthnum",
        "day",
        "w",
        "hour",
        "minute",
        "second",
        "p",
        "page_id",
        "nopaging",
        "showposts",
        "posts_per_page",
        "posts_per_rss",
        "withcomments",
        "attachment_id",
    ]
)


def is_left_alone(url: str) -> bool:
    """Return whether a feed is one of comments, or bears parameters of pages already (R26)."""
    parts = urlsplit(url)
    query = dict(parse_qsl(parts.query, keep_blank_values=True))
    is_of_comments = _COMMENTS.search(parts.path) or _COMMENTS.search(query.get("feed", ""))
    return bool(is_of_comments or _PAGED_PATH.search(parts.path) or query.keys() & _PAGING)


def is_main(url: str, api_url: str) -> bool:
    """Return whether a feed has all posts of the site whose REST API stands at a URL (R28)."""
    parts, api = urlsplit(url), urlsplit(api_url)
    query = parse_qsl(parts.query, keep_blank_values=True)
    root = _site_root(api.path)
    path = _FEED_PATH.match(parts.path)
    if path is not None:
        return path["root"] == root and not query
    file = _FEED_FILE.match(parts.path)
    return file is not None and file["root"] == root and [name for name, _ in query] == ["feed"]


def _site_root(api_path: str) -> str:
    """The REST API stands at `wp-json/` below the site, or at its root with `?rest_route=/`."""
    return (
        api_path[: -len("wp-json/")] if api_path.endswith("/wp-json/") else api_path.removesuffix("index.php")
    )


def is_at_same_host(url: str, api_url: str) -> bool:
    """Return whether two URLs have one host and port."""
    parts, api = urlsplit(url), urlsplit(api_url)
    return (parts.hostname, parts.port) == (api.hostname, api.port) and api.scheme in ("http", "https")


def count_url(api_url: str) -> str:
    """Return what tells the number of posts in its field X-WP-Total."""
    parts = urlsplit(api_url)
    if parts.query:
        return urlunsplit(parts._replace(query=f"{parts.query}wp/v2/posts&per_page=10&_fields=id"))
    return f"{api_url}wp/v2/posts?per_page=10&_fields=id"


def dated_url(url: str, *numbers: int) -> str | None:
    """Return the feed of a year, a month or a day; None where links are not pretty, or it is dated itself.

    Args:
        url: Of the feed with all posts.
        numbers: Year, then month, then day.
    """
    parts = urlsplit(url)
    path = _FEED_PATH.match(parts.path)
    if path is None or parts.query or _DATED.search(path["root"]):
        return None
    folders = "".join(f"{number:02d}/" for number in numbers)
    return urlunsplit((parts.scheme, parts.netloc, f"{path['root']}{folders}{path['feed']}", "", ""))
