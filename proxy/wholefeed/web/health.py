"""Liveness and readiness."""

from __future__ import annotations

from typing import Final

from aiohttp import web
from multidict import CIMultiDict

from wholefeed.web.keys import SERVICE, STORE

READY_SECONDS: Final = 2.0
"""Balancers and supervisors take no answer for an answer soon after that."""

_ALIVE: Final = b'{"status": "ok"}'
_HEADERS: Final = {"Cache-Control": "no-store", "Content-Type": "application/json; charset=utf-8"}
_ALIVE_HEADERS: Final = CIMultiDict({**_HEADERS, "Content-Length": str(len(_ALIVE))})


async def get_healthz(request: web.Request) -> web.StreamResponse:
    """GET /healthz: 200 as soon as the server can answer at all."""
    return web.Response(body=_ALIVE, headers=_ALIVE_HEADERS)


async def get_readyz(request: web.Request) -> web.StreamResponse:
    """GET /readyz: 200 when the store is open, migrated and can be written.

    Raises:
        StoreError: It cannot (503 `storage-full` when the volume is full).
        OverloadedError: A database that others share does not say so in time.
    """
    async with request.app[SERVICE].checks.in_time(READY_SECONDS):
        await request.app[STORE].check()
    return web.Response(body=b'{"status": "ready"}', headers=_HEADERS)
