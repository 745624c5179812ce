"""GitHub's feeds of releases and tags: ten of them, and `?after=TAG` for the ten behind one.

    github = GitHub(origin, releases=42)
    github.feed_url()                       # …/owner/name/releases.atom

Where this comes from: programs in the wild that page so (`releases.atom?after=` with the tag that is the
end of the last entry's id), discussions of the feed's ten entries (mittwald/flow issue 3012: other
parameters are ignored), and its text as quoted in seerr-team/seerr issue 1423 (head, ids, no link to
another page, no generator). Behind the oldest there is a feed without entries. What an unknown tag gets is
not known; here it gets the newest ten.
"""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime
from typing import Final
from urllib.parse import parse_qs
from xml.sax.saxutils import escape, quoteattr

import pytest

from tests.answers import Answer, Document, Request, Status
from tests.origin import Origin
from tests.patching import set_constant
from tests.publishers.blog import Blog, Post
from tests.publishers.front import Front
from wholefeed.core.adapters.others import GitHub as GitHubAdapter
from wholefeed.core.adapters.others import Reddit as RedditAdapter
from wholefeed.core.adapters.table import ADAPTERS

PAGE: Final = 10
REPOSITORY: Final = 123456


def on_loopback(patch: pytest.MonkeyPatch) -> None:
    """Let a proxy take 127.0.0.1 for GitHub and Reddit, known by host, until the patch is undone."""
    others = tuple(each for each in ADAPTERS if not isinstance(each, GitHubAdapter | RedditAdapter))
    here = GitHubAdapter(host="127.0.0.1"), RedditAdapter(host="127.0.0.1")
    set_constant(patch, "ADAPTERS", (*others, *here))


class GitHub(Front):
    """A repository; its releases are the posts of a blog, tagged v1, v2 …

    Args:
        origin: The owner of its address.
        releases: How many there are at first.
        name: Owner and name.
    """

    def __init__(self, origin: Origin, releases: int = 42, name: str = "owner/name") -> None:
        super().__init__(origin)
        self.name = name
        self.blog = Blog(releases)
        self.add, self.edit, self.delete = self.blog.add, self.blog.edit, self.blog.delete

    @property
    def releases(self) -> list[Post]:
        """The newest first."""
        return sorted(self.blog.posts, key=lambda post: -post.published)

    def feed_url(self, kind: str = "releases") -> str:
        return f"{self.url}/{self.name}/{kind}.atom"

    def tag(self, post: Post) -> str:
        return f"v{post.id}"

    def identity(self, post: Post) -> str:
        return f"tag:github.com,2008:Repository/{REPOSITORY}/{self.tag(post)}"

    async def behind(self, target: str, request: Request) -> Answer:
        path, _, query = target.partition("?")
        kind = path.removeprefix(f"/{self.name}/").removesuffix(".atom")
        if path != f"/{self.name}/{kind}.atom" or kind not in ("releases", "tags"):
            return Status(404)
        releases = self.releases
        tags = [self.tag(post) for post in releases]
        after = parse_qs(query).get("after", [""])[0]
        start = tags.index(after) + 1 if after in tags else 0
        body = self._feed(kind, releases[start : start + PAGE]).encode()
        return Document(
            body=body,
            headers=(
                ("Content-Type", "application/atom+xml; charset=utf-8"),
                ("Cache-Control", "max-age=0, private"),
            ),
            etag=f'W/"{hashlib.md5(body).hexdigest()}"',
        )

    def _feed(self, kind: str, posts: list[Post]) -> str:
        page = f"{self.url}/{self.name}/{kind}"
        updated = max((post.modified for post in posts), default=self.blog.now)
        return (
            '<?xml version="1.0" encoding="UTF-8"?>\n<feed xmlns="http://www.w3.org/2005/Atom" '
            'xmlns:media="http://search.yahoo.com/mrss/" xml:lang="en-US">\n'
            f"  <id>tag:github.com,2008:https://github.com/{self.name}/{kind}</id>\n"
            f'  <link type="text/html" rel="alternate" href={quoteattr(page)}/>\n'
            f'  <link type="application/atom+xml" rel="self" href={quoteattr(page + ".atom")}/>\n'
            f"  <title>Release notes from {self.name.partition('/')[2]}</title>\n"
            f"  <updated>{_stamp(updated)}</updated>\n"
            f"{''.join(self._entry(post) for post in posts)}</feed>\n"
        )

    def _entry(self, post: Post) -> str:
        page = f"{self.url}/{self.name}/releases/tag/{self.tag(post)}"
        return (
            f"  <entry>\n    <id>{self.identity(post)}</id>\n    <updated>{_stamp(post.modified)}</updated>\n"
            f'    <link rel="alternate" type="text/html" href={quoteattr(page)}/>\n'
            f"    <title>{escape(post.title)}</title>\n"
            f'    <content type="html">&lt;p&gt;{escape(post.content)}&lt;/p&gt;</content>\n'
            f"    <author>\n      <name>{post.author}</name>\n    </author>\n  </entry>\n"
        )


def _stamp(at: int) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
