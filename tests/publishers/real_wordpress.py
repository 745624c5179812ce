"""A real WordPress on loopback, where one is installed: Debian's package, on MariaDB and PHP's own server.

    apt-get install --no-install-recommends wordpress php-cli php-mysql mariadb-server

It starts in a few seconds with the posts of the simulator, IDs and dates included. Take the fixture
`real_wordpress`, which skips the test where something is not installed:

    def test(real_wordpress: RealWordPress, origin: Origin) -> None:
        front = Through(origin, real_wordpress.url)      # recorded, with a hook between requests
        real_wordpress.delete(real_wordpress.ids()[40])
        real_wordpress.php("update_option('posts_per_rss', 15);")

The services listen on 127.0.0.1 and on a socket in the folder; both end with the test run, even a killed one.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from tests.publishers.blog import Blog

FILES: Final = Path("/usr/share/wordpress")
PROGRAMS: Final = ("php", "mariadbd", "mariadb-install-db")
START_SECONDS: Final = 300
NONE_HERE: Final = "no real WordPress here"
_SEEDED: Final = ("id", "title", "slug", "content", "tags", "category", "author")
_PHP: Final = Path(__file__).parent / "php"
_PATH: Final = os.pathsep.join([os.environ.get("PATH", os.defpath), "/usr/sbin", "/usr/local/sbin"])
_GUARD: Final = 'setsid "$@" </dev/null & cat >/dev/null; kill -s KILL -- "-$!"'
"""Runs a command in a group of its own until standard input ends, as it does when the tests are killed.

