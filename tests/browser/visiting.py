"""A real browser that visits the proxy: Debian's Chromium, driven by Playwright; skipped if absent.

async with visiting(proxy, theme="dark", width=390) as visit:
    await visit.login()
    ...

All tests of a process share one browser (`started`), restarted after a crash; each visit has its own
profile.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlsplit

import pytest

from tests.running import Proxy

if TYPE_CHECKING:
    from playwright.async_api import Browser, Page, Playwright

TOKEN = "a token for readers"
LAN_NAME = "nas"
"""A name less trusted than localhost: over http it has no Sec-Fetch-Site and no clipboard."""
_STATUS = re.compile(r"Failed to load resource: the server responded with a status of 4\d\d")


def chromium() -> str:
    """Return the browser's program; skip the test if something is missing."""
    pytest.importorskip("playwright.async_api", reason="playwright is not installed")
    found = shutil.which("chromium") or shutil.which("chromium-browser")
    if found is None:
        pytest.skip("no chromium here")
    return found


class Visit:
    """One person's browser window with a fresh profile."""

    def __init__(self, page: Page, proxy: Proxy, host: str) -> None:
        self.page = page
        self.base = f"http://{host}:{proxy.client.port}/"
        self.hosts: set[str] = set()
        """Hosts of all its requests."""
        self.said: list[str] = []
        """Console messages, without statuses of pages; failed scripts, too."""
        page.on("request", lambda request: self.hosts.add(urlsplit(request.url).netloc))
        page.on("console", lambda message: self._note(message.text))
        page.on("pageerror", lambda error: self.said.append(str(error)))

    def _note(self, text: str) -> None:
        if not _STATUS.match(text):
            self.said.append(text)

    async def open(self, target: str = "", **query: str) -> None:
        """Type an address below the proxy's."""
        words = "&".join(f"{name}={quote(value, safe='')}" for name, value in query.items())
        await self.page.goto(self.base + target + ("?" + words if words else ""))

    async def login(self, token: str = TOKEN) -> None:
        """Open home and type the token."""
        await self.open()
        await self.page.get_by_label("Access token").fill(token)
        await self.page.get_by_role("button", name="Log in").click()

    async def faults(self, *rules: str) -> list[str]:
        """Return the findings of axe-core, by some rules or by all, and sideways scrolling."""
        from axe_playwright_python.async_playwright import Axe  # noqa: PLC0415 - skipped where it is not

        if not await self.page.evaluate("'axe' in window"):
            await self.page.evaluate(Axe().axe_script)
        options = {"resultTypes": ["violations"], **({"runOnly": list(rules)} if rules else {})}
        found = await self.page.evaluate("(options) => axe.run(document, options)", options)
        told = [f"{each['id']}: {each['nodes'][0]['html'][:200]}" for each in found["violations"]]
        is_wide = await self.page.evaluate("document.documentElement.scrollWidth > window.innerWidth")
        return [*told, "sideways scrolling"] if is_wide else told


async def choose_list(visit: Visit, body: bytes) -> None:
    """Choose a subscription list in the form at home."""
    file = visit.page.get_by_label("OPML file")
    await file.set_input_files({"name": "mine.opml", "mimeType": "text/x-opml", "buffer": body})


class Browsers:
    """The one browser of a process, started anew after a crash."""

    def __init__(self, playwright: Playwright, program: str) -> None:
        self._playwright = playwright
        self._program = program
        self._running: Browser | None = None

    async def running(self) -> Browser:
        """Return the browser; start it if none runs."""
        if self._running is None or not self._running.is_connected():
            self._running = await self._playwright.chromium.launch(
                executable_path=self._program,
                args=[
                    f"--host-resolver-rules=MAP {LAN_NAME} 127.0.0.1,MAP *.test 127.0.0.1",
                    "--disable-gpu",
                ],
                chromium_sandbox=os.geteuid() != 0,
            )
        return self._running

    async def close(self) -> None:
        if self._running is not None:
            await self._running.close()


_browsers: list[Browsers] = []
"""The process's own: one, while its tests run."""


@asynccontextmanager
async def started() -> AsyncIterator[None]:
    """Start the browser once for many visits; stop it at the end."""
    program = chromium()
    from playwright.async_api import async_playwright  # noqa: PLC0415 - skipped where it is not

    async with async_playwright() as playwright:
        browsers = Browsers(playwright, program)
        _browsers.append(browsers)
        yield
        _browsers.remove(browsers)
        await browsers.close()


@asynccontextmanager
async def visiting(
    proxy: Proxy,
    *,
    theme: Any = "light",
    width: int = 1280,
    host: str = "127.0.0.1",
    **context: Any,
) -> AsyncIterator[Visit]:
    """Open a browser window; `context` is Playwright's: `java_script_enabled`, `permissions`."""
    browser = await _browsers[-1].running()
    opened = await browser.new_context(
        color_scheme=theme, viewport={"width": width, "height": 900}, **context
    )
    try:
        opened.set_default_timeout(15_000)
        yield Visit(await opened.new_page(), proxy, host)
    finally:
        await opened.close()
