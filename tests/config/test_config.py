"""The configuration: keys, defaults, sources and refusals."""

from __future__ import annotations

import errno
import os
import pwd
import tomllib
from pathlib import Path

import pytest

from wholefeed.config.tables import (
    KEYS,
    PUBLISHER_KEYS,
    Config,
    FetchConfig,
    PublisherConfig,
    ServerConfig,
    StoreConfig,
    config_of,
    example,
    load_config,
    mask,
)
from wholefeed.errors import ConfigError

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The developer's ./config.toml does not count."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def a_file(folder: Path, text: str, name: str = "some.toml") -> Path:
    path = folder / name
    path.write_text(text, "utf-8")
    return path


def test_nothing_given_gives_the_defaults() -> None:
    """wholefeed runs without file, variables and flags."""
    assert load_config(None, {}, {}) == Config()


def test_every_default_is_allowed_by_its_own_rule() -> None:
    """A default copied into a file passes the check of its key."""
    for key in KEYS:
        assert key.rule.check(key.default) == key.default, key.name


@pytest.mark.parametrize(
    ("mode", "is_own", "told"),
    [
        (0o600, False, r"not readable for user \w+, only for other: chgrp \d+ config.toml && chmod g\+rX"),
        (0o640, False, r"not readable for user \w+, only for other and the group 4242: chgrp"),
        (0o000, True, r"not readable for user \w+: chmod u\+r config.toml"),
    ],
)
def test_a_file_that_may_not_be_read_is_told_with_who_may_and_the_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: int, *, is_own: bool, told: str
) -> None:
    """Root owns many a configuration file, while the service runs as another user."""
    a_file(tmp_path, "", "config.toml")
    found = os.stat_result((0o100000 | mode, 0, 0, 0, os.geteuid() if is_own else 4241, 4242, 0, 0, 0, 0))
    user = pwd.struct_passwd(("other" if not is_own else "me", "", 0, 0, "", "", ""))

    def deny(self: Path, *_: object) -> str:
        raise PermissionError(errno.EACCES, "Permission denied", str(self))

    monkeypatch.setattr(Path, "read_text", deny)
    monkeypatch.setattr(Path, "stat", lambda *_, **__: found)
    monkeypatch.setattr(pwd, "getpwuid", lambda _: user)
    with pytest.raises(ConfigError, match=rf"config.toml \(the default\): config.toml is {told}"):
        load_config(None, {}, {})


def test_later_sources_win(tmp_path: Path) -> None:
    """docs/configuration.md: the file, then the environment, then the flags."""
    file = a_file(tmp_path, '[server]\nport = 1001\nhost = "::1"\n[fetch]\nretries = 5')
    environ = {"WHOLEFEED_SERVER_PORT": "1002", "WHOLEFEED_FETCH_RETRIES": "6"}

    config = load_config(file, environ, {"server.port": 1003})

    assert (config.server.host, config.fetch.retries, config.server.port) == ("::1", 6, 1003)


def test_the_file_is_the_flag_s_else_the_variable_s_else_config_toml(tmp_path: Path) -> None:
    """--config outranks WHOLEFEED_CONFIG, and that config.toml in the working directory."""
    a_file(tmp_path, "[server]\nport = 1", "config.toml")
    by_variable = a_file(tmp_path, "[server]\nport = 2", "variable.toml")
    by_flag = a_file(tmp_path, "[server]\nport = 3", "flag.toml")
    environ = {"WHOLEFEED_CONFIG": str(by_variable)}

    assert load_config(None, {}, {}).server.port == 1
    assert load_config(None, environ, {}).server.port == 2
    assert load_config(by_flag, environ, {}).server.port == 3


def test_a_byte_order_mark_before_the_file_is_no_error(tmp_path: Path) -> None:
    """Some editors write a UTF-8 mark."""
    file = tmp_path / "bom.toml"
    file.write_bytes(b"\xef\xbb\xbf[server]\nport = 4")
    assert load_config(file, {}, {}).server.port == 4


