"""Play a conversation of `wholefeed.core.refresh.asking`: requests come out, answers go in.

played = play(collecting.run(), answer)     # `answer` returns the answer to each request
played.result, played.requests

A `Conversation` stops when `answer` returns `LATER`; then the test gives the answer itself (`reply`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Generic, TypeVar

from wholefeed.core.refresh.asking import CoreRequest, Talk

_T = TypeVar("_T")
_R = TypeVar("_R", bound=CoreRequest[Any])
MOST_REQUESTS: Final = 10_000
LATER: Final = object()
"""Returned in place of an answer that the test gives itself."""


class Conversation(Generic[_T]):
    """A conversation that runs to its end, or to a request with a later answer."""

    def __init__(self, talk: Talk[_T], answer: Callable[[CoreRequest[Any]], Any]) -> None:
        self.requests: list[CoreRequest[Any]] = []
        self.is_over = False
        self._talk = talk
        self._answer = answer
        self._results: list[_T] = []
        self.reply(None)

    @property
    def result(self) -> _T:
        assert self.is_over, f"it waits for the answer to {self.requests[-1]}"
        return self._results[0]

    def of(self, kind: type[_R]) -> list[_R]:
        return [request for request in self.requests if isinstance(request, kind)]

    def reply(self, answer: Any) -> None:
        """Answer the last request and the following ones."""
        try:
            while answer is not LATER:
                self.requests.append(self._talk.send(answer))
                assert len(self.requests) < MOST_REQUESTS, "there is no end"
                answer = self._answer(self.requests[-1])
        except StopIteration as end:
            self.is_over = True
            self._results.append(end.value)


def play(talk: Talk[_T], answer: Callable[[CoreRequest[Any]], Any]) -> Conversation[_T]:
    conversation = Conversation(talk, answer)
    assert conversation.is_over, "no answer is left to the test"
    return conversation
