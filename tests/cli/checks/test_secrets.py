"""wholefeed.cli.doctor: files that secrets come from."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from wholefeed.cli.doctor import Verdict, check_secrets
from wholefeed.cli.main import main

VARIABLE = "WHOLEFEED_SERVER_ACCESS_TOKEN_FILE"
TOKEN = "t" * 20


@pytest.fixture
def folder() -> Iterator[Path]:
    """One that others may enter; pytest's own lie below a folder that they may not."""
    with TemporaryDirectory() as name:
        path = Path(name)
        path.chmod(0o755)
        yield path


@pytest.fixture
def token(folder: Path) -> Path:
    """The file of a token."""
    path = folder / "token"
    path.write_text(TOKEN)
    return path


def verdict(path: Path, *, is_container: bool = False) -> Verdict:
    (found,) = check_secrets(str(path.parent / "feeds.db"), {VARIABLE: str(path)}, is_container=is_container)
    assert TOKEN not in found.text
    return found.verdict


def test_a_secret_that_others_can_read_is_none(token: Path, folder: Path) -> None:
    """Neither its own mode nor a folder keeps them out; in a container nobody else is."""
    token.chmod(0o644)
    assert verdict(token) is Verdict.WARNING
    assert verdict(token, is_container=True) is Verdict.GOOD
    folder.chmod(0o700)
    assert verdict(token) is Verdict.GOOD
    folder.chmod(0o755)
    token.chmod(0o640)
    assert verdict(token) is Verdict.GOOD


def test_a_file_that_went_meanwhile_is_no_fault(folder: Path) -> None:
    """The configuration has been read from it."""
    assert verdict(folder / "gone") is Verdict.GOOD


def test_files_that_variables_name_count_and_the_token_that_was_made(token: Path, folder: Path) -> None:
    """Other variables name no secrets."""
    store, made = str(folder / "feeds.db"), folder / "feeds.db.token"
    (named,) = check_secrets(store, {VARIABLE: str(token), "HOME": "/"}, is_container=True)
    assert named.text == f"{token} ({VARIABLE})"
    made.write_text(TOKEN)
    (kept,) = check_secrets(store, {}, is_container=True)
    assert kept.text == f"{made} (the access token that was made)"


def test_doctor_looks_at_them(
    token: Path, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The whole command, with nothing of the secret."""
    token.chmod(0o600)
    monkeypatch.chdir(folder)
    monkeypatch.setenv("WHOLEFEED_STORE_PATH", str(folder / "feeds.db"))
    monkeypatch.setenv("WHOLEFEED_SERVER_PORT", "9")
    monkeypatch.setenv(VARIABLE, str(token))
    assert main(["doctor", "--offline"]) == 0
    shown = capsys.readouterr().out
    assert f"good     secrets      {token}" in shown
    assert TOKEN not in shown
