"""wholefeed.workers.child: the process itself, as a program starts it that imports wholefeed."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from zipfile import ZipFile

import pytest

from tests.workers.test_pool import cpu_ticks, is_running, opened, read, until
from wholefeed.core.jobs import JOBS

PROXY = Path(__file__).parent.parent.parent / "proxy"

PROGRAM = """
import asyncio, sys
from wholefeed.core.jobs import Sender, read_document
from wholefeed.workers.pool import Workers

async def main():
    workers = Workers(1, start_bytes=0)
    sender = Sender(url="http://a.test/", media_type="", fetched_at=0.0)
    body = b'<rss version="2.0"><channel><title>t</title></channel></rss>'
    await workers.run(1 << 20, read_document, body, sender, max_depth=256)
    print(*workers.pids, flush=True)
    {then}
    await workers.close()

asyncio.run(main())
"""
LONG = """
    body = body.replace(b"</channel>", b"<item><guid>%d</guid></item>" * 240_000 + b"</channel>")
    await workers.run(1 << 20, read_document, body, sender, max_depth=256, is_subscription=True)
"""


@contextmanager
def running(folder: Path, then: str = "", path: Path = PROXY) -> Iterator[subprocess.Popen[str]]:
    """A program without a main guard, started in a folder."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM.replace("{then}", then.strip())],
        cwd=folder,
        env={**kept, "PYTHONPATH": str(path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def outcome(process: subprocess.Popen[str]) -> tuple[str, str]:
    return process.communicate(timeout=40)


async def test_a_worker_loads_no_more_than_the_core() -> None:
    """So it takes a third of the server's memory and starts in a quarter of a second."""
    code = "import json, sys, wholefeed.workers.child; print(json.dumps(sorted(sys.modules)))"
    own = {"PYTHONPATH": str(PROXY)}
    command = [sys.executable, "-c", code]
    shown = subprocess.run(command, env=own, capture_output=True, check=True, timeout=40)
    modules = set(json.loads(shown.stdout))
    ours = {each for each in modules if each.startswith("wholefeed.")}
    assert {each for each in ours if not each.startswith(("wholefeed.core", "wholefeed.workers"))} == set()
    assert "wholefeed.workers.pool" not in ours
    heavy = {"asyncio", "aiohttp", "aiosqlite", "structlog", "sqlite3", "yarl", "multidict", "ctypes"}
    heavy |= {
        "http.client",
        "ssl",
        "socket",
        "email",
        "threading",
        "subprocess",
        "logging",
        "multiprocessing",
        "concurrent.futures",
    }
    assert modules & heavy == set()


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
async def test_a_worker_takes_little_memory() -> None:
    """25 MB of which half are shared; a bound that a careless import would break."""
    async with opened() as workers:
        await read(workers)
        (pid,) = workers.pids
        status = Path(f"/proc/{pid}/status").read_text("utf-8")
        (line,) = [each for each in status.splitlines() if each.startswith("VmRSS")]
        assert int(line.split()[1]) < 36_000


async def test_every_job_is_known_by_its_name() -> None:
    """The name is what goes through the pipe."""
    assert {name: job.__name__ for name, job in JOBS.items()} == {name: name for name in JOBS}


def test_a_program_needs_no_main_guard(tmp_path: Path) -> None:
    """Nothing of it is run again, and what it prints is its own; its folder has no say in the worker."""
    (tmp_path / "defusedxml.py").write_text("raise SystemExit('never imported')", "utf-8")
    marker = tmp_path / "started"
    (tmp_path / "site").mkdir()
    (tmp_path / "site/usercustomize.py").write_text("raise SystemExit('never imported')", "utf-8")
    told = f"open({str(marker)!r}, 'a').write('x')\n"
    (tmp_path / "site/sitecustomize.py").write_text(told, "utf-8")
    (tmp_path / "elsewhere").mkdir()
    with running(tmp_path / "elsewhere", path=Path(f"{PROXY}{os.pathsep}{tmp_path / 'site'}")) as process:
        out, err = outcome(process)
    assert (process.returncode, err) == (0, "")
    assert out.strip().isdigit()
    assert marker.read_text("utf-8") == "x", "in the program alone"


def test_wholefeed_may_lie_in_an_archive(tmp_path: Path) -> None:
    """As zipapp makes one: the worker imports from where the program does."""
    archive = tmp_path / "all.zip"
    with ZipFile(archive, "w") as packed:
        for path in (PROXY / "wholefeed").rglob("*.py"):
            packed.write(path, path.relative_to(PROXY))
    then = "import wholefeed.workers.child as c; print(c.__file__); print(*workers.pids)"
    with running(tmp_path, then, path=archive) as process:
        out, err = outcome(process)
    assert (process.returncode, err) == (0, "")
    pid, place, again = out.split()
    assert place.startswith(str(archive))
    assert pid == again


def test_a_folder_that_is_gone_is_no_hindrance(tmp_path: Path) -> None:
    """A service's working directory may have been removed under it."""
    gone = tmp_path / "gone"
    gone.mkdir()
    then = "import os; os.rmdir(os.getcwd()); await workers.close(); workers = Workers(1, start_bytes=0); "
    then += "await workers.run(1 << 20, read_document, body, sender, max_depth=256); print(*workers.pids)"
    with running(gone, then) as process:
        out, err = outcome(process)
    assert (process.returncode, err) == (0, "")
    assert len(set(out.split())) == 2


@pytest.mark.parametrize("then", ["await asyncio.sleep(60)", LONG], ids=["at rest", "at work"])
async def test_a_worker_ends_with_its_server_however_that_ends(tmp_path: Path, then: str) -> None:
    """SIGKILL leaves it no time for goodbyes; nothing may go on for nobody, in the middle of a job either."""
    with running(tmp_path, then) as process:
        assert process.stdout is not None
        pid = int(await asyncio.to_thread(process.stdout.readline))
        before = cpu_ticks(pid)
        await until(lambda: then != LONG or cpu_ticks(pid) > before + 10)
        assert is_running(pid)
        process.send_signal(signal.SIGKILL)
        async with asyncio.timeout(3):  # the job would take longer
            await until(lambda: not is_running(pid))


async def test_nothing_that_is_printed_gets_between_the_results() -> None:
    """A worker's own prints go to its errors, whose pipe never blocks it."""
    async with opened() as workers:
        await read(workers)
        (pid,) = workers.pids
        assert Path(f"/proc/{pid}/fd/0").readlink() == Path(os.devnull)
        errors = Path(f"/proc/{pid}/fd/2").readlink()
        assert Path(f"/proc/{pid}/fd/1").readlink() == errors
