"""The page of an intake; `wholefeed.web.opml_routes` begins one."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any, Final

from aiohttp import web

from wholefeed.core.compose.sanitising import plain, plain_url
from wholefeed.core.intake import (
    NO_SUCH_INTAKE,
    FailedFeed,
    describe_counted,
    describe_gain,
    describe_progress,
    describe_searching,
    describe_totals,
    group_by_advice,
)
from wholefeed.core.text.dates import DAY_SECONDS, format_rfc3339
from wholefeed.core.words import STATES, ago
from wholefeed.errors import NoSuchIntakeError, RequestError
from wholefeed.service.intakes import IntakeReport
from wholefeed.store.tables.intake_table import Gain
from wholefeed.web.api import EVENT_FIELDS, LOOK_SECONDS, Event, answer_after_end, json_answer, send_events
from wholefeed.web.keys import SERVICE
from wholefeed.web.list_rewriting import LeftAlone
from wholefeed.web.pages_base import is_browser, page
from wholefeed.web.request import is_set

AGAIN_SECONDS: Final = 4
"""Time until a page without scripts reloads."""
_MOST_UNCHANGED: Final = 100
_MOST_FAILURES: Final = 200
_FEW: Final = 10
_MOST_CHARACTERS: Final = 200
_MOST_AT_HOME: Final = 3


def named_intake(request: web.Request) -> str:
    """Return `id`, or raise as `read_intake_id`."""
    return read_intake_id(request.query.get("id", ""))


def read_intake_id(text: str) -> str:
    """Return an id that the store may be asked for.

    Raises:
        RequestError: There is none.
        NoSuchIntakeError: It cannot be one.
    """
    if not text:
        raise RequestError("expected the parameter id, that of a list that was brought in, got none")
    if not _ID.fullmatch(text):
        raise NoSuchIntakeError(NO_SUCH_INTAKE)
    return text


_ID: Final = re.compile("[0-9a-f]{16}")


async def get_intake(request: web.Request) -> web.StreamResponse:
    service, intake = request.app[SERVICE], named_intake(request)
    async with service.checks.answering():
        report = await service.intakes.report(intake)
    if not is_browser(request):
        return json_answer(intake_object(report))
    tally = report.tally
    failures = report.failures[:_MOST_FAILURES]
    return await page(
        request,
        "intake.html",
        intake=report.intake,
        tally=tally,
        begun=ago(report.intake.began_at, service.now()),
        progress=describe_progress(tally),
        totals=describe_totals(tally),
        remarks=[each for each in (describe_counted(tally), describe_searching(tally)) if each],
        states=[(words, tally.states[state]) for state, words in STATES.items() if tally.states.get(state)],
        largest=[_gain_line(each) for each in report.largest],
        latest=[_gain_line(each) for each in report.latest],
        failures=group_by_advice(map(_shown_failure, failures)),
        more_failures=len(report.failures) - len(failures),
        unchanged=_group_unchanged(json.loads(report.intake.unchanged)),
        few=_FEW,
        again_seconds=AGAIN_SECONDS,
    )


def _gain_line(gain: Gain) -> dict[str, Any]:
    words = describe_gain("", gain.before, gain.now).removeprefix(": ")
    return {
        "url": gain.url,
        "title": plain(gain.title, _MOST_CHARACTERS),
        "state": STATES[gain.state].title,
        "style": gain.state,
        "words": words,
    }


def _shown_failure(failed: FailedFeed) -> FailedFeed:
    title = plain(failed.title, _MOST_CHARACTERS)
    return FailedFeed(plain_url(failed.url), title, failed.line, failed.slug, failed.status)


def _group_unchanged(lines: Sequence[Mapping[str, Any]]) -> dict[str, list[Mapping[str, Any]]]:
    found: dict[str, list[Mapping[str, Any]]] = {}
    for each in lines:
        found.setdefault(each["text"], []).append(each)
    return found


async def post_intake(request: web.Request) -> web.StreamResponse:
    """Ask for failed feeds again, or with `forget=1` forget the list."""
    service, intake = request.app[SERVICE], named_intake(request)
    if is_set(request.query, "forget"):
        async with service.checks.answering():
            await service.intakes.forget(intake)
        return _see_other("./") if is_browser(request) else web.Response(status=204)
    async with service.checks.answering():
        await service.intakes.ask_again(intake)
        report = await service.intakes.report(intake)
    return answer_begun(request, report)


async def delete_intake(request: web.Request) -> web.StreamResponse:
    service, intake = request.app[SERVICE], named_intake(request)
    async with service.checks.answering():
        await service.intakes.forget(intake)
    return web.Response(status=204)


def answer_begun(request: web.Request, report: IntakeReport) -> web.Response:
    target = f"./intake?id={report.intake.id}"
    if is_browser(request):
        return _see_other(target)
    response = json_answer(intake_object(report), status=202)
    response.headers["Location"] = target
    return response


def _see_other(target: str) -> web.Response:
    return web.Response(status=303, headers={"Location": target, "Cache-Control": "no-store"})


async def list_at_home(request: web.Request) -> list[dict[str, str]]:
    """Return unfinished intakes, and those of the last day, for the first page."""
    service = request.app[SERVICE]
    async with service.checks.answering():
        newest = await service.intakes.newest(_MOST_AT_HOME)
    now = service.now()
    return [
        {
            "id": each.intake.id,
            "words": describe_totals(each.tally) if each.tally.is_over else describe_progress(each.tally),
            "begun": ago(each.intake.began_at, now),
        }
        for each in newest
        if not each.tally.is_over or 0 <= now - each.intake.began_at < DAY_SECONDS
    ]


# The object for programs


def intake_object(report: IntakeReport) -> dict[str, Any]:
    """Return an intake as in JSON (docs/http.md)."""
    return {
        **_tally_object(report),
        "largest": [_gain_object(each) for each in report.largest],
        "latest": [_gain_object(each) for each in report.latest],
        "failures": [_failure_object(each) for each in report.failures],
        "left_out": report.intake.left_out,
        "unchanged": json.loads(report.intake.unchanged),
    }


def _tally_object(report: IntakeReport) -> dict[str, Any]:
    tally = report.tally
    return {
        "id": report.intake.id,
        "began": format_rfc3339(report.intake.began_at),
        "over": tally.is_over,
        "feeds": tally.feeds,
        "asked": tally.done,
        "waiting": tally.waiting,
        "failed": tally.failed,
        "forgotten": tally.forgotten,
        "fresh": tally.counted,
        "before": tally.before,
        "now": tally.now,
        "states": {str(state): number for state, number in tally.states.items()},
        "searching": tally.searching,
        "progress": describe_progress(tally),
        "summary": describe_totals(tally),
    }


def _gain_object(gain: Gain) -> dict[str, Any]:
    return {
        "url": gain.url,
        "title": gain.title,
        "state": gain.state,
        "before": gain.before,
        "now": gain.now,
    }


def _failure_object(failed: FailedFeed) -> dict[str, Any]:
    return {
        "url": failed.url,
        "title": failed.title or None,
        "line": failed.line,
        "reason": failed.slug,
        "status": failed.status,
        "text": failed.why,
        "advice": failed.advice,
    }


def write_unchanged(left: Sequence[LeftAlone]) -> str:
    """Return the first lines that no feed can be asked for, as JSON."""
    lines = [
        {
            "line": each.line,
            "url": each.url,
            "reason": str(each.why),
            "text": each.why.words,
        }
        for each in left[:_MOST_UNCHANGED]
    ]
    return json.dumps(lines)


# Progress


async def get_intake_events(request: web.Request) -> web.StreamResponse:
    """Send the tally after each change, then `end`, as `/events` does."""
    service, intake = request.app[SERVICE], named_intake(request)
    async with service.checks.answering():
        report = await service.intakes.report(intake)
    if report.tally.is_over and (end := answer_after_end(request)) is not None:
        return end
    if request.method == "HEAD":
        return web.Response(headers=EVENT_FIELDS)
    async with service.intakes.follow(intake, LOOK_SECONDS) as changes:
        return await send_events(request, _events(changes))


async def _events(changes: AsyncIterator[IntakeReport | None]) -> AsyncIterator[Event | None]:
    async for report in changes:
        yield None if report is None else Event(_tally_object(report), is_end=report.tally.is_over)
