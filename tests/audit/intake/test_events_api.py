"""`POST /api/v1/events` over HTTP: every status, every limit, and hostile data."""

import gzip
import json
import os
import uuid
import zlib
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest
from django.db import connection
from django.test import Client

from audit.intake import ingest
from audit.log.payload import pack, read_events
from audit.models import Batch, Invocation, RejectedEvent
from config.zstd import zstd
from tenants.keys import create_key
from tenants.models import Scope
from tenants.scope import tenant_scope
from tests.support.event_requests import lines, new_batch_id, post
from tests.support.factories import Cast, make_call, make_ingest_key


@pytest.fixture
def key(acme: Cast) -> str:
    return make_ingest_key(acme.tenant)


def _inbox(acme: Cast) -> list[RejectedEvent]:
    with tenant_scope(acme.tenant.id):
        return list(RejectedEvent.objects.for_tenant(acme.tenant.id).order_by("line"))


def _calls(acme: Cast) -> list[Invocation]:
    with tenant_scope(acme.tenant.id):
        return list(Invocation.objects.for_tenant(acme.tenant.id))


@pytest.mark.parametrize(
    ("encoding", "encode"),
    [
        (None, bytes),
        ("identity", bytes),
        ("gzip", gzip.compress),
        ("GZIP", gzip.compress),
        ("deflate", zlib.compress),
        ("gzip", lambda body: gzip.compress(body[:100]) + gzip.compress(body[100:])),
        ("zstd", zstd.compress),
        ("zstd", lambda body: zstd.compress(body[:100]) + zstd.compress(body[100:])),
    ],
)
def test_body_is_accepted_in_every_encoding(
    acme: Cast, key: str, encoding: str | None, encode: Any
) -> None:
    answer = post(key, encode(lines(make_call())), content_encoding=encoding)
    assert answer.status_code == 200
    assert answer.json() | {"batch_id": 0} == {
        "batch_id": 0,
        "accepted": 2,
        "duplicates": 0,
        "rejected": [],
        "ledger": {"first_index": 0, "size": 2},
    }
    (call,) = _calls(acme)
    assert call.state == "ok"


@pytest.mark.parametrize(
    ("authorization", "status", "code"),
    [
        (None, 401, "missing_key"),
        ("Basic eDp5", 401, "missing_key"),
        ("Bearer nonsense", 401, "malformed_key"),
        ("read", 403, "missing_scope"),
        ("revoked", 401, "unknown_key"),
    ],
)
def test_request_without_a_valid_key_is_rejected(
    acme: Cast, authorization: str | None, status: int, code: str
) -> None:
    if authorization == "read":
        authorization = f"Bearer {create_key(acme.tenant, 'r', [Scope.READ])[1]}"
    elif authorization == "revoked":
        row, text = create_key(acme.tenant, "r", [Scope.INGEST])
        with tenant_scope(acme.tenant.id):
            row.delete()
        authorization = f"Bearer {text}"
    answer = post("", lines(make_call()), authorization=authorization)
    assert (answer.status_code, answer.json()["code"]) == (status, code)
    assert _calls(acme) == []


@pytest.mark.parametrize("content_type", ["application/json", "text/plain", "", "x"])
def test_other_content_types_get_415(key: str, content_type: str) -> None:
    answer = post(key, lines(make_call()), content_type=content_type)
    assert answer.status_code == 415
    assert answer.headers["Accept"] == "application/x-ndjson"


def test_content_type_parameter_is_ignored(key: str) -> None:
    answer = post(key, lines(make_call()), content_type="application/x-ndjson; charset=utf-8")
    assert answer.status_code == 200


def test_other_encodings_get_415(key: str) -> None:
    answer = post(key, lines(make_call()), content_encoding="br")
    assert answer.status_code == 415
    assert "gzip" in answer.headers["Accept-Encoding"]


def test_only_post_is_allowed(key: str) -> None:
    answer = Client().get("/api/v1/events", headers={"Authorization": f"Bearer {key}"})
    assert answer.status_code == 405


BODY = lines(make_call()) * 20


