"""Properties of defusedxml that a new release, or a replacement, must keep."""

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
    """Read like `wholefeed.core.parse.expat`: through the parser below ElementTree's."""
    DefusedXMLParser(encoding="utf-8").parser.Parse(text.encode(), True)


def with_feed(text: str) -> None:
    DefusedXMLParser().feed(text.encode())


def test_nothing_else_of_it_is_used() -> None:
    """A further use needs a test here."""
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
    """Used or not, without a setting; the error is a ValueError."""
    with pytest.raises(DefusedXmlException) as refused:
        read(REFUSED[kind])
    assert isinstance(refused.value, ValueError)


@pytest.mark.parametrize("read", [with_expat, with_feed, fromstring])
def test_what_feeds_have_is_let_through(read: Callable[[str], object]) -> None:
    """A document type by name, which nobody fetches; predefined entities and characters."""
    read('<!DOCTYPE rss PUBLIC "-//N//DTD RSS 0.91//EN" "http://127.0.0.1:1/rss.dtd"><rss>&amp;&#65;</rss>')


def test_its_parser_is_expat_with_byte_offsets() -> None:
    """Handlers can be set, and know their byte offset."""
    parser = DefusedXMLParser(encoding="utf-8").parser
    found: list[tuple[str, int]] = []
    parser.StartElementHandler = lambda name, _: found.append((name, parser.CurrentByteIndex))
    parser.EndElementHandler = None
    parser.Parse("<a>ä<b/></a>".encode(), True)
    assert found == [("a", 0), ("b", 5)]
