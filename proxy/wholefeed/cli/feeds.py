"""The commands about a feed: `wholefeed fetch`, `explain`, `check`, `list`, `refresh` and `forget`."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from wholefeed.cli.base import (
    EXIT_DONE,
    EXIT_ERROR,
    EXIT_UNFINISHED,
    Command,
    add_url,
    json_text,
    load_for_result,
    run,
    seconds,
    show,
    some,
    tell,
)

if TYPE_CHECKING:
    from wholefeed.core.publisher_check import CheckLook, Finding


def _add_fetch(parser: argparse.ArgumentParser) -> None:
    add_url(parser)
    output, output_help = some("the name of a file, or -"), "write to FILE instead of standard output"
    parser.add_argument("-o", "--output", metavar="FILE", type=output, help=output_help)
    wait_help = "seconds to wait for the whole history (limits.walk_seconds)"
    parser.add_argument("--wait", metavar="S", type=seconds, help=wait_help)


def _fetch(options: argparse.Namespace) -> int:
    config = load_for_result(options)
    from wholefeed.cli.backend import DatabaseBackend, ServerBackend, StrangerError, fetch_once
    from wholefeed.cli.output import Termination, opened_output, watch_progress
    from wholefeed.errors import UnknownFeedError
    from wholefeed.web.request import feed_url

    url = feed_url(options.url)
    wait_seconds = config.limits.walk_seconds if options.wait is None else options.wait

    async def work() -> str:
        for feeds in places:
            try:
                if isinstance(feeds, DatabaseBackend) or await feeds.is_there():
                    return await feeds.fetch(url, output, wait_seconds=wait_seconds)
            except StrangerError as exc:
                tell(f"going on without a proxy: {exc}")
            except UnknownFeedError:
                break
        return await fetch_once(config, url, output, wait_seconds=wait_seconds, progress=progress)

    path = None if options.output in (None, "-") else Path(options.output)
    with watch_progress() as progress, Termination() as termination, opened_output(path) as output:
        places = (ServerBackend(config, progress), DatabaseBackend(config, progress))
        state = run(termination.ending(work()))
    return _exit_code(state)


FETCH: Final = Command(
    name="fetch",
    summary="reconstruct one feed and print it (exit code 0: whole, 3: partial or still loading)",
    examples="  wholefeed fetch https://example.org/feed.atom > whole.atom\n"
    "  wholefeed fetch --wait 60 -o whole.rss https://example.org/rss.xml",
    run=_fetch,
    add_arguments=_add_fetch,
)


def _add_explain(parser: argparse.ArgumentParser) -> None:
    add_url(parser)
    wait_help = "seconds to wait for the whole history of a feed that is not known (limits.walk_seconds)"
    parser.add_argument("--wait", metavar="S", type=seconds, help=wait_help)
    parser.add_argument("--json", action="store_true", help="print what GET /status answers")


def _explain(options: argparse.Namespace) -> int:
    config = load_for_result(options)
    from wholefeed.cli.backend import ask, explain_once
    from wholefeed.cli.output import watch_progress
    from wholefeed.errors import UnknownFeedError
    from wholefeed.web.request import feed_url

    url = feed_url(options.url)
    wait_seconds = config.limits.walk_seconds if options.wait is None else options.wait
    is_kept = True
    try:
        status = ask(config, lambda feeds: feeds.account(url))
    except UnknownFeedError:
        is_kept = False
        tell("nothing is stored of this feed: fetching it now, without storing it")
        with watch_progress() as progress:
            status = run(explain_once(config, url, wait_seconds=wait_seconds, progress=progress))
    show(json_text(status) if options.json else explain(status, time.time(), is_kept=is_kept))
    return _exit_code(status["state"])


EXPLAIN: Final = Command(
    name="explain",
    summary="show the documents of a feed, the link to each, and the missing ones with the reasons",
    examples="  wholefeed explain https://example.org/feed.atom\n"
    "  wholefeed explain --json https://example.org/feed.atom",
    run=_explain,
    add_arguments=_add_explain,
)


def explain(status: Mapping[str, Any], now: float, *, is_kept: bool = True) -> str:
    """Return the status object with its chain as text, without future attempts unless `is_kept`."""
    from wholefeed.core.words import STANDINGS, passed_over_in_words, words_of

    said = words_of(status, now)
    lines = [status["url"], f"  {_summary(status)}", f"  seen since {status['since']}"]
    lines += [f"  {text}" for text in (said.state.meaning, said.state.advice) if text]
    lines += ["", *_table(status["chain"], now)]
    standings = dict.fromkeys(document["standing"] for document in status["chain"])
    lines += ["", *(f"{standing}: {STANDINGS[standing]}" for standing in standings)]
    if said.stale is not None:
        lines += [f"stale: {said.stale.meaning}", f"  {said.stale.advice}"]
    lines += [text for text in (said.heard, said.pause, said.next) if text and is_kept]
    lines += said.remarks
    lines += [f"looked at {each['url']}: {passed_over_in_words(each)}" for each in _passed_over(status)]
    if said.ending:
        lines.append(f"the walk ended: {said.ending}")
    lines += [f"note: {text}" for text in _beside(status, said.ending)]
    return "\n".join(lines) + "\n"


def _passed_over(status: Mapping[str, Any]) -> Iterable[Mapping[str, Any]]:
    known = status.get("listing")
    return known["passed_over"] if known is not None and known["url"] is None else ()


_HEADINGS: Final = ("document", "found by", "standing", "age", "entries", "duplicates")


def _table(chain: Sequence[Mapping[str, Any]], now: float) -> Iterator[str]:
    rows = [_HEADINGS, *(_row(document, now) for document in chain)]
    remarks: list[list[str]] = [[], *(_remarks(document, now) for document in chain)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(_HEADINGS))]
    for row, below in zip(rows, remarks, strict=True):
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        yield from (f"    {line}" for line in below)


_MEMORY: Final = "(entries that have left the subscription document)"
_LIST: Final = "list"
"""Relation to a page read as a listing (H7)."""


def _row(document: Mapping[str, Any], now: float) -> tuple[str, ...]:
    from wholefeed.core.words import duration, instant_of

    name = _MEMORY if document["role"] == "memory" else document["url"]
    relation = document["relation"] or document.get("adapter") or (_LIST if document.get("listed") else "")
    if document["role"] is None:
        return (name, relation, document["standing"], "", "", "")
    age = duration(now - instant_of(document["fetched"]))
    counts = (str(document["entries"]), str(document["duplicates"]))
    return (name, relation, document["standing"], age, *counts)


def _remarks(document: Mapping[str, Any], now: float) -> list[str]:
    from wholefeed.core.slugs import failure_in_words
    from wholefeed.core.words import describe_attempt

    lines = []
    if (failure := document["failure"]) is not None:
        why = failure_in_words(failure["reason"], failure["status"])
        lines.append(f"{why} ({failure['reason']}); {describe_attempt(failure, now)}")
    if (memento := document.get("memento")) is not None:
        lines.append(f"from a web archive, as of {memento['captured']}: {memento['url']}")
    if (kept := document.get("import")) is not None:
        lines.append(f"imported, as of {kept['as_of']}: {kept['name']}")
    return lines + [note["text"] for note in document["notes"]]


def _beside(status: Mapping[str, Any], ending: str) -> list[str]:
    """Return the feed's notes that the text does not show elsewhere."""
    from wholefeed.core.notes import DatesGuessed, IdsChanged, IdsUnstable, ValidatorsDoubted

    remarks = [kind.code for kind in (DatesGuessed, IdsChanged, IdsUnstable, ValidatorsDoubted)]
    told = {note["text"] for document in status["chain"] for note in document["notes"]} | {ending}
    told.update(note["text"] for note in status["notes"] if note["code"] in remarks)
    return [note["text"] for note in status["notes"] if note["text"] not in told]


