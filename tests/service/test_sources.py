"""wholefeed.service.sources: where a document is parsed."""

from __future__ import annotations

import asyncio
import threading
from typing import cast

import pytest

from tests.feeds import an_item, atom
from tests.origin import Origin
from tests.running import Proxy
from wholefeed.core import jobs, origins
from wholefeed.fetch.fetcher import Fetcher
from wholefeed.service import sources
from wholefeed.workers.pool import INLINE_BYTES, Workers


@pytest.mark.parametrize(
    ("body", "is_beside"),
    [
        (atom(an_item("a", 1, "word " * 10_000)), False),
        (atom(an_item("a", 1, "&lt;b&gt;" * 3_000)), True),
        (b"<" * 60_000, True),
        (
            b'{"version": "https://jsonfeed.org/version/1.1", "items": [%s]}' % b",".join([b"{}"] * 5_000),
            True,
        ),
        (atom(an_item("a", 1, "word " * 20_000)), False),
        (atom(an_item("a", 1, "word " * 30_000)), True),
    ],
    ids=["small", "dense", "hostile", "JSON", "middle", "large"],
)
async def test_what_takes_long_is_read_beside_the_event_loop(
    proxy: Proxy, origin: Origin, monkeypatch: pytest.MonkeyPatch, body: bytes, is_beside: bool
) -> None:
    """Row 45: a document's size counts, or its work of parsing and repair."""
    threads: list[threading.Thread] = []
    for module in (sources, jobs, jobs):
        real = module.parse

        def parse(*arguments: object, real: object = real, **options: object) -> object:
            threads.append(threading.current_thread())
            return real(*arguments, **options)  # type: ignore[operator]

        monkeypatch.setattr(module, "parse", parse)
    origin.publish("/feed", body)
    await proxy.get(origin.url("/feed"))
    assert threads
    assert {thread is not threading.main_thread() for thread in threads} == {is_beside}


async def test_documents_that_have_come_together_let_others_run_between_them() -> None:
    """Row 45: eight of them at once would take eight times as long."""
    done: list[str] = []
    work = Workers(0)

    async def read(name: str, size_bytes: int) -> None:
        await work.run(size_bytes, lambda: done.append(name))

    async def other() -> None:
        while len(done) < 10:
            done.append("other")
            await asyncio.sleep(0)

    await asyncio.gather(read("first", 1), read("second", INLINE_BYTES), read("third", 1), other())
    assert [name for name in done if name != "other"] == ["first", "second", "third"]
    assert "other" in done[done.index("first") : done.index("second")]
    assert "other" in done[done.index("second") : done.index("third")]


@pytest.mark.fault("87")
@pytest.mark.parametrize(("values", "is_in_a_process"), [(10_000, False), (200_000, True)])
async def test_json_of_many_values_is_read_in_a_process(
    proxy: Proxy, origin: Origin, monkeypatch: pytest.MonkeyPatch, values: int, is_in_a_process: bool
) -> None:
    """Row 87: one call parses JSON, and would block other threads."""
    read: list[object] = []
    for module in (sources, jobs):
        real = module.parse

        def parse(*arguments: object, real: object = real, **options: object) -> object:
            read.append(arguments)
            return real(*arguments, **options)  # type: ignore[operator]

        monkeypatch.setattr(module, "parse", parse)
    item = f'{{"id": 1, "x": [{",".join("1" * values)}], "content_text": "{"x" * 70_000}"}}'
    body = f'{{"version": "https://jsonfeed.org/version/1.1", "items": [{item}]}}'
    origin.publish("/feed", body, content_type="application/feed+json")
    assert (await proxy.get(origin.url("/feed"))).status == 200
    assert bool(read) is not is_in_a_process


@pytest.mark.parametrize("source", origins.Origin)
async def test_of_a_document_counts_what_does_for_its_origin(source: origins.Origin) -> None:
    """R33, I1, H7: flags, tombstones and links follow the table of origins."""
    grave = (
        '<at:deleted-entry xmlns:at="http://purl.org/atompub/tombstones/1.0"'
        ' ref="urn:b" when="2030-01-01T00:00:00Z"/>'
    )
    body = atom(an_item("a", 1), archive=True, prev_archive="http://o.test/1", extra=grave)
    reading = sources.Source(a_fetcher(), Workers(0), xml_depth=256)
    kept = await reading.read_kept(body, source, "its name", url="http://o.test/2", at=1.0)
    policy, read = source.policy, kept.read
    assert (kept.origin, kept.memento) == (source, "its name")
    assert read.navigation.is_archive is policy.has_flags
    assert len(read.facts.tombstones) == policy.buries
    assert read.navigation.links["prev-archive"] == "http://o.test/1", "by them it is told whose it is"
    assert bool(sources.drop_links(kept).read.navigation.links) is policy.has_links


def a_fetcher() -> Fetcher:
    """Return a fetcher without responses."""
    return cast("Fetcher", None)
