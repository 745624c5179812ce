"""wholefeed.cli.doctor: what is printed of what was found."""

from __future__ import annotations

import pytest

from wholefeed.cli.doctor import (
    Finding,
    Verdict,
    as_object,
    as_text,
    good,
    skipped,
    warning,
    worst,
    wrong,
)

GOOD = good("a", "all is well")
SKIPPED = skipped("b", "not looked at", "type this")
WARNING = warning("c", "odd", "do that")
WRONG = wrong("d", "broken", "mend it")


@pytest.mark.parametrize(
    ("findings", "verdict"),
    [
        ([], Verdict.GOOD),
        ([GOOD, SKIPPED], Verdict.GOOD),
        ([WARNING, GOOD], Verdict.WARNING),
        ([WRONG, WARNING, GOOD], Verdict.WRONG),
    ],
)
def test_the_gravest_verdict_counts(findings: list[Finding], verdict: Verdict) -> None:
    """What was skipped is no fault, and a warning hides nothing that is wrong."""
    assert worst(findings) is verdict


def test_the_text_has_a_line_each_and_what_to_do_below() -> None:
    """As a person reads it, with the sum at the end."""
    assert as_text([GOOD, WARNING, WRONG, WRONG]).splitlines() == [
        "good     a            all is well",
        "warning  c            odd",
        "                      -> do that",
        "wrong    d            broken",
        "                      -> mend it",
        "wrong    d            broken",
        "                      -> mend it",
        "",
        "2 things are wrong, 1 warning",
    ]
    assert as_text([GOOD, WARNING, WARNING]).endswith("\nnothing is wrong, 2 warnings\n")
    assert as_text([GOOD, WRONG]).endswith("\n1 thing is wrong\n")


def test_programs_get_the_same() -> None:
    """--json: the gravest verdict, and each finding with all its parts."""
    assert as_object([WARNING]) == {
        "verdict": "warning",
        "checks": [{"check": "c", "verdict": "warning", "text": "odd", "advice": "do that"}],
    }