@pytest.mark.parametrize(
    ("variable", "text", "section", "key", "value"),
    [
        ("WHOLEFEED_FETCH_PORTS", "80, 8000-9000", "fetch", "ports", (80, "8000-9000")),
        ("WHOLEFEED_FETCH_PORTS", '[443, "1-2"]', "fetch", "ports", (443, "1-2")),
        ("WHOLEFEED_FETCH_ALLOW_NETWORKS", "::1,fd::/16", "fetch", "allow_networks", ("::1/128", "fd::/16")),
        ("WHOLEFEED_FETCH_ALLOW_NETWORKS", "", "fetch", "allow_networks", ()),
        ("WHOLEFEED_FETCH_DENY_HOSTS", "*.Example.ORG.", "fetch", "deny_hosts", ("*.example.org",)),
        ("WHOLEFEED_FETCH_ALLOW_HOSTS", "A.test.,[::1]", "fetch", "allow_hosts", ("a.test", "::1")),
        ("WHOLEFEED_SERVER_ALLOWED_HOSTS", "a.test.", "server", "allowed_hosts", ("a.test",)),
        ("WHOLEFEED_SERVER_PORT", " 81 ", "server", "port", 81),
        ("WHOLEFEED_FETCH_CONNECT_TIMEOUT_SECONDS", " 2 ", "fetch", "connect_timeout_seconds", 2.0),
        ("WHOLEFEED_FETCH_CONNECT_TIMEOUT_SECONDS", "2.5", "fetch", "connect_timeout_seconds", 2.5),
        ("WHOLEFEED_HISTORY_PAGED", "No", "history", "paged", False),
        ("WHOLEFEED_SERVER_OPEN", "1", "server", "open", True),
        ("WHOLEFEED_SERVER_PUBLIC_URL", "http://a.example/f/", "server", "public_url", "http://a.example/f"),
        ("WHOLEFEED_SERVER_PUBLIC_URL", "http://h/a/b.c~d_e-f", "server", "public_url", "http://h/a/b.c~d_e-f"),
        ("WHOLEFEED_SERVER_TRUSTED_PROXIES", "unix:,::1", "server", "trusted_proxies", ("unix:", "::1/128")),
        ("WHOLEFEED_SERVER_SOCKET", "/run/w/w.sock", "server", "socket", "/run/w/w.sock"),
        ("WHOLEFEED_SERVER_ALLOWED_HOSTS", "A.test,[::1]", "server", "allowed_hosts", ("a.test", "::1")),
        ("WHOLEFEED_LOG_LEVEL", "WARNING", "log", "level", "warning"),
        ("WHOLEFEED_LIMITS_ANSWER_BYTES", "0", "limits", "answer_bytes", 0),
        ("WHOLEFEED_LIMITS_WORKERS", " 3 ", "limits", "workers", 3),
        ("WHOLEFEED_LIMITS_WORKERS", "Auto", "limits", "workers", "auto"),
    ],
)  # fmt: skip
def test_variables_become_values(variable: str, text: str, section: str, key: str, value: object) -> None:
    """Texts from the environment become lists, networks, hosts, numbers and booleans."""
    config = load_config(None, {variable: text}, {})
    assert getattr(getattr(config, section), key) == value


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[server", "expected TOML in .*some.toml"),
        ("[sever]", r"unknown section \[sever\] in .*some.toml; did you mean server\?"),
        ("server = 1", r"server in .*some.toml must be a section, \[server\], not a value"),
        ("port = 1", r"port in .*some.toml is a key outside a section; port belongs below \[server\]"),
        ("logs = 1", r"logs in .*some.toml is a key outside a section; did you mean log\?"),
        ("[server]\naccess_token = 'fifteen-letters'", r"shorter than 16 characters.*a word of at least 16 "),
        ("[server]\naccess_token = 'sixteen and more letters'", "characters that are not allowed"),
        ("[server]\naccess_token = 1", r"server.access_token = \*\*\* in .* \(not a text\)"),
        ("[server]\nprot = 1", r"unknown key server.prot in .*some.toml; did you mean server.port\?"),
        ("[limits]\nworkers = 65", r"out of range.*a whole number from 0 to 64, or \"auto\""),
        ("[limits]\nworkers = -1", "out of range"),
        ("[limits]\nworkers = true", "neither a whole number nor"),
        ("[limits]\nworkers = 'many'", "neither a whole number nor"),
        ("[server]\ndocument_bytes = 1", r"did you mean limits.document_bytes\?"),
        ("[server]\nport = '80'", "server.port = '80' in .*some.toml is not allowed .*: expected a whole"),
        ("[server]\nport = true", "server.port = True .*from 0 to 65535"),
        ("[server]\nport = 65536", r"server.port = 65536 .*\(out of range\)"),
        ("[server]\nhost = '[::1]'", "an IP address without brackets"),
        ("[server]\npublic_url = 'https://a.example/?x=1'", "server.public_url"),
        ("[server]\npublic_url = 'https://a.example/a//b'", "other characters in its path"),
        ("[server]\npublic_url = 'https://a.example/a/../b'", "other characters in its path"),
        ("[server]\npublic_url = 'https://a.example/{x}'", "other characters in its path"),
        ("[server]\npublic_url = 'https://a.example/a%20b'", "other characters in its path"),
        ("[server]\nsocket = '/" + "x" * 107 + "'", "the path of a socket, 107 bytes at most"),
        ("[server]\nsocket = ' '", "the path of a socket"),
        ("[server]\ntrusted_proxies = ['unix']", 'server.trusted_proxies'),
        ("[fetch]\nallow_networks = ['unix:']", "fetch.allow_networks"),
        ("[server]\npublic_url = 'ftp://a.example/'", "expected an http or https URL"),
        ("[server]\npublic_url = 'http://u:p@a.example/'", "credentials are not allowed here"),
        ("[server]\npublic_url = 'http://a.example:99999/'", "server.public_url"),
        ("[server]\nallowed_hosts = ['http://a.example']", "server.allowed_hosts"),
        ("[server]\nallowed_hosts = ['a.example:80']", "not a host without a port"),
        ("[server]\nallowed_hosts = ['*.a.example']", "not a host without a port"),
        ("[fetch]\nallow_hosts = ['a.example:80']", "not a host without a port"),
        ("[fetch]\ndeny_hosts = ['*.*.example']", "not a host without a port"),
        ("[server]\nsigning_keys = ['fifteen-letters']", "shorter than 16 characters"),
        ("[server]\nport = 80.0", r"\(not a whole number\)"),
        ("[fetch]\nconnect_timeout_seconds = true", r"\(not a number of seconds\)"),
        ("[server]\nopen = 'yes'", "expected true or false"),
        ("[store]\npath = ''", "expected the path of a file"),
        ("[store]\npath = ':memory:'", "expected the path of a file"),
        ("[store]\nmax_bytes = 1", r"or 0 \(off\)"),
        ("[fetch]\nconnect_timeout_seconds = nan", "not a number"),
        ("[fetch]\nconnect_timeout_seconds = inf", "not a number"),
        ("[fetch]\nretries = -1", "from 0 to 10"),
        ("[fetch]\nports = [0]", "fetch.ports"),
        ("[fetch]\nports = ['9-8']", "fetch.ports"),
        ("[fetch]\nports = 80", "not a list"),
        ("[fetch]\nallow_networks = ['127.0.0.1/8']", r"did you mean 127.0.0.0/8\?"),
        ("[fetch]\nallow_networks = ['everything']", "not a network"),
        ("[fetch]\nuser_agent = ''", "fetch.user_agent"),
        ('[fetch]\nuser_agent = "a\\r\\nX: y"', "fetch.user_agent"),
        ("[fetch]\nproxy = 'http://p.example/path'", "a path is not allowed here"),
        ("[log]\nlevel = 'loud'", "one of debug, info, warning, error, critical"),
        ("[freshness]\nminimum_seconds = 1000", "minimum_seconds = 1000 is above freshness.default_seconds"),
        ("[freshness]\nmaximum_seconds = 10", "default_seconds = 900 is above freshness.maximum_seconds"),
    ],
)  # fmt: skip
def test_a_refused_file_is_told_with_key_value_place_and_what_is_allowed(
    tmp_path: Path, text: str, message: str
) -> None:
    """An unknown key or a bad value ends the start."""
    with pytest.raises(ConfigError, match=message):
        load_config(a_file(tmp_path, text), {}, {})


