"""Pages made of the templates beside this module.

    return await page(request, "home.html", feeds=known)

Every value is escaped unless it is Markup. A template sees `root`, what leads from the page's own URL to the
proxy's: links are relative, so that they are right below any prefix, stripped or kept;
`action("refresh", url=…)`, where a form that changes something is sent to; and `is_logged_in`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from functools import cache, partial
from typing import TYPE_CHECKING, Final
from urllib.parse import urlencode

from aiohttp import web

from wholefeed.server.sessions import form_proof
from wholefeed.web.keys import ASKED, CONFIG, PREFIX
from wholefeed.web.page.static import versioned

if TYPE_CHECKING:
    from jinja2 import Environment

CONTENT_SECURITY_POLICY: Final = (
    "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self' data:;"
    " form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
"""Of every page: style and script of the proxy's own, nothing from elsewhere, nothing inline."""

_FIELDS: Final = {
    "Content-Security-Policy": CONTENT_SECURITY_POLICY,
    "Cache-Control": "no-store",
    # With `no-referrer` a browser sends `Origin: null` with the page's own forms (Fetch, "append a request
    # `Origin` header"), and by plain http says nothing else of where they come from.
    "Referrer-Policy": "same-origin",
    "Vary": "Accept, Cookie",
}


async def page(request: web.Request, template: str, *, status: int = 200, **context: object) -> web.Response:
    """Answer with a page; it is made on a thread, since templates are read when they are first used.

    Args:
        request: What is answered.
        template: A file in the folder of templates.
        status: Of the answer.
        context: What the template shows.
    """
    values = {
        "root": root_of(request),
        "action": partial(_action, request),
        "is_logged_in": bool(request[ASKED].session),
        **context,
    }
    text = await asyncio.to_thread(_rendered, template, values)
    return web.Response(text=text, status=status, content_type="text/html", charset="utf-8", headers=_FIELDS)


def root_of(request: web.Request) -> str:
    """Return the relative URL that leads from the URL of a request to the proxy's own, with a final slash."""
    return request.app[PREFIX].root(request.raw_path)


def _action(request: web.Request, path: str, **query: str) -> str:
    """Return where a form is sent to: a path below the root, with what shows that the form is ours."""
    session = request[ASKED].session
    if session:  # in front: what stands behind a URL may be taken for a part of it
        query = {"proof": form_proof(session, request.app[CONFIG].server.access_token), **query}
    return root_of(request) + path + ("?" + urlencode(query) if query else "")


def _rendered(template: str, context: Mapping[str, object]) -> str:
    return _environment().get_template(template).render(context)


@cache
def _environment() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined  # noqa: PLC0415 - 40 ms of every start

    made = Environment(
        loader=PackageLoader(__package__),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters["static"] = versioned
    return made
