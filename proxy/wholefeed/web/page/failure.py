"""Why there is no answer, for people: in words, with what to do, and with a form to try another address.

if wants_page(request, asked):
    return await error_page(request, 422, slug=exc.slug, detail=str(exc), error=exc)
"""

from __future__ import annotations

from http import HTTPStatus
from typing import Final

from aiohttp import web

from wholefeed.errors import WholefeedError
from wholefeed.web.asked import FEED_ROUTES, Asked
from wholefeed.web.keys import ASKED
from wholefeed.web.page.templates import page
from wholefeed.web.page.trouble import Trouble
from wholefeed.web.page.wanted import is_browser

_WHAT: Final = {
    404: "There is no page at this address",
    405: "Nothing can be done here in this way",
    413: "That is too large",
    500: "Something is wrong with this proxy",
}
_ADVICE: Final = {
    404: "Begin at the first page, or paste a feed's address below.",
    405: "Go back, and try it once more from the page that you came from.",
    413: "Send less at once.",
    500: "Try again in a minute. If it stays so, tell whoever runs this proxy the number below.",
}
_LONGEST_DETAIL: Final = 1000
_LONGEST_URL: Final = 2000


def wants_page(request: web.Request, asked: Asked) -> bool:
    """Return whether a person is told; readers, which may name HTML in Accept, get the problem document."""
    is_feed = asked.route in FEED_ROUTES
    return is_browser(request) and (not is_feed or request.headers.get("Sec-Fetch-Dest") == "document")


async def error_page(
    request: web.Request, status: int, *, slug: str, detail: str, error: WholefeedError | None = None
) -> web.Response:
    """Answer with a page in place of a problem document.

    Args:
        request: What is refused.
        status: Of the answer.
        slug: The reason, for programs; people find more under it.
        detail: What was expected and what came; what the web server itself refuses has no more to tell.
        error: What stopped the answer; None: what the web server itself refuses.
    """
    trouble = None if error is None else Trouble.of(error)
    return await page(
        request,
        "error.html",
        status=status,
        code=f"{status} {HTTPStatus(status).phrase}",
        slug=slug,
        what=_WHAT.get(status, "That failed") + "." if trouble is None else trouble.what,
        advice=_ADVICE.get(status, _ADVICE[500]) if trouble is None else trouble.advice,
        detail="" if trouble is None else detail[:_LONGEST_DETAIL],
        given=_given(request),
        request_id=request[ASKED].request_id,
    )


def _given(request: web.Request) -> str:
    """Return the URL that was asked for, to be mended in the form."""
    try:
        return request[ASKED].query.url[:_LONGEST_URL]
    except WholefeedError:
        return ""
