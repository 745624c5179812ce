"""Service and test world carry out each request of a refresh."""

from __future__ import annotations

import re
from typing import Any
from unittest.mock import MagicMock

import pytest

from tests.core.refresh.world import WorldIO
from wholefeed.core.refresh import asking
from wholefeed.core.refresh.asking import CoreRequest
from wholefeed.service.feed_file import FeedFile
from wholefeed.service.incoming import IncomingDocuments
from wholefeed.service.network import Network
from wholefeed.service.refresh import Refresh
from wholefeed.service.subscribing import SubscriptionDesk

REQUESTS: list[type[CoreRequest[Any]]] = sorted(
    (each for each in vars(asking).values() if isinstance(each, type) and issubclass(each, CoreRequest)),
    key=lambda each: each.__name__,
)
REQUESTS.remove(CoreRequest)


def test_the_service_carries_out_each_request_and_no_other() -> None:
    """docs/architecture.md: its table has a row for each kind."""
    refresh = MagicMock(
        spec=Refresh,
        _desk=MagicMock(spec=SubscriptionDesk),
        _network=MagicMock(spec=Network),
        _incoming=MagicMock(spec=IncomingDocuments),
        _file=MagicMock(spec=FeedFile),
    )
    handlers = Refresh._handlers(refresh)  # noqa: SLF001
    assert sorted(handlers, key=lambda each: each.__name__) == REQUESTS


@pytest.mark.parametrize("request_type", REQUESTS, ids=lambda each: each.__name__)
def test_the_world_of_the_tests_carries_out_each_request(request_type: type[CoreRequest[Any]]) -> None:
    """The names of its methods decide."""
    name = re.sub(r"(?<!^)([A-Z])", r"_\1", request_type.__name__).lower()
    assert callable(getattr(WorldIO, name, None))
