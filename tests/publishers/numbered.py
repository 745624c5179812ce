"""Publishers whose pages begin at a number or an instant: GitLab, Joomla, Squarespace, Redmine.

    gitlab = GitLab(origin, posts=320)
    gitlab.feed_url()                       # …/group/thing/-/commits/main.atom

Stand-ins all, of which `test_real_redmine.py` holds the last one to a real Redmine. The others are made by
the source of GitLab (`commits_controller.rb`, `show.atom.builder`) and Joomla (`CategoryModel`,
`ListModel::getStart`, `RssRenderer`), and by what programs ask Squarespace and a capture of its feed
(`atp.rss` of NetNewsWire's tests). Only queries choose pages here: what a feed's own URL has of these
(`format=atom`) is left away.
"""

from __future__ import annotations

import hashlib
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from email.utils import formatdate
from typing import ClassVar, Final
from urllib.parse import parse_qsl
from xml.sax.saxutils import escape

from tests.answers import Answer, Document, Request, Status
from tests.origin import Origin
from tests.publishers.blog import Blog, Post
from tests.publishers.front import Front
from tests.publishers.wordpress_query import absint


class _Numbered(Front):
    """Who has posts, the newest first, and gives some of them.

    Args:
        origin: The owner of its address.
        posts: How many there are at first.
    """

    path: ClassVar[str]
    media_type: ClassVar[str]

    def __init__(self, origin: Origin, posts: int = 320) -> None:
        super().__init__(origin)
        self.blog = Blog(posts)
        self.add, self.edit, self.delete = self.blog.add, self.blog.edit, self.blog.delete
        self.highest: int | None = None
        """A place above it gives nothing."""

    @property
    def posts(self) -> list[Post]:
        """The newest first."""
        return sorted(self.blog.posts, key=lambda post: -post.published)

    def feed_url(self) -> str:
        return self.url + self.path

    @abstractmethod
    def identity(self, post: Post) -> str:
        """The post's identity in the feed."""

    @abstractmethod
    def select(self, query: Mapping[str, str]) -> Sequence[Post]:
        """Return the posts for these parameters."""

    @abstractmethod
    def feed(self, posts: Sequence[Post], target: str) -> str:
        """The document with these posts."""

    async def behind(self, target: str, request: Request) -> Answer:
        path, _, query = target.partition("?")
        if path != self.path:
            return Status(404)
        asked = dict(parse_qsl(query))
        places = [int(asked[name]) for name in ("offset", "limitstart", "page") if name in asked]
        is_beyond = self.highest is not None and any(place > self.highest for place in places)
        body = self.feed([] if is_beyond else self.select(asked), target).encode()
        headers = (("Content-Type", f"{self.media_type}; charset=utf-8"),)
        return Document(body=body, headers=headers, etag=f'W/"{hashlib.md5(body).hexdigest()}"')


class GitLab(_Numbered):
    """A branch; its commits are the posts of a blog."""

    path = "/group/thing/-/commits/main.atom"
    media_type = "application/atom+xml"

    def identity(self, post: Post) -> str:
        return f"{self.url}/group/thing/-/commit/{hashlib.sha1(str(post.id).encode()).hexdigest()}"

    def select(self, query: Mapping[str, str]) -> Sequence[Post]:
        start = absint(query.get("offset", ""))
        return self.posts[start : start + (absint(query.get("limit", "")) or 40)]

    def feed(self, posts: Sequence[Post], target: str) -> str:
        page = f"{self.url}{self.path.removesuffix('.atom')}"
        updated = f"<updated>{_stamp(posts[0].published)}</updated>" if posts else ""
        entries = "".join(
            f'<entry><id>{self.identity(post)}</id><link href="{self.identity(post)}"/>'
            f"<title>{escape(post.title)}</title><updated>{_stamp(post.published)}</updated>"
            f"<author><name>{post.author}</name><email>a@example.org</email></author>"
            f'<summary type="html">{escape(post.content)}</summary></entry>'
            for post in posts
        )
        return (
            '<?xml version="1.0" encoding="UTF-8"?>\n<feed xmlns="http://www.w3.org/2005/Atom">'
            f'<title>thing:main commits</title><link href="{page}?format=atom" rel="self"/>'
            f'<link href="{page}" rel="alternate" type="text/html"/><id>{page}</id>{updated}{entries}</feed>'
        )


