"""The measured checkout: this one, or another, with the same clients in one session.

    python -m benchmarks.answers --tree ../wholefeed-0.1

A checkout is set up by its own `make setup`; the interpreter of its .venv runs its server.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parent.parent.parent


@dataclass(frozen=True, slots=True)
class Tree:
    """A checkout of wholefeed.

    Args:
        root: Its folder.
        python: The interpreter that runs it.
        shadows: A folder whose modules are found before all others; none if empty.
    """

    root: Path
    python: Path
    shadows: str = ""

    @property
    def module(self) -> str:
        """The module with `serve`; 0.1 had no package of its own name."""
        return "wholefeed" if (self.root / "proxy" / "wholefeed").is_dir() else "proxy"

    @property
    def import_path(self) -> str:
        """The PYTHONPATH for that module, before installed packages."""
        own = str(self.root / "proxy" if self.module == "wholefeed" else self.root)
        return os.pathsep.join(filter(None, [self.shadows, own]))

    def without_uvloop(self, folder: Path) -> Tree:
        """Return the same checkout on asyncio's own loop; a module in the folder hides uvloop."""
        (folder / "uvloop.py").write_text('raise ImportError("hidden for a measurement")\n', "utf-8")
        return replace(self, shadows=str(folder))

    def commit(self) -> str:
        """Return the abbreviated commit, with `+` for a changed checkout; empty without git."""
        try:
            commit = self._git("rev-parse", "--short=7", "HEAD")
            return commit + ("+" if self._git("status", "--porcelain", "--", "proxy", "migrations") else "")
        except (OSError, subprocess.CalledProcessError):
            return ""

    def _git(self, *arguments: str) -> str:
        done = subprocess.run(["git", *arguments], cwd=self.root, check=True, capture_output=True, text=True)
        return done.stdout.strip()


HERE: Final = Tree(ROOT, Path(sys.executable))


def tree_at(folder: str, python: str = "") -> Tree:
    """Return the checkout in a folder; without an interpreter it is that of its .venv, if it has one.

    Raises:
        argparse.ArgumentTypeError: There is none.
    """
    root = Path(folder).resolve()
    if not (root / "pyproject.toml").is_file():
        raise argparse.ArgumentTypeError(f"expected a checkout of wholefeed, got {folder}")
    own = root / ".venv" / "bin" / "python"
    if python:
        return Tree(root, Path(os.path.abspath(python)))  # noqa: PTH100 - a .venv's link must stay one
    return Tree(root, own if own.exists() else Path(sys.executable))


def add_tree(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--tree", default="", metavar="FOLDER", help="the checkout to measure (this one)")
    parser.add_argument("--python", default="", metavar="PATH", help="what runs it (that of its .venv)")


def chosen_tree(options: argparse.Namespace) -> Tree:
    return tree_at(options.tree, options.python) if options.tree else HERE
