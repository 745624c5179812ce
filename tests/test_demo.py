"""The demonstration's publisher and reader: they must be right before the proxy is judged by them."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO
from xml.etree import ElementTree as ET

import pytest

from demo.proxy_process import ProxyFailedError, free_port, running_proxy
from demo.publisher import Publisher
from demo.reader import ask

ROOT = Path(__file__).parent.parent
ATOM = "{http://www.w3.org/2005/Atom}"


@pytest.fixture(scope="module")
def publisher() -> Iterator[Publisher]:
    """The sample publisher, without its latency."""
    with Publisher() as publisher:
        yield publisher


def test_entries_stand_newest_first_and_every_one_has_a_page(publisher: Publisher) -> None:
    """The demo's newest entries stand on top, and each one's link opens a page."""
    document = ET.fromstring(publisher.feeds[0].documents[publisher.feeds[0].path])
    dates = [entry.findtext(f"{ATOM}published") or "" for entry in document.findall(f"{ATOM}entry")]
    assert dates == sorted(dates, reverse=True)
    for entry in document.findall(f"{ATOM}entry"):
        link = entry.find(f"{ATOM}link")
        assert link is not None
        with urllib.request.urlopen(link.get("href", ""), timeout=300) as response:
            assert response.headers["Content-Type"] == "text/html; charset=utf-8"


def test_the_texts_are_the_same_at_every_start(publisher: Publisher) -> None:
    """Except for the port the demo's feeds are the same at each start, so that its output is repeatable."""
    with Publisher() as other:
        for mine, theirs in zip(publisher.feeds, other.feeds, strict=True):
            here, there = publisher.url("").encode(), other.url("").encode()
            assert {path: body.replace(here, b"") for path, body in mine.documents.items()} == {
                path: body.replace(there, b"") for path, body in theirs.documents.items()
            }


def test_the_front_page_leads_to_the_feeds_and_unknown_paths_nowhere(publisher: Publisher) -> None:
    """A browser finds both feeds on the demo publisher's front page; other paths are 404."""
    with urllib.request.urlopen(publisher.url("/"), timeout=300) as response:
        page = response.read().decode()
    for feed in publisher.feeds:
        assert f'type="{feed.media_type}" title="' in page
        assert f'href="{feed.path}"' in page
    with pytest.raises(urllib.error.HTTPError) as caught:
        urllib.request.urlopen(publisher.url("/nothing"), timeout=300)
    assert caught.value.code == 404
    caught.value.close()


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


@contextmanager
def demonstration(folder: Path, port: int) -> Iterator[tuple[subprocess.Popen[str], IO[str]]]:
    """Start a demonstration; yield it and its output, and end it."""
    with subprocess.Popen(
        [sys.executable, "-u", "-m", "demo", "--port", str(port)],
        cwd=ROOT,
        env=demo_environment(folder),
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        yield process, process.stdout


def test_the_demonstration_gets_every_entry_of_each_feed(tmp_path: Path) -> None:
    """It prints the true documents, entries and state of a long archived Atom feed with its media type, and
    of an RSS one; nothing is left behind."""
    done = subprocess.run(
        [sys.executable, "-m", "demo", "--once", "--port", str(free_port(0))],
        cwd=ROOT,
        env=demo_environment(tmp_path),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    told = re.findall(r"= (\d+) of (\d+) entries out of (\d+) documents \((\w+)\)", done.stdout)
    with Publisher() as publisher:
        atom, rss, *_ = publisher.feeds
        assert (atom.media_type, rss.media_type) == ("application/atom+xml", "application/rss+xml")
        assert len(atom.documents) > 40
        assert min(atom.entries, rss.entries) >= 150
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
    with demonstration(tmp_path, port) as (process, output):
        shown = list(iter(output.readline, "Ctrl-C ends it all and cleans up.\n"))
        url = next(
            line.strip() for line in shown if line.startswith(f"  http://127.0.0.1:{port}/feed?url=http%3A")
        )
        assert f"Look at it: open http://127.0.0.1:{port}/ in a browser.\n" in shown
        page = urllib.request.Request(f"http://127.0.0.1:{port}/", headers={"Accept": "text/html"})
        with urllib.request.urlopen(page, timeout=300) as response:
            shown_feeds = response.read()
        assert b"Keeper" in shown_feeds
        assert ask(url).state == "complete"
        process.terminate()
        assert process.wait(30) == 0
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(urllib.error.URLError, match="refused"):
        ask(url)


def test_the_proxy_ends_with_a_demonstration_that_is_killed(tmp_path: Path) -> None:
    """After SIGKILL nobody stops the proxy or cleans up: it ends by itself and removes its folder."""
    port = free_port(0)
    with demonstration(tmp_path, port) as (process, output):
        for line in output:
            if line.startswith("The proxy on"):
                break
        assert list(tmp_path.iterdir()) != []
        process.kill()
    until = time.monotonic() + 30
    while list(tmp_path.iterdir()) and time.monotonic() < until:
        time.sleep(0.05)
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(urllib.error.URLError, match="refused"):
        urllib.request.urlopen(f"http://127.0.0.1:{port}/healthz", timeout=300)


def test_a_proxy_that_does_not_start_is_told_with_the_end_of_its_log(tmp_path: Path) -> None:
    """The error says how the proxy ended instead of waiting."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with (
            pytest.raises(ProxyFailedError, match="ended with exit code 1"),
            running_proxy(tmp_path, taken.getsockname()[1]),
        ):
            pytest.fail("the port is not free")
