"""From the spool to the server: what each answer means; no event is lost or duplicated."""

import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tooltrail import SpoolFullError, Trail, shipper

from sdk.tests.support.ingest_key import KEY
from sdk.tests.support.ingest_server import Reply, Request, Server

MakeTrail = Callable[..., Trail]


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Back off for hundredths of a second, so that tests wait for events and not for time."""
    monkeypatch.setattr(shipper, "BACKOFF_MAX_SECONDS", 0.02)
    monkeypatch.setattr(shipper, "REFUSED_SECONDS", 0.02)


def calls(trail: Trail, count: int, text: str = "x") -> None:
    @trail.tool(name="echo", version="1")
    def echo(n: int, text: str) -> str:
        return text

    with trail.trace("t"):
        for n in range(count):
            echo(n, text)


def numbers(server: Server) -> list[int]:
    return sorted(event["producer_seq"] for event in server.events)


def test_calls_are_delivered_once_in_batches_within_the_limits(
    make_trail: MakeTrail, server: Server
) -> None:
    trail = make_trail()
    calls(trail, 700)
    assert trail.flush(20)
    assert numbers(server) == list(range(1400))
    batches = [request for request in server.requests if request.batch_id]
    assert all(len(request.events) <= 500 for request in batches)
    assert len({request.batch_id for request in batches}) == len(batches)
    assert batches[0].headers["Content-Encoding"] == "gzip"
    assert batches[0].headers["Content-Type"] == "application/x-ndjson"
    assert batches[0].headers["Authorization"].startswith("Bearer tt_")
    stats = trail.stats()
    assert (stats.emitted, stats.acknowledged, stats.waiting) == (1400, 1400, 0)


def test_batch_is_at_most_one_mebibyte(make_trail: MakeTrail, server: Server) -> None:
    trail = make_trail(redact=False)
    calls(trail, 20, "x" * 100_000)
    assert trail.flush(20)
    assert numbers(server) == list(range(40))
    assert max(len(request.body) for request in server.requests) <= 1024 * 1024


def test_start_event_is_sent_while_the_tool_runs(make_trail: MakeTrail, server: Server) -> None:
    trail = make_trail()

    @trail.tool
    def wait() -> None:
        server.wait(lambda: bool(server.events))

    wait()
    assert server.events[0]["type"] == "toolExecutionStart"


@pytest.mark.parametrize("mode", ["process", "fsync", "memory"])
def test_every_spool_mode_delivers_events(make_trail: MakeTrail, server: Server, mode: str) -> None:
    trail = make_trail(spool=mode)
    calls(trail, 3)
    assert trail.flush(20)
    assert numbers(server) == list(range(6))


@pytest.mark.slow
def test_unacknowledged_attempts_do_not_count_as_sent(
    make_trail: MakeTrail, server: Server
) -> None:
    refuses = True
    server.plan = lambda request: (503, {}, {"Retry-After": "0"}) if refuses else None
    trail = make_trail()
    calls(trail, 2)
    server.wait(lambda: sum(bool(request.batch_id) for request in server.requests) >= 3)
    stats = trail.stats()
    assert (stats.sent, stats.acknowledged, stats.waiting) == (0, 0, 4)
    refuses = False
    assert trail.flush(20)
    assert trail.stats().sent == 4


FAILURES: dict[str, Reply] = {
    "no answer": (0, {}, {}),
    "busy": (503, {}, {"Retry-After": "0"}),
    "too many": (429, {}, {"Retry-After": "0"}),
    "broken": (500, {}, {}),
    "bad gateway": (502, {}, {"Retry-After": "nonsense"}),
    "key refused": (401, {}, {}),
    "scope refused": (403, {}, {}),
    "no such address": (404, {}, {}),
    "moved": (302, {}, {"Location": "http://127.0.0.1:9/"}),
    "a stranger's page": (200, {"hello": "world"}, {}),
}


@pytest.mark.parametrize("failure", FAILURES.values(), ids=FAILURES.keys())
def test_unaccepted_batch_is_kept_and_sent_again_with_the_same_id(
    make_trail: MakeTrail, server: Server, failure: Reply, caplog: pytest.LogCaptureFixture
) -> None:
    failures = [failure] * 3
    server.plan = lambda request: failures.pop() if failures and request.batch_id else None
    trail = make_trail()
    calls(trail, 2, "hunter2")
    trail.flush(20)
    server.wait(lambda: len(server.events) == 4)
    assert trail.flush(20)
    assert len({request.batch_id for request in server.requests if request.batch_id}) == 1
    assert numbers(server) == [0, 1, 2, 3]
    assert "hunter2" not in caplog.text
    assert len(caplog.records) <= 2


def test_lost_response_after_commit_creates_no_duplicates(
    make_trail: MakeTrail, server: Server
) -> None:
    lost: list[str] = []

    def plan(request: Request) -> Reply | None:
        if request.batch_id and not lost:
            lost.append(request.batch_id)
            server._store(request)
            return 0, {}, {}
        return None

    server.plan = plan
    trail = make_trail()
    calls(trail, 2)
    assert trail.flush(20)
    assert numbers(server) == [0, 1, 2, 3]
    assert server.duplicates == 0


@pytest.mark.slow
def test_retry_after_is_respected_even_by_flush(make_trail: MakeTrail, server: Server) -> None:
    server.plan = lambda request: (429, {}, {"Retry-After": "600"}) if request.batch_id else None
    trail = make_trail()
    calls(trail, 1)
    assert not trail.flush(0.3)
    assert not trail.flush(0.3)
    assert sum(bool(request.batch_id) for request in server.requests) == 1
    assert trail.stats().waiting == 2


@pytest.mark.parametrize("status", [400, 415, 422])
def test_permanently_rejected_batch_is_kept_aside_and_declared(
    make_trail: MakeTrail, server: Server, tmp_path: Path, status: int
) -> None:
    refused: list[Reply] = [(status, {"detail": "no lines"}, {})]
    server.plan = lambda request: refused.pop() if refused and request.batch_id else None
    trail = make_trail()
    calls(trail, 1)
    assert trail.flush(20)
    calls(trail, 1)
    assert trail.flush(20)
    assert numbers(server) == [2, 3]
    [gap] = server.gaps.values()
    assert (gap["from_seq"], gap["to_seq"], gap["reason"]) == (0, 1, "refused")
    assert trail.stats().dropped == {"refused": 2}
    [parked] = tmp_path.glob("*/rejected/*.ndjson")
    assert parked.read_bytes().count(b"\n") == 2
    assert parked.with_suffix(".reason").read_text() == f"{status} no lines\n"


def test_rejected_gap_events_are_not_declared_again(
    make_trail: MakeTrail, server: Server, tmp_path: Path
) -> None:
    server.plan = lambda request: (400, {}, {}) if request.batch_id else None
    trail = make_trail()
    calls(trail, 1)
    while trail.stats().waiting:
        assert trail.flush(20)
    assert [len(request.events) for request in server.requests if request.batch_id] == [2, 1]
    assert len(list(tmp_path.glob("*/rejected/*.ndjson"))) == 2


@pytest.mark.slow
def test_rejected_batches_use_at_most_a_quarter_of_the_budget(
    make_trail: MakeTrail, server: Server, tmp_path: Path
) -> None:
    server.plan = lambda request: (400, {}, {}) if request.batch_id else None
    trail = make_trail(max_bytes=100_000)
    for _ in range(10):
        calls(trail, 1, "x" * 5000)
        assert trail.flush(20)
    kept = list(tmp_path.glob("*/rejected/*"))
    assert kept
    assert sum(path.stat().st_size for path in kept) <= 25_000


@pytest.mark.slow
def test_damaged_lines_of_a_batch_are_declared_once(
    make_trail: MakeTrail, server: Server, tmp_path: Path
) -> None:
    busy: list[Reply] = [(503, {}, {})] * 3
    server.plan = lambda request: busy.pop() if busy and request.batch_id else None
    trail = make_trail()
    with server.arrived:  # nothing is answered while we damage it
        calls(trail, 3)
        trail.flush(0.1)
        [batch] = tmp_path.glob("*/*/*.batch")
        lines = batch.read_bytes().splitlines(keepends=True)
        batch.write_bytes(b"".join([*lines[:2], lines[2][:-30], *lines[4:]]))
    assert trail.flush(20)
    assert trail.flush(20)  # the loss declared meanwhile
    # Without its line feed the torn line took the one behind it along.
    assert numbers(server) == [0, 1, 5]
    assert [(g["from_seq"], g["to_seq"]) for g in server.gaps.values()] == [(2, 4)]
    assert trail.stats().dropped == {"damaged": 3}


@pytest.mark.slow
def test_payloads_are_dropped_first_when_events_exceed_the_budget(
    make_trail: MakeTrail, server: Server
) -> None:
    trail = make_trail(max_bytes=4_000_000)
    more = [2500] + [300] * 12  # calls: much at first, then more than there is room for in a batch

    def plan(request: Request) -> Reply | None:
        if request.batch_id and more:
            calls(trail, more.pop(0), "x" * 300)
        return None

    server.plan = plan
    calls(trail, 1)
    while trail.stats().waiting:
        assert trail.flush(20)
    assert numbers(server) == list(range(trail.stats().emitted))
    assert any(event.get("removed") for event in server.events)
    assert not server.gaps


@pytest.mark.slow
def test_oversized_batch_is_split_until_each_part_fits(
    make_trail: MakeTrail, server: Server
) -> None:
    server.plan = lambda request: (413, {}, {}) if len(request.events) > 2 else None
    trail = make_trail()
    calls(trail, 5)
    assert trail.flush(20)
    assert numbers(server) == list(range(10))
    assert server.duplicates == 0


def test_oversized_event_is_sent_without_its_payload(make_trail: MakeTrail, server: Server) -> None:
    server.plan = lambda request: (413, {}, {}) if len(request.body) > 1000 else None
    trail = make_trail()
    calls(trail, 1, "x" * 5000)
    assert trail.flush(20)
    start, end = server.events
    assert start["args"] is None
    assert start["removed"] == [{"path": "$.args", "reason": "too-large"}]
    assert end["output"] == {"status": "ok", "meta": {"took_ms": end["output"]["meta"]["took_ms"]}}


def test_lines_in_the_inbox_of_the_server_are_counted_as_rejected(
    make_trail: MakeTrail, server: Server
) -> None:
    answer = {
        "accepted": 1,
        "duplicates": 0,
        "rejected": [{"line": 2, "event_id": None, "code": "conflict", "message": ""}],
    }
    server.plan = lambda request: (200, answer, {}) if request.batch_id else None
    trail = make_trail()
    calls(trail, 1)
    assert trail.flush(20)
    assert (trail.stats().rejected, trail.stats().waiting) == (1, 0)


def test_server_sets_the_sending_pace(make_trail: MakeTrail, server: Server) -> None:
    answer = {"accepted": 1, "next_after_ms": 60_000}
    server.plan = lambda request: (200, answer, {}) if request.batch_id else None
    trail = make_trail()
    calls(trail, 1)
    assert trail.flush(20)
    producer = trail._producer
    assert producer is not None
    assert producer.shipper is not None
    assert producer.shipper._pace == shipper.PACE_MAX_SECONDS
    calls(trail, 1)
    assert trail.flush(20), "flush does not wait for the pace"


@pytest.mark.slow
def test_unresponsive_server_does_not_block_the_host(make_trail: MakeTrail, server: Server) -> None:
    awake = server.arrived
    asleep = [True]

    def plan(request: Request) -> Reply | None:
        awake.wait_for(lambda: not asleep, 20)
        return None

    server.plan = plan
    trail = make_trail()
    calls(trail, 600)
    began = time.monotonic()
    assert not trail.flush(0.2)
    assert time.monotonic() - began < 10  # it honours its time-out, however busy the machine
    assert trail.stats().written == 1200
    with awake:
        asleep.clear()
        awake.notify_all()
    assert trail.flush(20)
    assert numbers(server) == list(range(1200))


@pytest.mark.slow
def test_undelivered_events_stay_on_disk_for_the_next_process(
    server: Server, make_trail: MakeTrail, tmp_path: Path
) -> None:
    server.plan = lambda request: (503, {}, {})
    first = make_trail()
    calls(first, 3)
    assert not first.close(0.2)
    server.plan = lambda request: None
    second = make_trail()
    calls(second, 1)
    server.wait(lambda: len(server.events) == 8)
    assert second.flush(20)
    assert second.stats().adopted == 6
    assert second.stats().acknowledged == 8
    second.close()
    assert not list(tmp_path.glob("*/*/*"))


@pytest.mark.slow
def test_budget_drops_payloads_before_events_and_declares_lost_events(
    make_trail: MakeTrail, server: Server
) -> None:
    server.plan = lambda request: (503, {}, {}) if request.batch_id else None
    trail = make_trail(max_bytes=600_000)
    calls(trail, 1500, "x" * 100)
    trail.flush(0.5)
    server.plan = lambda request: None
    assert trail.flush(30)
    assert trail.flush(30)  # the losses declared meanwhile
    gaps = [(gap["from_seq"], gap["to_seq"]) for gap in server.gaps.values()]
    declared = [n for low, high in gaps for n in range(low, high + 1)]
    assert sorted(numbers(server) + declared) == list(range(3000))
    slim = [event for event in server.events if event.get("removed")]
    assert slim
    assert all(event["tool_name"] == "echo" for event in slim)
    assert {gap["reason"] for gap in server.gaps.values()} <= {"spool-full"}


def test_expired_events_are_dropped_while_the_server_is_unavailable(
    make_trail: MakeTrail, server: Server
) -> None:
    server.plan = lambda request: (503, {}, {}) if request.batch_id else None
    trail = make_trail(max_age_days=1e-9)
    calls(trail, 2)
    while "expired" not in trail.stats().dropped:
        trail.flush(0.1)
    server.plan = lambda request: None
    while trail.stats().waiting:
        assert trail.flush(20)
    given_up = sorted(
        n for g in server.gaps.values() for n in range(g["from_seq"], g["to_seq"] + 1)
    )
    assert given_up == [0, 1, 2, 3]
    assert {gap["reason"] for gap in server.gaps.values()} == {"expired"}


def test_tool_does_not_run_with_a_full_spool_and_when_full_raise(
    make_trail: MakeTrail, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.plan = lambda request: (503, {}, {}) if request.batch_id else None
    trail = make_trail(max_bytes=10_000, when_full="raise")
    ran: list[int] = []

    @trail.tool
    def act(n: int) -> None:
        ran.append(n)

    with pytest.raises(SpoolFullError):
        for n in range(1000):
            act(n)
    monkeypatch.delenv("TOOLTRAIL_URL", raising=False)
    with pytest.raises(ValueError, match="TOOLTRAIL_URL"):
        Trail(when_full="raise")
    server.plan = lambda request: None
    assert trail.flush(20)
    assert len(server.events) == 2 * len(ran)


def test_tool_does_not_run_with_an_unwritable_spool_and_when_full_raise(server: Server) -> None:
    trail = Trail(server.url, KEY, spool_dir="/proc/nowhere", when_full="raise")
    with pytest.raises(SpoolFullError):
        calls(trail, 1)
    trail.close(0.1)
    assert not server.events


def test_tools_are_announced_once_by_digest_first(make_trail: MakeTrail, server: Server) -> None:
    import json

    def plan(request: Request) -> Reply | None:
        if request.path != "/api/v1/tools":
            return None
        tools = json.loads(request.body)["tools"]
        return 200, {"unknown": [t["digest"] for t in tools if "name" not in t]}, {}

    server.plan = plan
    trail = make_trail()

    @trail.tool(output_schema={"type": "integer"}, trusted=True, meta={"team": "hats"})
    def double(n: int) -> int:
        """Twice as much.

        Args:
            n: what to double
        """
        return 2 * n

    double(1)
    server.wait(lambda: sum(r.path == "/api/v1/tools" for r in server.requests) == 2)
    double(2)
    assert trail.flush(20)
    first, second = (json.loads(r.body) for r in server.requests if r.path == "/api/v1/tools")
    [digest_only], [body] = first["tools"], second["tools"]
    assert list(digest_only) == ["digest"]
    assert body["digest"] == digest_only["digest"] == server.events[0]["tool_version"]
    assert body["name"] == "double"
    assert body["description"].startswith("Twice as much.")
    assert body["input_schema"]["properties"]["n"]["type"] == "integer"
    assert body["output_schema"] == {"type": "integer"}
    assert (body["trusted"], body["ephemeral"], body["on_collision"]) == (True, False, "throw")
    assert body["meta"] == {"team": "hats"}


def test_forbidden_registration_is_attempted_once(
    make_trail: MakeTrail, server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    server.plan = lambda r: (403, {}, {}) if r.path == "/api/v1/tools" else None
    trail = make_trail()
    calls(trail, 1)
    assert trail.flush(20)
    server.wait(lambda: any(r.path == "/api/v1/tools" for r in server.requests))
    calls(trail, 1)
    assert trail.flush(20)
    trail.close()
    assert sum(r.path == "/api/v1/tools" for r in server.requests) == 1
    assert [r.getMessage() for r in caplog.records].count(
        "tooltrail: the registry accepts no tools from this key (403)"
    ) == 1


@pytest.mark.slow
def test_batch_split_is_retried_after_a_full_disk(
    make_trail: MakeTrail, server: Server, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    full = [True]
    left: list[list[Path]] = []
    write_bytes = Path.write_bytes

    def short_write(path: Path, data: bytes) -> int:
        if full:
            left.append(list(tmp_path.glob("*/*/*.part")))
            write_bytes(path, data[:10])
            raise OSError(28, "No space left on device")
        return write_bytes(path, data)

    monkeypatch.setattr(Path, "write_bytes", short_write)
    server.plan = lambda request: (413, {}, {}) if len(request.events) > 2 else None
    trail = make_trail()
    calls(trail, 3)
    server.wait(lambda: len(left) >= 3)
    assert not any(left), "a file that was not written whole stayed until the next try"
    full.clear()
    assert trail.flush(20)
    assert numbers(server) == list(range(6))


@pytest.mark.skipif(not Path("/proc/net/tcp").exists(), reason="no /proc/net/tcp here")
def test_closed_trail_leaves_no_open_connection(make_trail: MakeTrail, server: Server) -> None:
    trail = make_trail()
    calls(trail, 1)
    assert trail.flush(20)
    [mine] = established(server)
    trail.close()
    assert mine not in established(server)


def established(server: Server) -> list[str]:
    """This process's connections to the server, by their sockets."""
    port = f":{int(server.url.rpartition(':')[2]):04X}"
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return [row[1] for row in rows if row[2].endswith(port) and row[3] == "01"]


@pytest.mark.slow
def test_unreferenced_trail_still_delivers_at_exit(server: Server, tmp_path: Path) -> None:
    import gc

    from tooltrail.lifetime import _close_all

    calls(Trail(server.url, KEY, spool_dir=tmp_path), 2)
    gc.collect()
    _close_all()
    assert numbers(server) == [0, 1, 2, 3]
