"""What code, tests and pages refer to is in this repository: pages, headings, rows, files."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
FOLDERS = ("proxy", "tests", "migrations", "benchmarks", "demo", "fuzz", "docs", ".github")
SUFFIXES = {".py", ".sql", ".md", ".toml", ".yml", ".yaml"}
FILES = sorted(
    path
    for path in [
        *ROOT.glob("*.md"),
        ROOT / "pyproject.toml",
        ROOT / "Makefile",
        *(path for folder in FOLDERS for path in (ROOT / folder).rglob("*")),
    ]
    if path.suffix in SUFFIXES | {""} and path.is_file() and path != Path(__file__)
)

ELSEWHERE = {
    "a section of a design": r"\b[Dd]esign(?: page)?,? sections? \d",
    "a finding": r"\b[Ff]indings? \d",
    "a row of another page": r"\bFAULTS[ ,]+(?:\d+|rows?|parts?|sections?|findings?|terms|limits)\b",
    "a page of style": r'\bStyle, "',
    "a page of readers": r"; READERS\b|\bREADERS: (?!Final\b)\w",
}
"""Ways of naming pages that a reader of this repository does not have."""

ROW = re.compile(r"docs/faults\.md rows? (?P<rows>\d+a?(?:(?:, | to | and )\d+a?\b)*)")
PART = re.compile(r"docs/faults\.md parts? (?P<part>[A-Z])\b")
HEADING = re.compile(r"(?P<page>docs/\w+\.md|README\.md)#(?P<heading>[a-z0-9-]+)")
PAGE = re.compile(r"\b(?P<page>docs/[\w-]+\.md)\b")


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


@cache
def headings(page: str) -> set[str]:
    """The anchors of a page's headings, as forges make them."""
    found = re.findall(r"^#+ (.+)$", (ROOT / page).read_text("utf-8"), re.MULTILINE)
    return {
        re.sub(r"[^\w -]", "", heading.replace("`", "")).strip().lower().replace(" ", "-")
        for heading in found
    }


def rows(text: str) -> set[str]:
    """The rows that "1 to 3, 10 and 66a" names."""
    found = set(re.findall(r"\d+a?", text))
    for first, last in re.findall(r"(\d+) to (\d+)", text):
        found |= {str(row) for row in range(int(first), int(last) + 1)}
    return found


FAULT_ROWS = set(
    re.findall(r"^\| (\d+a?) \|", (ROOT / "docs" / "faults.md").read_text("utf-8"), flags=re.MULTILINE)
)


@pytest.mark.parametrize("path", FILES, ids=name)
def test_every_reference_leads_to_a_page_of_this_repository(path: Path) -> None:
    """Whoever reads code has nothing else: what a comment rests on stands in place or on a page beside it."""
    text = path.read_text("utf-8")
    for what, pattern in ELSEWHERE.items():
        assert not (found := re.search(pattern, text)), f"{name(path)}: {what}: {found}"
    for page in PAGE.findall(text):
        assert (ROOT / page).exists(), f"{name(path)}: {page}"
    for page, heading in HEADING.findall(text):
        assert heading in headings(page), f"{name(path)}: {page} has no heading {heading}"
    for found in ROW.findall(text):
        assert rows(found) <= FAULT_ROWS, (
            f"{name(path)}: docs/faults.md has no row {rows(found) - FAULT_ROWS}"
        )
    parts = {heading[0].upper() for heading in headings("docs/faults.md") if heading[1:2] == "-"}
    assert set(PART.findall(text)) <= parts, name(path)


@pytest.mark.parametrize(
    "text",
    [
        "(design, section 6)",
        "Design, sections 2 and 4",
        "FAULTS 63.",
        "FAULTS, finding 8",
        "FAULTS part A",
        "(finding 9)",
        'Style, "Shape"',
        "(design, section 2; READERS)",
    ],
)
def test_the_patterns_see_what_they_forbid(text: str) -> None:
    """A pattern that finds nothing in what was written here before would find nothing now."""
    assert any(re.search(pattern, text) for pattern in ELSEWHERE.values())


def test_rows_and_headings_are_read_as_they_are_written() -> None:
    """Spans count whole, and an anchor is what a forge makes of a heading."""
    assert rows("1 to 3, 10 and 66a") == {"1", "2", "3", "10", "66a"}
    assert {"the-store", "readers-connections"} <= headings("docs/design.md")
    assert {"1", "66a", "82"} <= FAULT_ROWS


TREE_NAME = re.compile(r"`(?P<path>[\w.-]+(?:/[\w.*-]+)*(?:\.(?:py|md|toml|sql|txt|yml|yaml)|/))`")


@pytest.mark.parametrize("page", ["CONTRIBUTING.md", "docs/architecture.md"])
def test_the_files_that_a_page_names_exist(page: str) -> None:
    """A map with a place that is gone misleads; modules may be named below the package or below core/."""
    bases = (ROOT, ROOT / "proxy" / "wholefeed", ROOT / "docs", ROOT / "tests")
    named = set(TREE_NAME.findall((ROOT / page).read_text("utf-8")))
    assert len(named) > 10
    for path in sorted(named - NOT_THERE_YET):
        assert any(True for base in bases for _ in base.glob(path.rstrip("/"))), f"{page}: {path}"


NOT_THERE_YET = {"core/adapters/", "web/metrics.py"}
"""Places that a page keeps for what comes next; a row goes when the place is there."""
