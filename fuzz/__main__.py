"""Run a harness under atheris: `python -m fuzz parser --seconds 60` (docs/fuzzing.md).

Further options for libFuzzer stand behind `--`: `python -m fuzz url -- -runs=1000`.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Final

WORKING: Final = Path(".fuzz")
"""Folder of the growing corpora and the finds."""


def main() -> None:
    """Fuzz until the time is over or an input fails."""
    try:
        import atheris  # noqa: PLC0415 - not on every Python
    except ImportError:
        sys.exit("expected atheris, which is not installed: python -m pip install atheris (docs/fuzzing.md)")
    with atheris.instrument_imports(include=["wholefeed"]):  # what was imported before would not be observed
        from fuzz.harnesses import HARNESSES  # noqa: PLC0415
        from fuzz.seeds import SEEDS, WORDS  # noqa: PLC0415
    parser = argparse.ArgumentParser(
        prog="python -m fuzz", description="Look for inputs that break what must hold."
    )
    parser.add_argument("harness", choices=sorted(HARNESSES))
    parser.add_argument("--seconds", type=int, default=60, help="how long (default 60)")
    parser.add_argument(
        "--hang-seconds", type=int, default=10, help="one input may take so long (default 10)"
    )
    parser.add_argument("options", nargs="*", help="libFuzzer's options and further corpora, behind --")
    args = parser.parse_args()
    harness = HARNESSES[args.harness]
    corpus, found = _prepared(args.harness, SEEDS[args.harness]())
    dictionary = _dictionary(args.harness, WORDS.get(args.harness, ()))
    atheris.Setup(
        [
            f"fuzz {args.harness}",
            f"-max_len={harness.max_bytes}",
            f"-max_total_time={args.seconds}",
            f"-timeout={args.hang_seconds}",
            f"-artifact_prefix={found}/",
            *dictionary,
            "-print_final_stats=1",
            *args.options,
            str(corpus),
        ],
        harness.check,
    )
    atheris.Fuzz()


def _prepared(name: str, seeds: Iterable[bytes]) -> tuple[Path, Path]:
    """Write the seeds; return the paths of corpus and finds."""
    corpus, found = WORKING / name, WORKING / f"{name}-found"
    for folder in (corpus, found):
        folder.mkdir(parents=True, exist_ok=True)
    for number, seed in enumerate(seeds):
        (corpus / f"seed-{number}").write_bytes(seed)
    return corpus, found


def _dictionary(name: str, words: Iterable[str]) -> list[str]:
    """Write the dictionary; return its option, if there is one."""
    path = WORKING / f"{name}.dict"
    lines = ['"' + "".join(f"\\x{octet:02x}" for octet in word.encode()) + '"\n' for word in words]
    path.write_text("".join(lines), "ascii")
    return [f"-dict={path}"] if lines else []


if __name__ == "__main__":
    main()
