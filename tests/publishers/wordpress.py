"""A WordPress on loopback that answers as the real one does; a test plays its author, cache and firewall.

    wordpress = WordPress(origin, posts=300)
    reply = await proxy.get(wordpress.feed_url("atom"))
    wordpress.on_request = lambda number, request: wordpress.blog.add() if number == 15 else None
    wordpress.delete(wordpress.posts[40])
    wordpress.queries = "ignored"                    # a cache in front
    assert identities == wordpress.identities("atom")

Its behaviour is compared with recorded answers of WordPress 6.6 and 6.1 (`test_wordpress_simulator.py`) and,
where one is installed, against a real one (`test_real_wordpress.py`).
"""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Callable, Iterable
from dataclasses import replace
from email.utils import formatdate, parsedate_to_datetime
from typing import Final

from tests.answers import Answer, Document, Request, Status
from tests.origin import Origin
from tests.publishers import wordpress_feeds, wordpress_rest
from tests.publishers.blog import Blog, Post
from tests.publishers.front import Front
from tests.publishers.wordpress_canonical import canonical_target, date_target
from tests.publishers.wordpress_feeds import CONTENT_TYPES, Channel, Site
from tests.publishers.wordpress_query import Query, parse_target

NO_CACHE: Final = (
    ("Expires", "Wed, 11 Jan 1984 05:00:00 GMT"),
    ("Cache-Control", "no-cache, must-revalidate, max-age=0"),
)
_ROUTES: Final = {
    "category": ("categories", {"uncategorized": 1, "news": 2}),
    "tag": ("tags", {"long": 3}),
    "author": ("users", {"admin": 1, "guest": 2}),
}


