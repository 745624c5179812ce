"""The examples of RFC 5005 (sections 2 and 4, appendix B), each read as one document.

Only the URLs of feed documents are changed, to the test's publisher. The oldest archives, which the RFC links
without showing them, were written for the tests.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import feedparser
import pytest

from tests.feeds import links
from tests.origin import Origin
from tests.running import Proxy, Reply

DATA: Final = Path(__file__).parent.parent / "data" / "rfc5005"

_DOCUMENT_URL: Final = re.compile(rb"http://[a-z.]*example\.(?:org|net)(?=[^\"<]*/index\.(?:atom|rss)\")")
_ENTRY: Final = re.compile(rb"<(?:entry|item)([ >].*?</(?:entry|item)>)", re.DOTALL)


@dataclass(frozen=True)
class Example:
    """An archived feed; newest first."""

    title: str
    documents: tuple[tuple[str, str], ...]
    ids: tuple[str, ...]


ATOM: Final = Example(
    title="Example Feed",
    documents=(
        ("/index.atom", "atom_subscription.xml"),
        ("/2003/11/index.atom", "atom_archive_2003_11.xml"),
        ("/2003/10/index.atom", "atom_archive_2003_10.xml"),
    ),
    ids=(
        "urn:uuid:1225c695-cfb8-4ebb-aaaa-80da344efa6a",
        "urn:uuid:cdef5c6d5-gff8-4ebb-assa-80dwe44efkjo",
        "urn:example:plans",
    ),
)
RSS: Final = Example(
    title="Liftoff News",
    documents=(
        ("/index.rss", "rss_subscription.xml"),
        ("/2003/05/index.rss", "rss_archive_2003_05.xml"),
        ("/2003/04/index.rss", "rss_archive_2003_04.xml"),
    ),
    ids=(
        "http://liftoff.example.net/2003/06/03/starcity",
        "http://liftoff.example.net/2003/05/30/eclipse",
        "http://liftoff.example.net/2003/05/27/vasmir",
        "http://liftoff.example.net/2003/04/30/countdown",
    ),
)
archived = pytest.mark.parametrize(
    "example", [pytest.param(ATOM, id="section 4, Atom"), pytest.param(RSS, id="appendix B, RSS")]
)


def printed(name: str, origin: Origin) -> bytes:
    return _DOCUMENT_URL.sub(origin.url("").encode(), (DATA / name).read_bytes())


def publish(example: Example, origin: Origin) -> str:
    for path, name in example.documents:
        origin.publish(path, printed(name, origin))
    return origin.url(example.documents[0][0])


def entry_ids(reply: Reply) -> tuple[str, ...]:
    parsed = feedparser.parse(reply.body)
    assert not parsed.bozo, parsed.get("bozo_exception")
    return tuple(entry.id for entry in parsed.entries)


def entries_of(body: bytes) -> list[bytes]:
    """Return each entry behind the name in its start tag."""
    return [match[1] for match in _ENTRY.finditer(body)]


def assert_verbatim(body: bytes, *names: str) -> None:
    """Check the printed entries, in order, but for additions to their start tags (R22)."""
    wanted = [entry for name in names for entry in entries_of((DATA / name).read_bytes())]
    assert [entry.partition(b">")[2] for entry in entries_of(body)] == [entry[1:] for entry in wanted]


@pytest.mark.parametrize(
    ("name", "path"),
    [
        pytest.param("atom_complete.xml", "/jdoe/queue/index.atom", id="section 2, Atom"),
        pytest.param("rss_complete.xml", "/queue.rss", id="appendix B, RSS"),
    ],
)
async def test_a_complete_feed_comes_out_as_its_document(
    proxy: Proxy, origin: Origin, name: str, path: str
) -> None:
    """R1; RFC 5005, 2 and appendix B."""
    origin.publish(path, printed(name, origin))
    url = origin.url(path)

    reply = await proxy.whole(url)

    assert reply.reconstruction == "complete;documents=1;entries=1;missing=0"
    assert entry_ids(reply) == ("urn:uuid:1225c695-cfb8-4ebb-aaaa-80da344efa6a",)
    head = feedparser.parse(reply.body).feed
    assert (head.title, head.subtitle) == ("NetMovies Queue", "The DVDs you'll receive next.")
    assert links(reply.body)["via"] == [url]
    assert reply.body.count(b"complete") == 1
    assert_verbatim(reply.body, name)


@archived
async def test_an_archived_feed_comes_out_as_one_document(
    proxy: Proxy, origin: Origin, example: Example
) -> None:
    """R2, R20, R21; RFC 5005, 4 and appendix B: every entry, newest first; no title, date or link of an
    archive document speaks for the feed."""
    url = publish(example, origin)

    reply = await proxy.whole(url)

    assert reply.reconstruction == f"complete;documents=3;entries={len(example.ids)};missing=0"
    assert entry_ids(reply) == example.ids
    assert_verbatim(reply.body, *(name for _, name in example.documents))
    assert set(links(reply.body)) == {"alternate", "self", "via"}
    assert links(reply.body)["via"] == [url]
    assert reply.body.count(b"<fh:complete/>") == 1
    assert b"fh:archive" not in reply.body
    parsed = feedparser.parse(reply.body).feed
    assert parsed.title == example.title
    if example is ATOM:
        assert (parsed.author, parsed.updated) == ("John Doe", "2003-12-13T18:30:02Z")
        assert parsed.id == "urn:uuid:60a76c80-d399-11d9-b93C-0003939e0af6"
    else:
        assert parsed.link == "http://liftoff.example.net/"
        assert b"lastBuildDate" not in reply.body


@archived
async def test_an_archive_document_leads_to_the_same_feed(
    proxy: Proxy, origin: Origin, example: Example
) -> None:
    """R3; RFC 5005, 4: `current` names the subscription document."""
    url = publish(example, origin)
    asked = await proxy.whole(origin.url(example.documents[1][0]))
    assert (asked.state, entry_ids(asked)) == ("complete", example.ids)
    assert links(asked.body)["via"] == [url]


@archived
async def test_an_archive_document_that_the_publisher_refuses_is_told(
    proxy: Proxy, origin: Origin, example: Example
) -> None:
    """R16; RFC 5005, 4.1 and 4.2: readers are warned."""
    url = publish(example, origin)
    oldest_path, _ = example.documents[-1]
    origin.remove(oldest_path)

    reply = await proxy.whole(url)

    assert reply.reconstruction == f"partial;documents=2;entries={len(example.ids) - 1};missing=1"
    warning, *rest = entry_ids(reply)
    assert tuple(rest) == example.ids[:-1]
    assert warning not in example.ids
    assert origin.url(oldest_path).encode() in reply.body
    assert b"fh:complete" not in reply.body
