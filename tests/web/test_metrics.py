"""wholefeed.web.metrics: the content of /metrics; table, alerts and dashboard agree with it."""

from __future__ import annotations

import asyncio
import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.openmetrics.parser import (
    text_string_to_metric_families as openmetrics_families,
)
from prometheus_client.parser import text_string_to_metric_families as text_families

from tests.answers import Status
from tests.feeds import an_item, atom, publish_chain
from tests.listing import LISTS, looked
from tests.origin import Origin
from tests.publishers.archive_page import ArchivePage
from tests.running import Proxy, StartProxy
from wholefeed.core.model import State
from wholefeed.core.slugs import SLUGS
from wholefeed.counts import NONE, TASKS, Counts, Durations
from wholefeed.errors import OverloadedError, StoreError
from wholefeed.store.store import Summary
from wholefeed.web.keys import COUNTS, STORE
from wholefeed.web.metrics import wants_openmetrics
from wholefeed.web.routes import routes

ROOT = Path(__file__).parent.parent.parent
OPERATIONS = (ROOT / "docs" / "operations.md").read_text("utf-8")
ALERTS = ROOT / "deploy" / "alerts.yml"
DASHBOARD: dict[str, Any] = json.loads((ROOT / "deploy" / "grafana-dashboard.json").read_text("utf-8"))
PROMTOOL = shutil.which("promtool")
NAME = re.compile(r"\b(?:wholefeed|process)_[a-z0-9_]+\b")
TOKEN = "the token of readers"
OPENMETRICS = {"Accept": "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5"}


async def numbers(proxy: Proxy) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    """Parse a scrape, by name and labels."""
    reply = await proxy.ask("GET", "/metrics")
    assert reply.status == 200, reply.body
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_families(reply.body.decode())
        for sample in family.samples
    }


async def number(proxy: Proxy, name: str, **labels: str) -> float:
    """Return one number; 0 if absent."""
    return (await numbers(proxy)).get((name, frozenset(labels.items())), 0.0)


async def busy(proxy: Proxy, origin: Origin) -> None:
    """Cause some of every event."""
    publish_chain(origin, archives=6)
    origin.publish("/short", atom(an_item("a"), prev_archive="/gone"))
    for path in ("/feed", "/feed", "/short", "/nothing"):
        await proxy.whole(origin.url(path))
    await proxy.settled()


async def test_what_readers_get_is_counted_by_route_state_and_status(proxy: Proxy, origin: Origin) -> None:
    """An answer counts once, under its state and status; a 304 sends no bytes."""
    origin.publish("/feed", atom(an_item("a")))
    url = origin.url("/feed")
    first = await proxy.whole(url)
    await proxy.get(url, headers={"If-None-Match": first.headers["ETag"]})
    await proxy.ask("HEAD", "/feed", params={"url": url})
    problem = await proxy.get(origin.url("/nothing"))
    found = await numbers(proxy)

    def answers(state: str, status: int, route: str = "/feed") -> float:
        labels = {"route": route, "state": state, "status": str(status)}
        return found.get(("wholefeed_answers_total", frozenset(labels.items())), 0)

    assert (answers("remembered", 200), answers("remembered", 304), answers(NONE, 404)) == (2, 1, 1)
    assert found["wholefeed_problems_total", frozenset({("reason", "publisher-status")})] == 1
    labels = frozenset({("route", "/feed")})
    assert found["wholefeed_answer_duration_seconds_count", labels] == 4
    sent = len(first.body) + len(problem.body)
    assert found["wholefeed_answer_bytes_total", frozenset()] == sent


async def test_an_answer_is_counted_once_whatever_it_waits_for(proxy: Proxy, origin: Origin) -> None:
    """One look into memory counts one source."""
    origin.publish("/feed", atom(an_item("a")))
    seen = []
    for passed_seconds in (0, 0, 100_000):
        proxy.clock.advance(passed_seconds)
        await proxy.whole(origin.url("/feed"))
        looks = [await number(proxy, f"wholefeed_memory_{each}_total") for each in ("misses", "hits")]
        sources = [
            await number(proxy, "wholefeed_feed_requests_total", source=each)
            for each in ("memory", "store", "publisher")
        ]
        seen.append((looks, sources))
    assert seen == [([1, 0], [0, 0, 1]), ([1, 1], [1, 0, 1]), ([1, 2], [1, 0, 2])]


