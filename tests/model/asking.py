"""The proxy's requests compared with the required ones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from tests.model.said import HOST_RESTS, Failure, Got


class Asking:
    """The proxy's requests in one refresh, compared with the required ones.

    Args:
        now: Epoch seconds.
        answers: The publisher's answer to a path, and the paths of its redirects.
        asked: The requests that it has seen, in any order.
        guesses: Whether documents that are not known may be asked for ahead.
    """

    def __init__(
        self,
        now: float,
        answers: Callable[[str], tuple[Got, Sequence[str]]],
        asked: Iterable[str],
        *,
        rests: bool,
        guesses: bool,
    ) -> None:
        self.now = now
        self.rests = rests
        """Whether the host asked for a pause (Retry-After), which lasts until a restart here."""
        self.differences: list[str] = []
        self._answers = answers
        self._left = Counter(asked)
        self._guesses = guesses
        for path, times in self._left.items():
            if times > 1:
                self.differences.append(f"{path} was asked for {times} times in one refresh")

    def must(self, path: str) -> Got:
        """Return the outcome of a document that has to be asked for."""
        return self._take(path, is_must=True) or Failure(0)

    def may(self, path: str) -> Got | None:
        """Return the outcome, or None if the proxy chose not to ask."""
        return self._take(path, is_must=False)

    def _take(self, path: str, *, is_must: bool) -> Got | None:
        if self.rests and not (self._guesses and self._left[path]):  # else it was asked for ahead, before
            return HOST_RESTS if is_must else None
        if not self._left[path]:
            if not is_must:
                return None
            self.differences.append(f"{path} was not asked for")
        got, hops = self._answers(path)
        for each in (path, *hops):
            del self._left[each]
        if isinstance(got, Failure) and got.retry_after is not None:
            self.rests = True
        return got

    def end(self, is_known: Callable[[str], bool]) -> None:
        """Note every further request as wrong."""
        for path in self._left:
            if not self._guesses or is_known(path):
                self.differences.append(f"{path} was asked for without a reason")
