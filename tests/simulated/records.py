"""A story's record: parts comparable with another tree's, and a text for people."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

import structlog

from tests.simulated.places import LOGGED, UNTOLD

PARTS: Final = ("requests", "rows", "sent", "log", "ends", "progress")


@dataclass
class RefreshRecord:
    """One refresh."""

    title: str
    requests: list[str] = field(default_factory=list)
    """In the order of asking, each with its end."""
    rows: dict[str, Any] = field(default_factory=dict)
    sent: str = ""
    """Digest of the readers' feed afterwards."""
    log: list[str] = field(default_factory=list)
    ends: str = ""
    progress: list[str] = field(default_factory=list)
    """Progress told to those who waited."""

    def __str__(self) -> str:
        lines = [self.title]
        lines += [f"    {each}" for each in self.requests]
        lines += [f"    told: {each}" for each in self.progress]
        lines += [f"    log: {each}" for each in self.log]
        lines += [f"    end: {self.ends}; sent: {self.sent}"]
        for table, found in self.rows.items():
            for row in found:
                held = row.get("held", [])
                facts = {name: value for name, value in row.items() if name != "held"}
                lines.append(f"    {table}: {json.dumps(facts, default=str)}")
                lines += [f"        {json.dumps(each)}" for each in held]
        return "\n".join(lines)


@dataclass
class StoryRecord:
    """The record of a story."""

    seed: int
    title: str
    refreshes: list[RefreshRecord] = field(default_factory=list)
    troubles: list[str] = field(default_factory=list)

    def digests(self) -> dict[str, str]:
        return {part: _digest([getattr(each, part) for each in self.refreshes]) for part in PARTS}

    def line(self) -> str:
        """Return the story's line in a file of digests."""
        parts = self.digests()
        whole = _digest([parts, self.troubles])
        return " ".join([str(self.seed), whole, *(f"{name}={digest}" for name, digest in parts.items())])

    def __str__(self) -> str:
        return "\n".join([f"story {self.seed}: {self.title}", *map(str, self.refreshes), *self.troubles])


def _digest(value: object) -> str:
    text = json.dumps(value, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:12]


class Log:
    """Receives the program's log, in place of every configured output."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.is_listening = True

    def __call__(self, _logger: object, _method: str, event: Any) -> Any:
        name = event["event"]
        if self.is_listening and name in LOGGED:
            facts = {key: value for key, value in event.items() if key not in UNTOLD}
            if "exc_info" in facts:
                facts["exc_info"] = repr(facts["exc_info"])
            self.lines.append(" ".join([name, *(f"{key}={value}" for key, value in sorted(facts.items()))]))
        raise structlog.DropEvent


@contextmanager
def logged(log: Log) -> Iterator[None]:
    """Send log lines to this log."""
    before = structlog.get_config() if structlog.is_configured() else None
    structlog.configure(
        processors=[log],
        wrapper_class=structlog.make_filtering_bound_logger("info"),
        cache_logger_on_first_use=False,
    )
    try:
        yield
    finally:
        structlog.reset_defaults()
        if before is not None:
            structlog.configure(**before)
