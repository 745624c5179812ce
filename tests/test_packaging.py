"""Parts of a release: the wheel, its manual page, the Debian package, the workflow."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

import pytest

from release.hatch_build import page
from tests.repository import matches, text, told
from wholefeed import __version__
from wholefeed.cli.main import COMMANDS, make_parser

ROOT = Path(__file__).parent.parent


def run(*command: str | Path, cwd: Path) -> str:
    """The standard output of a successful command, without access to the source tree."""
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
    assert tops == {"wholefeed", f"wholefeed-{__version__}.dist-info", f"wholefeed-{__version__}.data"}
    data = [name for name in ZipFile(wheel).namelist() if ".data/" in name]
    assert data == [f"wholefeed-{__version__}.data/data/share/man/man1/wholefeed.1"]


def test_the_wheel_has_every_file_that_the_program_needs(wheel: Path) -> None:
    """All modules, the files for type checkers, and all migrations."""
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


def plain(roff: str) -> str:
    """A manual page's text, without its lines and fonts."""
    for escaped, character in ((r"\-", "-"), (r"\(aq", "'"), (r"\(ga", "`"), (r"\(ha", "^"), (r"\(ti", "~")):
        roff = roff.replace(escaped, character)
    return re.sub(r"\\f[BIR]|\\&", "", roff)


def test_the_manual_page_says_what_help_says(wheel: Path) -> None:
    """The page in the wheel is made from the parser: every command with its summary, flags and examples."""
    (name,) = (name for name in ZipFile(wheel).namelist() if name.endswith("wholefeed.1"))
    built = ZipFile(wheel).read(name).decode()
    made = page(make_parser(), __version__, 0)
    assert built.partition("\n")[2] == made.partition("\n")[2]
    shown = plain(made)
    for command in COMMANDS:
        part = shown.partition(f".SS wholefeed {command.name}\n")[2].partition("\n.S")[0]
        assert command.summary[1:] in part, command.name
        assert "--config FILE" in part
        assert all(line in part for line in command.examples.splitlines()), command.name
    assert "exit codes: 0 done" in shown


def test_the_manual_page_follows_the_parser() -> None:
    """A new flag shows, with its default from the help; roff takes no text as its own."""
    parser = make_parser()
    parser.add_argument("--new", metavar="THING", default="a\\b", help=".it's `new` (%(default)s)")
    shown = page(parser, "9", 0)
    assert ".TP\n\\fB\\-\\-new\\fR \\fITHING\\fR\n\\&.it\\(aqs \\(ganew\\(ga (a\\eb)\n" in shown
    assert shown.startswith('.TH WHOLEFEED 1 1970-01-01 "wholefeed 9"\n')


@pytest.mark.skipif(not shutil.which("mandoc"), reason="mandoc is not installed")
def test_mandoc_finds_nothing_wrong_with_the_manual_page(tmp_path: Path) -> None:
    """No warning, and no error."""
    (tmp_path / "wholefeed.1").write_text(page(make_parser(), __version__, 0), "utf-8")
    assert run("mandoc", "-T", "lint", "-W", "warning", "wholefeed.1", cwd=tmp_path) == ""


WORKFLOW = ROOT / ".github/workflows/release.yml"


def test_what_the_release_workflow_runs_can_be_run_anywhere() -> None:
    """Each step runs a target of the Makefile, or installs the needs of one on a bare Debian."""
    targets = {target[1] for _, target in matches(r"^([a-z-]+):", ROOT / "Makefile")}
    commands = [*matches(r"^ +- run: (?!\|$)(.+)$", WORKFLOW)]
    assert {"sbom", "check-wheel", "deb", "image", "announce"} <= {each[1].split()[1] for _, each in commands}
    told(
        f"{where}: {command[1]}, expected a target of the Makefile"
        for where, command in commands
        if not re.fullmatch(r"make ([a-z-]+)( [A-Z]+=\S+)*", command[1])
        or command[1].split()[1] not in targets
    )
    blocks = [block[1] for _, block in matches(r"^ +- run: \|\n((?: {10}.+\n)+)", WORKFLOW)]
    assert all(line.split()[0] == "apt-get" for block in blocks for line in block.splitlines())


def test_actions_are_pinned() -> None:
    """By a commit with its version beside it; the one with an unseen repository by an exact tag."""
    by_tag = "pypa/gh-action-pypi-publish@v1.13.0"
    told(
        f"{where}: {used[1]}, expected NAME@COMMIT # VERSION"
        for file in (WORKFLOW, ROOT / ".github/workflows/check.yml")
        for where, used in matches(r"uses: (.+)$", file)
        if used[1] != by_tag and not re.fullmatch(r"[\w/-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", used[1])
    )


def test_the_wheel_is_tried_on_each_version_of_python_that_it_names() -> None:
    """The classifiers, `make check`'s and the release's versions are the same."""
    named = re.findall(r'Python :: (3\.\d+)"', text(ROOT / "pyproject.toml"))
    listed = ", ".join(f'"{each}"' for each in named)
    for workflow in ("check", "release"):
        assert f"python: [{listed}]" in text(ROOT / f".github/workflows/{workflow}.yml")


def test_the_package_runs_the_unit_of_deploy() -> None:
    """`release/deb` changes the unit: its scripts name the same files and user."""
    unit, script = text(ROOT / "deploy/wholefeed.service"), text(ROOT / "release/deb")
    postinst, postrm = (text(ROOT / f"release/debian/{name}") for name in ("postinst", "postrm"))
    assert "ExecStart=/opt/wholefeed/bin/wholefeed serve\n" in unit
    assert "User=wholefeed\n" in unit
    assert "--home /var/lib/wholefeed wholefeed" in postinst
    assert "LoadCredential=access-token:/etc/wholefeed/access-token" in unit
    assert "/etc/wholefeed/access-token" in postinst
    assert "rm -rf /var/lib/wholefeed /etc/wholefeed/access-token" in postrm
    assert "python3 (>= 3.$minor~), python3 (<< 3.$((minor + 1))~)" in script


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
