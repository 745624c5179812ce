"""wholefeed.cli.doctor: whether it runs, and who reaches it."""

from __future__ import annotations

import asyncio
import socket
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.origin import Origin
from tests.processes import serving
from tests.running import Proxy, a_config
from wholefeed.cli.doctor import Answer, Finding, Listener, Verdict, check_server, judge_server
from wholefeed.config.tables import Config

OWN = Answer("http://127.0.0.1:8080", Listener.WHOLEFEED)
NOBODY = Answer("http://127.0.0.1:8080", Listener.NOBODY, "refused")


def judged(
    own: Answer = OWN, *, is_container: bool = False, server: dict[str, Any] | None = None, **others: Answer
) -> dict[str, Finding]:
    config = replace(Config(), server=replace(Config().server, **(server or {})))
    found = [*judge_server(config, own, is_container=is_container, **others)]
    assert all(each.advice for each in found if each.verdict in (Verdict.WARNING, Verdict.WRONG))
    return {each.check: each for each in found}


@pytest.mark.parametrize(
    ("listener", "expected"),
    [
        (Listener.WHOLEFEED, Verdict.GOOD),
        (Listener.NOBODY, Verdict.SKIPPED),
        (Listener.STRANGER, Verdict.WRONG),
    ],
)
def test_a_server_that_does_not_run_is_no_fault_and_another_in_its_place_is(
    listener: Listener, expected: Verdict
) -> None:
    """Whoever looks before the first start has nothing wrong."""
    assert judged(replace(OWN, listener=listener))["server"].verdict is expected


@pytest.mark.parametrize(
    ("own", "listener", "expected"),
    [
        (OWN, Listener.WHOLEFEED, Verdict.GOOD),
        (OWN, Listener.NOBODY, Verdict.WRONG),
        (OWN, Listener.STRANGER, Verdict.WRONG),
        (NOBODY, Listener.NOBODY, Verdict.SKIPPED),
        (NOBODY, Listener.STRANGER, Verdict.SKIPPED),
    ],
)
def test_a_public_url_must_lead_to_a_server_that_runs(
    own: Answer, listener: Listener, expected: Verdict
) -> None:
    """What stands there while it does not run says nothing."""
    public = Answer("https://feeds.example.org", listener, "status 502")
    found = judged(own, public=public, server={"public_url": "https://feeds.example.org"})
    assert found["public url"].verdict is expected
    assert "readers" not in found


def test_what_a_reader_elsewhere_needs_is_told() -> None:
    """From 127.0.0.1 only this machine is reached; in a container only what shares its network."""
    found = judged()["readers"]
    assert found.verdict is Verdict.GOOD
    assert "WHOLEFEED_SERVER_HOST=0.0.0.0" in found.advice
    assert judged(is_container=True)["readers"].verdict is Verdict.WARNING


@pytest.mark.parametrize(
    ("listener", "expected"), [(Listener.WHOLEFEED, Verdict.GOOD), (Listener.NOBODY, Verdict.WARNING)]
)
def test_a_public_address_is_asked_by_the_name_that_others_use(listener: Listener, expected: Verdict) -> None:
    """A firewall of this machine may be in between."""
    outer = Answer("http://192.0.2.7:8080", listener, "no answer")
    server = {"host": "0.0.0.0", "open": True}
    assert judged(outer=outer, server=server)["readers"].verdict is expected
    assert "readers" not in judged(NOBODY, outer=outer, server=server)


async def test_a_running_server_is_found_by_its_address_and_its_public_url(
    proxy: Proxy, tmp_path: Path
) -> None:
    """Really asked; --offline leaves the public URL alone."""
    base = f"http://127.0.0.1:{proxy.client.port}"
    config = a_config(tmp_path, server={"port": proxy.client.port, "public_url": f"{base}/"})
    found = await check_server(config, is_container=False, is_offline=False)
    assert {each.check: each.verdict for each in found} == {
        "server": Verdict.GOOD,
        "public url": Verdict.GOOD,
    }
    found = await check_server(config, is_container=False, is_offline=True)
    assert [each.check for each in found] == ["server"]


