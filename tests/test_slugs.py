"""Every reason has one public slug: docs/faults.md, the problem documents and the code agree on them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from tests.faults.checks import problem
from tests.note_kinds import NOTE_KINDS
from tests.repository import DOCS, PACKAGE, Line, differing, nodes, part, place, python_files, told
from tests.running import Proxy
from wholefeed import errors
from wholefeed.core.slugs import SLUGS
from wholefeed.errors import (
    ConfigError,
    DocumentError,
    StoreUnusableError,
    TooManyRequestsError,
    WholefeedError,
)
from wholefeed.fetch import exchange

ROW = re.compile(r"\| `(?P<slug>[a-z-]+)` \| (?P<answer>[^|]+) \| [^|]+ \|$")
LISTED = {
    row["slug"]: Line(line.place, row["answer"])
    for line in part(DOCS / "faults.md", "## Reasons")
    if (row := ROW.match(line.text))
}
PARTIAL = {note.slug for note in NOTE_KINDS if note.partial}
OF_PAGES = {"not-html", "robots", "not-a-sitemap", "not-an-index"}
"""Slugs of pages and files searched for lists (H1): missing ones bear them, and no answer."""
SLUG_AT = {"stop": 0, "_error": 0, "UrlError": 1, "NotHad": 1, "_problem": 1}
"""The position of a function's slug argument without a name."""


def slugs(path: Path) -> Iterator[Line]:
    """The slugs in a module: as arguments, defaults, of classes, and in tables of failures."""
    for node in nodes(path):
        found: list[ast.expr | None] = []
        match node:
            case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)):
                found += [each.value for each in node.keywords if each.arg == "slug"]
                found += node.args[SLUG_AT[name] :][:1] if name in SLUG_AT else []
            case ast.arguments():
                named = zip(reversed(node.args), reversed(node.defaults), strict=False)
                found += [value for each, value in named if each.arg == "slug"]
                named_only = zip(node.kwonlyargs, node.kw_defaults, strict=True)
                found += [value for each, value in named_only if each.arg == "slug"]
            case ast.ClassDef():
                found += [each.value for each in node.keywords if each.arg == "slug"]
            case (
                ast.AnnAssign(target=ast.Name(id="default_slug" | "slug" | "BACKOFF"))
                | ast.Assign(targets=[ast.Name(id="slug")])
            ):
                found.append(node.value)
            case ast.AnnAssign(target=ast.Name(id="_HTTP_SLUGS"), value=ast.Dict() as table):
                found += table.values
        yield from (
            Line(place(path, each.lineno), each.value)
            for each in found
            if isinstance(each, ast.Constant) and isinstance(each.value, str)
        )


@cache
def given() -> list[Line]:
    """The slugs in the code outside of notes."""
    found = [
        slug
        for path in python_files(PACKAGE)
        if path.name != "notes.py"
        for slug in slugs(path)
        if re.fullmatch("[a-z-]+", slug.text)
    ]
    return found + [Line("fetch/exchange.py", row[1]) for row in (*exchange.IN_BODY, *exchange.BEFORE_BODY)]


def answers(slug: str) -> str:
    """The page's text on a slug's answer; a slug of notes alone is never answered."""
    if slug in PARTIAL - {line.text for line in given()}:
        return "missing"
    unanswered = "missing" if slug in PARTIAL | OF_PAGES else "start"
    return ", ".join(map(str, sorted(SLUGS[slug].answers))) or unanswered


def test_the_table_holds_every_slug_that_is_given_out_and_no_other() -> None:
    """Clients find each slug of the code described; the table has no dead one."""
    expected = sorted({line.text for line in given()} | PARTIAL)
    told(f"{line.place}: {line.text!r}, which SLUGS lacks" for line in given() if line.text not in SLUGS)
    told(differing("core/slugs.py", [Line("core/slugs.py", slug) for slug in SLUGS], expected))


def test_the_page_says_what_each_slug_answers() -> None:
    """docs/faults.md lists, in order, every reason that the code gives and no other, with its status."""
    listed = [Line(line.place, f"{slug}: {line.text}") for slug, line in LISTED.items()]
    told(differing("docs/faults.md, Reasons", listed, [f"{slug}: {answers(slug)}" for slug in sorted(SLUGS)]))


def test_what_this_file_looks_for_can_be_found(tmp_path: Path) -> None:
    """Each way to name a slug in code is found in a sample; else a slug could be missing from the page."""
    sample = tmp_path / "sample.py"
    sample.write_text("""
class E:
    default_slug: ClassVar[str] = "a"
class D(E, slug="g"):
    def __init__(self, message, slug: str = "b", *, other, more, slug2): ...
_HTTP_SLUGS: Final = {404: "c"}
raise F("text", slug="d")
guard.stop("e", "what", "else")
slug = "f"
""")
    assert {line.text for line in slugs(sample)} == set("abcdefg")


def test_the_tree_of_errors_is_drawn_with_the_statuses_of_the_table() -> None:
    """The docstring of errors.py draws the readers' statuses: of each class, and of each slug."""
    drawn = re.findall(r"-- (\w+) +(\d{3}) ([a-z-]+(?:, [a-z-]+)*)", errors.__doc__ or "")
    assert len(drawn) > 10
    told(
        f"errors.py: draws {name} with {status} {named}, expected {getattr(errors, name).status}"
        f" and of {slug} {SLUGS[slug].status}"
        for name, status, named in drawn
        for slug in named.split(", ")
        if not int(status) == getattr(errors, name).status == SLUGS[slug].status
    )


def test_the_table_alone_says_what_a_slug_answers() -> None:
    """For any class with a slug, the answer has the status of the slug's row."""
    told(
        f"{error!r} of {slug!r} has {error.answer_status}, expected {facts.status}"
        for slug, facts in SLUGS.items()
        for error in (
            WholefeedError("why", slug=slug),
            DocumentError("why", url="http://o.test/", slug=slug),
        )
        if facts.answers and error.answer_status != facts.status
    )


async def test_an_error_becomes_a_problem_document(proxy: Proxy, monkeypatch: pytest.MonkeyPatch) -> None:
    """RFC 9457, each class of error: a stable type, no-store, a request id."""
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type)]
    for kind in kinds:
        if not issubclass(kind, WholefeedError) or issubclass(kind, ConfigError | StoreUnusableError):
            continue
        facts: dict[str, Any] = {"url": "http://o.test/"} if issubclass(kind, DocumentError) else {}
        facts |= {"retry_after_seconds": 1} if issubclass(kind, TooManyRequestsError) else {}
        error = kind("expected x, got y", **facts)
        monkeypatch.setattr(proxy.service, "answer", Mock(side_effect=error))
        found = problem(await proxy.get("http://o.test/"), error.slug, error.answer_status)
        assert str(error.answer_status) in LISTED[error.slug].text
        assert found["detail"] == str(error)
