"""Redacted values never reach the log, its leaves, the index or the inbox."""

import hashlib
import json
import time
from typing import Any
from uuid import UUID

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from hypothesis import given, settings
from hypothesis import strategies as st
from tooltrail.ledger import Entry, Kind, commit_of, leaf_of
from tooltrail.redact_text import MARK

from audit.events.body import Line
from audit.events.instants import microseconds
from audit.events.redaction import (
    Redaction,
    are_one_but_for_marks,
    forget_rules,
    redacted,
)
from audit.index.reindex import reindex
from audit.log.payload import unpack
from audit.models import Batch, Invocation, RejectedEvent
from tenants.models import TenantSetting
from tenants.scope import tenant_scope
from tests.support.event_requests import lines, new_batch_id, post
from tests.support.factories import (
    Cast,
    make_call,
    make_ingest_key,
    send_events,
)
from tests.support.otlp_requests import JSON as JSON_TYPE
from tests.support.otlp_requests import pairs, request, span
from tests.support.otlp_requests import post as post_spans
from tests.support.stored_events import stored_lines

MAIL = r"[a-z.]+@[a-z.]+"


def set_rules(cast: Cast, names: list[str], patterns: list[str]) -> None:
    with tenant_scope(cast.tenant.id):
        TenantSetting.objects.update_or_create(
            tenant=cast.tenant, defaults={"redact_names": names, "redact_patterns": patterns}
        )
    forget_rules(cast.tenant.id)


def clean(document: Any, names: list[str], patterns: list[str]) -> Any:
    raw = json.dumps(document).encode()
    return json.loads(Redaction(names, patterns).clean(raw))


def everything(cast: Cast) -> str:
    """All stored data of the tenant, from every table, with payloads decompressed."""
    with tenant_scope(cast.tenant.id), connection.cursor() as cursor:
        cursor.execute("SELECT i::text FROM invocation i WHERE tenant_id = %s", [cast.tenant.id])
        texts = [row for (row,) in cursor.fetchall()]
        cursor.execute("SELECT v::text FROM violation v WHERE tenant_id = %s", [cast.tenant.id])
        texts += [row for (row,) in cursor.fetchall()]
        texts += [
            bytes(each.raw).decode(errors="replace") + each.message
            for each in RejectedEvent.objects.for_tenant(cast.tenant.id)
        ]
    return " ".join([*texts, *(raw.decode() for raw in stored_lines(cast))])


def test_members_are_redacted_by_name_and_texts_by_pattern_at_any_depth() -> None:
    event = {
        "type": "toolExecutionStart",
        "args": {
            "customerIban": "DE89",
            "deep": [{"iban": {"a": [1, 2]}}, "write to ada@example.org", 3],
            "iban": None,
            "kept": "x",
        },
    }
    assert clean(event, ["iban"], [MAIL])["args"] == {
        "customerIban": MARK,
        "deep": [{"iban": MARK}, MARK, 3],
        "iban": None,
        "kept": "x",
    }


@pytest.mark.slow
def test_large_line_without_a_secret_is_not_read_token_by_token() -> None:
    """More than 64 brackets used to cost 0.4 ms per KB: 1.2 s for a request of 1.4 MB."""
    raw = json.dumps({"type": "toolExecutionEnd", "output": [[-1]] * 100_000}).encode()
    rules = Redaction((), (), defaults=True)
    began = time.thread_time()
    assert rules.clean(raw) is raw
    assert time.thread_time() - began < 0.1
    secret = raw.replace(b"[-1]", b'{"password":"x"}', 1)
    assert rules.clean(secret) == raw.replace(b"[-1]", b'{"password":"[redacted]"}', 1)


def test_unmatched_bytes_stay_unchanged() -> None:
    raw = b'{ "args" : {"n":1.50, "n":2e400,  "s":"\\u00e9\\/", "iban":"DE89" } ,"x":[ ] }'
    assert Redaction(["iban"], []).clean(raw) == raw.replace(b'"DE89"', b'"[redacted]"')
    harmless = b'{"args":{"s":"\\ud800"}}'
    assert Redaction(["iban"], [MAIL]).clean(harmless) is harmless