class Joomla(_Numbered):
    """A category; a start without a full page behind it is the last page's."""

    path = "/news.feed"
    media_type = "application/rss+xml"
    size: Final = 10

    def identity(self, post: Post) -> str:
        return f"{self.url}/news/{post.id}-{post.slug}"

    def select(self, query: Mapping[str, str]) -> Sequence[Post]:
        start, posts = absint(query.get("limitstart", "")), self.posts
        if start > len(posts) - self.size:
            start = max(0, (-(-len(posts) // self.size) - 1) * self.size)
        return posts[start : start + self.size]

    def feed(self, posts: Sequence[Post], target: str) -> str:
        generator = "Joomla! - Open Source Content Management"
        items = "".join(
            f"<item><title>{escape(post.title)}</title><link>{self.identity(post)}</link>"
            f'<guid isPermaLink="true">{self.identity(post)}</guid>'
            f"<description>{escape(post.content)}</description>"
            f"<pubDate>{formatdate(post.published)}</pubDate></item>"
            for post in posts
        )
        return _rss(f"<link>{self.url}/news</link><generator>{generator}</generator>{items}")


class Squarespace(_Numbered):
    """A collection; its instants have milliseconds, its dates have none."""

    path = "/episodes"
    media_type = "application/rss+xml"

    def identity(self, post: Post) -> str:
        return f"513abd71e4b0fe58c655c105:513abd71e4b0fe58c655c111:{post.id:024x}"

    def select(self, query: Mapping[str, str]) -> Sequence[Post]:
        until = absint(query.get("offset", "")) or float("inf")
        return [post for post in self.posts if post.published * 1000 + post.id % 1000 < until][:20]

    def feed(self, posts: Sequence[Post], target: str) -> str:
        generator = "Site-Server v6.0.0-16818-16818 (http://www.squarespace.com)"
        items = "".join(
            f"<item><title>{escape(post.title)}</title><pubDate>{formatdate(post.published)}</pubDate>"
            f"<link>{self.url}/episodes/{post.slug}</link>"
            f'<guid isPermaLink="false">{self.identity(post)}</guid>'
            f"<description>{escape(post.content)}</description></item>"
            for post in posts
        )
        return _rss(f"<link>{self.url}/episodes/</link><generator>{generator}</generator>{items}")


class Redmine(_Numbered):
    """A project's news, as Redmine 5.0.4 shows them."""

    path = "/projects/some/news.atom"
    media_type = "application/atom+xml"
    shown = 15
    """Limit of any feed's entries (`feeds_limit`)."""

    def identity(self, post: Post) -> str:
        return f"{self.url}/news/{post.id}"

    def select(self, query: Mapping[str, str]) -> Sequence[Post]:
        start = 10 * (max(1, absint(query.get("page", ""))) - 1)
        return self.posts[start : start + 10][: self.shown]

    def feed(self, posts: Sequence[Post], target: str) -> str:
        own, page = self.url + target, self.url + target.replace(".atom", "")
        entries = "".join(
            f'<entry><title>{escape(post.title)}</title><link rel="alternate" href="{self.identity(post)}"/>'
            f"<id>{self.identity(post)}</id><updated>{_stamp(post.published)}</updated>"
            "<author><name>Redmine Admin</name></author>"
            f'<content type="html">&lt;p&gt;{escape(post.content)}&lt;/p&gt;</content></entry>'
            for post in posts
        )
        at = posts[0].published if posts else self.blog.now
        return (
            '<?xml version="1.0" encoding="UTF-8"?>\n<feed xmlns="http://www.w3.org/2005/Atom">'
            f'<title>Some: News</title><link rel="self" href="{own}"/><link rel="alternate" href="{page}"/>'
            f"<id>{self.url}/</id><icon>{self.url}/favicon.ico</icon><updated>{_stamp(at)}</updated>"
            "<author><name>Redmine</name></author>"
            '<generator uri="https://www.redmine.org/">Redmine</generator>'
            f"{entries}</feed>"
        )


def _rss(inside: str) -> str:
    head = '<?xml version="1.0" encoding="UTF-8"?><rss version="2.0"><channel><title>Some</title>'
    return f"{head}<description>Some</description>{inside}</channel></rss>"


def _stamp(at: int) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
