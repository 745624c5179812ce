"""Play stories by hand: `python -m tests.model --stories 1000 --seed 1`."""

from __future__ import annotations

import argparse
import asyncio
import logging
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Final

import structlog

from tests.model.archived import an_archived_story
from tests.model.blogs import a_blog_story
from tests.model.replayed import a_replay_story
from tests.model.short import Databases, Story, differs, shrunk, told
from tests.model.stories import a_shifting_story, a_story
from tests.postgres import shared_cluster

KINDS: Final[dict[str, Callable[[int], Story]]] = {
    "feeds": a_story, "shifting": a_shifting_story, "blogs": a_blog_story, "archived": an_archived_story,
    "replays": a_replay_story,
}  # fmt: skip
"""Stories by subject."""


async def _played(
    kind: str, first: int, stories: int, databases: Databases, *, is_short: bool, is_patient: bool
) -> int:
    failed: list[int] = []
    started = time.monotonic()
    for seed in range(first, first + stories):
        story = KINDS[kind](seed)
        found = await differs(story, databases)
        if not found:
            continue
        failed.append(seed)
        if is_short:
            story = await shrunk(story, databases)
            found = await differs(story, databases) or [f"only sometimes: {each}" for each in found]
        print("\n".join([told(story), *(f"  -> {each}" for each in found), ""]), flush=True)
        if not is_patient:
            break
    played, minutes = seed + 1 - first, (time.monotonic() - started) / 60
    print(f"{played} stories of {kind}, {len(failed)} differ {failed or ''}; {played / minutes:.0f} a minute")
    return min(len(failed), 1)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.model", description=__doc__)
    parser.add_argument("--stories", type=int, default=100, help="how many (default: 100)")
    parser.add_argument("--kind", choices=KINDS, help="of what (default: all, so many of each)")
    parser.add_argument("--seed", type=int, default=1, help="of the first one (default: 1)")
    parser.add_argument("--as-they-are", action="store_true", help="do not drop steps that are not needed")
    parser.add_argument("--first", action="store_true", help="stop at the first that differs")
    parser.add_argument(
        "--engine", choices=["sqlite", "postgres"], default="sqlite", help="(default: sqlite)"
    )
    options = parser.parse_args()
    logging.disable(logging.CRITICAL)
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    manner = {"is_short": not options.as_they_are, "is_patient": not options.first}
    kinds = [options.kind] if options.kind else list(KINDS)
    with _engine(options.engine) as databases:
        return max(
            asyncio.run(_played(kind, options.seed, options.stories, databases, **manner)) for kind in kinds
        )


@contextmanager
def _engine(name: str) -> Iterator[Databases]:
    if name == "sqlite":
        yield nullcontext
        return
    with shared_cluster() as cluster, cluster.template() as template:
        yield lambda: cluster.database(template)


if __name__ == "__main__":
    sys.exit(main())
