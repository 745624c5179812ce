"""What `wholefeed fetch` shows and writes: progress on a terminal, the feed to a file or standard output."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, Final, TextIO

from proxy.errors import WholefeedError

_PARTS: Final = ("documents", "entries")
_DEFAULT_MODE: Final = 0o666


class Progress:
    """One line on a terminal that is written over and over.

    Called with the status object (design, section 2) whenever something changed.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._shown = 0

    def __call__(self, status: Mapping[str, object]) -> None:
        """Show the state, the number of documents and entries, and what is missing."""
        parts = [f"{status[name]} {name}" for name in _PARTS if status.get(name) is not None]
        missing = status.get("missing")
        if isinstance(missing, list) and missing:
            parts.append(f"{len(missing)} missing")
        line = f"{status.get('state') or 'loading'}: {', '.join(parts) or 'asking'}"
        width = shutil.get_terminal_size().columns - 1
        self._write(line[:width])

    def close(self) -> None:
        """Leave the last line standing."""
        if self._shown:
            self._stream.write("\n")
            self._stream.flush()
            self._shown = 0

    def _write(self, line: str) -> None:
        self._stream.write("\r" + line.ljust(self._shown))
        self._stream.flush()
        self._shown = len(line)


@contextmanager
def opened_output(path: Path | None) -> Iterator[BinaryIO]:
    """Where the feed goes: standard output, or a file that gets its name only when all of it is there.

    Raises:
        WholefeedError: The file cannot be written; what stood there before is untouched.
    """
    if path is None:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    try:
        descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    except OSError as exc:
        raise WholefeedError(f"cannot write {path}: {exc.strerror}") from exc
    try:
        with os.fdopen(descriptor, "wb") as file:
            yield file
        _put_in_place(Path(name), path)
    except BaseException:
        with suppress(OSError):
            Path(name).unlink()
        raise


def _put_in_place(made: Path, path: Path) -> None:
    """Give the new file the usual mode (mkstemp's is private) and its name."""
    umask = os.umask(0)
    os.umask(umask)
    try:
        made.chmod(_DEFAULT_MODE & ~umask)
        made.replace(path)
    except OSError as exc:
        raise WholefeedError(f"cannot write {path}: {exc.strerror}") from exc
