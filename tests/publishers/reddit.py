"""A stand-in for Reddit: `/r/some/new/.rss` has 25 submissions, `?limit=100&after=t3_ID` those behind one.

    reddit = Reddit(origin, submissions=1500)
    reddit.feed_url()                       # …/r/some/new/.rss

Where this comes from: reddit-archive/reddit, as it was published last in 2017 (`templates/base.xml` and
`link.xml`: elements, and the feed's id, which is path and query; `VLimit` in `validator.py`: 25, at most 100;
`precompute_limit` in `queries.py`: a thousand; `builder.py`: 403 behind what was removed, and nothing behind
what is in the list no more), and captures of 2020 to 2023. Reddit's present code is not public.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final
from urllib.parse import parse_qs
from xml.sax.saxutils import escape

from tests.answers import Answer, Document, Request, Status
from tests.origin import Origin
from tests.publishers.blog import Blog, Post
from tests.publishers.front import Front
from tests.publishers.wordpress_query import absint

USUAL: Final = 25
MOST: Final = 100
LISTED: Final = 1000


class Reddit(Front):
    """A subreddit; its submissions are the posts of a blog.

    Args:
        origin: The owner of its address.
        submissions: How many there are at first.
    """

    def __init__(self, origin: Origin, submissions: int = 1500) -> None:
        super().__init__(origin)
        self.blog = Blog(submissions)
        self.add, self.edit, self.delete = self.blog.add, self.blog.edit, self.blog.delete

    @property
    def submissions(self) -> list[Post]:
        """The newest first, as many as are listed."""
        return self.blog.posts[::-1][:LISTED]

    def feed_url(self) -> str:
        return f"{self.url}/r/some/new/.rss"

    def identity(self, post: Post) -> str:
        return f"t3_{post.id}"

    async def behind(self, target: str, request: Request) -> Answer:
        path, _, query = target.partition("?")
        if path != "/r/some/new/.rss":
            return Status(404)
        fields = {name: values[-1] for name, values in parse_qs(query).items()}
        limit = min(max(1, absint(fields.get("limit", str(USUAL)))), MOST)
        names = [self.identity(post) for post in self.submissions]
        after = fields.get("after", "")
        if after and after not in {self.identity(post) for post in self.blog.posts}:
            return Status(403)
        start = (names.index(after) + 1 if after in names else LISTED) if after else 0
        entries = "".join(self._entry(post) for post in self.submissions[start : start + limit])
        body = (
            '<?xml version="1.0" encoding="UTF-8"?><feed xmlns="http://www.w3.org/2005/Atom">'
            '<category term="some" label="r/some"/>'
            f"<updated>{_stamp(self.blog.now)}</updated><id>{escape(target)}</id>"
            f'<link rel="self" href="{escape(self.url + target)}" type="application/atom+xml"/>'
            f'<link rel="alternate" href="{self.url}/r/some/new/" type="text/html"/>'
            f"<title>newest submissions : some</title>{entries}</feed>"
        )
        kind = ("Content-Type", "application/atom+xml; charset=UTF-8")
        return Document(body=body.encode(), headers=(kind, ("Cache-Control", "private, max-age=3600")))

    def _entry(self, post: Post) -> str:
        return (
            f"<entry><author><name>/u/{post.author}</name></author>"
            f'<category term="some" label="r/some"/><content type="html">{escape(post.content)}</content>'
            f"<id>{self.identity(post)}</id>"
            f'<link href="{self.url}/r/some/comments/{post.id}/{post.slug}/"/>'
            f"<updated>{_stamp(post.published)}</updated><published>{_stamp(post.published)}</published>"
            f"<title>{escape(post.title)}</title></entry>"
        )


def _stamp(at: int) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%S+00:00")
