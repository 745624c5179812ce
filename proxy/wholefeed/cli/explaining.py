"""`wholefeed explain`: what the proxy sees of a feed, document by document."""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from wholefeed.cli.command import Command, add_url, load_for_result, run, seconds
from wholefeed.cli.feeds import summary, unfinished
from wholefeed.cli.output import show, tell
from wholefeed.core.text.spans import duration
from wholefeed.core.words import failure_in_words, instant_of, words_of
from wholefeed.errors import UnknownFeedError

_HEADINGS: Final = ("document", "led to by", "standing", "age", "entries", "duplicates")
_MEMORY: Final = "(copies of what has left the subscription document)"


def explained(status: Mapping[str, Any], now: float) -> str:
    """Return the status object with its chain as text.

    Args:
        status: As GET /status answers.
        now: Epoch seconds.
    """
    said = words_of(status, now)
    lines = [status["url"], f"  {summary(status)}", f"  first seen {status['since']}"]
    lines += [f"  {said.state.meaning}", f"  {said.state.advice}", ""]
    lines += _table(status["chain"], now)
    lines.append("")
    if said.stale is not None:
        lines += [f"stale: {said.stale.meaning}", f"  {said.stale.advice}"]
    lines += [*said.troubles, *said.remarks]
    if said.ending:
        lines.append(f"the walk ended: {said.ending}")
    elif status["walking"]:
        lines.append("the walk goes on")
    lines += [f"note: {text}" for text in _beside(status, said.ending)]
    return "\n".join(lines) + "\n"


def _row(document: Mapping[str, Any], now: float) -> tuple[str, ...]:
    name = _MEMORY if document["role"] == "memory" else document["url"]
    relation = document["relation"] or document.get("adapter") or ""
    if document["role"] is None:
        return (name, relation, document["standing"], "", "", "")
    age = duration(now - instant_of(document["fetched"]))
    counts = (str(document["entries"]), str(document["duplicates"]))
    return (name, relation, document["standing"], age, *counts)


def _table(chain: Sequence[Mapping[str, Any]], now: float) -> Iterator[str]:
    """Lay out a row for each document, with what is remarked on it below."""
    rows = [_HEADINGS, *(_row(document, now) for document in chain)]
    remarks: list[list[str]] = [[], *(_remarks(document, now) for document in chain)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(_HEADINGS))]
    for row, below in zip(rows, remarks, strict=True):
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        yield from (f"    {line}" for line in below)


def _remarks(document: Mapping[str, Any], now: float) -> list[str]:
    lines = [failure_in_words(document["failure"], now)] if document["failure"] is not None else []
    if (memento := document.get("memento")) is not None:
        lines.append(f"from a web archive, as of {memento['captured']}: {memento['url']}")
    return lines + [note["text"] for note in document["notes"]]


def _beside(status: Mapping[str, Any], ending: str) -> list[str]:
    """The notes on the feed that are not told with a document of the chain, or as its end, already."""
    told = {note["text"] for document in status["chain"] for note in document["notes"]} | {ending}
    return [note["text"] for note in status["notes"] if note["text"] not in told]


def _add_explain(parser: argparse.ArgumentParser) -> None:
    add_url(parser)
    wait_help = "seconds to wait for the whole history of a feed that is not known (limits.walk_seconds)"
    parser.add_argument("--wait", metavar="S", type=seconds, help=wait_help)
    parser.add_argument("--json", action="store_true", help="print what GET /status answers")


def _explain(options: argparse.Namespace) -> int:
    config = load_for_result(options)
    from wholefeed.cli.backend import reach
    from wholefeed.cli.once import explain_once
    from wholefeed.cli.sink import watched
    from wholefeed.web.request_target import feed_url

    url = feed_url(options.url)
    try:
        status = reach(config).account(url)
    except UnknownFeedError:
        tell("nothing is stored of it: fetching it now, without keeping it")
        with watched() as progress:
            work = explain_once(config, url, wait_seconds=options.wait, progress=progress)
            status = run(work)
    if options.json:
        show(json.dumps(status, indent=2, ensure_ascii=False) + "\n")
    else:
        show(explained(status, time.time()))
    return unfinished(status)


EXPLAIN: Final = Command(
    name="explain",
    summary="tell what the proxy sees of a feed: each document, what led to it, what is missing and why",
    examples="  wholefeed explain https://example.org/feed.atom\n"
    "  wholefeed explain --json https://example.org/feed.atom",
    run=_explain,
    add_arguments=_add_explain,
)