A killed PHP server leaves its workers behind: only the group includes them all.
"""


def what_lacks() -> str | None:
    """Name the missing packages, or None."""
    missing = [name for name in PROGRAMS if shutil.which(name, path=_PATH) is None]
    if not (FILES / "wp-settings.php").is_file():
        missing.append(str(FILES))
    if not missing and "mysqli" not in _run(["php", "-m"], {}):
        missing.append("php-mysql")
    return f"{NONE_HERE}, for want of {', '.join(missing)}" if missing else None


class RealWordPress:
    """The site. Changes run in a new PHP, about 0.2 s each."""

    def __init__(self, folder: Path, port: int) -> None:
        self.folder = folder
        self.url = f"http://127.0.0.1:{port}"
        self.changed = False
        """Whether any PHP was run since `keep` or `restore`."""
        self.environment = {
            "WORDPRESS_FOLDER": str(folder),
            "WORDPRESS_HOST": f"127.0.0.1:{port}",
            "WORDPRESS_FILES": str(FILES),
            "PHP_CLI_SERVER_WORKERS": "4",
        }

    def php(self, code: str) -> str:
        """Run PHP inside the site and return its output."""
        self.changed = True
        return _run([*_php(self.folder), str(_PHP / "run.php")], self.environment, code)

    def keep(self) -> None:
        """Save the site's content, for `restore`."""
        self.php(_FOR_EACH_TABLE + '{ $wpdb->query("CREATE TABLE kept_$t AS SELECT * FROM wp_$t"); }')
        self.changed = False

    def restore(self) -> None:
        """Restore the saved content, if anything can have changed."""
        if self.changed:
            back = '$wpdb->query("TRUNCATE wp_$t"); $wpdb->query("INSERT INTO wp_$t SELECT * FROM kept_$t");'
            self.php(f"{_FOR_EACH_TABLE}{{ {back} }}")
            self.changed = False

    # ---- What an author does

    def add(
        self, title: str = "New", *, date: str | None = None, status: str = "publish", post_id: int = 0
    ) -> int:
        """Publish a post now, or with a date (`2021-05-01 10:00:00`), and return its ID."""
        fields = {
            "post_title": title,
            "post_content": f"Body of {title}.",
            "post_status": status,
            "post_author": 1,
        }
        if date is not None:
            fields |= {"post_date": date, "post_date_gmt": date}
        if post_id:
            fields |= {"import_id": post_id}
        return int(self.php(f"echo wp_insert_post({_in_php(fields)});"))

    def schedule(self, title: str = "Scheduled", *, post_id: int = 1) -> int:
        """Write a post scheduled for next year."""
        year = datetime.now(UTC).year + 1
        return self.add(title, date=f"{year}-01-01 00:00:00", status="future", post_id=post_id)

    def go_live(self, post_id: int) -> None:
        """Publish a scheduled post as at its time: that changes its status and no date.

        Its date becomes the present first, since the clock cannot become the date.
        """
        self.php(
            "global $wpdb; $now = gmdate('Y-m-d H:i:s');"
            "$wpdb->query(\"UPDATE $wpdb->posts SET post_date = '$now', post_date_gmt = '$now',"
            f" post_modified = '$now', post_modified_gmt = '$now' WHERE ID = {post_id}\");"
            f"clean_post_cache({post_id}); wp_publish_post({post_id});"
        )

    def delete(self, *post_ids: int) -> None:
        """Move posts to the trash."""
        self.php("".join(f"wp_trash_post({each});" for each in post_ids))

    def edit(self, post_id: int, content: str = "Edited.") -> None:
        """Change a post now."""
        self.php(f"wp_update_post({_in_php({'ID': post_id, 'post_content': content})});")

    def bulk_edit(self, post_ids: Sequence[int]) -> None:
        """Change many posts at one instant, as an import or a plugin does."""
        self.php(
            "global $wpdb; $now = gmdate('Y-m-d H:i:s');"
            "$wpdb->query(\"UPDATE $wpdb->posts SET post_content = CONCAT(post_content, ' Edited.'),"
            " post_modified = '$now', post_modified_gmt = '$now'"
            f' WHERE ID IN ({",".join(map(str, post_ids))})");'
        )

    # ---- What it holds

    def ids(self) -> list[int]:
        """The IDs of the published posts, in order."""
        return self.ids_of("publish")

    def ids_of(self, status: str) -> list[int]:
        """The IDs of the posts of a status, in order."""
        return sorted(map(int, self._column("ID", status)))

    def identities(self, name: str = "rss2", *, url: str | None = None) -> set[str]:
        """The published posts' identities in a feed of this format, asked for at this site's URL."""
        if name != "rdf":
            return set(self._column("guid"))
        links: list[str] = json.loads(
            self.php("echo json_encode(array_map('get_permalink', get_posts(['numberposts' => -1])));")
        )
        return {link.replace(self.url, url or self.url) for link in links}

    def _column(self, name: str, status: str = "publish") -> list[str]:
        live = f"post_status = '{status}' AND post_type = 'post'"
        query = f"SELECT {name} FROM $wpdb->posts WHERE {live}"
        code = f'global $wpdb; echo json_encode($wpdb->get_col("{query}"));'
        found: list[str] = json.loads(self.php(code))
        return found


@contextmanager
def running_wordpress(folder: Path, *, posts: int = 300) -> Iterator[RealWordPress]:
    """Install a site with this many posts in a folder and serve it."""
    with ExitStack() as services:
        site = RealWordPress(folder, _free_port())
        (folder / "wp-content").mkdir()
        (folder / "compiled").mkdir()
        _start_database(folder, services)
        seeds = [
            {
                **{name: getattr(post, name) for name in _SEEDED},
                "date": datetime.fromtimestamp(post.published, UTC).strftime("%Y-%m-%d %H:%M:%S"),
            }
            for post in Blog(posts).posts
        ]
        seeded = _run([*_php(folder), str(_PHP / "install.php")], site.environment, json.dumps(seeds))
        assert seeded == str(posts), seeded
        site.php("flush_rewrite_rules(true);")  # the installation knew of no archives yet
        command = [*_php(folder), "-S", site.url.removeprefix("http://"), str(_PHP / "serve.php")]
        services.enter_context(_service(command, site.environment, folder / "php.log"))
        _until(lambda: _answers(site.url), folder / "php.log")
        site.keep()
        yield site


