"""Generators of static sites for tests: Hugo and Jekyll from Debian, Pelican from PyPI.

    apt-get install --no-install-recommends hugo jekyll jekyll-theme-minima ruby-jekyll-paginate

A test of a generator that is not installed is skipped, or fails where TEST_GENERATORS is `required`; the end
of a test run says how many ran.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Final

import pytest

NONE_HERE: Final = "needs the generator"
RAN: Final = ("generator", "real")
"""Property of a test that ran a generator."""
SECONDS: Final = 50


@dataclass(frozen=True)
class Generator:
    name: str
    lacks: Callable[[], str]
    """Names its missing programs; empty: it can run."""
    command: Callable[[Path, str], list[str]]
    """Makes the build command from the output folder and the site's URL."""

    def require(self) -> None:
        """Skip the test if it cannot run."""
        if lacking := self.lacks():
            reason = f"{NONE_HERE} {self.name}, for want of {lacking}, as CONTRIBUTING.md says"
            if os.environ.get("TEST_GENERATORS") == "required":
                pytest.fail(reason)
            pytest.skip(reason)

    def build(self, source: Path, output: Path, url: str) -> None:
        """Build the site from a folder's sources; the output folder is emptied before."""
        shutil.rmtree(output, ignore_errors=True)
        done = subprocess.run(
            self.command(output, url),
            cwd=source,
            env={**os.environ, "LANG": "C.UTF-8", "HOME": str(source.parent), "PYTHONWARNINGS": ""},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        assert done.returncode == 0, done.stdout


def write(folder: Path, files: dict[str, str]) -> None:
    """Write texts by names of files."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")


HUGO: Final = Generator(
    "hugo",
    lambda: "" if shutil.which("hugo") else "hugo",
    lambda output, url: ["hugo", "--quiet", "--baseURL", f"{url}/", "--destination", str(output)],
)
JEKYLL: Final = Generator(
    "jekyll",
    lambda: "" if shutil.which("jekyll") else "jekyll",
    lambda output, url: [
        "sh",
        "-c",
        'echo "url: $1" >../url.yml && exec jekyll build -q --config _config.yml,../url.yml -d "$2"',
        "sh",
        url,
        str(output),
    ],
)
PELICAN: Final = Generator(
    "pelican",
    lambda: "" if find_spec("pelican") else "pelican",
    lambda output, url: [
        *(sys.executable, "-m", "pelican", "-s", "pelicanconf.py", "-o", str(output)),
        *("-e", f"SITEURL={json.dumps(url)}"),
    ],
)