async def test_replays_that_are_asked_for_are_counted(proxy: Proxy, origin: Origin) -> None:
    """Each counts, with any answer; requests for the feed itself do not."""
    origin.publish("/feed", atom(an_item("a")))
    replay: Any = {"replay": "1/day", "from": "2023-11-01T06:00:00Z"}
    assert await number(proxy, "wholefeed_replay_requests_total") == 0
    await proxy.get(origin.url("/feed"))
    for _ in range(2):
        await proxy.get(origin.url("/feed"), **replay)
    assert await number(proxy, "wholefeed_replay_requests_total") == 2


async def test_looks_at_publishers_pages_are_counted(start: StartProxy, origin: Origin) -> None:
    """Looks are counted by result and state (H1)."""
    proxy = await start(history=LISTS)
    blog = ArchivePage(origin, posts=30)
    blog.publish()
    await proxy.get(origin.url("/feed"))
    await looked(proxy)
    assert await number(proxy, "wholefeed_looks_total", outcome="listed") == 1
    assert await number(proxy, "wholefeed_looks_total", outcome="nothing") == 0
    assert await number(proxy, "wholefeed_feeds", state="listed") == 1


async def test_a_walk_and_its_documents_are_counted(proxy: Proxy, origin: Origin) -> None:
    """Documents, walks with their endings, results of refreshes, and bytes."""
    await busy(proxy, origin)
    found = await numbers(proxy)

    def get(name: str, **labels: str) -> float:
        return found.get((name, frozenset(labels.items())), 0)

    assert get("wholefeed_documents_fetched_total", outcome="fetched") == 8
    failed = get("wholefeed_documents_failed_total", reason="publisher-status")
    assert failed == 2
    assert get("wholefeed_walks_started_total") == 2
    assert get("wholefeed_walks_ended_total", ending="end") == 1
    assert get("wholefeed_walks_ended_total", ending="unavailable") == 1
    assert get("wholefeed_walk_duration_seconds_count") == 2
    assert get("wholefeed_publications_total", state="complete", reason=NONE) == 1
    assert get("wholefeed_publications_total", state="partial", reason="unavailable") == 1
    assert get("wholefeed_fetched_body_bytes_total") >= get("wholefeed_fetched_wire_bytes_total") > 0
    guesses = get("wholefeed_guesses_failed_total")
    assert get("wholefeed_fetch_duration_seconds_count") == 8 + failed + guesses
    assert get("wholefeed_feeds", state="complete") == 1
    assert get("wholefeed_feeds", state="partial") == 1
    assert get("wholefeed_feed_requests_total", source="memory") >= 1
    assert get("wholefeed_memory_feeds") >= 1
    assert get("wholefeed_store_used_bytes") > 0
    assert get("wholefeed_store_free_bytes") > 0
    assert get("wholefeed_refreshes") == get("wholefeed_walks") == get("wholefeed_publisher_requests") == 0


async def test_what_goes_on_is_shown_while_it_does(proxy: Proxy, origin: Origin) -> None:
    """A waiting walk is a walk, a refresh and a request."""
    publish_chain(origin, archives=1)
    with origin.held("/archive/1"):
        await proxy.begun(origin.url("/feed"))
        async with asyncio.timeout(300):
            while not await number(proxy, "wholefeed_publisher_requests"):
                await asyncio.sleep(0.01)
        assert await number(proxy, "wholefeed_walks") == 1
        assert await number(proxy, "wholefeed_refreshes") == 1
        assert await number(proxy, "wholefeed_walks_waiting") == 0
        assert await number(proxy, "wholefeed_publisher_requests_waiting") == 0
        assert await number(proxy, "wholefeed_openings") == 0
    await proxy.settled()
    assert await number(proxy, "wholefeed_walks") == 0


async def test_a_url_that_is_being_opened_is_shown(proxy: Proxy, origin: Origin) -> None:
    """Before its first document it is neither a feed nor a walk."""
    origin.publish("/feed", atom(an_item("a"), complete=True))
    with origin.held("/feed"):
        assert (await proxy.get(origin.url("/feed"), wait="0.1")).status == 504
        assert await number(proxy, "wholefeed_openings") == 1
        assert await number(proxy, "wholefeed_walks") == 0


async def test_a_publisher_that_fails_shows_as_failed_refresh_and_stale_feed(
    proxy: Proxy, origin: Origin
) -> None:
    """The reason is the slug; the feed is stale at the next look."""
    origin.publish("/feed", atom(an_item("a")))
    await proxy.whole(origin.url("/feed"))
    origin.fault("/feed", Status(500))
    proxy.clock.advance(100_000)
    await proxy.get(origin.url("/feed"))
    await proxy.settled()
    assert await number(proxy, "wholefeed_refreshes_failed_total", reason="publisher-status") == 1
    assert await number(proxy, "wholefeed_feeds_stale", state="remembered") == 1


