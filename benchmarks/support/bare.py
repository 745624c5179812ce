"""A bare aiohttp handler in its own process: the least cost of an answer.

It answers /200 with given bytes and fields, /304 with the fields alone and /empty with nothing. It has no
log, and uses uvloop if installed, as the proxy does.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import sys
from collections.abc import Callable
from pathlib import Path

from aiohttp import web


async def run(body: bytes, fields: dict[str, str]) -> None:
    """Listen, print the port, and serve until standard input ends."""

    async def whole(_: web.Request) -> web.Response:
        return web.Response(body=body, headers=fields)

    async def unchanged(_: web.Request) -> web.Response:
        return web.Response(status=304, headers=fields)

    async def empty(_: web.Request) -> web.Response:
        return web.Response(text="ok")

    app = web.Application()
    app.add_routes([web.get("/200", whole), web.get("/304", unchanged), web.get("/empty", empty)])
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    print(runner.addresses[0][1], flush=True)
    over = asyncio.Event()
    asyncio.get_running_loop().add_reader(sys.stdin, over.set)
    await over.wait()
    await runner.cleanup()


def _main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("options", help="JSON: body (a path), fields")
    options = json.loads(parser.parse_args().options)
    loop_factory: Callable[[], asyncio.AbstractEventLoop] = asyncio.new_event_loop
    with contextlib.suppress(ImportError):
        from uvloop import new_event_loop as loop_factory  # noqa: PLC0415 - optional
    with contextlib.suppress(KeyboardInterrupt), asyncio.Runner(loop_factory=loop_factory) as runner:
        runner.run(run(Path(options["body"]).read_bytes(), options["fields"]))


if __name__ == "__main__":
    _main()
