"""A stand-in for Discourse: `/posts.rss?before=ID` goes back by fifty, `/latest.rss?page=N` by thirty topics.

    discourse = Discourse(origin, posts=320)
    discourse.feed_url()                    # …/posts.rss
    Topics(origin, 320).feed_url()          # …/latest.rss

Where this comes from: discourse/discourse, `posts_controller.rb` and `latest_posts_query.rb` (fifty posts
with an ID below `before`, by ID; `before` that is no positive number is none), `views/posts/latest.rss.erb`
(elements; the guid is the host's name, `-post-` and the ID), `list_controller.rb` and `topic_query.rb` (since
pull request 10350 `latest.rss` honours query parameters; by creation without them, pages from 0 on; a
category's feed has 25 and reads none). There is no generator: the namespace of Discourse and the header
field `X-Discourse-Route` tell. Behind the oldest there is a channel without items.
"""

from __future__ import annotations

from email.utils import formatdate
from typing import Final
from urllib.parse import parse_qs
from xml.sax.saxutils import escape

from tests.answers import Answer, Document, Request, Status
from tests.origin import Origin
from tests.publishers.blog import Blog, Post, page_of
from tests.publishers.front import Front
from tests.publishers.wordpress_query import absint

POSTS: Final = 50
TOPICS: Final = 30
IN_CATEGORY: Final = 25
NEWS: Final = 5
"""Number of the category of the topics under news."""


class Discourse(Front):
    """A forum; each post is a topic of its own.

    Args:
        origin: The owner of its address.
        posts: How many there are at first.
    """

    def __init__(self, origin: Origin, posts: int = 320) -> None:
        super().__init__(origin)
        self.blog = Blog(posts, title="Some Forum")
        self.add, self.edit, self.delete = self.blog.add, self.blog.edit, self.blog.delete

        self.reads_category = True

    @property
    def posts(self) -> list[Post]:
        """By ID, the newest first."""
        return self.blog.posts[::-1]

    def feed_url(self, kind: str = "posts") -> str:
        return f"{self.url}/{kind}.rss"

    def identity(self, post: Post, kind: str = "post") -> str:
        return f"{self.origin.host}-{kind}-{post.id}"

    async def behind(self, target: str, request: Request) -> Answer:
        path, _, query = target.partition("?")
        fields = {name: values[-1] for name, values in parse_qs(query).items()}
        if path == "/posts.rss":
            before = absint(fields.get("before", ""))
            found = [post for post in self.posts if not before or post.id < before][:POSTS]
            return self._document("post", found, "posts/latest")
        if path == "/latest.rss":
            return self._document("topic", self._topics(fields), "list/latest_feed", "/latest")
        if path == f"/c/news/{NEWS}.rss":
            topics = [post for post in self.posts if post.category == "news"]
            topics = page_of(topics, key="published", ascending=False, start=0, count=IN_CATEGORY)
            return self._document("topic", topics, "list/category_feed", f"/c/news/{NEWS}")
        return Status(404)

    def _topics(self, fields: dict[str, str]) -> list[Post]:
        key = "modified" if fields.get("order") == "activity" else "published"
        is_ascending = fields.get("ascending") == "true"
        start = absint(fields.get("page", "")) * TOPICS
        is_all = "category" not in fields or not self.reads_category
        found = [post for post in self.posts if is_all or post.category == "news"]
        return page_of(found, key=key, ascending=is_ascending, start=start, count=TOPICS)

    def _document(self, kind: str, posts: list[Post], route: str, link: str = "") -> Answer:
        what = "Latest posts" if kind == "post" else "Latest topics"
        body = (
            '<?xml version="1.0" encoding="UTF-8" ?>\n'
            '<rss version="2.0" xmlns:discourse="http://www.discourse.org/" '
            'xmlns:atom="http://www.w3.org/2005/Atom" xmlns:dc="http://purl.org/dc/elements/1.1/">\n'
            f"  <channel>\n    <title>{self.blog.title} - {what}</title>\n    <link>{self.url}{link}</link>\n"
            f"    <description>{what}</description>\n{''.join(self._item(kind, post) for post in posts)}"
            "  </channel>\n</rss>\n"
        )
        return Document(
            body=body.encode(),
            headers=(("Content-Type", "application/rss+xml; charset=utf-8"), ("X-Discourse-Route", route)),
        )

    def _item(self, kind: str, post: Post) -> str:
        return (
            f"      <item>\n        <title>{escape(post.title)}</title>\n"
            f"        <dc:creator><![CDATA[@{post.author}]]></dc:creator>\n"
            f"        <description><![CDATA[ <p>{post.content}</p> ]]></description>\n"
            f"        <link>{self.url}/t/{post.slug}/{post.id}</link>\n"
            f"        <pubDate>{formatdate(post.published, usegmt=True)}</pubDate>\n"
            f'        <guid isPermaLink="false">{self.identity(post, kind)}</guid>\n      </item>\n'
        )


class Topics(Discourse):
    """Its topics, or those of its category: each post is one.

    Args:
        origin: The owner of its address.
        posts: How many there are at first.
        kind: Which feed: `latest`, or `c/news/5`.
    """

    def __init__(self, origin: Origin, posts: int = 320, kind: str = "latest") -> None:
        super().__init__(origin, posts)
        self.kind = kind

    def feed_url(self, kind: str = "") -> str:
        return super().feed_url(kind or self.kind)

    def identity(self, post: Post, kind: str = "topic") -> str:
        return super().identity(post, kind)