@pytest.mark.parametrize("name", ["p\\u0061ssword", "PASS\\u0057ORD", "db\\u002dpassword"])
def test_escaped_member_name_is_matched(name: str) -> None:
    raw = b'{"args":{"%s":"hunter2"}}' % name.encode()
    assert b"hunter2" not in Redaction(["password"], []).clean(raw)


def test_contract_members_are_never_redacted() -> None:
    (start, end) = make_call(
        trace_id="ada@example.org",
        guard={
            "strategy": "throw",
            "outcome": "failed",
            "violations": [{"path": "$.mail", "code": "WRONG_TYPE", "received": "ada@example.org"}],
        },
    )
    names = ["id", "name", "started", "code", "outcome", "violations", "type", "guard"]
    for event in (start, end):
        kept = clean(event, names, [MAIL, "^throw$", "trace"])
        assert {key: kept[key] for key in kept if key not in ("args", "output", "guard")} == {
            key: event[key] for key in event if key not in ("args", "output", "guard")
        }
    violation = clean(end, names, [MAIL])["guard"]["violations"][0]
    assert violation == {"path": "$.mail", "code": "WRONG_TYPE", "received": MARK}


@pytest.mark.parametrize(
    "raw",
    [b"{ no JSON: ada@example.org", b'"\xff ada@example.org"', b'{"a":"ada@example.org"', b""],
)
def test_invalid_json_is_redacted_completely(raw: bytes) -> None:
    assert b"ada" not in Redaction([], [MAIL]).clean(raw)


@pytest.mark.parametrize(
    ("names", "patterns"),
    [
        ([], ["("]),
        ([], [r"(a)\1"]),
        ([], ["(?=a)"]),
        ([], [".*"]),
        ([], ["a|"]),
        ([], ["x" * 301]),
        ([], [r"((\w{100}){100}){100}"]),
        (["…"], []),
        ([""], []),
        (["a"] * 51, []),
    ],
)
def test_invalid_rule_is_rejected(names: list[str], patterns: list[str]) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        Redaction(names, patterns)


@pytest.mark.parametrize("pattern", ["(a+)+$", "(a|a)*b", "(.*)*x", "([a-z]+)*!", "(x+x+)+y"])
def test_backtracking_pattern_terminates(pattern: str) -> None:
    try:
        rules = Redaction([], [pattern])
    except ValueError:
        return  # matches every text
    began = time.process_time()
    rules.clean(json.dumps({"args": "a" * 500_000 + "?"}).encode())
    # A backtracking engine would never finish.
    assert time.process_time() - began < 30


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8) | st.just("a@b.c"),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(max_size=6) | st.just("iban"), inner, max_size=4)
    ),
    max_leaves=20,
)


def _by_hand(value: Any) -> Any:
    if isinstance(value, dict):
        rules = Redaction(["iban"], [])._redactor
        return {
            key: MARK if rules.is_secret_name(key) and inner is not None else _by_hand(inner)
            for key, inner in value.items()
        }
    if isinstance(value, list):
        return list(map(_by_hand, value))
    return MARK if isinstance(value, str) and "a@b.c" in value else value


@pytest.mark.slow
@settings(deadline=None)  # the machine may be busy
@given(JSON, st.booleans())
def test_redaction_of_arbitrary_json_matches_a_reference_implementation(
    value: Any, is_ascii: bool
) -> None:
    raw = json.dumps({"args": value}, ensure_ascii=is_ascii).encode(errors="surrogatepass")
    cleaned = Redaction(["iban"], [r"a@b\.c"]).clean(raw)
    try:
        raw.decode()
    except UnicodeDecodeError:
        assert cleaned == MARK.encode()
        return
    assert json.loads(cleaned) == {"args": _by_hand(value)}
    assert Redaction(["iban"], [r"a@b\.c"]).clean(cleaned) == cleaned


