"""wholefeed.fetch.fetcher: targets that are refused (docs/faults.md part A). No test here lets a packet
out."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator

import pytest

from tests.fetchers import Names, SilentNames, SocketSpy, a_fetcher
from tests.origin import Origin
from wholefeed.errors import DocumentError, ForbiddenTargetError, LoopDetectedError, PublisherTimeoutError
from wholefeed.fetch.fetcher import Fetcher
from wholefeed.fetch.guard import GuardedResolver

NAMES = {
    "inside.example": ("10.0.0.1", "fd00::1"),
    "mixed.example": ("10.0.0.1", "127.0.0.1", "fd00::1"),
    "me.example": ("127.0.0.1",),
}


@pytest.fixture
async def origin() -> AsyncIterator[Origin]:
    """A publisher that does what the test tells it."""
    async with Origin() as origin:
        yield origin


async def error_of(fetcher: Fetcher, url: str) -> DocumentError:
    with pytest.raises(DocumentError) as caught:
        await fetcher.fetch(url)
    return caught.value


@pytest.mark.parametrize(
    "url",
    [
        *("http://127.0.0.1/", "http://127.255.255.254/", "http://localhost/", "http://LOCALHOST/"),
        *("http://a.localhost/", "http://localhost./", "http://10.0.0.1/", "http://172.16.0.1/"),
        *("http://192.168.0.1/", "http://100.64.0.1/", "http://198.18.0.1/", "http://192.0.0.1/"),
        *("http://169.254.169.254/latest", "http://[fd00:ec2::254]/", "http://168.63.129.16/"),
        *("http://100.100.100.200/", "http://0.0.0.0/", "http://[::]/", "http://255.255.255.255/"),
        *(
            "http://224.0.0.1/",
            "http://240.0.0.1/",
            "http://[::1]/",
            "http://[fc00::1]/",
            "http://[fe80::1]/",
        ),
        *("http://[fec0::1]/", "http://[ff02::1]/", "http://[::ffff:127.0.0.1]/", "http://[::ffff:7f00:1]/"),
        *("http://[::127.0.0.1]/", "http://[64:ff9b::7f00:1]/", "http://[2002:7f00:1::]/"),
        *(
            "http://[2001:0:1::1]/",
            "http://[2606:4700::5efe:7f00:1]/",
            "http://①②⑦.⓪.⓪.①/",
            "http://127。0。0。1/",
        ),
        *("http://inside.example/", "https://inside.example/", "http://example.org:22/"),
        *("http://example.org:1023/", "http://denied.example/"),
    ],
)
async def test_a_refused_target_is_never_connected_to(url: str) -> None:
    """docs/faults.md rows 1 to 7, 9, 12, 18: 403, no socket, and the same words whatever the reason."""
    spy = SocketSpy()
    async with a_fetcher(
        allow_networks=(), deny_hosts=("denied.example",), make_socket=spy, resolver=Names(NAMES)
    ) as fetcher:
        error = await error_of(fetcher, url)
    assert isinstance(error, ForbiddenTargetError)
    assert (error.slug, error.answer_status) == ("destination-forbidden", 403)
    assert (
        error.args[0]
        == "this proxy does not go to that address, unless fetch.allow_networks lists its network"
    )
    assert spy.opened == 0


@pytest.mark.parametrize(
    "url",
    [
        *("http://2130706433/", "http://127.1/", "http://0/", "http://0x7f.1/", "http://127.0.0.1./"),
        *(
            "http://[fe80::1%25lo]/",
            "http://user:pw@example.org/",
            "ftp://example.org/",
            "file:///etc/passwd",
        ),
        *("javascript:alert(1)", "unix:///tmp/x", "http:///", "http://example.org:99999/", "http://a b/", ""),
        "http://example.org/" + "x" * 3000,
    ],
)
async def test_a_link_that_names_no_target_is_refused(url: str) -> None:
    """docs/faults.md rows 8, 10, 16, 17, 20: as an archive's link; the service refuses the reader's own
    earlier."""
    spy, names = SocketSpy(), Names()
    async with a_fetcher(make_socket=spy, resolver=names) as fetcher:
        error = await error_of(fetcher, url)
    assert error.slug == "bad-link"
    assert "pw" not in str(error)
    assert (spy.opened, names.asked) == (0, [])


async def test_a_name_that_changes_its_mind_is_stopped_at_the_socket(monkeypatch: pytest.MonkeyPatch) -> None:
    """docs/faults.md row 11: DNS rebinding; whatever the resolver let through, the socket's guard has the
    last word."""
    spy = SocketSpy()
    monkeypatch.setattr(GuardedResolver, "resolve", Names(NAMES).resolve)
    async with a_fetcher(allow_networks=(), make_socket=spy) as fetcher:
        error = await error_of(fetcher, "http://inside.example/")
    assert isinstance(error, ForbiddenTargetError)
    assert spy.opened == 0


async def test_a_name_with_public_and_private_addresses_uses_the_public_ones(origin: Origin) -> None:
    """docs/faults.md row 12; loopback stands for the public ones here."""
    origin.publish("/feed", b"<feed/>")
    async with a_fetcher(resolver=Names(NAMES)) as fetcher:
        fetched = await fetcher.fetch(f"http://mixed.example:{origin.port}/feed")
    assert fetched.body == b"<feed/>"


@pytest.mark.parametrize(
    "location",
    ["http://10.0.0.1/", "//10.0.0.9/", "http://inside.example/", "http://localhost:22/", "http://[::1]/"],
)
async def test_a_redirect_to_a_refused_target_is_refused(origin: Origin, location: str) -> None:
    """docs/faults.md row 13."""
    origin.redirect("/feed", location)
    names = Names(NAMES)
    async with a_fetcher(resolver=names) as fetcher:
        error = await error_of(fetcher, origin.url("/feed"))
    assert isinstance(error, ForbiddenTargetError)
    assert len(origin.requests) == 1


@pytest.mark.parametrize(
    "location", ["ftp://127.0.0.1/", "file:///etc/passwd", "http://u:p@127.0.0.1/", "data:,x"]
)
async def test_a_redirect_to_another_scheme_or_with_credentials_is_refused(
    origin: Origin, location: str
) -> None:
    """docs/faults.md rows 13, 14; docs/design.md#fetching: aiohttp would make a Basic Authorization of it."""
    origin.redirect("/feed", location)
    async with a_fetcher() as fetcher:
        error = await error_of(fetcher, origin.url("/feed"))
    assert error.slug == "bad-redirect"
    assert "u:p" not in str(error)
    assert len(origin.requests) == 1


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "me.example", "[::ffff:127.0.0.1]"])
@pytest.mark.fault("19")
async def test_the_proxy_does_not_ask_itself(host: str) -> None:
    """docs/faults.md row 19: 508."""
    spy = SocketSpy()
    async with a_fetcher(
        own_addresses=lambda address, port: (address, port) == ("127.0.0.1", 8080),
        make_socket=spy,
        resolver=Names(NAMES),
    ) as fetcher:
        error = await error_of(fetcher, f"http://{host}:8080/feed?url=http://example.org/")
    assert isinstance(error, LoopDetectedError)
    assert (error.slug, error.answer_status) == ("loop-detected", 508)
    assert spy.opened == 0


