"""The story of the tenant whose record is tampered with."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg
import uuid_utils.compat
from django.conf import settings
from django.urls import reverse
from django.utils import timezone
from tooltrail.evidence.watch import Watch

from audit.alerts.rules import Rule, WindowCondition
from audit.alerts.trial import nothing_read
from audit.alerts.trying import start_trial
from audit.intake.quota import settle_quota
from audit.ledger import checks, keys
from audit.ledger.baseline import enter_baseline
from audit.ledger.epochs import announce_keys, begin_epoch
from audit.models import ArchiveSegment, Board, Erasure, WitnessAnswer, WitnessOutcome
from audit.queries.time_range import TimeRange
from audit.retention import retention
from audit.work import payload_search
from audit.work.mcp_uses import count_use
from audit.work.sightings import note_tools
from tenants.keys import ApiKeyIdentity
from tenants.models import new_id
from tenants.scope import tenant_scope
from tests.support import otlp_requests as otlp
from tests.support.acts import operators_key, row_of_each_table
from tests.support.erasures import run_erasure
from tests.support.event_requests import post as post_events
from tests.support.factories import (
    make_call,
    make_cast,
    make_decision,
    make_definition,
    make_definitions,
    make_tenant,
)
from tests.support.incidents import incident_bundle
from tests.support.ledger_log import write_key
from tests.support.pages import signed_in
from tests.support.registered_tools import register_tool
from tests.support.registry_exchange import upload_registry
from tests.support.samples import sample_bundle
from tests.support.tampering.finders import make_bundle
from tests.support.tampering.published import Published
from tests.support.tampering.record import DAY, MINUTE, Record, keep_ledger, send
from tools_registry.models import Tool


def _observe(record: Record) -> None:
    """Let the auditor watch."""
    seen = Watch(record.watched).observe(Published(record.tenant_id), timezone.now())
    assert seen.outcome in ("first", "grown", "restarted"), seen
    if seen.file is not None and seen.size is not None:
        record.kept[seen.size] = seen.file.read_bytes()


def _calls(at: datetime, seq: int) -> list[list[dict[str, Any]]]:
    """Some of everything that an executor sends; its numbers begin at `seq`."""
    violation = {"path": "$.a", "code": "WRONG_TYPE", "received": "string", "expected": "number"}
    guard = {"strategy": "throw", "outcome": "failed", "violations": [violation]}
    failed = {"status": "error", "error": {"type": "FATAL", "message": "no", "code": "E1"}}
    numbered: dict[str, Any] = {"producer_id": "producer-1", "tool_name": "numbered"}
    first, second = make_call(started_at=at, **numbered), make_call(started_at=at, **numbered)
    for number, event in enumerate((*first, *second), seq):
        event["producer_seq"] = number
    gap = {"producer_id": "producer-1", "from_seq": seq + 4, "to_seq": seq + 5}
    gap |= {"reason": "full", "count": 2}
    return [
        first,
        second,
        [{"type": "gap", "event_id": str(uuid_utils.compat.uuid7()), **gap}],
        make_call(started_at=at, guard=guard, tool_name="guarded"),
        make_call(started_at=at, is_error=True, output=failed | {"meta": {"took_ms": 1}}),
        make_call(started_at=at, case_id="held", trace_id="trace-2", tool_name="search"),
        [make_decision(decided_at=at, reason="no", tool_name="refused")],
        [make_decision("approved", decided_at=at, tool_name="refused")],
    ]


def _label_calls(record: Record) -> None:
    """Write notes about the calls of which a regression set is made."""
    editor = signed_in(record.cast.editor)
    calls = record.run(
        "SELECT invocation_id FROM invocation WHERE tenant_id = %(tenant)s"
        " AND tool_name = 'get_weather' AND end_batch_id IS NOT NULL"
    )
    for (pk,) in calls:
        about = {"about": "call", "invocation_id": pk, "label": "regression", "state": "open"}
        assert editor.post(reverse("note_new"), about).status_code == 302


def _begin_jobs(record: Record, key: str) -> None:
    """A search, a replay, an analysis, a trial, a preview of an import: what people started."""
    cast = record.cast
    editor = signed_in(cast.editor)
    with tenant_scope(record.tenant_id):
        tool = Tool.objects.get(tenant=cast.tenant, name="get_weather")
        note_tools(timezone.now())
    calls = {"range": "24h", "limit": "100"}
    for route, arguments, data in (
        ("regression_set_make", (tool.pk,), {"label": "regression", "reason": "a test"}),
        ("view_save", (), {"name": "mine", "q": "tool:search"}),
        ("columns_save", (), {"page": "calls", "column": "tokens"}),
        ("search_start", (), {"text": "London", "q": ""}),
        ("replay_start", (tool.pk,), calls),
        ("drift_start", (tool.pk,), calls),
        ("arguments_start", (), {"q": "state:failed tool:get_weather", "range": "24h"}),
    ):
        answer = editor.post(reverse(route, args=arguments), data)
        assert answer.status_code == 302, (route, answer.content)
    upload_registry(cast.editor, {"tools": [{"name": "new", "inputSchema": {"type": "object"}}]})
    ((search,),) = record.run("SELECT id FROM payload_search WHERE tenant_id = %(tenant)s")
    while payload_search.run_slice(record.tenant_id, search):
        pass
    with tenant_scope(record.tenant_id):
        now = timezone.now()
        assert checks.start_check("auditor", now)
        condition = WindowCondition(measure="failed", alert=1)
        rule = Rule(name="tried", condition=condition)
        start_trial(rule, None, nothing_read(condition, now), now, now, "editor")
        Board.objects.create(
            tenant_id=record.tenant_id,
            id=new_id(),
            name="Failures",
            range="7d",
            panels=[],
            changed_at=now,
            changed_by="editor",
        )
        WitnessAnswer.objects.create(
            tenant_id=record.tenant_id,
            id=new_id(),
            witness="w1.example",
            epoch=0,
            size=1,
            at=now,
            outcome=WitnessOutcome.SILENT,
            line="",
            problem="No connection.",
        )
        ArchiveSegment.objects.create(
            tenant_id=record.tenant_id,
            first_index=0,
            end_index=1,
            day=now.date(),
            last_received_at=now,
            epoch=0,
            size=1,
            packs=[0],
            payload_count=1,
            byte_count=100,
            record_sha256=bytes(32),
            archived_at=now,
        )
    assert otlp.post(key, otlp.request(otlp.span()), otlp.JSON).status_code == 200
    assert post_events(key, b'{"type": "unknown"}').status_code == 200
    settle_quota((record.tenant_id, "executor"), 1)
    reader = ApiKeyIdentity(record.tenant_id, "reader", uuid_utils.compat.uuid7())
    count_use(reader, "alerts", {}, "agent", timezone.now())


@contextmanager
def new_record(folder: Path) -> Iterator[Record]:
    """Make the record. The signer's folder must be `ledger` in this one."""
    now = timezone.now()
    cast = make_cast("tampered")
    assert folder / "ledger" == settings.LEDGER_DIR
    write_key(settings.LEDGER_DIR, os.urandom(32))
    of = TimeRange(now - 40 * DAY, now + DAY, UTC)
    with psycopg.connect(os.environ["TEST_SUPERUSER_URL"], autocommit=True) as superuser:
        record = Record(
            cast,
            make_tenant("other"),
            folder / "ledger",
            folder / "watched",
            folder / "evidence.zip",
            of,
            superuser,
        )
        _make(record, now)
        record.remember()
        yield record
        record.close()


