"""A feed's own URL opened in a browser leads to the feed for people (`/view`); readers never see that.

A browser says `Sec-Fetch-Dest: document` of a page that somebody opens (W3C Fetch Metadata), and names HTML
in Accept; readers do not send both. It does so by https and on the visitor's own machine alone: by plain http
from elsewhere the feed is what it gets.
"""

from __future__ import annotations

from typing import Final
from urllib.parse import quote

from aiohttp import web
from multidict import istr

from wholefeed.web.answer.prepared import VARY
from wholefeed.web.asked import Asked
from wholefeed.web.page.templates import root_of
from wholefeed.web.page.wanted import is_browser
from wholefeed.web.request_target import VIEW_OPTIONS
from wholefeed.web.session import begin_session

_CARRIED: Final = (*VIEW_OPTIONS, "signed")
_DESTINATION: Final = istr("Sec-Fetch-Dest")
_FOLDER: Final = "/feed/"


def is_opened(request: web.Request) -> bool:
    """Return whether somebody opens a URL in a browser: a page is what they can read."""
    return request.headers.get(_DESTINATION) == "document" and is_browser(request)


def to_view(request: web.Request, asked: Asked) -> web.Response:
    """Lead to the feed for people, by a relative URL: it holds below any prefix of a reverse proxy.

    A token that came in the URL stays behind, for URLs are shown and kept: a session stands for it. Only
    whoever is let in by the token gets one: beside a signature a token is not looked at.
    """
    query = f"?url={quote(asked.query.url, safe='')}{carried(asked)}"
    token = asked.query.options.get("token")
    begins = token is not None and asked.knows_token and not asked.session
    if begins and asked.route == _FOLDER:  # whose session would be good for that folder alone
        query += f"&token={quote(token or '', safe='')}"
    fields = {"Location": f"{root_of(request)}view{query}", "Vary": VARY, "Cache-Control": "no-store"}
    response = web.Response(status=303, headers=fields)
    if begins and asked.route != _FOLDER:
        begin_session(request, response)
    return response


def carried(asked: Asked) -> str:
    """Return what else of a request goes with every link to the same feed."""
    options = asked.query.options
    return "".join(f"&{name}={quote(options[name], safe='')}" for name in _CARRIED if name in options)
