"""A stand-in for Lemmy 0.19: `/feeds/c/some.xml` has twenty posts, `?sort=Old&limit=50&page=N` pages of them.

    lemmy = Lemmy(origin, posts=320)
    lemmy.feed_url()                        # …/feeds/c/some.xml?sort=New

Where this comes from: LemmyNet/lemmy 0.19.10, `crates/routes/src/feeds.rs` (elements, parameters; the guid is
the post's address), `crates/db_schema/src/utils.rs` (at most fifty, or 400; pages from 1 on) and
`crates/db_views/src/post_view.rs` (orders; what is pinned stands first in each). That by votes is made up.
"""

from __future__ import annotations

import zlib
from email.utils import formatdate
from typing import Final
from urllib.parse import parse_qs
from xml.sax.saxutils import escape

from tests.answers import Answer, Document, Request, Status
from tests.origin import Origin
from tests.publishers.blog import Blog, Post
from tests.publishers.front import Front

USUAL: Final = 20
MOST: Final = 50


class Lemmy(Front):
    """A community.

    Args:
        origin: The owner of its address.
        posts: How many there are at first.
    """

    def __init__(self, origin: Origin, posts: int = 320) -> None:
        super().__init__(origin)
        self.blog = Blog(posts)
        self.add, self.edit, self.delete = self.blog.add, self.blog.edit, self.blog.delete
        self.pinned: frozenset[int] = frozenset()
        """IDs of posts that stand first."""

    def feed_url(self, sort: str = "New") -> str:
        return f"{self.url}/feeds/c/some.xml" + (f"?sort={sort}" if sort else "")

    def identity(self, post: Post) -> str:
        return f"{self.url}/post/{post.id}"

    async def behind(self, target: str, request: Request) -> Answer:
        path, _, query = target.partition("?")
        if path != "/feeds/c/some.xml":
            return Status(404)
        fields = {name: values[-1] for name, values in parse_qs(query).items()}
        page, limit = int(fields.get("page", "1")), int(fields.get("limit", str(USUAL)))
        if page < 1 or not 1 <= limit <= MOST:
            return Status(400)
        sort = fields.get("sort", "Hot")
        posts = sorted(self.blog.posts, key=lambda post: self._rank(post, sort))
        items = "".join(self._item(post) for post in posts[(page - 1) * limit : page * limit])
        body = (
            '<?xml version="1.0" encoding="utf-8"?>'
            '<rss version="2.0" xmlns:dc="http://purl.org/dc/elements/1.1/"><channel>'
            f"<title>Lemmy - some</title><link>{self.url}/c/some</link><description></description>"
            f"{items}</channel></rss>"
        )
        return Document(body=body.encode(), headers=(("Content-Type", "application/rss+xml"),))

    def _rank(self, post: Post, sort: str) -> tuple[bool, int]:
        votes = zlib.crc32(str(post.id).encode())
        return post.id not in self.pinned, {"Old": post.published, "New": -post.published}.get(sort, votes)

    def _item(self, post: Post) -> str:
        url = self.identity(post)
        text = f'submitted by <a href="{self.url}/u/{post.author}">{post.author}</a><br>{post.content}'
        return (
            f"<item><title>{escape(post.title)}</title><link>{url}</link>"
            f"<description><![CDATA[{text}]]></description><comments>{url}</comments><guid>{url}</guid>"
            f"<pubDate>{formatdate(post.published)}</pubDate>"
            f"<dc:creator>{self.url}/u/{post.author}</dc:creator></item>"
        )
