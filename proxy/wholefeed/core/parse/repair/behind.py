"""What stands behind the root of a document (docs/faults.md rows 49 and 49a).

Servers put scripts and comments there, and generators an end tag too many: nothing of the feed is missing
then. Something is where further entries stand there, or a further feed begins.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from wholefeed.core.parse.repair.prolog import is_comment, is_instruction
from wholefeed.core.parse.repair.tokens import Mark, Token

_BLANK: Final = b" \t\r\n"
_OF_FEEDS: Final = frozenset({b"rss", b"RDF", b"feed", b"item", b"entry"})
_RAW: Final = frozenset({b"script", b"style"})
"""Elements of HTML whose content is no markup (WHATWG HTML, 13.1.2)."""
_BEGINNING: Final = re.compile(rb"<(?:[A-Za-z_][\w.-]*+:)?+(?:rss|RDF|feed|item|entry)(?![\w.:-])")


def is_junk(text: bytes, token: Token) -> bool:
    """Whether it may not stand behind the root (XML 1.0, production 27)."""
    written = text[token.start : token.end]
    match token.mark:
        case Mark.TEXT:
            return bool(written.strip(_BLANK))
        case Mark.COMMENT:
            return not is_comment(written)
        case Mark.INSTRUCTION:
            return not is_instruction(written)
    return True


def holds_entries(text: bytes, tokens: Iterable[Token]) -> bool:
    """Whether an entry or a further feed begins in what is left of a document."""
    raw = b""
    for token in tokens:
        if token.mark is Mark.END and token.name.lower() == raw:
            raw = b""
        elif raw:
            continue
        elif token.mark is Mark.CUT:
            return _BEGINNING.match(text, token.start) is not None
        elif token.mark in (Mark.START, Mark.EMPTY):
            if token.name.rpartition(b":")[2] in _OF_FEEDS:
                return True
            if token.mark is Mark.START and token.name.lower() in _RAW:
                raw = token.name.lower()
    return False
