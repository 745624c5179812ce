"""`wholefeed explain`: what the proxy sees of a feed, document by document."""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from wholefeed.cli.command import Command, add_url, load_for_result, run, seconds
from wholefeed.cli.feeds import summary, unfinished
from wholefeed.cli.output import show, tell
from wholefeed.core.slugs import in_words
from wholefeed.core.text.dates import DAY_SECONDS
from wholefeed.errors import UnknownFeedError

_HEADINGS: Final = ("document", "led to by", "standing", "age", "entries", "duplicates")
_UNITS: Final = (("d", DAY_SECONDS), ("h", 3600), ("min", 60), ("s", 1))
_MEMORY: Final = "(copies of what has left the subscription document)"


def explained(status: Mapping[str, Any], now: float) -> str:
    """Return the status object with its chain as text.

    Args:
        status: As GET /status answers.
        now: Epoch seconds.
    """
    lines = [status["url"], f"  {summary(status)}", f"  first seen {status['since']}", ""]
    lines += _table(status["chain"], now)
    lines.append("")
    if status["failure"] is not None:
        lines.append(f"stale: {_reason(status['failure'], now)}")
    if status.get("paused_until") is not None:
        lines.append(f"the publisher's host is left alone until {status['paused_until']}")
    lines += _collected(status.get("collection"))
    if status["ending"] is not None:
        lines.append(f"the walk ended: {status['ending']['text']}")
    elif status["walking"]:
        lines.append("the walk goes on")
    lines += [f"note: {note['text']}" for note in _beside(status)]
    return "\n".join(lines) + "\n"


def _collected(known: Mapping[str, Any] | None) -> list[str]:
    """How a history was found that the publisher does not link."""
    if known is None:
        return []
    if known["walked"] is None:
        again = f", tried again {known['next_attempt']}" if known["next_attempt"] else ""
        reason = known["reason"] or "not read to their end yet"
        return [f"older pages are not linked; asked for as those of {known['adapter']}: {reason}{again}"]
    claim = f" of {known['claimed']} that it claims" if known["claimed"] is not None else ""
    pages = "1 page" if known["pages"] == 1 else f"{known['pages']} pages"
    found = f"found as the pages of {known['adapter']} ({known['way']}), which nothing links"
    return [f"{found}: {known['collected']} entries{claim} on {pages}, read to the end {known['walked']}"]


def _row(document: Mapping[str, Any], now: float) -> tuple[str, ...]:
    name = _MEMORY if document["role"] == "memory" else document["url"]
    relation = document["relation"] or document.get("adapter") or ""
    if document["role"] is None:
        return (name, relation, document["standing"], "", "", "")
    age = _duration(now - _instant(document["fetched"]))
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
    lines = [_reason(document["failure"], now)] if document["failure"] is not None else []
    if (memento := document.get("memento")) is not None:
        lines.append(f"from a web archive, as of {memento['captured']}: {memento['url']}")
    return lines + [note["text"] for note in document["notes"]]


def _reason(failure: Mapping[str, Any], now: float) -> str:
    status = f", status {failure['status']}" if failure["status"] else ""
    left = _instant(failure["next_attempt"]) - now if failure["next_attempt"] else 0.0
    again = f"again in {_duration(left)}" if left > 0 else "again when it is asked for"
    times = "once" if failure["attempts"] == 1 else f"{failure['attempts']} times"
    slug = failure["reason"]
    return f"{in_words(slug)} ({slug}{status}); tried {times}, {again}"


def _beside(status: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The notes on the feed that are not told with a document of the chain, or as its end, already."""
    told = {note["text"] for document in status["chain"] for note in document["notes"]}
    told |= {status["ending"]["text"]} if status["ending"] is not None else set()
    return [note for note in status["notes"] if note["text"] not in told]


def _instant(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


def _duration(seconds: float) -> str:
    """Return a duration in its largest unit; one below zero as none."""
    left = max(int(seconds), 0)
    unit, size = next(((unit, size) for unit, size in _UNITS if left >= size), _UNITS[-1])
    return f"{left // size} {unit}"


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
