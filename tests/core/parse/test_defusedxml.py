"""What is relied on of defusedxml, which a release of it, or another parser in its place, has to keep."""

from __future__ import annotations

import ast
from collections.abc import Callable
from pathlib import Path

import pytest
from defusedxml.common import DefusedXmlException
from defusedxml.ElementTree import DefusedXMLParser, fromstring

PACKAGE = Path(__file__).parents[3] / "proxy" / "wholefeed"
USED = {"defusedxml.ElementTree.DefusedXMLParser", "defusedxml.ElementTree.fromstring"} | {
    "defusedxml.common.DefusedXmlException"
}
LAUGHS = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 10))
REFUSED = {
    "entity": '<!DOCTYPE r [<!ENTITY a "b">]><r>&a;</r>',
    "entity-not-used": '<!DOCTYPE r [<!ENTITY a "b">]><r/>',
    "laughs": f'<!DOCTYPE r [<!ENTITY l0 "ha">{LAUGHS}]><r>&l9;</r>',
    "external": '<!DOCTYPE r [<!ENTITY a SYSTEM "file:///etc/hostname">]><r>&a;</r>',
    "parameter": '<!DOCTYPE r [<!ENTITY % a SYSTEM "file:///etc/hostname"> %a;]><r/>',
    "unparsed": '<!DOCTYPE r [<!NOTATION n SYSTEM "n"><!ENTITY a SYSTEM "b" NDATA n>]><r/>',
}


def with_expat(text: str) -> None:
    """As `wholefeed.core.parse.expat` reads: through the parser below ElementTree's."""
    DefusedXMLParser(encoding="utf-8").parser.Parse(text.encode(), True)


def with_feed(text: str) -> None:
    DefusedXMLParser().feed(text.encode())


def test_nothing_else_of_it_is_used() -> None:
    """What more is used has to be held here, too."""
    found = {
        f"{node.module}.{alias.name}"
        for path in PACKAGE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("defusedxml")
        for alias in node.names
    }
    assert found == USED


@pytest.mark.parametrize("read", [with_expat, with_feed, fromstring])
@pytest.mark.parametrize("kind", REFUSED)
def test_declarations_of_entities_are_refused(kind: str, read: Callable[[str], object]) -> None:
    """Whether they are used or not, without a setting; the error is the one that is caught, a ValueError."""
    with pytest.raises(DefusedXmlException) as refused:
        read(REFUSED[kind])
    assert isinstance(refused.value, ValueError)


@pytest.mark.parametrize("read", [with_expat, with_feed, fromstring])
def test_what_feeds_have_is_let_through(read: Callable[[str], object]) -> None:
    """A document type that is named alone, which nobody fetches; predefined entities and characters."""
    read('<!DOCTYPE rss PUBLIC "-//N//DTD RSS 0.91//EN" "http://127.0.0.1:1/rss.dtd"><rss>&amp;&#65;</rss>')


def test_its_parser_is_expat_with_byte_offsets() -> None:
    """Handlers can be set on it, and each knows where in the bytes it is."""
    parser = DefusedXMLParser(encoding="utf-8").parser
    found: list[tuple[str, int]] = []
    parser.StartElementHandler = lambda name, _: found.append((name, parser.CurrentByteIndex))
    parser.EndElementHandler = None
    parser.Parse("<a>ä<b/></a>".encode(), True)
    assert found == [("a", 0), ("b", 5)]
