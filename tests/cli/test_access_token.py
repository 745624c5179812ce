"""The access token that a public proxy makes for itself (docs/faults.md row 81)."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from wholefeed.cli.access_token import ensure_token, forget_unseen, is_loopback, notice
from wholefeed.config.tables import Config, ServerConfig, StoreConfig
from wholefeed.errors import StoreError


def a_config(folder: Path, *, host: str = "0.0.0.0", **server: object) -> Config:
    return Config(
        server=ServerConfig(host=host, **server),  # type: ignore[arg-type]
        store=StoreConfig(path=str(folder / "feeds.db")),
    )


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize(
    "host", ["0.0.0.0", "::", "192.168.1.5", "feeds.example.org", "127.0.0.1.example.org"]
)
@pytest.mark.fault("81")
def test_a_public_address_without_anything_gets_a_token_beside_the_database(
    tmp_path: Path, host: str
) -> None:
    """docs/faults.md row 81: the first start makes it, mode 0600."""
    found = ensure_token(a_config(tmp_path, host=host))

    assert found.path == tmp_path / "feeds.db.token"
    assert found.is_new
    assert len(found.token) >= 32
    assert found.path.read_text("ascii") == found.token + "\n"
    assert mode(found.path) == 0o600


def test_the_token_is_used_again_and_new_only_once(tmp_path: Path) -> None:
    """docs/faults.md row 81: a failed start prints no new token, and leaves an old one."""
    unseen = ensure_token(a_config(tmp_path))
    forget_unseen(unseen)
    first = ensure_token(a_config(tmp_path))
    assert first.is_new
    assert first.token != unseen.token
    again = ensure_token(a_config(tmp_path))
    assert (again.token, again.is_new, again.was_exposed) == (first.token, False, False)
    forget_unseen(again)
    assert ensure_token(a_config(tmp_path)).token == first.token


def test_the_notice_has_the_url_to_use_and_the_file(tmp_path: Path) -> None:
    """Row 81: the URL with the token is ready to copy."""
    found = ensure_token(a_config(tmp_path))
    text = notice(found, "https://feeds.example.org")
    assert f"https://feeds.example.org/feed?token={found.token}&url=" in text
    assert str(found.path) in text


@pytest.mark.parametrize("host", ["127.0.0.1", "127.9.9.9", "::1", "localhost", "a.LOCALHOST."])
def test_loopback_needs_no_token(tmp_path: Path, host: str) -> None:
    """Row 81: any spelling of a loopback address makes no file."""
    assert is_loopback(host)
    assert ensure_token(a_config(tmp_path, host=host)).token == ""
    assert list(tmp_path.iterdir()) == []


@pytest.mark.fault("81")
def test_a_configured_token_or_key_or_an_open_proxy_needs_no_file(tmp_path: Path) -> None:
    """docs/faults.md row 81."""
    assert ensure_token(a_config(tmp_path, signing_keys=("a key of readers",))).token == ""
    assert ensure_token(a_config(tmp_path, access_token="configured")).token == "configured"
    assert ensure_token(a_config(tmp_path, open=True)).token == ""
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_others_can_read_is_tightened_and_told(tmp_path: Path) -> None:
    """Row 81: mode 0644 becomes 0600, and the operator hears of the exposure."""
    config = a_config(tmp_path)
    first = ensure_token(config)
    assert first.path is not None
    first.path.chmod(0o644)

    again = ensure_token(config)

    assert again.was_exposed
    assert again.token == first.token
    assert mode(first.path) == 0o600


@pytest.mark.parametrize("content", [b"", b"\n", b"short", b"blank in the middle of it", b"\xff" * 32])
def test_a_file_without_a_token_is_refused_and_left_alone(tmp_path: Path, content: bytes) -> None:
    """Row 81: the failed start names an empty, short or garbled file, and never overwrites it."""
    path = tmp_path / "feeds.db.token"
    path.write_bytes(content)
    path.chmod(0o600)

    with pytest.raises(StoreError, match=r"expected an access token .*feeds\.db\.token: remove the file"):
        ensure_token(a_config(tmp_path))

    assert path.read_bytes() == content


def test_a_token_file_that_is_a_link_and_a_folder_that_is_not_there_are_refused(tmp_path: Path) -> None:
    """Row 81: nobody can make another file serve as the token."""
    target = tmp_path / "elsewhere"
    target.write_text("x" * 32)
    (tmp_path / "feeds.db.token").symlink_to(target)
    with pytest.raises(StoreError, match="cannot use the access token"):
        ensure_token(a_config(tmp_path))
    with pytest.raises(StoreError, match=r"cannot store an access token in .*: No such file or directory"):
        ensure_token(a_config(tmp_path / "missing"))
