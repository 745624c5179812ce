"""The table of docs/performance.md: its rows, and their values from stored results."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from benchmarks.support.figures import amount, shown, times

COLUMNS: Final = ("0.1", "before", "now")
"""Labels of results; a column appears if a result of its label is stored."""
_BEGIN: Final = "<!-- made by `python -m benchmarks.table --render` -->"
_END: Final = "<!-- end of what was made -->"


class Row(NamedTuple):
    """A row: its text, its figures, and its target."""

    what: str
    figure: str
    """Its name, or the common beginning of several sizes: then the last measured counts."""
    target: str


_AIOHTTP: Final = "aiohttp"

ROWS: Final = (
    Row("304 for a fresh feed, CPU", "answer.304.cpu", "at most 2.9 times bare aiohttp"),
    Row("200, gzip, 20 KB, CPU", "answer.200.cpu", "at most 2.9 times bare aiohttp with the same bytes"),
    Row("`/healthz`, CPU", "answer.healthz.cpu", "at most 2.5 times bare aiohttp"),
    Row("304, on asyncio's own loop, CPU", "asyncio.304.cpu", "at most 4 times bare aiohttp"),
    Row("200, on asyncio's own loop, CPU", "asyncio.200.cpu", "at most 5 times bare aiohttp"),
    Row("`/healthz`, on asyncio's own loop, CPU", "asyncio.healthz.cpu", "at most 2.5 times bare aiohttp"),
    Row("304, wall, one connection, p50", "answer.304.p50", ""),
    Row("200, wall, one connection, p50", "answer.200.p50", ""),
    Row("first walk, 7.9 MB in 101 documents of 100 entries, CPU", "first.cpu", "at most 1/11 of it"),
    Row("the same of 20 entries, each of 3.8 KB", "long.cpu", ""),
    Row("a cold feed of one document (12 KB, 10 entries), CPU", "refresh.cold.cpu", "at most 0.9 of it"),
    Row("the same, with looks at its site for lists", "refresh.listed.cpu", "at most 0.4 of it more"),
    Row("a refresh that the publisher answers with 304, CPU", "refresh.304.cpu", "at most 0.12 of it"),
    Row("a refresh that brings one new entry, CPU", "refresh.changed.cpu", "at most 1 of it"),
    Row("the next one", "refresh.again.cpu", "at most 1.3 of it"),
    Row("trips to PostgreSQL: a first request", "postgres.cold", "at most 60"),
    Row("trips to PostgreSQL: a refresh without news", "postgres.304", "at most 25"),
    Row("trips to PostgreSQL: a refresh, one new entry", "postgres.changed", "at most 40"),
    Row("trips to PostgreSQL: the next one", "postgres.again", "at most 40"),
    Row("calls of SQLite's threads: fresh 304", "hops.304 answer", "0"),
    Row("calls of SQLite's threads: fresh 200", "hops.200 answer", "0"),
    Row("calls of SQLite's threads: cold feed", "hops.cold", ""),
    Row("calls of SQLite's threads: refresh, 304", "hops.304 refresh", ""),
    Row("calls of SQLite's threads: refresh, one new entry", "hops.changed", ""),
    Row("calls of SQLite's threads: first GET, 3 archives", "hops.first, 3", ""),
    Row("composing 100 entries a document from nothing, wall a document", "compose", "at most 1/3 of 0.1"),
    Row("100 archives at 50 ms, wall", "walk.50ms", "at most 1.15 times curl told all URLs"),
    Row("soak: 1,000 readers, 200 feeds", "soak.answers", "at least 5 times 0.1"),
    Row("soak: CPU of the server an answer", "soak.cpu", ""),
    Row("soak: memory, the most", "soak.memory", "as 0.1"),
    Row("`/healthz` during a document of 26 MB, p99", "large.healthz.p99, 26", "50 ms"),
    Row("the same, the slowest", "large.healthz.max, 26", "250 ms"),
    Row("`/healthz` during 200,000 small entries, p99", "large.healthz.p99, 200,000", "50 ms"),
    Row("the same, the slowest", "large.healthz.max, 200,000", "250 ms"),
    Row("first walk through documents of 1 MB, peak", "memory.walk.peak", "150 MB"),
    Row("large feed to 4 readers, peak", "memory.serve.peak", "100 MB"),
    Row("large feed to 4 readers, first byte", "memory.serve.first byte", "50 ms"),
    Row("many feeds, a tenth due, 100 requests/s: fresh answers, p50", "many.fresh.p50", ""),
    Row("the same, p99", "many.fresh.p99", "20 ms"),
    Row("the same, CPU an answer", "many.cpu", ""),
    Row("the same, memory", "many.memory", "stated"),
    Row("the same, database", "many.database", "stated"),
    Row("the same, start-up to `/readyz`", "many.start", "1 s"),
)

Result = Mapping[str, Any]


def kept(folder: Path) -> dict[str, Result]:
    """Return the newest stored result of each label, completed with figures of earlier ones.

    Results of those figures are listed under `earlier`.
    """
    results = [json.loads(path.read_text("utf-8")) for path in sorted(folder.glob("*.json"))]
    found: dict[str, Result] = {}
    for each in sorted(results, key=lambda result: str(result["at"])):
        before = found.get(each["label"], {"figures": [], "earlier": []})
        measured = {str(figure["name"]) for figure in each["figures"]}
        rest = [figure for figure in before["figures"] if str(figure["name"]) not in measured]
        earlier = [before, *before["earlier"]] if rest else []
        found[each["label"]] = {**each, "figures": [*rest, *each["figures"]], "earlier": earlier}
    return found


def table(results: Mapping[str, Result]) -> str:
    """Return the table in Markdown, with a line for each column's source."""
    columns = [label for label in COLUMNS if label in results]
    heads = ["what", "beside it", *columns, "target"]
    lines = ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
    for row in ROWS:
        found = {label: _figure(results[label], row.figure) for label in columns}
        beside = " and ".join(_besides([each for each in found.values() if each]))
        cells = [row.what, beside, *(_cell(found[label], row.figure) for label in columns), row.target]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join([*lines, "", *_sources(results)])


