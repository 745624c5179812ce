"""Workers for one event loop: started when they are needed, ended when they are not.

    workers = Workers(worker_count("auto"))
    read = await workers.run(len(body), read_document, body, sender, max_depth=256)
    await workers.close()

Where a job runs depends on the size of its document:

    up to INLINE_BYTES    on the spot, since a trip to a worker costs more
    below THREAD_BYTES    in the one thread for such jobs, unless too much waits for it already
    more                  in a worker, first come first served

A thread of its own does a job where there are no workers, or none can be started; and a job of middle size
while there is too little work for a worker's start, or all workers have a long job.
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
"""Up to here a document is worked on where it is (docs/design.md#worker-processes has the figures)."""
THREAD_BYTES: Final = 256 * 1024
"""Below that a thread does it for less: a trip to a worker takes a tenth of a walk's CPU at 155 KB."""
START_BYTES: Final = 1 << 20
"""A worker is started for so much work at hand, or done lately: its start costs as much as reading 8 MB."""
IDLE_SECONDS: Final = 30.0
"""After so long without a job a worker is ended."""
RETRY_SECONDS: Final = 60.0
"""For so long nothing is started after that has failed."""
CPU_SECONDS: Final = 20.0
"""What a job may compute, whatever its size; the slowest known document of 26 MB takes half of that."""
ROOM_SECONDS: Final = 10.0
"""How long a job waits at most for memory that others have."""

_WORKER_BYTES: Final = 25 << 20
_TIMES: Final = 4.5
"""What a document takes while it is worked on, in times its own size: four in the worker, more where nearly
all of it is markup, and what comes back."""
_LOOK_SECONDS: Final = 0.25
"""So often is looked for memory."""

_CLOSE_SECONDS: Final = 2.0
"""How long processes that were killed are waited for: they end at once, unless the kernel holds them."""


class Workers:
    """Where documents are worked on; belongs to one event loop.

    Args:
        limit: How many processes at most; 0: none, threads instead.
        start_bytes: From how much work on a worker is started; 0: each time that there is none.
        idle_seconds: After how long without a job one is ended.
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
        """Each with what is to end it; the one to be taken next last."""
        self._busy: dict[_Worker, int] = {}
        """Each with the bytes that it works on."""
        self._waiting: deque[tuple[int, asyncio.Future[_Worker]]] = deque()
        self._lately = (0, 0.0)
        """The bytes that threads have worked on since there was a worker last, and when they did."""
        # Both begin with their first job. One that has ended is waited for beside those at work.
        self._threads = ThreadPoolExecutor(limit + 1, thread_name_prefix="worker")
        self._nearby = ThreadPoolExecutor(1, thread_name_prefix="documents")
        self._in_threads: set[asyncio.Future[Any]] = set()
        """What waits for processes."""
        self._nearby_bytes = 0
        """What the one thread works on, and what waits for it."""
        self._threads_until = 0.0
        self._is_closed = False

    @property
    def pids(self) -> list[int]:
        return [worker.pid for worker in (*self._busy, *self._idle) if worker.pid is not None]

    @property
    def busy(self) -> int:
        """How many documents are being worked on in processes."""
        return len(self._busy)

    async def run(
        self, body_bytes: int, job: Callable[_P, _T], /, *arguments: _P.args, **options: _P.kwargs
    ) -> _T:
        """Do a job where it disturbs nobody. A caller that is cancelled takes its worker with it.

        `body_bytes` are those of the documents that are worked on, or of such as take as long; the job is one
        of `wholefeed.core.jobs.JOBS`.

        Raises:
            ParseError: As the job does.
            WorkTooLongError: It has computed for longer than a document of the size may take.
            WorkTooLargeError: There was no memory for it in time.
            WorkError: The process ended in the middle.
            OverloadedError: The workers are being closed.
        """
        if body_bytes <= INLINE_BYTES:
            await self.on_the_spot()
            return job(*arguments, **options)
        work = partial(job, *arguments, **options)
        if body_bytes < THREAD_BYTES and self._nearby_bytes + body_bytes < self._start_bytes:
            return await self._run_nearby(body_bytes, work)
        if body_bytes >= START_BYTES:
            async with self._looking:  # one after the other, in the order of asking
                await self._find_room(body_bytes)
        if self._is_for_thread(body_bytes):
            return await asyncio.to_thread(work)
        return await self._run_there(body_bytes, CPU_SECONDS, work)

    async def run_briefly(
        self, cpu_seconds: float, job: Callable[_P, _T], /, *arguments: _P.args, **options: _P.kwargs
    ) -> _T:
        """Do what `run` does in a process, however small it is, so that it ends when its time is over.

        Where there are to be no workers a thread does it, and nothing ends that.
        """
        work = partial(job, *arguments, **options)
        if self._has_no_workers():
            return await asyncio.to_thread(work)
        return await self._run_there(self._start_bytes, cpu_seconds, work)

    async def on_the_spot(self) -> None:
        """Wait until nothing else has been worked on here in this turn of the loop: others want it, too.

        Documents come several at once, and all that is ready runs before the loop looks for more.
        """
        await self._spot.acquire()
        asyncio.get_running_loop().call_soon(self._spot.release)

    async def close(self) -> None:
        """End all workers, whatever they do, and wait until they are gone."""
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
        """Do a job in the one thread for such: more of them would keep the loop from its turn."""
        if self._is_closed:
            raise _closing()
        doing = asyncio.get_running_loop().run_in_executor(self._nearby, work)
        self._nearby_bytes += body_bytes
        doing.add_done_callback(lambda _: self._leave(body_bytes))
        return await doing

    def _leave(self, body_bytes: int) -> None:
        self._nearby_bytes -= body_bytes

    async def _find_room(self, body_bytes: int) -> None:
        """Wait until there is the memory that a large job takes: without it the kernel ends somebody.

        That need not be the worker (docs/faults.md row 122). Those that have nothing to do are ended first.
        """
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
            del doing  # it holds the error, whose traceback holds this frame, and so the document
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
        """Return one more worker where the work at hand is worth it."""
        count = len(self._busy)
        at_hand_bytes = sum(self._busy.values()) + sum(size for size, turn in self._waiting)
        is_worth_it = not count or at_hand_bytes >= self._start_bytes * (count + 1)
        return _Worker() if count < self._limit and is_worth_it else None

    def _release(self, worker: _Worker) -> None:
        """Take back a worker that was handed out."""
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
        doing.add_done_callback(retrieve_failure)  # of a caller who was cancelled
        return doing


class LargeWork:
    """Lets one large document be worked on at a time; belongs to one event loop.

    Each may take several times its size meanwhile, and two at once are no faster than one after the other but
    keep everything else waiting.
    """

    def __init__(self) -> None:
        self._turns = asyncio.Semaphore(1)

    def turn(self, body_bytes: int) -> AbstractAsyncContextManager[None]:
        """Return what is held while documents of so many bytes are parsed or rendered."""
        return self._turns if body_bytes > START_BYTES else nullcontext()


def _can_start() -> bool:
    """Whether there is a Python to start: one that is part of another program has none."""
    return bool(sys.executable) and not getattr(sys, "frozen", False)


def _closing() -> OverloadedError:
    return OverloadedError("expected a worker, got none: shutting down", slug="shutting-down")


# One worker process, as the threads see it that wait for it

_ERROR_BYTES: Final = 2000
"""Of what a worker wrote to its standard error: the last lines of a traceback."""
_DRAINED_BYTES: Final = 1 << 16
_PIPE_BYTES: Final = 1 << 18


class _Worker:
    """A process that does one job at a time; started by the first.

    `kill` alone may be called from anywhere: the rest blocks, and belongs to one thread at a time.
    """

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._errors = b""
        self.is_ended = False

    @property
    def pid(self) -> int | None:
        """Of the process, while there is one."""
        return self._process.pid if self._process is not None else None

    def do(self, work: partial[_T], *, cpu_seconds: float) -> _T:
        """Do a job of `wholefeed.core.jobs.JOBS`, and return its result.

        Raises:
            ParseError: As the job raised it.
            WorkTooLongError: It took more than `cpu_seconds`.
            WorkError: The process has ended in the middle, or the job has failed.
            _WorkerStartError: There is no process that could do it.
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
            self.kill()  # what is left in its pipes would be taken for the reply to another job
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
        """Let the process end at once, whatever it does; it is waited for by `reap`."""
        self.is_ended = True  # before the process is looked for: see _start
        process = self._process
        if process is not None:
            process.kill()

    def reap(self) -> None:
        """Wait for the end of the process, and close what is left of it."""
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

    def _begin(self, request: tuple[object, ...]) -> subprocess.Popen[bytes]:
        """Hand a job over; a process that was killed while it had nothing to do is replaced."""
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
                start_new_session=True,  # what is typed into our terminal is not for it
            )
        except (OSError, subprocess.SubprocessError) as exc:
            raise _WorkerStartError(f"expected a worker process, got an error: {exc}") from exc
        self._process = process
        if self.is_ended:  # killed meanwhile, by who found no process yet
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
        """Say why there is no reply."""
        self.kill()  # should it still run, it ends now
        code = process.wait()
        if code == -signal.SIGPROF:
            return WorkTooLongError(f"expected at most {cpu_seconds:g} s of work on a document, got more")
        self._drain(process)
        how = f"signal {-code}" if code < 0 else f"exit code {code}"
        said = self._errors.decode(errors="replace").strip()
        return WorkError(f"expected a result from a worker process, got its end ({how})\n{said}".rstrip())

    def _drain(self, process: subprocess.Popen[bytes]) -> None:
        """Take what the process wrote to its standard error, and keep the end of it."""
        assert process.stderr is not None, "asked for"
        with suppress(BlockingIOError):
            while chunk := os.read(process.stderr.fileno(), _DRAINED_BYTES):
                self._errors = (self._errors + chunk)[-_ERROR_BYTES:]


