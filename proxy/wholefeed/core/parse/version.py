"""The parser's version: what is derived from a document is stamped with it."""

from __future__ import annotations

from typing import Final

PARSER_VERSION: Final[int] = 6
"""Raised whenever the same bytes come out differently: identities, instants, slices, links, what is added."""
