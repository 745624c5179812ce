"""What is remarked on a feed that a web archive's copies are part of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from wholefeed.core.notes import Note


@dataclass(frozen=True, slots=True)
class MementoServed(Note):
    """A web archive's copy serves, because the publisher does not give the document (rule R33)."""

    reference: ClassVar[str] = "RFC 7089; rule R33"
    partial: ClassVar[bool] = True
    slug: ClassVar[str] = "memento"

    copy_url: str
    captured: str
    """When the copy was made, or the first and the last of several."""
    copies: int = 1

    def __str__(self) -> str:
        what, verb = ("a copy", "stands") if self.copies == 1 else (f"{self.copies} copies", "stand")
        return f"{what} of {self.captured} in a web archive {verb} in for {self.url}: {self.copy_url}"
