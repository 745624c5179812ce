"""The benchmarks run, end by themselves, and notice a wrong result. Their figures are not tested."""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from benchmarks.support.feeds import Chain
from benchmarks.support.figures import Figure
from benchmarks.support.publisher import Counts, running_publisher
from benchmarks.support.report import expect
from benchmarks.support.rows import COLUMNS, ROWS, kept, table
from benchmarks.support.tree import HERE, tree_at
from benchmarks.support.usage import cpu_seconds
from benchmarks.table import keep
from tests.postgres import what_lacks
from wholefeed.core.links import classify
from wholefeed.core.parse.documents import parse

ROOT = Path(__file__).parent.parent
CHAIN = ["--archives", "2", "--entries", "5", "--entry-bytes", "600"]

SMALL = {
    "answers": ["--requests", "32", "--runs", "1", "--hops"],
    "collected": ["--posts", "120", "--times", "1"],
    "compose": [*CHAIN, "--runs", "2"],
    "costly": ["--megabytes", "0.02"],
    "deflate": [],
    "engine": ["--times", "40"],
    "first": [*CHAIN, "--runs", "1", "--hops"],
    "hostile": [
        *("--megabytes", "0.1", "--copies", "1", "--seconds", "0", "--costly-megabytes", "0.02"),
        *("--listed", "3", "--pages", "1", "--body-megabytes", "0.02"),
    ],
    "large": ["--runs", "1", "--scale", "0.01"],
    "many": ["--feeds", "20", "--seconds", "1"],
    "memory": CHAIN,
    "parse": ["--megabytes", "0.1", "--runs", "1"],
    "replay": ["--archives", "1", "--times", "1"],
    "replicas": ["--feeds", "20", "--seconds", "1", "--replicas", "2", "--per-second", "10"],
    "refresh": ["--feeds", "2", "--runs", "1", "--hops", "--trips"],
    "sites": [],
    "soak": [*CHAIN, "--readers", "5", "--feeds", "3", "--seconds", "3", "--failing", "0"],
    "serve": [*CHAIN, "--connections", "3", "--seconds", "0.2"],
    "store": ["3", "5"],
    "table": ["--only", "hops", "--runs", "1", "--results", "RESULTS"],
    "walk": [*CHAIN, "--runs", "1", "--latency-ms", "1", "--body-ms", "2"],
}
"""Every benchmark, with arguments that make it short."""
ALWAYS = {"compose", "deflate", "engine", "parse", "table"}
"""Run in the suite; the others start many more processes, and run with --exhaustive."""


COUNTED = {"compose", "memory", "serve", "walk"}
"""They print the number of entries."""
LONG_SECONDS = 600
LACK = what_lacks(is_own=True)
LONG = {"hostile", "replicas"}
"""They start one server after the other."""
MARKED = [
    pytest.param(
        name,
        marks=[
            *([pytest.mark.timeout(LONG_SECONDS)] if name in LONG else ()),
            *([pytest.mark.skipif(bool(LACK), reason=LACK)] if name == "replicas" else ()),
        ],
    )
    for name in SMALL
]
"""Marked: long ones need their time, and replicas a database."""


@pytest.mark.parametrize(("name", "lacks"), [("walk", "feedparser"), ("parse", "feedparser")])
def test_what_a_benchmark_lacks_is_told_with_what_installs_it(name: str, lacks: str) -> None:
    """After `make demo` alone: one line, exit 1, and no traceback. -S hides installed packages."""
    done = subprocess.run(
        [sys.executable, "-S", "-m", f"benchmarks.{name}"],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT / "proxy")},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr == f"{lacks} is not installed here; `make setup` installs what benchmarks need\n"


def run(name: str) -> subprocess.CompletedProcess[str]:
    with tempfile.TemporaryDirectory() as results:
        given = [results if argument == "RESULTS" else argument for argument in SMALL[name]]
        return subprocess.run(
            [sys.executable, "-m", f"benchmarks.{name}", *given],
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=LONG_SECONDS - 10 if name in LONG else 50,
            check=False,
        )


@pytest.mark.parametrize("name", MARKED)
def test_the_benchmark_ends_without_an_error_and_shows_a_table(
    name: str, request: pytest.FixtureRequest
) -> None:
    """Each benchmark runs unchanged, exits 0, prints figures, and is silent on stderr. It prints its command,
    the Python version and the count of entries, so that a result can be repeated."""
    if name not in ALWAYS and not request.config.getoption("--exhaustive"):
        pytest.skip("run by --exhaustive")
    done = run(name)
    out = done.stdout
    assert done.returncode == 0, done.stderr
    assert len(re.findall(r"\d", out)) > 20, out
    assert done.stderr == ""
    if name in COUNTED:
        assert f"command: python -m benchmarks.{name} {' '.join(SMALL[name])}\n" in out
        assert f"Python {sys.version_info.major}.{sys.version_info.minor}." in out
        assert "3 documents, 15 entries" in out


