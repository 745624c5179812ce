"""The whole of a worker process: jobs come in through standard input, results go out through standard output.

It imports the core of wholefeed alone, and not asyncio: it starts in a quarter of a second and takes 25 MB.
It ends when its standard input does, even in the middle of a job.

    write_frame(requests, ("read_document", (body,), {}, 20.0))     # in the process that it works for
    read_frame(replies)                                             # ("begun", None), then ("done", ...)
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
from contextlib import suppress
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
"""Where memory is short, a worker is killed rather than the server: half of all memory worse (proc(5))."""


def main() -> None:
    """Work until standard input ends."""
    requests, replies = _own_streams()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the process that it works for says when to end
    faulthandler.enable()
    with suppress(OSError):  # Linux alone has it
        Path("/proc/self/oom_score_adj").write_text(_OOM_SCORE, "ascii")
    start_new_thread(_end_with_parent, (requests.fileno(),))
    gc.freeze()
    gc.disable()  # most of what a job makes is kept until its end
    with suppress(BrokenPipeError, EOFError):
        serve(requests, replies)


_REQUESTS: Final = 0
_REPLIES: Final = 1
_ERRORS: Final = 2


def _own_streams() -> tuple[IO[bytes], IO[bytes]]:
    """Keep the pipes to oneself: what anything prints goes to the errors, and nothing reads requests."""
    requests = os.fdopen(os.dup(_REQUESTS), "rb")
    replies = os.fdopen(os.dup(_REPLIES), "wb")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, _REQUESTS)
    os.close(nothing)
    os.dup2(_ERRORS, _REPLIES)
    os.set_blocking(_ERRORS, False)  # more than its pipe holds is lost rather than waited for
    return requests, replies


def _end_with_parent(requests: int) -> None:
    """End when the other end of the pipe is closed, in the middle of a job too: its process may be killed."""
    poll = select.poll()
    poll.register(requests, 0)  # a hang-up is always told
    poll.poll()
    os._exit(0)


def serve(requests: IO[bytes], replies: IO[bytes]) -> None:
    """Do one job after the other; raises `EOFError` when there will be no further one."""
    write_frame(replies, (READY, os.getpid()))
    while True:
        name, arguments, options, cpu_seconds = read_frame(requests)
        write_frame(replies, (BEGUN, None))
        # The timer counts what this process computes, and ends it wherever it is: in C code too.
        signal.setitimer(signal.ITIMER_PROF, cpu_seconds)
        reply = _outcome(name, arguments, options)
        signal.setitimer(signal.ITIMER_PROF, 0)
        del arguments
        write_frame(replies, reply)
        del reply
        gc.collect()


def _outcome(name: str, arguments: tuple[Any, ...], options: dict[str, Any]) -> tuple[str, object]:
    try:
        return DONE, JOBS[name](*arguments, **options)
    except ParseError as exc:
        return UNREADABLE, (exc.message, exc.slug)
    except Exception:  # noqa: BLE001 - whoever asked for it is told
        return FAILED, traceback.format_exc()


# What goes through the pipes

_PICKLE_PROTOCOL: Final = 5
"""Bytes of 64 KiB and more are not copied: they are written as they are, and read into what they become."""
_CORE: Final = "wholefeed.core."


def write_frame(stream: IO[bytes], message: object) -> None:
    """Write an object and flush it."""
    pickle.dump(message, stream, _PICKLE_PROTOCOL)
    stream.flush()


def read_frame(stream: IO[bytes]) -> Any:
    """Read the next object, and nothing of what comes behind it.

    Raises:
        EOFError: The other side has ended, or sends what is no frame.
    """
    try:
        return _Unpickler(stream).load()
    except (pickle.UnpicklingError, AttributeError, ImportError, IndexError, TypeError, ValueError) as exc:
        raise EOFError(f"expected a frame, got something else: {exc}") from exc


class _Unpickler(pickle.Unpickler):
    """Makes plain values and classes of the core: a worker deals with what strangers sent.

    Nothing of what it says is run.
    """

    def find_class(self, module_name: str, global_name: str, /) -> Any:
        found = super().find_class(module_name, global_name) if module_name.startswith(_CORE) else None
        if not isinstance(found, type) or found.__module__ != module_name:
            raise pickle.UnpicklingError(f"expected a class of the core, got {module_name}.{global_name}")
        return found


if __name__ == "__main__":
    main()
