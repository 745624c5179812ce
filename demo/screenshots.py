"""`python -m demo.screenshots FOLDER`: the pictures in README, of the sample publisher's feeds.

Needs Chromium (Debian's `chromium`) and the packages of `make setup`.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Final
from urllib.parse import quote

from demo.proxy_process import free_port, running_proxy
from demo.publisher import Publisher
from demo.reader import ask_until_settled, proxied

_WIDTH: Final = 1280
_BELOW: Final = 8
_SHOWN: Final = "A Walk a Week"
"""The feed of the page: its publisher links no history, but has one."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="demo.screenshots", description="The pictures of README.")
    parser.add_argument("folder", type=Path, metavar="FOLDER", help="where they are written")
    folder: Path = parser.parse_args().folder
    program = shutil.which("chromium") or shutil.which("chromium-browser")
    if program is None:
        print("demo: expected chromium on PATH, found none: apt install chromium", file=sys.stderr)
        return 1
    with (
        tempfile.TemporaryDirectory(prefix="wholefeed-demo-") as name,
        Publisher() as publisher,
        running_proxy(Path(name), free_port()) as base,
    ):
        for feed in publisher.feeds:
            for _ in ask_until_settled(proxied(base, publisher.url(feed.path))):
                pass
        url = next(publisher.url(feed.path) for feed in publisher.feeds if feed.title == _SHOWN)
        _take(program, f"{base}/", folder / "home.png", last="table.feeds")
        _take(program, f"{base}/?url={quote(url, safe='')}", folder / "feed.png", last="figure.feed-chart")
    return 0


def _take(program: str, url: str, path: Path, *, last: str) -> None:
    """Take a picture of a page, as far as the element that `last` selects."""
    from playwright.sync_api import sync_playwright  # noqa: PLC0415 - the other parts of the demo need none

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, chromium_sandbox=False)
        page = browser.new_page(viewport={"width": _WIDTH, "height": 900}, color_scheme="light")
        page.goto(url)
        end = page.locator(last).evaluate("(each) => each.getBoundingClientRect().bottom")
        page.set_viewport_size({"width": _WIDTH, "height": round(end) + _BELOW})
        page.screenshot(path=path)
        browser.close()


if __name__ == "__main__":
    sys.exit(main())
