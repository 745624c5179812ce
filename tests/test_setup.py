"""The Makefile on an incomplete machine: one line names the missing part, and nothing is left behind."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
TOOLS = ("sh", "make", "sed", "grep", "rm", "cat", "touch", "tr")

BARE_PYTHON = """#!/bin/sh
case "$1$2" in
    *ensurepip*) exit 1 ;;
    -c*) exit 0 ;;
    --version) echo Python 3.12.0 ;;
    *) echo "No module named ${2}" >&2; exit 1 ;;
esac
"""
"""A python3 as Debian ships it alone: no ensurepip, no pip, no virtualenv."""

BORROWED_PYTHON = """#!/bin/sh
case "$1$2" in
    *ensurepip*) exit 1 ;;
    -c*) exit 0 ;;
    --version) echo Python 3.12.0 ;;
    -mvirtualenv) exit 1 ;;
    -mvenv) mkdir -p .venv/bin; echo false >.venv/bin/python; chmod +x .venv/bin/python ;;
    -mpip) echo "pip $*" >>asked; exit 0 ;;
esac
"""
"""The same with a pip beside it, which records its calls."""


def make(folder: Path, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run make in a folder with the files of set-up, and without this machine's Python on the PATH."""
    for file in ("Makefile", "pyproject.toml", "constraints.txt"):
        shutil.copy(ROOT / file, folder)
    tools = folder / "tools"
    tools.mkdir()
    for tool in (*TOOLS, "mkdir", "chmod", "false"):
        (tools / tool).symlink_to(shutil.which(tool) or pytest.skip(f"no {tool} here"))
    return subprocess.run(
        [tools / "make", *words],
        cwd=folder,
        env={"PATH": str(tools), "HOME": str(folder), **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )


def an_interpreter(folder: Path, script: str) -> Path:
    path = folder / "python3"
    path.write_text(script, "utf-8")
    path.chmod(0o755)
    return path


def test_a_python_without_anything_to_install_with_is_told_with_the_mend(tmp_path: Path) -> None:
    """Debian's python3 alone: the message names the missing package, and the command that adds it; no
    half-made .venv stays."""
    done = make(tmp_path, "serve", f"PYTHON={an_interpreter(tmp_path, BARE_PYTHON)}")
    assert done.returncode
    assert "apt install python3-venv" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / ".venv").exists()


def test_a_pip_that_is_there_serves_a_python_without_ensurepip(tmp_path: Path) -> None:
    """It puts pip into the new environment, which does the rest."""
    make(tmp_path, "serve", f"PYTHON={an_interpreter(tmp_path, BORROWED_PYTHON)}")
    asked = (tmp_path / "asked").read_text("utf-8")
    assert "--python .venv/bin/python" in asked
    assert "install -c constraints.txt --upgrade pip" in asked


@pytest.mark.sample
def test_an_index_that_cannot_be_reached_is_one_line(tmp_path: Path) -> None:
    """The line names the index and pip's log, without pip's retries. A closed port stands for the index."""
    index = "http://127.0.0.1:9/simple"
    done = make(
        tmp_path,
        "demo",
        f"PYTHON={sys.executable}",
        PIP_INDEX_URL=index,
        PIP_CONFIG_FILE=os.devnull,
        PIP_NO_CACHE_DIR="1",
    )
    assert done.returncode
    told = [line for line in done.stderr.splitlines() if not line.startswith("make: ")]
    assert told == [f"cannot reach {index} to install what wholefeed needs; pip's log: .venv/pip.log"]
    assert "Retrying" not in done.stdout
    assert index in (tmp_path / ".venv" / "pip.log").read_text("utf-8")


def test_serve_and_demo_install_no_linters_and_no_driver_of_postgresql(tmp_path: Path) -> None:
    """The linters are four times as large as the program, the driver has no wheel for some machines."""
    python = f"PYTHON={an_interpreter(tmp_path, BARE_PYTHON)}"
    serving = make(tmp_path, "-n", "serve", "demo", python).stdout
    assert "--editable" in serving
    assert "--group dev" not in serving
    assert "postgres" not in serving
    shutil.rmtree(tmp_path / "tools")
    testing = make(tmp_path, "-n", "test", python).stdout
    assert "--group dev" in testing
    assert "postgres" in testing


def test_serve_takes_an_extra_and_no_other_word(tmp_path: Path) -> None:
    """`make serve EXTRAS=postgres` installs PostgreSQL's driver first; a wrong name is an error."""
    python = f"PYTHON={an_interpreter(tmp_path, BARE_PYTHON)}"
    serving = make(tmp_path, "-n", "serve", "EXTRAS=postgres", python).stdout
    assert serving.index("--editable '.[postgres]'") < serving.index("wholefeed serve")
    shutil.rmtree(tmp_path / "tools")
    refused = make(tmp_path, "serve", "EXTRAS=mysql", python)
    assert refused.returncode
    assert "expected EXTRAS=postgres, got mysql" in refused.stderr
    assert not (tmp_path / ".venv").exists()
