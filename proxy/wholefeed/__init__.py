"""wholefeed: serve a feed's whole history to readers that know only single documents.

    import wholefeed
    feed = wholefeed.reconstruct("https://example.org/feed.atom")

Public names load at their first use. `__init__.pyi` repeats them for type checkers.
"""

from __future__ import annotations

import importlib

__version__ = "0.2.0"

_HOMES = {
    "Category": "wholefeed.core.compose.entries",
    "Config": "wholefeed.config.tables",
    "Enclosure": "wholefeed.core.compose.entries",
    "Entry": "wholefeed.core.compose.entries",
    "Feed": "wholefeed.core.compose.entries",
    "Library": "wholefeed.library",
    "Link": "wholefeed.core.compose.entries",
    "Missing": "wholefeed.core.compose.entries",
    "Progress": "wholefeed.core.compose.entries",
    "State": "wholefeed.core.model",
    "WholefeedError": "wholefeed.errors",
    "areconstruct": "wholefeed.library",
    "open": "wholefeed.library",
    "reconstruct": "wholefeed.library",
}

__all__ = [*_HOMES]  # noqa: PLE0604 - strings


def __getattr__(name: str) -> object:
    """Import a public name (PEP 562)."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(importlib.import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
