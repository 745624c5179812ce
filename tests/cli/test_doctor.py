"""wholefeed doctor: the whole command, its exit code, and what it leaves alone."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from pathlib import Path

import pytest

from tests.feeds import an_item, atom
from tests.origin import Origin
from tests.running import a_config
from wholefeed.cli import doctor
from wholefeed.cli.doctor import Machine, Verdict, beside, examined
from wholefeed.cli.main import main

CHECKS = {
    *("python", "libraries", "event loop", "open files", "settings", "database", "disk", "clock"),
    *("dns", "fetch", "server", "readers"),
}

MACHINE = Machine(memory_bytes=0, open_files=-1, is_container=False)


@pytest.fixture(autouse=True)
def empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """No configuration of the developer's counts, and no server of theirs."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("WHOLEFEED_STORE_PATH", str(tmp_path / "feeds.db"))
    monkeypatch.setenv("WHOLEFEED_SERVER_PORT", "9")
    return tmp_path


def test_offline_everything_else_is_looked_at(empty_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Exit 0; nothing is made: no database, no token, no lock."""
    assert main(["doctor", "--offline"]) == 0
    shown = capsys.readouterr().out
    assert "skipped  dns          not asked: --offline" in shown
    assert "nothing is wrong" in shown.splitlines()[-1]
    assert list(empty_folder.iterdir()) == []


def test_what_is_wrong_is_exit_1_and_a_warning_is_not(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As JSON, for whoever watches many."""
    monkeypatch.setenv("WHOLEFEED_LIMITS_WORKERS", "0")
    assert main(["doctor", "--offline", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["verdict"] == "warning"
    assert {each["check"] for each in told["checks"]} == CHECKS
    monkeypatch.setenv("WHOLEFEED_STORE_PATH", "/nowhere/feeds.db")
    assert main(["doctor", "--offline", "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["verdict"] == "wrong"


def test_nothing_is_printed_but_what_was_found(capfd: pytest.CaptureFixture[str]) -> None:
    """What a fetch logs is said in the finding already; exit 1, since the guard refuses."""
    assert main(["doctor", "http://127.0.0.1:22/feed"]) == 1
    shown = capfd.readouterr()
    assert "wrong    fetch" in shown.out
    assert shown.err == ""


def test_a_url_that_is_none_is_a_wrong_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    """Exit 2, one line."""
    assert main(["doctor", "gopher://a.example/"]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1


async def test_a_document_is_fetched_as_the_proxy_does(origin: Origin, tmp_path: Path) -> None:
    """With a URL: its name, itself, and the clock by it."""
    origin.publish("/feed", atom(an_item("a")))
    config = a_config(tmp_path, server={"port": 9})
    found = {
        each.check: each for each in await examined(config, origin.url("/feed"), MACHINE, is_offline=False)
    }
    assert found["fetch"].verdict is Verdict.GOOD
    assert found["dns"].text.startswith("127.0.0.1")
    assert found.keys() == CHECKS


async def test_no_check_holds_the_others_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that does not come back is told so, one that fails too; the rest is worth having."""

    async def hangs(*_: object) -> list[object]:
        await asyncio.Event().wait()
        return []

    def fails(*_: object) -> list[object]:
        raise RuntimeError("no such thing")

    monkeypatch.setattr(doctor, "CHECK_SECONDS", 2.0)
    monkeypatch.setattr(doctor, "check_fetch", hangs)
    monkeypatch.setattr(doctor, "judge_settings", fails)
    started = time.monotonic()
    config = a_config(tmp_path, server={"port": 9})
    found = {
        each.check: each for each in await examined(config, "http://127.0.0.1/", MACHINE, is_offline=False)
    }
    assert time.monotonic() - started < 10
    assert found["fetch"].verdict is Verdict.WARNING
    assert found["settings"].verdict is Verdict.WRONG
    assert "no such thing" in found["settings"].text
    assert found["database"].verdict is Verdict.GOOD


async def test_a_thread_that_is_stuck_is_not_waited_for() -> None:
    """A dead disk may keep it for ever: neither the command nor its end waits."""
    stuck = threading.Event()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            await beside(stuck.wait)
    (thread,) = [each for each in threading.enumerate() if each.name == "doctor"]
    assert thread.daemon
    stuck.set()
    thread.join(5)
    await asyncio.sleep(0)


async def test_an_error_in_the_thread_is_the_caller_s() -> None:
    """As if it had been done here."""
    with pytest.raises(ZeroDivisionError):
        await beside(lambda: 1 // 0)
    assert await beside(lambda: 7) == 7
