"""`tooltrail verify-record`: records of a SIEM, proved offline, by a server or by a bundle."""

import copy
import json
import os
from collections.abc import Callable
from datetime import UTC, timedelta
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone
from tooltrail.cli.main import main

from audit.evidence.bundling import Wanted, bundle
from audit.evidence.ledger_range import ledger_range_of
from audit.ledger.statements import key_set
from audit.queries.time_range import TimeRange
from tenants.models import Scope
from tenants.scope import tenant_scope
from tests.support.api_client import program
from tests.support.factories import Cast, make_call, send_events
from tests.support.ledger_log import sign
from tests.support.server import LiveServer
from tests.support.streams import documents, make_records

NOW = timezone.now()


@pytest.fixture
def logged(acme: Cast) -> Cast:
    send_events(acme.tenant, [event for _ in range(40) for event in make_call()])
    sign(acme.tenant)
    return acme


@pytest.fixture
def keys(logged: Cast, tmp_path: Path) -> Path:
    """The keys of the ledger, kept in a file."""
    with tenant_scope(logged.tenant.id):
        document = {"keys": key_set()}
    path = tmp_path / "keys.jwks"
    path.write_text(json.dumps(document))
    return path


type Check = Callable[..., tuple[int, list[dict[str, Any]]]]


@pytest.fixture
def check(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Check:
    """Run the command on texts, one a line; the exit code and the verdicts."""

    def run(*options: str, texts: list[str]) -> tuple[int, list[dict[str, Any]]]:
        file = tmp_path / "record.json"
        file.write_text("\n".join(texts))
        code = main(["verify-record", str(file), "--json", *options])
        out = capsys.readouterr().out
        return code, [json.loads(line) for line in out.splitlines()]

    return run


def test_a_record_proves_itself_with_kept_keys(logged: Cast, keys: Path, check: Check) -> None:
    record = make_records(logged, "calls")[3].body.decode()
    code, [verdict] = check("--keys", str(keys), texts=[record])
    assert code == 0
    assert verdict["genuine"] is True and verdict["index"] == 3
    assert {each["state"] for each in verdict["checks"].values()} == {"ok"}


def test_a_changed_record_fails(logged: Cast, keys: Path, check: Check) -> None:
    [one] = documents(make_records(logged, "calls")[3:4])
    one["status"] = "failed"
    code, [verdict] = check("--keys", str(keys), texts=[json.dumps(one)])
    assert code == 1
    assert verdict["checks"]["signed"]["state"] == "failed"


def test_a_record_of_another_server_fails(
    logged: Cast, globex: Cast, keys: Path, check: Check
) -> None:
    send_events(globex.tenant, make_call())
    sign(globex.tenant)
    record = make_records(globex, "calls")[0].body.decode()
    code, [verdict] = check("--keys", str(keys), texts=[record])
    assert code == 1
    assert "no trusted key" in verdict["checks"]["signed"]["message"]


def test_records_as_siems_wrap_them(logged: Cast, keys: Path, check: Check) -> None:
    texts = [record.body.decode() for record in make_records(logged, "calls", "ecs")[:6]]
    first = json.loads(texts[0])
    wrapped = [
        texts[0],
        json.dumps({"_index": "logs", "_source": json.loads(texts[1])}),
        json.dumps({"preview": False, "result": {"_raw": texts[2]}}),
        json.dumps({"time": 1.5, "event": json.loads(texts[3]), "source": "tooltrail"}),
        f"<110>1 2026-11-27T09:00:00Z host tooltrail - calls - {texts[4]}",
        json.dumps({"@timestamp": "2026", "message": f" {texts[5]}\n"}),
        json.dumps(dict(reversed(first.items())), indent=None, ensure_ascii=True),
    ]
    code, verdicts = check("--keys", str(keys), texts=wrapped)
    assert code == 0, verdicts
    assert [each["index"] for each in verdicts] == [0, 1, 2, 3, 4, 5, 0]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "no JSON object"),
        ('{"a": 1}', "'tooltrail'"),
        ('{"tooltrail": {}}', "schema 1"),
        ('{"a": 1, "a": 2, "tooltrail": {}}', "twice"),
        ('{"tooltrail": ', "not JSON"),
        ('{"a":' * 100_000, "nested"),
    ],
)
def test_what_is_no_record_is_a_usage_error(
    keys: Path, check: Check, text: str, reason: str
) -> None:
    code, [verdict] = check("--keys", str(keys), texts=[text])
    assert code == 2
    assert reason in verdict["error"]


@pytest.mark.slow
def test_a_record_without_a_proof_needs_a_server_or_a_bundle(
    logged: Cast,
    keys: Path,
    check: Check,
    live_server: LiveServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    record = make_records(logged, "calls", has_proofs=False)[7].body.decode()
    code, [verdict] = check("--keys", str(keys), texts=[record])
    assert code == 2 and verdict["genuine"] is None

    monkeypatch.setenv("TOOLTRAIL_API_KEY", program(logged.tenant, Scope.READ).key)
    for options in (["--keys", str(keys)], []):
        code, [verdict] = check("--server", live_server.url, *options, texts=[record])
        assert code == 0, verdict

    of = TimeRange(NOW - timedelta(days=300), NOW + timedelta(days=1), UTC)
    with tenant_scope(logged.tenant.id):
        wanted = Wanted(logged.tenant, ledger_range_of(of), of, "somebody", NOW)
    file = tmp_path / "evidence.zip"
    file.write_bytes(b"".join(bundle(wanted)))
    code, [verdict] = check("--keys", str(keys), "--bundle", str(file), texts=[record])
    assert code == 0, verdict
    assert verdict["checks"]["bundle"]["state"] == "ok"

    one = json.loads(record)
    other = copy.deepcopy(one)
    other["tooltrail"]["index"] = 8
    code, [verdict] = check("--keys", str(keys), "--bundle", str(file), texts=[json.dumps(other)])
    assert code == 1
    assert verdict["checks"]["bundle"]["state"] == "failed"


def test_without_keys_nothing_is_checked(logged: Cast, check: Check) -> None:
    record = make_records(logged, "calls")[0].body.decode()
    os.environ.pop("TOOLTRAIL_URL", None)
    code, [verdict] = check(texts=[record])
    assert code == 2 and "--keys" in verdict["error"]
