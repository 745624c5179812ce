"""The wheel: what is in it, and that it can be installed beside another distribution with a similar name."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

import pytest

from wholefeed import __version__

ROOT = Path(__file__).parent.parent


def run(*command: str | Path, cwd: Path) -> str:
    """What a command prints on standard output; it must end well, and sees nothing of the source tree."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        command, cwd=cwd, env=kept, capture_output=True, text=True, timeout=280, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of this tree, built without a network."""
    folder = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", folder, cwd=ROOT)
    (built,) = folder.iterdir()
    return built


def test_the_wheel_owns_one_name(wheel: Path) -> None:
    """Nothing else: a top-level `proxy` would overwrite the files of the distribution proxy.py."""
    tops = {name.partition("/")[0] for name in ZipFile(wheel).namelist()}
    assert tops == {"wholefeed", f"wholefeed-{__version__}.dist-info"}


def test_the_wheel_has_every_file_that_the_program_needs(wheel: Path) -> None:
    """All modules, what type checkers read, and all migrations."""
    names = {*ZipFile(wheel).namelist()}
    proxy = ROOT / "proxy"
    sources = [path for path in proxy.rglob("*") if path.is_file() and path.suffix != ".pyc"]
    folder = ROOT / "migrations"
    migrations = [f"wholefeed/_migrations/{path.relative_to(folder)}" for path in folder.rglob("*.sql")]
    assert {path.relative_to(proxy).as_posix() for path in sources} <= names
    assert {"wholefeed/py.typed", "wholefeed/__init__.pyi"} <= names
    assert migrations
    assert {*migrations} <= names


def test_nothing_of_the_wheel_is_meant_for_developers(wheel: Path) -> None:
    """No tests, no caches, no databases."""
    suffixes = {Path(name).suffix for name in ZipFile(wheel).namelist() if name.startswith("wholefeed/")}
    assert suffixes <= {".py", ".pyi", ".sql", ".typed", ".html", ".css", ".js", ".json", ".svg"}


@pytest.mark.timeout(600)
def test_it_installs_and_runs_beside_proxy_py(
    request: pytest.FixtureRequest, wheel: Path, tmp_path: Path
) -> None:
    """Both commands answer, the module runs, the migrations are found, the library is there."""
    if not request.config.getoption("--install"):
        pytest.skip("needs a package index: make check-install")
    run(sys.executable, "-m", "venv", tmp_path / "venv", cwd=tmp_path)
    programs = tmp_path / "venv" / "bin"
    python, wholefeed = programs / "python", programs / "wholefeed"
    constraints = ROOT / "constraints.txt"
    run(python, "-m", "pip", "install", "-c", constraints, wheel, "proxy.py", cwd=tmp_path)
    version = f"wholefeed {__version__}\n"
    assert run(wholefeed, "--version", cwd=tmp_path) == version
    assert run(python, "-m", "wholefeed", "--version", cwd=tmp_path) == version
    assert run(programs / "proxy", "--version", cwd=tmp_path).strip()
    assert "applied 0001_" in run(wholefeed, "migrate", cwd=tmp_path)
    where = run(python, "-c", "import wholefeed.library as home; print(home.__file__)", cwd=tmp_path)
    assert where.startswith(str(tmp_path / "venv"))
