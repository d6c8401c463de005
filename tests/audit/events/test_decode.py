"""The fast decoder and the contract accept and reject the same events, with equal values."""

import json
import uuid
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError
from pydantic.alias_generators import to_camel
from tooltrail import events
from tooltrail.events import EVENT
from tooltrail.guard.violations import Violation

from audit.events import decode, wire
from audit.events.decode import (
    RefusedLineError,
    TooDeepError,
    decode_line,
    without_auth,
)
from audit.events.definitions import Sighting
from audit.events.instants import Instants
from audit.events.limits import MAX_DEPTH
from audit.show.raw_view import judge
from tests.support.factories import make_call, make_decision

START, END = make_call(started_at=datetime(2026, 11, 20, 10, 15, tzinfo=UTC))
GAP = {
    "type": "gap",
    "event_id": START["event_id"],
    "producer_id": "p",
    "from_seq": 1,
    "to_seq": 3,
    "reason": "spool-full",
    "count": 3,
}
DECISION = make_decision(
    decided_at=datetime(2026, 11, 20, 10, 15, tzinfo=UTC),
    by={"kind": "person", "id": "ada"},
    violations=[{"path": "$.city", "code": "WRONG_TYPE"}],
)
NAMES = sorted(
    {*events.ToolExecutionStart.model_fields}
    | {*events.ToolCallDecision.model_fields}
    | {*events.ToolExecutionEnd.model_fields}
    | {*events.Gap.model_fields}
)
ALIASES = {name: to_camel(name) for name in NAMES}

TYPES = "toolExecutionStart, toolExecutionEnd, toolCallDecision, toolDefinitions or gap"

# Values that are valid for some members and invalid for others, at and over the bounds.
VALUES: list[Any] = [
    None, True, False, 0, 1, -1, 1.0, 1.5, -0.5, 4, "4", "", "x", "x" * 128, "x" * 129, "x" * 256,
    "x" * 257, "\U0001f600" * 128, "\x00", [], {}, [1], {"a": 1}, 2**31, 2**63 - 1, 2**63, 2**64,
    10**30, 1e13, 1.1e13, -(2**63), "toolExecutionStart", "toolExecutionEnd", "gap",
    "toolCallDecision", "denied", "overBudget", {"kind": "person"},
    {"kind": "policy", "id": "p", "name": "n"},
    {"kind": "guardrail", "id": ""}, {"kind": "robot"}, {"kind": "person", "name": 1, "x": 2},
    [{"path": "$", "code": "COERCED"}], [{"path": "$", "code": "OTHER"}], [{"path": "$"}],
    [{"path": "$", "code": "COERCED"}] * 1001,
    "2026-11-20T10:15:00Z", "2026-11-20t10:15:00z", "2026-11-20 10:15:00+02:00",
    "2026-11-20T10:15:00.1234567891Z", "2026-11-20T10:15:00", "2026-11-20", "2026-11-20T10:15Z",
    "2026-11-20T10:15:60Z", "2026-11-20T24:00:00Z", "2026-02-30T10:15:00Z", "20261120T101500Z",
    "2026-11-20T10:15:00+0200", "2026-11-20T10:15:00+99:00", "2026-11-20T10:15:00.1234567890123Z",
    "2026-W47-5T10:15:00Z", "0001-01-01T00:00:00+14:00", 1763633700, "1763633700",
    "5aa31da6-9278-4da0-9f1a-61b8d3edc5cc", "5AA31DA692784DA09F1A61B8D3EDC5CC",
    "{5aa31da6-9278-4da0-9f1a-61b8d3edc5cc}", "urn:uuid:5aa31da6-9278-4da0-9f1a-61b8d3edc5cc",
    "5aa31da69278-4da0-9f1a-61b8d3edc5cc", "5aa31da6-9278-4da0-9f1a-61b8d3edc5c",
    {"strategy": "throw", "outcome": "passed"}, {"strategy": "throw", "outcome": "nope"},
    {"strategy": "x" * 33, "outcome": "passed"}, {"strategy": 1, "outcome": "passed"},
    {"strategy": "s", "outcome": "failed", "violations": [{"path": "$", "code": "COERCED"}]},
    {"strategy": "s", "outcome": "failed", "violations": [{"path": "$", "code": "OTHER"}]},
    {"strategy": "s", "outcome": "failed", "violations": [{"path": "$", "code": "COERCED",
        "severity": "warning", "receivedValue": {"x": 1}, "llmMessage": "m", "other": 1}]},
    {"strategy": "s", "outcome": "failed", "violations": [{"path": 1, "code": "COERCED"}]},
    {"strategy": "s", "outcome": "failed", "violations": [{"path": "$", "code": "COERCED",
        "llm_message": None}]},
    {"strategy": "s", "outcome": "failed", "violations": [{"path": "$", "code": "COERCED"}] * 1001},
    {"status": "ok", "data": [1], "meta": {"cache_hit": True, "token_usage": {"prompt": 1}}},
    {"status": "error", "error": {"type": "FATAL", "message": "m", "attempt": 2}},
    {"status": 5, "error": [], "meta": 7}, {"meta": {"token_usage": {"prompt": "x"}}},
    "CallToolResult", {"content": [], "isError": True}, {"content": 1, "structuredContent": [1]},
]  # fmt: skip  # one case a line


