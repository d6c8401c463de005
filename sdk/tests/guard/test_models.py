"""Python types as schemas (decision 8), and the recorded rows of Zod that have a counterpart."""

import dataclasses
import enum
from datetime import date
from typing import Annotated, Any, Literal, NotRequired, TypedDict

import pytest
from annotated_types import Gt, Len, Lt, MultipleOf
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, field_validator
from tooltrail.guard import ValidationError, detect_schema, enforce, is_model_schema, validate

from sdk.tests.support.vectors import cases, rows


class Unit(enum.StrEnum):
    CELSIUS = "celsius"
    FAHRENHEIT = "fahrenheit"


class Place(BaseModel):
    model_config = ConfigDict(extra="forbid")
    name: Annotated[str, Field(min_length=2, pattern="^[A-Z]")]
    since: date | None = None


class Cat(BaseModel):
    kind: Literal["cat"]
    lives: Annotated[int, Field(le=9)]


class Dog(BaseModel):
    kind: Literal["dog"]
    tags: list[str] = []


class Weather(BaseModel):
    model_config = ConfigDict(extra="forbid")
    temperature: float
    unit: Unit
    place: Place
    pets: list[Annotated[Cat | Dog, Field(discriminator="kind")]] = []
    code: int | str = 0
    next: "Weather | None" = None

    @field_validator("temperature")
    @classmethod
    def is_possible(cls, value: float) -> float:
        if value < -274:
            raise ValueError("colder than possible")
        return value


@dataclasses.dataclass
class Point:
    x: int
    y: int = 0


class Row(TypedDict):
    id: int
    name: NotRequired[str]


GOOD: dict[str, Any] = {"temperature": 21.5, "unit": "celsius", "place": {"name": "Bonn"}}


def paths_and_codes(value: Any, schema: Any) -> list[tuple[str, str]]:
    return [(each.path, each.code) for each in validate(value, schema).violations]


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        (Weather, GOOD),
        (Weather, GOOD | {"place": {"name": "Bonn", "since": "2026-01-31"}, "next": GOOD}),
        (Weather, Weather.model_validate(GOOD)),
        (Point, {"x": 1}),
        (Point, Point(1)),
        (Row, {"id": 1}),
        (TypeAdapter(list[Point]), [{"x": 1}, {"x": 2, "y": 3}]),
        (TypeAdapter(tuple[int, ...]), [1, 2]),
        (TypeAdapter(Unit), "celsius"),
    ],
)
def test_valid_data_is_returned_unchanged(schema: Any, value: Any) -> None:
    assert validate(value, schema).data is value
    assert enforce(value, schema).data is value


@pytest.mark.parametrize(
    ("schema", "value", "expected"),
    [
        (
            Weather,
            {"temperature": "21", "unit": "kelvin", "place": {"name": "b", "x": 1}, "y": 1},
            [
                ("$.temperature", "WRONG_TYPE"),
                ("$.unit", "ENUM_MISMATCH"),
                ("$.place.name", "CONSTRAINT_VIOLATION"),
                ("$.place.x", "UNKNOWN_FIELD"),
                ("$.y", "UNKNOWN_FIELD"),
            ],
        ),
        (
            Weather,
            {},
            [(f"$.{name}", "MISSING_REQUIRED") for name in ("temperature", "unit", "place")],
        ),
        (Weather, GOOD | {"place": {"name": "bonn"}}, [("$.place.name", "PATTERN_MISMATCH")]),
        (Weather, GOOD | {"temperature": -300.0}, [("$.temperature", "CONSTRAINT_VIOLATION")]),
        (Weather, GOOD | {"code": [1]}, [("$.code", "CONSTRAINT_VIOLATION")]),
        (
            Weather,
            GOOD | {"pets": [{"kind": "cow"}, {}]},
            [("$.pets[0]", "CONSTRAINT_VIOLATION"), ("$.pets[1]", "CONSTRAINT_VIOLATION")],
        ),
        (
            Weather,
            GOOD | {"pets": [{"kind": "cat", "lives": 10}, {"kind": "dog", "tags": ["a", 1]}]},
            [("$.pets[0].lives", "CONSTRAINT_VIOLATION"), ("$.pets[1].tags[1]", "WRONG_TYPE")],
        ),
        (
            Weather,
            GOOD | {"next": GOOD | {"next": {**GOOD, "unit": 1}}},
            [("$.next.next.unit", "ENUM_MISMATCH")],
        ),
        (Weather, "text", [("$", "WRONG_TYPE")]),
        (Point, {"x": "1", "z": 1}, [("$.x", "WRONG_TYPE")]),
        (Point, {}, [("$.x", "MISSING_REQUIRED")]),
        (Row, {"name": 5}, [("$.id", "MISSING_REQUIRED"), ("$.name", "WRONG_TYPE")]),
        (TypeAdapter(dict[str, list[int]]), {"a": [1, "2"]}, [("$.a[1]", "WRONG_TYPE")]),
        (TypeAdapter(list[int]), {1, 2}, [("$", "WRONG_TYPE")]),
        (TypeAdapter(int), True, [("$", "WRONG_TYPE")]),
    ],
)
def test_pydantic_errors_become_violations(schema: Any, value: Any, expected: Any) -> None:
    assert paths_and_codes(value, schema) == expected
    result = enforce(value, schema, tool_name="t")
    assert isinstance(result.error, ValidationError)