@pytest.mark.parametrize(
    ("environ", "message"),
    [
        ({"WHOLEFEED_SERVER_PROT": "1"}, r"WHOLEFEED_SERVER_PROT; did you mean WHOLEFEED_SERVER_PORT\?"),
        ({"WHOLEFEED_SERVER_PORT": "many"}, "'many' from the environment variable WHOLEFEED_SERVER_PORT"),
        ({"WHOLEFEED_SERVER_PORT": ""}, "server.port = ''"),
        ({"WHOLEFEED_SERVER_OPEN": "perhaps"}, "server.open = 'perhaps' .*: expected true or false"),
        ({"WHOLEFEED_FETCH_PORTS": "[80"}, "fetch.ports"),
        (
            {"WHOLEFEED_CONFIG": "/nonexistent/x.toml"},
            r"/nonexistent/x.toml \(WHOLEFEED_CONFIG\): No such file",
        ),
    ],
)
def test_a_refused_variable_is_told_by_its_name(environ: dict[str, str], message: str) -> None:
    """A bad or misspelt variable is named, never ignored."""
    with pytest.raises(ConfigError, match=message):
        load_config(None, environ, {})


def test_a_refused_flag_is_told(tmp_path: Path) -> None:
    """A bad flag, or a missing --config file, is attributed to the command line."""
    with pytest.raises(ConfigError, match=r"server\.port = -1 on the command line"):
        load_config(None, {}, {"server.port": -1})
    with pytest.raises(ConfigError, match=r"missing.toml \(--config\): No such file"):
        load_config(tmp_path / "missing.toml", {}, {})


