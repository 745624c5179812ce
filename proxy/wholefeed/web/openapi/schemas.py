"""The schemas of what is told as JSON, for the description of the HTTP interface."""

from __future__ import annotations

from typing import Any, Final

from wholefeed.core.terms import Family, Kind, Role, State
from wholefeed.service.account import Standing

Schema = dict[str, Any]


def ref(kind: str, name: str) -> Schema:
    """Return a reference to a component."""
    return {"$ref": f"#/components/{kind}/{name}"}


def _object(**properties: Schema) -> Schema:
    """Return an object that always has all of its properties."""
    return {"type": "object", "properties": properties, "required": list(properties)}


def _count(description: str) -> Schema:
    return {"type": "integer", "minimum": 0, "description": description}


def _time(description: str) -> Schema:
    return {"type": ["string", "null"], "format": "date-time", "description": description}


_URL: Final[Schema] = {"type": "string", "format": "uri"}


def schemas() -> Schema:
    """Return the schemas by name."""
    feed = _object(
        url=_URL | {"description": "canonical"},
        kind={"enum": [str(kind) for kind in Kind]},
        state={"enum": [str(state) for state in State]},
        stale={"type": "boolean", "description": "the publisher could not be reached the last time"},
        format={"enum": [str(family) for family in Family]},
        documents=_count("documents of the feed"),
        entries=_count("entries of the feed"),
        since=_time("when it was first asked for"),
        last_refresh=_time("when the publisher was last asked"),
        next_refresh=_time("until when its answer is fresh"),
    )
    attempt = _object(
        reason={"type": "string", "description": "a slug"},
        status={"type": ["integer", "null"], "description": "what the publisher sent"},
        attempts=_count("how often it was asked for"),
        next_attempt=_time("when it is tried again"),
    )
    more = _object(
        failure={
            "description": "why the publisher could not be reached the last time",
            "anyOf": [{"type": "null"}, ref("schemas", "Attempt")],
        },
        missing={"type": "array", "items": ref("schemas", "Missing")},
        notes={"type": "array", "items": ref("schemas", "Note")},
        ending={
            "description": "why the last walk ended",
            "anyOf": [{"type": "null"}, _object(code={"type": "string"}, text={"type": "string"})],
        },
        refreshing={"type": "boolean", "description": "the publisher is being asked"},
        walking={"type": "boolean", "description": "more may come"},
        progress=_object(
            documents=_count("documents so far"),
            entries=_count("entries so far"),
            fetched=_count("documents fetched by this walk"),
        ),
        bytes=_count("bytes of its documents as stored"),
    )
    chain = _object(chain={"type": "array", "items": ref("schemas", "ChainDocument")})
    return {
        "Feed": feed,
        "Status": {"allOf": [ref("schemas", "Feed"), more]},
        "Account": {"allOf": [ref("schemas", "Status"), chain]},
        "Attempt": attempt,
        "Missing": {"allOf": [_object(url={"type": "string"}), ref("schemas", "Attempt")]},
        "ChainDocument": _chain_document(),
        "Note": _object(code={"type": "string"}, url={"type": "string"}, text={"type": "string"}),
        "Health": _object(status={"enum": ["ok", "ready"]}),
        "Problem": _object(
            type={"type": "string", "description": "urn:wholefeed: and a slug that stays the same"},
            title={"type": "string"},
            status={"type": "integer"},
            detail={"type": "string", "description": "what was expected and what came"},
            request_id={"type": "string", "description": "as in X-Request-Id and in the log"},
        ),
    }


def _chain_document() -> Schema:
    """Return what is told of a document; what only stored ones have is null for one that is missing."""
    return _object(
        url={"type": "string"},
        role={"enum": [*map(str, Role), None]},
        standing={"enum": [str(standing) for standing in Standing]},
        relation={"type": ["string", "null"], "description": "of the link that leads to it"},
        **{"from": {"type": ["string", "null"], "description": "the document that bears that link"}},
        failure={
            "description": "why it, or the rest of it, could not be had",
            "anyOf": [{"type": "null"}, ref("schemas", "Attempt")],
        },
        fetched=_time("when it was fetched"),
        checked=_time("when the publisher was last asked for it"),
        entries={"type": ["integer", "null"], "description": "entries of the document"},
        duplicates={
            "type": ["integer", "null"],
            "description": "those that another copy stands for",
        },
        bytes={"type": ["integer", "null"], "description": "its length"},
        notes={"type": "array", "items": ref("schemas", "Note")},
    )
