"""Commands find a server on a port set by its command line alone, or say where they looked.

The server's note beside its database is trusted only where genuine, and removed at its end.
"""

from __future__ import annotations

import asyncio
import errno
import json
import os
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import IO, Any

import pytest

from tests.feeds import atom
from tests.origin import Origin
from tests.postgres import on_both
from tests.processes import Served, serving
from wholefeed.cli import address
from wholefeed.cli.main import main
from wholefeed.config.tables import Config, StoreConfig
from wholefeed.core.opml import read_opml

FEED = "https://example.org/feed"
BEHIND = "/feed?url=https%3A%2F%2Fexample.org%2Ffeed"
Run = Callable[..., Awaitable[tuple[int, str, str]]]


@pytest.fixture
def cli(capfd: pytest.CaptureFixture[str]) -> Run:
    """Run a command in the test's folder; return exit code, output and messages."""

    async def run(*arguments: str) -> tuple[int, str, str]:
        capfd.readouterr()
        code = await asyncio.to_thread(main, arguments)
        return code, *capfd.readouterr()

    return run


def note_in(folder: Path) -> Path:
    return folder / "wholefeed.db.address"


@asynccontextmanager
async def noted(folder: Path, **settings: Any) -> AsyncIterator[tuple[Served, str]]:
    """Serve on a port known from the note only; return the server and its URL."""
    async with serving(folder, **settings) as served:
        async with asyncio.timeout(300):
            while not await asyncio.to_thread(note_in(folder).exists):
                await asyncio.sleep(0.01)
        yield served, f"http://127.0.0.1:{served.port}"


def bases(exported: str) -> list[str]:
    return [each.url.partition("/feed?")[0] for each in read_opml(exported.encode()).subscriptions]


