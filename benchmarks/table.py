"""The table of docs/performance.md in one run: `python -m benchmarks.table` (`make bench`).

    python -m benchmarks.table --tree 0.1=../wholefeed-0.1 --tree now=.
    python -m benchmarks.table --only refresh --only answers --full
    python -m benchmarks.table --render

Each benchmark is run for each checkout, one checkout after the other, by the same clients. What was
measured is kept in benchmarks/results/ as JSON, with date, machine and commit: a file a commit and day, in
which a later run of single benchmarks replaces their figures alone. `--render` fills the table of the page
from the newest result of each label. The servers of a checkout without a .venv are run by this interpreter.

A benchmark that fails, or whose result is wrong, is named in the end, and leaves no figures.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import platform
import re
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

from benchmarks import answers, first, large, many, memory, refresh, soak, walk
from benchmarks.support.figures import Figure, show
from benchmarks.support.report import begin, expect
from benchmarks.support.rows import COLUMNS, kept, render
from benchmarks.support.server import ServerFailedError
from benchmarks.support.tree import ROOT, Tree, tree_at

RESULTS: Final = ROOT / "benchmarks" / "results"
PAGE: Final = ROOT / "docs" / "performance.md"
_COMPOSE_SECONDS: Final = 1200
_FROM_NOTHING: Final = re.compile(r"^from nothing .*?([\d.]+)$", re.MULTILINE)
Section = Callable[[Tree, int, bool], list[Figure]]
"""Takes the checkout, the number of runs, and whether the sizes are the table's or a quick part."""


def _hops(tree: Tree, _runs: int, _is_full: bool) -> list[Figure]:
    """Count hops; an answer's 304 is not a refresh's."""
    figures = [dataclasses.replace(each, name=f"{each.name} answer") for each in answers.hops(tree)]
    for each in refresh.hops(tree):
        is_304 = each.name == "hops.304"
        figures.append(dataclasses.replace(each, name="hops.304 refresh") if is_304 else each)
    return [*figures, *first.hops(tree)]


def _compose(tree: Tree, runs: int, is_full: bool) -> list[Figure]:
    """Run the checkout's own benchmark: it uses internals, and they differ between versions."""
    archives = 1000 if is_full else 200
    command = [str(tree.python), "-m", "benchmarks.compose", "--archives", str(archives), "--runs", "1"]
    values = []
    for _ in range(1 if is_full else runs):
        done = subprocess.run(
            command,
            cwd=tree.root,
            env={**os.environ, "PYTHONPATH": tree.import_path},
            capture_output=True,
            text=True,
            timeout=_COMPOSE_SECONDS,
            check=False,
        )
        found = _FROM_NOTHING.search(done.stdout)
        expect(f"a composition:\n{done.stdout}{done.stderr}", bool(found), True)
        assert found is not None
        values.append(float(found[1]) / (archives + 1))
    return [Figure("compose", "ms", values)]


def _answers(tree: Tree, runs: int, is_full: bool) -> list[Figure]:
    """Measure on the installed loop, and on asyncio's own."""
    requests = 2000 if is_full else 800
    return [
        figure
        for on_asyncio in (False, True)
        for figure in answers.measure(tree, requests=requests, runs=runs, on_asyncio=on_asyncio)
    ]


def _first(tree: Tree, runs: int, _is_full: bool) -> list[Figure]:
    return [*first.measure(tree, runs=runs), *first.measure(tree, first.LONG, runs=runs, name="long")]


SECTIONS: Final[dict[str, Section]] = {
    "answers": _answers,
    "hops": _hops,
    "refresh": lambda tree, runs, is_full: refresh.measure(tree, feeds=80 if is_full else 40, runs=runs),
    "postgres": lambda tree, _, is_full: refresh.trips(tree, feeds=40 if is_full else 10),
    "first": _first,
    "walk": lambda tree, runs, _: walk.figures(tree, runs=runs),
    "compose": _compose,
    "large": lambda tree, runs, is_full: large.measure(tree, runs=runs if is_full else 1),
    "memory": lambda tree, _, is_full: memory.figures(tree, archives=299 if is_full else 59),
    "many": lambda tree, _, is_full: many.measure(
        tree, feeds=10_000 if is_full else 1000, duration_seconds=60 if is_full else 20
    ),
    "soak": lambda tree, _, is_full: soak.figures(tree, seconds=120 if is_full else 40),
}


def machine() -> dict[str, object]:
    """Describe the machine."""
    names = re.findall(r"^model name\s*:\s*(.+)$", _text(Path("/proc/cpuinfo")), re.MULTILINE)
    return {
        "cores": os.cpu_count(),
        "cpu": names[0] if names else platform.processor(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
    }


def keep(folder: Path, label: str, tree: Tree, figures: Sequence[Figure]) -> Path:
    """Write the figures into the file of the checkout's commit and today, over those of the same name."""
    date, commit = time.strftime("%Y-%m-%d"), tree.commit() or "unknown"
    path = folder / f"{date}-{commit}.json"
    old: list[dict[str, Any]] = json.loads(path.read_text("utf-8"))["figures"] if path.exists() else []
    measured = {each.name for each in figures}
    all_of_them = [each for each in old if each["name"] not in measured]
    all_of_them += [each.as_json() for each in figures]
    head = {
        "date": date,
        "at": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
        "label": label,
        "commit": commit,
        "machine": machine(),
    }
    lines = ",\n".join(f"  {json.dumps(each, ensure_ascii=False)}" for each in all_of_them)
    folder.mkdir(exist_ok=True)
    path.write_text(f'{json.dumps(head)[:-1]}, "figures": [\n{lines}\n]}}\n', "utf-8")
    return path


def _text(path: Path) -> str:
    return path.read_text("utf-8", "replace") if path.exists() else ""


def _tree(text: str) -> tuple[str, Tree]:
    label, is_given, folder = text.partition("=")
    if not is_given or label not in COLUMNS:
        raise argparse.ArgumentTypeError(f"expected {', '.join(COLUMNS)} and =FOLDER, got {text}")
    return label, tree_at(folder)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Make the table of docs/performance.md.")
    parser.add_argument(
        "--tree", action="append", type=_tree, metavar="LABEL=FOLDER", help="a checkout (default now=.)"
    )
    parser.add_argument("--only", action="append", choices=list(SECTIONS), help="this one; repeatable")
    parser.add_argument("--full", action="store_true", help="the sizes of the table, not part of them")
    parser.add_argument("--runs", type=int, default=5, help="of most benchmarks (default 5)")
    parser.add_argument("--results", type=Path, default=RESULTS, help="where results are kept")
    parser.add_argument("--render", action="store_true", help="fill the page from what is kept")
    return parser.parse_args()


def run(options: argparse.Namespace) -> list[str]:
    """Run every benchmark for every checkout; return the failures."""
    failed = []
    for name in options.only or SECTIONS:
        for label, tree in options.tree or [("now", tree_at(str(ROOT)))]:
            print(f"\n== {name}, {label}: {tree.commit()}", flush=True)
            try:
                figures = SECTIONS[name](tree, options.runs, options.full)
            except (SystemExit, ServerFailedError, RuntimeError, OSError, EOFError) as exc:
                failed.append(f"{name}, {label}: {exc}")
                print(f"FAILED {failed[-1]}", flush=True)
                continue
            show(figures)
            keep(options.results, label, tree, figures)
    return failed


def main() -> None:
    options = arguments()
    if options.render:
        render(PAGE, kept(options.results))
        return
    begin()
    if failed := run(options):
        sys.exit("\n".join(["failed:", *failed]))


if __name__ == "__main__":
    main()
