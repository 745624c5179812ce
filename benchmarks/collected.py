"""Cost of a collected history with posts imported later: `python -m benchmarks.collected`.

A simulated WordPress has 5,000 posts of about 2 KB. 4,683 were imported: their IDs are the highest, and their
dates lie among the others'. A server with a fresh store is asked for the feed until nothing is loading. Then
posts are published or edited, one at a time, with a request after each. The CPU time is that of the server
and its children.

The table shows how many of the newest hundred posts are in the first hundred entries of each answer. The
number is not checked, so that earlier checkouts can be measured.
"""

from __future__ import annotations

import argparse
import asyncio
import re
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from benchmarks.support.figures import Figure, show
from benchmarks.support.report import begin, expect
from benchmarks.support.server import Server, running_server
from benchmarks.support.tree import HERE, Tree, add_tree, chosen_tree
from tests.origin import Origin
from tests.publishers.wordpress import WordPress

POSTS: Final = 5000
_IMPORTED_SHARE: Final = 4683 / 5000
_PER_FEED: Final = 50
_STALE_SECONDS: Final = 1.3
_REST_SECONDS: Final = 0.6
_GUID: Final = re.compile(rb"<guid[^>]*>([^<]*)")
_CONTENT: Final = "Some words of a post, as long as most are. " * 22


def measure(tree: Tree = HERE, *, posts: int = POSTS, times: int = 8) -> list[Figure]:
    with (
        a_wordpress(posts) as blog,
        tempfile.TemporaryDirectory(prefix="wholefeed-collected-") as folder,
        running_server(
            Path(folder),
            tree=tree,
            freshness_minimum_seconds=1,
            freshness_default_seconds=1,
        ) as server,
    ):
        return list(_measured(server, blog, posts, times))


def _measured(server: Server, blog: WordPress, posts: int, times: int) -> Iterator[Figure]:
    began = server.cpu_seconds()
    found = _asked(server, blog)
    yield Figure("walk", "s of CPU", [server.cpu_seconds() - began])
    yield Figure("newest.walk", "of the first 100", [found])
    kinds: dict[str, Callable[[int], object]] = {
        "newer": lambda _: blog.add(content=_CONTENT),
        "edited": lambda n: blog.edit(blog.posts[posts // 3 + n * posts // 50]),
    }
    for kind, publish in kinds.items():
        taken, newest = list[float](), list[float]()
        for number in range(times):
            publish(number)
            time.sleep(_STALE_SECONDS)
            before = server.cpu_seconds()
            newest.append(_asked(server, blog))
            time.sleep(_REST_SECONDS)
            taken.append((server.cpu_seconds() - before) * 1000)
        yield Figure(kind, "ms of CPU", taken)
        yield Figure(f"newest.{kind}", "of the first 100", newest)


def _asked(server: Server, blog: WordPress) -> float:
    """Ask for the whole feed; return how many of the first hundred entries are of the newest hundred."""
    answer = server.whole(blog.feed_url())
    expect("state", answer.state, "collected")
    found = [
        guid.decode().replace("&amp;", "&").replace("&#038;", "&") for guid in _GUID.findall(answer.body)
    ]
    expect("entries", len(found), len(set(found)))
    newest = sorted(blog.posts, key=lambda post: -post.published)[:100]
    return float(len(blog.identities(posts=newest) & set(found[:100])))


@contextmanager
def a_wordpress(posts: int) -> Iterator[WordPress]:
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    origin = asyncio.run_coroutine_threadsafe(Origin().__aenter__(), loop).result(30)
    try:
        imported = int(posts * _IMPORTED_SHARE)
        blog = WordPress(origin, posts=posts - imported, per_feed=_PER_FEED)
        for post in blog.posts:
            post.content = _CONTENT
        for number in range(imported):
            blog.back_date(days=3 + 1900 * number / imported, content=_CONTENT)
        yield blog
    finally:
        asyncio.run_coroutine_threadsafe(origin.__aexit__(None, None, None), loop).result(30)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(30)
        loop.close()


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure the CPU time of a collected history.")
    parser.add_argument("--posts", type=int, default=POSTS, help=f"of the blog (default {POSTS})")
    parser.add_argument("--times", type=int, default=8, help="posts that are published later (default 8)")
    add_tree(parser)
    options = parser.parse_args()
    begin()
    show(measure(chosen_tree(options), posts=options.posts, times=options.times))


if __name__ == "__main__":
    main()