def test_violation_messages_use_guard_texts_where_available() -> None:
    bad = {"temperature": "21", "unit": 1, "place": {"name": "bonn", "x": 1}}
    assert [each.message for each in validate(bad, Weather).violations] == [
        "Expected type number, got string",
        "Input should be 'celsius' or 'fahrenheit'",
        "String does not match pattern ^[A-Z]",
        'Field "x" is not allowed by the schema',
    ]


def test_model_configuration_can_allow_lax_types() -> None:
    class Lax(BaseModel):
        model_config = ConfigDict(strict=False)
        n: int

    class Default(BaseModel):
        n: int

    assert validate({"n": "1"}, Lax).success
    assert paths_and_codes({"n": "1"}, Default) == [("$.n", "WRONG_TYPE")]


def test_coercion_and_stripping_follow_the_json_schema_of_a_model() -> None:
    class Loose(BaseModel):
        n: int
        maybe: float | None = None

    quiet: dict[str, Any] = {"on_coercion": lambda *_: None}
    coerced = enforce({"n": "1", "maybe": "2.5"}, Loose, quiet, on_invalid="coerce-and-warn")
    assert (coerced.outcome, coerced.data) == ("coerced", {"n": 1, "maybe": 2.5})
    stripped = enforce(
        {**GOOD, "raw": 1, "place": {"name": "Bonn", "x": 1}}, Weather, on_invalid="strip-extra"
    )
    assert (stripped.outcome, stripped.data) == ("stripped", GOOD)
    fallen = enforce(
        {"n": "x"}, Loose, field_strategies={"$.n": "fallback"}, field_fallbacks={"$.n": 0}, **quiet
    )
    assert (fallen.outcome, fallen.data) == ("fallback", {"n": 0})


def test_model_schemas_are_detected() -> None:
    for schema in (Weather, Point, Row, TypeAdapter(int)):
        assert is_model_schema(schema)
        assert detect_schema(schema).type == "model"
    for other in (int, Unit, Point(1), Weather.model_validate(GOOD), {"type": "string"}, None):
        assert not is_model_schema(other)


# Zod -----------------------------------------------------------------------------------------


class Measured(BaseModel):
    temperature: float
    unit: Literal["celsius", "fahrenheit"]
    description: str


class User(BaseModel):
    id: float
    name: str


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid")
    a: str


class LooseA(BaseModel):
    a: str


class Optional(BaseModel):
    a: str = ""
    b: str | None
    c: str = "d"


class Tags(BaseModel):
    tags: list[str]


class Outer(BaseModel):
    u: Tags


class A(BaseModel):
    k: Literal["a"]
    x: float


class B(BaseModel):
    k: Literal["b"]
    y: str


