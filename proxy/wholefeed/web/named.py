"""Which feed a request is about, where what is stored has a say in it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from aiohttp import web

from wholefeed.errors import PublisherError
from wholefeed.web.keys import ASKED, SERVICE
from wholefeed.web.request_target import feed_url, instead_url


async def named_url(request: web.Request) -> str:
    """Return the canonical URL of the feed that a request names.

    Without a scheme it is the one that was chosen before; a signature is good for https alone.

    Raises:
        RequestError: None is given.
        InvalidUrlError: It is none that can be fetched.
    """
    asked, service = request[ASKED], request.app[SERVICE]
    url = feed_url(asked.query.url)
    instead = "" if asked.mark else instead_url(asked.query.url)
    if instead and not await service.is_known(url) and await service.is_known(instead):
        return instead
    return url


async def with_instead(
    request: web.Request, answer: Callable[[str], Awaitable[web.StreamResponse]]
) -> web.StreamResponse:
    """Answer with the feed that is named; one without a scheme by http where https refuses the connection."""
    asked, url = request[ASKED], await named_url(request)
    try:
        return await answer(url)
    except PublisherError as exc:
        instead = "" if asked.mark else instead_url(asked.query.url)
        if exc.slug != "connection-failed" or instead in ("", url):
            raise
    return await answer(instead)
