"""One worker process, as the threads see it that wait for it.

    worker = Worker()
    worker.do("read_document", (body, sender), {"max_depth": 256}, cpu_seconds=30)      # in a thread
    worker.kill()                                                                       # from anywhere

All but `kill` blocks, and belongs to one thread at a time.
"""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, Final

import wholefeed
from wholefeed.core.parse.errors import ParseError
from wholefeed.errors import WorkError, WorkTooLongError
from wholefeed.workers.child import BEGUN, DONE, READY, UNREADABLE
from wholefeed.workers.frames import read_frame, write_frame

BOOT: Final = (
    "import sys; sys.path += [each for each in sys.argv[1:] if each not in sys.path]; "
    "from wholefeed.workers.child import main; main()"
)
_TAIL_BYTES: Final = 2000
"""Of what a worker wrote to its standard error: the last lines of a traceback."""
_DRAINED_BYTES: Final = 1 << 16
_PIPE_BYTES: Final = 1 << 18


class WorkerStartError(Exception):
    """No worker can be started here."""


class Worker:
    """A process that does one job at a time; started by the first."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._is_ended = False
        self._said = b""

    @property
    def is_ended(self) -> bool:
        """Whether it does nothing any more."""
        return self._is_ended

    @property
    def pid(self) -> int | None:
        """Of the process, while there is one."""
        return self._process.pid if self._process is not None else None

    def do(
        self, name: str, arguments: tuple[Any, ...], options: Mapping[str, Any], *, cpu_seconds: float
    ) -> Any:
        """Do a job and return its result.

        Args:
            name: In the table of jobs.
            arguments: Of the job.
            options: Its arguments that have names.
            cpu_seconds: What it may compute.

        Raises:
            ParseError: As the job raised it.
            WorkTooLongError: It took more than that.
            WorkError: The process has ended in the middle, or the job has failed.
            WorkerStartError: There is no process that could do it.
        """
        request = (name, arguments, dict(options), cpu_seconds)
        try:
            kind, value = self._replied(request, cpu_seconds)
        except (WorkError, WorkerStartError):
            raise
        except Exception as exc:
            self.kill()  # what is left in its pipes would be taken for the reply to another job
            raise WorkError(f"expected a reply from a worker process, got an error: {exc!r}") from exc
        if kind == DONE:
            return value
        if kind == UNREADABLE:
            message, slug = value
            raise ParseError(message, slug=slug)
        raise WorkError(f"expected a worker to do {name}, got an error:\n{value[-_TAIL_BYTES:]}")

    def _replied(self, request: tuple[Any, ...], cpu_seconds: float) -> tuple[str, Any]:
        process = self._begin(request)
        try:
            kind, value = read_frame(_pipes(process)[1])
        except EOFError as exc:
            raise self._end_of(process, cpu_seconds) from exc
        self._drain(process)
        return kind, value

    def _begin(self, request: tuple[Any, ...]) -> subprocess.Popen[bytes]:
        """Hand a job over. A process that was killed while it had nothing to do is replaced."""
        for process in (self._process, None):
            asked = process or self._start()
            requests, replies = _pipes(asked)
            try:
                write_frame(requests, request)
                kind, _ = read_frame(replies)
            except (OSError, EOFError) as exc:
                if process is None or self._is_ended:
                    raise self._end_of(asked, 0) from exc
                self._clear()
                continue
            assert kind == BEGUN, "it says that first"
            return asked
        raise AssertionError("the second one was new")

    def kill(self) -> None:
        """Let the process end at once, whatever it does; it is waited for by `reap`."""
        self._is_ended = True  # before the process is looked for: see _start
        process = self._process
        if process is not None:
            process.kill()

    def reap(self) -> None:
        """Wait for the end of the process, and close what is left of it."""
        self._is_ended = True
        self._clear()

    def _clear(self) -> None:
        process = self._process
        if process is None:
            return
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout, process.stderr):
            with suppress(OSError):  # what could not be sent any more
                if pipe is not None:
                    pipe.close()
        self._process = None

    def _start(self) -> subprocess.Popen[bytes]:
        if self._is_ended:
            raise WorkError("expected a worker, got none: it was stopped before it began")
        try:
            process = subprocess.Popen(  # noqa: S603 - ourselves
                _command(),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,  # what is typed into our terminal is not for it
            )
        except (OSError, subprocess.SubprocessError) as exc:
            raise WorkerStartError(f"expected a worker process, got an error: {exc}") from exc
        self._process = process
        if self._is_ended:  # killed meanwhile, by who found no process yet
            process.kill()
        requests, replies = _pipes(process)
        for pipe in (requests, replies):
            _widen(pipe)
        if process.stderr is not None:
            os.set_blocking(process.stderr.fileno(), False)
        try:
            kind, _pid = read_frame(replies)
        except EOFError as exc:
            was_stopped = self._is_ended
            error = self._end_of(process, 0)
            if was_stopped:
                raise error from exc
            raise WorkerStartError(str(error)) from exc
        assert kind == READY, "it says that first"
        return process

    def _end_of(self, process: subprocess.Popen[bytes], cpu_seconds: float) -> WorkError:
        """Say why there is no reply."""
        if process.stdin is not None:
            with suppress(OSError):
                process.stdin.close()  # should it still run, it ends now
        self._is_ended = True
        process.kill()
        code = process.wait()
        if code == -signal.SIGPROF:
            return WorkTooLongError(f"expected at most {cpu_seconds:g} s of work on a document, got more")
        self._drain(process)
        how = f"signal {-code}" if code < 0 else f"exit code {code}"
        said = self._said.decode(errors="replace").strip()
        return WorkError(f"expected a result from a worker process, got its end ({how})\n{said}".rstrip())

    def _drain(self, process: subprocess.Popen[bytes]) -> None:
        """Take what the process wrote to its standard error, and keep the end of it."""
        if process.stderr is None:
            return
        with suppress(BlockingIOError):
            while chunk := os.read(process.stderr.fileno(), _DRAINED_BYTES):
                self._said = (self._said + chunk)[-_TAIL_BYTES:]


def _widen(pipe: IO[bytes]) -> None:
    """Let a document fit into a pipe: neither side waits for the other in the middle of it."""
    with suppress(OSError, AttributeError):  # Linux alone has it, and has limits on it
        fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)


def can_start() -> bool:
    """Whether there is a Python to start: one that is part of another program has none."""
    return bool(sys.executable) and not getattr(sys, "frozen", False)


def _command() -> list[str]:
    """Return what starts a worker, with the modules of this process and nothing of its surroundings.

    Neither the environment's Python settings nor the working directory count, and no code of `site`: the
    standard library comes first, then what this process imports from.
    """
    root = str(Path(wholefeed.__file__).parent.parent)
    places = [each for each in sys.path if each]  # what is relative is so for a child, too
    bytecode = ["-B"] if sys.dont_write_bytecode else []
    return [sys.executable, "-I", "-S", *bytecode, "-c", BOOT, *dict.fromkeys([*places, root])]


def _pipes(process: subprocess.Popen[bytes]) -> tuple[IO[bytes], IO[bytes]]:
    assert process.stdin is not None, "asked for"
    assert process.stdout is not None, "asked for"
    return process.stdin, process.stdout
