"""`wholefeed doctor`: each finding beside its healthy case, and the whole command."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from tests.answers import Raw, Status
from tests.feeds import an_item, atom
from tests.fetchers import Names, SilentNames
from tests.origin import Origin
from tests.processes import serving
from tests.running import Proxy, a_config
from wholefeed.cli import doctor
from wholefeed.cli.doctor import (
    CheckFinding,
    CheckVerdict,
    Listener,
    Machine,
    ProxyAnswer,
    as_text,
    beside,
    check_fetch,
    check_names,
    check_secrets,
    check_server,
    check_versions,
    good,
    judge_machine,
    judge_publishers,
    judge_server,
    judge_settings,
    judge_versions,
    run_checks,
    this_machine,
    warning,
    wrong,
)
from wholefeed.cli.main import main
from wholefeed.config.tables import Config, ServerConfig, config_of
from wholefeed.extras import to_add

GOOD, SKIPPED, WARNING, WRONG = CheckVerdict
GIB = 1 << 30
MACHINE = Machine(memory_bytes=GIB, open_files=-1, is_container=False)
CONTAINER = replace(MACHINE, is_container=True)
CHECKS = {
    *("python", "libraries", "event loop", "open files", "settings", "database", "disk", "clock"),
    *("dns", "fetch", "server", "readers"),
}


def verdicts(found: Iterable[CheckFinding]) -> dict[str, CheckVerdict]:
    """Return the gravest verdict of each check; bad ones give advice."""
    gravest: dict[str, CheckVerdict] = {}
    for each in found:
        assert each.advice or each.verdict in (GOOD, SKIPPED)
        gravest[each.check] = max(each.verdict, gravest.get(each.check, GOOD), key=list(CheckVerdict).index)
    return gravest


def gravest(found: Iterable[CheckFinding], check: str) -> CheckFinding:
    """Return the gravest finding of one check."""
    return max(
        (each for each in found if each.check == check),
        key=lambda each: list(CheckVerdict).index(each.verdict),
    )


def a_config_with(**sections: dict[str, Any]) -> Config:
    config = Config()
    for name, changes in sections.items():
        config = replace(config, **{name: replace(getattr(config, name), **changes)})
    return config


# The whole command

pytestmark = pytest.mark.usefixtures("no_server")


def test_offline_everything_else_is_looked_at(own_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Exit 0, without a new database, token or lock."""
    assert main(["doctor", "--offline"]) == 0
    shown = capsys.readouterr().out
    assert "skipped  dns          not asked: --offline" in shown
    assert "nothing is wrong" in shown.splitlines()[-1]
    assert list(own_folder.iterdir()) == []


