"""All sites, each built when it is first asked for, once for all processes of a test run."""

from __future__ import annotations

import atexit
import fcntl
import os
import shutil
import tempfile
from collections.abc import Callable, Mapping
from functools import cache, partial
from pathlib import Path
from typing import Final

from tests.sites import by_hand, hugo, jekyll, listless, pelican, software
from tests.sites.site import Layout, Site

LAYOUTS: Final[Mapping[str, Layout]] = {
    **hugo.LAYOUTS,
    **jekyll.LAYOUTS,
    **pelican.LAYOUTS,
    **by_hand.LAYOUTS,
    **software.LAYOUTS,
    **listless.LAYOUTS,
}
FOLDER: Final = "TEST_SITES"
"""The variable that tells the processes of a test run where the sites are."""


def share_folder() -> None:
    """Let this process and those that it starts build into one folder, which goes with this process."""
    if FOLDER not in os.environ:
        os.environ[FOLDER] = tempfile.mkdtemp(prefix="wholefeed-sites-")
        atexit.register(shutil.rmtree, os.environ[FOLDER], ignore_errors=True)


@cache
def _site(name: str) -> Site:
    """Return a site; skip the test where its generator is not installed."""
    layout = LAYOUTS[name]
    if layout.generator:
        layout.generator.require()
    share_folder()
    folder = Path(os.environ[FOLDER], name.replace(" ", "-").replace(":", ""))
    folder.mkdir(exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "built").exists():
            _build(layout, folder)
            (folder / "built").touch()
    return layout.site(name, folder / "files")


def _build(layout: Layout, folder: Path) -> None:
    if layout.generator is None:
        layout.make(folder / "files")
        return
    layout.make(folder / "source")
    layout.generator.build(folder / "source", folder / f"files{layout.path}", layout.url)


SITES: Final[Mapping[str, Callable[[], Site]]] = {name: partial(_site, name) for name in LAYOUTS}
"""What builds a site, by its name."""