def contract(line: bytes) -> events.Event | None:
    """The contract's verdict on a line, with its bytes repaired as `decode_line` documents."""
    repaired = decode._LONG_NUMBER.sub(rb"\1", decode._ESCAPE.sub(decode._replacement, line))
    try:
        return EVENT.validate_json(repaired)
    except ValidationError:
        return None


def decoded(line: bytes) -> wire.WireEvent | None:
    try:
        event = decode_line(line, Instants())
    except RefusedLineError:
        return None
    assert not isinstance(event, Sighting)  # it has tests of its own
    return event


def check(line: bytes) -> None:
    expected, got = contract(line), decoded(line)
    assert (expected is None) == (got is None), line
    if expected is None or got is None:
        return
    assert got.__struct_config__.tag == expected.type
    for name in expected.__class__.model_fields:
        # Payloads, what is compared below, and what is only shown.
        if name in ("type", "args", "output", "guard", "by", "violations", "mcp"):
            continue
        value, actual = getattr(expected, name), getattr(got, name)
        if isinstance(value, datetime):
            since = value - datetime(1970, 1, 1, tzinfo=UTC)
            value = (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds
            actual = Instants().read(actual)
        if name == "trace_id" and value is None:
            value = getattr(expected, "turn_id")  # noqa: B009  # not every type has it
        assert actual == value, (name, line)
    if isinstance(expected, events.ToolExecutionEnd) and isinstance(got, wire.EndEvent):
        check_guard(expected.guard, got.guard)
    if isinstance(expected, events.ToolCallDecision) and isinstance(got, wire.DecisionEvent):
        assert got.started_at == got.decided_at
        by = expected.by and (expected.by.kind, expected.by.id, expected.by.name)
        assert (got.by and (got.by.kind, got.by.id, got.by.name)) == by
        check_violations(expected.violations, got.violations)


def check_guard(expected: events.GuardReport | None, got: wire.GuardReport | None) -> None:
    if expected is None or got is None:
        assert expected is None
        assert got is None
        return
    assert (got.strategy, got.outcome) == (expected.strategy, expected.outcome)
    check_violations(expected.violations, got.violations)


def check_violations(expected: list[Violation], got: list[wire.Violation]) -> None:
    members = ("path", "code", "severity", "expected", "received")
    assert [[getattr(each, name) for name in members] for each in got] == [
        [getattr(each, name) for name in members] for each in expected
    ]


@pytest.mark.slow
@pytest.mark.parametrize("event", [START, END, DECISION, GAP], ids=lambda event: event["type"])
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.generated(60, kind="name")
def test_every_member_accepts_and_rejects_the_same_values_as_the_contract(
    event: dict[str, Any], name: str
) -> None:
    for value in VALUES:
        for key in {name, ALIASES[name]}:
            others = {k: v for k, v in event.items() if k != name}
            check(json.dumps(others | {key: value}).encode())
            check(json.dumps(event | {key: value}).encode())  # both names, if key is an alias
            check(json.dumps({key: value} | event).encode())
    check(json.dumps({k: v for k, v in event.items() if k != name}).encode())


@pytest.mark.parametrize("event", [START, END, DECISION, GAP], ids=lambda event: event["type"])
def test_camel_case_event_decodes_like_the_contract(event: dict[str, Any]) -> None:
    check(json.dumps({ALIASES.get(name, name): value for name, value in event.items()}).encode())


@pytest.mark.parametrize(
    "members",
    [
        {"trace_id": None},
        {"trace_id": None, "turn_id": "turn-1"},
        {"run_id": "a", "ingestion_run_id": "b"},
        {"run_id": "a", "ingestionRunId": "b"},
        {"ingestion_run_id": "b"},
        {"unknown": {"deep": [1, 2]}},
        {"tool_version": 3},
        {"tool_version": True},
        {"tool_version": 3.0},
        {"tool_version": 10**30},
    ],
)
def test_rules_between_members_match_the_contract(members: dict[str, Any]) -> None:
    for event in (START, END):
        check(json.dumps(event | members).encode())


TEXT = json.dumps(START).encode()


@pytest.mark.parametrize(
    "line",
    [
        b"", b" ", b"null", b"[]", b'"x"', b"{}", b"{", b"}", TEXT + b"x", TEXT + TEXT, b"x" + TEXT,
        TEXT[:-1], TEXT[:-1] + b",}", TEXT[:-1] + b',"a":1,}', b" " + TEXT + b" \r", b"\x0b" + TEXT,
        "\ufeff".encode() + TEXT, TEXT.replace(b"London", b"\xff"), TEXT.decode().encode("utf-16"),
        TEXT.replace(b"London", b"\xed\xa0\x80"), TEXT.replace(b"London", b"\xc0\x80"),
        TEXT.replace(b"London", b"\t"), TEXT.replace(b"London", b"\\x"),
        TEXT.replace(b"London", b"\\u12"), TEXT.replace(b"London", b"\\ud83d\\ude00"),
        TEXT.replace(b"London", b"\\ud83d"), TEXT.replace(b"London", b"\\ude00\\ud83d"),
        TEXT.replace(b"London", b"\\u0000"), TEXT.replace(b"London", b"\\\\ud800"),
        TEXT.replace(b'"London"', b"NaN"), TEXT.replace(b'"London"', b"-Infinity"),
        TEXT.replace(b'"London"', b"01"), TEXT.replace(b'"London"', b"1."),
        TEXT.replace(b'"London"', b"1e999"), TEXT.replace(b'"London"', b"1" * 9999),
        TEXT.replace(b'"London"', b"-"), TEXT.replace(b'"London"', b"nul"),
        TEXT.replace(b'"London"', b"'x'"), TEXT.replace(b'"London"', b"[1,]"),
        TEXT.replace(b"get_weather", b"\\u0000"), TEXT.replace(b"get_weather", b"\\ud800"),
        TEXT.replace(b"get_weather", b"1" * 5000),
        TEXT.replace(b'"tool_name"', b'"tool\\u005fname"'),
        TEXT[:-1] + b',"tool_name":5}', TEXT[:-1] + b',"tool_name":"b"}',
        b'{"tool_name":5,' + TEXT[1:], b'{"type":"gap",' + TEXT[1:],
        TEXT[:-1] + b',"type":"toolExecutionEnd"}', TEXT[:-1] + b',"args":1}',
        TEXT[:-1] + b',"toolName":"b"}', TEXT[:-1] + b',"toolName":null}',
        TEXT[:-1] + b',"auth":null}',
    ],
)  # fmt: skip  # one case a line
def test_syntax_errors_match_the_contract(line: bytes) -> None:
    check(line)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3)
    ),
    max_leaves=8,
)


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(
    event=st.sampled_from([START, END, GAP]),
    members=st.dictionaries(
        st.sampled_from([*NAMES, *ALIASES.values()]), st.sampled_from(VALUES) | JSON, max_size=4
    ),
    cut=st.one_of(st.none(), st.integers(0, 900)),
    junk=st.binary(max_size=3),
)
def test_arbitrary_lines_decode_like_the_contract(
    event: dict[str, Any], members: dict[str, Any], cut: int | None, junk: bytes
) -> None:
    line = json.dumps(event | members).encode()
    if cut is not None:
        line = line[:cut] + junk + line[cut:]
    check(line.replace(b"\n", b" "))


