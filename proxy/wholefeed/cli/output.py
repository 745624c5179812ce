"""What commands say: results on standard output, everything else on standard error.

Either may be full, closed or gone. A result that cannot be written is an error; a message that cannot is not.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from typing import TextIO

from wholefeed.errors import WholefeedError


def show(text: str) -> None:
    """Print the result of a command.

    Raises:
        WholefeedError: Standard output cannot be written.
        BrokenPipeError: Whoever was reading it has gone.
    """
    if sys.stdout is None:
        raise WholefeedError("cannot write standard output: it is closed")
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as exc:
        give_up(sys.stdout)
        raise WholefeedError(f"cannot write standard output: {exc.strerror}") from exc


def tell(message: str) -> None:
    """Say something on standard error; where that cannot be written there is nobody to tell."""
    try:
        if sys.stderr is not None:
            sys.stderr.write(f"wholefeed: {message}\n")
            sys.stderr.flush()
    except (OSError, ValueError):
        give_up(sys.stderr)


def fail(message: str, code: int) -> int:
    """Say what went wrong, and return the exit code."""
    tell(message)
    return code


def give_up(stream: TextIO) -> None:
    """Let what is left in a stream's buffer vanish: the interpreter writes it at exit, and would complain."""
    with suppress(OSError, ValueError):
        sink = os.open(os.devnull, os.O_WRONLY)
        try:
            os.dup2(sink, stream.fileno())
        finally:
            os.close(sink)
