"""Remarks on how a document reads: they stay true as long as it is kept, and are kept with it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from wholefeed.core.notes import Note


@dataclass(frozen=True, slots=True)
class ReadingNote(Note):
    """Base class: something about the text of a document."""


@dataclass(frozen=True, slots=True)
class BadLink(ReadingNote):
    """A link of the head cannot be followed: empty, unresolvable or not http(s) (rules R11, R12)."""

    reference: ClassVar[str] = "RFC 3986, section 4.1; rules R11, R12"
    partial: ClassVar[bool] = False
    slug: ClassVar[str] = "bad-link"

    relation: str
    href: str

    def __str__(self) -> str:
        return f"expected an http(s) URL as {self.relation} link, got {self.href!r}: {self.url}"


@dataclass(frozen=True, slots=True)
class ExtraLink(ReadingNote):
    """More than one link of one relation; the first usable one counts (rule R12)."""

    reference: ClassVar[str] = "rule R12"
    partial: ClassVar[bool] = False
    slug: ClassVar[str] = "extra-link"

    relation: str
    href: str

    def __str__(self) -> str:
        return f"one {self.relation} link too many, not followed: {self.href!r} in {self.url}"


@dataclass(frozen=True, slots=True)
class EncodingRetried(ReadingNote):
    """The declared encoding did not fit the bytes; another one did (docs/faults.md row 46)."""

    reference: ClassVar[str] = "RFC 7303, section 3"
    partial: ClassVar[bool] = False
    slug: ClassVar[str] = "encoding-retried"

    declared: str
    used: str

    def __str__(self) -> str:
        return f"declared {self.declared}, read as {self.used}: {self.url}"


@dataclass(frozen=True, slots=True)
class DocumentRepaired(ReadingNote):
    """The document was not well-formed and was made so before it was read (docs/faults.md row 45)."""

    reference: ClassVar[str] = "XML 1.0, section 2.1; RFC 4287, section 2"
    partial: ClassVar[bool] = False
    slug: ClassVar[str] = "repaired"

    repairs: tuple[str, ...]
    """What was done, in the words of docs/repair.md."""

    def __str__(self) -> str:
        return f"not well-formed, repaired ({', '.join(self.repairs)}): {self.url}"


@dataclass(frozen=True, slots=True)
class DocumentTruncated(ReadingNote):
    """It breaks off, or has entries behind its end: its whole entries count (docs/faults.md row 49)."""

    reference: ClassVar[str] = "XML 1.0, section 2.1; RFC 5005, section 4.2"
    partial: ClassVar[bool] = True
    slug: ClassVar[str] = "truncated"

    breaks_off: bool = True
    """Whether its end is missing, rather than that entries stand behind it."""

    def __str__(self) -> str:
        found = "breaks off before its end" if self.breaks_off else "goes on behind its end"
        return f"{found}, so only its whole entries count: {self.url}"


@dataclass(frozen=True, slots=True)
class IdentityRepeated(ReadingNote):
    """Entries of one document that say different things share an identity: only one counts (rule R9)."""

    reference: ClassVar[str] = "RFC 4287, section 4.2.6; RSS 2.0, guid; rule R9"
    partial: ClassVar[bool] = False
    slug: ClassVar[str] = "identity-repeated"

    entries: int
    """How many share the identity of an earlier one."""

    def __str__(self) -> str:
        return f"{self.entries} entries share the identity of another one and say something else: {self.url}"
