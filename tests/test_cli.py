"""The command line: commands, exit codes, one clear line for what went wrong."""

from __future__ import annotations

import asyncio
import errno
import http.server
import io
import json
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, BinaryIO

import pytest

from proxy import __version__
from proxy.cli import COMMANDS, main
from proxy.cli_fetch import Progress, opened_output
from proxy.config import Config
from proxy.core.terms import State
from proxy.errors import InvalidUrlError, PublisherTimeoutError, StoreUnusableError, WholefeedError

ROOT = Path(__file__).parent.parent
FEED = "http://a.example/feed"


@pytest.fixture(autouse=True)
def empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """No configuration of the developer's counts."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("WHOLEFEED_STORE_PATH", str(tmp_path / "feeds.db"))
    return tmp_path


class FakeApp:
    """Stands in for `proxy.app`: what the commands call, with results and errors as a test wants them."""

    def __init__(self) -> None:
        self.error: BaseException | None = None
        self.state = State.COMPLETE
        self.configs: list[Config] = []
        self.asked: list[tuple[str, float | None, bool]] = []

    async def serve(self, config: Config) -> None:
        self.configs.append(config)
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
    """The application that `serve` and `fetch` find."""
    fake = FakeApp()
    module = SimpleNamespace(serve=fake.serve, fetch_once=fake.fetch_once)
    monkeypatch.setitem(sys.modules, "proxy.app", module)
    return fake


def test_version_and_help_do_not_load_the_server() -> None:
    """They answer at once: neither aiohttp nor structlog nor the configuration is imported for them."""
    script = (
        "import sys\nfrom proxy.cli import main\n"
        "for arguments in (['--version'], ['--help'], ['serve', '--help']):\n"
        "    try: main(arguments)\n"
        "    except SystemExit as end: assert end.code == 0\n"
        "print(sorted(set(sys.modules) & {'aiohttp', 'asyncio', 'structlog', 'proxy.config', 'http.client'}))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, timeout=30, check=True
    )
    assert done.stdout.startswith(f"wholefeed {__version__}\n")
    assert done.stdout.endswith("\n[]\n")


def test_the_module_runs_as_the_command() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "proxy", "--version"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=30,
        check=True,
    )
    assert done.stdout == f"wholefeed {__version__}\n"


@pytest.mark.parametrize("command", [command.name for command in COMMANDS])
def test_each_command_has_help_with_examples(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main([command, "--help"])
    text = capsys.readouterr().out
    assert end.value.code == 0
    assert "examples:" in text
    assert f"wholefeed {command}" in text
    assert "--config FILE" in text


@pytest.mark.parametrize(
    "arguments", [[], ["walk"], ["fetch"], ["serve", "--port", "many"], ["fetch", FEED, "--wait", "-1"]]
)
def test_a_wrong_command_line_is_exit_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main(arguments)
    assert end.value.code == 2
    assert "usage: wholefeed" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["serve", "config", "migrate", "healthcheck"])
def test_a_bad_configuration_is_exit_2_and_one_line(
    command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("WHOLEFEED_SERVER_PROT", "80")

    assert main([command]) == 2

    expected = "unknown environment variable WHOLEFEED_SERVER_PROT; did you mean WHOLEFEED_SERVER_PORT?"
    assert capsys.readouterr().err == f"wholefeed: {expected}\n"


def test_serve_takes_its_flags_over_the_environment(app: FakeApp, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WHOLEFEED_SERVER_PORT", "1001")
    assert main(["serve", "--host", "::1", "--port", "1002"]) == 0
    (config,) = app.configs
    assert (config.server.host, config.server.port) == ("::1", 1002)


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (OSError(errno.EADDRINUSE, "in use"), "cannot listen on 127.0.0.1, port 1003: something else"),
        (PermissionError(errno.EACCES, "denied"), "cannot listen on 127.0.0.1, port 1003: not permitted"),
        (OSError(errno.EADDRNOTAVAIL, "no such"), "cannot start on 127.0.0.1, port 1003: no such"),
        (StoreUnusableError("feeds.db is no database"), "feeds.db is no database"),
    ],
)
def test_a_server_that_cannot_start_is_exit_1_and_one_line(
    app: FakeApp, capsys: pytest.CaptureFixture[str], error: Exception, line: str
) -> None:
    app.error = error

    assert main(["serve", "--port", "1003"]) == 1

    told = capsys.readouterr().err
    assert told.startswith(f"wholefeed: {line}")
    assert told.count("\n") == 1


def test_serve_warns_of_keys_that_nothing_acts_on_yet(
    app: FakeApp, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("proxy.config.UNUSED_KEYS", frozenset({"limits.xml_depth"}))
    monkeypatch.setenv("WHOLEFEED_LIMITS_XML_DEPTH", "99")

    assert main(["serve"]) == 0

    (line,) = capsys.readouterr().out.splitlines()
    assert json.loads(line)["event"] == "config.unused"
    assert json.loads(line)["key"] == "limits.xml_depth"


def test_a_public_address_shows_its_new_token_once_and_never_logs_it(
    app: FakeApp, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """FAULTS 81."""
    assert main(["serve", "--host", "0.0.0.0"]) == 0
    first = capsys.readouterr()
    assert main(["serve", "--host", "0.0.0.0"]) == 0
    again = capsys.readouterr()

    token = (tmp_path / "feeds.db.token").read_text("ascii").strip()
    assert [config.server.access_token for config in app.configs] == [token, token]
    assert f"http://YOUR-HOST:8080/feed?token={token}&url=" in first.err
    assert '"token.created"' in first.out
    assert token not in first.out + again.out + again.err


@pytest.mark.parametrize(
    ("state", "code"),
    [(State.COMPLETE, 0), (State.PAGED, 0), (State.REMEMBERED, 0), (State.PARTIAL, 3), (State.LOADING, 3)],
)
def test_fetch_tells_the_state_by_its_exit_code(
    app: FakeApp, capfdbinary: pytest.CaptureFixture[bytes], state: State, code: int
) -> None:
    """Design, section 2: 0 complete, paged or remembered; 3 partial or still loading."""
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
    app: FakeApp, tmp_path: Path, capsys: pytest.CaptureFixture[str], error: Exception, code: int, line: str
) -> None:
    app.error = error
    old = tmp_path / "out.atom"
    old.write_text("old")

    assert main(["fetch", FEED, "-o", str(old)]) == code

    assert capsys.readouterr().err == f"wholefeed: {line}\n"
    assert old.read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["out.atom"]


def test_fetch_writes_a_file_with_the_usual_mode(app: FakeApp, tmp_path: Path) -> None:
    usual = tmp_path / "usual"
    usual.touch()
    assert main(["fetch", FEED, "-o", "new.atom"]) == 0
    new = tmp_path / "new.atom"
    assert new.read_bytes() == b"<feed/>"
    assert new.stat().st_mode == usual.stat().st_mode


def test_an_output_file_that_cannot_be_written_is_one_clear_error(tmp_path: Path) -> None:
    with (
        pytest.raises(WholefeedError, match=r"cannot write .*out\.atom: No such file or directory"),
        opened_output(tmp_path / "missing" / "out.atom"),
    ):
        pytest.fail("nothing to write to")


def test_progress_is_one_line_that_is_written_over() -> None:
    stream = io.StringIO()
    progress = Progress(stream)

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


def test_config_prints_what_is_in_force_with_secrets_masked(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("WHOLEFEED_SERVER_ACCESS_TOKEN", "hidden")
    assert main(["config"]) == 0
    text = capsys.readouterr().out
    assert 'access_token = "***"' in text
    assert "hidden" not in text


def test_migrate_says_what_it_applied_and_then_that_nothing_is_left(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["migrate"]) == 0
    assert "applied 0001_" in capsys.readouterr().out
    assert main(["migrate"]) == 0
    assert capsys.readouterr().out == f"{tmp_path / 'feeds.db'} is up to date\n"


def test_migrate_refuses_a_file_that_is_not_its_own(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """FAULTS 70: exit 1, a clear message, the file untouched."""
    (tmp_path / "feeds.db").write_bytes(b"something else")
    assert main(["migrate"]) == 1
    assert capsys.readouterr().err.startswith("wholefeed: ")
    assert (tmp_path / "feeds.db").read_bytes() == b"something else"


class _Health(http.server.BaseHTTPRequestHandler):
    status = 200

    def do_GET(self) -> None:
        self.send_response(self.status if self.path == "/healthz" else 404)
        self.end_headers()

    def log_message(self, *args: object) -> None:
        pass


@pytest.fixture
def health_port() -> Iterator[int]:
    """A server on loopback that answers /healthz with `_Health.status`."""
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
    monkeypatch.setattr(_Health, "status", status)
    monkeypatch.setenv("WHOLEFEED_SERVER_HOST", host)
    monkeypatch.setenv("WHOLEFEED_SERVER_PORT", str(health_port))
    assert main(["healthcheck"]) == code


def test_healthcheck_without_a_server_is_exit_1(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("WHOLEFEED_SERVER_PORT", "9")  # the discard port: nobody listens there on loopback
    assert main(["healthcheck"]) == 1
    assert "no answer from 127.0.0.1, port 9" in capsys.readouterr().err