def test_log_index_inbox_and_leaf_contain_only_redacted_values(acme: Cast) -> None:
    set_rules(acme, ["iban"], [MAIL])
    error = {"type": "FATAL", "message": "no customer ada@example.org", "code": "x"}
    violation = {"path": "$.a", "code": "PATTERN_MISMATCH", "received": "ada@example.org"}
    guard = {"strategy": "throw", "outcome": "failed", "violations": [violation]}
    call = make_call(
        args={"iban": "DE89 3704", "q": "ada@example.org"},
        is_error=True,
        output={"status": "error", "error": error, "meta": {"took_ms": 1}},
        guard=guard,
    )
    refused = b'{"type": "toolExecutionStart", "args": {"iban": "DE89 3704"}}\n{ada@example.org\n'
    answer = post(make_ingest_key(acme.tenant), lines(call) + refused)
    assert answer.status_code == 200
    assert answer.json()["accepted"] == 2
    assert len(answer.json()["rejected"]) == 2
    text = everything(acme)
    assert MARK in text
    assert "ada@" not in text
    assert "DE89" not in text
    with tenant_scope(acme.tenant.id):
        (batch,) = Batch.objects.for_tenant(acme.tenant.id)
        (row,) = Invocation.objects.for_tenant(acme.tenant.id)
    assert row.error_message == MARK
    salt, raw = unpack(bytes(batch.payload or b""))[0]
    entry = Entry(
        Kind.START,
        UUID(call[0]["event_id"]),
        UUID(call[0]["invocation_id"]),
        microseconds(batch.received_at),
        len(raw),
        commit_of(salt, raw),
    )
    assert bytes(batch.leaves)[:32] == leaf_of(entry.to_bytes())
    assert reindex(acme.tenant.id, repair=False, progress=lambda done, size: None).is_clean


@pytest.mark.slow
def test_resent_event_is_a_duplicate_after_the_rules_changed(acme: Cast) -> None:
    call = make_call(args={"iban": "DE89", "mail": "ada@example.org"})
    for names, patterns in ((["iban"], []), (["iban"], [MAIL]), ([], []), ([], [MAIL])):
        set_rules(acme, names, patterns)
        answer = send_events(acme.tenant, call)
        assert not answer["rejected"]
        assert answer["accepted"] + answer["duplicates"] == 2
    assert answer["duplicates"] == 2
    other = [call[0] | {"args": {"iban": "FR12", "mail": "ada@example.org", "more": 1}}]
    assert [each["code"] for each in send_events(acme.tenant, other)["rejected"]] == ["conflict"]
    assert reindex(acme.tenant.id, repair=False, progress=lambda done, size: None).is_clean


def test_replayed_redacted_request_gets_the_same_answer(acme: Cast) -> None:
    set_rules(acme, ["iban"], [])
    key, body = make_ingest_key(acme.tenant), lines(make_call(args={"iban": "DE89"}))
    batch_id = new_batch_id()
    answers = [post(key, body, idempotency_key=batch_id) for _ in range(2)]
    assert answers[0].json() == answers[1].json()
    with tenant_scope(acme.tenant.id):
        (batch,) = Batch.objects.for_tenant(acme.tenant.id)
    assert bytes(batch.body_sha256) == hashlib.sha256(body).digest()


def test_intake_is_unavailable_while_rules_cannot_be_applied(acme: Cast) -> None:
    """For example, after an upgrade to an engine that supports fewer patterns."""
    set_rules(acme, [], [r"(a)\1"])
    answer = post(make_ingest_key(acme.tenant), lines(make_call()))
    assert answer.status_code == 503
    assert stored_lines(acme) == []
    set_rules(acme, [], [])
    assert post(make_ingest_key(acme.tenant), lines(make_call())).status_code == 200


def test_rules_apply_to_one_tenant_only(acme: Cast, globex: Cast) -> None:
    set_rules(acme, ["iban"], [])
    for cast in (acme, globex):
        send_events(cast.tenant, make_call(args={"iban": "DE89"}))
    assert b"DE89" not in b"".join(stored_lines(acme))
    assert b"DE89" in b"".join(stored_lines(globex))