@pytest.mark.slow
@settings(max_examples=200, deadline=None)
@given(output=JSON)
def test_no_output_value_rejects_an_event(output: Any) -> None:
    got = decoded(json.dumps(END | {"output": output}).encode())
    assert isinstance(got, wire.EndEvent)


def output_of(output: Any) -> wire.Envelope | None:
    got = decoded(json.dumps(END | {"output": output}).encode())
    assert isinstance(got, wire.EndEvent)
    return got.output


def test_envelope_members_are_decoded_independently() -> None:
    good: dict[str, Any] = {"type": "FATAL", "message": "m", "attempt": 2}
    right = output_of({"status": "error", "error": good, "meta": {"cache_hit": True}})
    assert right == wire.Envelope(
        "error", wire.EnvelopeError(**good), wire.EnvelopeMeta(cache_hit=True)
    )
    meta = {"cache_hit": 1, "attempt": 2}
    mixed = output_of({"status": "error", "error": good | {"code": 5}, "meta": meta})
    assert mixed == wire.Envelope("error", wire.EnvelopeError(**good), wire.EnvelopeMeta(attempt=2))
    assert output_of({"status": 5, "meta": "x"}) == wire.Envelope()
    assert output_of([1]) is output_of("x") is output_of(None) is None


@pytest.mark.parametrize("depth", [1, 30, 64, 65, 66, 1000])
@pytest.mark.parametrize("around", [b"[%b]", b'{"a":%b}', b'[[],{"]":"[\\""},%b,[]]'])
def test_nesting_depth_is_counted_exactly(depth: int, around: bytes) -> None:
    text = b"0"
    for _ in range(depth - 1):  # the brackets of `around` are the innermost level
        text = around.replace(b"%b", text)
    text = b"[" + text + b"]"
    inner = 1 if around.startswith(b"[[]") and depth > 1 else 0
    assert decode.is_too_deep(text) is (depth + inner > MAX_DEPTH)


