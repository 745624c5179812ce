"""Play every case from the field; print a table: kind, case, and each wrong result.

python -m tests.field [PART OF A NAME]
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from pathlib import Path

from tests.field.play import all_cases, play


async def _main(part: str) -> int:
    chosen = [case for case in all_cases() if part in f"{case.kind}: {case.name}"]
    with tempfile.TemporaryDirectory() as folder:
        results = await play(chosen, Path(folder))
    for case, came in results:
        print(f"{case.kind}\t{case.name}\t{came or 'right'}")
    wrong = sum(bool(came) for _, came in results)
    print(f"{len(results) - wrong} right, {wrong} not")
    return min(wrong, 1)


if __name__ == "__main__":
    sys.exit(asyncio.run(_main(" ".join(sys.argv[1:]))))
