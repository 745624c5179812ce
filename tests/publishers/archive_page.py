"""A blog on loopback with a cut feed, and its history in HTML pages alone (H1 to H9).

    blog = ArchivePage(origin, posts=30)
    blog.publish()
    origin.url("/feed")         # its newest posts; /archive/ lists all, or /archive/, /archive/page/2/ …

It is made by hand: sites of real generators are in `tests.sites`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import format_datetime
from html import escape

from tests.answers import Document
from tests.origin import Origin

FIRST_DAY = datetime(2019, 1, 1, 12, tzinfo=UTC).timestamp()
WEEK = 7 * 86400.0


@dataclass(frozen=True)
class Post:
    """One post: a week after the one before."""

    number: int

    @property
    def at(self) -> float:
        return FIRST_DAY + self.number * WEEK

    @property
    def day(self) -> datetime:
        return datetime.fromtimestamp(self.at, UTC)

    @property
    def path(self) -> str:
        return f"/{self.day.year}/post-{self.number}/"

    @property
    def title(self) -> str:
        return f"Post & number {self.number}"


@dataclass
class ArchivePage:
    """The blog; changes are visible after `publish`."""

    origin: Origin
    posts: int
    shown: int = 5
    """Posts of the feed."""
    per_page: int = 1000
    """Posts of a page of the list."""
    family: str = "rss"
    guid: Callable[[str], str] = field(default=lambda url: f"tag:{url}")
    """A post's identity, from its URL."""
    extra: str = ""
    """Further elements in the feed's head."""
    has_days: bool = True
    """Whether the list has dates of publication."""
    filler: str = ""
    """Further text in each post."""

    @property
    def newest_first(self) -> Sequence[Post]:
        return [Post(number) for number in range(self.posts, 0, -1)]

    def url(self, post: Post) -> str:
        return self.origin.url(post.path)

    @property
    def pages(self) -> list[str]:
        """Paths of the list."""
        count = -(-self.posts // self.per_page)
        return ["/archive/", *(f"/archive/page/{n}/" for n in range(2, count + 1))]

    def publish(self) -> None:
        """Publish the site's present settings."""
        posts = self.newest_first
        media_type = "application/feed+json" if self.family == "json" else "application/xml"
        self.origin.publish("/feed", self._feed(posts[: self.shown]), content_type=media_type)
        menu = '<nav><a href="/">Home</a> <a href="/archive/">Archive</a> <a href="/about/">About</a></nav>'
        front = "".join(f"<li>{self._link(post)}</li>" for post in posts[:3])
        self._html("/", f"{menu}<aside><h2>Recent</h2><ul>{front}</ul></aside><p>Welcome.</p>")
        self._html("/about/", f"{menu}<p>About.</p>")
        for place, path in enumerate(self.pages):
            shown = posts[place * self.per_page : (place + 1) * self.per_page]
            rows = "".join(f"<li>{self._day(post)} {self._link(post)}</li>" for post in shown)
            more = self.pages[place + 1] if place + 1 < len(self.pages) else ""
            older = f'<p><a rel="next" href="{more}">Older posts</a></p>' if more else ""
            self._html(path, f'{menu}<main><h1>Archive</h1><ul class="posts">{rows}</ul>{older}</main>')

    def _day(self, post: Post) -> str:
        shown = f"{post.day:%d %b %Y}" if self.has_days else ""
        return shown and f'<time datetime="{post.day:%Y-%m-%d}">{shown}</time>'

    def _link(self, post: Post) -> str:
        return f'<a href="{post.path}">{escape(post.title)}</a>'

    def _html(self, path: str, body: str) -> None:
        text = f"<!doctype html><html><head><title>Blog</title></head><body>{body}</body></html>"
        headers = (("Content-Type", "text/html; charset=utf-8"),)
        self.origin.answer(path, Document(body=text.encode(), headers=headers))

    def _feed(self, posts: Sequence[Post]) -> bytes:
        home = self.origin.url("/")
        if self.family == "json":
            items = [
                {
                    "id": self.guid(self.url(post)),
                    "url": self.url(post),
                    "title": post.title,
                    "content_text": f"Text {post.number}{self.filler}",
                    "date_published": post.day.isoformat(),
                }
                for post in posts
            ]
            version = "https://jsonfeed.org/version/1.1"
            feed = {"version": version, "title": "Blog", "home_page_url": home, "items": items}
            return json.dumps(feed).encode()
        if self.family == "atom":
            entries = "".join(
                f"<entry><id>{self.guid(self.url(post))}</id><title>{escape(post.title)}</title>"
                f'<link href="{self.url(post)}"/><updated>{post.day:%Y-%m-%dT%H:%M:%SZ}</updated>'
                f"<content>Text {post.number}{self.filler}</content></entry>"
                for post in posts
            )
            return (
                '<feed xmlns="http://www.w3.org/2005/Atom" xmlns:fh="http://purl.org/syndication/history/1.0">'
                f'<title>Blog</title><id>urn:blog</id><link href="{home}"/><author><name>Ann</name></author>'
                f"<updated>{posts[0].day:%Y-%m-%dT%H:%M:%SZ}</updated>{self.extra}{entries}</feed>"
            ).encode()
        if self.family == "rdf":
            items_ = "".join(
                f'<item rdf:about="{self.guid(self.url(post))}"><title>{escape(post.title)}</title>'
                f"<link>{self.url(post)}</link><dc:date>{post.day:%Y-%m-%dT%H:%M:%SZ}</dc:date></item>"
                for post in posts
            )
            return (
                '<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" '
                'xmlns="http://purl.org/rss/1.0/" xmlns:dc="http://purl.org/dc/elements/1.1/">'
                f'<channel rdf:about="{home}"><title>Blog</title><link>{home}</link></channel>'
                f"{items_}</rdf:RDF>"
            ).encode()
        items_ = "".join(
            f"<item><title>{escape(post.title)}</title><link>{self.url(post)}</link>"
            f'<guid isPermaLink="false">{self.guid(self.url(post))}</guid>'
            f"<pubDate>{format_datetime(post.day)}</pubDate>"
            f"<description>Text {post.number}{self.filler}</description></item>"
            for post in posts
        )
        return (
            '<rss version="2.0" xmlns:fh="http://purl.org/syndication/history/1.0"><channel>'
            f"<title>Blog</title><link>{home}</link><description>d</description>{self.extra}{items_}"
            "</channel></rss>"
        ).encode()
