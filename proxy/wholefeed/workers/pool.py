"""Workers for one event loop, started and ended on demand.

A document's size decides where its job runs:

    up to INLINE_BYTES    in the event loop, since a transfer costs more
    below THREAD_BYTES    in the shared thread, unless its queue is full
    more                  in a worker, first come first served

A separate thread runs a job if no worker can start, and one below `START_BYTES` if a start is not worth it or
all workers have much to do.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import signal
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager, nullcontext, suppress
from functools import partial
from pathlib import Path
from typing import IO, Any, Final, ParamSpec, TypeVar

import wholefeed
from wholefeed.core.parse.limits import ParseError
from wholefeed.errors import OverloadedError, WorkError, WorkTooLargeError, WorkTooLongError
from wholefeed.futures import retrieve_failure
from wholefeed.logs import get_logger
from wholefeed.workers.child import BEGUN, DONE, READY, UNREADABLE, read_frame, write_frame
from wholefeed.workers.machine import free_memory_bytes, usable_cores

log = get_logger()

_P = ParamSpec("_P")
_T = TypeVar("_T")

INLINE_BYTES: Final = 128 * 1024
THREAD_BYTES: Final = 256 * 1024
"""Smaller ones cost less in a thread (docs/design.md#worker-processes)."""
START_BYTES: Final = 1 << 20
"""Work that justifies a start, which costs as much as reading 8 MB."""
IDLE_SECONDS: Final = 30.0
RETRY_SECONDS: Final = 60.0
"""Pause after a failed start."""
CPU_SECONDS: Final = 20.0
"""For one job; the slowest known document of 26 MB takes half."""
ROOM_SECONDS: Final = 10.0

_WORKER_BYTES: Final = 25 << 20
_TIMES: Final = 4.5
"""Bytes of memory per byte of document, with the result and dense markup."""
_LOOK_SECONDS: Final = 0.25

_CLOSE_SECONDS: Final = 2.0
"""Killed processes end sooner unless the kernel blocks them."""


class Workers:
    """Processes and threads for the jobs of one event loop.

    Args:
        limit: Maximum of processes; 0: only threads.
        start_bytes: Work that justifies a start; 0: any.
        idle_seconds: Idle time until a worker's end.
    """

    def __init__(
        self, limit: int, *, start_bytes: int = START_BYTES, idle_seconds: float = IDLE_SECONDS
    ) -> None:
        self._limit = limit if _can_start() else 0
        self._start_bytes = start_bytes
        self._idle_seconds = idle_seconds
        self.large = LargeWork()
        self._spot = asyncio.Lock()
        self._looking = asyncio.Lock()
        self._idle: dict[_Worker, asyncio.TimerHandle] = {}
        """With the timer that ends each; the last one gets the next job."""
        self._busy: dict[_Worker, int] = {}
        """Bytes in work of each."""
        self._waiting: deque[tuple[int, asyncio.Future[_Worker]]] = deque()
        self._lately = (0, 0.0)
        """Bytes of jobs in separate threads since the last worker, and the time of the latest."""
        # Threads start with their first job. The extra one waits for the end of processes.
        self._threads = ThreadPoolExecutor(limit + 1, thread_name_prefix="worker")
        self._nearby = ThreadPoolExecutor(1, thread_name_prefix="documents")
        self._in_threads: set[asyncio.Future[Any]] = set()
        self._nearby_bytes = 0
        """Bytes in the shared thread and its queue."""
        self._threads_until = 0.0
        self._is_closed = False

    @property
    def pids(self) -> list[int]:
        return [worker.pid for worker in (*self._busy, *self._idle) if worker.pid is not None]

    @property
    def busy(self) -> int:
        return len(self._busy)

    async def run(
        self, body_bytes: int, job: Callable[_P, _T], /, *arguments: _P.args, **options: _P.kwargs
    ) -> _T:
        """Run a job of `wholefeed.core.jobs.JOBS`; cancellation ends its worker.

        `body_bytes` is the size of its documents, or of documents that take as long.

        Raises:
            ParseError: The job raises it.
            WorkTooLongError: The job exceeds `CPU_SECONDS`.
            WorkTooLargeError: No memory is free in time.
            WorkError: The process ends in the middle, or the job fails.
            OverloadedError: The workers are closing.
        """
        if body_bytes <= INLINE_BYTES:
            await self.on_the_spot()
            return job(*arguments, **options)
        work = partial(job, *arguments, **options)
        if body_bytes < THREAD_BYTES and self._nearby_bytes + body_bytes < self._start_bytes:
            return await self._run_nearby(body_bytes, work)
        if body_bytes >= START_BYTES:
            async with self._looking:  # in the order of the calls
                await self._find_room(body_bytes)
        if self._is_for_thread(body_bytes):
            return await asyncio.to_thread(work)
        return await self._run_there(body_bytes, CPU_SECONDS, work)

    async def run_briefly(
        self, cpu_seconds: float, job: Callable[_P, _T], /, *arguments: _P.args, **options: _P.kwargs
    ) -> _T:
        """Run a job of any size in a process that ends at its time limit.

        Without workers, a thread runs the job without limit.
        """
        work = partial(job, *arguments, **options)
        if self._has_no_workers():
            return await asyncio.to_thread(work)
        return await self._run_there(self._start_bytes, cpu_seconds, work)

    async def on_the_spot(self) -> None:
        """Wait for a turn of the event loop without another job.

        The loop runs all ready callbacks before it polls, and documents arrive together.
        """
        await self._spot.acquire()
        asyncio.get_running_loop().call_soon(self._spot.release)

    async def close(self) -> None:
        """Kill all workers and wait for their end."""
        self._is_closed = True
        self._nearby.shutdown(wait=False)
        for _, turn in self._waiting:
            if not turn.done():
                turn.set_exception(_closing())
        self._waiting.clear()
        for worker in self._busy:
            worker.kill()
        while self._idle:
            self._end(self._pop_idle())
        while self._in_threads:
            done, _ = await asyncio.wait(self._in_threads, timeout=_CLOSE_SECONDS)
            if not done:
                break
        self._threads.shutdown(wait=False)

    async def _run_nearby(self, body_bytes: int, work: Callable[[], _T]) -> _T:
        """Run a job in the shared thread; more threads would starve the loop."""
        if self._is_closed:
            raise _closing()
        doing = asyncio.get_running_loop().run_in_executor(self._nearby, work)
        self._nearby_bytes += body_bytes
        doing.add_done_callback(lambda _: self._leave(body_bytes))
        return await doing

    def _leave(self, body_bytes: int) -> None:
        self._nearby_bytes -= body_bytes

    async def _find_room(self, body_bytes: int) -> None:
        """Wait for memory, so that the kernel kills no process (docs/faults.md row 122)."""
        wanted_bytes = int(_WORKER_BYTES + _TIMES * body_bytes)
        until = asyncio.get_running_loop().time() + ROOM_SECONDS
        while (free_bytes := await asyncio.to_thread(free_memory_bytes)) < wanted_bytes:
            while self._idle:
                self._end(self._pop_idle())
            if self._is_closed:
                raise _closing()
            if asyncio.get_running_loop().time() > until:
                raise WorkTooLargeError(
                    f"expected {wanted_bytes >> 20} MiB of memory for a document, got {free_bytes >> 20}"
                )
            await asyncio.sleep(_LOOK_SECONDS)

    def _has_no_workers(self) -> bool:
        return not self._limit or asyncio.get_running_loop().time() < self._threads_until

    def _is_for_thread(self, body_bytes: int) -> bool:
        if self._has_no_workers():
            return True
        if body_bytes >= self._start_bytes or self._idle:
            return False
        if self._busy:
            at_hand_bytes = sum(self._busy.values())
            return at_hand_bytes >= self._start_bytes and len(self._busy) == self._limit
        now = asyncio.get_running_loop().time()
        bytes_, at = self._lately
        so_far = body_bytes + (bytes_ if now - at < self._idle_seconds else 0)
        self._lately = (so_far, now)
        return so_far < self._start_bytes

    async def _run_there(self, body_bytes: int, cpu_seconds: float, work: partial[_T]) -> _T:
        worker = await self._turn(body_bytes)
        doing = self._in_thread(partial(worker.do, work, cpu_seconds=cpu_seconds))
        doing.add_done_callback(lambda _: self._release(worker))
        try:
            return await asyncio.shield(doing)
        except _WorkerStartError as exc:
            self._threads_until = asyncio.get_running_loop().time() + RETRY_SECONDS
            log.warning("worker.unstarted", reason=str(exc))
        except BaseException as exc:
            if not doing.done():
                worker.kill()
            elif self._is_closed and isinstance(exc, WorkError):
                raise _closing() from exc
            raise
        finally:
            del doing  # its error's traceback would keep this frame, and so the document
        return await asyncio.to_thread(work)

    async def _turn(self, body_bytes: int) -> _Worker:
        if self._is_closed:
            raise _closing()
        turn: asyncio.Future[_Worker] = asyncio.get_running_loop().create_future()
        self._waiting.append((body_bytes, turn))
        self._hand_out()
        try:
            return await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled() and not turn.exception():
                self._release(turn.result())
            raise

    def _hand_out(self) -> None:
        while self._waiting:
            body_bytes, turn = self._waiting[0]
            if not turn.done():
                worker = self._pop_idle() if self._idle else self._another()
                if worker is None:
                    return
                self._busy[worker] = body_bytes
                turn.set_result(worker)
            self._waiting.popleft()

    def _another(self) -> _Worker | None:
        count = len(self._busy)
        at_hand_bytes = sum(self._busy.values()) + sum(size for size, turn in self._waiting)
        is_worth_it = not count or at_hand_bytes >= self._start_bytes * (count + 1)
        return _Worker() if count < self._limit and is_worth_it else None

    def _release(self, worker: _Worker) -> None:
        del self._busy[worker]
        if worker.is_ended or self._is_closed:
            self._end(worker)
        else:
            loop = asyncio.get_running_loop()
            self._idle[worker] = loop.call_later(self._idle_seconds, self._end_idle, worker)
        self._hand_out()

    def _pop_idle(self) -> _Worker:
        worker, timer = self._idle.popitem()
        timer.cancel()
        return worker

    def _end_idle(self, worker: _Worker) -> None:
        del self._idle[worker]
        self._end(worker)

    def _end(self, worker: _Worker) -> None:
        worker.kill()
        _reaping = self._in_thread(worker.reap)

    def _in_thread(self, work: Callable[[], _T]) -> asyncio.Future[_T]:
        doing = asyncio.get_running_loop().run_in_executor(self._threads, work)
        self._in_threads.add(doing)
        doing.add_done_callback(self._in_threads.discard)
        doing.add_done_callback(retrieve_failure)  # a cancelled caller never does
        return doing


class LargeWork:
    """One large document at a time: two at once are no faster and take more memory."""

    def __init__(self) -> None:
        self._turns = asyncio.Semaphore(1)

    def turn(self, body_bytes: int) -> AbstractAsyncContextManager[None]:
        return self._turns if body_bytes > START_BYTES else nullcontext()


def _can_start() -> bool:
    """Whether a Python exists to start: frozen programs have none."""
    return bool(sys.executable) and not getattr(sys, "frozen", False)


def _closing() -> OverloadedError:
    return OverloadedError("expected a worker, got none: shutting down", slug="shutting-down")


# One worker process

_ERROR_BYTES: Final = 2000
_DRAINED_BYTES: Final = 1 << 16
_PIPE_BYTES: Final = 1 << 18


class _Worker:
    """A process for one job at a time.

    Any thread may call `kill`. All else blocks, in one thread at a time.
    """

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._errors = b""
        self.is_ended = False

    @property
    def pid(self) -> int | None:
        """None: no process."""
        return self._process.pid if self._process is not None else None

    def do(self, work: partial[_T], *, cpu_seconds: float) -> _T:
        """Run a job and return its result; start the process if needed.

        Raises as `Workers.run` does, or `_WorkerStartError`.
        """
        name = work.func.__name__
        try:
            process = self._begin((name, work.args, work.keywords, cpu_seconds))
            try:
                kind, value = read_frame(_pipes(process)[1])
            except EOFError as exc:
                raise self._end_of(process, cpu_seconds) from exc
        except (WorkError, _WorkerStartError):
            raise
        except Exception as exc:
            self.kill()  # its pipes may hold the rest of a reply
            raise WorkError(f"expected a reply from a worker process, got an error: {exc!r}") from exc
        self._drain(process)
        if kind == DONE:
            result: _T = value
            return result
        if kind == UNREADABLE:
            message, slug = value
            raise ParseError(message, slug=slug)
        raise WorkError(f"expected a worker to do {name}, got an error:\n{value[-_ERROR_BYTES:]}")

    def kill(self) -> None:
        """End the process at once; `reap` waits for it."""
        self.is_ended = True  # set first: `_start` reads it after it sets the process
        process = self._process
        if process is not None:
            process.kill()

    def reap(self) -> None:
        """Wait for the killed process."""
        process = self._process
        if process is None:
            return
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout, process.stderr):
            with suppress(OSError):  # unsent data
                if pipe is not None:
                    pipe.close()
        self._process = None

    def _begin(self, request: tuple[object, ...]) -> subprocess.Popen[bytes]:
        """Send a job; restart a process that ended while idle."""
        is_new = self._process is None
        process = self._process or self._start()
        requests, replies = _pipes(process)
        try:
            write_frame(requests, request)
            kind, _ = read_frame(replies)
        except (OSError, EOFError) as exc:
            if is_new or self.is_ended:
                raise self._end_of(process, 0) from exc
            self.reap()
            return self._begin(request)
        assert kind == BEGUN, "it says that first"
        return process

    def _start(self) -> subprocess.Popen[bytes]:
        if self.is_ended:
            raise WorkError("expected a worker, got none: it was stopped before it began")
        try:
            process = subprocess.Popen(  # noqa: S603 - ourselves
                _command(),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=_environment(os.environ),
                start_new_session=True,  # Ctrl-C in our terminal must not reach it
            )
        except (OSError, subprocess.SubprocessError) as exc:
            raise _WorkerStartError(f"expected a worker process, got an error: {exc}") from exc
        self._process = process
        if self.is_ended:  # `kill` found no process yet
            process.kill()
        requests, replies = _pipes(process)
        for pipe in (requests, replies):
            _widen(pipe)
        assert process.stderr is not None, "asked for"
        os.set_blocking(process.stderr.fileno(), False)
        try:
            kind, _pid = read_frame(replies)
        except EOFError as exc:
            was_stopped = self.is_ended
            error = self._end_of(process, 0)
            if was_stopped:
                raise error from exc
            raise _WorkerStartError(str(error)) from exc
        assert kind == READY, "it says that first"
        return process

    def _end_of(self, process: subprocess.Popen[bytes], cpu_seconds: float) -> WorkError:
        self.kill()  # if it still runs
        code = process.wait()
        if code == -signal.SIGPROF:
            return WorkTooLongError(f"expected at most {cpu_seconds:g} s of work on a document, got more")
        self._drain(process)
        how = f"signal {-code}" if code < 0 else f"exit code {code}"
        said = self._errors.decode(errors="replace").strip()
        return WorkError(f"expected a result from a worker process, got its end ({how})\n{said}".rstrip())

    def _drain(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stderr is not None, "asked for"
        with suppress(BlockingIOError):
            while chunk := os.read(process.stderr.fileno(), _DRAINED_BYTES):
                self._errors = (self._errors + chunk)[-_ERROR_BYTES:]


class _WorkerStartError(Exception):
    """No process can start."""


BOOT: Final = (
    "import sys; sys.path += [each for each in sys.argv[1:] if each not in sys.path]; "
    "from wholefeed.workers.child import main; main()"
)


def _command() -> list[str]:
    """Return the command of a worker: this process's modules, no `site`, no Python environment."""
    root = str(Path(wholefeed.__file__).parent.parent)
    places = [each for each in sys.path if each]  # a child resolves relative paths alike
    bytecode = ["-B"] if sys.dont_write_bytecode else []
    return [sys.executable, "-I", "-S", *bytecode, "-c", BOOT, *dict.fromkeys([*places, root])]


_NEEDED: Final = ("LD_", "DYLD_", "MALLOC_", "GLIBC_TUNABLES", "LANG", "LC_")


def _environment(environ: Mapping[str, str]) -> dict[str, str]:
    """Return no more than the loader and the C library need (docs/faults.md row 109)."""
    # A worker reads strangers' data. Other variables may have the access token, the keys, the database's URL.
    return {name: value for name, value in environ.items() if name.startswith(_NEEDED)}


def _pipes(process: subprocess.Popen[bytes]) -> tuple[IO[bytes], IO[bytes]]:
    assert process.stdin is not None, "asked for"
    assert process.stdout is not None, "asked for"
    return process.stdin, process.stdout


def _widen(pipe: IO[bytes]) -> None:
    """Let a whole document fit, so that neither side waits."""
    with suppress(OSError, AttributeError):  # Linux alone has it, and has limits on it
        fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)


# Number of workers

_MOST_WORKERS: Final = 4
"""The network limits a first walk before it needs more."""


def worker_count(setting: int | str, root: Path = Path("/")) -> int:
    """Return the number of workers; "auto" means one less than the cores, 1 to 4. Reads files."""
    if isinstance(setting, int):
        return setting
    return max(1, min(int(usable_cores(root)) - 1, _MOST_WORKERS))
