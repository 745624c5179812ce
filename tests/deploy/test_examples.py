"""deploy/compose.yaml and deploy/wholefeed.service, checked against the program without Docker."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.deploy.plain_yaml import load
from tests.processes import ROOT
from wholefeed.config.tables import load_config

COMPOSE: dict[str, Any] = load((ROOT / "deploy/compose.yaml").read_text("utf-8"))
SERVICES: dict[str, Any] = COMPOSE["services"]
UNIT = ROOT / "deploy/wholefeed.service"
SERVICE_KEYS = {
    "build", "cap_drop", "depends_on", "environment", "healthcheck", "image", "ports", "profiles",
    "read_only", "restart", "secrets", "security_opt", "stop_grace_period", "tmpfs", "volumes",
}  # fmt: skip
"""Used keys of the Compose specification."""

needs_systemd = pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed")


def own_variables(values: dict[str, str], tmp_path: Path) -> dict[str, str]:
    """Return the variables of wholefeed; a secret's file is replaced by the test's."""
    secret = tmp_path / "secret"
    secret.write_text("a-token-for-the-readers\n")
    return {
        name: str(secret) if name.endswith("_FILE") else value
        for name, value in values.items()
        if name.startswith("WHOLEFEED_")
    }


def test_compose_holds_nothing_but_what_the_specification_knows() -> None:
    """A misspelt key would have no effect."""
    assert set(COMPOSE) == {"name", "services", "volumes", "secrets"}
    for name, service in SERVICES.items():
        assert set(service) <= SERVICE_KEYS, name
        assert set(service["healthcheck"]) == {"test", "interval", "timeout", "start_period", "retries"}, name


def test_what_a_service_of_compose_names_is_there() -> None:
    """Referenced volumes, secrets and services are declared, and none is unused."""
    volumes = {each.split(":")[0] for service in SERVICES.values() for each in service.get("volumes", [])}
    secrets = {each for service in SERVICES.values() for each in service.get("secrets", [])}
    assert volumes == set(COMPOSE["volumes"])
    assert secrets == set(COMPOSE["secrets"])
    for name, service in SERVICES.items():
        for other, condition in service.get("depends_on", {}).items():
            assert "healthcheck" in SERVICES[other], name
            assert condition == {"condition": "service_healthy"}
        for variable, value in service.get("environment", {}).items():
            assert not variable.endswith("_FILE") or value.removeprefix("/run/secrets/") in service["secrets"]
            assert "PASSWORD" not in variable or variable.endswith("_FILE"), variable
        for port in service.get("ports", []):
            assert port.startswith("127.0.0.1:"), "nobody else is let in by the example"


def test_compose_configures_wholefeed_with_keys_that_it_has(tmp_path: Path) -> None:
    """The program accepts the variables, and the token comes from the secret."""
    environ = own_variables(SERVICES["wholefeed"]["environment"], tmp_path)
    assert load_config(None, environ, {}).server.access_token == "a-token-for-the-readers"


def test_the_container_can_write_its_volume_alone() -> None:
    """A read-only root, no capabilities, no new privileges; /data is a volume."""
    wholefeed = SERVICES["wholefeed"]
    assert wholefeed["read_only"] is True
    assert (wholefeed["cap_drop"], wholefeed["security_opt"]) == (["ALL"], ["no-new-privileges:true"])
    assert wholefeed["volumes"] == ["wholefeed:/data"]
    assert "VOLUME /data" in (ROOT / "Dockerfile").read_text("utf-8")


def test_each_reader_is_let_reach_the_proxy() -> None:
    """Both readers refuse private addresses by default, and start when the proxy answers."""
    for reader, name, value in (
        ("miniflux", "FETCHER_ALLOW_PRIVATE_NETWORKS", "1"),
        ("freshrss", "INTERNAL_HOST_ALLOWLIST", "wholefeed:8080"),
    ):
        assert SERVICES[reader]["profiles"] == [reader]
        assert SERVICES[reader]["environment"][name] == value
        assert "wholefeed" in SERVICES[reader]["depends_on"], reader


@pytest.mark.parametrize(
    "text", ["a: yes", "a: 8080:80", "a:\n\tb: c", "a: b\na: c", "a:\n   b: c", "a: b: c"]
)
def test_what_programs_read_differently_is_refused(text: str) -> None:
    """Every YAML reader reads an accepted text alike."""
    with pytest.raises(ValueError, match="line"):
        load(text)


def unit() -> dict[str, list[str]]:
    """The settings of the unit's [Service] section."""
    found: dict[str, list[str]] = {}
    for line in UNIT.read_text("utf-8").partition("[Service]")[2].partition("[Install]")[0].splitlines():
        name, is_setting, value = line.partition("=")
        if is_setting and not line.startswith("#"):
            found.setdefault(name, []).append(value)
    return found


def test_the_unit_configures_wholefeed_with_keys_that_it_has(tmp_path: Path) -> None:
    """Database and socket are in folders that the unit makes."""
    given = dict(each.split("=", 1) for each in unit()["Environment"])
    config = load_config(None, own_variables(given, tmp_path), {})
    assert config.store.path.startswith(f"%S/{unit()['StateDirectory'][0]}/")
    assert config.server.socket.startswith(f"%t/{unit()['RuntimeDirectory'][0]}/")
    assert given["WHOLEFEED_SERVER_ACCESS_TOKEN_FILE"] == "%d/access-token"
    assert unit()["LoadCredential"][0].startswith("access-token:")


def test_the_unit_waits_long_enough_for_a_stop_and_hears_a_hang() -> None:
    """systemd kills after TimeoutStopSec, when answers have finished; the watchdog is Type=notify's."""
    settings = unit()
    assert settings["Type"] == ["notify"]
    assert (
        int(settings["TimeoutStopSec"][0].removesuffix("s"))
        > 2 * load_config(None, {}, {}).server.shutdown_grace_seconds
    )
    assert re.fullmatch(r"\d+s", settings["WatchdogSec"][0])


@needs_systemd
def test_systemd_finds_nothing_wrong_with_the_unit(tmp_path: Path) -> None:
    """`systemd-analyze security` rates it at most 1.5 of 10, where 0 is best."""
    copy = tmp_path / "wholefeed.service"
    copy.write_text(UNIT.read_text("utf-8").replace("/opt/wholefeed/bin/wholefeed", "/bin/true"))
    verified = subprocess.run(
        ["systemd-analyze", "verify", str(copy)], capture_output=True, text=True, timeout=300, check=False
    )
    assert (verified.returncode, verified.stderr) == (0, "")
    rated = subprocess.run(
        ["systemd-analyze", "security", "--offline=true", "--no-pager", "--threshold=15", str(copy)],
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert rated.returncode == 0, rated.stdout
