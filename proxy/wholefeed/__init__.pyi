from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from os import PathLike

from wholefeed.config.tables import Config as Config
from wholefeed.core.compose.entries import Category as Category
from wholefeed.core.compose.entries import Enclosure as Enclosure
from wholefeed.core.compose.entries import Entry as Entry
from wholefeed.core.compose.entries import Feed as Feed
from wholefeed.core.compose.entries import Link as Link
from wholefeed.core.compose.entries import Missing as Missing
from wholefeed.core.compose.entries import Progress as Progress
from wholefeed.core.model import State as State
from wholefeed.errors import WholefeedError as WholefeedError

__all__ = [
    "Category",
    "Config",
    "Enclosure",
    "Entry",
    "Feed",
    "Library",
    "Link",
    "Missing",
    "Progress",
    "State",
    "WholefeedError",
    "areconstruct",
    "open",
    "reconstruct",
]

__version__: str

def reconstruct(
    url: str,
    *,
    config: Config | Mapping[str, object] | None = None,
    store: str | PathLike[str] | None = None,
    wait_seconds: float | None = None,
    progress: Callable[[Progress], object] | None = None,
) -> Feed: ...
async def areconstruct(
    url: str,
    *,
    config: Config | Mapping[str, object] | None = None,
    store: str | PathLike[str] | None = None,
    wait_seconds: float | None = None,
    progress: Callable[[Progress], object] | None = None,
) -> Feed: ...
def open(  # noqa: A001
    store: str | PathLike[str] | None = None, *, config: Config | Mapping[str, object] | None = None
) -> AbstractAsyncContextManager[Library]: ...

class Library:
    async def reconstruct(
        self,
        url: str,
        *,
        wait_seconds: float | None = None,
        progress: Callable[[Progress], object] | None = None,
    ) -> Feed: ...
    async def forget_entry(self, url: str, identity: str) -> None: ...
