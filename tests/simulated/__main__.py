"""Play stories by hand: `python -m tests.simulated --stories 1000 --seed 1 --digest FILE`.

    python -m tests.simulated --stories 5000 --digest before.txt        # in one tree
    python -m tests.simulated --compare before.txt                      # in another one: lists what differs
    python -m tests.simulated --show 17                                 # all that became of a story

A line of the file has a story's seed, a digest of all that became of it, and one of each part.
"""

from __future__ import annotations

import argparse
import multiprocessing
import resource
import sys
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from tests.simulated.records import PARTS, StoryRecord
from tests.simulated.stories import KINDS, a_story, play


def _played(seed: int, kind: str, idles: int) -> tuple[str, list[str], list[str]]:
    record = play(a_story(seed, kind), idles=idles)
    return record.line(), outcomes(record), record.troubles


def outcomes(record: StoryRecord) -> list[str]:
    """Return a story's outcome, for the table."""
    from tests.simulated import places  # noqa: PLC0415

    found = [f"story {record.title.split(',')[0]}"]
    for each in record.refreshes:
        found.append(f"end {each.ends}")
        found += places.outcomes(each.rows, each.log)
        found += [f"request {line.split(' -> ')[-1].split(' by ')[0]}" for line in each.requests]
    return found


def _lines(seeds: list[int], options: argparse.Namespace) -> Iterator[tuple[str, list[str], list[str]]]:
    work, processes = partial(_played, kind=options.kind, idles=options.idles), options.processes
    if processes == 1:
        yield from map(work, seeds)
        return
    with multiprocessing.get_context("fork").Pool(processes) as pool:
        yield from pool.imap(work, seeds, chunksize=16)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.simulated", description=__doc__)
    parser.add_argument("--stories", type=int, default=200, help="how many (default: 200)")
    parser.add_argument("--seed", type=int, default=1, help="of the first one (default: 1)")
    parser.add_argument("--kind", choices=sorted({*KINDS}), default="", help="of what (default: all in turn)")
    parser.add_argument("--digest", type=Path, help="write a line a story into this file")
    parser.add_argument("--compare", type=Path, help="play the stories of this file, list those that differ")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS, help="compare these alone")
    parser.add_argument("--show", type=int, metavar="SEED", help="print all that becomes of a story")
    parser.add_argument("--table", action="store_true", help="print how many refreshes come to what")
    parser.add_argument("--idles", type=int, default=0, help="turns of the loop that work on the store takes")
    parser.add_argument("--processes", type=int, default=1)
    options = parser.parse_args()
    if options.show is not None:
        print(play(a_story(options.show, options.kind), idles=options.idles))
        return 0
    seeds = list(range(options.seed, options.seed + options.stories))
    known: dict[int, dict[str, str]] = {}
    if options.compare:
        for line in options.compare.read_text().splitlines():
            seed, _, *parts = line.split()
            known[int(seed)] = dict(part.split("=") for part in parts)
        seeds = sorted(known)
    return _run(seeds, known, options)


def _run(seeds: list[int], known: dict[int, dict[str, str]], options: argparse.Namespace) -> int:
    started = time.monotonic()
    counts: dict[str, int] = {}
    differing, troubles, lines = 0, 0, []
    for line, found, trouble in _lines(seeds, options):
        lines.append(line)
        seed, _, *parts = line.split()
        for each in found:
            counts[each] = counts.get(each, 0) + 1
        if trouble:
            troubles += 1
            print(f"story {seed}: {trouble}", file=sys.stderr)
        if known:
            named = dict(part.split("=") for part in parts)
            others = [name for name in options.parts if named[name] != known[int(seed)][name]]
            if others:
                differing += 1
                print(f"story {seed} differs: {', '.join(others)}", flush=True)
    if options.digest:
        options.digest.write_text("".join(f"{line}\n" for line in lines))
    if options.table:
        for name, count in sorted(counts.items()):
            print(f"{count:8} {name}")
    seconds = time.monotonic() - started
    cpu_seconds = sum(
        sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    )
    refreshes = sum(count for name, count in counts.items() if name.startswith("end "))
    print(
        f"{len(seeds)} stories, {refreshes} refreshes in {seconds:.0f} s"
        f" ({1000 * cpu_seconds / max(1, refreshes):.1f} ms of the processor each),"
        f" {differing} differ, {troubles} in trouble"
    )
    return int(bool(differing or troubles))


if __name__ == "__main__":
    sys.exit(main())
