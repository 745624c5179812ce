"""What goes through the pipes between the process and its workers: objects, large bytes apart.

    write_frame(stream, ("read_document", (body,)))
    read_frame(stream)

A frame is `_HEAD` (the length of the pickled part, the number of blobs), a length a blob, the pickled part,
the blobs. Bytes of `BLOB_BYTES` and more are blobs: they are neither pickled nor copied on their way into the
pipe, and read from it into the object that they become. Nothing but plain values and classes of the core is
read back: a worker deals with what strangers sent, so what it says is no code to be run.
"""

from __future__ import annotations

import io
import pickle
import struct
from typing import IO, Any, Final

BLOB_BYTES: Final = 16 * 1024

_HEAD: Final = struct.Struct("!QI")
_LENGTH: Final = struct.Struct("!Q")
_PICKLE_PROTOCOL: Final = 5
_CORE: Final = "wholefeed.core."


def write_frame(stream: IO[bytes], message: object) -> None:
    """Write an object and flush it.

    Raises:
        OSError: Nobody reads any more.
    """
    pickled = io.BytesIO()
    pickler = _Pickler(pickled)
    pickler.dump(message)
    stream.write(_HEAD.pack(pickled.tell(), len(pickler.blobs)))
    stream.write(b"".join(_LENGTH.pack(len(blob)) for blob in pickler.blobs))
    stream.write(pickled.getbuffer())
    for blob in pickler.blobs:
        stream.write(blob)
    stream.flush()


def read_frame(stream: IO[bytes]) -> Any:
    """Read the next object.

    Raises:
        EOFError: The other side has ended, or sends what is no frame.
    """
    pickled_length, count = _HEAD.unpack(_read(stream, _HEAD.size))
    lengths = [length for (length,) in _LENGTH.iter_unpack(_read(stream, _LENGTH.size * count))]
    pickled = _read(stream, pickled_length)
    return _unpickled(pickled, [_read(stream, length) for length in lengths])


def _unpickled(pickled: bytes, blobs: list[bytes]) -> Any:
    try:
        return _Unpickler(io.BytesIO(pickled), blobs).load()
    except (pickle.UnpicklingError, AttributeError, ImportError, IndexError, TypeError, ValueError) as exc:
        raise EOFError(f"expected a frame, got something else: {exc}") from exc


def _read(stream: IO[bytes], length: int) -> bytes:
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