def render(page: Path, results: Mapping[str, Result]) -> None:
    """Put the table into the page, between its two marks."""
    before, mark, rest = page.read_text("utf-8").partition(_BEGIN)
    _, end, after = rest.partition(_END)
    assert mark, f"{page} must have the mark {_BEGIN}"
    assert end, f"{page} must have the mark {_END}"
    page.write_text(f"{before}{_BEGIN}\n{table(results)}\n{_END}{after}", "utf-8")


def _figure(result: Result, name: str) -> Result | None:
    figures = reversed(result["figures"])
    return next((each for each in figures if str(each["name"]).startswith(name)), None)


def _besides(figures: Sequence[Result]) -> Iterator[str]:
    """Yield the others beside a figure; the bare handler is named in full."""
    names = dict.fromkeys(who for figure in figures for who in figure["beside"])
    yield from ({_AIOHTTP: "bare aiohttp"}.get(name, name) for name in names)


def _cell(figure: Result | None, name: str) -> str:
    """Return the least value, the median, the ratios, and a variable size."""
    if figure is None:
        return ""
    ratios = [f"{amount(times(figure['values'], other))} times" for other in figure["beside"].values()]
    _, is_sized, size = str(figure["name"]).partition(", ")
    sizes = [size] if is_sized and "," not in name else []
    return "; ".join([f"{shown(figure['values'])} {figure['unit']}", *ratios, *sizes])


def _sources(results: Mapping[str, Result]) -> Iterator[str]:
    for label in COLUMNS:
        if label in results:
            result = results[label]
            machine = result["machine"]
            yield (
                f"* {label}: commit {result['commit']}, {result['date']}, Python {machine['python']},"
                f" {machine['cores']} cores, {machine['cpu']}"
                + "".join(f"; other rows: commit {e['commit']}, {e['date']}" for e in result["earlier"])
            )