@pytest.mark.fault("19")
async def test_a_redirect_to_the_proxy_is_a_loop(origin: Origin) -> None:
    """docs/faults.md row 19."""
    origin.redirect("/feed", "http://127.0.0.1:8080/")
    async with a_fetcher(own_addresses=lambda _, port: port == 8080) as fetcher:
        assert isinstance(await error_of(fetcher, origin.url("/feed")), LoopDetectedError)


async def test_a_name_server_that_does_not_answer_is_given_up_and_holds_nobody_up(origin: Origin) -> None:
    """docs/faults.md row 21; docs/design.md#fetching."""
    origin.publish("/feed", b"<feed/>")
    async with a_fetcher(resolver=SilentNames(), connect_timeout_seconds=1.0) as fetcher, asyncio.timeout(10):
        started = time.monotonic()
        slow = [
            asyncio.create_task(error_of(fetcher, f"http://slow-{number}.example/")) for number in range(24)
        ]
        await asyncio.sleep(0)
        assert (await fetcher.fetch(origin.url("/feed"))).body == b"<feed/>"
        assert not any(task.done() for task in slow)
        errors = await asyncio.gather(*slow)
    assert time.monotonic() - started < 5
    assert {(type(error), error.slug) for error in errors} == {(PublisherTimeoutError, "dns-timeout")}
    assert errors[0].answer_status == 504


async def test_a_name_that_does_not_exist_is_a_dns_error() -> None:
    """docs/faults.md row 21."""
    names = Names()
    async with a_fetcher(resolver=names, retries=2) as fetcher:
        error = await error_of(fetcher, "http://nowhere.example/")
    assert (error.slug, error.answer_status) == ("dns-error", 502)
    assert names.asked == ["nowhere.example"]
