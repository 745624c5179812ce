"""The base of pages for people.

    return await page(request, "home.html", feeds=known)

Templates escape values except Markup. They see `root`, a relative URL valid below any prefix,
`action("refresh", url=…)` for forms, and `is_logged_in`.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from functools import cache, partial
from hashlib import blake2b
from importlib.resources import files
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import urlencode

from aiohttp import web
from markupsafe import Markup

from wholefeed.core.compose.entries import WrittenDate, instant
from wholefeed.core.text.dates import calendar_words
from wholefeed.server.clients import SESSION_SECONDS, form_proof, is_good_session, issue_session
from wholefeed.web.keys import ASKED, CONFIG, PREFIX, SERVICE
from wholefeed.web.request import DESTINATION, base_url, parse_weights, root_from

if TYPE_CHECKING:
    from jinja2 import Environment


# Pages from templates

CONTENT_SECURITY_POLICY: Final = (
    "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self' data:;"
    " form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
"""Only own style and script, nothing inline."""
PAGE_FIELDS: Final = {
    "Content-Type": "text/html; charset=utf-8",
    "Content-Security-Policy": CONTENT_SECURITY_POLICY,
    "Cache-Control": "no-store",
    # With `no-referrer` a browser sends `Origin: null` with the page's own forms (Fetch, "append a request
    # `Origin` header"), and by plain http says nothing else of where they come from.
    "Referrer-Policy": "same-origin",
    "Vary": "Accept, Cookie",
}


async def page(request: web.Request, template: str, *, status: int = 200, **context: object) -> web.Response:
    text = await page_text(request, template, **context)
    return web.Response(body=text.encode("utf-8", "replace"), status=status, headers=PAGE_FIELDS)


async def page_text(request: web.Request, template: str, **context: object) -> str:
    """Return a page's text, rendered on a thread: templates load on first use."""
    values = {
        "root": root_of(request),
        "action": partial(_action, request),
        "is_logged_in": bool(request[ASKED].session),
        **context,
    }
    return await asyncio.to_thread(render, template, values)


def root_of(request: web.Request) -> str:
    return root_from(request.raw_path, request.app[PREFIX])


def _action(request: web.Request, path: str, **query: str) -> str:
    """Return a form's target, with the session's proof."""
    session = request[ASKED].session
    if session:  # in front: parameters behind a URL may count as its part
        query = {"proof": form_proof(session, request.app[CONFIG].server.access_token), **query}
    return root_of(request) + path + ("?" + urlencode(query) if query else "")


def render(template: str, context: Mapping[str, object]) -> str:
    """Render a template; may read files."""
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


def time_element(machine: str, text: str, shown: str = "") -> Markup:
    """Return an instant in words and for programs.

    The page's script writes a `shown` `day` or `minute` anew in the browser's time zone.
    """
    local = Markup(' data-shown="{}"').format(shown) if shown else ""
    return Markup('<time datetime="{}"{}>{}</time>').format(machine, local, text)


def date_element(date: WrittenDate, *, has_time: bool = True) -> Markup | None:
    """Return a date in UTC; None: it has none. A time that nobody wrote is left out."""
    if date.at is None:
        return None
    if date.on:
        return time_element(date.on, calendar_words(date.on))
    then = instant(date.at).replace(microsecond=0)
    day, machine = calendar_words(f"{then.date()}"), then.isoformat().replace("+00:00", "Z")
    if has_time:
        return time_element(machine, f"{day}, {then:%H:%M} UTC", "minute")
    return time_element(machine, day, "day")


def see_other(location: str) -> web.Response:
    """Redirect by a relative URL, valid below any prefix."""
    return web.Response(status=303, headers={"Location": location, "Cache-Control": "no-store"})


MOST_CHARACTERS: Final = 200
"""For a title, or authors' names."""
LONGEST_URL: Final = 2000


class Trouble(NamedTuple):
    what: str
    advice: str
    detail: str = ""


# Browser or program