def test_what_is_wrong_is_exit_1_and_a_warning_is_not(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """JSON for monitoring has the gravest verdict, and each finding with all its parts."""
    monkeypatch.setenv("WHOLEFEED_LIMITS_WORKERS", "0")
    assert main(["doctor", "--offline", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["verdict"] == "warning"
    assert {each["check"] for each in told["checks"]} == CHECKS
    assert all([*each] == ["check", "verdict", "text", "advice"] for each in told["checks"])
    monkeypatch.setenv("WHOLEFEED_STORE_PATH", "/nowhere/wholefeed.db")
    assert main(["doctor", "--offline", "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["verdict"] == "wrong"


def test_nothing_is_printed_but_what_was_found(capfd: pytest.CaptureFixture[str]) -> None:
    """A refusal of the guard is exit 1 without its log line; a malformed URL is exit 2."""
    assert main(["doctor", "http://127.0.0.1:22/feed"]) == 1
    shown = capfd.readouterr()
    assert "wrong    fetch" in shown.out
    assert shown.err == ""
    assert main(["doctor", "gopher://a.example/"]) == 2
    assert len(capfd.readouterr().err.splitlines()) == 1


def test_the_text_has_a_line_each_and_what_to_do_below() -> None:
    """The sum comes last."""
    fine, odd, broken = good("a", "all is well"), warning("c", "odd", "do that"), wrong("d", "no", "mend it")
    assert as_text([fine, odd, broken, broken]).splitlines() == [
        "good     a            all is well",
        "warning  c            odd",
        "                      -> do that",
        "wrong    d            no",
        "                      -> mend it",
        "wrong    d            no",
        "                      -> mend it",
        "",
        "2 things are wrong, 1 warning",
    ]
    assert as_text([fine, odd, odd]).endswith("\nnothing is wrong, 2 warnings\n")
    assert as_text([fine, broken]).endswith("\n1 thing is wrong\n")


async def test_a_document_is_fetched_as_the_proxy_does(origin: Origin, tmp_path: Path) -> None:
    """With a URL: its name, the document, and the clock by it."""
    origin.publish("/feed", atom(an_item("a")))
    config = a_config(tmp_path, server={"port": 9})
    found = await run_checks(config, origin.url("/feed"), MACHINE, is_offline=False)
    assert verdicts(found).keys() == CHECKS
    assert verdicts(found)["fetch"] is GOOD
    assert gravest(found, "dns").text.startswith("127.0.0.1")


async def test_no_check_holds_the_others_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A check that hangs or fails is reported, and the others still give results."""

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
    found = await run_checks(config, "http://127.0.0.1/", MACHINE, is_offline=False)
    assert time.monotonic() - started < 10
    assert {"fetch": WARNING, "settings": WRONG, "database": GOOD}.items() <= verdicts(found).items()
    assert "no such thing" in gravest(found, "settings").text


async def test_a_thread_that_is_stuck_is_not_waited_for() -> None:
    """A dead disk may block a thread for ever."""
    stuck = threading.Event()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            await beside(stuck.wait)
    (thread,) = [each for each in threading.enumerate() if each.name == "doctor"]
    assert thread.daemon
    stuck.set()
    thread.join(5)
    await asyncio.sleep(0)


# Python, libraries, the machine

REQUIRED = [
    "aiohttp<4,>=3.14",
    "backports-zstd>=1.3; python_version < '3.14'",
    "uvloop>=0.22; extra == 'uvloop'",
    "idna>=3.10",
]
INSTALLED = {"aiohttp": "3.14.5", "backports-zstd": "1.3.0", "idna": "3.10"}


@pytest.mark.parametrize(
    ("python", "installed", "of_python", "of_libraries"),
    [
        ("3.11.7", {}, GOOD, GOOD),
        ("3.10.14", {}, WRONG, GOOD),
        ("3.9.99", {}, WRONG, GOOD),
        ("3.11.7", {"aiohttp": "3.13.9"}, GOOD, WRONG),
        ("3.11.7", {"aiohttp": "4.0.0"}, GOOD, WRONG),
        ("3.11.7", {"aiohttp": "4.0.0a1"}, GOOD, WRONG),
        ("3.11.7", {"idna": "3.9"}, GOOD, WRONG),
        ("3.13.1", {"backports-zstd": None}, GOOD, WRONG),
        ("3.14.0", {"backports-zstd": None}, GOOD, GOOD),
    ],
)
def test_versions_are_held_against_their_bounds(
    python: str, installed: dict[str, str | None], of_python: CheckVerdict, of_libraries: CheckVerdict
) -> None:
    """Comparison goes by numbers, not by letters; extras may be absent."""
    found = judge_versions(python, ">=3.11", REQUIRED, {**INSTALLED, **installed}.get)
    assert verdicts(found) == {"python": of_python, "libraries": of_libraries}


def test_the_tests_run_with_libraries_within_their_bounds() -> None:
    """The real look finds Python and the libraries of this environment."""
    assert verdicts(check_versions()) == {"python": GOOD, "libraries": GOOD}


@pytest.mark.parametrize(("open_files", "verdict"), [(1024, WARNING), (4096, GOOD), (-1, GOOD)])
def test_few_open_files_are_a_warning_and_uvloop_is_advised(open_files: int, verdict: CheckVerdict) -> None:
    """2,048 readers at once need as many files and more; uvloop is optional."""
    machine = replace(MACHINE, open_files=open_files)
    for has_uvloop in (True, False):
        loop, files = judge_machine(machine, has_uvloop=has_uvloop, loop="some.Loop")
        assert (loop.verdict, files.verdict) == (GOOD, verdict)
        assert "some.Loop" in loop.text
        assert (to_add("uvloop") in loop.advice) is not has_uvloop


def test_a_container_s_own_memory_counts(tmp_path: Path) -> None:
    """The lower limit counts, the cgroup's or the machine's; `max` is no bound."""
    group = tmp_path / "sys" / "fs" / "cgroup"
    group.mkdir(parents=True)
    (group / "memory.max").write_text("268435456\n", "ascii")
    (tmp_path / ".dockerenv").touch()
    assert this_machine(tmp_path).memory_bytes == 1 << 28
    assert this_machine(tmp_path).is_container
    (group / "memory.max").write_text("max\n", "ascii")
    (tmp_path / ".dockerenv").unlink()
    assert this_machine(tmp_path).memory_bytes > 1 << 28
    assert not this_machine(tmp_path).is_container


# Settings

TOKEN = {"access_token": "t" * 16}
KEYS = {"signing_keys": ("k" * 16,)}
PUBLIC = {"host": "0.0.0.0"}
NAMED = {"public_url": "https://feeds.example.org"}
CLOSED = {**NAMED, **TOKEN}
SOCKET = {"socket": "/run/wholefeed/wholefeed.sock"}
BEHIND = {"trusted_proxies": ("127.0.0.1/32",)}
LIMITED = {"client_requests_per_minute": 60}
EVERYBODY = ("0.0.0.0/0",)
HERE = {"metrics_networks": ("127.0.0.0/8",)}


@pytest.mark.parametrize(
    "server",
    [
        {},
        {**PUBLIC},
        {**PUBLIC, **TOKEN},
        {**CLOSED, **BEHIND, **LIMITED},
        {"allowed_hosts": ("feeds.example.org",), "trusted_proxies": ("10.0.0.1/32",)},
        {**KEYS, **TOKEN},
        {"public_url": "http://nas:8080", **TOKEN},
        {"public_url": "http://127.0.0.1:8080", **TOKEN},
        {**CLOSED, **BEHIND, **HERE},
        {**HERE},
        {**CLOSED, **SOCKET, **LIMITED, "trusted_proxies": ("unix:",)},
        {**CLOSED, **SOCKET, **BEHIND},
        {"shutdown_grace_seconds": 30},
    ],
)
def test_what_fits_is_not_complained_of(server: dict[str, Any]) -> None:
    """The defaults, and usual ways to run it."""
    assert {each.verdict for each in judge_settings(a_config_with(server=server), MACHINE)} == {GOOD}


@pytest.mark.parametrize(
    ("sections", "words"),
    [
        ({"server": {**PUBLIC, "open": True}}, "server.open lets anybody"),
        ({"server": NAMED}, "server.public_url is set, but neither a token"),
        ({"server": KEYS}, "without server.access_token"),
        ({"server": {"public_url": "http://feeds.example.org", **TOKEN}}, "is http"),
        ({"server": {"trusted_proxies": ("10.0.0.1/32",)}}, "421"),
        ({"server": {**CLOSED, **LIMITED}}, "as one"),
        ({"server": {**CLOSED, **SOCKET, **BEHIND, **LIMITED}}, "through server.socket as one"),
        ({"server": SOCKET}, "server.socket is set, but neither a token"),
        ({"server": {**CLOSED, "trusted_proxies": ("unix:",)}}, "no server.socket is set"),
        ({"server": {**CLOSED, **HERE}}, "/metrics to all"),
        ({"server": {"metrics_networks": EVERYBODY}}, "/metrics to everybody"),
        ({"fetch": {"allow_networks": EVERYBODY}}, "guard of private addresses off"),
        ({"fetch": {"allow_hosts": ("a.example",), "deny_hosts": ("a.example",)}}, "a.example is in"),
        ({"limits": {"respond_within_seconds": 30}}, "some readers wait 10 s"),
        ({"fetch": {"connect_timeout_seconds": 90}}, "it has no effect"),
        ({"store": {"memory_bytes": 3 * GIB // 4}}, "more than half"),
        ({"limits": {"feed_bytes": 1 << 20}}, "limits.document_bytes is larger"),
        ({"limits": {"workers": 0}}, "limits.workers is 0"),
        ({"fetch": {"concurrency": 2}}, "fetch.concurrency_per_host is larger"),
        ({"history": {"poll_seconds": 60}}, "history.poll_seconds is shorter"),
        ({"history": {"poll_seconds": 3600, "remember": False}}, "without history.remember"),
        ({"history": {"memento": True}, "fetch": {"allow_hosts": ("a.example",)}}, "history.memento asks"),
    ],
)
def test_what_does_not_fit_is_a_warning(sections: dict[str, Any], words: str) -> None:
    """Each setting has one warning, with a command to type, and no other."""
    found = judge_settings(a_config_with(**sections), MACHINE)
    (said,) = [each for each in found if each.verdict is not GOOD]
    assert said.verdict is WARNING
    assert words in said.text
    assert said.advice


@pytest.mark.parametrize(
    ("sections", "words"),
    [
        ({"server": {**CLOSED, "trusted_proxies": EVERYBODY}}, "trusts everybody"),
        ({"server": {**CLOSED, "trusted_proxies": ("::/0",)}}, "trusts everybody"),
        ({"store": {"memory_bytes": 2 * GIB}}, "more than the"),
        (
            {"server": {**PUBLIC, "open": True}, "fetch": {"allow_networks": ("10.0.0.0/8",)}},
            "private networks",
        ),
    ],
)
def test_what_cannot_be_meant_is_wrong(sections: dict[str, Any], words: str) -> None:
    """A wrong setting does harm, or has no effect."""
    (said,) = [each for each in judge_settings(a_config_with(**sections), MACHINE) if each.verdict is WRONG]
    assert words in said.text
    assert said.advice


def test_what_depends_on_more_than_the_settings() -> None:
    """The wildcard is read as the guard does; Docker kills after 10 s."""
    (told,) = judge_settings(a_config_with(server=PUBLIC), MACHINE)
    assert (told.verdict, "wholefeed.db.token" in told.text) == (GOOD, True)
    archive = a_config_with(history={"memento": True}, fetch={"allow_hosts": ("*.archive.org",)})
    assert [each.verdict for each in judge_settings(archive, MACHINE)] == [GOOD]
    patient = a_config_with(server={"shutdown_grace_seconds": 30})
    assert [each.verdict for each in judge_settings(patient, CONTAINER)] == [WARNING]


# Files with secrets

VARIABLE = "WHOLEFEED_SERVER_ACCESS_TOKEN_FILE"
SECRET = "t" * 20


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that others may enter; pytest's own are closed."""
    with TemporaryDirectory() as name:
        path = Path(name)
        path.chmod(0o755)
        yield path


def test_a_secret_that_others_can_read_is_none(folder: Path) -> None:
    """Mode and folder count; a container has no others, and a missing file is no fault."""
    token = folder / "token"
    token.write_text(SECRET)

    def verdict(path: Path = token, *, is_container: bool = False) -> CheckVerdict:
        environ = {VARIABLE: str(path), "HOME": "/"}
        (found,) = check_secrets(a_config(folder), environ, is_container=is_container)
        assert SECRET not in found.text
        assert found.text.endswith(f"{path} ({VARIABLE})")
        return found.verdict

    token.chmod(0o644)
    assert verdict() is WARNING
    assert verdict(is_container=True) is GOOD
    folder.chmod(0o700)
    assert verdict() is GOOD
    folder.chmod(0o755)
    token.chmod(0o640)
    assert verdict() is GOOD
    assert verdict(folder / "gone") is GOOD


def test_the_token_that_was_made_is_looked_at(
    own_folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The whole command looks at it, and prints nothing of the secret."""
    made, named = own_folder / "wholefeed.db.token", own_folder / "named"
    for path in (made, named):
        path.touch(0o600)
        path.write_text(SECRET)
    monkeypatch.setenv(VARIABLE, str(named))
    assert main(["doctor", "--offline"]) == 0
    shown = capsys.readouterr().out
    assert f"good     secrets      {named} ({VARIABLE})" in shown
    assert f"good     secrets      {made} (the access token that wholefeed made)" in shown
    assert SECRET not in shown


# Names, and one document


@pytest.mark.parametrize(
    ("names", "patience", "verdict", "words"),
    [
        (Names({"a.example": ("192.0.2.1",)}), {}, GOOD, "192.0.2.1"),
        (Names(), {}, WRONG, "no such name"),
        (SilentNames(), {"LOOKUP_SECONDS": 0.05}, WRONG, "offline"),
        (Names({"a.example": ("192.0.2.1",)}), {"_SLOW_NAMES_SECONDS": -1.0}, WARNING, "after"),
    ],
    ids=["known", "unknown", "silent", "slow"],
)
async def test_a_name_is_looked_up_as_the_proxy_does(
    monkeypatch: pytest.MonkeyPatch,
    names: Names,
    patience: dict[str, float],
    verdict: CheckVerdict,
    words: str,
) -> None:
    """Each new publisher waits for a slow name server."""
    for name, seconds in patience.items():
        monkeypatch.setattr(doctor, name, seconds)
    found = await check_names("a.example", Config(), names)
    assert (found.verdict, words in found.text) == (verdict, True)
    assert found.advice or verdict is GOOD


async def test_behind_a_proxy_no_name_is_looked_up() -> None:
    """The outgoing proxy looks names up."""
    names, config = Names(), a_config_with(fetch={"proxy": "http://127.0.0.1:3128"})
    own = config_of({"publisher": [{"host": "b.example", "proxy": "http://127.0.0.1:3128"}]}).publisher
    assert (await check_names("a.example", config, names)).verdict is SKIPPED
    assert (
        await check_names("b.example", replace(config, fetch=Config().fetch, publisher=own), names)
    ).verdict is SKIPPED
    assert names.asked == []


async def test_one_document_is_fetched_and_judged(origin: Origin, tmp_path: Path) -> None:
    """A page proves the way out, too; RFC 9110, 6.6.1: the clock agrees with the response's Date."""
    origin.publish("/feed", atom(an_item("a"), an_item("b")))
    origin.redirect("/old", "/feed")
    document, clock = await check_fetch(origin.url("/old"), a_config(tmp_path))
    assert (document.verdict, clock.verdict) == (GOOD, SKIPPED)
    assert "200" in document.text
    assert "1 redirect to" in document.text
    assert document.text.endswith("2 entries")
    dated = [("Date", "Tue, 14 Nov 2023 00:00:00 GMT")]
    origin.publish("/page", b"<html>no feed</html>", content_type="text/html", headers=dated)
    document, clock = await check_fetch(origin.url("/page"), a_config(tmp_path))
    assert (document.verdict, clock.verdict) == (WARNING, WRONG)
    assert "not-a-feed" in document.text


async def test_what_cannot_be_fetched_is_wrong_and_says_why(
    origin: Origin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each failure has its slug and advice, within seconds, despite fetch.document_timeout_seconds."""
    origin.answer("/gone", Status(404))
    config = a_config(tmp_path)
    guarded = a_config(tmp_path, fetch={"allow_networks": ()})
    for url, with_config, slug, advice in (
        (origin.url("/gone"), config, "publisher-status", "explain"),
        (origin.url("/gone"), guarded, "destination-forbidden", "fetch.allow_networks"),
        ("http://127.0.0.1:9/feed", config, "destination-forbidden", "fetch.ports"),
        ("http://127.0.0.1:1025/feed", config, "connection-failed", "firewall"),
        (origin.url("/held"), config, "timeout", "firewall"),
    ):
        monkeypatch.setattr(doctor, "FETCH_SECONDS", 0.2 if slug == "timeout" else 8.0)
        with origin.held("/held"):
            (found,) = await check_fetch(url, with_config)
        assert (found.verdict, slug in found.text, advice in found.advice) == (WRONG, True, True)


async def test_no_secret_of_a_url_is_shown(origin: Origin, tmp_path: Path) -> None:
    """Podcast feeds have tokens in their query, and people paste the output into reports."""
    origin.publish("/feed", atom(an_item("a")))
    origin.redirect("/moved", "/gone?token=secret")
    for path in ("/feed?token=secret", "/moved?token=secret", "/gone?token=secret"):
        found, *_ = await check_fetch(origin.url(path), a_config(tmp_path))
        assert "secret" not in found.text
        assert origin.url(path.partition("?")[0]) in found.text


# Whether it runs, and who reaches it

RUNS = ProxyAnswer("http://127.0.0.1:8080", Listener.WHOLEFEED)
NOBODY = replace(RUNS, listener=Listener.NOBODY, why="refused")
STRANGER = replace(RUNS, listener=Listener.STRANGER, why="status 502")
DENIED = replace(NOBODY, why="Permission denied")


@pytest.mark.parametrize(
    ("server", "own", "others", "check", "expected"),
    [
        ({}, RUNS, {}, "server", GOOD),
        ({}, NOBODY, {}, "server", SKIPPED),
        ({}, STRANGER, {}, "server", WRONG),
        (NAMED, RUNS, {"public": RUNS}, "public url", GOOD),
        (NAMED, RUNS, {"public": NOBODY}, "public url", WRONG),
        (NAMED, RUNS, {"public": STRANGER}, "public url", WRONG),
        (NAMED, NOBODY, {"public": NOBODY}, "public url", SKIPPED),
        (NAMED, NOBODY, {"public": STRANGER}, "public url", SKIPPED),
        (NAMED, RUNS, {"public": RUNS}, "readers", None),
        (SOCKET, RUNS, {"by_socket": RUNS}, "socket", GOOD),
        (SOCKET, RUNS, {"by_socket": NOBODY}, "socket", WRONG),
        (SOCKET, RUNS, {"by_socket": DENIED}, "socket", SKIPPED),
        (SOCKET, RUNS, {}, "readers", None),
        ({}, RUNS, {}, "readers", GOOD),
        ({**PUBLIC, "open": True}, RUNS, {"outer": RUNS}, "readers", GOOD),
        ({**PUBLIC, "open": True}, RUNS, {"outer": NOBODY}, "readers", WARNING),
        ({**PUBLIC, "open": True}, NOBODY, {"outer": NOBODY}, "readers", None),
    ],
)
def test_what_answers_is_judged_by_where_it_does(
    server: dict[str, Any],
    own: ProxyAnswer,
    others: dict[str, ProxyAnswer],
    check: str,
    expected: CheckVerdict | None,
) -> None:
    """Before the first start nothing is wrong; a socket or a firewall leaves the reach of readers open."""
    found = judge_server(a_config_with(server=server), own, is_container=False, **others)
    assert verdicts(found).get(check) is expected


def test_what_a_reader_elsewhere_needs_is_told() -> None:
    """127.0.0.1 reaches this machine only, or its container's network."""
    (_, found) = judge_server(Config(), RUNS, is_container=False)
    assert "WHOLEFEED_SERVER_HOST=0.0.0.0" in found.advice
    for server, expected in (({}, WARNING), (SOCKET, None), (NAMED, None)):
        judged = judge_server(a_config_with(server=server), RUNS, is_container=True)
        assert verdicts(judged).get("readers") is expected


def test_whether_a_socket_can_be_made_is_told_before_the_first_start(tmp_path: Path) -> None:
    """The folder must exist; the socket of a killed server may stay."""
    (tmp_path / "file").touch()
    with closing(socket.socket(socket.AF_UNIX)) as left:
        left.bind(str(tmp_path / "left"))
    for name, expected in (("new", GOOD), ("none/new", WRONG), ("file", WRONG), ("left", GOOD)):
        config = a_config_with(server={"socket": str(tmp_path / name)})
        found = judge_server(config, NOBODY, by_socket=NOBODY, is_container=False)
        assert verdicts(found)["socket"] is expected


async def test_a_running_server_is_found_by_each_of_its_addresses(tmp_path: Path) -> None:
    """The port, the socket, and the public URL with a path, unless --offline."""
    path = tmp_path / "wholefeed.sock"
    named = "https://feeds.example.org/feeds"
    async with serving(tmp_path, server_socket=path, server_public_url=named) as served:
        base = f"http://127.0.0.1:{served.port}/feeds"
        server = {"port": served.port, "socket": str(path), "public_url": base}
        config = a_config(tmp_path, server=server)
        found = await check_server(config, is_container=False, is_offline=False)
        assert verdicts(found) == {"server": GOOD, "socket": GOOD, "public url": GOOD}
        path.unlink()
        found = await check_server(config, is_container=False, is_offline=True)
        assert verdicts(found) == {"server": GOOD, "socket": WRONG}


async def test_a_stranger_and_nobody_are_told_apart(origin: Origin, tmp_path: Path) -> None:
    """Another program at the port answers without our health, or speaks no HTTP."""
    server = {"port": origin.port, "public_url": "http://127.0.0.1:9"}
    config = a_config(tmp_path, server=server)
    own, public = await check_server(config, is_container=False, is_offline=False)
    assert (own.verdict, "404" in own.text, public.verdict) == (WRONG, True, SKIPPED)
    origin.answer("/healthz", Raw(b"220 mail.example ESMTP\r\n"))
    (own,) = await check_server(config, is_container=False, is_offline=True)
    assert own.verdict is WRONG
    await origin.stop()
    (own,) = await check_server(config, is_container=False, is_offline=True)
    assert (own.verdict, own.advice) == (SKIPPED, "wholefeed serve")


async def test_a_public_url_that_leads_on_is_told_where_to(
    proxy: Proxy, origin: Origin, tmp_path: Path
) -> None:
    """The reverse proxy redirects http to https, and public_url says http."""
    origin.redirect("/healthz", "https://feeds.example.org/healthz", status=301)
    server = {"port": proxy.client.port, "public_url": f"http://127.0.0.1:{origin.port}"}
    own, public = await check_server(a_config(tmp_path, server=server), is_container=False, is_offline=False)
    assert (own.verdict, public.verdict) == (GOOD, WRONG)
    assert "https://feeds.example.org/healthz" in public.advice


def test_the_doctor_says_which_publisher_counts_and_what_it_wants(folder: Path) -> None:
    """A1, A6: names alone, the secrets withheld over http, and an error of the server's start."""
    secret = folder / "credentials"
    secret.write_text("reader:canary")
    tables: list[dict[str, object]] = [
        {"host": "a.example", "headers": {"X-Key": "canary"}, "credentials_file": str(secret)},
        {"host": "*.example", "min_interval_seconds": 2},
    ]
    own = config_of({"publisher": tables}).publisher
    config = replace(a_config(folder, server={"access_token": SECRET}), publisher=own)
    judged = partial(judge_publishers, config)
    (found,) = judged("https://a.example/feed?key=hidden")
    assert found.verdict is GOOD
    assert (
        found.text == "[[publisher]] a.example applies to https://a.example/feed?…: headers, credentials_file"
    )
    assert [each.verdict for each in judged("http://a.example/")] == [WARNING]
    near = config_of({"publisher": [{**tables[0], "host": "127.0.0.1"}]}).publisher
    (allowed,) = judge_publishers(replace(config, publisher=near), "http://127.0.0.1/")
    assert allowed.verdict is GOOD
    away = tuple(replace(each, proxy="http://p.example:1") for each in near)
    (proxied,) = judge_publishers(replace(config, publisher=away), "http://127.0.0.1/")
    assert proxied.verdict is WARNING  # through a proxy none go
    (other,) = judged("http://b.example/")
    assert other.text == "[[publisher]] *.example applies to http://b.example/: min_interval_seconds"
    assert [*judged("https://c.test/"), *judged("")] == []

    (refused,) = judge_publishers(replace(config, server=ServerConfig()), "")
    assert (refused.verdict, "does not start" in refused.text) == (WRONG, True)
    secret.chmod(0o644)
    (exposed,) = check_secrets(config, {}, is_container=False)
    assert (exposed.verdict, f"{secret} (credentials_file of" in exposed.text) == (WARNING, True)
    assert not any("canary" in repr(each) for each in (found, other, refused, exposed))


async def test_the_doctor_fetches_as_the_proxy_does(origin: Origin, tmp_path: Path) -> None:
    """A2: the doctor sends the header fields configured for the document's publisher."""
    origin.publish("/feed", atom(an_item("a")))
    tables = [{"host": origin.host, "headers": {"X-Key": "canary"}, "user_agent": "Reader/1"}]
    config = replace(a_config(tmp_path), publisher=config_of({"publisher": tables}).publisher)
    assert (await check_fetch(origin.url("/feed"), config))[0].verdict is GOOD
    sent = origin.requests[0].headers
    assert (sent["x-key"], sent["user-agent"]) == ("canary", "Reader/1")
