"""Output of a command's result, its progress, and an orderly end on SIGTERM."""

from __future__ import annotations

import asyncio
import io
import os
import select
import shutil
import signal
import stat
import sys
import tempfile
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any, Final, Self, TextIO, TypeVar

from wholefeed.errors import WholefeedError

_T = TypeVar("_T")


@contextmanager
def opened_output(path: Path | None) -> Iterator[Output]:
    """Open standard output, or a file that gets its name once complete.

    A device or pipe is written directly, a symbolic link replaced at its target.

    Raises:
        WholefeedError: Not writable; an existing file stays unchanged.
    """
    if path is None or _is_standard_output(path):
        if sys.stdout is None:
            raise WholefeedError("cannot write standard output: it is closed")
        with Output(sys.stdout.fileno(), "standard output", is_owned=False) as output:
            yield output
        return
    draft, target = "", path
    try:
        if _is_file_or_nothing(path):
            target = path.resolve()
            descriptor, draft = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
        else:
            descriptor = os.open(path, os.O_WRONLY | os.O_NOCTTY)
    except OSError as exc:
        raise _cannot_write(path, exc) from exc
    try:
        with Output(descriptor, str(path)) as output:
            yield output
        if draft:
            _put_in_place(Path(draft), target, path)
    except BaseException:
        if draft:
            with suppress(OSError):
                Path(draft).unlink()
        raise


def _is_standard_output(path: Path) -> bool:
    # For example /dev/stdout.
    try:
        return os.path.samestat(path.stat(), os.fstat(sys.stdout.fileno()))
    except (OSError, ValueError, AttributeError):
        return False


def _is_file_or_nothing(path: Path) -> bool:
    try:
        return stat.S_ISREG(path.stat().st_mode)
    except FileNotFoundError:
        return True


_DEFAULT_MODE: Final = 0o666


def _put_in_place(draft: Path, target: Path, path: Path) -> None:
    # mkstemp's mode is private.
    umask = os.umask(0)
    os.umask(umask)
    try:
        draft.chmod(_DEFAULT_MODE & ~umask)
        draft.replace(target)
    except OSError as exc:
        raise _cannot_write(path, exc) from exc


def _cannot_write(path: Path, exc: OSError) -> WholefeedError:
    return WholefeedError(f"cannot write {path}: {exc.strerror}")


class Output(io.FileIO):
    def __init__(self, descriptor: int, name: str, *, is_owned: bool = True) -> None:
        super().__init__(descriptor, "wb", closefd=is_owned)
        self._shown_name = name

    def write(self, data: Any, /) -> int:
        """Write all bytes, for as long as that takes; BrokenPipeError: the reader has gone."""
        rest = memoryview(data).cast("B")
        size = len(rest)
        try:
            while rest:
                written = super().write(rest)
                if written is None:  # it is full, and does not block
                    select.select([], [self], [])
                rest = rest[written or 0 :]
        except OSError as exc:
            if isinstance(exc, BrokenPipeError) and not self.closefd:
                raise
            raise self._failure(exc) from exc
        return size

    def close(self) -> None:
        try:
            super().close()
        except OSError as exc:
            raise self._failure(exc) from exc

    def _failure(self, exc: OSError) -> WholefeedError:
        return WholefeedError(f"cannot write {self._shown_name}: {exc.strerror}")


def describe_walk(status: Mapping[str, object]) -> str:
    parts = [f"{status[name]} {name}" for name in ("documents", "entries") if status.get(name) is not None]
    missing = status.get("missing")
    if isinstance(missing, list) and missing:
        parts.append(f"{len(missing)} missing")
    return f"{status.get('state') or 'loading'}: {', '.join(parts) or 'asking'}"


_BAR_CHARACTERS: Final = 24


def describe_intake(intake: Mapping[str, Any]) -> str:
    part = intake["asked"] / max(1, intake["feeds"])
    bar = "#" * int(part * _BAR_CHARACTERS)
    return f"[{bar.ljust(_BAR_CHARACTERS, '.')}] {intake['progress']}; {intake['now']:,} entries"


@contextmanager
def watch_progress(
    describe: Callable[[Mapping[str, Any]], str] = describe_walk,
) -> Iterator[Callable[[Mapping[str, Any]], None] | None]:
    """Yield a progress display on standard error; None: no terminal."""
    if sys.stderr is None or not sys.stderr.isatty():
        yield None
        return
    progress = ProgressLine(sys.stderr, describe)
    try:
        yield progress
    finally:
        progress.close()


class ProgressLine:
    def __init__(self, stream: TextIO, describe: Callable[[Mapping[str, Any]], str] = describe_walk) -> None:
        self._stream = stream
        self._describe = describe
        self._shown = 0

    def __call__(self, told: Mapping[str, Any]) -> None:
        line = self._describe(told)
        width = shutil.get_terminal_size().columns - 1
        self._write("\r" + line[:width].ljust(self._shown))
        self._shown = len(line[:width])

    def close(self) -> None:
        if self._shown:
            self._write("\n")
            self._shown = 0

    def _write(self, text: str) -> None:
        with suppress(OSError, ValueError):
            self._stream.write(text)
            self._stream.flush()


_EXIT_TERMINATED: Final = 128 + signal.SIGTERM


class Termination:
    """A context manager that turns SIGTERM into an orderly end with exit code 143, in the main thread.

    Raises:
        SystemExit: SIGTERM came; raised after the work's cancellation, or at once without work.
    """

    def __init__(self) -> None:
        self._has_come = False
        self._cancel: Callable[[], object] | None = None
        self._before: Any = signal.SIG_DFL

    def __enter__(self) -> Self:
        self._before = signal.signal(signal.SIGTERM, self._end)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        signal.signal(signal.SIGTERM, self._before)
        if self._has_come and exc is not None:
            raise SystemExit(_EXIT_TERMINATED) from exc

    async def ending(self, work: Awaitable[_T]) -> _T:
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        assert task is not None, "in a coroutine"
        self._cancel = lambda: loop.call_soon_threadsafe(task.cancel)
        try:
            return await work
        finally:
            self._cancel = None

    def _end(self, _number: int, _frame: FrameType | None) -> None:
        # Who sends the signal to a process and its group sends it twice.
        if self._has_come:
            return
        self._has_come = True
        if self._cancel is None:
            raise SystemExit(_EXIT_TERMINATED)
        self._cancel()
