"""One stored event validated against two contracts, and why some events are not validated."""

import json
from datetime import date
from typing import Any
from uuid import UUID

import pytest
from tooltrail.guard import validate
from tooltrail.guard.explain import examine
from tooltrail.guard.violations import MORE
from tooltrail.guard.work import EXPLAINED_STEPS
from tooltrail.redact_text import MARK

from audit.events.judgement import PASSED, Judge, Kind, UnusableSchemaError, Verdict
from audit.work.replay.tally import KINDS_MAX, SAMPLES_MAX, Tally

LOOSE: dict[str, Any] = {"type": "object", "properties": {"n": {"type": "integer"}}}
STRICT: dict[str, Any] = LOOSE | {"required": ["n"], "additionalProperties": False}
DAY = date(2026, 11, 20)
CALL = UUID(int=1)


def end(output: Any = None, **members: Any) -> bytes:
    return json.dumps({"type": "toolExecutionEnd", "output": output, **members}).encode()


def ok(data: Any, **members: Any) -> bytes:
    return end({"status": "ok", "data": data, "meta": {}}, **members)


def guarded(received: Any, *violations: tuple[str, str], **members: Any) -> bytes:
    as_dicts = [{"path": path, "code": code} for path, code in violations]
    guard = {"strategy": "throw", "outcome": "failed", "violations": as_dicts, **members}
    error = {"status": "error", "error": {"type": "FATAL", "message": "no"}, "meta": {}}
    return end(error, guard=guard | {"received": received})


def judge(now: Any, then: Any, raw: bytes | None) -> Any:
    return Judge("output", now, then).judge(raw)


def kinds(*pairs: tuple[str, str]) -> frozenset[Kind]:
    return frozenset(Kind(*each) for each in pairs)


@pytest.mark.parametrize(
    ("now", "then", "raw", "expected"),
    [
        (LOOSE, STRICT, ok({"n": 1}), PASSED),
        (None, None, ok("anything"), PASSED),
        (
            LOOSE,
            STRICT,
            ok({"m": 1}),
            Verdict(
                kinds(),
                kinds(("$.m", "UNKNOWN_FIELD"), ("$.n", "MISSING_REQUIRED")),
                kinds(),
                kinds(),
            ),
        ),
        (
            STRICT,
            LOOSE,
            ok({}),
            Verdict(kinds(("$.n", "MISSING_REQUIRED")), kinds(), kinds(), kinds()),
        ),
        (
            LOOSE,
            {"type": "array", "items": {"type": "string"}},
            ok([1, "a", 2]),
            Verdict(kinds(("$", "WRONG_TYPE")), kinds(("$[*]", "WRONG_TYPE")), kinds(), kinds()),
        ),
        (
            STRICT,
            LOOSE,
            guarded({}, ("$.n", "MISSING_REQUIRED")),
            Verdict(
                kinds(("$.n", "MISSING_REQUIRED")),
                kinds(),
                kinds(("$.n", "MISSING_REQUIRED")),
                kinds(("$.n", "MISSING_REQUIRED")),
            ),
        ),
        (
            LOOSE,
            STRICT,
            guarded({"n": "x"}, ("$.n", "WRONG_TYPE"), ("$.gone", "UNKNOWN_FIELD")),
            Verdict(
                kinds(("$.n", "WRONG_TYPE")),
                kinds(("$.n", "WRONG_TYPE")),
                kinds(("$.n", "WRONG_TYPE"), ("$.gone", "UNKNOWN_FIELD")),
                kinds(("$.gone", "UNKNOWN_FIELD")),
            ),
        ),
    ],
)
def test_both_contracts_report_their_violations(
    now: Any, then: Any, raw: bytes, expected: Verdict
) -> None:
    assert judge(now, then, raw) == expected


