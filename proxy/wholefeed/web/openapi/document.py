"""GET /openapi.json: the HTTP interface, described for programs (OpenAPI 3.1).

The description is `openapi.json` beside this module, written by hand. `tests/web/openapi/test_document.py`
holds it against the routes, the slugs, the enumerations and what is really answered. Here is filled in what
an installation differs by, and HEAD beside GET.
"""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Any, Final

from aiohttp import web

from wholefeed import __version__
from wholefeed.web.keys import CONFIG


async def get_openapi(request: web.Request) -> web.StreamResponse:
    """GET /openapi.json: the description."""
    found = description(request.app[CONFIG].server.public_url)
    return web.json_response(found, headers={"Cache-Control": "no-cache"})


def description(public_url: str = "") -> dict[str, Any]:
    """Return the OpenAPI document.

    Args:
        public_url: The URL that readers reach the proxy by; empty: the one that the document came from.
    """
    return {
        **_WRITTEN,
        "info": {**_WRITTEN["info"], "version": __version__},
        "servers": [{"url": public_url or "/"}],
    }


def _written() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(files(__package__).joinpath("openapi.json").read_text("utf-8"))
    for item in found["paths"].values():
        if "get" in item:
            item["head"] = _head(item["get"])
    return found


def _head(get: dict[str, Any]) -> dict[str, Any]:
    """Describe HEAD beside GET: the same, without content."""
    responses = {
        status: {name: part for name, part in response.items() if name != "content"}
        for status, response in get["responses"].items()
    }
    return {**get, "operationId": get["operationId"].replace("get", "head", 1), "responses": responses}


_WRITTEN: Final = _written()