@pytest.mark.parametrize(
    ("accept", "is_openmetrics"),
    [
        ("", False),
        ("*/*", False),
        ("text/plain;version=0.0.4;q=0.5,*/*;q=0.1", False),
        ("application/openmetrics-text", True),
        (OPENMETRICS["Accept"], True),
        ("application/openmetrics-text;q=0.2, text/plain;q=0.9", False),
        ("application/openmetrics-text;q=0", False),
        ("application/openmetrics-text;q=nonsense", False),
        ("APPLICATION/OpenMetrics-Text ; Q=1", True),
        (";;,,;q=", False),
    ],
)
def test_openmetrics_is_for_those_who_prefer_it(accept: str, is_openmetrics: bool) -> None:
    """RFC 9110, 12.5.1: by weight; every other Accept gets text."""
    assert wants_openmetrics(accept) is is_openmetrics


async def test_both_formats_say_the_same_and_can_be_read(proxy: Proxy, origin: Origin) -> None:
    """Prometheus' own parsers read both; HEAD has the same fields without a body."""
    await busy(proxy, origin)
    plain = await proxy.ask("GET", "/metrics")
    rich = await proxy.ask("GET", "/metrics", headers=OPENMETRICS)
    assert plain.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
    assert rich.headers["Content-Type"] == "application/openmetrics-text; version=1.0.0; charset=utf-8"
    assert rich.body.endswith(b"# EOF\n")
    names = {s.name for f in text_families(plain.body.decode()) for s in f.samples}
    families = openmetrics_families(rich.body.decode())  # type: ignore[no-untyped-call]
    assert names == {s.name for f in families for s in f.samples}
    head = await proxy.ask("HEAD", "/metrics")
    assert (head.status, head.body) == (200, b"")
    assert head.headers["Content-Type"] == plain.headers["Content-Type"]


async def test_no_label_comes_from_outside(proxy: Proxy, origin: Origin) -> None:
    """No URL, host or path is a label."""
    await busy(proxy, origin)
    for path in ("/made-up/by-somebody", "/feeds?x=<script>", "/https://a.test/x", "/feed?url=gopher://x"):
        await proxy.ask("GET", path)
    paths = {info.path for info in routes() if hasattr(info, "path")}
    known = {
        "route": {"unmatched", "/{url}", *(path for path in paths if "{url" not in path)},
        "state": {*State, NONE},
        "reason": {*SLUGS, NONE, "other"},
        "ending": {*SLUGS, "end", "other"},
        "outcome": {
            "fetched",
            "not-modified",
            "hit",
            "miss",
            "taken",
            "known",
            "refused",
            "listed",
            "nothing",
        },
        "source": {"memory", "store", "publisher"},
        "page": {"first", "other"},
        "task": set(TASKS),
    }
    for name, labels in await numbers(proxy):
        for label, value in labels:
            if label == "status":
                assert value == NONE or value.isdigit()
            elif label == "le":
                assert float(value) > 0
            elif name != "wholefeed_build_info":
                assert value in known[label], (name, label, value)


def test_a_reason_that_nobody_knows_makes_no_label_of_its_own() -> None:
    """All unknown reasons share one label."""
    counts = Counts()
    for n in range(50):
        counts.count_failure(f"made-up-{n}")
        counts.count_refusal(f"made-up-{n}")
        counts.walk_ended(f"made-up-{n}", 0.1)
    assert counts.failures == counts.problems == {"other": 50}
    assert counts.walks == {"other": 50}


def test_a_duration_at_a_bound_belongs_below_it() -> None:
    """Prometheus' `le` means less or equal."""
    durations = Durations((1.0, 2.0))
    for seconds in (0.5, 1.0, 1.5, 2.0, 2.5):
        durations.add(seconds)
    assert durations.numbers == [2, 2, 1]
    assert durations.total_seconds == 7.5


