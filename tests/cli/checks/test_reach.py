"""wholefeed.cli.checks.reach: whether it runs, and who reaches it."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.origin import Origin
from tests.running import Proxy, a_config
from wholefeed.cli.checks.findings import Verdict
from wholefeed.cli.checks.reach import Answer, Heard, Reached, check_server, judge_server
from wholefeed.config.tables import Config

OWN = Answer("http://127.0.0.1:8080", Heard.WHOLEFEED)
NOBODY = Answer("http://127.0.0.1:8080", Heard.NOBODY, "refused")
RUNS = Reached(own=OWN, outer=None, public=None)


def judged(reached: Reached, *, is_container: bool = False, **server: Any) -> dict[str, Verdict]:
    config = replace(Config(), server=replace(Config().server, **server))
    found = list(judge_server(reached, config, is_container=is_container))
    assert all(each.advice for each in found if each.verdict in (Verdict.WARNING, Verdict.WRONG))
    return {each.check: each.verdict for each in found}


@pytest.mark.parametrize(
    ("heard", "expected"),
    [(Heard.WHOLEFEED, Verdict.GOOD), (Heard.NOBODY, Verdict.SKIPPED), (Heard.STRANGER, Verdict.WRONG)],
)
def test_a_server_that_does_not_run_is_no_fault_and_another_in_its_place_is(
    heard: Heard, expected: Verdict
) -> None:
    """Whoever looks before the first start has nothing wrong."""
    reached = replace(RUNS, own=replace(OWN, heard=heard))
    assert judged(reached)["server"] is expected


@pytest.mark.parametrize(
    ("own", "heard", "expected"),
    [
        (OWN, Heard.WHOLEFEED, Verdict.GOOD),
        (OWN, Heard.NOBODY, Verdict.WRONG),
        (OWN, Heard.STRANGER, Verdict.WRONG),
        (NOBODY, Heard.NOBODY, Verdict.SKIPPED),
        (NOBODY, Heard.STRANGER, Verdict.SKIPPED),
    ],
)
def test_a_public_url_must_lead_to_a_server_that_runs(own: Answer, heard: Heard, expected: Verdict) -> None:
    """What stands there while it does not run says nothing."""
    public = Answer("https://feeds.example.org", heard, "" if heard is Heard.WHOLEFEED else "status 502")
    found = judged(replace(RUNS, own=own, public=public), public_url="https://feeds.example.org")
    assert found["public url"] is expected
    assert "readers" not in found


def test_what_a_reader_elsewhere_needs_is_told() -> None:
    """From 127.0.0.1 only this machine is reached; in a container only what shares its network."""
    (found,) = [each for each in judge_server(RUNS, Config(), is_container=False) if each.check == "readers"]
    assert found.verdict is Verdict.GOOD
    assert "WHOLEFEED_SERVER_HOST=0.0.0.0" in found.advice
    assert judged(RUNS, is_container=True)["readers"] is Verdict.WARNING


@pytest.mark.parametrize(
    ("heard", "expected"), [(Heard.WHOLEFEED, Verdict.GOOD), (Heard.NOBODY, Verdict.WARNING)]
)
def test_a_public_address_is_asked_by_the_name_that_others_use(heard: Heard, expected: Verdict) -> None:
    """A firewall of this machine may be in between."""
    outer = Answer("http://192.0.2.7:8080", heard, "" if heard is Heard.WHOLEFEED else "no answer")
    assert judged(replace(RUNS, outer=outer), host="0.0.0.0", open=True)["readers"] is expected
    assert "readers" not in judged(replace(RUNS, own=NOBODY, outer=outer), host="0.0.0.0", open=True)


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
