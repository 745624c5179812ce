"""Figures for the plainness of the package's and its pages' words: none may get worse than today."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Final, NamedTuple

import pytest

from tests.repository import PACKAGE, PAGES, name, nodes, place, python_files, text, told

INDIRECT: Final = re.compile(r"\b(what|who|which|when)ever\b|\b(what|whose)\b", re.IGNORECASE)
RELATIVE: Final = re.compile(r"\b(that|which) (is|are|was|were|has|have)\b", re.IGNORECASE)
UNFINISHED: Final = re.compile(r"(Of|As|What) |Likewise")
"""The beginning of a docstring without a subject."""

PARTICIPLE: Final = re.compile(
    r"_?[a-z]{2,}(ed|eld|own|oken|aken|iven|ept|ade|aid|ought|ound)"
    r"(_(by|of|to|in|from|with|at|as|for|on|here|there)(_[a-z]+)?)?"
)
NO_PARTICIPLES: Final = frozenset(
    [
        "background", "bed", "bound", "compound", "embed", "exceed", "feed", "indeed", "known", "need", "own",
        "proceed", "round", "seed", "shed", "speed", "token", "unknown",
    ]
)  # fmt: skip
SAME_NAME: Final = frozenset({"__init__", "base"})
"""Modules that each package may have."""


class Limit(NamedTuple):
    """A figure and its greatest value."""

    figure: str
    most: float


LIMITS: Final = (
    Limit("words in docstrings", 59_890),
    Limit("what, whatever, whose ... in 1,000 words", 0.2),
    Limit("that is, which has ... in 1,000 words", 0.8),
    Limit("docstrings that begin with Of, As, What, Likewise", 0),
    Limit("functions named by a participle", 25),
    Limit("class names that several modules have", 5),
    Limit("module names that several packages have", 0),
    Limit("words in the pages", 43_650),
)
"""Today's figures; a commit that makes one smaller lowers its limit."""


class Found(NamedTuple):
    """A figure of a tree, with the places that count."""

    value: float
    places: Sequence[str]


class Docstring(NamedTuple):
    place: str
    text: str


def docstrings(path: Path) -> Iterator[Docstring]:
    """The docstrings of a module, its classes, functions and attributes."""
    for node in nodes(path):
        match node:
            case ast.Module() | ast.ClassDef() | ast.FunctionDef() | ast.AsyncFunctionDef():
                if own := ast.get_docstring(node):
                    yield Docstring(place(path, getattr(node, "lineno", 1)), own)
        body = getattr(node, "body", None)
        for before, after in pairwise(body) if isinstance(body, list) else ():
            match before, after:
                case ast.Assign() | ast.AnnAssign(), ast.Expr(value=ast.Constant(value=str(said))):
                    yield Docstring(place(path, after.lineno), said.strip())


def measure(package: Path, pages: Sequence[Path]) -> dict[str, Found]:
    """The figures of a package and its pages, by the names in `LIMITS`."""
    files = python_files(package)
    documented = [each for path in files for each in docstrings(path)]
    words = sum(len(each.text.split()) for each in documented)

    def found(pattern: re.Pattern[str]) -> Found:
        hits = [
            f"{each.place}: {hit.group()!r}" for each in documented for hit in pattern.finditer(each.text)
        ]
        return Found(round(1000 * len(hits) / max(1, words), 1), hits)

    unfinished = [each.place for each in documented if UNFINISHED.match(each.text)]
    participles, classes, modules = [], defaultdict(set), defaultdict(set)
    for path in files:
        file = path.relative_to(package).as_posix()
        if path.stem not in SAME_NAME:
            modules[path.stem].add(file)
        for node in nodes(path):
            if isinstance(node, ast.ClassDef):
                classes[node.name.lstrip("_")].add(file)
            elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                is_property = any("property" in ast.unparse(each) for each in node.decorator_list)
                is_participle = PARTICIPLE.fullmatch(node.name) and node.name.strip("_") not in NO_PARTICIPLES
                if is_participle and not is_property:
                    participles.append(f"{place(path, node.lineno)}: {node.name}")
    again = [f"{each}: {', '.join(sorted(places))}" for each, places in classes.items() if len(places) > 1]
    twins = [f"{each}: {', '.join(sorted(places))}" for each, places in modules.items() if len(places) > 1]
    lengths = {name(page): sum(1 for word in text(page).split() if re.search(r"\w", word)) for page in pages}
    return {
        "words in docstrings": Found(words, []),
        "what, whatever, whose ... in 1,000 words": found(INDIRECT),
        "that is, which has ... in 1,000 words": found(RELATIVE),
        "docstrings that begin with Of, As, What, Likewise": Found(len(unfinished), unfinished),
        "functions named by a participle": Found(len(participles), participles),
        "class names that several modules have": Found(len(again), again),
        "module names that several packages have": Found(len(twins), twins),
        "words in the pages": Found(sum(lengths.values()), [f"{page}: {n}" for page, n in lengths.items()]),
    }


@pytest.fixture(scope="module")
def figures() -> dict[str, Found]:
    return measure(PACKAGE, PAGES)


@pytest.mark.parametrize("limit", LIMITS, ids=lambda limit: limit.figure.replace(" ", "-"))
def test_no_figure_gets_worse(figures: dict[str, Found], limit: Limit) -> None:
    """A stranger understands each sentence the first time; a failure names all places that count."""
    found = figures[limit.figure]
    if found.value > limit.most:
        told([f"{limit.figure}: {found.value:g}, expected at most {limit.most:g}", *found.places])


BAD = '''"""What is kept, whoever asks."""

LIMIT = 1
"""Of each, that is all."""

class Reader:
    def asked_by_name(self): ...
    def speed(self): ...

    @property
    def needed(self): ...
'''


def test_each_figure_sees_its_fault(tmp_path: Path) -> None:
    """A measure that finds nothing in bad text would never fail."""
    package, page = tmp_path / "package", tmp_path / "page.md"
    for folder in ("one", "other"):
        (package / folder).mkdir(parents=True)
        (package / folder / "bad.py").write_text(BAD if folder == "one" else "class _Reader: ...\n")
    page.write_text("Three plain words.\n")
    found = measure(package, [page])
    assert {figure: each.value for figure, each in found.items()} == {
        "words in docstrings": 10,
        "what, whatever, whose ... in 1,000 words": 200,
        "that is, which has ... in 1,000 words": 100,
        "docstrings that begin with Of, As, What, Likewise": 2,
        "functions named by a participle": 1,
        "class names that several modules have": 1,
        "module names that several packages have": 1,
        "words in the pages": 3,
    }
    assert found["functions named by a participle"].places == ["bad.py:7: asked_by_name"]