@pytest.mark.parametrize(
    ("raw", "why"),
    [
        (None, "erased"),
        (end(), "nothing"),
        (end({"status": "error", "error": {"type": "FATAL", "message": ""}}), "nothing"),
        (ok(MARK), "incomplete"),
        (
            ok("{…", removed=[{"path": "$.output.data", "reason": "too long: 9 bytes"}]),
            "incomplete",
        ),
        (ok(None, removed=[{"path": "$.output.data", "reason": "not captured"}]), "incomplete"),
        (ok({"n": 1}, guard={"strategy": "fallback", "outcome": "fallback"}), "replaced"),
    ],
)
def test_unknown_output_is_skipped_with_a_reason(raw: bytes | None, why: str) -> None:
    assert judge(LOOSE, STRICT, raw) == why


@pytest.mark.parametrize(
    ("raw", "why"),
    [
        (None, "erased"),
        (b'{"args": null, "otlp": {}}', "nothing"),
        (b'{"args": null}', Verdict(kinds(), kinds(("$", "WRONG_TYPE")), kinds(), kinds())),
        (b'{"args": {"n": 1}}', PASSED),
        (
            json.dumps({"args": None, "removed": [{"path": "$.args", "reason": "shape only"}]}),
            "incomplete",
        ),
    ],
)
def test_arguments_are_judged_like_outputs(raw: bytes | str | None, why: Any) -> None:
    event = raw.encode() if isinstance(raw, str) else raw
    assert Judge("args", None, STRICT).judge(event) == why


def test_output_without_an_envelope_is_judged_directly() -> None:
    assert judge(LOOSE, STRICT, end({"n": 1})) == PASSED
    assert judge(LOOSE, STRICT, end([1])) != PASSED


def test_redacted_values_are_not_violations() -> None:
    assert judge(LOOSE, STRICT, ok({"n": MARK})) == PASSED
    listed = {"type": "array", "items": {"type": "integer"}}
    assert judge(None, listed, ok([1, MARK])) == PASSED
    assert judge(None, listed, ok([MARK, "x"])).then == kinds(("$[*]", "WRONG_TYPE"))


def test_members_stripped_by_the_guard_are_not_unknown_fields() -> None:
    stripped = {"strategy": "strip-extra", "outcome": "stripped"}
    warning = {"path": "$.m", "code": "UNKNOWN_FIELD", "severity": "warning"}
    guard = stripped | {"violations": [warning], "received": {"n": 1, "m": 2}}
    assert judge(LOOSE, STRICT, end(guard=guard)) == PASSED


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"[]",
        b"{",
        b'{"output": {"status": "ok", "data": {"n": 1e999}}}',
        b'{"output": {"status": "ok", "data": "\\ud800"}, "guard": 7, "removed": {"a": 1}}',
        b'{"output": {"status": 1}, "guard": {"outcome": [], "violations": [3, {}]}}',
        b'{"output": ' + b"[" * 60 + b"]" * 60 + b"}",
        b'{"output": {"status": "ok", "data": 123456789012345678901234567890}}',
    ],
)
def test_arbitrary_bytes_are_judged_or_skipped(raw: bytes) -> None:
    for side in ("output", "args"):
        verdict = Judge(side, LOOSE, STRICT).judge(raw)
        assert isinstance(verdict, Verdict | str)


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"$ref": "https://example.com/x.json"}, "remote references are not followed"),
        ({"$ref": "#"}, "without end"),
        ({"type": "string", "pattern": "(?=a)b"}, "linear time"),
        ({"type": "string", "pattern": "(a{1000}){1000}"}, "too large"),
        ({"type": "strnig"}, "malformed schema at #/type"),
        ({"enum": [str(n) for n in range(200_000)]}, "more than 25000 values"),
    ],
)
def test_unusable_schema_is_rejected_with_one_line(schema: dict[str, Any], expected: str) -> None:
    with pytest.raises(UnusableSchemaError, match="The draft's output schema") as refused:
        Judge("output", None, schema)
    assert expected in str(refused.value)
    assert "\n" not in str(refused.value)


def test_catastrophic_pattern_terminates() -> None:
    # A backtracking engine would never finish.
    schema = {"type": "string", "pattern": "^(a+)+$"}
    verdict = judge(None, schema, ok("a" * 200_000 + "!"))
    assert verdict.then == kinds(("$", "PATTERN_MISMATCH"))


