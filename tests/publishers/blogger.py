"""A blog on Blogger: `/feeds/posts/default` links its next page, and parameters choose another.

    blogger = Blogger(origin, posts=320)
    blogger.feed_url()                      # …/feeds/posts/default

Where this comes from: notices of bloggers ("The incredible shrinking feeds", too-clever-by-half, 2019: 25
by default, 500 at most at first, 150 from 2016, then 100; "Blogger: unofficial feed FAQ",
consumingexperience, 2008: `orderby`, `alt=rss`) and Google's guide to the protocol (`start-index` counts
from 1, openSearch's numbers, links `next` and `previous`). The links of pages lead to another path than the
blog's own, with the blog's number in it, and say `redirect=false`; on Blogger that is another host,
`www.blogger.com`.
"""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime
from email.utils import formatdate
from typing import Final
from urllib.parse import parse_qs
from xml.sax.saxutils import escape, quoteattr

from tests.answers import Answer, Document, Redirect, Request, Status
from tests.origin import Origin
from tests.publishers.blog import Blog, Post, page_of
from tests.publishers.front import Front
from tests.publishers.wordpress_query import absint

USUAL: Final = 25
BLOG: Final = 987654321
COPY: Final = "/burned"
"""Path of FeedBurner's copy, which reads no parameters."""


class Blogger(Front):
    """A blog.

    Args:
        origin: The owner of its address.
        posts: How many there are at first.
        most: What `max-results` gives at most: 150, later 100.
        links_pages: Whether its feed links the next page.
        is_burned: Whether its feed is led to FeedBurner's copy of it, but for who says `redirect=false`.
    """

    def __init__(
        self,
        origin: Origin,
        posts: int = 320,
        most: int = 150,
        *,
        links_pages: bool = True,
        is_burned: bool = False,
    ) -> None:
        super().__init__(origin)
        self.most = most
        self.links_pages = links_pages
        self.is_burned = is_burned
        self.is_copy_rss = False
        self.copy_url = self.url + COPY
        """The copy's URL for readers."""
        self.highest: int | None = None
        """A start above it gives nothing."""
        self.claims_more = 0
        """Excess of openSearch:totalResults over the number of posts."""
        self.blog = Blog(posts)
        self.add, self.edit, self.delete = self.blog.add, self.blog.edit, self.blog.delete
        self.back_date, self.bulk_edit = self.blog.back_date, self.blog.bulk_edit

    @property
    def posts(self) -> list[Post]:
        return self.blog.posts

    def feed_url(self) -> str:
        return f"{self.url}/feeds/posts/default"

    def identity(self, post: Post) -> str:
        return f"tag:blogger.com,1999:blog-{BLOG}.post-{post.id}"

    async def behind(self, target: str, request: Request) -> Answer:
        path, _, query = target.partition("?")
        if path not in ("/feeds/posts/default", f"/feeds/{BLOG}/posts/default", COPY):
            return Status(404)
        if self.is_burned and path != COPY and "redirect=false" not in query:
            return Redirect(self.copy_url)
        return self.copy() if path == COPY else self._document(query)

    def copy(self) -> Document:
        """FeedBurner's copy in its present state."""
        return self._document("alt=rss" if self.is_copy_rss else "")

    def _document(self, query: str) -> Document:
        fields = {name: values[-1] for name, values in parse_qs(query).items()}
        start = max(1, absint(fields.get("start-index", "")))
        count = min(absint(fields.get("max-results", str(USUAL))), self.most)
        key = "modified" if fields.get("orderby") == "updated" else "published"
        posts = page_of(self.posts, key=key, ascending=False, start=start - 1, count=count)
        if self.highest is not None and start > self.highest:
            posts = []
        is_rss = fields.get("alt") == "rss"
        body = (self._rss(posts) if is_rss else self._feed(posts, start, count)).encode()
        return Document(
            body=body,
            headers=(
                ("Content-Type", f"application/{'rss' if is_rss else 'atom'}+xml; charset=UTF-8"),
                ("Cache-Control", "private, max-age=0"),
            ),
            etag=f'W/"{hashlib.md5(body).hexdigest()}"',
            last_modified=formatdate(self.blog.modified, usegmt=True),
        )

    def _feed(self, posts: list[Post], start: int, count: int) -> str:
        total = len(self.posts) + self.claims_more
        pages = [("next", start + count)] if count and start + count <= total else []
        pages += [("previous", max(1, start - count))] if start > 1 else []
        pages = pages if self.links_pages else []
        links = "".join(
            f"<link rel='{name}' type='application/atom+xml' href={quoteattr(self._page(number, count))}/>"
            for name, number in pages
        )
        return (
            "<?xml version='1.0' encoding='UTF-8'?><feed xmlns='http://www.w3.org/2005/Atom' "
            "xmlns:openSearch='http://a9.com/-/spec/opensearchrss/1.0/' "
            "xmlns:thr='http://purl.org/syndication/thread/1.0'>"
            f"<id>tag:blogger.com,1999:blog-{BLOG}</id><updated>{_stamp(self.blog.modified)}</updated>"
            f"<title type='text'>{self.blog.title}</title><subtitle type='html'></subtitle>"
            "<link rel='http://schemas.google.com/g/2005#feed' type='application/atom+xml'"
            f" href='{self.feed_url()}'/>"
            f"<link rel='self' type='application/atom+xml' href='{self.feed_url()}'/>"
            f"<link rel='alternate' type='text/html' href='{self.url}/'/>{links}"
            "<author><name>somebody</name></author>"
            "<generator version='7.00' uri='http://www.blogger.com'>Blogger</generator>"
            f"<openSearch:totalResults>{total}</openSearch:totalResults>"
            f"<openSearch:startIndex>{start}</openSearch:startIndex>"
            f"<openSearch:itemsPerPage>{count}</openSearch:itemsPerPage>"
            f"{''.join(self._entry(post) for post in posts)}</feed>"
        )

    def _rss(self, posts: list[Post]) -> str:
        items = "".join(
            f"<item><guid isPermaLink='false'>{self.identity(post)}</guid>"
            f"<pubDate>{formatdate(post.published)}</pubDate><title>{escape(post.title)}</title>"
            f"<description>&lt;p&gt;{escape(post.content)}&lt;/p&gt;</description>"
            f"<link>{self.url}/{post.slug}.html</link></item>"
            for post in posts
        )
        return (
            "<?xml version='1.0' encoding='UTF-8'?><rss version='2.0'"
            " xmlns:openSearch='http://a9.com/-/spec/opensearchrss/1.0/'><channel>"
            f"<title>{self.blog.title}</title><description></description><generator>Blogger</generator>"
            f"<openSearch:totalResults>{len(self.posts) + self.claims_more}</openSearch:totalResults>"
            f"{items}</channel></rss>"
        )

    def _page(self, start: int, count: int) -> str:
        pages = f"{self.url}/feeds/{BLOG}/posts/default"
        return f"{pages}?start-index={start}&max-results={count}&redirect=false"

    def _entry(self, post: Post) -> str:
        return (
            f"<entry><id>{self.identity(post)}</id><published>{_stamp(post.published)}</published>"
            f"<updated>{_stamp(post.modified)}</updated><title type='text'>{escape(post.title)}</title>"
            f"<content type='html'>&lt;p&gt;{escape(post.content)}&lt;/p&gt;</content>"
            f"<link rel='alternate' type='text/html' href='{self.url}/{post.slug}.html'/>"
            f"<author><name>{post.author}</name></author><thr:total>0</thr:total></entry>"
        )


def _stamp(at: int) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%S.000Z")