@pytest.mark.parametrize("key", ["server.access_token", "server.signing_keys", "fetch.proxy", "store.url"])
def test_a_refused_secret_is_not_shown(key: str) -> None:
    """Row 80: a token, a signing key or a proxy's password."""
    with pytest.raises(ConfigError) as caught:
        load_config(None, {}, {key: "top secret\n"})
    assert "secret" not in str(caught.value)


def test_variables_that_an_orchestrator_sets_for_a_service_named_wholefeed_are_not_ours() -> None:
    """Kubernetes sets some for a service of this name; WHOLEFEED_PORT=8080 remains an unknown key."""
    environ = {
        "WHOLEFEED_SERVICE_HOST": "10.0.0.1",
        "WHOLEFEED_SERVICE_PORT": "8080",
        "WHOLEFEED_SERVICE_PORT_HTTP": "8080",
        "WHOLEFEED_PORT": "tcp://10.0.0.1:8080",
        "WHOLEFEED_PORT_8080_TCP": "tcp://10.0.0.1:8080",
        "WHOLEFEED_PORT_8080_TCP_ADDR": "10.0.0.1",
    }
    assert load_config(None, environ, {}) == Config()
    with pytest.raises(ConfigError, match="unknown environment variable WHOLEFEED_PORT"):
        load_config(None, {"WHOLEFEED_PORT": "8080"}, {})


def test_the_printed_configuration_hides_secrets_and_reads_back(tmp_path: Path) -> None:
    """Row 80: `config` masks the passwords of fetch.proxy and store.url."""
    config = Config(
        store=StoreConfig(url="postgresql://me:hidden-6@db/feeds?sslmode=require&password=hidden-7"),
        fetch=FetchConfig(proxy="http://hidden-4:hidden-5@p.example:3128", user_agent='quote " and \\'),
    )

    text = mask(config)

    assert "hidden" not in text
    again = load_config(a_file(tmp_path, text), {}, {})
    assert again.fetch.proxy == "http://***@p.example:3128"
    assert again.store.url == "postgresql://me:***@db/feeds?sslmode=require&password=***"
    assert again.fetch.user_agent == config.fetch.user_agent
    assert again.limits == config.limits


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("access_token", "hidden-but-long-enough"),
        ("signing_keys", ("hidden-and-long-1", "hidden-and-long-2")),
    ],
)
def test_a_masked_secret_does_not_become_the_secret(tmp_path: Path, key: str, value: object) -> None:
    """A copied configuration must not let in people who know the mask."""
    text = mask(Config(server=ServerConfig(**{key: value})))  # type: ignore[arg-type]
    assert "hidden" not in text
    with pytest.raises(ConfigError, match=rf"server\.{key} = \*\*\* in .* is not allowed"):
        load_config(a_file(tmp_path, text), {}, {})