@pytest.mark.slow
def test_costly_validation_is_skipped_and_not_counted_as_violation() -> None:
    """Every branch reads every member, and no value violates the schema."""
    branches = [
        {"not": {"required": [f"no{n}", *(f"k{m}" for m in range(40))]}} for n in range(400)
    ]
    costly = {"items": {"allOf": branches, "unevaluatedProperties": True}}
    value = [{f"k{m}": 1 for m in range(60)}] * 1_000
    assert judge(LOOSE, costly, ok(value)) == "costly"
    assert judge(costly, costly, ok(value[:2])) == PASSED


def test_recursive_schema_takes_polynomial_time() -> None:
    twice = {"anyOf": [{"type": "array", "items": {"$ref": "#"}}] * 2}
    deep: Any = "leaf"
    for _ in range(50):
        deep = [deep]
    assert judge(None, twice, ok(deep)).then


def test_explanations_of_one_value_share_the_work_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    required = [{"type": "object", "required": [f"r{n}"]} for n in range(300)]
    schemas = [{"items": {"anyOf": required[n:]}} for n in range(2)]
    raw, spent = ok([{}] * 2_000), list[int]()

    def counted(*args: Any, **options: Any) -> Any:
        result = examine(*args, **options)
        spent.append(result[2])
        return result

    monkeypatch.setattr("tooltrail.guard.jsonschema.examine", counted)
    verdict = judge(schemas[0], schemas[1], raw)
    assert kinds(("$", MORE.code)) <= verdict.then
    assert len(spent) == 2
    assert sum(spent) < 1.01 * EXPLAINED_STEPS
    shown = Judge("output", schemas[0], schemas[1]).explain(raw, steps=5_000)
    assert shown[-1].message == MORE.message
    assert spent[2] < 6_000


def test_explanation_of_a_sample_uses_the_guard_messages() -> None:
    value = {"n": "x", "m": 1}
    shown = Judge("output", LOOSE, STRICT).explain(ok(value))
    assert [(each.path, each.code, each.message) for each in shown] == [
        (each.path, each.code, each.message) for each in validate(value, STRICT).violations
    ]
    assert Judge("output", STRICT, None).explain(ok(value)) == []


def test_tally_survives_serialization() -> None:
    tally = Tally()
    for n in range(9):
        verdict = Judge("output", LOOSE, STRICT).judge(ok({"n": "x", f"m\0{n}": 1}))
        tally.add("output", verdict, DAY, UUID(int=n))
    tally.add("args", "erased", DAY, CALL)
    text = tally.dump()
    assert "\0" not in text
    assert text.isascii()
    again = Tally.load(text)
    assert again.dump() == text
    again.add("output", judge(LOOSE, STRICT, ok({"n": "x"})), DAY, CALL)
    (wrong_type,) = [one for one in again.sides["output"].kinds if one.code == "WRONG_TYPE"]
    assert (wrong_type.still, again.sides["output"].still_violating) == (10, 10)
    assert again.sides["args"].skipped == {"erased": 1}


def test_tally_size_is_bounded() -> None:
    tally, judging = Tally(), Judge("output", LOOSE, STRICT)
    for n in range(KINDS_MAX + 50):
        name = f"member {n} " + "x" * 1000
        tally.add("output", judging.judge(ok({"n": 1, name: 1})), DAY, UUID(int=n))
    for n in range(20):
        tally.add("output", judging.judge(ok({})), DAY, UUID(int=n))
    side = tally.sides["output"]
    assert len(side.kinds) == KINDS_MAX
    assert side.further == 50 + 20
    assert side.newly_violating == side.judged == KINDS_MAX + 70
    assert len(tally.dump()) < 200_000
    few = Tally()
    for n in range(20):
        few.add("output", judging.judge(ok({})), DAY, UUID(int=n))
    (kind,) = few.sides["output"].kinds
    assert (kind.new, len(kind.samples["new"])) == (20, SAMPLES_MAX)
