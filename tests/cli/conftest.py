"""Commands run in a folder of the test's own."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """No configuration or database of the developer's counts."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("WHOLEFEED_STORE_PATH", str(tmp_path / "wholefeed.db"))
    return tmp_path


@pytest.fixture
def no_server(monkeypatch: pytest.MonkeyPatch) -> None:
    """On the discard port nobody listens."""
    monkeypatch.setenv("WHOLEFEED_SERVER_PORT", "9")
