"""The base of the pages for people: templates, static files, and the cookie of a session.

    return await page(request, "home.html", feeds=known)

Every value is escaped unless it is Markup. A template sees `root`, the relative URL from the page to the
proxy's root (so links are right below any prefix, stripped or kept); `action("refresh", url=…)`, the target
of a form that changes something; and `is_logged_in`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from functools import cache, partial
from hashlib import blake2b
from importlib.resources import files
from typing import TYPE_CHECKING, Final
from urllib.parse import urlencode

from aiohttp import web
from markupsafe import Markup

from wholefeed.server.clients import SESSION_SECONDS, form_proof, is_good_session, issue_session
from wholefeed.web.keys import ASKED, CONFIG, PREFIX, SERVICE
from wholefeed.web.request import DESTINATION, base_url, parse_weights, root_from

if TYPE_CHECKING:
    from jinja2 import Environment


# Pages made of the templates beside this module

CONTENT_SECURITY_POLICY: Final = (
    "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self' data:;"
    " form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
"""Of every page: style and script of the proxy's own, nothing from elsewhere, nothing inline."""
PAGE_FIELDS: Final = {
    "Content-Type": "text/html; charset=utf-8",
    "Content-Security-Policy": CONTENT_SECURITY_POLICY,
    "Cache-Control": "no-store",
    # With `no-referrer` a browser sends `Origin: null` with the page's own forms (Fetch, "append a request
    # `Origin` header"), and by plain http says nothing else of where they come from.
    "Referrer-Policy": "same-origin",
    "Vary": "Accept, Cookie",
}
"""Of every page."""


async def page(request: web.Request, template: str, *, status: int = 200, **context: object) -> web.Response:
    """Answer with a page made of a file in the folder of templates, which shows the values of `context`."""
    text = await page_text(request, template, **context)
    return web.Response(body=text.encode("utf-8", "replace"), status=status, headers=PAGE_FIELDS)


async def page_text(request: web.Request, template: str, **context: object) -> str:
    """Return the text of a page. It is made on a thread: templates are read when they are first used."""
    values = {
        "root": root_of(request),
        "action": partial(_action, request),
        "is_logged_in": bool(request[ASKED].session),
        **context,
    }
    return await asyncio.to_thread(render, template, values)


def root_of(request: web.Request) -> str:
    """Return the relative URL that leads from the URL of a request to the proxy's own, with a final slash."""
    return root_from(request.raw_path, request.app[PREFIX])


def _action(request: web.Request, path: str, **query: str) -> str:
    """Return where a form is sent to: a path below the root, with what shows that the form is ours."""
    session = request[ASKED].session
    if session:  # in front: what stands behind a URL may be taken for a part of it
        query = {"proof": form_proof(session, request.app[CONFIG].server.access_token), **query}
    return root_of(request) + path + ("?" + urlencode(query) if query else "")


def render(template: str, context: Mapping[str, object]) -> str:
    """Return what a file in the folder of templates makes of values; it may read files."""
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
    made.filters["static"] = version_path
    return made


def time_element(machine: str, text: str) -> Markup:
    """Return an instant on a page: words for people, and beside them what programs read."""
    return Markup('<time datetime="{}">{}</time>').format(machine, text)


# Whether a person's browser asks, or a program: what is answered with differs

_PAGES: Final = frozenset({"text/html", "application/xhtml+xml"})
_OTHERS: Final = frozenset({"text/plain", "application/json", "application/problem+json"})
"""What else we answer people's and programs' requests with."""


def is_browser(request: web.Request) -> bool:
    destination = request.headers.get(DESTINATION)
    if destination == "empty" and request.headers.get("Sec-Fetch-Site") == "same-origin":
        destination = None  # a script of a page of ours, which gets one where it names HTML
    return wants_page(request.headers.get("Accept", ""), destination)


def wants_page(accept: str, destination: str | None) -> bool:
    """Whether a page is what is wanted (RFC 9110, 12.5.1).

        wants_page("text/html,application/xhtml+xml,*/*;q=0.8", "document")      # True: a browser opens it
        wants_page("*/*", None)                                                  # False: curl

    HTML must be named, and be preferred to plain text and to JSON: `*/*` is what programs send. Scripts,
    images and frames (Sec-Fetch-Dest) get no page.
    """
    if destination not in (None, "document"):
        return False
    ranked = sorted(
        parse_weights(accept), key=lambda found: -found[1]
    )  # stable: the first of equals comes first
    for media_type, weight in ranked:
        if weight > 0 and media_type in _PAGES:
            return True
        if media_type in _OTHERS:
            return False
    return False


# The session: what `wholefeed.server.clients` issues, in a cookie

COOKIE: Final = "wholefeed-session"
_COOKIE_PATH: Final = ""
"""No path: then it is the folder of the URL that the browser asked for (RFC 6265, 5.1.4), and all that sets
it lies at the proxy's root: right below any prefix, also one that a reverse proxy keeps to itself."""


def session_of(request: web.Request) -> str:
    """Return the session that a request bears, if it is good for anything; else nothing."""
    if "Cookie" not in request.headers:
        return ""
    session, token = request.cookies.get(COOKIE, ""), request.app[CONFIG].server.access_token
    return session if is_good_session(session, token, request.app[SERVICE].now()) else ""


def begin_session(request: web.Request, response: web.Response) -> None:
    """Let the browser keep a new session; scripts do not see it.

    SameSite=Lax: a page of another site cannot have it sent along with a form, a picture or a script; a link
    that leads here from a reader's own page has it.
    """
    expires_at = int(request.app[SERVICE].now()) + SESSION_SECONDS
    response.set_cookie(
        COOKIE,
        issue_session(request.app[CONFIG].server.access_token, expires_at=expires_at),
        max_age=SESSION_SECONDS,
        path=_COOKIE_PATH,
        secure=_is_secure(request),
        httponly=True,
        samesite="Lax",
    )


def _is_secure(request: web.Request) -> bool:
    """Whether the browser speaks https; it says so itself, whatever address the proxy has beside that."""
    origin = request.headers.get("Origin", "")
    if "://" not in origin:
        origin = base_url(request, request[ASKED])
    return origin.startswith("https://")


def end_session(response: web.Response) -> None:
    response.del_cookie(COOKIE, path=_COOKIE_PATH, httponly=True, samesite="Lax")


# Style and script, for everybody: the page that asks for a token needs them

_TYPES: Final = {"css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}
_FOR_GOOD: Final = "public, max-age=31536000, immutable"
_BRIEFLY: Final = "public, max-age=300"


def _read_static() -> dict[str, bytes]:
    folder = files(__package__).joinpath("static")
    return {
        each.name: each.read_bytes() for each in folder.iterdir() if each.name.rpartition(".")[2] in _TYPES
    }


_CONTENTS: Final = _read_static()
_VERSIONS: Final = {name: blake2b(body, digest_size=6).hexdigest() for name, body in _CONTENTS.items()}


async def get_static(request: web.Request) -> web.StreamResponse:
    """GET /static/NAME: one file; for good where the URL names its version."""
    name = request.match_info["name"]
    body = _CONTENTS.get(name)
    if body is None:
        raise web.HTTPNotFound
    is_named = request.query.get("v") == _VERSIONS[name]
    return web.Response(
        body=body,
        content_type=_TYPES[name.rpartition(".")[2]],
        charset="utf-8",
        headers={"Cache-Control": _FOR_GOOD if is_named else _BRIEFLY},
    )


def version_path(name: str) -> str:
    """Return the path of a file below the proxy's root, with its version."""
    return f"static/{name}?v={_VERSIONS[name]}"
