"""The meaning of an XML document's entries, read by expat alone, independent of our readers.

An entry is the list of expat's reports: expanded names, attributes, the language and, where it counts, the
base in force, text, comments and processing instructions. Entries of equal meaning give equal lists.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final
from xml.parsers.expat import ParserCreate

from wholefeed.core.model import XML_NS
from wholefeed.core.text.urls import MAX_URL_CHARACTERS, resolve

Said = list[tuple[object, ...]]

_LANG: Final = f"{XML_NS}}}lang"
_BASE: Final = f"{XML_NS}}}base"


class _Listener:
    """Collects expat's reports between the starts and ends of entries."""

    def __init__(self, starts: Collection[int], url: str, *, with_base: bool) -> None:
        self.entries: list[Said] = []
        self.parser = ParserCreate("utf-8", "}")
        self.parser.buffer_text = True
        self.parser.ordered_attributes = True
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        self.parser.CharacterDataHandler = lambda text: self._say("text", text)
        self.parser.CommentHandler = lambda text: self._say("comment", text)
        self.parser.ProcessingInstructionHandler = lambda name, text: self._say("instruction", name, text)
        self._starts = frozenset(starts)
        self._with_base = with_base
        self._context = [("", url)]
        self._depth = 0
        self._is_said = False

    def _say(self, *what: object) -> None:
        if self._is_said:
            self.entries[-1].append(what)

    def _start(self, name: str, flat: list[str]) -> None:
        attributes = dict(zip(flat[::2], flat[1::2], strict=True))
        lang, base = self._context[-1]
        lang = attributes.pop(_LANG, lang).strip(" \t\r\n")
        base = _inner(base, attributes.pop(_BASE, None))
        self._context.append((lang, base))
        if not self._is_said and self.parser.CurrentByteIndex in self._starts:
            self._is_said, self._depth = True, len(self._context)
            self.entries.append([])
        said_base = base if self._with_base else ""
        self._say("start", name, sorted(attributes.items()), lang, said_base)

    def _end(self, name: str) -> None:
        self._say("end", name)
        if self._is_said and len(self._context) == self._depth:
            self._is_said = False
        self._context.pop()


def said(text: bytes, starts: Collection[int], url: str, *, with_base: bool) -> list[Said]:
    """Return the meaning of each entry that begins at one of these offsets.

    Args:
        text: A well-formed document in UTF-8.
        starts: Offsets of start tags.
        url: Of the document.
        with_base: Whether xml:base has a meaning in it.
    """
    listener = _Listener(starts, url, with_base=with_base)
    listener.parser.Parse(text, True)
    return listener.entries


def without_namespace(entries: list[Said], namespace: str) -> list[Said]:
    """Treat one namespace as none, as RSS readers do with invented namespaces of RSS."""
    prefix = f"{namespace}}}"
    return [
        [
            (what[0], str(what[1]).removeprefix(prefix), *what[2:]) if what[0] in ("start", "end") else what
            for what in entry
        ]
        for entry in entries
    ]


def _inner(base: str, reference: str | None) -> str:
    if reference is None:
        return base
    try:
        made = resolve(base, reference)
    except ValueError:
        return base
    return made if len(made) <= MAX_URL_CHARACTERS else base
