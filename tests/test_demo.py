"""The demonstration's publisher and reader: they must be right before the proxy is judged by them."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from demo.feeds import RECENT, SampleFeed
from demo.proxy_process import ProxyFailedError, free_port, running_proxy
from demo.publisher import Publisher
from demo.reader import ask, proxied

ROOT = Path(__file__).parent.parent
ATOM = "{http://www.w3.org/2005/Atom}"
FH = "{http://purl.org/syndication/history/1.0}"


@pytest.fixture(scope="module")
def publisher() -> Iterator[Publisher]:
    """The sample publisher, without its latency."""
    with Publisher() as publisher:
        yield publisher


@pytest.fixture(params=[0, 1], ids=["atom", "rss"])
def feed(publisher: Publisher, request: pytest.FixtureRequest) -> SampleFeed:
    """One of its feeds."""
    return publisher.feeds[int(request.param)]


def links(document: ET.Element) -> dict[str, str]:
    head = document.find("channel") if document.tag == "rss" else document
    assert head is not None
    return {link.get("rel", ""): link.get("href", "") for link in head.findall(f"{ATOM}link")}


def identities(document: ET.Element) -> list[str]:
    found = [element.findtext(f"{ATOM}id") for element in document.findall(f"{ATOM}entry")]
    return [text or "" for text in found or [item.findtext("guid") for item in document.iter("item")]]


def chain(publisher: Publisher, feed: SampleFeed) -> list[ET.Element]:
    """The documents along prev-archive, newest first."""
    found, url = [], publisher.url(feed.path)
    while url:
        found.append(ET.fromstring(feed.documents[url.removeprefix(publisher.url(""))]))
        url = links(found[-1]).get("prev-archive", "")
    return found


def test_the_archives_hang_together_both_ways(publisher: Publisher, feed: SampleFeed) -> None:
    """RFC 5005 §4: prev-archive leads to the oldest; next-archive and current lead back."""
    documents = chain(publisher, feed)

    assert len(documents) == len(feed.documents)
    for newer, older in pairwise(documents[1:]):
        assert links(older)["next-archive"] == links(newer)["self"]
    for archive in documents[1:]:
        assert links(archive)["current"] == publisher.url(feed.path)
        assert len(list(archive.iter(f"{FH}archive"))) == 1
    assert list(documents[0].iter(f"{FH}archive")) == []


def test_the_atom_feed_has_at_least_40_archive_documents(publisher: Publisher) -> None:
    """The demo shows a long archived Atom feed, and an RSS one beside it, with their media types."""
    assert len(publisher.feeds[0].documents) > 40
    assert publisher.feeds[0].media_type == "application/atom+xml"
    assert publisher.feeds[1].media_type == "application/rss+xml"


def test_the_number_of_entries_is_that_of_the_identities_in_the_chain(
    publisher: Publisher, feed: SampleFeed
) -> None:
    """The number of entries that the demo promises is what its chain holds; its feed alone shows ten."""
    documents = chain(publisher, feed)
    assert len({identity for document in documents for identity in identities(document)}) == feed.entries
    assert feed.entries >= 150
    assert len(identities(documents[0])) == RECENT


def test_entries_stand_newest_first_and_every_one_has_a_page(publisher: Publisher) -> None:
    """The demo's newest entries stand on top, and each one's link opens a page."""
    document = ET.fromstring(publisher.feeds[0].documents[publisher.feeds[0].path])
    dates = [entry.findtext(f"{ATOM}published") or "" for entry in document.findall(f"{ATOM}entry")]
    assert dates == sorted(dates, reverse=True)
    for entry in document.findall(f"{ATOM}entry"):
        link = entry.find(f"{ATOM}link")
        assert link is not None
        with urllib.request.urlopen(link.get("href", ""), timeout=10) as response:
            assert response.headers["Content-Type"] == "text/html; charset=utf-8"


def test_the_texts_are_the_same_at_every_start(publisher: Publisher) -> None:
    """But for the port the demo's feeds are the same at each start, so that what is shown can be repeated."""
    with Publisher() as other:
        for mine, theirs in zip(publisher.feeds, other.feeds, strict=True):
            here, there = publisher.url("").encode(), other.url("").encode()
            assert {path: body.replace(here, b"") for path, body in mine.documents.items()} == {
                path: body.replace(there, b"") for path, body in theirs.documents.items()
            }