_FOR_EACH_TABLE: Final = (
    "global $wpdb; foreach (['posts', 'postmeta', 'options', 'terms', 'term_taxonomy', 'term_relationships',"
    " 'comments', 'commentmeta'] as $t) "
)


def _php(folder: Path) -> list[str]:
    """Return the interpreter with a cache of compiled code: it halves the time of a request."""
    options = ("display_errors=stderr", "opcache.enable_cli=1", f"opcache.file_cache={folder / 'compiled'}")
    return ["php", *(part for option in options for part in ("-d", option))]


def _start_database(folder: Path, services: ExitStack) -> None:
    """Start MariaDB without a network; its data need not survive."""
    own = [
        "--no-defaults",
        f"--datadir={folder / 'database'}",
        *(["--user=root"] if os.geteuid() == 0 else []),
    ]
    # Whoever starts removes the temporary tables in the folder for such, those of another server, too.
    temporary = folder / "temporary"
    temporary.mkdir()
    environment = {"TMPDIR": str(temporary)}
    install = ["mariadb-install-db", *own, "--auth-root-authentication-method=normal", "--skip-test-db"]
    _run(install, environment)
    address = folder / "database.sock"
    command = [
        "mariadbd",
        *own,
        f"--socket={address}",
        f"--pid-file={folder / 'database.pid'}",
        "--skip-networking",
    ]
    quick = ["--innodb-flush-log-at-trx-commit=0", "--innodb-buffer-pool-size=32M", "--skip-log-bin"]
    services.enter_context(_service([*command, *quick], environment, folder / "database.log"))
    _until(lambda: _listens(address), folder / "database.log")
    code = (
        "$db = new mysqli('localhost', 'root', '', '', 0, $argv[1]); $db->query('CREATE DATABASE wordpress');"
    )
    _run(["php", "-r", code, str(address)], {})


@contextmanager
def _service(command: Sequence[str], environment: dict[str, str], log: Path) -> Iterator[None]:
    with log.open("wb") as written:
        guard = subprocess.Popen(
            ["sh", "-c", _GUARD, "guard", *command],
            env={**os.environ, "PATH": _PATH, **environment},
            stdin=subprocess.PIPE,
            stdout=written,
            stderr=written,
            start_new_session=True,  # a Ctrl-C is for the tests; they end the services
        )
    try:
        yield
    finally:
        assert guard.stdin is not None
        guard.stdin.close()
        guard.wait(timeout=300)


def _run(command: Sequence[str], environment: dict[str, str], given: str = "") -> str:
    done = subprocess.run(
        command,
        input=given,
        capture_output=True,
        text=True,
        env={**os.environ, "PATH": _PATH, **environment},
        timeout=START_SECONDS,
        check=False,
    )
    assert done.returncode == 0, f"{command[0]}: {done.stdout[-1000:]}{done.stderr[-1000:]}"
    return done.stdout


def _until(ready: object, log: Path) -> None:
    assert callable(ready)
    end = time.monotonic() + START_SECONDS
    while not ready():
        assert time.monotonic() < end, f"not ready after {START_SECONDS} s: {log.read_text()[-1000:]}"
        time.sleep(0.05)


def _listens(address: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as client:
        return client.connect_ex(str(address)) == 0


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(f"{url}/feed/", timeout=START_SECONDS) as reply:
            return bool(reply.status == 200)
    except urllib.error.URLError:
        return False


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
        return port


def _in_php(fields: dict[str, object]) -> str:
    """Return an array of PHP: JSON in a quoted string, with two characters escaped."""
    quoted = json.dumps(fields).replace("\\", "\\\\").replace("'", "\\'")
    return f"json_decode('{quoted}', true)"