class WordPress(Front):
    """A site; `tests.publishers.front` has the switches of caches and firewalls in front.

    Args:
        origin: The owner of its address.
        posts: How many there are at first.
        prefix: The folder that it is installed in, as "/blog".
        per_feed: Its option `posts_per_rss`.
        pretty: Whether it has permalinks; a plain one knows query strings alone.
        wordpress_com: Whether it is a site of WordPress.com.
    """

    def __init__(
        self,
        origin: Origin,
        posts: int = 300,
        prefix: str = "",
        per_feed: int = 10,
        *,
        pretty: bool = True,
        wordpress_com: bool = False,
    ) -> None:
        super().__init__(origin, prefix)
        self.blog = Blog(posts)
        self.per_feed = per_feed
        self.pretty = pretty
        self.wordpress_com = wordpress_com
        self.version = "6.6"
        self.excerpts = False
        """Its option `rss_use_excerpt`: feeds have no full texts."""
        self.dated = True
        """Whether a channel has a date of update, which a plugin may leave out."""
        self.rest_status: int | None = None
        """Status of all REST requests: 401, 403, 404."""
        self.api_link = not wordpress_com
        """Whether feeds name the REST interface in their header."""
        self.canonical = True
        """Whether it redirects to a feed's usual address, as all sites without a port do."""
        self.paged_ignored = False
        self.orderby_ignored = False
        """`order` too."""
        self.wanted: Callable[[Post], bool] = lambda _post: True
        """A plugin's choice of posts in feeds, such as those of a language below `/de/`."""
        self.chooses: Callable[[str], bool] = lambda _target: True
        """Where it chooses: by path and query string, below the site's folder."""
        self.sticky: tuple[int, ...] = ()
        """IDs of posts that a plugin puts on top of feeds."""
        self.guids = "{url}/?p={id}"
        """Form of its guids: somebody may replace them in the database."""
        self.default_feed = "rss2"
        """Its filter's default format for a feed URL without a format."""
        self.add, self.back_date, self.edit, self.bulk_edit = (
            self.blog.add, self.blog.back_date, self.blog.edit, self.blog.bulk_edit
        )  # fmt: skip
        self.delete, self.schedule, self.go_live = self.blog.delete, self.blog.schedule, self.blog.go_live

    # ---- What a test asks

    @property
    def posts(self) -> list[Post]:
        """The published posts, by ID."""
        return self.blog.posts

    def feed_url(self, format: str = "rss2", under: str = "", **query: object) -> str:  # noqa: A002 - what WordPress calls it
        """Return the URL of a feed: `feed_url("atom", "category/news", paged=2)`."""
        if self.pretty:
            path = f"{under}/feed/".removeprefix("/") + ("" if format == "rss2" else f"{format}/")
        else:
            path, query = "", {"feed": format} | query
        text = "&".join(f"{name}={value}" for name, value in query.items())
        return f"{self.url}/{path}" + (f"?{text}" if text else "")

    def identity(self, post: Post, format: str = "rss2") -> str:  # noqa: A002
        """Return a post's identity in a feed: its guid, in RSS 1.0 its address."""
        return self._site.permalink(post) if format == "rdf" else self._site.guid(post)

    def identities(self, format: str = "rss2", posts: Iterable[Post] | None = None) -> set[str]:  # noqa: A002
        """Return the identities of all published posts, or of these."""
        return {self.identity(post, format) for post in (self.posts if posts is None else posts)}

    # ---- What it answers

    async def behind(self, target: str, request: Request) -> Answer:
        return self._page(parse_target(target.removeprefix("/de")), target, request)

    def _page(self, query: Query, target: str, request: Request) -> Answer:
        match query.kind:
            case _ if query.by_path and not self.pretty:
                pass  # no web server rewrites it
            case "rest":
                if self.rest_status is not None:
                    return wordpress_rest.refusal(self.rest_status, self._api)
                return wordpress_rest.answer(query, self.blog, self._api, method=request.method)
            case "old feed":
                return self._moved(self.feed_url(query.format), "application/octet-stream")
            case "home":
                return Document(
                    body=self._home.encode(),
                    headers=(*self._links(query), ("Content-Type", "text/html; charset=UTF-8")),
                )
            case "feed" | "comments":
                named = query if query.format != "rss2" else replace(query, format=self.default_feed)
                return self._feed(named, target, request)
        return Status(404, (*NO_CACHE, ("Content-Type", "text/html; charset=UTF-8")))

    def _moved(self, url: str, content_type: str) -> Answer:
        headers = (
            ("Content-Type", f"{content_type}; charset=UTF-8"),
            *self._validators,
            ("X-Redirect-By", "WordPress"),
            ("Location", url),
        )
        return Status(301, headers)

    def _feed(self, query: Query, target: str, request: Request) -> Answer:
        content_type = ("Content-Type", f"{CONTENT_TYPES[query.format]}; charset=UTF-8")
        if self.paged_ignored:
            query.fields.pop("paged", None)
        if self.orderby_ignored:
            query.fields.pop("orderby", None)
            query.fields.pop("order", None)
        comments = query.kind == "comments"
        blog = self.blog
        if self.chooses(target):
            blog = copy.copy(self.blog)
            blog.everything = list(filter(self.wanted, self.blog.everything))
        posts = [] if comments else query.select(blog, self.per_feed)
        if self.sticky and query.kind == "feed" and query.paged <= 1 and "orderby" not in query.fields:
            pinned = [post for post in self.posts if post.id in self.sticky]
            posts = [*pinned, *(post for post in posts if post not in pinned)]
        beyond = query.paged > 1 and not posts
        before = NO_CACHE if beyond else ()
        if self._is_current(request):
            return Status(304, (*before, content_type, *self._validators))
        if not beyond and (usual := self._usual(query, target)) != target:
            return self._moved(self.url + usual, CONTENT_TYPES[query.format])
        channel = Channel(
            site=self._site,
            title=query.title(self.blog.title, found=bool(posts), beyond=beyond),
            self_url=self.url + target,
            updated=max((post.modified for post in posts), default=self.blog.modified),
            excerpts=self.excerpts,
            dated=self.dated,
        )
        if comments and not beyond:
            newest = 0 if "of" in query.fields else self.blog.comments
            body = wordpress_feeds.comments(channel, range(newest, max(0, newest - self.per_feed), -1))
        else:
            body = wordpress_feeds.feed(query.format, channel, posts)
        links = self._links(Query(kind="feed") if beyond else query)
        headers = (*before, *self._validators, *links, content_type)
        if request.method == "HEAD":  # it ends before the feed, which says its type again
            headers = (*before, content_type, *self._validators, *links)
        return Document(body=body.encode(), status=404 if beyond else 200, headers=headers)

    def _usual(self, query: Query, target: str) -> str:
        elsewhere = date_target(query)
        if elsewhere is None and self.canonical:
            elsewhere = canonical_target(query, target, pretty=self.pretty)
        return elsewhere or target

    # ---- Parts of answers

    @property
    def _site(self) -> Site:
        if self.wordpress_com:
            return wordpress_feeds.on_wordpress_com(self.url, self.blog.title)
        site = wordpress_feeds.self_hosted(self.url, self.blog.title, self.version, pretty=self.pretty)
        return replace(site, guids=self.guids)

    @property
    def _validators(self) -> tuple[tuple[str, str], ...]:
        """One pair for all feeds of the site, whatever their content."""
        modified = formatdate(self.blog.modified, usegmt=True)
        return (("Last-Modified", modified), ("ETag", f'"{hashlib.md5(modified.encode()).hexdigest()}"'))

    def _is_current(self, request: Request) -> bool:
        """Compare as WordPress does, before it reads the page's posts: 304 beyond the last page too."""
        (_, modified), (_, etag) = self._validators
        tag, since = request.headers.get("if-none-match"), request.headers.get("if-modified-since")
        unchanged = since is not None and parsedate_to_datetime(since) >= parsedate_to_datetime(modified)
        if tag is not None and since is not None:
            return unchanged and tag == etag
        return unchanged or tag == etag

    def _links(self, query: Query) -> tuple[tuple[str, str], ...]:
        if not self.api_link:
            return ()
        api = self._api
        links = [f'<{api}>; rel="https://api.w.org/"']
        links += [
            f'<{api}wp/v2/{route}/{number}>; rel="alternate"; type="application/json"'
            for name, (route, numbers) in _ROUTES.items()
            if (number := numbers.get(query.fields.get(name, "")))
        ]
        return tuple(("Link", link) for link in links)

    @property
    def _api(self) -> str:
        return f"{self.url}/wp-json/" if self.pretty else f"{self.url}/index.php?rest_route=/"

    @property
    def _home(self) -> str:
        head = f'<link rel="alternate" type="{CONTENT_TYPES["rss2"]}" href="{self.feed_url()}" />'
        return f"<!DOCTYPE html>\n<html><head><title>{self.blog.title}</title>{head}</head></html>\n"
