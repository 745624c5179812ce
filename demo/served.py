"""`python -m demo.served ARGUMENTS`: `wholefeed serve` for as long as whoever started it lives.

Standard input is a pipe whose other end that process alone holds: it closes when the process ends, however it
does. Then the server stops in order; where nobody is left to clean up, the folder that it runs in goes, too.
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
