"""Style and script of the pages, and what every page says of itself."""

from __future__ import annotations

import pytest

from tests.running import Proxy, StartProxy
from wholefeed.web.pages_base import versioned


async def test_a_file_named_with_its_version_may_be_kept_for_good(proxy: Proxy) -> None:
    """A page names its style by version, so that a browser asks for it once a version."""
    named = await proxy.ask("GET", "/" + versioned("page.css"))
    assert (named.status, named.headers["Content-Type"]) == (200, "text/css; charset=utf-8")
    assert "immutable" in named.headers["Cache-Control"]
    unnamed = await proxy.ask("GET", "/static/page.css?v=other")
    assert unnamed.body == named.body
    assert "immutable" not in unnamed.headers["Cache-Control"]


@pytest.mark.parametrize("name", ["nothing.css", "..%2Ftemplates.py", "page.py", ""])
async def test_nothing_else_is_given_out(proxy: Proxy, name: str) -> None:
    """What is no file of the folder is 404, however it is named."""
    assert (await proxy.ask("GET", f"/static/{name}")).status == 404


async def test_style_is_there_for_who_has_no_token_yet(start: StartProxy) -> None:
    """The page that asks for the token has its style, too."""
    proxy = await start(server={"access_token": "a token for readers"})
    assert (await proxy.ask("GET", "/static/page.css")).status == 200
    assert (await proxy.ask("GET", "/feeds")).status == 401