def test_the_reader_counts_entries_and_revalidates(publisher: Publisher, feed: SampleFeed) -> None:
    """The demo's reader counts entries and bytes rightly, and gets a 304 for the ETag that it was given."""
    before = publisher.request_count
    answer = ask(publisher.url(feed.path))
    assert (answer.status, answer.entries, answer.state) == (200, RECENT, "")
    assert answer.wire_bytes == len(feed.documents[feed.path])
    unchanged = ask(publisher.url(feed.path), etag=answer.etag)
    assert (unchanged.status, unchanged.entries, unchanged.wire_bytes) == (304, 0, 0)
    assert publisher.request_count == before + 2


def test_the_front_page_leads_to_the_feeds_and_unknown_paths_nowhere(publisher: Publisher) -> None:
    """A browser finds both feeds on the demo publisher's front page; other paths are 404."""
    with urllib.request.urlopen(publisher.url("/"), timeout=10) as response:
        page = response.read().decode()
    for feed in publisher.feeds:
        assert f'type="{feed.media_type}" title="' in page
        assert f'href="{feed.path}"' in page
    with pytest.raises(urllib.error.HTTPError) as caught:
        urllib.request.urlopen(publisher.url("/nothing"), timeout=10)
    assert caught.value.code == 404
    caught.value.close()


def test_a_feed_s_url_is_encoded_whole_into_the_proxy_s() -> None:
    """A feed URL with a query of its own is encoded, so that no part of it is taken for the proxy's."""
    assert proxied("http://127.0.0.1:8080", "http://a.example/?x=1&y=2") == (
        "http://127.0.0.1:8080/feed?url=http%3A%2F%2Fa.example%2F%3Fx%3D1%26y%3D2"
    )


def test_another_port_is_taken_when_the_preferred_one_is_not_free() -> None:
    """`make demo` works while port 8080 is in use: it takes a free one."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert free_port(port) not in (0, port)


def demo_environment(folder: Path) -> dict[str, str]:
    """The developer's environment, and one variable that the demonstration must not pass on."""
    return os.environ | {"TMPDIR": str(folder), "WHOLEFEED_STORE_PATH": "/nonexistent/feeds.db"}


def test_the_demonstration_gets_every_entry_of_each_feed(tmp_path: Path) -> None:
    """Documents, entries and state are told, and nothing is left behind."""
    done = subprocess.run(
        [sys.executable, "-m", "demo", "--once", "--port", str(free_port(0))],
        cwd=ROOT,
        env=demo_environment(tmp_path),
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    told = re.findall(r"= (\d+) of (\d+) entries out of (\d+) documents \((\w+)\)", done.stdout)
    with Publisher() as publisher:
        expected = [
            (str(feed.entries), str(feed.entries), str(len(feed.documents)), feed.state)
            for feed in publisher.feeds
        ]
    assert told == expected
    assert done.stdout.count("status 304") == 3
    assert list(tmp_path.iterdir()) == []


def test_the_demonstration_leaves_the_proxy_to_try_until_it_is_ended(tmp_path: Path) -> None:
    """The demo prints a URL that works until it is ended, exits 0, and leaves no file or server behind."""
    port = free_port(0)
    with subprocess.Popen(
        [sys.executable, "-u", "-m", "demo", "--port", str(port)],
        cwd=ROOT,
        env=demo_environment(tmp_path),
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        shown = list(iter(process.stdout.readline, "Ctrl-C ends it all and cleans up.\n"))
        url = next(
            line.strip() for line in shown if line.startswith(f"  http://127.0.0.1:{port}/feed?url=http%3A")
        )
        assert ask(url).state == "complete"
        process.terminate()
        assert process.wait(30) == 0
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(urllib.error.URLError, match="refused"):
        ask(url)


def test_a_proxy_that_does_not_start_is_told_with_the_end_of_its_log(tmp_path: Path) -> None:
    """When the demo's proxy cannot start, the error says how it ended instead of waiting."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with (
            pytest.raises(ProxyFailedError, match="ended with exit code 1"),
            running_proxy(tmp_path, taken.getsockname()[1]),
        ):
            pytest.fail("the port is not free")
