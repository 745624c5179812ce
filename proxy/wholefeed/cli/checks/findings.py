"""What a check has found, in plain words, with what to type.

found = wrong("database", "/data is not writable", "chown wholefeed /data")
worst([found])                      # Verdict.WRONG
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any, Final

_INDENT: Final = " " * 22


class Verdict(StrEnum):
    """How it stands. Only what is wrong keeps wholefeed from doing its work."""

    GOOD = "good"
    SKIPPED = "skipped"
    WARNING = "warning"
    WRONG = "wrong"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at."""

    check: str
    verdict: Verdict
    text: str
    """What was found; a sentence without its full stop."""
    advice: str = ""
    """What to do; empty where there is nothing to do."""


def good(check: str, text: str, advice: str = "") -> Finding:
    """Nothing has to be done."""
    return Finding(check, Verdict.GOOD, text, advice)


def skipped(check: str, text: str, advice: str = "") -> Finding:
    """It could not, or need not, be looked at."""
    return Finding(check, Verdict.SKIPPED, text, advice)


def warning(check: str, text: str, advice: str) -> Finding:
    """It works, and may not be what is wanted."""
    return Finding(check, Verdict.WARNING, text, advice)


def wrong(check: str, text: str, advice: str) -> Finding:
    """It does not work."""
    return Finding(check, Verdict.WRONG, text, advice)


def worst(findings: Iterable[Finding]) -> Verdict:
    """Return the gravest verdict; what was skipped counts as good."""
    verdicts = {finding.verdict for finding in findings}
    for verdict in (Verdict.WRONG, Verdict.WARNING):
        if verdict in verdicts:
            return verdict
    return Verdict.GOOD


def as_text(findings: Iterable[Finding]) -> str:
    """Return what is printed: a line each, what to do below it, and the sum at the end."""
    listed = list(findings)
    lines = []
    for finding in listed:
        lines.append(f"{finding.verdict:<8} {finding.check:<12} {finding.text}")
        if finding.advice:
            lines.append(f"{_INDENT}-> {finding.advice}")
    wrongs = sum(finding.verdict is Verdict.WRONG for finding in listed)
    warnings = sum(finding.verdict is Verdict.WARNING for finding in listed)
    total = f"{_count(wrongs, 'thing is', 'things are')} wrong" if wrongs else "nothing is wrong"
    lines += ["", total + (f", {_count(warnings, 'warning', 'warnings')}" if warnings else "")]
    return "\n".join(lines) + "\n"


def as_object(findings: Iterable[Finding]) -> dict[str, Any]:
    """Return the same for programs."""
    listed = list(findings)
    return {"verdict": worst(listed), "checks": [asdict(finding) for finding in listed]}


def _count(number: int, one: str, more: str) -> str:
    return f"{number} {one if number == 1 else more}"