def _add_check(parser: argparse.ArgumentParser) -> None:
    add_url(parser)
    json_help = 'print {"errors": [...], "warnings": [...]}'
    parser.add_argument("--json", action="store_true", help=json_help)


def _check(options: argparse.Namespace) -> int:
    config = load_for_result(options)
    from wholefeed.cli.check_command import check_once
    from wholefeed.cli.output import watch_progress
    from wholefeed.logs import configure_logging
    from wholefeed.web.request import feed_url

    if config.log.level == "info":  # what fails is told as a finding, and not twice
        configure_logging(replace(config.log, level="critical"), sys.stderr)
    url = feed_url(options.url)
    with watch_progress() as progress:
        look, found = run(check_once(config, url, progress))
    errors, warnings = ([each for each in found if each.rule.is_error is level] for level in (True, False))
    if options.json:
        said = {"errors": errors, "warnings": warnings}
        show(json_text({name: [each.as_dict() for each in level] for name, level in said.items()}))
    else:
        show("".join(f"{line}\n" for line in _format_check(look, errors, warnings)))
    return EXIT_ERROR if errors else EXIT_DONE


CHECK: Final = Command(
    name="check",
    summary="check a feed against RFC 5005, for its publisher (exit code 1: it has errors)",
    examples="  wholefeed check https://example.org/feed.atom\n"
    "  wholefeed check --json https://example.org/feed.atom",
    run=_check,
    add_arguments=_add_check,
)


