"""The command line: commands, exit codes, one clear line for each error."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import gc
import http.server
import io
import os
import select
import signal
import socket
import stat
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, BinaryIO

import pytest

from demo.proxy_process import free_port
from tests.feeds import an_item, atom
from tests.origin import Origin
from tests.processes import ROOT, serving
from tests.running import a_config
from wholefeed import __version__
from wholefeed.app import serve as real_serve
from wholefeed.cli import backend
from wholefeed.cli.base import give_up
from wholefeed.cli.main import COMMANDS, main
from wholefeed.cli.output import Output, ProgressLine, Termination, opened_output
from wholefeed.config.tables import Config
from wholefeed.core.model import State
from wholefeed.errors import InvalidUrlError, PublisherTimeoutError, StoreUnusableError
from wholefeed.server.listening import NOBODY, Supervisor
from wholefeed.store.migrations import read_migrations

FEED = "http://a.example/feed"


class FakeApp:
    """Replaces the calls of `serve` and `fetch`, with results of the test's choice."""

    def __init__(self) -> None:
        self.error: BaseException | None = None
        self.state = State.COMPLETE
        self.port = 8080
        self.is_listening = False
        self.configs: list[Config] = []
        self.collects: list[bool] = []
        self.asked: list[tuple[str, float | None, bool]] = []

    async def serve(
        self, config: Config, *, on_started: Callable[[str, int], None], supervisor: Supervisor
    ) -> None:
        assert supervisor == NOBODY
        self.configs.append(config)
        self.collects.append(gc.isenabled())
        if self.error is None or self.is_listening:
            await asyncio.to_thread(on_started, config.server.host, config.server.port or self.port)
        if self.error:
            raise self.error

    async def fetch_once(
        self,
        config: Config,
        url: str,
        output: BinaryIO,
        *,
        wait_seconds: float | None,
        progress: Callable[[dict[str, Any]], None] | None = None,
    ) -> State:
        self.configs.append(config)
        self.asked.append((url, wait_seconds, progress is not None))
        await asyncio.to_thread(output.write, b"<feed")
        if self.error:
            raise self.error
        await asyncio.to_thread(output.write, b"/>")
        return self.state


@pytest.fixture
def app(monkeypatch: pytest.MonkeyPatch) -> FakeApp:
    fake = FakeApp()
    monkeypatch.setitem(sys.modules, "wholefeed.app", SimpleNamespace(serve=fake.serve))
    monkeypatch.setattr(backend, "fetch_once", fake.fetch_once)
    return fake


# The parser


def test_version_and_help_do_not_load_the_server() -> None:
    """Both import no library, configuration, error or completion."""
    script = (
        "import sys\nfrom wholefeed.cli.main import main\n"
        "for arguments in (['--version'], ['--help'], ['serve', '--help']):\n"
        "    try: main(arguments)\n"
        "    except SystemExit as end: assert end.code == 0\n"
        "late = {'wholefeed.config.tables', 'wholefeed.errors', 'shtab'}\n"
        "late |= {'aiohttp', 'asyncio', 'structlog', 'http.client'}\n"
        "print(sorted(set(sys.modules) & late))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, timeout=300, check=True
    )
    assert done.stdout.startswith(f"wholefeed {__version__}\n")
    assert done.stdout.endswith("\n[]\n")