@pytest.mark.parametrize(
    ("encoding", "body"),
    [
        ("gzip", BODY),
        ("gzip", gzip.compress(BODY)[:-9]),
        ("gzip", gzip.compress(BODY)[:40]),
        ("gzip", gzip.compress(BODY)[:-8] + b"\0" * 8),
        ("gzip", gzip.compress(BODY) + b"tail"),
        ("gzip", zlib.compress(BODY)),
        ("deflate", BODY),
        ("deflate", zlib.compress(BODY)[:-3]),
        ("deflate", zlib.compress(BODY) + b"tail"),
        ("deflate", zlib.compress(BODY)[2:-4]),
        ("zstd", BODY),
        ("zstd", zstd.compress(BODY)[:-3]),
        ("zstd", zstd.compress(BODY) + b"tail"),
        ("identity", b"\n \n\r\n"),
    ],
    ids=range(14),
)
def test_unreadable_body_gets_400(acme: Cast, key: str, encoding: str, body: bytes) -> None:
    answer = post(key, body, content_encoding=encoding)
    assert (answer.status_code, answer.json()["code"]) == (400, "unreadable_body")
    assert _calls(acme) == []


MIB = 1024 * 1024


@pytest.mark.slow
@pytest.mark.generated(4)
@pytest.mark.parametrize(
    ("encoding", "make", "code"),
    [
        ("identity", lambda: b"x" * (5 * MIB + 1), "too_large"),
        ("gzip", lambda: gzip.compress(b"0" * (30 * MIB), 9), "ratio"),
        ("deflate", lambda: zlib.compress(b"0" * (30 * MIB), 9), "ratio"),
        ("zstd", lambda: zstd.compress(b"0" * (300 * MIB), 19), "ratio"),
        ("gzip", lambda: gzip.compress(_poorly_compressible(21 * MIB), 1), "too_large"),
        ("identity", lambda: b"{}\n" * 1001, "too_many_lines"),
        ("identity", lambda: b"\n" * 5000, "too_many_lines"),
        ("identity", lambda: b"{}\n" + b"x" * (MIB + 1), "line_too_long"),
        ("gzip", lambda: gzip.compress(_poorly_compressible(10 * MIB)), "line_too_long"),
        ("identity", lambda: _nested(65), "too_deep"),
        ("identity", lambda: _nested(10_000), "too_deep"),
        ("identity", lambda: _nested(300_000), "too_deep"),
        ("identity", lambda: b"[" * 300_000, "too_deep"),
    ],
)
def test_every_exceeded_limit_gets_413(
    acme: Cast, key: str, encoding: str, make: Any, code: str
) -> None:
    answer = post(key, make(), content_encoding=encoding)
    assert (answer.status_code, answer.json()["code"]) == (413, code)
    assert (_calls(acme), _inbox(acme)) == ([], [])


