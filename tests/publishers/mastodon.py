"""An account on Mastodon: `/@NAME.rss` has the newest twenty statuses, `?limit=200` the newest two hundred.

    mastodon = Mastodon(origin, statuses=500)
    mastodon.feed_url()                     # …/@somebody.rss

Where this comes from: mastodon/mastodon pull request 13743 and issue 35001 (20 by default, 200 at most, no
parameter that goes further back) and `views/accounts/show.rss.ruby` (elements; the generator is "Mastodon
v" and the version; items have no title, and a guid that is their address).
"""

from __future__ import annotations

from email.utils import formatdate
from typing import Final
from urllib.parse import parse_qs
from xml.sax.saxutils import escape

from tests.answers import Answer, Document, Request, Status
from tests.origin import Origin
from tests.publishers.blog import Blog, Post
from tests.publishers.front import Front
from tests.publishers.wordpress_query import absint

USUAL: Final = 20
MOST: Final = 200


class Mastodon(Front):
    """An account; its statuses are the posts of a blog.

    Args:
        origin: The owner of its address.
        statuses: How many there are at first.
        name: Of the account.
    """

    def __init__(self, origin: Origin, statuses: int = 500, name: str = "somebody") -> None:
        super().__init__(origin)
        self.name = name
        self.blog = Blog(statuses)
        self.add, self.edit, self.delete = self.blog.add, self.blog.edit, self.blog.delete

    @property
    def statuses(self) -> list[Post]:
        """The newest first."""
        return self.blog.posts[::-1]

    def feed_url(self) -> str:
        return f"{self.url}/@{self.name}.rss"

    def identity(self, post: Post) -> str:
        return f"{self.url}/@{self.name}/{post.id}"

    async def behind(self, target: str, request: Request) -> Answer:
        path, _, query = target.partition("?")
        if path not in (f"/@{self.name}.rss", f"/users/{self.name}.rss"):
            return Status(404)
        asked = parse_qs(query).get("limit")
        statuses = self.statuses[: min(absint(asked[0]), MOST) if asked else USUAL]
        changed = "".join(
            f"    <lastBuildDate>{formatdate(post.published, usegmt=True)}</lastBuildDate>\n"
            for post in statuses[:1]
        )
        body = (
            '<?xml version="1.0" encoding="UTF-8"?>\n<rss version="2.0" '
            'xmlns:webfeeds="http://webfeeds.org/rss/1.0" xmlns:media="http://search.yahoo.com/mrss/">\n'
            f"  <channel>\n    <title>{self.name}</title>\n"
            f"    <description>Public posts from @{self.name}</description>\n"
            f"    <link>{self.url}/@{self.name}</link>\n"
            f"{changed}    <generator>Mastodon v4.3.0</generator>\n"
            f"{''.join(self._item(post) for post in statuses)}  </channel>\n</rss>\n"
        )
        return Document(
            body=body.encode(),
            headers=(
                ("Content-Type", "application/rss+xml; charset=utf-8"),
                ("Cache-Control", "max-age=60, public"),
            ),
        )

    def _item(self, post: Post) -> str:
        text = f"{escape(post.title)}: {escape(post.content)}"
        return (
            f'    <item>\n      <guid isPermaLink="true">{self.identity(post)}</guid>\n'
            f"      <link>{self.identity(post)}</link>\n"
            f"      <pubDate>{formatdate(post.published, usegmt=True)}</pubDate>\n"
            f"      <description>&lt;p&gt;{text}&lt;/p&gt;</description>\n"
            "    </item>\n"
        )
