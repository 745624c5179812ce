"""What is told of a request once it has been answered: its line of the log, and what is counted."""

from __future__ import annotations

from json.encoder import encode_basestring_ascii as quoted
from typing import Final

from aiohttp import hdrs, web

from wholefeed.counts import NONE, Counts
from wholefeed.json_lines import members
from wholefeed.loggers import get_logger
from wholefeed.web.asked import Asked

log = get_logger()

_LONGEST_AGENT: Final = 200


def tell(request: web.Request, asked: Asked, status: int, duration_seconds: float) -> None:
    """Write the line of a request; a status of 0 is none.

    It is laid out by hand: of all that is logged only this is written thousands of times a second, and a dict
    that is made and gone through takes three times as long. What is our own needs no escapes.
    """
    url = asked.shown_url
    agent = request.headers.get(hdrs.USER_AGENT, "")[:_LONGEST_AGENT]
    if not agent.isprintable():  # it nearly always is
        agent = "".join(each if each.isprintable() else "?" for each in agent)
    facts = f"{members(asked.facts)}, " if asked.facts else ""
    log.laid_out(
        "request.answered",
        f'"method": {quoted(request.method)}, "path": "{asked.route}"'
        f', "url": {"null" if url is None else quoted(url)}'
        f', "client": "{asked.client}", "user_agent": {quoted(agent)}'
        f', "status": {status or "null"}, "duration_s": {duration_seconds:.6f}'
        f', {facts}"request_id": "{asked.request_id}"',
    )


def count(counts: Counts, asked: Asked, status: int, duration_seconds: float, body_bytes: int) -> None:
    """Count what the log line tells; of an answer that was cut off, no bytes."""
    facts = asked.facts
    is_aborted = "aborted" in facts
    state = str(facts.get("state", NONE))
    counts.answered(asked.route, state, status, duration_seconds, 0 if is_aborted else body_bytes)
    if is_aborted:
        counts.was_aborted()
    if "slug" in facts:
        counts.refused(str(facts["slug"]))
