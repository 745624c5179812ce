"""A client of a site: follows no redirects, and reports the facts of answers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import aiohttp

from tests.publishers.wordpress_facts import facts_of

_TOLD: Final = ("ETag", "Last-Modified", "Retry-After", "X-WP-Total", "X-WP-TotalPages")


class Visitor:
    """A visitor of one site.

    Args:
        session: Its client session.
        url: The site, without a slash at its end.
        name: The site's title.
        host: What it says for the host's name, if not what the URL has.
    """

    def __init__(
        self, session: aiohttp.ClientSession, url: str, name: str, *, host: str | None = None
    ) -> None:
        self.session = session
        self.url = url
        self.name = name
        self.host = host

    async def facts(
        self, target: str, *, method: str = "GET", headers: Mapping[str, str] | None = None
    ) -> dict[str, Any]:
        """Return the facts of an answer, with its validators and numbers."""
        sent = {
            "Accept-Encoding": "identity",
            **({"Host": self.host} if self.host else {}),
            **(headers or {}),
        }
        async with self.session.request(
            method, self.url + target, headers=sent, allow_redirects=False
        ) as reply:
            facts = facts_of(
                target,
                reply.status,
                [(name.decode(), value.decode()) for name, value in reply.raw_headers],
                await reply.text(),
                site=f"http://{self.host}" if self.host else self.url,
                name=self.name,
            )
            return facts | {name: reply.headers[name] for name in _TOLD if name in reply.headers}

    async def posts(self, target: str) -> list[int]:
        """Return the numbers in the titles of the posts of a feed, in order."""
        found: list[int] = (await self.facts(target))["posts"]
        return found
