"""wholefeed.workers.child: the process as a program starts it, and the messages in its pipes."""

from __future__ import annotations

import asyncio
import io
import json
import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.workers.samples import a_sender
from tests.workers.test_pool import cpu_ticks, is_running, opened, read, until
from wholefeed.core.jobs import JOBS
from wholefeed.core.model import Family
from wholefeed.workers.child import read_frame, write_frame

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


def said_by(process: subprocess.Popen[str]) -> list[str]:
    """The words printed by a program that ended well."""
    out, err = process.communicate(timeout=300)
    assert (process.returncode, err) == (0, "")
    return out.split()


HEAVY = (
    "asyncio aiohttp aiosqlite structlog sqlite3 yarl multidict ctypes http.client ssl socket email "
    "threading subprocess logging multiprocessing concurrent.futures"
)


async def test_a_worker_loads_no_more_than_the_core() -> None:
    """So it takes a third of the server's memory and starts in a quarter of a second."""
    code = "import json, sys, wholefeed.workers.child; print(json.dumps(sorted(sys.modules)))"
    command, own = [sys.executable, "-c", code], {"PYTHONPATH": str(PROXY)}
    shown = subprocess.run(command, env=own, capture_output=True, check=True, timeout=300)
    modules = set(json.loads(shown.stdout))
    ours = {each for each in modules if each.startswith("wholefeed.")}
    assert {each for each in ours if not each.startswith(("wholefeed.core", "wholefeed.workers"))} == set()
    assert not modules & {"wholefeed.workers.pool", *HEAVY.split()}


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
async def test_a_worker_takes_little_memory_and_prints_to_its_errors() -> None:
    """25 MB, half of them shared; its prints neither mix with results nor block."""
    async with opened() as workers:
        await read(workers)
        own = Path(f"/proc/{workers.pids[0]}")
        (line,) = [each for each in (own / "status").read_text("utf-8").splitlines() if "VmRSS" in each]
        assert int(line.split()[1]) < 36_000
        assert (own / "fd/0").readlink() == Path(os.devnull)
        assert (own / "fd/1").readlink() == (own / "fd/2").readlink()


def test_every_job_is_known_by_its_name() -> None:
    """The pipe carries the name."""
    assert {name: job.__name__ for name, job in JOBS.items()} == {name: name for name in JOBS}


def test_a_program_needs_no_main_guard(tmp_path: Path) -> None:
    """The program does not run again and prints only its own output; its folder has no influence on the
    worker."""
    (tmp_path / "defusedxml.py").write_text("raise SystemExit('never imported')", "utf-8")
    marker = tmp_path / "started"
    (tmp_path / "site").mkdir()
    (tmp_path / "site/usercustomize.py").write_text("raise SystemExit('never imported')", "utf-8")
    told = f"open({str(marker)!r}, 'a').write('x')\n"
    (tmp_path / "site/sitecustomize.py").write_text(told, "utf-8")
    (tmp_path / "elsewhere").mkdir()
    with running(tmp_path / "elsewhere", path=Path(f"{PROXY}{os.pathsep}{tmp_path / 'site'}")) as process:
        (pid,) = said_by(process)
    assert pid.isdigit()
    assert marker.read_text("utf-8") == "x", "in the program alone"


def test_wholefeed_may_lie_in_an_archive(tmp_path: Path) -> None:
    """An archive of zipapp: the worker imports from the program's archive."""
    archive = tmp_path / "all.zip"
    with ZipFile(archive, "w") as packed:
        for path in (PROXY / "wholefeed").rglob("*.py"):
            packed.write(path, path.relative_to(PROXY))
    then = "import wholefeed.workers.child as c; print(c.__file__); print(*workers.pids)"
    with running(tmp_path, then, path=archive) as process:
        pid, place, again = said_by(process)
    assert place.startswith(str(archive))
    assert pid == again


def test_a_folder_that_is_gone_is_no_hindrance(tmp_path: Path) -> None:
    """A service's working directory may have been removed under it."""
    gone = tmp_path / "gone"
    gone.mkdir()
    then = "import os; os.rmdir(os.getcwd()); await workers.close(); workers = Workers(1, start_bytes=0); "
    then += "await workers.run(1 << 20, read_document, body, sender, max_depth=256); print(*workers.pids)"
    with running(gone, then) as process:
        assert len(set(said_by(process))) == 2


@pytest.mark.parametrize("then", ["await asyncio.sleep(60)", LONG], ids=["at rest", "at work"])
async def test_a_worker_ends_with_its_server_however_that_ends(tmp_path: Path, then: str) -> None:
    """Even after SIGKILL no worker goes on for nobody, in the middle of a job either."""
    with running(tmp_path, then) as process:
        assert process.stdout is not None
        pid = int(await asyncio.to_thread(process.stdout.readline))
        before = cpu_ticks(pid)
        await until(lambda: then != LONG or cpu_ticks(pid) > before + 10)
        assert is_running(pid)
        process.send_signal(signal.SIGKILL)
        async with asyncio.timeout(3):  # the job would take longer
            await until(lambda: not is_running(pid))


# What goes through the pipes

LARGE_BYTES = 1 << 16

PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.binary(),
    lambda inner: st.lists(inner) | st.tuples(inner, inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)


def through(*messages: object) -> list[Any]:
    """The objects at the other end."""
    stream = io.BytesIO()
    for message in messages:
        write_frame(stream, message)
    stream.seek(0)
    return [read_frame(stream) for _ in messages]


@given(st.lists(PLAIN, max_size=3))
def test_objects_come_out_as_they_went_in(messages: list[object]) -> None:
    """One frame after the other, and no frame reads into the next."""
    assert through(*messages) == messages


def test_classes_and_large_bytes_come_out_as_they_went_in() -> None:
    """Dataclasses, enumerations, named tuples of the core; bytes anywhere in a message."""
    message = (a_sender(), Family.ATOM, {"a": [bytes(LARGE_BYTES), (os.urandom(3_000_000), b"x")]})
    assert through(message) == [message]


class Foreign:
    """A class outside the core."""


@pytest.mark.parametrize("message", [os.system, Foreign(), Foreign, print])
def test_nothing_but_the_core_is_made_of_what_comes(message: object) -> None:
    """A worker taken over by a document cannot make its server run anything."""
    with pytest.raises(EOFError, match="expected a class of the core"):
        through(message)


@pytest.mark.parametrize(
    "pickled",
    [
        *(b"\x80\x02cwholefeed.core.parse.documents\n%s\n." % name for name in (b"parse", b"Sequence")),
        *(b"", b"\x80\x05", b"nonsense.", pickle.dumps((1, 2))[:-3], b"K\x09Q."),
    ],
)
def test_what_is_no_frame_ends_the_conversation(pickled: bytes) -> None:
    """It counts as the end, never as another kind of error; so does a function of the core, or a name
    imported by its modules."""
    with pytest.raises(EOFError):
        read_frame(io.BytesIO(pickled))


def test_a_frame_that_breaks_off_is_the_end() -> None:
    """At any byte."""
    stream = io.BytesIO()
    write_frame(stream, ("name", b"x" * LARGE_BYTES))
    whole = stream.getvalue()
    for cut in (0, 1, 11, 12, 20, 60, len(whole) - 1):
        with pytest.raises(EOFError):
            read_frame(io.BytesIO(whole[:cut]))