@on_both
async def test_commands_find_the_server_of_their_folder(
    cli: Run, origin: Origin, own_folder: Path, store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After `serve --port N`, commands need no settings; no note stays afterwards."""
    monkeypatch.setenv("WHOLEFEED_STORE_URL", store_url)
    origin.publish("/feed", atom())
    async with noted(own_folder, store_url=store_url, log_level="debug") as (served, base):
        await served.whole(origin.url("/feed"))
        assert await cli("url", FEED) == (0, f"{base}{BEHIND}\n", "")
        assert (await cli("list"))[1].startswith(origin.url("/feed"))
        assert await cli("healthcheck") == (0, "healthy\n", "")
        _, exported, said = await cli("opml", "--export")
        assert (bases(exported), said) == ([base], "")
        assert f"the server runs at {base}" in (await cli("doctor", "--offline"))[1]
        asked = [line["path"] for line in served.lines if line["event"] == "request.answered"]
        assert {"/feeds", "/opml", "/healthz"} <= {*asked}
    assert not note_in(own_folder).exists()


async def test_the_server_of_the_folder_counts_and_not_the_configured_port(
    cli: Run, own_folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """A line names a deviating port. --base and server.public_url outrank both."""
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    async with noted(own_folder) as (served, base), noted(elsewhere) as (other, _):
        monkeypatch.setenv("WHOLEFEED_SERVER_PORT", str(other.port))
        code, url, said = await cli("url", FEED)
        assert (code, url) == (0, f"{base}{BEHIND}\n")
        told = f"the proxy that runs here listens on port {served.port}, though server.port is {other.port}"
        assert said == f"wholefeed: {told}\n"
        assert (await cli("url", FEED, "--base", "http://nas"))[1] == f"http://nas{BEHIND}\n"
        monkeypatch.setenv("WHOLEFEED_STORE_PATH", str(elsewhere / "wholefeed.db"))
        assert await cli("url", FEED) == (0, f"http://127.0.0.1:{other.port}{BEHIND}\n", "")


async def test_the_token_that_was_made_goes_with_the_address(cli: Run, own_folder: Path) -> None:
    """After `serve --host 0.0.0.0` the note says that the server wants a token."""
    async with noted(own_folder, server_host="0.0.0.0") as (_, base):
        token = (own_folder / "wholefeed.db.token").read_text("ascii").strip()
        assert (await cli("list"))[0] == 0
        assert (await cli("url", FEED, "--base", base))[1] == f"{base}{BEHIND}&token={token}\n"
        code, _, said = await cli("url", FEED)
        assert code == 2
        assert "expected --base URL, or server.public_url to be set" in said


@pytest.mark.usefixtures("no_server")
async def test_a_note_that_outlived_its_server_is_not_believed(
    cli: Run, origin: Origin, own_folder: Path
) -> None:
    """After SIGKILL the configured address counts, and `list` reads the database."""
    origin.publish("/feed", atom())
    async with noted(own_folder) as (served, _):
        await served.whole(origin.url("/feed"))
        served.process.kill()
        await served.ended()
    assert note_in(own_folder).exists()
    code, url, said = await cli("url", FEED)
    assert (code, url) == (0, f"http://127.0.0.1:9{BEHIND}\n")
    assert f"looked on 127.0.0.1, port 9 (server.host, server.port), and for {own_folder}" in said
    assert (await cli("list"))[1].startswith(origin.url("/feed"))


async def test_who_is_asked_in_place_of_a_server_that_vanished_is_said(
    cli: Run, own_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The proxy at the configured address may have another database."""
    async with noted(own_folder) as (vanished, _):
        vanished.process.kill()
        await vanished.ended()
    (tmp_path / "another").mkdir()
    async with serving(tmp_path / "another") as another:
        monkeypatch.setenv("WHOLEFEED_SERVER_PORT", str(another.port))
        code, _, said = await cli("list")
        told = "has ended; this command asks the one at http://127.0.0.1:"
        assert (code, f"{told}{another.port} (server.host" in said) == (0, True), said
        note_in(own_folder).unlink()
        assert "has ended" not in (await cli("list"))[2]


@pytest.mark.usefixtures("no_server")
@pytest.mark.parametrize(
    "changes",
    [
        {"machine": "another"},
        {"process": 2**22 + 1},
        {"port": 9},
        {"port": "many"},
        {"process": None},
        {"owner": 12345},
    ],
)
async def test_what_cannot_be_the_server_s_own_is_not_believed(
    cli: Run, own_folder: Path, monkeypatch: pytest.MonkeyPatch, changes: dict[str, object]
) -> None:
    """A false note could send the token to another user; the original counts."""
    async with noted(own_folder) as (served, base):
        told = json.loads(note_in(own_folder).read_text("utf-8"))
        assert told == {
            "host": "127.0.0.1",
            "port": served.port,
            "process": served.process.pid,
            "machine": socket.gethostname(),
        }
        assert (await cli("url", FEED))[1].startswith(base)
        if owner := changes.get("owner"):
            if os.geteuid():
                pytest.skip("only root gives a file away")
            os.chown(note_in(own_folder), owner, -1)  # type: ignore[arg-type]
            monkeypatch.setattr(os, "geteuid", lambda: 54321)
        else:
            note_in(own_folder).write_text(json.dumps(told | changes), "utf-8")
        assert (await cli("url", FEED))[1].startswith("http://127.0.0.1:9/")


def _pipe(note: Path) -> None:
    os.mkfifo(note)


def _link(note: Path) -> None:
    elsewhere = note.with_name("elsewhere")
    elsewhere.write_text(json.dumps({"host": "127.0.0.1", "port": 8}), "utf-8")
    note.symlink_to(elsewhere)


def _endless(note: Path) -> None:
    note.symlink_to("/dev/zero")


def _nested(note: Path) -> None:
    note.write_text("[" * 200_000, "utf-8")


def _folder(note: Path) -> None:
    note.mkdir()


@pytest.mark.usefixtures("no_server")
@pytest.mark.parametrize("put", [_pipe, _link, _endless, _nested, _folder])
async def test_whatever_stands_in_the_place_of_the_note_holds_nothing_up(
    cli: Run, own_folder: Path, put: Callable[[Path], None]
) -> None:
    """In a folder that others may write, commands use their configuration."""
    async with noted(own_folder):
        note_in(own_folder).unlink()
        put(note_in(own_folder))
        assert (await cli("url", FEED))[:2] == (0, f"http://127.0.0.1:9{BEHIND}\n")


@pytest.mark.usefixtures("no_server")
@pytest.mark.skipif(os.geteuid() != 0, reason="gives files away")
async def test_root_believes_whoever_owns_the_folder_and_nobody_else(cli: Run, own_folder: Path) -> None:
    """The token never goes to a program of another writer of the folder."""
    async with noted(own_folder) as (_, base):
        os.chown(note_in(own_folder), 12345, -1)
        assert (await cli("url", FEED))[1].startswith("http://127.0.0.1:9/")
        os.chown(own_folder, 12345, -1)
        assert (await cli("url", FEED))[1].startswith(base)


@pytest.mark.usefixtures("no_server")
async def test_a_host_that_is_none_is_no_address(cli: Run, own_folder: Path) -> None:
    """A note with this process's number has a host that no URL can have."""
    told = {"host": "a\0b", "port": 8, "process": os.getpid(), "machine": socket.gethostname()}
    note_in(own_folder).write_text(json.dumps(told), "utf-8")
    assert (await cli("url", FEED))[1].startswith("http://127.0.0.1:9/")


@pytest.mark.usefixtures("no_server")
async def test_where_nothing_is_found_it_is_said_where_it_was_looked_for(cli: Run, own_folder: Path) -> None:
    """The message has the address and the path, each with its key; no file appears."""
    looked = f"looked on 127.0.0.1, port 9 (server.host, server.port), and for {own_folder / 'wholefeed.db'}"
    for command in (["list"], ["opml", "--export"], ["forget", FEED]):
        assert looked in (await cli(*command))[2]
    assert list(own_folder.iterdir()) == []


@pytest.mark.parametrize(
    ("settings", "base"),
    [({"server_public_url": "https://feeds.example/w"}, "https://feeds.example/w"), ({}, "")],
)
async def test_an_export_leads_through_the_proxy_whatever_the_command_is_configured_with(
    cli: Run, origin: Origin, own_folder: Path, settings: dict[str, object], base: str
) -> None:
    """The command lacks the server's server.public_url and fetch.allow_networks; --undo gives the
    publisher's URLs."""
    origin.publish("/feed", atom())
    async with noted(own_folder, **settings) as (served, here):
        await served.whole(origin.url("/feed"))
        _, exported, said = await cli("opml", "--export")
        assert (bases(exported), said) == ([base or here], "")
        _, exported, _ = await cli("opml", "--export", "--base", "http://nas")
        assert bases(exported) == ["http://nas"]
        _, exported, _ = await cli("opml", "--export", "--undo")
        assert [each.url for each in read_opml(exported.encode()).subscriptions] == [origin.url("/feed")]


def test_a_note_is_there_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A reader of the note during a write sees the one before."""
    config = Config(store=StoreConfig(path=str(tmp_path / "wholefeed.db")))
    address.note(config, 8081)
    before = note_in(tmp_path).read_text("utf-8")

    def full(told: object, file: IO[str]) -> None:
        file.write("{")
        file.flush()
        assert note_in(tmp_path).read_text("utf-8") == before
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(json, "dump", full)
        address.note(config, 8082)
    assert note_in(tmp_path).read_text("utf-8") == before
    address.note(config, 8083)
    assert json.loads(note_in(tmp_path).read_text("utf-8"))["port"] == 8083
    assert [each.name for each in tmp_path.iterdir()] == [note_in(tmp_path).name]