async def test_a_stranger_and_nobody_are_told_apart(origin: Origin, tmp_path: Path) -> None:
    """Another program at the port answers something else than our health."""
    config = a_config(tmp_path, server={"port": origin.port, "public_url": "http://127.0.0.1:9"})
    server, public = await check_server(config, is_container=False, is_offline=False)
    assert server.verdict is Verdict.WRONG
    assert "404" in server.text
    assert public.verdict is Verdict.SKIPPED
    await origin.stop()
    nobody, *_ = await check_server(config, is_container=False, is_offline=True)
    assert nobody.verdict is Verdict.SKIPPED
    assert nobody.advice == "wholefeed serve"


async def test_what_speaks_no_http_is_a_stranger(tmp_path: Path) -> None:
    """A mail server, say."""

    async def greet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"220 mail.example ESMTP\r\n")
        await reader.read(1)
        writer.close()

    server = await asyncio.start_server(greet, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        found, *_ = await check_server(
            a_config(tmp_path, server={"port": port}), is_container=False, is_offline=True
        )
    assert found.verdict is Verdict.WRONG


@pytest.mark.parametrize(
    ("listener", "why", "expected"),
    [
        (Listener.WHOLEFEED, "", Verdict.GOOD),
        (Listener.NOBODY, "No such file or directory", Verdict.WRONG),
        (Listener.NOBODY, "Permission denied", Verdict.SKIPPED),
    ],
)
def test_a_socket_that_a_running_server_lacks_is_wrong(
    listener: Listener, why: str, expected: Verdict
) -> None:
    """It was started with another configuration, or somebody removed the file."""
    by_socket = Answer("http://localhost", listener, why)
    found = judged(by_socket=by_socket, server={"socket": "/run/wholefeed/wholefeed.sock"})
    assert found["socket"].verdict is expected


def test_whether_a_socket_can_be_made_is_told_before_the_first_start(tmp_path: Path) -> None:
    """The folder must be there, and nothing else may bear the name; what a killed server left may."""
    (tmp_path / "file").touch()
    with closing(socket.socket(socket.AF_UNIX)) as left:
        left.bind(str(tmp_path / "left"))
    for name, expected in (
        ("new", Verdict.GOOD),
        ("none/new", Verdict.WRONG),
        ("file", Verdict.WRONG),
        ("left", Verdict.GOOD),
    ):
        found = judged(NOBODY, by_socket=NOBODY, server={"socket": str(tmp_path / name)})
        assert found["socket"].verdict is expected


@pytest.mark.parametrize("server", [{"socket": "/tmp/s"}, {"public_url": "https://feeds.example.org"}])
def test_who_comes_by_a_reverse_proxy_needs_no_public_address(server: dict[str, Any]) -> None:
    """In a container too: another one may share the socket's folder, or the network."""
    assert "readers" not in judged(is_container=True, server=server)


async def test_a_running_server_is_found_by_its_socket_and_below_its_path(tmp_path: Path) -> None:
    """Both are really asked."""
    path = tmp_path / "wholefeed.sock"
    async with serving(
        tmp_path, server_socket=path, server_public_url="https://feeds.example.org/feeds"
    ) as served:
        server = {
            "port": served.port,
            "socket": str(path),
            "public_url": f"http://127.0.0.1:{served.port}/feeds",
        }
        found = await check_server(a_config(tmp_path, server=server), is_container=False, is_offline=False)
        assert {each.check: each.verdict for each in found} == dict.fromkeys(
            ("server", "socket", "public url"), Verdict.GOOD
        )
        path.unlink()
        found = await check_server(a_config(tmp_path, server=server), is_container=False, is_offline=True)
        assert {each.check: each.verdict for each in found}["socket"] is Verdict.WRONG


async def test_a_public_url_that_leads_on_is_told_where_to(
    proxy: Proxy, origin: Origin, tmp_path: Path
) -> None:
    """The reverse proxy sends http to https, and public_url says http."""
    origin.redirect("/healthz", "https://feeds.example.org/healthz", status=301)
    server = {"port": proxy.client.port, "public_url": f"http://127.0.0.1:{origin.port}"}
    _, public = await check_server(a_config(tmp_path, server=server), is_container=False, is_offline=False)
    assert public.verdict is Verdict.WRONG
    assert "https://feeds.example.org/healthz" in public.advice
