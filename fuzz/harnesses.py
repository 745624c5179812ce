"""The harnesses by name: the check of an input, and its greatest length."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from fuzz.documents import check_document, check_pumped, check_repair, check_well_formed
from fuzz.values import check_date, check_url
from fuzz.wire import check_decoding, check_freshness, check_link_field, check_query


@dataclass(frozen=True)
class Harness:
    check: Callable[[bytes], None]
    """Raises if a property fails."""
    max_bytes: int
    """Length limit of tried inputs."""


HARNESSES: Final = {
    "parser": Harness(check_document, 4096),
    "grammar": Harness(check_well_formed, 1024),
    "json": Harness(check_document, 2048),
    "broken": Harness(check_document, 2048),
    "repair": Harness(check_repair, 2048),
    "pumped": Harness(check_pumped, 256),
    "decoder": Harness(check_decoding, 2048),
    "url": Harness(check_url, 256),
    "date": Harness(check_date, 90),
    "link": Harness(check_link_field, 512),
    "freshness": Harness(check_freshness, 512),
    "query": Harness(check_query, 512),
}
