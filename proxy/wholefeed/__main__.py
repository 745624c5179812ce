"""The command `wholefeed` as `python -m wholefeed`."""

from __future__ import annotations

import sys

from wholefeed.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
