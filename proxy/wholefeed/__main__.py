"""`python -m wholefeed`: the same as the command `wholefeed`."""

from __future__ import annotations

import sys

from wholefeed.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
