"""Which feed a request is about, where what is stored has a say in it."""

from __future__ import annotations

from aiohttp import web

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
