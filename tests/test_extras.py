"""Instructions to add an extra, by the way wholefeed was installed."""

from __future__ import annotations

import json
import shlex
import sys
from importlib import metadata
from pathlib import Path

import pytest

from wholefeed.extras import to_add, to_install


def installed_from(folder: Path, monkeypatch: pytest.MonkeyPatch, **told: object) -> None:
    """Let the distribution state this origin (PEP 610)."""
    about = folder / "wholefeed-1.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: wholefeed\nVersion: 1\nRequires-Dist: yarl>=1.20\n"
        "Requires-Dist: psycopg[binary]>=3.2.13; extra == 'postgres'\n"
        "Requires-Dist: uvloop>=0.22; (python_version < '4') and extra == 'uvloop'\n"
    )
    (about / "direct_url.json").write_text(json.dumps(told))
    monkeypatch.setattr(metadata, "distribution", lambda _name: metadata.PathDistribution(about))


def test_in_a_checkout_make_does_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a checkout's .venv, the line is make's, with the folder to type it in."""
    checkout = tmp_path / "a checkout"
    where = {"url": checkout.as_uri(), "dir_info": {"editable": True}}
    installed_from(tmp_path / "site", monkeypatch, **where)
    monkeypatch.setattr(sys, "prefix", str(checkout / ".venv"))
    assert to_add("postgres") == f"make serve EXTRAS=postgres in {checkout}"


@pytest.mark.parametrize(
    "where",
    [
        {"url": "file:///somewhere/wholefeed-1.whl", "archive_info": {}},
        {"url": "file:///checkout", "dir_info": {"editable": True}},
        {},
    ],
)
def test_elsewhere_what_the_extra_names_is_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: dict[str, object]
) -> None:
    """From a wheel's file, a checkout in another environment, or an unknown place: the extra's requirements
    alone, into this environment, quoted for a shell; wholefeed itself is on no index."""
    installed_from(tmp_path, monkeypatch, **where)
    words = shlex.split(to_add("postgres"))
    assert words[-2:] == ["install", "psycopg[binary]>=3.2.13"]
    assert sys.executable in words
    assert shlex.split(to_add("uvloop"))[-2:] == ["install", "uvloop>=0.22"]


def test_an_environment_without_pip_is_given_one_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    """An environment of uv's has no pip; any other's pip installs into it."""
    monkeypatch.setitem(sys.modules, "pip", None)
    assert to_install(["a>=1"]) == f"pip --python {shlex.quote(sys.executable)} install 'a>=1'"


def test_where_nothing_is_installed_the_checkout_is_meant(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the sources on the path and no distribution, the message names the checkout's command."""

    def unknown(name: str) -> metadata.Distribution:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "distribution", unknown)
    assert to_add("postgres") == "make serve EXTRAS=postgres in a checkout"