COUNTERPARTS: dict[str, Any] = {
    "z.string()": str,
    "z.number()": float,
    "z.number().int()": int,
    "z.boolean()": bool,
    "z.null()": None,
    'z.object({ temperature: z.number(), unit: z.enum(["celsius","fahrenheit"]), description: z.string() })': Measured,  # noqa: E501  # as recorded
    "z.object({ id: z.number(), name: z.string() })": User,
    "z.strictObject({ a: z.string() })": Strict,
    "z.looseObject({ a: z.string() })": LooseA,
    'z.object({ a: z.string().optional(), b: z.string().nullable(), c: z.string().default("d") })': Optional,  # noqa: E501  # as recorded
    "z.array(z.number()).min(2).max(3)": Annotated[list[float], Len(2, 3)],
    "z.string().min(2).max(4)": Annotated[str, Len(2, 4)],
    "z.string().regex(/^a+$/)": Annotated[str, Field(pattern="^a+$")],
    "z.number().gt(1).lt(5)": Annotated[float, Gt(1), Lt(5)],
    "z.number().multipleOf(2)": Annotated[float, MultipleOf(2)],
    'z.enum(["a","b"])': Literal["a", "b"],
    'z.literal("x")': Literal["x"],
    'z.literal([1, null, "z"])': Literal[1, None, "z"],
    "z.union([z.string(), z.number()])": str | float,
    'z.discriminatedUnion("k", [z.object({k: z.literal("a"), x: z.number()}), z.object({k: z.literal("b"), y: z.string()})])': Annotated[  # noqa: E501  # as recorded
        A | B, Field(discriminator="k")
    ],
    "z.record(z.string(), z.number())": dict[str, float],
    "z.object({ u: z.object({ tags: z.array(z.string()) }) })": Outer,
    "z.any()": Any,
}
# Recorded code and path → ours, all by decision 8.
DIFFERENT = {
    "zod-0014": "NaN is a float in Python",
    "zod-0065": "an unknown member is reported at its own path",
    "zod-0066": "an unknown member is reported at its own path",
    "zod-0068": "an unknown member is reported at its own path",
    "zod-0089": "a type mismatch ends the place",
    "zod-0098": "lengths are Python's there",
    "zod-0190": "a wrong discriminator is reported at the union",
    "zod-0191": "a wrong discriminator is reported at the union",
}
ZOD = "output_guard_zod.jsonl"


def zod_exempt(row: dict[str, Any]) -> str | None:
    if row["schema_source"] not in COUNTERPARTS:
        return "decision 8: no Python type says what this Zod schema says"
    if row["id"] in DIFFERENT:
        return "decision 8: Python types take Zod's place"
    if row.get("options", {}).get("onInvalid") in ("coerce-and-warn", "strip-extra"):
        return "decision 8: the strategies that repair work on Python types"
    return None


@cases(ZOD, exempt=zod_exempt)
def test_recorded_zod_rows_with_a_counterpart(row: dict[str, Any]) -> None:
    schema = TypeAdapter(COUNTERPARTS[row["schema_source"]])
    value, recorded = row.get("input", row.get("tool_output")), row["outcome"]
    strategy = row.get("options", {}).get("onInvalid", "throw")
    if strategy == "throw":
        violations = [
            *recorded.get("violations", ()),
            *recorded.get("throws", {}).get("violations", ()),
        ]
        assert paths_and_codes(value, schema) == [
            (each["path"], code_of(each)) for each in violations
        ]
        return
    returned = enforce(value, schema, on_invalid=strategy, fallback_value="FB").data
    if isinstance(returned, dict) and "__error" in returned:
        places = [each["path"] for each in returned["violations"]]
        assert places == [each["path"] for each in recorded["returns"]["violations"]]
    else:
        assert returned == recorded["returns"]


def code_of(violation: dict[str, Any]) -> str:
    is_missing = violation["message"].endswith("received undefined")
    return "MISSING_REQUIRED" if is_missing else str(violation["code"])


def test_tested_zod_rows_are_counted() -> None:
    """Of 166 rows; those without a counterpart and the others fall under decision 8."""
    assert [zod_exempt(row) for row in rows(ZOD)].count(None) == 79
