"""Liveness and readiness."""

from __future__ import annotations

from typing import Final

from aiohttp import web

from wholefeed.web.keys import STORE

_HEADERS: Final = {"Cache-Control": "no-store", "Content-Type": "application/json; charset=utf-8"}


async def get_healthz(request: web.Request) -> web.StreamResponse:
    """GET /healthz: 200 as soon as the server can answer at all."""
    return web.Response(body=b'{"status": "ok"}', headers=_HEADERS)


async def get_readyz(request: web.Request) -> web.StreamResponse:
    """GET /readyz: 200 when the store is open, migrated and can be written.

    Raises:
        StoreError: It cannot (503 `storage-full` when the volume is full).
    """
    await request.app[STORE].check()
    return web.Response(body=b'{"status": "ready"}', headers=_HEADERS)
