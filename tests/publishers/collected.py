"""Shared parts of tests of collected histories: a blog's feed, read through the proxy.

feed = Feed(proxy, wordpress, "atom")
reply = await feed.whole()
assert feed.shown(reply) == ALL
"""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import parse_qsl, urlsplit

from tests.feeds import own_ids
from tests.origin import Origin
from tests.publishers.wordpress import WordPress
from tests.running import Proxy, Reply

DAY = 86_400.0
WEEK = 7 * DAY
FORMATS = ("rss2", "atom", "rdf")
ALL: tuple[str, set[str]] = ("collected", set())


@dataclass
class Feed:
    """One feed of a blog, read through the proxy."""

    proxy: Proxy
    blog: WordPress
    form: str = "rss2"
    under: str = ""

    @property
    def url(self) -> str:
        return self.blog.feed_url(self.form, self.under)

    async def whole(self) -> Reply:
        """Ask until nothing is loading."""
        return await self.proxy.whole(self.url)

    async def later(self, seconds: float = DAY + 1) -> Reply:
        """Let time go by and ask again, until the started work ends."""
        self.proxy.clock.advance(seconds)
        await self.proxy.get(self.url)
        await self.proxy.settled()
        return await self.whole()

    def shown(self, reply: Reply) -> tuple[str, set[str]]:
        """Return an answer's state and missing posts: `ALL` if it has every post."""
        return reply.state, self.lacks(reply)

    def lacks(self, reply: Reply) -> set[str]:
        """Return the identities of published posts absent from the answer."""
        return self.blog.identities(self.form) - set(own_ids(reply.body))


def pages_asked(origin: Origin) -> list[str]:
    """Return the query strings of pages requested with GET, in order."""
    return [
        urlsplit(request.target).query
        for request in origin.requests
        if request.method == "GET"
        and dict(parse_qsl(urlsplit(request.target).query)).keys() & {"paged", "orderby"}
    ]