def test_lines_are_unchanged_without_rules_and_rules_are_cached(acme: Cast) -> None:
    some = [Line(1, b"{}")]
    assert redacted(acme.tenant.id, some, is_otlp=False) is some
    with CaptureQueriesContext(connection) as queries:
        assert redacted(acme.tenant.id, some, is_otlp=False) is some
    assert not queries.captured_queries


def test_events_with_other_differences_than_marks_are_not_equal() -> None:
    def differ(one: Any, other: Any) -> bool:
        return not are_one_but_for_marks(json.dumps(one).encode(), json.dumps(other).encode())

    assert not differ({"a": MARK, "b": 1}, {"a": {"x": 1}, "b": 1})
    assert not differ({"a": ["x", 1.0]}, {"a": [MARK, 1.0]})
    assert differ({"a": MARK, "b": 1}, {"a": "x", "b": 2})
    assert differ({"a": MARK}, {"a": "x", "b": 2})
    assert differ({"a": [MARK]}, {"a": ["x", "y"]})
    assert differ({"a": 1}, {"a": 2})
    assert not are_one_but_for_marks(b'{"a":"[redacted]"', b'{"a":"x"')


SECRETS = {
    "gen_ai.operation.name": "execute_tool",
    "gen_ai.tool.name": "log_in",
    "gen_ai.tool.call.arguments": '{"user":"ada","password":"hunter2"}',
    "gen_ai.tool.call.result": json.dumps({"body": json.dumps({"access_token": "hunter2"})}),
    "http.request.header.authorization": "Basic hunter2",
    "input.value": "{'user': 'ada', 'api_key': 'hunter2'}",
    "app.login": {"kvlistValue": {"values": [{"key": "pwd", "value": {"stringValue": "hunter2"}}]}},
}


def secret_span() -> dict[str, Any]:
    """A failed call with a secret in every place that a span has for texts."""
    exception = {
        "exception.type": "LoginError",
        "exception.message": 'refused: {"password": "hunter2"}',
        "exception.stacktrace": "in log_in\n  password='hunter2'",
    }
    return span(
        "execute_tool log_in",
        attributes=SECRETS,
        status={"code": 2, "message": "refused: password=hunter2"},
        events=[{"name": "exception", "timeUnixNano": "1", "attributes": pairs(exception)}],
        links=[
            {
                "traceId": "0" * 31 + "1",
                "spanId": "0" * 15 + "1",
                "attributes": pairs({"jwt": "hunter2"}),
            }
        ],
    )


def send_spans(cast: Cast, *spans: dict[str, Any]) -> None:
    answer = post_spans(make_ingest_key(cast.tenant), request(*spans, secret="hunter2"), JSON_TYPE)
    assert (answer.status_code, answer.rejected) == (200, 0)


def test_spans_are_redacted_by_the_default_rules_in_every_part(acme: Cast) -> None:
    send_spans(acme, secret_span())
    send_events(acme.tenant, make_call(args={"password": "of an SDK that was asked not to"}))
    text = everything(acme)
    assert "hunter2" not in text
    assert text.count(MARK) > 10
    assert "log_in" in text
    assert '{\\"user\\":\\"ada\\",\\"password\\":\\"[redacted]\\"}' in text
    assert "of an SDK that was asked not to" in text
    send_spans(acme, secret_span())  # another call, same rules
    assert reindex(acme.tenant.id, repair=False, progress=lambda done, size: None).is_clean


def test_default_rules_can_be_disabled_and_resent_spans_are_duplicates(acme: Cast) -> None:
    sent = secret_span()
    send_spans(acme, sent)
    with tenant_scope(acme.tenant.id):
        TenantSetting.objects.update_or_create(
            tenant=acme.tenant, defaults={"redact_otlp": False, "redact_names": ["pwd"]}
        )
    forget_rules(acme.tenant.id)
    send_spans(acme, sent)
    send_spans(acme, secret_span())
    text = everything(acme)
    assert '\\"password\\":\\"hunter2\\"' in text
    assert '"pwd":"[redacted]"' in text or '"pwd": "[redacted]"' in text
    with tenant_scope(acme.tenant.id):
        assert Invocation.objects.for_tenant(acme.tenant.id).count() == 2
        assert not RejectedEvent.objects.for_tenant(acme.tenant.id).exists()


