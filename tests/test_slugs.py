"""Every reason has one public slug: docs/faults.md, the problem documents and the code agree on them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.faults.checks import problem
from tests.note_classes import NOTE_CLASSES
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
from wholefeed.fetch import failures

ROOT = Path(__file__).parent.parent
ROW = re.compile(r"^\| `(?P<slug>[a-z-]+)` \| (?P<answer>[^|]+) \| [^|]+ \|$", re.MULTILINE)
PAGE = (ROOT / "docs" / "faults.md").read_text("utf-8").partition("\n## Reasons\n")[2]
LISTED = {row["slug"]: row["answer"] for row in ROW.finditer(PAGE)}
SLUG_AT = {"stop": 0, "_error": 0, "UrlError": 1, "_problem": 1}
"""Which argument of a function is a slug, where it has no name."""


def slugs(module: ast.Module) -> Iterator[str]:
    """The slugs that a module gives: as arguments, defaults, attributes, and in tables of failures."""
    for node in ast.walk(module):
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
            case (
                ast.AnnAssign(target=ast.Name(id="default_slug" | "slug" | "BACKOFF"))
                | ast.Assign(targets=[ast.Name(id="slug")])
            ):
                found.append(node.value)
            case ast.AnnAssign(target=ast.Name(id="_HTTP_SLUGS"), value=ast.Dict() as table):
                found += table.values
        yield from (
            each.value for each in found if isinstance(each, ast.Constant) and isinstance(each.value, str)
        )


@cache
def given() -> set[str]:
    """The slugs that the code gives to anything but notes."""
    return {
        slug
        for path in (ROOT / "proxy").rglob("*.py")
        if path.name not in ("notes.py", "reading_notes.py")
        for slug in slugs(ast.parse(path.read_text("utf-8")))
        if re.fullmatch("[a-z-]+", slug)
    } | {row[1] for row in (*failures.IN_BODY, *failures.BEFORE_BODY)}


PARTIAL = {note.slug for note in NOTE_CLASSES if note.partial}


def test_the_page_lists_every_slug_and_no_other() -> None:
    """docs/faults.md lists, in order, every reason that the code gives, and none that it does not."""
    assert set(LISTED) == given() | PARTIAL
    assert list(LISTED) == sorted(LISTED)


def test_the_table_holds_every_slug_that_is_given_out_and_no_other() -> None:
    """A slug in the code is one that clients find described; none in the table is dead."""
    assert set(SLUGS) == given() | PARTIAL
    assert list(SLUGS) == sorted(SLUGS)


@pytest.mark.parametrize("slug", sorted(SLUGS))
def test_the_page_says_what_a_slug_answers(slug: str) -> None:
    """docs/faults.md tells the status that a slug is answered with."""
    answers = ", ".join(map(str, sorted(SLUGS[slug].answers)))
    assert LISTED[slug] in ([answers] if answers else ["missing", "start"])


def test_what_this_file_looks_for_can_be_found() -> None:
    """Each way in which code names a slug is found in a sample; else a slug could miss from the page."""
    source = """
class E:
    default_slug: ClassVar[str] = "a"
    def __init__(self, message, slug: str = "b", *, other, more, slug2): ...
_HTTP_SLUGS: Final = {404: "c"}
raise F("text", slug="d")
guard.stop("e", "what", "else")
slug = "f"
"""
    assert set(slugs(ast.parse(source))) == set("abcdef")


def test_what_is_a_note_alone_answers_nothing() -> None:
    """A reason that only makes a document missing is not listed with a status of its own."""
    assert {LISTED[slug] for slug in PARTIAL - given()} == {"missing"}


def test_the_tree_of_errors_is_drawn_with_the_statuses_of_the_table() -> None:
    """The docstring of errors.py draws what readers get: of each class the status, of each slug too."""
    drawn = re.findall(r"-- (\w+) +(\d{3}) ([a-z-]+(?:, [a-z-]+)*)", errors.__doc__ or "")
    assert len(drawn) > 10
    for name, status, slugs in drawn:
        assert getattr(errors, name).status == int(status)
        assert {SLUGS[slug].status for slug in slugs.split(", ")} == {int(status)}


@pytest.mark.parametrize("slug", sorted(slug for slug, facts in SLUGS.items() if facts.answers))
def test_the_table_alone_says_what_a_slug_answers(slug: str) -> None:
    """Whatever class bears a slug, the answer has the status of the slug's row."""
    for error in (WholefeedError("why", slug=slug), DocumentError("why", url="http://o.test/", slug=slug)):
        assert error.answer_status == SLUGS[slug].status


KINDS = [
    kind
    for kind in vars(errors).values()
    if isinstance(kind, type)
    and issubclass(kind, WholefeedError)
    and not issubclass(kind, ConfigError | StoreUnusableError)
]


@pytest.mark.parametrize("kind", KINDS)
async def test_an_error_becomes_a_problem_document(
    proxy: Proxy, monkeypatch: pytest.MonkeyPatch, kind: type[WholefeedError]
) -> None:
    """RFC 9457: a stable type, no-store, a request id."""
    facts: dict[str, Any] = {"url": "http://o.test/"} if issubclass(kind, DocumentError) else {}
    facts |= {"retry_after_seconds": 1} if issubclass(kind, TooManyRequestsError) else {}
    error = kind("expected x, got y", **facts)

    def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(proxy.service, "answer", fail)
    found = problem(await proxy.get("http://o.test/"), error.slug, error.answer_status)
    assert str(error.answer_status) in LISTED[error.slug]
    assert found["detail"] == str(error)
