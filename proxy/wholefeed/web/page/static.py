"""GET /static/…: style and script of the pages, for everybody: the page that asks for a token needs them."""

from __future__ import annotations

from hashlib import blake2b
from importlib.resources import files
from typing import Final

from aiohttp import web

_TYPES: Final = {"css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}
_FOR_GOOD: Final = "public, max-age=31536000, immutable"
_BRIEFLY: Final = "public, max-age=300"


def _read() -> dict[str, bytes]:
    folder = files(__package__).joinpath("static")
    return {
        each.name: each.read_bytes() for each in folder.iterdir() if each.name.rpartition(".")[2] in _TYPES
    }


_CONTENTS: Final = _read()
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


def versioned(name: str) -> str:
    """Return the path of a file below the proxy's root, with its version."""
    return f"static/{name}?v={_VERSIONS[name]}"