class _WorkerStartError(Exception):
    """No worker can be started here."""


BOOT: Final = (
    "import sys; sys.path += [each for each in sys.argv[1:] if each not in sys.path]; "
    "from wholefeed.workers.child import main; main()"
)


def _command() -> list[str]:
    """Return what starts a worker, with the modules of this process and nothing of its surroundings.

    Neither the environment's Python settings nor the working directory count, and no code of `site`: the
    standard library comes first, then what this process imports from.
    """
    root = str(Path(wholefeed.__file__).parent.parent)
    places = [each for each in sys.path if each]  # what is relative is so for a child, too
    bytecode = ["-B"] if sys.dont_write_bytecode else []
    return [sys.executable, "-I", "-S", *bytecode, "-c", BOOT, *dict.fromkeys([*places, root])]


_NEEDED: Final = ("LD_", "DYLD_", "MALLOC_", "GLIBC_TUNABLES", "LANG", "LC_")
"""How the names begin of what is for the loader and the C library."""


def _environment(environ: Mapping[str, str]) -> dict[str, str]:
    """Return what of an environment a worker gets: it deals with what strangers sent, and needs no secret.

    The access token, the keys and the database's URL may stand there (docs/faults.md row 109).
    """
    return {name: value for name, value in environ.items() if name.startswith(_NEEDED)}


def _pipes(process: subprocess.Popen[bytes]) -> tuple[IO[bytes], IO[bytes]]:
    assert process.stdin is not None, "asked for"
    assert process.stdout is not None, "asked for"
    return process.stdin, process.stdout


def _widen(pipe: IO[bytes]) -> None:
    """Let a document fit into a pipe: neither side waits for the other in the middle of it."""
    with suppress(OSError, AttributeError):  # Linux alone has it, and has limits on it
        fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)


# How many workers are worth having

_MOST_WORKERS: Final = 4
"""Of those that are chosen here: a first walk is bound by the network before it keeps more of them busy."""


def worker_count(setting: int | str, root: Path = Path("/")) -> int:
    """Return how many workers `limits.workers` stands for. It reads files.

    That is a number, or "auto": one less than there are usable cores, from 1 to 4.
    """
    if isinstance(setting, int):
        return setting
    return max(1, min(int(usable_cores(root)) - 1, _MOST_WORKERS))
