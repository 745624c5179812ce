"""Requests as a browser makes them, and the content of its pages."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import Any

from tests.running import Proxy, Reply

BROWSER = {
    "Accept": "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8",
    "Accept-Encoding": "identity",
    "Sec-Fetch-Dest": "document",
    "Sec-Fetch-Site": "same-origin",
}


async def browse(proxy: Proxy, target: str = "/", *, method: str = "GET", **options: Any) -> Reply:
    """Ask as a browser does, but follow no redirect; keep cookies."""
    headers = {**BROWSER, **options.pop("headers", {})}
    return await proxy.ask(method, target, headers=headers, allow_redirects=False, **options)


async def submit(proxy: Proxy, target: str, *, headers: dict[str, str] | None = None, **fields: str) -> Reply:
    return await browse(proxy, target, method="POST", headers=headers or {}, data=fields)


class _Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.links: list[str] = []
        self.actions: list[str] = []
        self.words: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag == "a" and given.get("href"):
            self.links.append(given["href"] or "")
        if tag == "form" and given.get("action"):
            self.actions.append(given["action"] or "")

    def handle_data(self, data: str) -> None:
        self.words += data.split()


def read(reply: Reply) -> _Page:
    assert reply.headers["Content-Type"] == "text/html; charset=utf-8", reply.body
    page = _Page()
    page.feed(reply.body.decode())
    return page


def text(reply: Reply) -> str:
    return " ".join(read(reply).words)