def test_only_real_ids_of_a_span_are_kept(acme: Cast) -> None:
    set_rules(acme, ["id", "code", "path"], [])
    call = make_call(
        guard={
            "strategy": "throw",
            "outcome": "failed",
            "violations": [{"path": "$.a", "code": "PATTERN_MISMATCH", "detail": {"code": "x1"}}],
            "custom": {"path": "x2"},
        }
    )
    send_events(acme.tenant, call)
    send_spans(acme, span(attributes=SECRETS | {"trace_id": "x3", "my.span_id": "x4"}))
    text = everything(acme)
    for kept in ("$.a", "PATTERN_MISMATCH"):
        assert kept in text
    for gone in ("x1", "x2", "x3", "x4"):
        assert f'"{gone}"' not in text


def test_marked_texts_are_equal_only_without_other_differences() -> None:
    def agree(one: str, other: str) -> bool:
        return are_one_but_for_marks(json.dumps([one]).encode(), json.dumps([other]).encode())

    assert agree(MARK, "anything")
    assert agree('{"password": "[redacted]", "n": 1}', '{"password": "hunter2", "n": 1}')
    assert agree('{"password": {"a": 1}, "n": 1}', '{"password": "[redacted]", "n": 1}')
    assert agree("a=[redacted]&b=[redacted]", "a=1&b=2")
    assert not agree('{"password": "[redacted]", "n": 1}', '{"password": "hunter2", "n": 2}')
    assert not agree('{"password": "[redacted]", "n": 1}', '{"other": "hunter2", "n": 1}')
    assert not agree("aXa", f"aXa{MARK}aXa")


def test_violations_do_not_quote_values_under_a_redacted_name(acme: Cast) -> None:
    """The guard runs in the executor, which does not know the tenant's rules."""
    set_rules(acme, ["iban"], [])
    quoted = {
        "severity": "error",
        "code": "PATTERN_MISMATCH",
        "expected": "number",
        "received": '"DE89 3704"',
        "received_value": {"a": ["DE89 3704"]},
        "message": 'Expected number, received "DE89 3704"',
        "llm_message": "Send a number, not DE89 3704",
    }
    kept = {**quoted, "received": "a text", "received_value": 1, "message": "m", "llm_message": "l"}
    violations = [
        kept | {"path": "$.name"},
        quoted | {"path": "$.rows[0].customerIban"},
        {"path": "$.name", **kept},
        {"path": "$.iban.country", **quoted},
        kept | {"path": "$.kept"},
    ]
    call = make_call(
        output={"status": "ok", "data": {}, "meta": {"took_ms": 1}},
        guard={"strategy": "throw", "outcome": "failed", "violations": violations},
    )
    assert post(make_ingest_key(acme.tenant), lines(call)).json()["accepted"] == 2
    assert "DE89" not in everything(acme)
    stored_violations = json.loads(stored_lines(acme)[1])["guard"]["violations"]
    assert [stored_violations[at] for at in (0, 2, 4)] == [violations[at] for at in (0, 2, 4)]
    assert {name: stored_violations[1][name] for name in ("path", "code", "expected")} == {
        "path": "$.rows[0].customerIban",
        "code": "PATTERN_MISMATCH",
        "expected": "number",
    }


@pytest.mark.parametrize(
    "guard", [1, [], {"violations": 1}, {"violations": [1, [], {"path": 1, "a": "iban"}, {}]}]
)
def test_malformed_guard_reports_do_not_break_redaction(guard: Any) -> None:
    assert clean({"guard": guard, "iban": 1}, ["iban"], []) == {"guard": guard, "iban": MARK}