_PAGES: Final = frozenset({"text/html", "application/xhtml+xml"})
_OTHERS: Final = frozenset({"text/plain", "application/json", "application/problem+json"})


def is_browser(request: web.Request) -> bool:
    destination = request.headers.get(DESTINATION)
    if destination == "empty" and request.headers.get("Sec-Fetch-Site") == "same-origin":
        destination = None  # our pages' scripts may want HTML
    return wants_page(request.headers.get("Accept", ""), destination)


def wants_page(accept: str, destination: str | None) -> bool:
    """Whether HTML is wanted: named, and preferred to text and JSON (RFC 9110, 12.5.1).

    wants_page("text/html,application/xhtml+xml,*/*;q=0.8", "document")      # True: a browser opens it
    wants_page("*/*", None)                                                  # False: curl
    """
    if destination not in (None, "document"):
        return False
    ranked = sorted(parse_weights(accept), key=lambda found: -found[1])  # stable: equals stay in order
    for media_type, weight in ranked:
        if weight > 0 and media_type in _PAGES:
            return True
        if media_type in _OTHERS:
            return False
    return False


def opens_page(accept: str, user_agent: str) -> bool:
    """Whether a browser opens a feed's URL, by its request over plain http from another machine.

    Accept prefers HTML to XML and JSON, and the User-Agent names browsers alone. Some readers send either,
    none sends both (tests/data/reader_requests.toml).
    """
    if len(user_agent) > _LONGEST_AGENT or _BROWSER.fullmatch(user_agent) is None:
        return False
    ranked = sorted(parse_weights(accept), key=lambda found: -found[1])
    asked = (
        name for name, weight in ranked if weight > 0 and (name in _OTHERS or name.endswith(_DATA_OR_PAGE))
    )
    return next(asked, "") == "text/html"


_DATA_OR_PAGE: Final = ("html", "xml", "json")
_LONGEST_AGENT: Final = 500
_BROWSERS: Final = (
    "AppleWebKit|Brave|Chrome|Chromium|CriOS|Ddg|DuckDuckGo|Edg|EdgA|EdgiOS|Epiphany|Firefox|FxiOS|GSA|Gecko"
    "|HeadlessChrome|HuaweiBrowser|MiuiBrowser|Mobile|OPR|OPT|Safari|SamsungBrowser|SeaMonkey|Silk|UCBrowser"
    "|Version|Vivaldi|YaBrowser|Yowser"
)
_BROWSER: Final = re.compile(
    r"Mozilla/5\.0 \((?!compatible)(?:(?!https?:|@)[^()])++\)"
    rf"(?: (?:(?:{_BROWSERS})/[\w.+-]++|Mobile|\(KHTML, like Gecko\)))++",
    re.ASCII,
)
"""A platform, and products of browsers; readers name themselves as another product, or in the comment."""


# Sessions in a cookie

COOKIE: Final = "wholefeed-session"
_COOKIE_PATH: Final = ""
"""Empty: the URL's folder (RFC 6265, 5.1.4), which is the root below any prefix."""


def session_of(request: web.Request) -> str:
    """Return the request's valid session, or ""."""
    if "Cookie" not in request.headers:
        return ""
    session, token = request.cookies.get(COOKIE, ""), request.app[CONFIG].server.access_token
    return session if is_good_session(session, token, request.app[SERVICE].now()) else ""


def begin_session(request: web.Request, response: web.Response) -> None:
    """Set a session cookie, hidden from scripts.

    SameSite=Lax: other sites' forms and pictures lack it, their links have it.
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
    """Whether the browser uses https, by its Origin first."""
    origin = request.headers.get("Origin", "")
    if "://" not in origin:
        origin = base_url(request, request[ASKED])
    return origin.startswith("https://")


def end_session(response: web.Response) -> None:
    response.del_cookie(COOKIE, path=_COOKIE_PATH, httponly=True, samesite="Lax")


# Style and script, open to all: the login page needs them

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
    """Send a file, immutable if the URL names its version."""
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
    return f"static/{name}?v={_VERSIONS[name]}"