@pytest.mark.parametrize(
    ("way", "error", "is_readable"),
    [
        ("require_answer", OverloadedError("busy"), False),
        ("summary", StoreError("damaged"), False),
        ("summary", FileNotFoundError(2, "gone"), False),
        ("summary", OverloadedError("too many wait"), True),
        ("summary", None, True),
    ],
)
async def test_a_store_that_cannot_answer_hides_nothing_else(
    proxy: Proxy, monkeypatch: pytest.MonkeyPatch, way: str, error: Exception | None, is_readable: bool
) -> None:
    """Numbers are needed most when something is wrong, even during the first measurement."""

    async def told() -> Summary | None:
        if error is not None:
            raise error
        return None

    found = await numbers(proxy)
    assert found["wholefeed_store_readable", frozenset()] == 1
    assert [name for name, _ in found if name == "wholefeed_feeds"]
    monkeypatch.setattr(proxy.app[STORE].upkeep, way, told)
    found = await numbers(proxy)
    assert found["wholefeed_store_readable", frozenset()] == is_readable
    assert not [name for name, _ in found if name == "wholefeed_feeds"]
    labels = {"route": "/metrics", "state": NONE, "status": "200"}
    assert found["wholefeed_answers_total", frozenset(labels.items())] > 0


async def asked(proxy: Proxy, **fields: str) -> int:
    return (await proxy.ask("GET", "/metrics", headers=fields)).status


async def test_metrics_stand_behind_the_token_and_are_open_without_one(
    start: StartProxy, proxy: Proxy
) -> None:
    """A signed URL does not open them."""
    assert await asked(proxy) == 200
    guarded = await start(server={"access_token": TOKEN})
    assert await asked(guarded) == 401
    assert await asked(guarded, Authorization=f"Bearer {TOKEN}") == 200
    assert await asked(await start(server={"signing_keys": ("k" * 16,)})) == 403


@pytest.mark.parametrize(
    ("server", "fields", "status"),
    [
        ({"metrics_networks": ("127.0.0.0/8",)}, {}, 200),
        ({"metrics_networks": ("10.0.0.0/8",)}, {}, 401),
        ({"metrics_networks": ("10.0.0.0/8",)}, {"X-Forwarded-For": "10.0.0.1"}, 401),
        ({"metrics_networks": ("127.0.0.0/8",)}, {"X-Forwarded-For": "203.0.113.9"}, 401),
        ({"metrics_networks": ("127.0.0.0/8",)}, {"Forwarded": "for=203.0.113.9"}, 401),
        (
            {"metrics_networks": ("10.0.0.0/8",), "trusted_proxies": ("127.0.0.0/8",)},
            {"X-Forwarded-For": "203.0.113.9, 10.0.0.1"},
            200,
        ),
        (
            {"metrics_networks": ("10.0.0.0/8", "127.0.0.0/8"), "trusted_proxies": ("127.0.0.0/8",)},
            {"X-Forwarded-For": "10.0.0.1, 203.0.113.9"},
            401,
        ),
    ],
)
async def test_listed_networks_need_no_token(
    start: StartProxy, server: dict[str, Any], fields: dict[str, str], status: int
) -> None:
    """Row 80: by the peer's address, or the one that a trusted proxy forwards."""
    proxy = await start(server={"access_token": TOKEN, **server})
    assert await asked(proxy, **fields) == status
    assert (await proxy.ask("GET", "/feeds", headers=fields)).status == 401


async def shown(proxy: Proxy, origin: Origin) -> dict[str, set[str]]:
    """Return the names of all families as in a query, with their labels."""
    await busy(proxy, origin)
    counts = proxy.app[COUNTS]
    counts.refresh_failed("timeout")
    counts.troubles["polling"] += 1
    reply = await proxy.ask("GET", "/metrics")
    found: dict[str, set[str]] = {}
    for family in text_families(reply.body.decode()):
        name = f"{family.name}_total" if family.type == "counter" else family.name
        labels = found.setdefault(name, set())
        for sample in family.samples:
            labels.update(sample.labels.keys() - {"le"})
    return found


def queries() -> Iterator[tuple[str, str]]:
    """Yield each query of the alerts and of the dashboard, with its place."""
    yield from alert_rules().items()
    for panel in DASHBOARD["panels"]:
        for target in panel.get("targets", ()):
            yield panel["title"], target["expr"]


def alert_rules() -> dict[str, str]:
    """Return the alerts' queries by name; the file is simple enough for this."""
    found = {}
    for rule in ALERTS.read_text("utf-8").split("      - alert: ")[1:]:
        name, _, rest = rule.partition("\n")
        match = re.search(
            r"^        expr: (?:>-\n)?((?:.|\n)+?)\n        (?:for|labels): ", rest, re.MULTILINE
        )
        assert match is not None, rule
        found[name] = " ".join(match[1].split())
    return found


