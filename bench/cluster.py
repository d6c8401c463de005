"""Whether a cluster stores and shows exactly what one node does, while parts of it fail.

    uv run python -m bench.cluster [--calls 200000] [--tenants 20] [--shards 8]

Starts a Citus cluster of three nodes with two web hosts, each with a worker, and one PostgreSQL
with one host. Both get the same requests with calls of all tenants. Meanwhile shards move to and
fro, one host is killed (`kill -9`) and comes back later; senders repeat at the other host what was
not answered. When all is signed, both sides are compared:

- counts of all tables of tenants, and all rows of the index, which `reindex --check` derives again;
- the bytes of the log; all entries are signed, and the signed root is that of the stored leaves
  (roots of two servers differ: salts are random, and times of receipt are their own);
- every listing of pages and API, and pages of some calls and traces. Tokens, times of receipt and
  ids that each server makes itself are masked; of pages about a server's own acts (ledger, audit
  log, evidence), and of counts that ran out of time, only the status is compared. Pages that differ
  are compared again when producers are silent on both sides, which one side is earlier.

Exits with 1 if anything differs, with 2 without Citus (`tests/support/citus.py`).
"""

import argparse
import difflib
import http.client
import json
import os
import queue
import re
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psycopg

from bench.ingest import ROOT, make_requests

CLIENTS = 4
SIZE = 500
"""Events in a request."""
SIGNED_WITHIN_S = 300
_MOVABLE = """
    SELECT s.shardid, s.nodename, s.nodeport, n.nodename, n.nodeport FROM citus_shards s
    JOIN pg_dist_node n
      ON n.shouldhaveshards AND (n.nodename, n.nodeport) <> (s.nodename, s.nodeport)
    WHERE s.table_name = 'ledger_head'::regclass ORDER BY s.shardid LIMIT 1
"""
_OWN = ("/ledger", "/api/v1/ledger", "/actions", "/api/v1/actions", "/evidence")
"""Pages about what the server itself did, and when. Only their status is compared."""
_LIMITED = {"/calls/count"}
"""Pages that count for a limited time, and say so if they did not finish."""
_UNFINISHED = "At least this many"
_TRIES = 10
_SILENT_S = 960.0
"""So long after the last event, no producer is heard lately on either side."""
_ELEMENT = re.compile(r'<time datetime="([^"]+)"[^>]*>[^<]*</time>')
_INSTANT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d+)?)?(Z|\+00:00)")
_ID = re.compile(r"01[0-9a-f]{6}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}")
_RANDOM = [
    re.compile(r'nonce="[^"]+"'),
    re.compile(r'(?<=csrfmiddlewaretoken" value=")\w{64}'),
    re.compile(r"(?<=X-CSRFToken)\W+\w{64}"),
    re.compile(r"127\.0\.0\.1:\d+"),
    re.compile(r'(?<="key_id":")\w+'),
    re.compile(r"(?<=tt_…_)\w+"),
]

type Request = tuple[str, str, bytes, int]
"""Slug of the tenant, batch id, compressed body, number of events."""


@dataclass
class Side:
    """The cluster, or the single node."""

    name: str
    site: Any
    hosts: list[Any]
    urls: list[str]
    tenants: dict[str, dict[str, str]] = field(default_factory=dict)
    answers: Counter[str] = field(default_factory=Counter)

    def run(self, *command: str) -> Any:
        """Run a command of `cluster_side.py` in this side's environment."""
        return json.loads(
            subprocess.check_output(
                [sys.executable, "-m", "bench.cluster_side", *command],
                cwd=ROOT,
                env=self.hosts[0].environment,
            )
        )

    def send(self, request: Request, first: int) -> None:
        """Send until it is stored, first to this host, and to the next one after a failure."""
        slug, batch_id, body, count = request
        headers = {
            "Authorization": f"Bearer {self.tenants[slug]['api_key']}",
            "Content-Type": "application/x-ndjson",
            "Content-Encoding": "gzip",
            "Idempotency-Key": batch_id,
        }
        at = first
        while True:
            url = self.urls[at % len(self.urls)]
            try:
                status, _, document = fetch(url, "/api/v1/events", headers, body)
            except (OSError, http.client.HTTPException):
                self.answers["no answer"] += 1
                at += 1
                time.sleep(0.05)
                continue
            self.answers[str(status)] += 1
            if status == 200:
                accepted = json.loads(document)["accepted"]
                if accepted != count:
                    raise SystemExit(f"{self.name}: {accepted} of {count} events accepted")
                return
            if status not in (429, 503):
                raise SystemExit(f"{self.name}: {status}: {document[:500]!r}")
            at += 1
            time.sleep(0.2)


