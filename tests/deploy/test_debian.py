"""The Debian package (`make deb`) on a bare Debian: it installs, serves, upgrades and purges.

systemd does not run there: the server is started with the command, user and variables of the unit.
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic, sleep
from urllib.error import URLError
from urllib.request import urlopen

import pytest

from demo.proxy_process import free_port
from demo.publisher import Publisher
from demo.reader import Answer, ask, ask_until_settled, proxied
from tests.processes import ROOT

UNIT = "usr/lib/systemd/system/wholefeed.service"
STATE = "var/lib/wholefeed"
DATABASE = f"{STATE}/wholefeed.db"
CONFIG = "etc/wholefeed/config.toml"
TOKEN = "etc/wholefeed/access-token"
START_SECONDS = 300


def run(*command: str | Path) -> str:
    """Run a command; return its standard output. It must succeed."""
    done = subprocess.run(command, capture_output=True, text=True, timeout=400, check=False, cwd="/")
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def package(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package of this tree."""
    if not request.config.getoption("--deploy"):
        pytest.skip("installs a Debian: make check-deb")
    if lacking := [tool for tool in ("dpkg-deb", "dpkg-shlibdeps", "debootstrap") if not shutil.which(tool)]:
        pytest.skip(f"not installed: {', '.join(lacking)}")
    if os.getuid():
        pytest.skip("needs root: debootstrap and chroot")
    folder = tmp_path_factory.mktemp("deb")
    run(ROOT / "release/deb", sys.executable, folder)
    (built,) = folder.glob("*.deb")
    return built


@pytest.fixture(scope="module")
def debian(package: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bare Debian of this machine's release, with the package's dependencies alone."""
    root = tmp_path_factory.mktemp("debian")
    wanted = [each.split()[0] for each in run("dpkg-deb", "-f", package, "Depends").strip().split(", ")]
    run("debootstrap", "--variant=minbase", f"--include={','.join(sorted({*wanted}))}",
        platform.freedesktop_os_release()["VERSION_CODENAME"], root)  # fmt: skip
    root.chmod(0o755)
    return root


def dpkg(root: Path, *arguments: str | Path) -> None:
    """Run dpkg in a Debian, without any network."""
    run("unshare", "--net", "chroot", root, "dpkg", *arguments)


def mode(path: Path) -> tuple[str, str]:
    """Return mode and owners, by the Debian's names."""
    return oct(path.stat().st_mode & 0o7777), f"{path.stat().st_uid}:{path.stat().st_gid}"


def settings(root: Path) -> dict[str, list[str]]:
    """Return the unit's settings, with systemd's folders for its specifiers."""
    found: dict[str, list[str]] = {}
    for line in (root / UNIT).read_text().splitlines():
        name, _, value = line.partition("=")
        for specifier, folder in (("%S", "/var/lib"), ("%t", "/run"), ("%d", "/run/credentials")):
            value = value.replace(specifier, folder)
        found.setdefault(name, []).append(value)
    return found


@contextmanager
def serving(root: Path, port: int) -> Iterator[str]:
    """Run the unit's command as systemd does; yield the server's URL."""
    unit = settings(root)
    user = unit["User"][0]
    run("chroot", root, "install", "-d", "-o", user, "-m", "750", "/run/wholefeed", "/run/credentials")
    run("chroot", root, "install", "-o", user, "-m", "400", f"/{TOKEN}", "/run/credentials/access-token")
    command = ["chroot", f"--userspec={user}:{unit['Group'][0]}", str(root), "env", "-i"]
    command += ["-C", unit["WorkingDirectory"][0], *unit["Environment"], *unit["ExecStart"][0].split()]
    with (root / "log").open("ab") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
    base = f"http://127.0.0.1:{port}"
    try:
        until = monotonic() + START_SECONDS
        while not _is_ready(base):
            assert process.poll() is None, (root / "log").read_text()
            assert monotonic() < until, (root / "log").read_text()
            sleep(0.1)
        yield base
    finally:
        process.terminate()
        assert process.wait(20) == 0, (root / "log").read_text()


def _is_ready(base: str) -> bool:
    try:
        with urlopen(f"{base}/readyz", timeout=5) as reply:
            return bool(reply.status == 200)
    except OSError:
        return False


def whole(url: str) -> Answer:
    """Return the last answer, once a feed is there."""
    *_, answer = ask_until_settled(url)
    return answer


@pytest.mark.timeout(900)
def test_the_package_installs_serves_upgrades_and_purges(package: Path, debian: Path) -> None:
    """Without a network; database, token and an edited configuration survive upgrade and removal."""
    inside = debian / "tmp" / "wholefeed.deb"
    shutil.copy(package, inside)
    dpkg(debian, "--install", "/tmp/wholefeed.deb")
    owner = run("chroot", debian, "id", "-u", "wholefeed").strip()
    group = run("chroot", debian, "id", "-g", "wholefeed").strip()
    assert mode(debian / STATE) == ("0o700", f"{owner}:{group}")
    assert mode(debian / CONFIG) == ("0o640", f"0:{group}")
    assert mode(debian / TOKEN) == ("0o600", "0:0")
    assert run("chroot", debian, "wholefeed", "--version").startswith("wholefeed ")
    assert (debian / "usr/share/man/man1/wholefeed.1.gz").exists()
    assert (debian / "etc/systemd/system/multi-user.target.wants/wholefeed.service").is_symlink()

    port = free_port(0)
    edited = f'[server]\nport = {port}\n[fetch]\nallow_networks = ["127.0.0.0/8"]\n'
    (debian / CONFIG).write_text(edited)
    token = (debian / TOKEN).read_text().strip()
    with Publisher() as publisher:
        feed = publisher.feeds[0]
        with serving(debian, port) as base:
            url = proxied(base, publisher.url(feed.path))
            with pytest.raises(URLError, match="401"):
                ask(url)
            first = whole(f"{url}&token={token}")
    assert (first.entries, first.state) == (feed.entries, feed.state)

    unpacked = debian / "tmp" / "unpacked"
    run("dpkg-deb", "--raw-extract", inside, unpacked)
    control = unpacked / "DEBIAN/control"
    control.write_text(control.read_text().replace("-1\n", "-2\n", 1))
    run("dpkg-deb", "--root-owner-group", "--build", unpacked, inside)
    shutil.rmtree(unpacked)
    dpkg(debian, "--install", "/tmp/wholefeed.deb")
    assert run("chroot", debian, "dpkg-query", "-W", "-f", "${Version}", "wholefeed").endswith("-2")
    assert (debian / CONFIG).read_text() == edited
    assert mode(debian / CONFIG) == ("0o640", f"0:{group}")
    assert (debian / TOKEN).read_text().strip() == token
    with serving(debian, port):
        again = ask(f"{url}&token={token}")
    assert (again.entries, again.state, again.etag) == (feed.entries, feed.state, first.etag)

    dpkg(debian, "--remove", "wholefeed")
    assert not (debian / "opt/wholefeed").exists()
    assert all((debian / path).exists() for path in (DATABASE, CONFIG, TOKEN))
    dpkg(debian, "--purge", "wholefeed")
    assert not any((debian / path).exists() for path in (STATE, "etc/wholefeed", "usr/bin/wholefeed"))
    assert not list((debian / "etc/systemd/system").rglob("wholefeed*"))
    assert run("chroot", debian, "id", "-u", "wholefeed").strip() == owner
