"""What the forms of the pages do, refresh and forget: a program gets JSON, a browser a page again."""

from __future__ import annotations

from urllib.parse import quote

from aiohttp import web

from wholefeed.web.keys import ASKED, SERVICE
from wholefeed.web.named import named_url
from wholefeed.web.page.login import see_other
from wholefeed.web.page.wanted import is_browser
from wholefeed.web.status import json_answer, status_object


async def post_refresh(request: web.Request) -> web.StreamResponse:
    """POST /refresh?url=U: refetch now and retry what is missing; 202 with the status object, or its page."""
    query = request[ASKED].query
    is_full = query.options.get("full", "") not in ("", "0", "false")
    url = await named_url(request)
    status = await request.app[SERVICE].refresh(url, is_full=is_full)
    if is_browser(request):
        return see_other(f"./?url={quote(url, safe='')}")
    return json_answer(status_object(status), status=202)


async def post_forget(request: web.Request) -> web.StreamResponse:
    """POST /forget?url=U: forget the feed, as DELETE does, which no form can send."""
    await request.app[SERVICE].forget(await named_url(request))
    return see_other("./") if is_browser(request) else web.Response(status=204)