def test_make_bench_runs_every_benchmark() -> None:
    """`make bench` makes the table, `make benchmarks` runs each other module of the folder; shared modules
    stand in a folder below."""
    modules = {path.stem for path in (ROOT / "benchmarks").glob("[a-z]*.py")}
    assert modules == set(SMALL)
    makefile = (ROOT / "Makefile").read_text("utf-8")
    assert "-m benchmarks.table" in makefile
    assert "benchmarks/[a-z]*.py" in makefile


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
    """The benchmarks' publisher serves its archives and counts requests and connections between two looks."""
    chain = Chain(archives=1, entries=2, entry_bytes=500)
    with running_publisher(chain, body_seconds=0.01) as publisher:
        got = subprocess.run(
            [sys.executable, "-c", ASK_TWICE, publisher.url("/archive/1")],
            capture_output=True,
            check=True,
            timeout=300,
        ).stdout
        assert got == chain.archive(publisher.url("").rstrip("/"), 1) * 2
        assert publisher.counts() == Counts(requests=2, connections=1)
        assert publisher.counts() == Counts(requests=0, connections=0)


ASK_TWICE = """
import sys, requests
with requests.Session() as session:
    session.trust_env = False
    for _ in range(2):
        sys.stdout.buffer.write(session.get(sys.argv[1], timeout=300).content)
"""


def test_what_is_kept_fills_its_column_and_a_later_run_replaces_its_figure_alone(tmp_path: Path) -> None:
    """A figure is stored with all its runs; the table shows least, median and ratio of the pairs."""
    cpu = Figure("answer.304.cpu", "µs", [300.0, 200.0, 400.0], {"aiohttp": [100.0, 100.0, 100.0]})
    keep(tmp_path, "now", HERE, [cpu, Figure("soak.answers", "/s", [160.0])])
    keep(tmp_path, "now", HERE, [Figure("soak.answers", "/s", [800.0])])
    results = kept(tmp_path)
    assert set(results) == {"now"}
    assert results["now"]["commit"] == (HERE.commit() or "unknown")
    lines = table(results).splitlines()
    assert "| 304 for a fresh feed, CPU | bare aiohttp | 200 (300) µs; 3.00 times | at most" in lines[2]
    assert any("|  | 800 /s |" in line for line in lines)
    assert "160 /s" not in table(results)


def test_every_kept_result_is_of_a_column_and_every_row_has_a_result() -> None:
    """The folder of results and the page have the same figures."""
    results = kept(ROOT / "benchmarks" / "results")
    assert set(results) <= set(COLUMNS)
    names = {str(each["name"]) for result in results.values() for each in result["figures"]}
    for row in ROWS:
        assert any(name.startswith(row.figure) for name in names), row.what


def test_the_page_shows_what_is_kept() -> None:
    """docs/performance.md was rendered after the last result was stored."""
    page = (ROOT / "docs" / "performance.md").read_text("utf-8")
    assert table(kept(ROOT / "benchmarks" / "results")) in page


def test_cpu_time_counts_what_children_took_that_have_ended_and_that_run() -> None:
    """Work in a pool of processes counts while it runs, and after the processes ended."""
    script = "import subprocess, sys; subprocess.run([sys.executable, '-c', sys.argv[1]]); print(1); input()"
    work = "import time\nwhile time.process_time() < 0.3: pass"
    with subprocess.Popen(
        [sys.executable, "-c", script, work], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        while cpu_seconds(process.pid) < 0.1:
            assert process.poll() is None
        process.stdout.readline()
        assert 0.3 <= cpu_seconds(process.pid) < 5
        process.stdin.close()


def test_another_checkout_is_one_with_a_project_file(tmp_path: Path) -> None:
    """`--tree` takes a checkout, also of 0.1 with its other package name, and refuses others."""
    with pytest.raises(argparse.ArgumentTypeError, match="expected a checkout of wholefeed"):
        tree_at(str(tmp_path))
    (tmp_path / "pyproject.toml").touch()
    assert tree_at(str(tmp_path)).module == "proxy"
    assert tree_at(str(ROOT)).module == "wholefeed"
