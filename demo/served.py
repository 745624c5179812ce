"""`python -m demo.served ARGUMENTS`: `wholefeed serve` for the lifetime of its parent process.

Standard input is a pipe held by the parent alone: it closes when the parent ends, even by a kill. Then the
server stops in order, and removes its folder if nobody else does.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Final

from wholefeed.cli.main import main

STOP_SECONDS: Final = 15


def _end_with_the_pipe() -> None:
    os.read(sys.stdin.fileno(), 1)
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(STOP_SECONDS)
    os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    parent = os.getppid()
    threading.Thread(target=_end_with_the_pipe, daemon=True).start()
    code = main(["serve", *sys.argv[1:]])
    if os.getppid() != parent:
        shutil.rmtree(Path.cwd(), ignore_errors=True)
    sys.exit(code)
