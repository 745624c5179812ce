"""What the forms of the pages do, for whom, and for whom not."""

from __future__ import annotations

import json
from urllib.parse import quote

import pytest

from tests.feeds import publish_chain
from tests.origin import Origin
from tests.running import Proxy, StartProxy
from tests.web.page.browsing import BROWSER, browse, read, submit

TOKEN = "a token for readers"


async def test_a_browser_is_led_on_and_a_program_gets_what_it_always_got(
    proxy: Proxy, origin: Origin
) -> None:
    """Refresh leads to the feed's page, forget home; programs get the status object and 204."""
    publish_chain(origin, archives=1)
    url = origin.url("/feed")
    quoted = quote(url, safe="")
    await proxy.whole(url)
    origin.forget_requests()
    reply = await submit(proxy, f"/refresh?url={quoted}")
    assert (reply.status, reply.headers["Location"]) == (303, f"./?url={quoted}")
    await proxy.settled()
    assert origin.counts()["/feed"] == 1
    program = await proxy.ask("POST", "/refresh", params={"url": url})
    assert (program.status, json.loads(program.body)["url"]) == (202, url)
    await proxy.settled()
    reply = await submit(proxy, f"/forget?url={quoted}")
    assert (reply.status, reply.headers["Location"]) == (303, "./")
    assert await proxy.service.feeds() == []
    await proxy.whole(url)
    assert (await proxy.ask("POST", "/forget", params={"url": url})).status == 204
    assert (await proxy.ask("POST", "/forget", params={"url": url})).status == 404
    assert await proxy.service.feeds() == []


@pytest.mark.parametrize(
    ("fields", "is_refused"),
    [
        ({"Sec-Fetch-Site": "cross-site", "Origin": "https://evil.example"}, True),
        ({"Sec-Fetch-Site": "same-site", "Origin": "http://localhost:1"}, True),
        ({"Sec-Fetch-Site": "cross-site"}, True),
        ({"Origin": "http://evil.example"}, True),
        ({"Origin": "null"}, True),
        ({}, True),
        ({"Referer": "http://localhost:8080/"}, True),
        ({"Sec-Fetch-Site": "same-origin"}, False),
        ({"Origin": "http://localhost:8080"}, False),
    ],
)
async def test_a_form_of_another_site_does_nothing_for_who_is_logged_in(
    start: StartProxy, origin: Origin, fields: dict[str, str], is_refused: bool
) -> None:
    """Even where the browser sends the cookie along, and where it does not say where the form stands."""
    publish_chain(origin, archives=1)
    headers = {"Host": "localhost:8080", "Accept": BROWSER["Accept"], **fields}
    target = f"?url={quote(origin.url('/feed'), safe='')}"
    proxy = await start(server={"access_token": TOKEN})
    options = {"headers": headers, "allow_redirects": False}
    assert (await proxy.ask("POST", f"/forget{target}", **options)).status == (
        403 if is_refused and fields and "Referer" not in fields else 401
    )
    await submit(proxy, "/login", token=TOKEN)
    await proxy.whole(origin.url("/feed"))
    origin.forget_requests()
    refreshed = await proxy.ask("POST", f"/refresh{target}", **options)
    await proxy.settled()
    assert len(origin.requests) == (0 if is_refused else 1)
    forgotten = await proxy.ask("POST", f"/forget{target}", **options)
    assert len(await proxy.service.feeds()) == is_refused
    assert {refreshed.status, forgotten.status} == ({403} if is_refused else {303})


async def test_a_browser_that_does_not_say_where_a_form_stands_proves_it(
    start: StartProxy, origin: Origin
) -> None:
    """Text browsers send neither Sec-Fetch-Site nor Origin: their forms bear what only our pages know."""
    publish_chain(origin, archives=1)
    proxy = await start(server={"access_token": TOKEN})
    await submit(proxy, "/login", token=TOKEN)
    await proxy.whole(origin.url("/feed"))
    (action,) = [each for each in read(await browse(proxy)).actions if "forget" in each]
    options = {"headers": {"Accept": "text/html, text/plain"}, "allow_redirects": False}
    assert (await proxy.ask("POST", action[1:].replace("proof=", "proof=A"), **options)).status == 403
    assert (await proxy.ask("POST", action[1:], **options)).status == 303
    assert await proxy.service.feeds() == []


async def test_a_program_with_the_token_proves_nothing_else(start: StartProxy, origin: Origin) -> None:
    """Only what a cookie lets in has to show where it comes from: scripts go on as they were."""
    publish_chain(origin, archives=1)
    login = {"Authorization": f"Bearer {TOKEN}"}
    proxy = await start(server={"access_token": TOKEN})
    await proxy.get(origin.url("/feed"), headers=login)
    reply = await proxy.ask("POST", "/forget", params={"url": origin.url("/feed")}, headers=login)
    assert reply.status == 204
