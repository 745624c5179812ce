"""The time in which an answer is put together.

    async with Answering(begin) as reconstruction:      # begin(answering) makes it
        ...                                             # what `answering.hold` has entered stays so in here

Most answers hold nothing, and a generator with its context manager and stack took as long as the look that
finds out.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from typing import Any, TypeVar

from wholefeed.service.results import Reconstruction

_T = TypeVar("_T")


class Answering(AbstractAsyncContextManager[Reconstruction]):
    """Entered once.

    Args:
        begin: Makes what the block is given.
    """

    def __init__(self, begin: Callable[[Answering], Coroutine[Any, Any, Reconstruction]]) -> None:
        self._begin = begin
        self._stack: AsyncExitStack | None = None

    async def hold(self, context: AbstractAsyncContextManager[_T]) -> _T:
        """Enter something until the end of the block."""
        if self._stack is None:
            self._stack = AsyncExitStack()
        return await self._stack.enter_async_context(context)

    async def __aenter__(self) -> Reconstruction:
        try:
            return await self._begin(self)
        except BaseException:
            await self.__aexit__()
            raise

    async def __aexit__(self, *_: object) -> None:
        if self._stack is not None:
            await self._stack.aclose()