def test_too_deep_json_is_distinguished_from_invalid_json() -> None:
    for depth in (64, 250, 5000, 200_000):
        line = TEXT.replace(b'"London"', b"[" * depth + b"]" * depth)
        with pytest.raises(TooDeepError):
            decode_line(line, Instants())


@pytest.mark.parametrize(
    ("raw", "kept", "had_auth"),
    [
        (b'{"a":1}', b'{"a":1}', False),
        (b'{"auth":null}', b'{"auth":null}', False),
        (b'{"auth" : {"x":[1]} , "b":2}', b'{"auth" : null , "b":2}', True),
        (b'{"\\u0061uth":1,"auth":"y"}', b'{"\\u0061uth":null,"auth":null}', True),
        (b'{"args":{"auth":1}}', b'{"args":{"auth":1}}', False),
        (b'{"x":"\xff","auth":1e9}', b'{"x":"\xff","auth":null}', True),
        (b'{"x":1,"auth":"secr', b'{"x":1,', False),
        (b'["auth"]', b"[", False),
    ],
)
def test_auth_value_is_removed(raw: bytes, kept: bytes, had_auth: bool) -> None:
    assert without_auth(raw) == (kept, had_auth)


@pytest.mark.parametrize("name", ["tool_name", "toolName"])
def test_rejection_names_members_like_the_contract(name: str) -> None:
    line = json.dumps({"type": "toolExecutionStart", name: "x", "args": {}, "turn_id": "t"})
    with pytest.raises(RefusedLineError) as refused:
        decode_line(line.encode(), Instants())
    assert refused.value.message == "call_id: Field required; started_at: Field required"


CANARY = "canary7391"
SECRETS: list[Any] = [
    CANARY,
    CANARY * 30,
    f"{CANARY}\x00",
    {CANARY: CANARY},
    [{CANARY: [CANARY]}],
    {"strategy": CANARY, "outcome": CANARY, "violations": [{"path": CANARY, "code": CANARY}]},
    {"status": CANARY, "error": {CANARY: CANARY}, "meta": {CANARY: CANARY}},
]


@pytest.mark.parametrize("base", [START, END, DECISION, GAP], ids=lambda base: base["type"])
def test_rejection_quotes_no_value(base: dict[str, Any]) -> None:
    """Viewers and keys without payloads can read it (docs/adr/0011)."""
    refusals = 0
    for name in NAMES:
        for value in SECRETS:
            line = json.dumps({**base, name: value}).encode()
            try:
                decode_line(line, Instants())
            except RefusedLineError as refused:
                refusals += 1
                assert CANARY not in refused.message
                marks = judge(line, uuid.uuid4(), datetime.now(UTC)).marks
                assert not any(
                    CANARY in mark.note for of_member in marks.values() for mark in of_member
                )
    assert refusals > 20


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (b"{}", f"`type` is missing; expected {TYPES}"),
        (b'{"type":1}', f"`type` is unknown; expected {TYPES}"),
        (
            json.dumps({**START, "event_id": "x"}).encode(),
            "event_id: not a UUID",
        ),
    ],
)
def test_rejection_message_is_plain(line: bytes, expected: str) -> None:
    with pytest.raises(RefusedLineError) as refused:
        decode_line(line, Instants())
    assert refused.value.message == expected
