"""Every job that can be done in another process, by the name that it goes under."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from wholefeed.core.jobs.reading import read_again, read_document
from wholefeed.core.jobs.remembering import remember_copies
from wholefeed.core.jobs.rendering import compose, render

JOBS: Final[Mapping[str, Callable[..., Any]]] = {
    job.__name__: job for job in (read_document, read_again, render, compose, remember_copies)
}
