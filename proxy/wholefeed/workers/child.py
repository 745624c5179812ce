"""The whole of a worker process: jobs come in through standard input, results go out through standard output.

Of wholefeed it imports the core, and nothing of asyncio: it starts in a quarter of a second and takes 25 MB.
It ends when its standard input does, whatever it is doing: then nobody waits for it.

    write_frame(requests, ("read_document", (body,), {}, 20.0))     # in the process that it works for
    read_frame(replies)                                             # ("begun", None), then ("done", ...)
"""

from __future__ import annotations

import faulthandler
import gc
import io
import os
import pickle
import select
import signal
import struct
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
    """Work until nobody wants anything any more."""
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
    """Do one job after the other.

    Raises:
        EOFError: There will be no further one.
    """
    write_frame(replies, (READY, os.getpid()))
    while True:
        name, arguments, options, cpu_seconds = read_frame(requests)
        write_frame(replies, (BEGUN, None))  # should it end now, it is the job's doing
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

BLOB_BYTES: Final = 16 * 1024

_FRAME_HEAD: Final = struct.Struct("!QI")
_BLOB_LENGTH: Final = struct.Struct("!Q")
_PICKLE_PROTOCOL: Final = 5
_CORE: Final = "wholefeed.core."


def write_frame(stream: IO[bytes], message: object) -> None:
    """Write an object and flush it.

    A frame is `_FRAME_HEAD` (the length of the pickled part, the number of blobs), a length a blob, the
    pickled part, the blobs. Bytes of `BLOB_BYTES` and more are blobs: they are neither pickled nor copied on
    their way into the pipe, and read from it into the object that they become.

    Raises:
        OSError: Nobody reads any more.
    """
    pickled = io.BytesIO()
    pickler = _Pickler(pickled)
    pickler.dump(message)
    stream.write(_FRAME_HEAD.pack(pickled.tell(), len(pickler.blobs)))
    stream.write(b"".join(_BLOB_LENGTH.pack(len(blob)) for blob in pickler.blobs))
    stream.write(pickled.getbuffer())
    for blob in pickler.blobs:
        stream.write(blob)
    stream.flush()


def read_frame(stream: IO[bytes]) -> Any:
    """Read the next object.

    Nothing but plain values and classes of the core is read back: a worker deals with what strangers sent, so
    what it says is no code to be run.

    Raises:
        EOFError: The other side has ended, or sends what is no frame.
    """
    pickled_length, count = _FRAME_HEAD.unpack(_read_exactly(stream, _FRAME_HEAD.size))
    lengths = [
        length for (length,) in _BLOB_LENGTH.iter_unpack(_read_exactly(stream, _BLOB_LENGTH.size * count))
    ]
    pickled = _read_exactly(stream, pickled_length)
    return _unpickled(pickled, [_read_exactly(stream, length) for length in lengths])


def _unpickled(pickled: bytes, blobs: list[bytes]) -> Any:
    try:
        return _Unpickler(io.BytesIO(pickled), blobs).load()
    except (pickle.UnpicklingError, AttributeError, ImportError, IndexError, TypeError, ValueError) as exc:
        raise EOFError(f"expected a frame, got something else: {exc}") from exc


def _read_exactly(stream: IO[bytes], length: int) -> bytes:
    data = stream.read(length)
    if len(data) != length:
        raise EOFError(f"expected {length} bytes more, got {len(data)}")
    return data


class _Pickler(pickle.Pickler):
    def __init__(self, file: IO[bytes]) -> None:
        super().__init__(file, _PICKLE_PROTOCOL)
        self.blobs: list[bytes] = []

    def persistent_id(self, obj: object) -> int | None:
        if type(obj) is not bytes or len(obj) < BLOB_BYTES:
            return None
        self.blobs.append(obj)
        return len(self.blobs) - 1


class _Unpickler(pickle.Unpickler):
    def __init__(self, file: IO[bytes], blobs: list[bytes]) -> None:
        super().__init__(file)
        self._blobs = blobs

    def persistent_load(self, pid: object) -> bytes:
        if not isinstance(pid, int):
            raise pickle.UnpicklingError("expected the number of a blob")
        return self._blobs[pid]

    def find_class(self, module_name: str, global_name: str, /) -> Any:
        found = super().find_class(module_name, global_name) if module_name.startswith(_CORE) else None
        if not isinstance(found, type) or found.__module__ != module_name:
            raise pickle.UnpicklingError(f"expected a class of the core, got {module_name}.{global_name}")
        return found


if __name__ == "__main__":
    main()