@pytest.mark.parametrize(
    "url",
    [
        "",
        "postgresql://db/feeds",
        "postgres://me@[2001:db8::1]:5433/feeds",
        "postgresql://me:p%40ss%2Fw%23rd@db.example.org/feeds?sslmode=verify-full",
        "postgresql:///feeds?host=/run/postgresql",
        "postgresql://one,other:5433/feeds?target_session_attrs=read-write",
        "postgresql://db/?dbname=feeds",
    ],
)
def test_a_database_that_replicas_share_is_a_url_as_libpq_takes_it(url: str) -> None:
    """With a socket, several hosts, TLS; if empty, the file of store.path counts."""
    assert load_config(None, {"WHOLEFEED_STORE_URL": url}, {}).store.url == url


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("host=db dbname=feeds", "characters that are not allowed"),
        ("mysql://db/feeds", "no URL of a PostgreSQL database"),
        ("postgresql:feeds", "no URL of a PostgreSQL database"),
        ("postgresql://me:hidden@db", "no name of a database in it"),
        ("postgresql://me:hid#den@db/feeds", "not percent-encoded"),
        ("postgresql://me:hid@den@db/feeds", "not percent-encoded"),
        ("postgresql://me:hid/den@db/feeds", "not percent-encoded"),
        ("postgresql://me:hidd\u00e9n@db/feeds", "percent-encode them"),
    ],
)
def test_another_text_is_no_database_and_is_not_shown(url: str, why: str) -> None:
    """A password without percent-encoding would appear as another part of the URL."""
    with pytest.raises(ConfigError, match=why) as caught:
        load_config(None, {}, {"store.url": url})
    assert "hid" not in str(caught.value)


def test_an_access_token_of_sixteen_characters_is_long_enough() -> None:
    """An empty token means none."""
    config = load_config(None, {"WHOLEFEED_SERVER_ACCESS_TOKEN": "sixteen-letters!"}, {})
    assert config.server.access_token == "sixteen-letters!"
    assert load_config(None, {"WHOLEFEED_SERVER_ACCESS_TOKEN": ""}, {}).server.access_token == ""


def test_config_example_toml_holds_every_key_with_its_default_and_why() -> None:
    """The code generates the example file, which loads as the defaults."""
    text = (ROOT / "config.example.toml").read_text("utf-8")
    assert text == example(), "run: wholefeed config --example > config.example.toml"
    assert load_config(ROOT / "config.example.toml", {}, {}) == Config()
    tables = tomllib.loads(text)
    assert {f"{section}.{key}" for section, table in tables.items() for key in table} == {
        key.name for key in KEYS
    }


def test_a_mapping_says_what_the_file_would_and_nothing_else_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A program's settings do not mix with those of the folder or the environment."""
    a_file(tmp_path, "[fetch]\nretries = 5", "config.toml")
    monkeypatch.setenv("WHOLEFEED_FETCH_RETRIES", "6")
    assert config_of({}) == Config()
    text = '[fetch]\nretries = 3\nallow_networks = ["127.0.0.0/8"]'
    assert config_of(tomllib.loads(text)) == load_config(a_file(tmp_path, text), {}, {})


@pytest.mark.parametrize(
    ("tables", "message"),
    [
        ({"fetsch": {}}, "unknown section [fetsch] in the mapping; did you mean fetch?"),
        ({"retries": 3}, "retries in the mapping is a key outside a section; retries belongs below [fetch]"),
        ({"fetch": {"retires": 3}}, "unknown key fetch.retires in the mapping; did you mean fetch.retries?"),
        ({"fetch": {"retries": -1}}, "fetch.retries = -1 in the mapping is not allowed (out of range)"),
    ],
)
def test_a_mapping_is_refused_in_the_words_of_the_file(tables: dict[str, object], message: str) -> None:
    """The message names the key, the value, the place and the allowed values."""
    with pytest.raises(ConfigError) as refused:
        config_of(tables)
    assert str(refused.value).startswith(message)


# Secrets in files of their own

