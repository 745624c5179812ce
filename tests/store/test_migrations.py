"""The numbered files of both engines."""

from __future__ import annotations

from pathlib import Path

import pytest

from wholefeed.errors import StoreUnusableError
from wholefeed.store import migrations
from wholefeed.store.migrations import EngineName, Migration, read_migrations


def test_both_engines_have_the_same_newest_schema() -> None:
    """One number names a store's schema on either engine."""
    assert read_migrations("postgres")[-1].version == read_migrations("sqlite")[-1].version


@pytest.mark.parametrize(("engine", "folder", "number"), [("sqlite", "", 1), ("postgres", "postgres", 13)])
def test_migrations_are_found_in_a_wheel(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, engine: EngineName, folder: str, number: int
) -> None:
    """An installed package reads its own migrations, and no other files beside them."""
    packed = tmp_path / "_migrations" / folder
    packed.mkdir(parents=True)
    (packed / f"{number:04}_packed.sql").write_text("SELECT 1;")
    (packed / "README").write_text("not one")
    (packed / "deeper").mkdir()
    monkeypatch.setattr(migrations, "files", lambda _: tmp_path)

    assert read_migrations(engine) == (Migration(number, f"{number:04}_packed", "SELECT 1;"),)


@pytest.mark.parametrize(
    "names", [[], ["0002_b.sql"], ["0001_a.sql", "0003_c.sql"], ["0001_a.sql", "0001_b.sql"]]
)
def test_migrations_with_a_gap_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, names: list[str]
) -> None:
    """A package with missing or doubled migrations does not touch a database."""
    packed = tmp_path / "_migrations"
    packed.mkdir()
    for name in names:
        (packed / name).write_text("")
    monkeypatch.setattr(migrations, "files", lambda _: tmp_path)

    with pytest.raises(StoreUnusableError, match="without a gap"):
        read_migrations()


def test_a_package_without_an_engines_migrations_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error names the missing folder of a broken installation."""
    (tmp_path / "_migrations").mkdir()
    monkeypatch.setattr(migrations, "files", lambda _: tmp_path)

    with pytest.raises(StoreUnusableError, match="no such directory"):
        read_migrations("postgres")