def fetch(
    url: str, path: str, headers: dict[str, str], body: bytes | None = None
) -> tuple[int, str, bytes]:
    """Status, content type and body of an answer."""
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=120)
    try:
        connection.request("GET" if body is None else "POST", path, body, headers)
        answer = connection.getresponse()
        return answer.status, answer.headers.get("Content-Type", ""), answer.read()
    finally:
        connection.close()


def requests(calls: int, tenants: Sequence[str]) -> list[Request]:
    """The same requests for both sides: all tenants in turn."""
    made = [make_requests(calls // len(tenants), SIZE, seed).ready for seed in range(len(tenants))]
    return [
        (slug, *each)
        for turn in zip(*made, strict=False)
        for slug, each in zip(tenants, turn, strict=True)
    ] + [
        (slug, *each)
        for slug, ready in zip(tenants, made, strict=True)
        for each in ready[min(map(len, made)) :]
    ]


def send_all(side: Side, sent: Sequence[Request], at: Callable[[int], None]) -> float:
    """Send from several threads; `at` is called with the number of each request. The seconds."""
    waiting: queue.Queue[tuple[int, Request]] = queue.Queue()
    for numbered in enumerate(sent):
        waiting.put(numbered)
    failed: list[BaseException] = []

    def work() -> None:
        try:
            while not failed:
                number, request = waiting.get_nowait()
                at(number)
                side.send(request, first=number)
        except queue.Empty:
            return
        except BaseException as error:  # reported below
            failed.append(error)

    began = time.monotonic()
    threads = [threading.Thread(target=work) for _ in range(CLIENTS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failed:
        raise failed[0]
    return time.monotonic() - began


@contextmanager
def moving_shards(side: Side) -> Iterator[list[float]]:
    """Move a group of shards to and fro until the block ends; yields the seconds of each move."""
    over, took, failed = threading.Event(), list[float](), list[BaseException]()

    def work() -> None:
        try:
            with psycopg.connect(side.site.superuser_url, autocommit=True) as superuser:
                while not over.is_set():
                    row = superuser.execute(_MOVABLE).fetchone()
                    began = time.monotonic()
                    superuser.execute(
                        "SELECT citus_move_shard_placement(%s, %s, %s, %s, %s, 'auto')", row
                    )
                    took.append(time.monotonic() - began)
        except BaseException as error:  # reported below
            failed.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield took
    finally:
        over.set()
        thread.join()
    if failed:
        raise failed[0]


def wait_until_signed(side: Side) -> None:
    """Wait until every entry of every tenant is signed. Exits if that takes too long."""
    deadline = time.monotonic() + SIGNED_WITHIN_S
    while time.monotonic() < deadline:
        status = json.loads(side.hosts[0].manage("ledger", "status", "--json"))
        if all(each["signed"] == each["entries"] > 0 for each in status.values()):
            return
        time.sleep(3)
    raise SystemExit(f"{side.name}: not signed after {SIGNED_WITHIN_S} s: {status}")


def masked(document: str, since: datetime) -> str:
    """The document without tokens, and without times and ids since then: a server made them."""

    def instant(match: re.Match[str]) -> str:
        text = match[1] if match.re is _ELEMENT else match[0]
        return "TIME" if datetime.fromisoformat(text) >= since else match[0]

    def own_id(match: re.Match[str]) -> str:
        ms = uuid.UUID(match[0]).int >> 80
        return "ID" if ms >= since.timestamp() * 1000 else match[0]

    for pattern in _RANDOM:
        document = pattern.sub("RANDOM", document)
    for pattern in (_ELEMENT, _INSTANT):
        document = pattern.sub(instant, document)
    return _ID.sub(own_id, document)


def compare_pages(
    sides: Sequence[Side], since: datetime, silent_at: float
) -> tuple[Counter[str], list[str]]:
    """Fetch every address from both sides: how many comparisons of each kind, and what differs.

    From `silent_at` on (of the monotonic clock), no producer is heard on either side.
    """
    begin = since.replace(minute=0, second=0, microsecond=0) - timedelta(hours=2)
    window = f"from={begin:%Y-%m-%dT%H:%MZ}&to={begin + timedelta(hours=3):%Y-%m-%dT%H:%MZ}"
    kinds, differing = Counter[str](), list[tuple[str, str]]()
    for slug, paths in sides[0].run("pages").items():
        for path in paths:
            kind, difference = _compare_page(sides, slug, path, window, since)
            kinds[kind] += 1
            if difference:
                differing.append((slug, path))
    if differing:
        time.sleep(max(0.0, silent_at - time.monotonic()))
    again = [_compare_page(sides, *each, window, since)[1] for each in differing]
    return kinds, [each for each in again if each]


def _compare_page(
    sides: Sequence[Side], slug: str, path: str, window: str, since: datetime
) -> tuple[str, str]:
    """The kind of the comparison, and how the page differs."""
    for _ in range(_TRIES):
        first, second = (page(side, slug, path, window) for side in sides)
        if path not in _LIMITED or first == second:
            break
    is_limited = path in _LIMITED and _UNFINISHED in first[1] + second[1]
    is_own = path.startswith(_OWN) or is_limited
    texts = [masked(text, since).splitlines() for _, text in (first, second)]
    difference = ""
    if first[0] != second[0] or (texts[0] != texts[1] and not is_own):
        lines = list(difflib.unified_diff(texts[0], texts[1], lineterm="", n=0))[2:8]
        shown = "\n    ".join(line[:200] for line in lines)
        difference = f"{slug}: {path}: {first[0]}, {second[0]}\n    {shown}"
    elif first[0] >= 400:
        difference = f"{slug}: {path}: {first[0]} on both: {first[1][:200]}"
    return "statuses of pages" if is_own else "pages", difference


def page(side: Side, slug: str, path: str, window: str) -> tuple[int, str]:
    """Status and text of a page, or of the API; of a range if it takes one."""
    facts = side.tenants[slug]
    headers = {"Cookie": f"sessionid={facts['session']}"}
    if path.startswith("/api/"):
        headers = {"Authorization": f"Bearer {facts['api_key']}"}
    status, kind, body = fetch(
        side.urls[0], f"{path}{'&' if '?' in path else '?'}{window}", headers
    )
    if status == 422:  # it has no range
        status, kind, body = fetch(side.urls[0], path, headers)
    return status, kind if "zip" in kind else body.decode(errors="replace")


def compare_contents(sides: Sequence[Side]) -> tuple[Counter[str], list[str]]:
    """What is stored on both sides: how many comparisons of each kind, and what differs."""
    first, second = (side.run("contents") for side in sides)
    kinds, differences = Counter[str](), []
    for slug in sorted({*first, *second}):
        names = {**first.get(slug, {}), **second.get(slug, {})}
        for name in names:
            kinds[_kind(name)] += 1
            values = [each.get(slug, {}).get(name) for each in (first, second)]
            if values[0] != values[1] or values[0] is False:
                differences.append(f"{slug}: {name}: {values}")
    return kinds, differences


def _kind(name: str) -> str:
    return "ledger" if name.startswith("ledger: ") else name.rpartition(": ")[2]


def start(closing: ExitStack, name: str, nodes: Sequence[str], shards: int, hosts: int) -> Side:
    """Start a side: its database, its hosts, and a worker on each."""
    from tests.support.many_hosts import many_hosts

    site = closing.enter_context(many_hosts(nodes, shards=shards))
    keys = site.installation.var.parent / "keys" / "signing-keys.json"
    keys.parent.mkdir(mode=0o700)
    names = [f"host-{number}" for number in range(hosts)]
    made = [site.add(each, TOOLTRAIL_LEDGER_KEYS=str(keys)) for each in names]
    return Side(name, site, made, [host.web() for host in made])


def start_workers(side: Side) -> None:
    """Start a worker on each host; all but the first join the first one's ledgers."""
    side.hosts[0].worker()
    wait_until_signed(side)
    for host in side.hosts[1:]:
        host.manage("ledger", "join")
        host.worker()


def run_comparison(calls: int, tenants: int, shards: int) -> int:
    """Send, kill, move, compare, and print. Returns the exit code."""
    from tests.support.citus import citus_nodes
    from tests.support.many_hosts import kill

    sent = requests(calls, [f"tenant-{number}" for number in range(tenants)])
    generated_at = datetime.now(UTC)  # all times of calls are before, all of a server after
    with ExitStack() as closing:
        nodes = closing.enter_context(citus_nodes())
        cluster = start(closing, "cluster", nodes, shards, hosts=2)
        single = start(closing, "one node", (), shards, hosts=1)
        for side in (cluster, single):
            side.tenants = {each["slug"]: each for each in side.run("tenants", str(tenants))}
            start_workers(side)
        victim = cluster.hosts[1]

        def disturb(number: int) -> None:
            if number == len(sent) // 3:
                for process in victim.processes:
                    if process.poll() is None:
                        kill(process)
            elif number == len(sent) * 2 // 3:
                cluster.urls[1] = victim.web()
                victim.worker()

        with moving_shards(cluster) as moves:
            seconds = [send_all(cluster, sent, disturb)]
        seconds.append(send_all(single, sent, lambda _: None))
        silent_at = time.monotonic() + _SILENT_S
        events = sum(count for *_, count in sent)
        for side, took in zip((cluster, single), seconds, strict=True):
            print(
                f"{side.name}: {events:,} events in {took:.0f} s, answers {dict(side.answers)}",
                flush=True,
            )
            wait_until_signed(side)
            side.hosts[0].manage("reindex", "--check")
        print(f"moves of shards meanwhile: {len(moves)}, {sum(moves):.1f} s")
        kinds, differences = compare_contents((cluster, single))
        kinds_of_pages, of_pages = compare_pages((cluster, single), generated_at, silent_at)
    print(f"{'compared':20}{'how many':>12}")
    for kind, count in (kinds + kinds_of_pages).items():
        print(f"{kind:20}{count:>12,}")
    for line in [*differences, *of_pages]:
        print(line)
    print(f"{len(differences) + len(of_pages)} differences")
    return 1 if differences or of_pages else 0


def main() -> None:
    """Compare, or measure, and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--calls", type=int, default=200_000, help="of all tenants together")
    parser.add_argument("--tenants", type=int, default=20)
    parser.add_argument("--shards", type=int, default=8, help="of each table")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="tooltrail-bench-") as folder:
        Path(folder).chmod(0o711)
        os.environ["TOOLTRAIL_VAR"] = str(Path(folder) / "var")
        try:
            sys.exit(run_comparison(options.calls, options.tenants, options.shards))
        except FileNotFoundError as error:
            print(error, file=sys.stderr)
            sys.exit(2)


if __name__ == "__main__":
    main()