def _poorly_compressible(size: int) -> bytes:
    """A line that compresses to about a tenth: below the allowed ratio, above the size."""
    return b"".join(os.urandom(8).hex().encode() + b"x" * 84 for _ in range(size // 100 + 1))


def _nested(depth: int) -> bytes:
    """A start event whose JSON is nested `depth` deep, the event itself included."""
    start = json.dumps(make_call(args="HERE", is_open=True)[0])
    return start.replace('"HERE"', "[" * (depth - 1) + "]" * (depth - 1)).encode()


def test_line_at_the_depth_limit_is_stored(acme: Cast, key: str) -> None:
    assert post(key, _nested(64)).json()["accepted"] == 1


def test_invalid_lines_are_rejected_individually(acme: Cast, key: str) -> None:
    good, bad = make_call(), make_call(tool_name="")
    body = lines(good[:1]) + b"not json\n\n" + lines([bad[1], good[1]])
    answer = post(key, body).json()
    assert (answer["accepted"], answer["duplicates"]) == (2, 0)
    assert [(each["line"], each["event_id"], each["code"]) for each in answer["rejected"]] == [
        (2, None, "not_json"),
        (4, bad[1]["event_id"], "invalid_event"),
    ]
    assert "tool_name" in answer["rejected"][1]["message"]
    inbox = _inbox(acme)
    assert [bytes(each.raw) for each in inbox] == [b"not json", lines([bad[1]]).strip()]
    assert [str(each.batch_id) for each in inbox] == [answer["batch_id"]] * 2
    (call,) = _calls(acme)
    assert (call.start_pos, call.end_pos) == (0, 1)


def test_long_invalid_line_is_stored_truncated(acme: Cast, key: str) -> None:
    body = b"x" * MIB
    assert post(key, body).json()["accepted"] == 0
    (rejected,) = _inbox(acme)
    assert (len(rejected.raw), rejected.raw_length) == (64 * 1024, MIB)


@pytest.mark.parametrize(
    "bad",
    [
        b"[]",
        b"5",
        b"null",
        b"{}",
        b'{"type":"toolExecutionStart"}',
        b'{"type":"unheard of"}',
        b'{"type":5}',
        b"\xff\xfe{}",
        b'{"type":"gap","producer_id":"p","from_seq":2,"to_seq":1,"reason":"r","count":1}',
        b'{"a":"\x01"}',
        b"{" * 200_000,
        b'"' * 200_001,
        b'\\"' * 100_000,
        b'{"auth":' * 100,
        "\ufeff{}".encode(),
    ],
)
def test_lines_that_are_not_events_go_to_the_inbox(acme: Cast, key: str, bad: bytes) -> None:
    answer = post(key, bad + b"\n" + lines(make_call())).json()
    assert (answer["accepted"], [each["line"] for each in answer["rejected"]]) == (2, [1])
    assert len(_inbox(acme)) == 1


def _start_with(args: bytes) -> bytes:
    return lines(make_call(args="HERE", is_open=True)).replace(b'"HERE"', args).strip()


@pytest.mark.parametrize(
    "args",
    [
        b'"\\u0000"',
        b'{"\\u0000":1}',
        b'"\\ud800"',
        b'"\\udc00\\ud800"',
        b'"\\ud800\\u0041"',
        b'"\\\\ud800"',
        b"NaN",
        b"[Infinity,-Infinity]",
        b"1e400",
        b"1" + b"0" * 400,
        b"1" + b"0" * 20_000,
        b"-0.0",
        b'{"a":1,"a":2}',
        b'"' + "\u2028\U0001f600".encode() + b'"',
        b'"' + b"x" * 900_000 + b'"',
        b"{" + b",".join(b'"%d":0' % n for n in range(50_000)) + b"}",
    ],
)
def test_unusual_json_is_logged_unchanged(acme: Cast, key: str, args: bytes) -> None:
    line = _start_with(args)
    answer = post(key, line).json()
    assert answer["accepted"] == 1, answer
    with tenant_scope(acme.tenant.id):
        (stored,) = read_events(acme.tenant.id, [(uuid.UUID(answer["batch_id"]), 0)]).values()
    assert stored.raw == line


@pytest.mark.parametrize(
    ("sent", "kept"),
    [
        ("a\x00b", "a\ufffdb"),
        ("\ud800", "\ufffd"),
        ("\udfff\ud800", "\ufffd\ufffd"),
        ("\U0001f600", "\U0001f600"),
        ("\\u0000", "\\u0000"),
    ],
)
def test_index_replaces_characters_postgresql_cannot_store(
    acme: Cast, key: str, sent: str, kept: str
) -> None:
    output = {"status": "error", "error": {"type": "FATAL", "message": sent, "code": sent}}
    guard = {
        "strategy": sent,
        "outcome": "failed",
        "violations": [{"path": sent, "code": "WRONG_TYPE", "expected": sent, "received": sent}],
    }
    names = ("tool_name", "trace_id", "call_id", "run_id", "case_id", "locale", "producer_id")
    members: dict[str, Any] = dict.fromkeys(names, sent)
    answer = post(key, lines(make_call(output=output, guard=guard, **members)))
    assert answer.json()["accepted"] == 2
    (call,) = _calls(acme)
    assert {getattr(call, name) for name in (*names, "error_message", "error_code")} == {kept}


@pytest.mark.parametrize(
    "members",
    [
        {"output": {"meta": {"token_usage": {"prompt": 2**63 - 1}}}},
        {"output": {"meta": {"token_usage": {"prompt": 2**63, "completion": -1}}}},
        {"output": {"status": "error", "error": {"upstream_status": 2**40, "attempt": -(2**31)}}},
        {"output": {"status": "error", "error": {"retry_after_ms": 2**64, "type": "x" * 9999}}},
        {"tool_name": "\U0001f600" * 256, "tool_version": "\U0001f600" * 256, "is_error": True}
        | {"output": {"status": "error", "error": {"type": "\U0001f600" * 256}}},
        {"timeouts_ms": 2**63 - 1, "budget_tokens": 2**63 - 1},
        {"trace_id": "\U0001f600" * 128, "call_id": "\U0001f600" * 128, "run_id": "x" * 128},
        {"guard": {"strategy": "", "outcome": "failed"} | {"violations": [{"path": "x" * 99_999}
            | {"code": "COERCED", "expected": "e" * 99_999, "received": "r" * 99_999}]}},
    ],
)  # fmt: skip  # one case a line
def test_largest_values_can_be_stored_repeatedly(
    acme: Cast, key: str, members: dict[str, Any]
) -> None:
    for _ in range(3):
        events = make_call(**members) + make_call(**members)
        for event in events:
            event["duration_ms"] = 1e13
        answer = post(key, lines(events))
        assert answer.json()["accepted"] == 4, answer.json()


def test_auth_is_never_stored(acme: Cast, key: str) -> None:
    start, end = make_call()
    secret = {"token": "s3cr3t", "more": ["s3cr3t"]}
    odd = [
        json.dumps(start | {"auth": secret}).encode(),
        json.dumps(start | {"auth": secret}).encode().replace(b'"auth"', b'"\\u0061uth"'),
        json.dumps(start).encode()[:-1] + b', "auth":"s3cr3t", "auth":null}',
        json.dumps({"auth": "s3cr3t"} | end | {"tool_name": 5}).encode(),
        b'{"type":"gap","auth" :"s3cr3t"}',
        b'{"type":"toolExecutionStart","auth":"s3cr3t',
    ]
    answer = post(key, b"\n".join(odd) + b"\n" + lines([start | {"auth": None}, end]))
    assert answer.json()["accepted"] == 2
    codes = [each["code"] for each in answer.json()["rejected"]]
    assert codes == ["auth_not_allowed"] * 5 + ["not_json"]
    kept = [bytes(each.raw) for each in _inbox(acme)]
    assert not any(b"s3cr3t" in raw for raw in kept)
    assert json.loads(kept[0]) == start | {"auth": None}
    with tenant_scope(acme.tenant.id), connection.cursor() as cursor:
        cursor.execute("SELECT b::text FROM batch b WHERE tenant_id = %s", [acme.tenant.id])
        assert "s3cr3t" not in str(cursor.fetchall())


def test_auth_inside_arguments_is_accepted(acme: Cast, key: str) -> None:
    answer = post(key, lines(make_call(args={"auth": {"token": "x"}})))
    assert answer.json()["accepted"] == 2


@pytest.mark.parametrize(
    ("offset", "code"),
    [
        (timedelta(days=1, minutes=5), "in_future"),
        (timedelta(days=4000), "in_future"),
        (timedelta(days=-400), "out_of_range"),
        (timedelta(days=-20_000), "out_of_range"),
    ],
)
def test_call_on_a_day_outside_the_index_goes_to_the_inbox(
    acme: Cast, key: str, offset: timedelta, code: str
) -> None:
    answer = post(key, lines(make_call(started_at=datetime.now(UTC) + offset) + make_call()))
    assert answer.json()["accepted"] == 2
    assert [each["code"] for each in answer.json()["rejected"]] == [code] * 2
    assert len(_inbox(acme)) == 2


@pytest.mark.parametrize(
    "started_at",
    ["0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00", "0001-01-01T00:00:00Z"],
)
def test_extreme_dates_go_to_the_inbox(acme: Cast, key: str, started_at: str) -> None:
    events = [event | {"started_at": started_at} for event in make_call()]
    answer = post(key, lines(events)).json()
    assert (answer["accepted"], len(answer["rejected"])) == (0, 2)


@pytest.mark.parametrize("days", [-2, 2])
def test_end_far_from_its_start_goes_to_the_inbox(acme: Cast, key: str, days: int) -> None:
    start, end = make_call()
    end["ended_at"] = (datetime.now(UTC) + timedelta(days=days)).isoformat()
    answer = post(key, lines([start, end])).json()
    assert (answer["accepted"], len(answer["rejected"])) == (1, 1)


def test_replayed_request_gets_the_stored_answer_and_writes_nothing(acme: Cast, key: str) -> None:
    batch_id = new_batch_id()
    body = lines(make_call()) + b"bad\n"
    first = post(key, body, idempotency_key=batch_id)
    again = post(key, gzip.compress(body), idempotency_key=batch_id, content_encoding="gzip")
    assert first.json()["batch_id"] == batch_id
    assert (again.status_code, again.content) == (200, first.content)
    assert len(_inbox(acme)) == 1
    assert post(key, lines(make_call())).json()["ledger"]["first_index"] == 2


def test_answer_members_have_a_fixed_order(acme: Cast, key: str) -> None:
    post(key, lines(make_call()))
    batch_id, refused = new_batch_id(), make_call()[0] | {"auth": "secret"}
    answer = post(key, lines([*make_call(), refused]), idempotency_key=batch_id)
    assert answer.content.decode() == (
        f'{{"batch_id": "{batch_id}", "accepted": 2, "duplicates": 0, "rejected": [{{"line": 3,'
        f' "event_id": {json.dumps(refused.get("event_id"))}, "code": "auth_not_allowed",'
        ' "message": "auth is never stored; send the event without it"}],'
        ' "ledger": {"first_index": 2, "size": 4}}'
    )


def test_answer_stored_by_an_earlier_version_is_returned_unchanged(acme: Cast, key: str) -> None:
    """Earlier versions stored the answer with `ledger`; today it is stored without."""
    batch_id, body = new_batch_id(), lines(make_call()) + "kein Ereignis: äöü\n".encode()
    first = post(key, body, idempotency_key=batch_id).content
    with tenant_scope(acme.tenant.id):
        stored = Batch.objects.for_tenant(acme.tenant.id).get(batch_id=batch_id).answer
    assert "ledger" not in json.loads(stored)
    with tenant_scope(acme.tenant.id, using="owner"):
        Batch.objects.using("owner").filter(batch_id=batch_id).update(answer=first.decode())
    assert post(key, body, idempotency_key=batch_id).content == first


def test_reused_batch_id_with_another_body_is_rejected(acme: Cast, key: str) -> None:
    batch_id = new_batch_id()
    post(key, lines(make_call()), idempotency_key=batch_id)
    answer = post(key, lines(make_call()), idempotency_key=batch_id)
    assert (answer.status_code, answer.json()["code"]) == (422, "batch_id_reused")
    assert len(_calls(acme)) == 1


def test_two_tenants_can_use_the_same_batch_id(acme: Cast, globex: Cast, key: str) -> None:
    batch_id = new_batch_id()
    post(key, lines(make_call()), idempotency_key=batch_id)
    answer = post(
        make_ingest_key(globex.tenant), lines(make_call()), idempotency_key=batch_id
    ).json()
    assert (answer["accepted"], answer["ledger"]) == (2, {"first_index": 0, "size": 2})


@pytest.mark.parametrize(
    "batch_id",
    [
        None,
        "",
        "x",
        str(uuid.UUID(int=4 << 76 | 2 << 62)),
        str(uuid.UUID(int=1_000_000_000 << 80 | 7 << 76 | 2 << 62)),
        str(uuid.UUID(int=(2**48 - 1) << 80 | 7 << 76 | 2 << 62)),
    ],
)
def test_invalid_idempotency_key_is_replaced_with_a_warning(
    acme: Cast, key: str, batch_id: str | None
) -> None:
    body = lines(make_call())
    first = post(key, body, idempotency_key=batch_id).json()
    assert first["batch_id"] != batch_id
    assert len(first["warnings"]) == 1
    again = post(key, body, idempotency_key=batch_id).json()
    assert (again["accepted"], again["duplicates"]) == (0, 2)
    assert len(_calls(acme)) == 1


def test_unavailable_database_gets_503(
    acme: Cast, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    body, batch_id = lines(make_call()), new_batch_id()
    connection.close()
    with monkeypatch.context() as patch:
        patch.setitem(connection.settings_dict, "HOST", "/nowhere")
        answer = post(key, body, idempotency_key=batch_id)
        assert (answer.status_code, answer.json()["code"]) == (503, "unavailable")
        assert int(answer.headers["Retry-After"]) > 0
    assert post(key, body, idempotency_key=batch_id).json()["accepted"] == 2


def test_database_failure_during_a_request_stores_nothing(
    acme: Cast, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    body, batch_id = lines(make_call()), new_batch_id()

    def pack_and_die(events: list[tuple[bytes, bytes]]) -> bytes:
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_backend_pid()")
            (pid,) = cursor.fetchone()
        with psycopg.connect(os.environ["DATABASE_URL"], autocommit=True) as other:
            other.execute("SELECT pg_terminate_backend(%s::int, 5000::bigint)", [pid])
        return b""

    with monkeypatch.context() as patch:
        patch.setattr(ingest, "pack", pack_and_die)
        answer = post(key, body, idempotency_key=batch_id)
    assert answer.status_code == 503
    assert "Retry-After" in answer.headers
    assert _calls(acme) == []
    assert post(key, body, idempotency_key=batch_id).json()["accepted"] == 2


@pytest.mark.parametrize("state", ["40001", "40P01"])
def test_serialization_failure_is_retried(
    key: str, monkeypatch: pytest.MonkeyPatch, state: str
) -> None:
    runs = []

    def lose_at_first(events: list[tuple[bytes, bytes]]) -> bytes:
        runs.append(events)
        if len(runs) < 3:
            with connection.wrap_database_errors:
                raise psycopg.errors.lookup(state)("lost")
        return pack(events)

    monkeypatch.setattr(ingest, "pack", lose_at_first)
    assert post(key, lines(make_call())).json()["accepted"] == 2
    assert len(runs) == 3


def test_repeated_deadlocks_get_503(key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def lose(events: object) -> bytes:
        with connection.wrap_database_errors:
            raise psycopg.errors.DeadlockDetected

    monkeypatch.setattr(ingest, "pack", lose)
    assert post(key, lines(make_call())).status_code == 503
