"""The command line of the SDK: showing and sending the events that wait in the spool."""

import io
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tooltrail.cli.bar import WIDTH
from tooltrail.cli.main import main
from tooltrail.cli.spool import READ_AHEAD_EVENTS
from tooltrail.producer import Producer
from tooltrail.spool.batch import BATCH_EVENTS
from tooltrail.spool.home import make_root
from tooltrail.spool.segments import SegmentSpool
from tooltrail.version import __version__

from sdk.tests.support.ingest_key import KEY
from sdk.tests.support.ingest_server import Reply, Request, Server


@pytest.fixture(autouse=True)
def environment(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOOLTRAIL_URL", server.url)
    monkeypatch.setenv("TOOLTRAIL_API_KEY", KEY)
    monkeypatch.setenv("TOOLTRAIL_SPOOL_DIR", str(tmp_path))


def event(n: int) -> dict[str, Any]:
    return {
        "type": "toolExecutionStart",
        "invocation_id": f"0198c0de-0000-7000-8000-{n:012d}",
        "trace_id": "t",
        "tool_name": "echo",
        "call_id": "c",
        "started_at": "2026-01-01T00:00:00Z",
        "args": {"n": n},
    }


def leave_behind(server: Server, spool_dir: Path, key: str, count: int) -> None:
    """Do as a process killed with events in its spool."""
    spool = SegmentSpool(make_root(spool_dir, server.url, key), 1_000_000, lambda: None)
    for n in range(count):
        spool.append(json.dumps(event(n))[:-1].encode())
    spool.abandon()


def test_status_lists_waiting_events_per_server_and_process(
    server: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["status"]) == 0
    assert capsys.readouterr().out == "No events waiting.\n"
    leave_behind(server, tmp_path, KEY, 3)
    assert main(["status"]) == 1
    out = capsys.readouterr().out
    assert f"{server.url}  key key1" in out
    assert "3 events waiting" in out
    assert "0 running processes, 1 exited ones with events" in out
    assert main(["status", "--json"]) == 1
    [spool] = json.loads(capsys.readouterr().out)["spools"]
    assert (spool["waiting"], spool["dead"], spool["key_id"]) == (3, 1, "key1")
    assert "secret" not in out


def test_flush_sends_events_left_by_dead_processes(
    server: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    leave_behind(server, tmp_path, KEY, 3)
    assert main(["flush", "--json"]) == 0
    stats = json.loads(capsys.readouterr().out)
    assert (stats["acknowledged"], stats["waiting"]) == (3, 0)
    assert len(server.events) == 3
    assert main(["status"]) == 0


@pytest.mark.slow
def test_flush_keeps_all_events_when_the_server_fails(
    server: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    leave_behind(server, tmp_path, KEY, 3)
    server.plan = lambda request: (503, {}, {})
    assert main(["flush", "--timeout", "0.3"]) == 1
    assert "3 still waiting" in capsys.readouterr().out
    assert main(["status"]) == 1
    server.plan = lambda request: None
    assert main(["flush"]) == 0
    assert len(server.events) == 3


def test_send_uploads_a_file_of_events_in_batches(server: Server, tmp_path: Path) -> None:
    file = tmp_path / "events.ndjson"
    file.write_text("".join(json.dumps(event(n)) + "\n\n" for n in range(1200)))
    assert main(["send", str(file)]) == 0
    assert [each["args"]["n"] for each in server.events] == list(range(1200))
    assert [len(request.events) for request in server.requests] == [500, 500, 200]


@pytest.mark.slow
def test_deep_lines_do_not_stop_the_events_behind_them(
    server: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A line nested too deeply was tried again for ever, and held all later events back."""
    deep = "[" * 200_000 + "]" * 200_000
    file = tmp_path / "events.ndjson"
    lines = [f'{{"type":"{kind}","x":{deep}}}' for kind in ("toolExecutionEnd", "gap")]
    file.write_text("\n".join([*lines, json.dumps(event(1))]) + "\n")
    server.plan = lambda request: (413, {}, {}) if deep.encode() in request.body else None
    assert main(["send", str(file)]) == 1
    assert [each["args"]["n"] for each in server.events] == [1]
    rejected = [path.read_text() for path in tmp_path.rglob("rejected/*")]
    assert sum(text.count(deep) for text in rejected) == 2
    assert "0 still waiting, 2 refused" in capsys.readouterr().out


def test_adopt_option_sends_events_of_another_key(server: Server, tmp_path: Path) -> None:
    leave_behind(server, tmp_path, KEY.replace("key1", "old"), 2)
    leave_behind(server, tmp_path, KEY.replace("key1", "foreign"), 2)
    assert main(["flush"]) == 0
    assert not server.events
    assert main(["send", "--adopt", "old"]) == 0
    assert len(server.events) == 2
    assert main(["status"]) == 1, "the foreign key's still wait"


def test_events_for_an_old_server_address_are_reported_and_can_be_sent(
    server: Server,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    leave_behind(server, tmp_path, KEY, 2)
    old, new = server.url, server.url.replace("127.0.0.1", "localhost")
    assert old != new
    assert main(["flush", "--url", new]) == 1
    errors = capsys.readouterr().err
    assert f"2 events wait for {old}" in errors
    assert not server.events
    command = errors.partition("tooltrail send ")[2].split()
    assert main(["send", *command, "--url", new]) == 0
    assert len(server.events) == 2
    assert main(["flush", "--url", new]) == 0


def test_adopt_fails_for_a_key_without_waiting_events(
    server: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    leave_behind(server, tmp_path, KEY, 2)
    assert main(["send", "--adopt", "nobody"]) == 2
    assert "no spool for key nobody" in capsys.readouterr().err


@pytest.mark.slow
def test_send_limits_its_read_ahead_to_the_server_pace(server: Server, tmp_path: Path) -> None:
    file = tmp_path / "events.ndjson"
    count = 10 * READ_AHEAD_EVENTS
    file.write_text("".join(json.dumps(event(n)) + "\n" for n in range(count)))
    waiting: list[int] = []

    def plan(request: Request) -> Reply | None:
        waiting.append(len(list(tmp_path.glob("*/*/*.batch"))))
        return None

    server.plan = plan
    assert main(["send", str(file)]) == 0
    assert len(server.events) == count
    assert max(waiting) <= READ_AHEAD_EVENTS / BATCH_EVENTS


@pytest.mark.slow
def test_events_not_sent_before_the_timeout_stay_in_the_spool(
    server: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "events.ndjson"
    count = 3 * READ_AHEAD_EVENTS
    file.write_text("".join(json.dumps(event(n)) + "\n" for n in range(count)))
    server.plan = lambda request: (503, {}, {})
    assert main(["send", str(file), "--timeout", "0.5", "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["waiting"] == count
    assert len(server.requests) < 4, "the server was not left in peace"
    server.plan = lambda request: None
    assert main(["flush"]) == 0
    assert len(server.events) == count


def test_send_accepts_a_byte_order_mark_and_crlf_line_endings(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = [json.dumps(event(n), separators=(",\t", ":")).encode() for n in range(3)]
    text = b"\xef\xbb\xbf" + b"\r\n".join(lines)
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text)))
    assert main(["send", "-"]) == 0
    assert [each["args"]["n"] for each in server.events] == [0, 1, 2]


def test_rejected_events_can_be_sent_again(
    server: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    leave_behind(server, tmp_path, KEY, 3)
    refusals: list[Reply] = [(400, {"detail": "not today"}, {})]
    server.plan = lambda request: refusals.pop() if refusals else None
    assert main(["flush"]) == 1
    assert ", 3 refused\n" in capsys.readouterr().out
    assert main(["status"]) == 0
    [refused] = tmp_path.glob("*/rejected/*.ndjson")
    assert str(refused.parent) in capsys.readouterr().out
    assert main(["send", str(refused)]) == 0
    assert [each["args"]["n"] for each in server.events] == [0, 1, 2]


def test_rejected_events_without_sequence_numbers_are_counted_and_kept(
    server: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = [json.dumps(event(n)) for n in range(3)]
    gap = {"type": "gap", "event_id": "e", "producer_id": "p", "reason": "r"}
    lines += ['{"type":"gap"}', json.dumps({**gap, "from_seq": 0, "to_seq": 2**63 - 1})]
    file = tmp_path / "events.ndjson"
    file.write_text("\n".join(lines).replace('"type": "gap"', '"type":"gap"'))
    server.plan = lambda request: (400, {"detail": "not today"}, {}) if request.batch_id else None
    assert main(["send", str(file), "--timeout", "5"]) == 1
    errors = capsys.readouterr().out
    assert errors.startswith("0 events sent: ")
    assert errors.endswith(" 0 still waiting, 5 refused\n")
    [refused] = tmp_path.glob("*/rejected/*.ndjson")
    assert len(refused.read_text().splitlines()) == 5


def test_interrupted_send_reports_that_the_file_was_not_fully_read(
    server: Server,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    file = tmp_path / "events.ndjson"
    count = 2 * READ_AHEAD_EVENTS
    file.write_text("".join(json.dumps(event(n)) + "\n" for n in range(count)))
    flush = Producer.flush

    def interrupted(producer: Producer, timeout: float, *, hurries: bool = True) -> bool:
        flush(producer, timeout, hurries=hurries)
        raise KeyboardInterrupt

    monkeypatch.setattr(Producer, "flush", interrupted)
    assert main(["send", str(file)]) == 130
    monkeypatch.undo()
    assert "send it again" in capsys.readouterr().err


@pytest.mark.slow
def test_flush_shows_a_progress_bar_on_a_terminal(server: Server, tmp_path: Path) -> None:
    import pty

    leave_behind(server, tmp_path, KEY, 700)
    leader, follower = pty.openpty()
    completed = subprocess.run(
        [sys.executable, "-m", "tooltrail", "flush"],
        env={
            **os.environ,
            "TOOLTRAIL_URL": server.url,
            "TOOLTRAIL_API_KEY": KEY,
            "TOOLTRAIL_SPOOL_DIR": str(tmp_path),
        },
        stderr=follower,
        stdout=subprocess.PIPE,
        text=True,
        timeout=60,
    )
    os.close(follower)
    shown = os.read(leader, 65536).decode()
    os.close(leader)
    assert completed.returncode == 0
    assert "█" * WIDTH + " 100%  700 events" in shown
    assert completed.stdout.startswith("700 events sent")


@pytest.mark.parametrize("verb", [[], ["status"], ["flush"], ["send"]])
def test_help_lists_the_exit_codes(verb: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main([*verb, "--help"])
    assert end.value.code == 0
    assert "Exit codes: 0" in capsys.readouterr().out


@pytest.mark.parametrize(
    "arguments", [["send"], ["send", "nowhere.ndjson"], ["send", "x", "--adopt", "y"]]
)
def test_wrong_usage_prints_one_error_line(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["query", "calls", "--limit", "0"], "--limit: must be a whole number, 1 or more"),
        (["query", "calls", "--limit", "ten"], "--limit: must be a whole number, 1 or more"),
        (["watch", "--every", "0"], "--every: must be 1 second to 7 days"),
        (["watch", "--every", "often"], "--every: must be 1 second to 7 days"),
    ],
)
def test_option_out_of_bounds_says_what_is_allowed(
    arguments: list[str], reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as end:
        main(arguments)
    assert end.value.code == 2
    assert reason in capsys.readouterr().err


def test_unwritable_spool_prints_one_error_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["flush", "--spool-dir", "/proc/nowhere"]) == 2
    assert capsys.readouterr().err == "tooltrail: /proc/nowhere: No such file or directory\n"


def test_missing_api_key_prints_an_error(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("TOOLTRAIL_API_KEY")
    assert main(["flush"]) == 2
    assert "TOOLTRAIL_API_KEY" in capsys.readouterr().err


def test_version_option_prints_the_version(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    assert ended.value.code == 0
    assert capsys.readouterr().out == f"tooltrail {__version__}\n"
