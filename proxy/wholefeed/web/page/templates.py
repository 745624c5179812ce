"""Pages made of the templates beside this module.

    return await page(request, "home.html", feeds=known)

Every value is escaped unless it is Markup. A template sees `root`, what leads from the page's own URL to the
proxy's: links are relative, so that they are right below any prefix that a reverse proxy strips.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Final

from aiohttp import web

from wholefeed.web.page.static import versioned

if TYPE_CHECKING:
    from jinja2 import Environment

CONTENT_SECURITY_POLICY: Final = (
    "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self' data:;"
    " form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
"""Of every page: style and script of the proxy's own, nothing from elsewhere, nothing inline."""


async def page(request: web.Request, template: str, *, status: int = 200, **context: object) -> web.Response:
    """Answer with a page; it is made on a thread, since templates are read when they are first used.

    Args:
        request: What is answered.
        template: A file in the folder of templates.
        status: Of the answer.
        context: What the template shows.
    """
    text = await asyncio.to_thread(_rendered, template, {"root": root_of(request), **context})
    headers = {"Content-Security-Policy": CONTENT_SECURITY_POLICY, "Cache-Control": "no-store"}
    return web.Response(text=text, status=status, content_type="text/html", charset="utf-8", headers=headers)


def root_of(request: web.Request) -> str:
    """Return the relative URL that leads from the URL of a request to the proxy's own, with a final slash."""
    depth = request.raw_path.partition("?")[0].count("/") - 1
    return "../" * depth or "./"


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