@pytest.mark.parametrize("command", [command.name for command in COMMANDS])
def test_each_command_has_help_with_examples(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    """`--help` of every command shows its usage, an example, and --config."""
    with pytest.raises(SystemExit) as end:
        main([command, "--help"])
    text = capsys.readouterr().out
    assert end.value.code == 0
    assert all(each in text for each in ("examples:", f"wholefeed {command}", "--config FILE"))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "required: COMMAND; to begin with: wholefeed serve"),
        ([], "print the URL to subscribe to"),
        (["walk"], "see wholefeed --help"),
        (["fetch"], "required: URL"),
        (["fetch", ""], "argument URL: expected the URL of a feed, got nothing"),
        (["fetch", FEED, "-o", ""], "argument -o/--output: expected the name of a file, or -, got nothing"),
        (["serve", "--port", "many"], "argument --port: "),
        *((["fetch", FEED, "--wait", wait], f"expected a number of seconds, 0 or more, got '{wait}'")
          for wait in ("-1", "nan", "inf", "soon")),
    ],
)  # fmt: skip
def test_a_wrong_command_line_is_exit_2_and_says_what_is_expected(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """A missing or bad argument never gives a traceback."""
    with pytest.raises(SystemExit) as end:
        main(arguments)
    assert end.value.code == 2
    told = capsys.readouterr().err
    assert "usage: wholefeed" in told
    assert message in told


@pytest.mark.parametrize("command", ["serve", "config", "migrate", "healthcheck"])
def test_a_bad_configuration_is_exit_2_and_one_line(
    command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A misspelt variable stops every such command, and the right name is offered."""
    monkeypatch.setenv("WHOLEFEED_SERVER_PROT", "80")
    assert main([command]) == 2
    expected = "unknown environment variable WHOLEFEED_SERVER_PROT; did you mean WHOLEFEED_SERVER_PORT?"
    assert capsys.readouterr().err == f"wholefeed: {expected}\n"


# `serve`


async def test_a_first_start_tells_its_migrations_in_one_line(own_folder: Path) -> None:
    """The log names the last migration and their number; a later start names none."""
    async with serving(own_folder) as served:
        migrations = await asyncio.to_thread(read_migrations)
        (line,) = (each for each in served.lines if each["event"] == "migration.applied")
        assert (line["name"], line["migrations"]) == (migrations[-1].name, len(migrations))
    async with serving(own_folder) as served:
        assert served.events()[0] == "server.started"


def test_serve_takes_its_flags_over_the_environment(app: FakeApp, monkeypatch: pytest.MonkeyPatch) -> None:
    """The collector is off only during the import of the program."""
    monkeypatch.setenv("WHOLEFEED_SERVER_PORT", "1001")
    assert main(["serve", "--host", "::1", "--port", "1002"]) == 0
    (config,) = app.configs
    assert (config.server.host, config.server.port) == ("::1", 1002)
    assert main(["serve", "--port", "-1"]) == 2
    assert [*app.collects, gc.isenabled()] == [True, True]


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (OSError(errno.EADDRINUSE, "in use"), "cannot listen on 127.0.0.1, port 1003: another program"),
        (PermissionError(errno.EACCES, "denied"), "cannot listen on 127.0.0.1, port 1003: not permitted"),
        (
            OSError(errno.EADDRNOTAVAIL, "no such"),
            "cannot listen on 127.0.0.1, port 1003: this machine has no",
        ),
        (StoreUnusableError("feeds.db is no database"), "feeds.db is no database"),
    ],
)
def test_a_server_that_cannot_start_is_exit_1_and_one_line(
    app: FakeApp, capsys: pytest.CaptureFixture[str], error: Exception, line: str
) -> None:
    """Row 70: a used or forbidden port, or a file that is no database."""
    app.error = error
    assert main(["serve", "--port", "1003"]) == 1
    told = capsys.readouterr().err
    assert told.startswith(f"wholefeed: {line}")
    assert told.count("\n") == 1


def test_an_error_after_the_start_is_not_told_as_one_of_the_start(
    app: FakeApp, capsys: pytest.CaptureFixture[str]
) -> None:
    """An I/O error of a listening server is not reported as an unavailable port."""
    app.is_listening = True
    app.error = OSError(errno.EIO, "Input/output error")
    assert main(["serve"]) == 1
    assert capsys.readouterr().err == "wholefeed: the server ended: [Errno 5] Input/output error\n"


@pytest.mark.parametrize(
    ("log_format", "is_terminal", "is_told"),
    [("auto", True, True), ("auto", False, False), ("console", False, True), ("json", True, False)],
)
def test_people_are_told_what_to_open(
    app: FakeApp, monkeypatch: pytest.MonkeyPatch, log_format: str, is_terminal: bool, is_told: bool
) -> None:
    """Standard error names the address to open, unless programs read the log."""
    stream = io.StringIO()
    monkeypatch.setattr(stream, "isatty", lambda: is_terminal)
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setenv("WHOLEFEED_LOG_FORMAT", log_format)
    app.port = 43210
    assert main(["serve", "--port", "0"]) == 0
    assert stream.getvalue().count("\n") == is_told
    assert ("open http://127.0.0.1:43210/ in a browser" in stream.getvalue()) == is_told


@pytest.mark.fault("74")
@pytest.mark.parametrize("ending", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_the_server_tells_where_it_listens(tmp_path: Path, ending: signal.Signals) -> None:
    """`on_started` gets the real number for port 0; each signal ends it in order."""
    told: list[tuple[str, int]] = []

    def on_started(host: str, port: int) -> None:
        told.append((host, port))
        os.kill(os.getpid(), ending)

    config = a_config(tmp_path, server={"host": "127.0.0.1", "port": 0})
    asyncio.run(real_serve(config, on_started=on_started))

    ((host, port),) = told
    assert host == "127.0.0.1"
    assert port > 0


def test_a_server_under_nohup_outlives_its_terminal(tmp_path: Path) -> None:
    """A signal that is ignored at the start stays ignored."""
    found: list[object] = []

    def on_started(_host: str, _port: int) -> None:
        found.append(signal.getsignal(signal.SIGHUP))
        os.kill(os.getpid(), signal.SIGTERM)

    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        asyncio.run(real_serve(a_config(tmp_path, server={"port": 0}), on_started=on_started))
    finally:
        signal.signal(signal.SIGHUP, before)
    assert found == [signal.SIG_IGN]


@pytest.mark.parametrize(
    ("host", "port", "started_by", "advice"),
    [
        ("127.0.0.1", 0, "", "wholefeed serve --port 9000"),
        ("0.0.0.0", 0, "make serve", "make serve ARGS='--port 9000'"),
        ("127.0.0.1", 9000, "", "wholefeed serve --port 9001"),
    ],
)
def test_a_port_in_use_is_told_with_another_and_leaves_nothing_behind(
    own_folder: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    host: str,
    port: int,
    started_by: str,
    advice: str,
) -> None:
    """Neither database nor lock nor token; advice names the command that was used."""
    monkeypatch.setenv("STARTED_BY", started_by)
    with contextlib.closing(socket.socket()) as other:
        with contextlib.suppress(OSError):  # whoever else has it does as well
            other.bind((host, port))
            other.listen()
        port = port or other.getsockname()[1]
        assert main(["serve", "--host", host, "--port", str(port)]) == 1
    expected = f"cannot listen on {host}, port {port}: another program listens there; try {advice}\n"
    assert capsys.readouterr().err == f"wholefeed: {expected}"
    assert list(own_folder.iterdir()) == []


@pytest.mark.fault("81")
def test_a_public_address_shows_its_new_token_once_and_never_logs_it(
    app: FakeApp, own_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """docs/faults.md row 81: a failed start shows no token and makes none."""
    arguments = ["serve", "--host", "0.0.0.0", "--port", "0"]
    app.port, app.error = 43210, OSError(errno.EADDRINUSE, "in use")
    assert main(arguments) == 1
    failed = capsys.readouterr()
    assert "token" not in failed.err + failed.out
    assert list(own_folder.glob("*.token")) == []

    app.error = None
    assert main(arguments) == 0
    first = capsys.readouterr()
    assert main(arguments) == 0
    again = capsys.readouterr()
    token = (own_folder / "wholefeed.db.token").read_text("ascii").strip()
    assert [config.server.access_token for config in app.configs[1:]] == [token, token]
    assert f"http://YOUR-HOST:43210/feed?token={token}&url=" in first.err
    assert '"token.created"' in first.out
    assert token not in first.out + again.out + again.err


@pytest.mark.parametrize("output", ["full", "closed pipe"])
@pytest.mark.sample("full")
def test_a_log_that_cannot_be_written_stops_neither_the_start_nor_answers(
    tmp_path: Path, output: str
) -> None:
    """With stdout full or closed, it ends on SIGTERM with exit 0."""
    port = free_port(0)
    if output == "full":
        sink = os.open("/dev/full", os.O_WRONLY)
    else:
        reading, sink = os.pipe()
        os.close(reading)
    process = subprocess.Popen(
        [sys.executable, "-m", "wholefeed", "serve", "--port", str(port)],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT / "proxy")},
        stdout=sink,
        stderr=subprocess.PIPE,
    )
    os.close(sink)
    with process:
        try:
            assert health(process, port) == 200
        finally:
            process.terminate()
        _, told = process.communicate(timeout=300)
    assert (process.returncode, told) == (0, b"")


def health(process: subprocess.Popen[bytes], port: int) -> int:
    """Return the status of /healthz once the process listens."""
    deadline = time.monotonic() + 30
    while process.poll() is None and time.monotonic() < deadline:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/healthz", timeout=300) as answer:
                return int(answer.status)
        except urllib.error.URLError:
            time.sleep(0.05)
    pytest.fail(f"it does not listen; exit code {process.poll()}")


# `fetch`


@pytest.mark.parametrize(
    ("state", "code"),
    [(State.COMPLETE, 0), (State.PAGED, 0), (State.REMEMBERED, 0), (State.PARTIAL, 3), (State.LOADING, 3)],
)
def test_fetch_tells_the_state_by_its_exit_code(
    app: FakeApp, capfdbinary: pytest.CaptureFixture[bytes], state: State, code: int
) -> None:
    """docs/command-line.md: 0 complete, paged or remembered; 3 partial or still loading."""
    app.state = state
    assert main(["fetch", FEED, "--wait", "2.5"]) == code
    assert app.asked == [(FEED, 2.5, False)]
    assert capfdbinary.readouterr().out == b"<feed/>"


@pytest.mark.parametrize(
    ("error", "code", "line"),
    [
        (PublisherTimeoutError("no answer in 60 s", url=FEED), 1, f"no answer in 60 s: {FEED}"),
        (InvalidUrlError("expected an http or https URL"), 2, "expected an http or https URL"),
    ],
)
def test_fetch_tells_an_error_in_one_line_and_leaves_the_old_file(
    app: FakeApp, own_folder: Path, capsys: pytest.CaptureFixture[str], error: Exception, code: int, line: str
) -> None:
    """The old file stays byte for byte, and no temporary file remains."""
    app.error = error
    old = own_folder / "out.atom"
    old.write_text("old")
    assert main(["fetch", FEED, "-o", str(old)]) == code
    assert capsys.readouterr().err == f"wholefeed: {line}\n"
    assert old.read_text() == "old"
    assert [path.name for path in own_folder.iterdir()] == ["out.atom"]


@pytest.mark.usefixtures("app")
def test_fetch_writes_a_file_with_the_usual_mode_and_what_a_link_leads_to(own_folder: Path) -> None:
    """The mode is not the 0600 of a temporary file; a symbolic link stays."""
    usual, target, link = own_folder / "usual", own_folder / "folder" / "target.atom", own_folder / "link"
    usual.touch()
    target.parent.mkdir()
    link.symlink_to(target)
    for _ in ("a link that leads nowhere yet", "one to a file"):
        assert main(["fetch", FEED, "-o", "link"]) == 0
        assert link.readlink() == target
        assert target.read_bytes() == b"<feed/>"
        assert target.stat().st_mode == usual.stat().st_mode
        target.write_bytes(b"old")


@pytest.mark.usefixtures("app")
def test_fetch_writes_what_is_no_file_as_it_is(
    own_folder: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    """A pipe; a link to a terminal in a read-only folder; standard output by its path."""
    pipe = own_folder / "pipe"
    os.mkfifo(pipe)
    read: list[bytes] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_bytes()), daemon=True)
    reader.start()
    assert main(["fetch", FEED, "-o", str(pipe)]) == 0
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    reader.join(timeout=300)
    assert read == [b"<feed/>"]

    ours, theirs = os.openpty()
    try:
        (own_folder / "link").symlink_to(os.ttyname(theirs))
        assert main(["fetch", FEED, "-o", "link"]) == 0
        assert shown(ours, 7) == b"<feed/>"
    finally:
        os.close(ours)
        os.close(theirs)

    assert main(["fetch", FEED, "-o", "/dev/stdout"]) == 0
    assert main(["fetch", FEED, "-o", "-"]) == 0
    assert capfdbinary.readouterr().out == b"<feed/><feed/>"


def shown(terminal: int, size: int) -> bytes:
    """Read this many bytes of a terminal, in pieces of any size."""
    data = b""
    while len(data) < size and select.select([terminal], [], [], 30)[0]:
        data += os.read(terminal, size)
    return data


@pytest.mark.usefixtures("app")
@pytest.mark.parametrize(
    ("output", "reason"),
    [
        (".", "Is a directory"),
        ("loop", "Too many levels of"),
        ("missing/out.atom", "No such file or directory"),
        ("/dev/full", "No space left on device"),
    ],
)
def test_an_output_that_cannot_be_written_is_exit_1_and_one_line(
    own_folder: Path, capsys: pytest.CaptureFixture[str], output: str, reason: str
) -> None:
    """A folder, or a link to itself, is named with the reason."""
    (own_folder / "loop").symlink_to("loop")
    assert main(["fetch", FEED, "-o", output]) == 1
    told = capsys.readouterr().err
    assert told.startswith(f"wholefeed: cannot write {output}: {reason}")
    assert told.count("\n") == 1


def test_a_pipe_that_does_not_block_is_waited_for() -> None:
    """A pipe with O_NONBLOCK gets the whole feed; a full pipe is no error."""
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    read: list[bytes] = []
    with os.fdopen(reading, "rb") as pipe:
        reader = threading.Thread(target=lambda: read.append(pipe.read()))
        reader.start()
        with Output(writing, "the pipe") as output:
            assert output.write(b"x" * 1_000_000) == 1_000_000
        reader.join()
    assert read == [b"x" * 1_000_000]


async def fetched_through(
    origin: Origin, tmp_path: Path, *arguments: str, **streams: Any
) -> asyncio.subprocess.Process:
    """Start `wholefeed fetch` of the publisher's /feed; temporary files go below `tmp_path`."""
    (tmp_path / "temporary").mkdir()
    environ = {
        **os.environ,
        "PYTHONPATH": str(ROOT / "proxy"),
        "TMPDIR": str(tmp_path / "temporary"),
        "WHOLEFEED_FETCH_ALLOW_NETWORKS": "127.0.0.0/8",
    }
    return await asyncio.create_subprocess_exec(
        sys.executable, "-m", "wholefeed", "fetch", origin.url("/feed"), *arguments,
        cwd=tmp_path, env=environ, stderr=asyncio.subprocess.PIPE, **streams,
    )  # fmt: skip


async def test_sigterm_ends_a_fetch_and_leaves_nothing_behind(origin: Origin, tmp_path: Path) -> None:
    """Before the publisher's response: exit 143, and no message."""
    with origin.held("/feed") as gate:
        process = await fetched_through(origin, tmp_path, "-o", "out.atom")
        await asyncio.wait_for(gate.reached(), 30)
        process.terminate()
        _, told = await asyncio.wait_for(process.communicate(), 30)
    assert (process.returncode, told) == (143, b"")
    assert [path.name for path in tmp_path.iterdir()] == ["temporary"]
    assert list((tmp_path / "temporary").iterdir()) == []


async def test_sigterm_does_not_wait_for_a_reader_that_stalls(origin: Origin, tmp_path: Path) -> None:
    """SIGTERM ends the command at once even if nobody reads the pipe."""
    origin.publish("/feed", atom(an_item("one", text="x" * 1_000_000)))
    reading, writing = os.pipe()
    process = await fetched_through(origin, tmp_path, stdout=writing)
    os.close(writing)
    async with asyncio.timeout(300):
        while not select.select([reading], [], [], 0)[0]:
            await asyncio.sleep(0.01)
        process.terminate()
        _, told = await process.communicate()
    os.close(reading)
    assert (process.returncode, told) == (143, b"")
    assert list((tmp_path / "temporary").iterdir()) == []


def test_sigterm_before_the_work_removes_the_half_made_file(own_folder: Path) -> None:
    """A signal before the fetch leaves no empty file."""
    with pytest.raises(SystemExit) as end, Termination(), opened_output(own_folder / "out.atom"):
        signal.raise_signal(signal.SIGTERM)
    assert end.value.code == 143
    assert list(own_folder.iterdir()) == []
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


def test_sigterm_twice_lets_the_work_clean_up() -> None:
    """A supervisor that signals a process and its group does so twice."""
    has_ended = False

    async def work() -> None:
        nonlocal has_ended
        try:
            signal.raise_signal(signal.SIGTERM)
            await asyncio.Event().wait()
        finally:
            signal.raise_signal(signal.SIGTERM)
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            has_ended = True

    with pytest.raises(SystemExit) as end, Termination() as termination:
        asyncio.run(termination.ending(work()))
    assert end.value.code == 143
    assert has_ended
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


def test_progress_is_one_line_that_is_written_over() -> None:
    """The line counts documents, entries and missing documents."""
    stream = io.StringIO()
    progress = ProgressLine(stream)
    progress({"state": None, "documents": None})
    progress({"state": "loading", "documents": 12, "entries": 340, "missing": [{"url": FEED}]})
    progress({"state": "complete", "documents": 1, "entries": 2, "missing": []})
    progress.close()
    progress.close()
    first, second, third, rest = stream.getvalue().removeprefix("\r").replace("\n", "\r").split("\r")
    assert first == "loading: asking"
    assert second == "loading: 12 documents, 340 entries, 1 missing"
    assert third.rstrip() == "complete: 1 documents, 2 entries"
    assert len(third) == len(second), "what stood there before is blanked"
    assert rest == ""


def test_a_terminal_that_has_gone_does_not_end_the_work() -> None:
    """A closed terminal stops progress, and not the fetch."""
    with Path("/dev/full").open("w", encoding="utf-8", buffering=1) as gone:
        progress = ProgressLine(gone)
        progress({"state": "loading"})
        progress.close()
        give_up(gone)


# Other commands


def run_with(*arguments: str, **streams: Any) -> subprocess.CompletedProcess[str]:
    """Run the command with standard streams of the test's choice."""
    environ = {**os.environ, "PYTHONPATH": str(ROOT / "proxy"), "PYTHONUNBUFFERED": ""}
    return subprocess.run(
        [sys.executable, "-m", "wholefeed", *arguments],
        env=environ, text=True, timeout=300, check=False, **streams,
    )  # fmt: skip


def test_a_result_that_cannot_be_written_is_exit_1_and_a_message_that_cannot_is_nothing() -> None:
    """A full volume is exit 1; without a writable stderr, a bad configuration is still exit 2."""
    with Path("/dev/full").open("wb") as full:
        done = run_with("config", stdout=full, stderr=subprocess.PIPE)
        told = "wholefeed: cannot write standard output: No space left on device\n"
        assert (done.returncode, done.stderr) == (1, told)
        done = run_with("config", "--config", "missing.toml", stderr=full, stdout=subprocess.PIPE)
        assert (done.returncode, done.stdout) == (2, "")


def test_config_prints_what_is_in_force_with_secrets_masked(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Row 80: people paste `config` into reports: the access token shows as ***."""
    monkeypatch.setenv("WHOLEFEED_SERVER_ACCESS_TOKEN", "hidden-but-long-enough")
    assert main(["config"]) == 0
    text = capsys.readouterr().out
    assert 'access_token = "***"' in text
    assert "hidden" not in text


def test_migrate_says_what_it_applied_and_then_that_nothing_is_left(
    own_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """docs/faults.md row 70: a foreign file is exit 1, and unchanged."""
    database = own_folder / "wholefeed.db"
    assert main(["migrate"]) == 0
    assert "applied 0001_" in capsys.readouterr().out
    assert main(["migrate"]) == 0
    assert capsys.readouterr().out == f"{database} is up to date\n"
    database.write_bytes(b"something else")
    assert main(["migrate"]) == 1
    assert capsys.readouterr().err.startswith("wholefeed: ")
    assert database.read_bytes() == b"something else"


class _Health(http.server.BaseHTTPRequestHandler):
    status = 200

    def do_GET(self) -> None:
        self.send_response(self.status if self.path == "/healthz" else 404)
        self.end_headers()

    def log_message(self, *args: object) -> None:
        pass


@pytest.fixture
def health_port() -> Iterator[int]:
    """Port of a server on loopback that answers /healthz with `_Health.status`."""
    server = http.server.HTTPServer(("127.0.0.1", 0), _Health)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server.server_port
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.mark.parametrize(
    ("host", "status", "code"), [("0.0.0.0", 200, 0), ("127.0.0.1", 200, 0), ("127.0.0.1", 503, 1)]
)
def test_healthcheck_asks_the_configured_address(
    health_port: int, monkeypatch: pytest.MonkeyPatch, host: str, status: int, code: int
) -> None:
    """`healthcheck` asks loopback if the server listens everywhere; its exit code follows the status."""
    monkeypatch.setattr(_Health, "status", status)
    monkeypatch.setenv("WHOLEFEED_SERVER_HOST", host)
    monkeypatch.setenv("WHOLEFEED_SERVER_PORT", str(health_port))
    assert main(["healthcheck"]) == code


@pytest.mark.usefixtures("no_server")
def test_healthcheck_without_a_server_is_exit_1(capsys: pytest.CaptureFixture[str]) -> None:
    """`healthcheck` fails and names the address."""
    assert main(["healthcheck"]) == 1
    assert "no answer from 127.0.0.1, port 9" in capsys.readouterr().err


@pytest.mark.fault("140", "141")
@pytest.mark.parametrize(
    ("command", "table", "said"),
    [
        ("config", 'credentials_file = "gone"', "cannot read the file gone (publisher.credentials_file in "),
        ("config", 'headers = { Host = "canary" }', "Host is not for a configuration to set"),
        ("serve", 'headers = { X-Key = "canary" }', "expected server.access_token or server.signing_keys"),
    ],
)
def test_a_publisher_that_is_refused_is_named_in_one_line(
    own_folder: Path, command: str, table: str, said: str
) -> None:
    """A4, A6: exit 2, without the secret, before any file or socket exists."""
    (own_folder / "config.toml").write_text(f'[[publisher]]\nhost = "a.example"\n{table}\n')
    done = run_with(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert (done.returncode, done.stdout, len(done.stderr.splitlines())) == (2, "", 1)
    assert said in done.stderr
    assert "canary" not in done.stderr
    assert [each.name for each in own_folder.iterdir()] == ["config.toml"]