TOKEN = "a-token-of-good-length"
SIGNING = ("first-key-of-good-length", "second-key-of-good-length")
TOKEN_FILE = "WHOLEFEED_SERVER_ACCESS_TOKEN_FILE"
KEYS_FILE = "WHOLEFEED_SERVER_SIGNING_KEYS_FILE"


def a_secret(folder: Path, content: bytes) -> Path:
    path = folder / "given"
    path.write_bytes(content)
    return path


@pytest.mark.parametrize("end", ["", "\n", "\r\n", "\n\n", " \n"])
def test_a_token_is_read_from_the_file_that_the_variable_names(tmp_path: Path, end: str) -> None:
    """WHOLEFEED_SERVER_ACCESS_TOKEN_FILE: the file's line is the token, with any line ending."""
    path = a_secret(tmp_path, f"{TOKEN}{end}".encode())
    assert load_config(None, {TOKEN_FILE: str(path)}, {}).server.access_token == TOKEN


def test_signing_keys_stand_one_a_line(tmp_path: Path) -> None:
    """WHOLEFEED_SERVER_SIGNING_KEYS_FILE: each line is a key, in order; empty lines and commas separate
    nothing."""
    path = a_secret(tmp_path, f"{SIGNING[0]}\n\n{SIGNING[1]},x\r\n".encode())
    assert load_config(None, {KEYS_FILE: str(path)}, {}).server.signing_keys == (
        SIGNING[0],
        f"{SIGNING[1]},x",
    )


def test_every_secret_key_has_its_file_and_it_wins_over_the_configuration_file(tmp_path: Path) -> None:
    """The environment outranks the file, also by naming files."""
    config = tmp_path / "some.toml"
    config.write_text(f'[server]\naccess_token = "{TOKEN}-of-the-file"\n')
    token, proxy = a_secret(tmp_path, TOKEN.encode()), tmp_path / "proxy"
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
    """The proxy does not guess between them, even if the variable is empty."""
    path = a_secret(tmp_path, TOKEN.encode())
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
    """Neither the message nor its cause has any of the content."""
    path = a_secret(tmp_path, content)
    with pytest.raises(ConfigError, match=message) as caught:
        load_config(None, {variable: str(path)}, {})
    assert str(path) in str(caught.value)
    assert variable in str(caught.value)
    error: BaseException | None = caught.value
    while error is not None:
        assert "secret" not in f"{error!r} {vars(error)}".replace("expected a secret", "")
        error = error.__cause__


def test_a_file_that_cannot_be_read_is_told_by_its_name(tmp_path: Path) -> None:
    """A missing file, a folder and an empty name are errors."""
    missing = tmp_path / "missing"
    with pytest.raises(ConfigError, match=rf"cannot read the file {missing} \({TOKEN_FILE}\): No such file"):
        load_config(None, {TOKEN_FILE: str(missing)}, {})
    with pytest.raises(ConfigError, match="Is a directory"):
        load_config(None, {TOKEN_FILE: str(tmp_path)}, {})
    with pytest.raises(ConfigError, match=f"path of a file in {TOKEN_FILE}, got nothing"):
        load_config(None, {TOKEN_FILE: ""}, {})


def test_only_secrets_are_read_from_files() -> None:
    """WHOLEFEED_SERVER_HOST_FILE is unknown, and the message lists the known ones."""
    with pytest.raises(ConfigError, match=f"only secrets are read from files: .*{TOKEN_FILE}, {KEYS_FILE}"):
        load_config(None, {"WHOLEFEED_SERVER_HOST_FILE": "/some/file"}, {})


# [[publisher]]: settings for one publisher


@pytest.fixture
def credentials(tmp_path: Path) -> Path:
    path = tmp_path / "credentials"
    path.write_text("reader:pässword with: hidden\r\n", "utf-8")
    return path


