"""What other sources than the publisher's links offer to a refresh: `OfferedCopy`."""

from __future__ import annotations

from typing import NamedTuple

from wholefeed.service.sources import Obtained


class OfferedCopy(NamedTuple):
    """A document from a web archive (R33), from an import (I1), or from the publisher's lists (H7)."""

    url: str
    """The URL of the document that it stands for; an import and a list have one of their own."""
    obtained: Obtained
    is_subscription: bool
    """Whether it is a copy of the subscription document."""
