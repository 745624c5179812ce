"""Real feeds through the whole proxy, with feedparser to say whether a reader sees the same as before.

Every well-formed Atom 1.0 and RSS 0.9x/2.0 document of the corpus is served unchanged, and cut into a chain
of archive documents, each in its own folder. The suite takes one in three; `python -m pytest
tests/end_to_end/test_corpus.py --exhaustive` takes every one.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Final, TypeVar

import pytest

from tests.chains import (
    CORPUS,
    NotCuttableError,
    Seen,
    corpus_feeds,
    cut,
    differences,
    head_seen,
    is_alike,
    seen,
)
from tests.origin import Origin
from tests.running import Proxy, Reply, a_config, running

XML: Final = "application/xml"
PROXY_URL: Final = "http://proxy.test/feed"

T = TypeVar("T")

REPEATED: Final = {
    "Resources/scriptingNews.rss": 48,
    "data/atom10_2.xml": 5,
    "data/atom10_feed_authors.xml": 4,
    "data/items_without_titles.xml": 3,
    "resources/CDATATestFeed.xml": 1,
    "base/vehicles2.xml": 1,
    "multiplechanges/deleted_updated.atom": 1,
    "multiplechanges/updated_deleted.atom": 1,
    "feeds/2-updated_t1.atom": 2,
    "feeds/3-added_t3.atom": 3,
    "feeds/4-deleted_t3.atom": 2,
    "feeds/5-deleted_t2.atom": 1,
    "feeds/6-deleted_t1.atom": 0,
    "93_empty_titles_caused_by_list_of_values/index.atom": 3,
}
"""Identities of feeds that repeat an id or guid (R10), or with tombstones (R19)."""

REPEATED_APART: Final = {**REPEATED, "base/services2.xml": 1}
"""The same with each entry alone in a document: nothing then shows that an id is useless (R9)."""

OTHER_HEADS: Final = {
    "links": "R21: history links leave, self and via are the proxy's",
    "language": "no xml:lang stands on the root of the output, for it would hold for every entry",
    "fh_archive": "R21",
    "fh_complete": "R21",
    **dict.fromkeys(("itunes_new-feed-url", "googleplay_new-feed-url", "podcast_podping"), "R21"),
    **dict.fromkeys(("cloud", "source_cloud", "source_self"), "R21"),
    "sx_sharing": "it stands beside the channel, not in it",
}
"""Permitted differences in any head, and the reasons."""

# feedparser does not read the text of elements that it does not know when they have attributes.
GAINS_A_BASE: Final = {
    "atom/atom_relative.xml": {"icon", "logo"},
    "references/atom-ns.xml": {"media_community"},
    "resources/rss_0.91U.xml": {"docs"},
    "resources/rss_0.92.xml": {"docs"},
    "resources/rss_0.92_alt.xml": {"docs"},
    "resources/rss_0.94.xml": {"docs"},
    "resources/rss_2.0.xml": {"docs"},
}

pytestmark = pytest.mark.skipif(not CORPUS.is_dir(), reason=f"the corpus of real feeds is absent: {CORPUS}")


@pytest.fixture
async def proxy(tmp_path: Path) -> AsyncIterator[Proxy]:
    """A proxy for all feeds of a test, without requests to their hosts."""
    config = a_config(
        tmp_path,
        fetch={"allow_hosts": ("127.0.0.1",), "concurrency_per_host": 8},
        freshness={"minimum_seconds": 86_400.0},
        history={"warn_entry": False, "collect": "off"},  # each is compared with itself alone
    )
    async with running(config) as proxy:
        yield proxy


def listed(name: str, table: Mapping[str, T]) -> T | None:
    return next((value for ending, value in table.items() if name.endswith(f"/{ending}")), None)


def objections(
    name: str, before: list[Seen], after: list[Seen], repeated: Mapping[str, int] = REPEATED
) -> Iterator[str]:
    expected = listed(name, repeated)
    if expected is None:
        yield from differences(before, after)
        return
    ids = [entry["id"] for entry in after]
    if len(ids) == len(before) or len(ids) != len(set(ids)) or len(ids) != expected:
        yield f"{[entry['id'] for entry in before]} became {ids}"
    yield from (
        f"{entry} is none of the publisher's"
        for entry in after
        if not any(is_alike(each, entry) for each in before)
    )


def head_objections(name: str, before: Seen, after: Seen) -> Iterator[str]:
    for field in sorted({*before, *after} - set(OTHER_HEADS) - (listed(name, GAINS_A_BASE) or set())):
        if not is_alike(before.get(field), after.get(field)):
            yield f"head: {field} {before.get(field)!r} became {after.get(field)!r}"


async def served(proxy: Proxy, name: str, url: str) -> Reply:
    reply = await proxy.whole(url)
    assert reply.status == 200, (name, reply.body)
    return reply


async def test_a_reader_sees_every_feed_as_its_publisher_wrote_it(
    proxy: Proxy, origin: Origin, step: int
) -> None:
    """R20 to R22: entries and head, in every format."""
    found: list[tuple[str, str]] = []
    count = 0
    for number, (name, body) in enumerate(islice(corpus_feeds("real", "rfc5005"), 0, None, step)):
        path = f"/feeds/{number}/feed.xml"
        origin.publish(path, body, content_type=XML)
        url = origin.url(path)
        reply = await served(proxy, name, url)
        content_type = reply.headers["Content-Type"]
        after = seen(reply.body, PROXY_URL, content_type)
        found += [(name, why) for why in objections(name, seen(body, url, XML), after)]
        head = head_seen(body, url, XML)
        found += [
            (name, why) for why in head_objections(name, head, head_seen(reply.body, PROXY_URL, content_type))
        ]
        count += 1
    assert found == []
    assert count > 200 / step


async def test_a_reader_sees_every_entry_of_a_chain_as_in_its_own_document(
    proxy: Proxy, origin: Origin, step: int
) -> None:
    """R2, R11, R22: relative URLs mean the same as in the document of the entry."""
    found: list[tuple[str, str]] = []
    count = 0
    for number, (name, body) in enumerate(islice(corpus_feeds("real", "rfc5005"), 0, None, step)):
        try:
            parts = cut(body, lambda place, n=number: origin.url(f"/{n}/{'older/' * place}feed.xml"))  # type: ignore[misc]
        except NotCuttableError:
            continue
        before: list[Seen] = []
        for part in parts:
            origin.publish(part.url.removeprefix(origin.url("")), part.body, content_type=XML)
            before += seen(part.body, part.url, XML)
        reply = await served(proxy, name, parts[0].url)
        if not reply.reconstruction.startswith(f"complete;documents={len(parts)};"):
            found.append((name, reply.reconstruction))
        after = seen(reply.body, PROXY_URL, reply.headers["Content-Type"])
        found += [(name, why) for why in objections(name, before, after, REPEATED_APART)]
        count += 1
    assert found == []
    assert count > 200 / step