def test_publishers_stand_in_the_file_in_their_order(tmp_path: Path, credentials: Path) -> None:
    """A1: hosts have their comparable spelling; a program's mapping says the same."""
    text = f"""
        [[publisher]]
        host = " *.Bücher.Example. "
        user_agent = "Reader/1 (me)"
        headers = {{ X-Api-Key = "hidden value", Cookie = "a=b; c=d" }}
        credentials_file = "{credentials}"
        proxy = "http://me:hidden@proxy.example:3128/"
        min_interval_seconds = 2
        [[publisher]]
        host = "[2001:DB8::1]"
    """
    first, second = load_config(a_file(tmp_path, text), {}, {}).publisher
    assert (first.host, second.host) == ("*.xn--bcher-kva.example", "2001:db8::1")
    assert first.headers == (("X-Api-Key", "hidden value"), ("Cookie", "a=b; c=d"))
    assert first.credentials == "reader:pässword with: hidden"
    assert (first.user_agent, first.min_interval_seconds) == ("Reader/1 (me)", 2)
    assert first.proxy == "http://me:hidden@proxy.example:3128"
    assert (first.is_private, second.is_private) == (True, False)
    assert config_of(tomllib.loads(text)).publisher == (first, second)
    assert "hidden" not in repr(first)


def test_what_publishers_want_is_shown_without_secrets(tmp_path: Path, credentials: Path) -> None:
    """A6: `wholefeed config` masks them; a copy with masks for keys is refused."""
    table = {
        "host": "a.example",
        "proxy": "http://me:hidden@p.example:1",
        "credentials_file": str(credentials),
    }
    shown = mask(config_of({"publisher": [{**table, "headers": {"X-Key": "hidden"}}, {"host": "b.example"}]}))
    assert "hidden" not in shown
    first, second = tomllib.loads(shown)["publisher"]
    assert first == {**table, "headers": {"X-Key": "***"}, "proxy": "http://***@p.example:1"}
    assert second == {"host": "b.example"}
    with pytest.raises(ConfigError, match=r"the value of X-Key is the mask of `wholefeed config`"):
        load_config(a_file(tmp_path, shown), {}, {})


@pytest.mark.parametrize("userinfo", ["me:one@two", "me:@two", "me@example.org:two", "me:one%40two"])
def test_no_part_of_a_proxy_s_password_is_shown(userinfo: str) -> None:
    """A6, row 80: the user part ends at the last "@"."""
    proxy = f"http://{userinfo}@p.example:1"
    config = config_of({"fetch": {"proxy": proxy}, "publisher": [{"host": "a.example", "proxy": proxy}]})
    assert mask(config).count('proxy = "http://***@p.example:1"') == 2


def test_the_table_of_the_example_loads_when_it_is_uncommented() -> None:
    """config.example.toml: each line of the table can be used."""
    commented = example().partition("# [[publisher]]")
    lines = [line.removeprefix("# ") for line in (commented[1] + commented[2]).splitlines()]
    (publisher,) = config_of(tomllib.loads("\n".join(lines))).publisher
    assert publisher == PublisherConfig(host="feeds.example.org")
    assert all(f"\n{key.key} = " in "\n".join(lines) for key in PUBLISHER_KEYS)


FIELDS = [
    *("Host", "CONTENT-LENGTH", "Transfer-Encoding", "Connection", "Keep-Alive", "TE", "Trailer", "Upgrade"),
    *("Expect", "Range", "Accept-Encoding", "Via", "If-None-Match", "If-Modified-Since", "If-Range"),
    *("User-Agent", "Proxy-Authorization", "Proxy-Connection"),
]


@pytest.mark.fault("140")
@pytest.mark.parametrize("field", FIELDS)
def test_header_fields_that_are_the_proxy_s_own_are_refused(field: str) -> None:
    """A6: fields for the request's target, its end, its conditions, and its sender."""
    with pytest.raises(ConfigError, match=rf"{field} is not for a configuration to set"):
        config_of({"publisher": [{"host": "a.example", "headers": {field: "hidden"}}]})