def _make(record: Record, now: datetime) -> None:
    tenant, tenant_id = record.cast.tenant, record.tenant_id
    then = now - 32 * DAY
    for number in range(2):  # they will expire
        send(record, then + number * MINUTE, make_call(started_at=then, tool_name="old"))
    keys.publish(keys.load()[0])
    assert enter_baseline(tenant_id, then + 3 * MINUTE)
    for age, seq in ((3 * DAY, 1), (2 * DAY, 7)):
        send(record, now - age, *_calls(now - age, seq))
        keep_ledger(record, now - age + MINUTE)
        _observe(record)
    new, old = keys.rotate(now - 90 * MINUTE, keys.OVERLAP)
    announce_keys(tenant, new, old, "operator", now - 90 * MINUTE)
    keep_ledger(record, now - 80 * MINUTE)
    _observe(record)
    begin_epoch(tenant, "another disk", "operator", now - 70 * MINUTE)
    keep_ledger(record, now - 60 * MINUTE)
    _observe(record)
    row_of_each_table(record.cast, lambda _: keep_ledger(record, timezone.now()))
    _label_calls(record)
    register_tool(record.cast, description="refused", on_collision="throw")
    key = operators_key(record.cast, "ingest")
    changed, same = make_definition(annotations={"destructiveHint": True}), make_definition()
    send(record, timezone.now(), [make_definitions(same)], [make_definitions(changed)])
    keep_ledger(record, timezone.now())
    with tenant_scope(tenant_id):
        erasure = Erasure.objects.for_tenant(tenant_id).get()
    run_erasure(record.cast, erasure.id)
    while retention.run_slice(tenant_id, timezone.now()):
        pass
    keep_ledger(record, timezone.now())
    _observe(record)
    older = make_bundle(record, age=timedelta(hours=1))
    assert older is not None
    older.rename(record.bundle.with_name("older.zip"))
    ((incident_id,),) = record.run("SELECT id FROM incident WHERE tenant_id = %(tenant)s")
    incident_bundle(record.cast, incident_id, record.bundle.parent).rename(record.incident)
    record.acknowledged = send(record, timezone.now(), *_calls(now - MINUTE, 13))
    _begin_jobs(record, key)
    keep_ledger(record, timezone.now())
    _observe(record)
    ((report_id,),) = record.run("SELECT id FROM report WHERE tenant_id = %(tenant)s")
    record.report_id = report_id
    sample_id, *_ = record.run(
        "SELECT id FROM audit_sample WHERE tenant_id = %(tenant)s AND state = 'signed'"
    )[0]
    sample_bundle(record.cast, sample_id, record.bundle.parent).rename(record.sample)
    newest = make_bundle(record)
    assert newest is not None
    newest.rename(record.bundle)