async def test_alerts_and_dashboard_ask_for_what_is_there(proxy: Proxy, origin: Origin) -> None:
    """Every name and label of ours in a query appears in a scrape."""
    found = await shown(proxy, origin)
    series = {*found, *(f"{name}_{end}" for name in found for end in ("bucket", "sum", "count"))}
    everything = list(queries())
    assert len(everything) > 50
    for where, query in everything:
        assert NAME.findall(query) or query.startswith("up{"), where
        assert set(NAME.findall(query)) <= series, where
        for name, matchers in re.findall(r"\b((?:wholefeed|process)_\w+)\{(.*?)\}(?=[\[) ]|$)", query):
            base = re.sub(r"_(bucket|sum|count)$", "", name)
            asked_for = set(re.findall(r"(\w+)(?:=~|!~|!=|=)\"", matchers))
            assert asked_for <= found[base] | {"job", "instance"}, (where, name)


async def test_the_dashboard_shows_every_metric(proxy: Proxy, origin: Origin) -> None:
    """A metric without a panel is not seen."""
    looked_at = set(NAME.findall(" ".join(query for _, query in queries())))
    looked_at |= {re.sub(r"_bucket$", "", name) for name in looked_at}
    found = {name for name in await shown(proxy, origin) if name.startswith("wholefeed_")}
    assert found <= looked_at


def test_the_documentation_has_a_row_for_every_alert() -> None:
    """Each alert leads its operator to instructions."""
    rows = re.findall(r"`(Wholefeed[A-Za-z]+)`", OPERATIONS)
    assert rows == list(alert_rules())


@pytest.mark.skipif(PROMTOOL is None, reason="promtool is not installed (Debian: apt install prometheus)")
async def test_promtool_finds_no_fault(proxy: Proxy, origin: Origin, tmp_path: Path) -> None:
    """Prometheus' own tool reads a scrape, the alerts, and the dashboard's queries."""
    assert PROMTOOL is not None
    await busy(proxy, origin)
    scrape = (await proxy.ask("GET", "/metrics")).body
    lines = ["groups:", "  - name: dashboard", "    rules:"]
    for n, (_, query) in enumerate(queries()):
        plain = query.replace("$__rate_interval", "5m").replace("$instance", ".*")
        lines += [f"      - record: q{n}", f"        expr: {json.dumps(plain)}"]
    panels = tmp_path / "dashboard.yml"
    panels.write_text("\n".join(lines) + "\n", "utf-8")

    def check(*arguments: str, text: bytes | None = None) -> str:
        command = [str(PROMTOOL), "check", *arguments]
        done = subprocess.run(command, input=text, capture_output=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return (done.stdout + done.stderr).decode()

    assert await asyncio.to_thread(check, "metrics", text=scrape) == ""
    assert "SUCCESS" in await asyncio.to_thread(check, "rules", str(ALERTS))
    assert "SUCCESS" in await asyncio.to_thread(check, "rules", str(panels))


@pytest.mark.skipif(PROMTOOL is None, reason="promtool is not installed (Debian: apt install prometheus)")
def test_the_alerts_fire_when_it_is_time_and_not_before(tmp_path: Path) -> None:
    """Prometheus' own tool plays three healthy hours, and three broken ones."""
    played = (Path(__file__).parent / "alert_tests.yml").read_text("utf-8")
    file = tmp_path / "alert_tests.yml"
    file.write_text(played.replace("[ALERTS]", json.dumps([str(ALERTS)])), "utf-8")
    command = [str(PROMTOOL), "test", "rules", str(file)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_panels_of_the_dashboard_do_not_overlap() -> None:
    """Each panel has its own number and place, within the width of 24."""
    taken: set[tuple[int, int]] = set()
    for panel in DASHBOARD["panels"]:
        place = panel["gridPos"]
        assert place["x"] + place["w"] <= 24
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not cells & taken, panel["title"]
        taken |= cells
    assert len({panel["id"] for panel in DASHBOARD["panels"]}) == len(DASHBOARD["panels"])


async def test_looking_ahead_is_counted_by_what_came_of_it(proxy: Proxy, origin: Origin) -> None:
    """Needed archives are hits, the one behind the oldest is none."""
    publish_chain(origin, archives=8)
    await proxy.whole(origin.url("/feed"))
    await proxy.settled()
    hits = await number(proxy, "wholefeed_look_ahead_total", outcome="hit")
    misses = await number(proxy, "wholefeed_look_ahead_total", outcome="miss")
    fetched = len(origin.requests)
    assert hits > 0
    assert 8 + 1 + misses >= fetched > hits + misses
