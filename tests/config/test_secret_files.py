"""Secrets that stand in files of their own."""

from __future__ import annotations

from pathlib import Path

import pytest

from wholefeed.config.tables import load_config
from wholefeed.errors import ConfigError

TOKEN = "a-token-of-good-length"
KEYS = ("first-key-of-good-length", "second-key-of-good-length")
TOKEN_FILE = "WHOLEFEED_SERVER_ACCESS_TOKEN_FILE"
KEYS_FILE = "WHOLEFEED_SERVER_SIGNING_KEYS_FILE"


@pytest.fixture(autouse=True)
def empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No ./config.toml of the developer's counts."""
    monkeypatch.chdir(tmp_path)


def a_file(folder: Path, content: bytes) -> Path:
    path = folder / "secret"
    path.write_bytes(content)
    return path


@pytest.mark.parametrize("end", ["", "\n", "\r\n", "\n\n", " \n"])
def test_a_token_is_read_from_the_file_that_the_variable_names(tmp_path: Path, end: str) -> None:
    """WHOLEFEED_SERVER_ACCESS_TOKEN_FILE: the file's line is the token, however the file ends."""
    path = a_file(tmp_path, f"{TOKEN}{end}".encode())
    assert load_config(None, {TOKEN_FILE: str(path)}, {}).server.access_token == TOKEN


def test_signing_keys_stand_one_a_line(tmp_path: Path) -> None:
    """WHOLEFEED_SERVER_SIGNING_KEYS_FILE: each line is a key, in order; empty lines and a comma are no
    separators of their own."""
    path = a_file(tmp_path, f"{KEYS[0]}\n\n{KEYS[1]},x\r\n".encode())
    assert load_config(None, {KEYS_FILE: str(path)}, {}).server.signing_keys == (KEYS[0], f"{KEYS[1]},x")


def test_every_secret_key_has_its_file_and_it_wins_over_the_configuration_file(tmp_path: Path) -> None:
    """The environment goes over the file, also where it names files: URLs may hold a password, too."""
    config = tmp_path / "some.toml"
    config.write_text(f'[server]\naccess_token = "{TOKEN}-of-the-file"\n')
    token, proxy = a_file(tmp_path, TOKEN.encode()), tmp_path / "proxy"
    proxy.write_text("http://me:word@p.example:3128\n")
    database = tmp_path / "database"
    database.write_text("postgresql://me:word@db.example/feeds\n")
    environ = {
        TOKEN_FILE: str(token),
        "WHOLEFEED_FETCH_PROXY_FILE": str(proxy),
        "WHOLEFEED_STORE_URL_FILE": str(database),
    }

    found = load_config(config, environ, {})

    assert found.server.access_token == TOKEN
    assert found.fetch.proxy == "http://me:word@p.example:3128"
    assert found.store.url == "postgresql://me:word@db.example/feeds"


def test_the_variable_and_its_file_together_are_an_error(tmp_path: Path) -> None:
    """Which of the two is meant is not guessed, not even when the variable is empty."""
    path = a_file(tmp_path, TOKEN.encode())
    environ = {TOKEN_FILE: str(path), "WHOLEFEED_SERVER_ACCESS_TOKEN": ""}
    with pytest.raises(ConfigError, match=r"WHOLEFEED_SERVER_ACCESS_TOKEN and .*_FILE are both set"):
        load_config(None, environ, {})


@pytest.mark.parametrize(
    ("variable", "content", "message"),
    [
        (TOKEN_FILE, b"", "got an empty file"),
        (TOKEN_FILE, b"\n \r\n", "got an empty file"),
        (KEYS_FILE, b"\n", "got an empty file"),
        (TOKEN_FILE, b"secretly secret\xff\xfe\n", "expected text"),
        (TOKEN_FILE, b"first-secret-of-two\nsecond-secret-of-two\n", "expected one line .*, got 2"),
        (TOKEN_FILE, b"secret!\n", "shorter than 16"),
        (TOKEN_FILE, b"secret with blanks in it\n", "characters that are not allowed"),
        (KEYS_FILE, b"a-secret-of-good-length\nsecret\n", "shorter than 16"),
        (TOKEN_FILE, b"secret" * 20_000, "at most 65536 bytes"),
    ],
)
def test_a_file_without_a_good_secret_is_refused_and_not_shown(
    tmp_path: Path, variable: str, content: bytes, message: str
) -> None:
    """The message names file and variable and says what is wrong; nothing of the content is in it, nor in
    what caused it."""
    path = tmp_path / "given"
    path.write_bytes(content)
    with pytest.raises(ConfigError, match=message) as caught:
        load_config(None, {variable: str(path)}, {})
    assert str(path) in str(caught.value)
    assert variable in str(caught.value)
    error: BaseException | None = caught.value
    while error is not None:
        assert "secret" not in f"{error!r} {vars(error)}".replace("expected a secret", "")
        error = error.__cause__


def test_a_file_that_cannot_be_read_is_told_by_its_name(tmp_path: Path) -> None:
    """A missing file, a folder and an empty name are errors of the configuration: the server does not start
    without the secret."""
    missing = tmp_path / "missing"
    with pytest.raises(ConfigError, match=rf"cannot read the file {missing} \({TOKEN_FILE}\): No such file"):
        load_config(None, {TOKEN_FILE: str(missing)}, {})
    with pytest.raises(ConfigError, match="Is a directory"):
        load_config(None, {TOKEN_FILE: str(tmp_path)}, {})
    with pytest.raises(ConfigError, match=f"path of a file in {TOKEN_FILE}, got nothing"):
        load_config(None, {TOKEN_FILE: ""}, {})


def test_only_secrets_are_read_from_files() -> None:
    """WHOLEFEED_SERVER_HOST_FILE is unknown, and the message lists those that there are."""
    with pytest.raises(ConfigError, match=f"only secrets are read from files: .*{TOKEN_FILE}, {KEYS_FILE}"):
        load_config(None, {"WHOLEFEED_SERVER_HOST_FILE": "/some/file"}, {})
