"""The page of one feed. STAND-IN: the page itself is written elsewhere and replaces this file."""

from __future__ import annotations

from aiohttp import web

from wholefeed.web.keys import SERVICE
from wholefeed.web.named import named_url
from wholefeed.web.page.templates import page


async def feed_page(request: web.Request) -> web.StreamResponse:
    """GET /?url=U: what is known of a feed."""
    status = await request.app[SERVICE].status(await named_url(request))
    return await page(request, "feed.html", feed=status.feed)
