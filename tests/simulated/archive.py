"""A web archive that has copies of some documents, as they stood when somebody came by.

archive = WebArchive("7")
archive.visit({"http://blog.test/feed": b"..."}, clock.time())
archive.answer(Question("http://archive.test/cdx/search/cdx?url=..."))
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final
from urllib.parse import parse_qs, urlsplit

from tests.simulated.network import Question, Response, chance

ROOT: Final = "http://archive.test"
_NAMES: Final = ["urlkey", "timestamp", "original", "mimetype", "statuscode", "digest", "length"]


class WebArchive:
    """Answers as the Wayback Machine does."""

    def __init__(self, seed: str) -> None:
        self._seed = seed
        self._copies: dict[str, dict[str, tuple[str, bytes]]] = {}
        """By URL and 14 digits: media type and body."""

    def visit(self, documents: Mapping[str, tuple[str, bytes]], at: float) -> None:
        """Save some documents of a publisher in their present state."""
        timestamp = datetime.fromtimestamp(at, UTC).strftime("%Y%m%d%H%M%S")
        for url, (media_type, body) in documents.items():
            if chance("saved", self._seed, url, timestamp) < 0.6:
                self._copies.setdefault(url, {})[timestamp] = media_type, body

    def answer(self, question: Question) -> Response:
        parts = urlsplit(question.url)
        if parts.path.startswith("/cdx/"):
            query = {name: values[0] for name, values in parse_qs(parts.query).items()}
            return self._index(query)
        timestamp, _, url = question.url.removeprefix(f"{ROOT}/web/").partition("id_/")
        found = self._copies.get(url, {}).get(timestamp)
        if found is None or chance("lost", self._seed, question.url) < 0.1:
            return Response(404)
        links = (f'<{url}>; rel="original", <{ROOT}/x>; rel="first prev memento"',)
        media_type, body = found
        headers = {"content-type": media_type, "content-length": str(len(body))}
        return Response(200, body, headers, links)

    def _index(self, query: Mapping[str, str]) -> Response:
        url = query["url"]
        if chance("index", self._seed, url, query.get("resumeKey", "")) < 0.05:
            return Response(503)
        rows = [
            ["key", timestamp, url, media_type, "200", hashlib.sha256(body).hexdigest(), str(len(body))]
            for timestamp, (media_type, body) in sorted(self._copies.get(url, {}).items())
            if timestamp >= query.get("from", "")
        ]
        limit = int(query["limit"])
        rows = rows[limit:] if limit < 0 else rows[:limit]
        body = json.dumps([_NAMES, *rows] if rows else []).encode()
        return Response(200, body, {"content-type": "application/json"})
