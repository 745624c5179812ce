"""XML declarations, and what looks like one (docs/faults.md row 45; XML 1.0, productions 16, 22 and 23)."""

from __future__ import annotations

import re
from typing import Final

_LOOKED_AT_BYTES: Final = 4096
_DECLARATION: Final = re.compile(rb"<\?xml\s")
_ROOT: Final = re.compile(rb"<(?:[A-Za-z_][\w.-]*+:)?+(?:rss|feed|RDF)[\s>]")
_WHOLE: Final = re.compile(
    rb"<\?xml\s+version\s*=\s*(?:\"1\.[0-9]+\"|'1\.[0-9]+')"
    rb"(?:\s+encoding\s*=\s*(?:\"[A-Za-z][A-Za-z0-9._-]*\"|'[A-Za-z][A-Za-z0-9._-]*'))?"
    rb"(?:\s+standalone\s*=\s*(?:\"(?:yes|no)\"|'(?:yes|no)'))?\s*\?>"
)
_INSTRUCTION: Final = re.compile(rb"<\?(?!xml[\s?])[A-Za-z_\x80-\xff][\w.\x80-\xff-]*+[\s?]", re.IGNORECASE)


def late_declaration(text: bytes) -> int:
    """Return where the XML declaration begins that something stands before; 0 when there is none.

    One that stands behind the start of a feed belongs to its content.
    """
    declaration = _DECLARATION.search(text, 0, _LOOKED_AT_BYTES)
    if declaration is None or _ROOT.search(text, 0, declaration.start()):
        return 0
    return declaration.start()


def is_declaration(written: bytes) -> bool:
    """Whether a processing instruction is an XML declaration that is well-formed."""
    return _WHOLE.fullmatch(written) is not None


def is_instruction(written: bytes) -> bool:
    """Whether a processing instruction is a well-formed one, and no XML declaration."""
    return _INSTRUCTION.match(written) is not None


def is_comment(written: bytes) -> bool:
    """Whether what stands between comment marks is a well-formed comment (XML 1.0, production 15)."""
    return b"--" not in written[4:-3] and not written.endswith(b"--->")
