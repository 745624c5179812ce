"""The benchmarks run, end by themselves, and would notice a wrong result. What they measure is not tested."""

from __future__ import annotations

import functools
import re
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.support.feeds import Chain
from benchmarks.support.publisher import Counts, running_publisher
from benchmarks.support.report import expect
from wholefeed.core.links.classify import classify
from wholefeed.core.parse.documents import parse

ROOT = Path(__file__).parent.parent
CHAIN = ["--archives", "2", "--entries", "5", "--entry-bytes", "600"]

SMALL = {
    "compose": [*CHAIN, "--runs", "2"],
    "deflate": [],
    "hostile": ["--megabytes", "0.1", "--copies", "1", "--seconds", "0"],
    "memory": CHAIN,
    "parse": ["--megabytes", "0.1", "--runs", "1"],
    "soak": [*CHAIN, "--readers", "5", "--feeds", "3", "--seconds", "3", "--failing", "0"],
    "serve": [*CHAIN, "--connections", "3", "--seconds", "0.2"],
    "store": ["3", "5"],
    "walk": [*CHAIN, "--runs", "1", "--latency-ms", "1", "--body-ms", "2"],
}
"""Every benchmark, with arguments that make it short."""


@functools.cache
def run(name: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", f"benchmarks.{name}", *SMALL[name]],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )


@pytest.mark.parametrize("name", SMALL)
def test_the_benchmark_ends_without_an_error_and_shows_a_table(name: str) -> None:
    """Each benchmark runs as it stands, ends with exit 0, prints figures, and says nothing on stderr."""
    done = run(name)
    assert done.returncode == 0, done.stderr
    assert len(re.findall(r"\d", done.stdout)) > 20, done.stdout
    assert done.stderr == ""


@pytest.mark.parametrize("name", ["compose", "memory", "serve", "walk"])
def test_the_benchmark_shows_its_command_and_how_many_entries_came(name: str) -> None:
    """A result can be repeated: it comes with its command, the Python version and the count of entries."""
    out = run(name).stdout
    assert f"command: python -m benchmarks.{name} {' '.join(SMALL[name])}\n" in out
    assert f"Python {sys.version_info.major}.{sys.version_info.minor}." in out
    assert "3 documents, 15 entries" in out


def test_make_bench_runs_every_benchmark() -> None:
    """The Makefile runs each module of the folder; what they share stands in a folder below."""
    modules = {path.stem for path in (ROOT / "benchmarks").glob("[a-z]*.py")}
    assert modules == set(SMALL)
    assert "benchmarks/[a-z]*.py" in (ROOT / "Makefile").read_text("utf-8")


def test_a_wrong_result_ends_a_benchmark_with_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    """A fast but wrong answer is no measurement: one entry too few ends the benchmark."""
    expect("entries", 15, 15)
    with pytest.raises(SystemExit, match="WRONG entries: expected 15, got 14"):
        expect("entries", 14, 15)


@pytest.mark.parametrize("links_last", [False, True])
def test_the_generated_documents_hold_every_entry_once_and_lead_to_each_other(links_last: bool) -> None:
    """RFC 5005, section 4."""
    chain = Chain(archives=3, entries=4, entry_bytes=800, links_last=links_last)
    base = "http://o.test"
    url, body, ids, sizes = f"{base}/feed", chain.subscription(base), [], []
    for left in range(chain.archives, -1, -1):
        document = parse(body, url)
        ids += [entry.identity for entry in document.entries]
        sizes += [entry.end - entry.start for entry in document.entries]
        url = classify(document).links.get("prev-archive", "")
        assert url == (f"{base}/archive/{left}" if left else "")
        body = chain.archive(base, max(left, 1))
    assert len(ids) == len(set(ids)) == chain.total_entries == 16
    assert all(700 < size < 900 for size in sizes)


def test_one_entry_more_moves_the_subscription_document_by_one() -> None:
    """A refresh is measured on a real change: one new entry in front, the last one out."""
    chain = Chain(archives=1, entries=4, entry_bytes=500)
    before, after = (
        parse(chain.subscription("http://o.test", added=n), "http://o.test/feed") for n in (0, 1)
    )
    assert [entry.identity for entry in after.entries[1:]] == [entry.identity for entry in before.entries[:3]]
    assert after.entries[0].identity not in {entry.identity for entry in before.entries}


def test_the_publisher_runs_by_itself_and_counts_what_it_is_asked() -> None:
    """The publisher of the benchmarks serves its archives and counts requests and connections between two
    looks."""
    chain = Chain(archives=1, entries=2, entry_bytes=500)
    with running_publisher(chain, body_seconds=0.01) as publisher:
        got = subprocess.run(
            [sys.executable, "-c", ASK_TWICE, publisher.url("/archive/1")],
            capture_output=True,
            check=True,
            timeout=30,
        ).stdout
        assert got == chain.archive(publisher.url("").rstrip("/"), 1) * 2
        assert publisher.counts() == Counts(requests=2, connections=1)
        assert publisher.counts() == Counts(requests=0, connections=0)


ASK_TWICE = """
import sys, requests
with requests.Session() as session:
    session.trust_env = False
    for _ in range(2):
        sys.stdout.buffer.write(session.get(sys.argv[1], timeout=10).content)
"""