@pytest.mark.fault("140")
@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({}, r"publisher.host is missing in the mapping, \[\[publisher\]\] 1: expected a host"),
        ({"host": ""}, "publisher.host = '' in the mapping, "),
        ({"host": "a.example:80"}, "not a host without a port"),
        ({"host": "https://a.example/"}, "not a host without a port"),
        ({"host": "*"}, "not a host without a port"),
        ({"host": "a.*.example"}, "not a host without a port"),
        ({"host": "ü" * 70}, "not a host without a port"),
        ({"hosts": "a.example"}, r"unknown key publisher.hosts .*; did you mean host\?"),
        ({"password": "hidden"}, "unknown key publisher.password"),
        ({"headers": "X-Key: hidden"}, r"publisher.headers = \*\*\* .*not a table"),
        ({"headers": {"X Key": "hidden"}}, "'X Key' is no name of a header field"),
        ({"headers": {"X-Key\r\nHost": "hidden"}}, "is no name of a header field"),
        ({"headers": {"": "hidden"}}, "'' is no name of a header field"),
        ({"headers": {"X-Key": "hidden", "x-key": "hidden"}}, "x-key is there twice"),
        ({"headers": {"X-Key": "hidden\r\nHost: b"}}, "the value of X-Key: characters"),
        ({"headers": {"X-Key": "hidden\x00"}}, "the value of X-Key: characters"),
        ({"headers": {"X-Key": "hiddén"}}, "the value of X-Key: characters"),
        ({"headers": {"X-Key": ""}}, "the value of X-Key: empty"),
        ({"headers": {"X-Key": 7}}, "the value of X-Key: not a text"),
        ({"user_agent": "a\nb"}, "publisher.user_agent = 'a.nb'"),
        ({"proxy": "socks5://p.example:1"}, r"publisher.proxy = \*\*\*"),
        ({"min_interval_seconds": -1}, "publisher.min_interval_seconds = -1"),
        ({"min_interval_seconds": True}, "publisher.min_interval_seconds = True"),
        ({"credentials_file": 7}, "publisher.credentials_file = 7"),
        (
            {"credentials_file": "gone"},
            r"cannot read the file gone \(publisher.credentials_file in the mapping",
        ),
    ],
)
def test_what_publishers_cannot_want_is_refused_by_name(table: dict[str, object], message: str) -> None:
    """A6: the message has key, table, reason and allowed values, and never the secret."""
    host = {} if "host" in table or not table else {"host": "a.example"}
    with pytest.raises(ConfigError, match=message) as refused:
        config_of({"publisher": [{**host, **table}]})
    assert "hidd" not in str(refused.value)


@pytest.mark.fault("140")
@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "got an empty file"),
        (b"hidden\n", "expected user:password without control characters"),
        (b"reader:hid\x00den\n", "expected user:password without control characters"),
        (b"reader:hid\tden\n", "expected user:password without control characters"),
        (b"reader:hidden\nother:hidden\n", "expected one line"),
        (b"reader:hidden\xff\n", "expected text"),
    ],
)
def test_a_file_without_credentials_is_refused_and_not_shown(
    credentials: Path, content: bytes, message: str
) -> None:
    """A6: the message names the file and its key."""
    credentials.write_bytes(content)
    table = {"host": "a.example", "credentials_file": str(credentials)}
    with pytest.raises(ConfigError, match=message) as refused:
        config_of({"publisher": [table]})
    assert "hid" not in str(refused.value)
    assert f"{credentials} (publisher.credentials_file in the mapping, [[publisher]] 1)" in str(refused.value)


def test_two_ways_to_authorise_are_one_too_many(credentials: Path) -> None:
    """The proxy does not guess between them."""
    table = {
        "host": "a.example",
        "credentials_file": str(credentials),
        "headers": {"authorization": "hidden"},
    }
    with pytest.raises(ConfigError, match=r"credentials_file or the header Authorization .*, not both"):
        config_of({"publisher": [table]})


def test_a_publisher_is_a_table_of_the_file_alone(tmp_path: Path) -> None:
    """No section, environment variable or value defines one."""
    for text in ("[publisher]\nhost = 'a.example'", "publisher = 1", "publisher = ['a.example']"):
        with pytest.raises(
            ConfigError, match=r"publisher in .* must be tables, each below \[\[publisher\]\]"
        ):
            load_config(a_file(tmp_path, text), {}, {})
    for variable in ("WHOLEFEED_PUBLISHER_HOST", "WHOLEFEED_PUBLISHER"):
        with pytest.raises(
            ConfigError, match=rf"{variable}; \[\[publisher\]\] stands in the configuration file"
        ):
            load_config(None, {variable: "a.example"}, {})
