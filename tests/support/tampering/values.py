"""Other values for columns of any type, and copies of rows: what an attacker writes by SQL."""

import random
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from psycopg import errors

from tests.support.tampering.record import NothingChangedError, Power, Record

_IMPOSSIBLE = (
    errors.CheckViolation,
    errors.UniqueViolation,
    errors.ForeignKeyViolation,
    errors.NotNullViolation,
    errors.StringDataRightTruncation,
)
"""What a constraint forbids: the attacker takes another value."""

_OTHER = {
    "text": "%(word)s",
    "character varying": "%(word)s",
    "integer": "coalesce({0}, 0) + %(number)s",
    "bigint": "coalesce({0}, 0) + %(number)s",
    "numeric": "coalesce({0}, 0) + %(number)s",
    "double precision": "coalesce({0}, 0) + %(number)s",
    "boolean": "NOT coalesce({0}, false)",
    "uuid": "gen_random_uuid()",
    "date": "coalesce({0}, current_date) + 1",
    "bytea": "sha256(%(word)s::bytea)",
    "jsonb": """coalesce({0}, '{{}}') || jsonb_build_object(%(word)s::text, 1)""",
    "timestamp with time zone": "coalesce({0}, now()) + %(number)s * interval '1 millisecond'",
    "text[]": "array_append({0}, %(word)s::text)",
    "character varying[]": "array_append({0}, %(word)s::varchar)",
    "bigint[]": "array_append({0}, %(number)s::bigint)",
    "uuid[]": "array_append({0}, gen_random_uuid())",
    "tstzmultirange": "'{{[2020-01-01,2020-01-02)}}'",
}
"""By type: an expression that differs from `{0}`, the column."""
_PEOPLE = {"user_id", "created_by_id", "resolved_by_id"}
"""Columns that must name an account."""
_NULL = 0.2
"""How often a column is emptied instead."""


def types_of(record: Record, table: str) -> dict[str, str]:
    """The type of each column."""
    rows = record.run(
        "SELECT attname, format_type(atttypid, NULL) FROM pg_attribute"
        " WHERE attrelid = %(table)s::regclass AND attnum > 0 AND NOT attisdropped",
        table=table,
    )
    return dict(rows)


def change_row(
    record: Record,
    rng: random.Random,
    table: str,
    columns: Collection[str],
    power: Power,
    *,
    where: str = "true",
    documents: Collection[str] = (),
    empties: bool = True,
) -> None:
    """Give one column of one row another value, now and then none if `empties`.

    `documents` are columns of JSON as text.
    """
    types = types_of(record, table)
    choices = [(row, column) for row in _rows(record, table, where) for column in sorted(columns)]
    rng.shuffle(choices)
    for row, column in choices:
        name = f'"{column}"'  # it may be a reserved word
        value = _OTHER[types[column]].format(name)
        if column in documents:
            value = "jsonb_build_object('forged', %(word)s::text)::text"
        if column in _PEOPLE:
            value = f"(SELECT max(id) FROM app_user u WHERE u.id IS DISTINCT FROM {table}.{name})"
        for other in ["NULL", value] if empties and rng.random() < _NULL else [value]:
            try:
                record.change(
                    f"UPDATE {table} SET {name} = {other} WHERE {_THIS}"
                    f" AND {name} IS DISTINCT FROM {other}",
                    power,
                    **row,
                    **_drawn(rng),
                )
            except (*_IMPOSSIBLE, NothingChangedError):
                continue
            record.explain(f"{table}.{column} was given {other}")
            return
    raise NothingChangedError(f"no row of {table} can be changed")


_DEPENDENT = {"audit_sample": ("audit_sample_call", "audit_sample_part")}
"""Tables whose rows are deleted with those of a table."""


def delete_row(
    record: Record, rng: random.Random, table: str, power: Power, *, where: str = "true"
) -> None:
    """Delete one row."""
    row = rng.choice(_rows(record, table, where))
    record.touch(*_DEPENDENT.get(table, ()))
    with record.without_triggers(power):
        record.change(f"DELETE FROM {table} WHERE {_THIS}", power, **row)


def insert_row(
    record: Record,
    rng: random.Random,
    table: str,
    others: Mapping[str, str],
    power: Power,
    *,
    where: str = "true",
) -> None:
    """Insert a copy of a row. `others` are expressions for the columns that must differ."""
    columns = list(types_of(record, table))
    values = [others.get(column, column) for column in columns]
    row = rng.choice(_rows(record, table, where))
    record.change(
        f"INSERT INTO {table} ({', '.join(columns)}) SELECT {', '.join(values)}"
        f" FROM {table} WHERE {_THIS}",
        power,
        **row,
        **_drawn(rng),
        people=record.people,
    )


def _drawn(rng: random.Random) -> dict[str, Any]:
    return {"word": f"x{rng.randrange(16**6):06x}", "number": rng.randrange(100, 1_000)}


_THIS = "tableoid = %(relation)s AND ctid = %(place)s"


def _rows(record: Record, table: str, where: str) -> Sequence[dict[str, Any]]:
    """Where the tenant's rows are."""
    tenant = {"tenant": "id = %(tenant)s", "app_user": "id = ANY(%(people)s)"}.get(
        table, "tenant_id = %(tenant)s"
    )
    rows = record.run(
        f"SELECT tableoid, ctid::text FROM {table} WHERE {tenant} AND ({where})"
        " ORDER BY tableoid, ctid",
        people=record.people,
    )
    if not rows:
        raise AssertionError(f"the record has no row of {table} where {where}")
    return [{"relation": relation, "place": place} for relation, place in rows]
