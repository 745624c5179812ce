"""The main program of a worker: jobs arrive on standard input, results leave on standard output.

Without asyncio, it starts in 0.25 s and takes 25 MB.
"""

from __future__ import annotations

import faulthandler
import gc
import os
import pickle
import select
import signal
import traceback
from _thread import start_new_thread
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import IO, Any, Final

from wholefeed.core.jobs import JOBS
from wholefeed.core.parse.limits import ParseError

READY: Final = "ready"
BEGUN: Final = "begun"
DONE: Final = "done"
UNREADABLE: Final = "unreadable"
FAILED: Final = "failed"

_OOM_SCORE: Final = "500"
"""Makes the kernel kill a worker before the server (proc(5))."""


def main() -> None:
    requests, replies = _own_streams()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides when to end
    faulthandler.enable()
    with suppress(OSError):  # Linux alone has it
        Path("/proc/self/oom_score_adj").write_text(_OOM_SCORE, "ascii")
    start_new_thread(_end_with_parent, (requests.fileno(),))
    gc.freeze()
    gc.disable()  # most objects of a job live until its end
    with suppress(BrokenPipeError, EOFError):
        serve(requests, replies)


_REQUESTS: Final = 0
_REPLIES: Final = 1
_ERRORS: Final = 2


def _own_streams() -> tuple[IO[bytes], IO[bytes]]:
    """Return duplicates of both pipes; anything printed goes to standard error."""
    requests = os.fdopen(os.dup(_REQUESTS), "rb")
    replies = os.fdopen(os.dup(_REPLIES), "wb")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, _REQUESTS)
    os.close(nothing)
    os.dup2(_ERRORS, _REPLIES)
    os.set_blocking(_ERRORS, False)  # loses output rather than wait for its pipe
    return requests, replies


def _end_with_parent(requests: int) -> None:
    """Exit when the parent closes its pipe, even in the middle of a job."""
    poll = select.poll()
    poll.register(requests, 0)  # a hang-up is always reported
    poll.poll()
    os._exit(0)


def serve(requests: IO[bytes], replies: IO[bytes]) -> None:
    """Do one job after another until `EOFError`."""
    write_frame(replies, (READY, os.getpid()))
    while True:
        name, arguments, options, cpu_seconds = read_frame(requests)
        write_frame(replies, (BEGUN, None))
        # The timer counts CPU time and ends the process, even inside C code.
        signal.setitimer(signal.ITIMER_PROF, cpu_seconds)
        reply = _outcome(name, arguments, options)
        signal.setitimer(signal.ITIMER_PROF, 0)
        del arguments
        write_frame(replies, reply)
        del reply
        gc.collect()


def _outcome(name: str, arguments: tuple[Any, ...], options: dict[str, Any]) -> tuple[str, object]:
    try:
        return DONE, _find_job(name)(*arguments, **options)
    except ParseError as exc:
        return UNREADABLE, (exc.message, exc.slug)
    except Exception:  # noqa: BLE001 - the parent gets it
        return FAILED, traceback.format_exc()


def _find_job(name: str) -> Callable[..., Any]:
    if name in _FURTHER:  # with modules that other jobs do without
        found: Callable[..., Any] = getattr(import_module(_FURTHER[name]), name)
        return found
    return JOBS[name]


_FURTHER: Final = {"match_database": "wholefeed.store.reader_files"}
"""Jobs with I/O, by their modules: SQLite's library reads a file in memory."""


# Frames in the pipes

_PICKLE_PROTOCOL: Final = 5
"""Transfers bytes of 64 KiB and more without a copy."""
_CORE: Final = "wholefeed.core."


def write_frame(stream: IO[bytes], message: object) -> None:
    pickle.dump(message, stream, _PICKLE_PROTOCOL)
    stream.flush()


def read_frame(stream: IO[bytes]) -> Any:
    """Read exactly one object.

    Raises:
        EOFError: The other side has ended or sends no frame.
    """
    try:
        return _Unpickler(stream).load()
    except (pickle.UnpicklingError, AttributeError, ImportError, IndexError, TypeError, ValueError) as exc:
        raise EOFError(f"expected a frame, got something else: {exc}") from exc


class _Unpickler(pickle.Unpickler):
    """Loads only plain values and classes of the core: a worker handles strangers' data."""

    def find_class(self, module_name: str, global_name: str, /) -> Any:
        found = super().find_class(module_name, global_name) if module_name.startswith(_CORE) else None
        if not isinstance(found, type) or found.__module__ != module_name:
            raise pickle.UnpicklingError(f"expected a class of the core, got {module_name}.{global_name}")
        return found


if __name__ == "__main__":
    main()
