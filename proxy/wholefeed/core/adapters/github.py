"""GitHub: the releases and the tags of a repository, ten a page.

    releases.atom?after=v1.2    the ten that stand behind the release or tag of that name

Facts: `after` with the name of the last entry's tag gives the ten behind it (`belokoz/klats`, a program that
looks for its updates so, has found that the feed never holds more than ten, and that a release which was
deleted stays in it as a tag); the pages for people know the parameter too (`…/releases?after=v2.8.0`, in many
guides). An entry's id is `tag:github.com,2008:Repository/NUMBER/TAG`, and a tag may hold slashes. What is
given behind a tag that is gone is not known: an empty page, the first one and 404 are all taken for that.
"""

from __future__ import annotations

import html
import re
from typing import Final
from urllib.parse import urlsplit

from wholefeed.core.adapters.asking import Asking, Job, Outcome, Sight
from wholefeed.core.adapters.keyset import Keyset, collect_by_key, look_by_key
from wholefeed.core.adapters.urls import has_parameter
from wholefeed.core.terms import Family

HOST: Final = "github.com"
_SITE_ID: Final = "tag:github.com,2008:"
_ENTRY_ID: Final = re.compile(r"tag:github\.com,2008:Repository/\d+/(.+)")
_PATH: Final = re.compile(r"/[^/]+/[^/]+/(?:releases|tags)\.atom")
_PARAMETER: Final = "after"


def tag_of(entry_id: str) -> str | None:
    """Return the tag that an entry's id names."""
    found = _ENTRY_ID.fullmatch(html.unescape(entry_id))
    return found.group(1) if found else None


_KEYSET: Final = Keyset(parameter=_PARAMETER, key_of=tag_of, is_lasting=False)


class GitHub:
    """Releases and tags at github.com; installations elsewhere may be of any age.

    Args:
        host: Where it is.
    """

    name: Final = "github"

    def __init__(self, host: str = HOST) -> None:
        self._host = host

    def fits(self, sight: Sight) -> bool:
        """Return whether host, the feed's id and its last entry's say so."""
        if sight.family is not Family.ATOM or not sight.site_id.startswith(_SITE_ID):
            return False
        parts = urlsplit(sight.url)
        is_there = parts.hostname == self._host and _PATH.fullmatch(parts.path) is not None
        is_theirs = is_there and tag_of(sight.marks.last_id) is not None
        return is_theirs and not has_parameter(_PARAMETER, sight.url, sight.asked_url)

    def collect(self, job: Job) -> Asking[Outcome]:
        """Ask from the last entry down."""
        return collect_by_key(job, _KEYSET)

    def look(self, job: Job) -> Asking[Outcome]:
        """Ask for what the subscription document does not reach."""
        return look_by_key(job, _KEYSET)
