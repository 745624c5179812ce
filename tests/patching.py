"""The constants of the program that a test changes: all of them, and why nothing else serves.

    set_constant(monkeypatch, "REST_SECONDS", 0.01)

A constant stands here when it is nobody's argument: it would have to be handed from the configuration down
through several objects that have no use for it. A test passes an object's arguments itself
(`tests.running.running` takes the parts of the application), and is not patched.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import pytest


@dataclass(frozen=True)
class Constant:
    reason: str
    places: tuple[str, ...]
    """Each module that reads it, in its own name, beside `wholefeed`."""


_READ_MANY: Final = "a document that is larger than the true limit takes seconds to make and to read"
_WAIT_LONG: Final = "it is real time that would have to pass, on both sides of a socket"
_MANY_WALKS: Final = "that many feeds would have to be opened, whose publishers all answer slowly"

CONSTANTS: Final = {
    "ADOPT_SECONDS": Constant("seconds until it is looked again", ("service.sharing",)),
    "BEAT_SECONDS": Constant("seconds between signs of life", ("service.replica",)),
    "CLOSE_SECONDS": Constant(_WAIT_LONG, ("store.postgres",)),
    "ADAPTERS": Constant("GitHub is known by its host, which no test reaches", ("core.adapters.table",)),
    "FORM_SECONDS": Constant(_WAIT_LONG, ("web.pages",)),
    "LARGE_BYTES": Constant("dozens of such documents would fill the memory", ("fetch.budget",)),
    "LATE_SECONDS": Constant("a busy machine is late itself", ("service.sharing_hosts",)),
    "LONGEST_PAUSE_SECONDS": Constant("polls begin a minute apart", ("service.background",)),
    "MOST_WAITING": Constant("dozens of archives would have to shift", ("core.refresh.archives",)),
    "LOOK_SECONDS": Constant("a second until it is looked again", ("service.replica",)),
    "MAX_ELEMENTS": Constant(_READ_MANY, ("core.parse.families",)),
    "MAX_ENTRIES": Constant(_READ_MANY, ("core.parse.families", "core.parse.jsonfeed")),
    "MAX_HEAD_CHILDREN": Constant(_READ_MANY, ("core.parse.families",)),
    "MAX_VALUES": Constant(_READ_MANY, ("core.parse.jsonfeed",)),
    "MAX_WAITING_WALKS": Constant(_MANY_WALKS, ("service.opening",)),
    "MAX_WIRE_BYTES": Constant("16 MB for each kind of answer", ("fetch.exchange",)),
    "PAGE_SECONDS": Constant("no page takes a second", ("service.showing",)),
    "PAGE_WAIT_SECONDS": Constant(_WAIT_LONG, ("service.showing",)),
    "PAUSE_SECONDS": Constant("a second between two looks, in dozens of tests", ("cli.check_command",)),
    "PARSER_VERSION": Constant(
        "there is one version of the parser at a time",
        (
            "service.new_documents",
            "service.publishing",
            "service.storing",
            "service.segment_weaving",
            "core.refresh.refreshing",
            "core.refresh.subscription",
        ),
    ),
    "PATIENCE_SECONDS": Constant(_WAIT_LONG, ("store.postgres",)),
    "PROBE_SECONDS": Constant("seconds until it is tried again", ("service.running",)),
    "RATE_GRACE_SECONDS": Constant(_WAIT_LONG, ("fetch.exchange",)),
    "REST_SECONDS": Constant("a minute of rest", ("service.background", "service.running")),
    "RETRY_SECONDS": Constant("seconds until it is tried again", ("service.replica",)),
    "ROOM_SECONDS": Constant(_WAIT_LONG, ("workers.pool",)),
    "SEALED_ENTRIES": Constant("hundreds of refreshes, each with a new entry", ("core.compose.remembering",)),
    "SEARCH_SECONDS": Constant("no search of a test takes seconds", ("web.view",)),
    "SLICE_SECONDS": Constant("seconds until a turn ends", ("service.sharing_hosts",)),
    "UPLOAD_SECONDS": Constant(_WAIT_LONG, ("web.request",)),
    "WRITE_SECONDS": Constant(_WAIT_LONG, ("store.postgres",)),
    "_AGAIN_SECONDS": Constant("a minute until it is looked again", ("service.background",)),
    "_BATCH_BYTES": Constant("a feed of 32 MiB takes half a minute to collect", ("service.segment_weaving",)),
    "_DRAIN_SECONDS": Constant(_WAIT_LONG, ("fetch.exchange",)),
    "HISTORY": Constant("a standby would have to be promoted", ("store.postgres_connection",)),
    "_MAX_QUOTES": Constant(_READ_MANY, ("core.parse.jsonfeed",)),
    "_STALLED_SECONDS": Constant(_WAIT_LONG, ("web.feed",)),
    "_WRITER_PRAGMAS": Constant("hundreds of databases that nobody keeps", ("store.sqlite_file",)),
}  # fmt: skip


def set_constant(patch: pytest.MonkeyPatch, name: str, value: object) -> None:
    """Change a constant in all its modules, until the patch is undone."""
    for place in CONSTANTS[name].places:
        patch.setattr(f"wholefeed.{place}.{name}", value)