def _format_check(look: CheckLook, errors: Sequence[Finding], warnings: Sequence[Finding]) -> Iterator[str]:
    from wholefeed.core.words import count_noun

    for each in (*errors, *warnings):
        yield f"{'error' if each.rule.is_error else 'warning'}: {each.rule.name}: {each.place}"
        yield from (f"    {each.said}", f"    mend: {each.rule.mend}")
    entries = set().union(*(each.identities for each in look.documents))
    documents = count_noun(len(look.documents), "document", "documents")
    told = f"{count_noun(len(errors), 'error', 'errors')}, {count_noun(len(warnings), 'warning', 'warnings')}"
    yield f"{documents}, {count_noun(len(entries), 'entry', 'entries')} ({look.kind}): {told}"
    if not (errors or warnings):
        yield "All is well: readers can have the whole history of this feed."


def _add_list(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print what GET /feeds answers")


def _list(options: argparse.Namespace) -> int:
    config = load_for_result(options)
    from wholefeed.cli.address import where_looked
    from wholefeed.cli.backend import ask
    from wholefeed.core.words import printable

    found = ask(config, lambda feeds: feeds.list_feeds())
    if options.json:
        show(json_text(found))
        return EXIT_DONE
    for status in found:
        title = f"  {printable(status['title'])}\n" if status["title"] else ""
        show(f"{status['url']}\n{title}  {_summary(status)}\n")
    if not found:
        tell(
            f"no feed is known yet: {where_looked(config)};"
            " one becomes known when a reader asks for it (see `wholefeed url --help`)"
        )
    return EXIT_DONE


LIST: Final = Command(
    name="list",
    summary="list the feeds that the proxy knows, with title and state",
    examples="  wholefeed list\n  wholefeed list --json",
    run=_list,
    add_arguments=_add_list,
)


def _add_refresh(parser: argparse.ArgumentParser) -> None:
    add_url(parser)
    full_help = "fetch every document again, whole, and follow the links that the publisher has now"
    parser.add_argument("--full", action="store_true", help=full_help)
    texts_help = "fetch the pages of entries again, for their texts; nobody waits for these"
    parser.add_argument("--texts", action="store_true", help=texts_help)


def _refresh(options: argparse.Namespace) -> int:
    config = load_for_result(options)
    from wholefeed.cli.backend import ask
    from wholefeed.cli.output import watch_progress
    from wholefeed.core.words import words_of
    from wholefeed.web.request import feed_url

    url = feed_url(options.url)
    with watch_progress() as progress:
        status = ask(
            config, lambda feeds: feeds.refresh(url, is_full=options.full, has_texts=options.texts), progress
        )
    show(f"{_summary(status)}\n")
    if (stale := words_of(status, time.time()).stale) is not None:
        tell(f"stale: {stale.meaning}")
    return _exit_code(status["state"])


REFRESH: Final = Command(
    name="refresh",
    summary="refresh a feed now, without conditions, and try missing documents again (exit code 0:"
    " whole, 3: partial)",
    examples="  wholefeed refresh https://example.org/feed.atom\n"
    "  wholefeed refresh --full https://example.org/feed.atom",
    run=_refresh,
    add_arguments=_add_refresh,
)


def _forget(options: argparse.Namespace) -> int:
    config = load_for_result(options)
    from wholefeed.cli.backend import ask
    from wholefeed.cli.output import watch_progress
    from wholefeed.web.request import feed_url

    url = feed_url(options.url)
    if options.entry is None:
        ask(config, lambda feeds: feeds.forget(url))
    else:
        with watch_progress() as progress:
            ask(config, lambda feeds: feeds.forget_entry(url, options.entry), progress)
    return EXIT_DONE


def _add_forget(parser: argparse.ArgumentParser) -> None:
    add_url(parser)
    entry_help = "remove this entry alone, until its publisher updates it: its id, or its link if it has none"
    parser.add_argument("--entry", metavar="ID", type=_entry, help=entry_help)


def _entry(text: str) -> str:
    if not text.strip():
        raise argparse.ArgumentTypeError("expected the id of an entry, got nothing")
    return text


FORGET: Final = Command(
    name="forget",
    summary="delete a feed and everything that is stored of it, or with --entry one entry",
    examples="  wholefeed forget https://example.org/feed.atom\n"
    "  wholefeed forget https://example.org/feed.atom --entry tag:example.org,2026:a-post",
    run=_forget,
    add_arguments=_add_forget,
)


def _summary(status: Mapping[str, Any]) -> str:
    from wholefeed.core.words import count_noun

    stale = ", stale" if status["stale"] else ""
    return (
        f"{status['state']}{stale}: {count_noun(status['entries'], 'entry', 'entries')}"
        f" out of {count_noun(status['documents'], 'document', 'documents')}"
        f" ({status['kind']}, {status['format']})"
    )


def _exit_code(state: str) -> int:
    return EXIT_UNFINISHED if state in ("partial", "loading") else EXIT_DONE
