"""Digests of rows: an action names the rows that it changed, so that the ledger proves them.

A model whose rows are proved names the proved columns in `in_ledger`, and in `ledger_id` the
columns that name a row within its tenant, unless that is `id`. Columns that later releases added
are in `in_ledger_later`, with their defaults: one group, or a tuple with one for each release. A
row in which all of a group have their default has the digest that it had before that release. After
a change, the action records `table/id` of the row and the SHA-256 of these columns as stored, or
None if the row is gone. The actions are entries of the ledger, so a row that was changed without an
action differs from what the entries say (`audit.ledger.rows`).

Digests are always made from what the database returns: what was sent to it may be stored
otherwise (an instant without its nanoseconds, a document with its members in another order).
"""

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, date, datetime
from functools import reduce
from operator import or_
from typing import Any
from uuid import UUID

from django.apps import apps
from django.db import DEFAULT_DB_ALIAS, models
from psycopg.types.multirange import Multirange
from psycopg.types.range import Range

type RowDigests = dict[str, str | None]
"""Digests by `table/id`; None: there is no such row."""


def proved_models() -> list[type[models.Model]]:
    """The models whose rows are proved, ordered by table."""
    proved = [model for model in apps.get_models() if hasattr(model, "in_ledger")]
    return sorted(proved, key=lambda model: model._meta.db_table)


def digests_of(
    tenant_id: UUID, rows: Iterable[models.Model], *, using: str = DEFAULT_DB_ALIAS
) -> RowDigests:
    """The digests of a tenant's rows as stored now. One query for each model; needs the scope.

    Of `rows` only model and id are used.
    """
    ids: dict[type[models.Model], list[tuple[Any, ...]]] = {}
    for row in rows:
        model = type(row)
        ids.setdefault(model, []).append(tuple(getattr(row, name) for name in ledger_id(model)))
    digests: RowDigests = {}
    for model, wanted in ids.items():
        digests |= {row_name(model, each): None for each in wanted}
        digests |= _digests(
            model, _stored(tenant_id, model, using).filter(_is_one_of(model, wanted))
        )
    return digests


def stored_digests(
    tenant_id: UUID, model: type[models.Model], *, using: str = DEFAULT_DB_ALIAS
) -> Iterator[tuple[str, str]]:
    """Name and digest of each of the tenant's rows of a model. One query; needs the scope."""
    yield from _digests(model, _stored(tenant_id, model, using).iterator()).items()


def row_name(model: type[models.Model], row_id: Sequence[Any]) -> str:
    """The name of a row in the ledger, such as `api_key/0198c…`.

    An id of several columns is a JSON array, so that they cannot be mixed up.
    """
    (first, *others) = row_id
    return f"{model._meta.db_table}/{_json(row_id) if others else first}"


def ledger_id(model: type[models.Model]) -> tuple[str, ...]:
    """The columns that name a row within its tenant."""
    named: str | tuple[str, ...] = getattr(model, "ledger_id", "id")
    return (named,) if isinstance(named, str) else named


def _stored(tenant_id: UUID, model: type[models.Model], using: str) -> models.QuerySet[Any, Any]:
    """The columns of the id and the proved columns of the tenant's rows."""
    columns: Sequence[str] = model.in_ledger  # type: ignore[attr-defined]  # see `proved_models`
    tenant = "id" if model._meta.db_table == "tenant" else "tenant_id"
    rows = model._base_manager.using(using).filter(**{tenant: tenant_id})
    return rows.values_list(*ledger_id(model), *columns)


def _digests(model: type[models.Model], stored: Iterable[Sequence[Any]]) -> dict[str, str]:
    width = len(ledger_id(model))
    later: dict[str, Any] | tuple[dict[str, Any], ...] = getattr(model, "in_ledger_later", {})
    groups = [list(group.values()) for group in (later if isinstance(later, tuple) else (later,))]
    return {
        row_name(model, row[:width]): hashlib.sha256(
            _json(_as_before(row[width:], groups)).encode()
        ).hexdigest()
        for row in stored
    }


def _as_before(values: Sequence[Any], groups: list[list[Any]]) -> Sequence[Any]:
    """The values without the newest groups of later columns, as far as these are the defaults."""
    for later in reversed(groups):
        earlier = len(values) - len(later)
        if list(values[earlier:]) != later:
            break
        values = values[:earlier]
    return values


def _is_one_of(model: type[models.Model], ids: Sequence[tuple[Any, ...]]) -> models.Q:
    names = ledger_id(model)
    if len(names) == 1:
        return models.Q(**{f"{names[0]}__in": [each for (each,) in ids]})
    return reduce(or_, (models.Q(**dict(zip(names, each, strict=True))) for each in ids))


def _json(values: Sequence[Any]) -> str:
    return json.dumps(values, ensure_ascii=True, separators=(",", ":"), default=_plain)


def _plain(value: Any) -> Any:
    match value:
        case Multirange():
            return list(value)
        case Range():
            return [value.lower, value.upper, value.bounds]
        case datetime():
            return value.astimezone(UTC).isoformat()
        case date() | UUID():
            return str(value)
        case bytes() | memoryview():
            return bytes(value).hex()
        case _:
            raise TypeError(f"no digest of {type(value).__name__}")
