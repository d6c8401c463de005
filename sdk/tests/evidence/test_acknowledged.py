"""A bundle is compared with what the server once acknowledged; a cut or different end fails."""

import json
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import msgspec
import pytest
from tooltrail import Trail
from tooltrail.cli.main import main
from tooltrail.spool.acknowledged import ACKNOWLEDGED, acknowledgement

from sdk.tests.support.bundles import KEY, Bundle, Log, at
from sdk.tests.support.ingest_server import Server

LOG = Log.of(60)
MADE = datetime.fromisoformat(at(1_000_000))


def kept(log: Log, begin: int, end: int, **others: Any) -> dict[str, Any]:
    """What the SDK keeps of the answer to a request whose events are these entries."""
    ids = [str(line.event_id) for line in log.lines[begin:end]]
    at = (MADE - timedelta(hours=1)).isoformat()
    return {"at": at, "batch_id": "b", "first_index": begin, "size": end, "event_ids": ids} | others


def code(bundle: Bundle, one: dict[str, Any], folder: Path, *more: str) -> int:
    """The exit code of `tooltrail verify`, with the SDK's folder."""
    (folder / ACKNOWLEDGED).write_text(json.dumps(one))
    path = bundle.write(folder / "evidence.zip")
    key = ("--key", str(KEY.verifier))
    return main(["verify", str(path), *key, "--acknowledged", str(folder), *more])


def named(log: Log) -> Log:
    """A log whose events have ids."""
    lines = [
        msgspec.structs.replace(line, event_id=UUID(int=number + 1))
        for number, line in enumerate(log.lines)
    ]
    named = Log()
    for line, raw in zip(lines, log.raws, strict=True):
        named.lines.append(line)
        named.raws.append(raw)
    return named


def test_bundle_with_what_was_acknowledged_is_genuine(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bundle = Bundle.of(LOG, 10, 60)
    assert code(bundle, kept(LOG, 50, 60, event_ids=[]), tmp_path) == 0
    assert "ok      acknowledged: it has what the server acknowledged" in capsys.readouterr().out
    assert main(["verify", str(tmp_path / "evidence.zip")]) == 0, "without it, as before"
    assert "acknowledged" not in capsys.readouterr().out


def test_ledger_that_is_shorter_than_acknowledged_fails(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bundle = Bundle.of(LOG, 10, 60)
    assert code(bundle, kept(LOG, 50, 60, size=64), tmp_path, "--json") == 1
    document = json.loads(capsys.readouterr().out)
    assert not document["genuine"]
    (check,) = [each for each in document["checks"] if each["name"] == "acknowledged"]
    assert "acknowledged entries 50 to 63 at" in check["problems"][0]
    assert "has 60 entries: the end was removed" in check["problems"][0]
    just_now = (MADE - timedelta(seconds=50)).isoformat()
    assert code(bundle, kept(LOG, 50, 60, size=64, at=just_now), tmp_path) == 2, "not signed yet"


def test_other_events_in_the_place_of_the_acknowledged_ones_fail(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = named(LOG)
    bundle = Bundle.of(log, 10, 60)
    there = kept(log, 50, 60)
    code(bundle, there, tmp_path)
    assert "are not there" not in capsys.readouterr().out
    absent = there | {"event_ids": [*there["event_ids"], str(UUID(int=7_000))]}
    assert code(bundle, absent, tmp_path) == 1
    assert "of the 11 events that the server acknowledged as entries 50 to 59, 1 are not there" in (
        capsys.readouterr().out
    )


def test_range_without_the_acknowledged_entries_is_undecided(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert code(Bundle.of(LOG, 10, 40), kept(LOG, 38, 44), tmp_path) == 2
    assert "the bundle does not have entries 38 to 43" in capsys.readouterr().out


@pytest.mark.parametrize("text", ["", "[]", '{"size": 3}', '{"size": "x"}'])
def test_unreadable_file_is_a_usage_error(text: str, tmp_path: Path) -> None:
    bundle = Bundle.of(LOG, 10, 60).write(tmp_path / "evidence.zip")
    (tmp_path / "kept").write_text(text)
    for path in (tmp_path / "kept", tmp_path / "nothing"):
        assert main(["verify", str(bundle), "--acknowledged", str(path)]) == 2


def test_sdk_keeps_the_last_acknowledgement(
    make_trail: Callable[..., Trail], server: Server, tmp_path: Path
) -> None:
    trail = make_trail()

    @trail.tool(name="echo", version="1")
    def echo(n: int) -> int:
        return n

    for number in range(3):
        echo(number)
        assert trail.flush(20)
        (path,) = tmp_path.rglob(ACKNOWLEDGED)
        one = json.loads(path.read_bytes())
        assert (one["first_index"], one["size"]) == (2 * number, 2 * number + 2)
        assert one["event_ids"] == [event["event_id"] for event in server.events[-2:]]
    server.entries = 0  # its ledger was replaced by an older state
    echo(4)
    assert trail.flush(20)
    assert json.loads(path.read_bytes()) == one, "the largest stays: it shows what is gone"
    path.write_bytes(b"no JSON")
    echo(5)
    assert trail.flush(20)
    assert json.loads(path.read_bytes())["size"] == 4


@pytest.mark.parametrize(
    "ledger", [None, 1, {}, {"first_index": 1}, {"first_index": 2, "size": 1}, {"first_index": -1}]
)
def test_answers_without_a_place_are_not_kept(ledger: Any) -> None:
    assert acknowledgement({"ledger": ledger}, "b", []) is None


def test_rejected_events_and_definitions_are_not_acknowledged() -> None:
    ids = [f"0198c000-0000-7000-8000-00000000000{number}" for number in range(4)]
    kinds = ["toolExecutionStart", "toolExecutionEnd", "toolDefinitions", "gap"]
    lines = [
        json.dumps({"type": kind, "event_id": name}, separators=(",", ":")).encode()
        for kind, name in zip(kinds, ids, strict=True)
    ]
    answer = {"ledger": {"first_index": 3, "size": 5}, "rejected": [{"line": 2}]}
    one = acknowledgement(answer, "b", [*lines, b"no JSON"])
    assert one is not None
    assert one["event_ids"] == [ids[0], ids[3]]
