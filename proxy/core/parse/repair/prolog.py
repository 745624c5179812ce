"""What stands before the XML declaration, where nothing may (FAULTS row 45; XML 1.0, production 22)."""

from __future__ import annotations

import re
from typing import Final

_LOOKED_AT_BYTES: Final = 4096
_DECLARATION: Final = re.compile(rb"<\?xml\s")
_ROOT: Final = re.compile(rb"<(?:[A-Za-z_][\w.-]*+:)?+(?:rss|feed|RDF)[\s>]")


def late_declaration(text: bytes) -> int:
    """Return where the XML declaration begins that something stands before; 0 when there is none.

    One that stands behind the start of a feed belongs to its content.
    """
    declaration = _DECLARATION.search(text, 0, _LOOKED_AT_BYTES)
    if declaration is None or _ROOT.search(text, 0, declaration.start()):
        return 0
    return declaration.start()
