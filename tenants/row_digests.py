"""Digests of rows: an action names the rows that it changed, so that the ledger proves them.

A model whose rows are proved names the proved columns in `in_ledger`. After a change, the action
records `table/id` of the row and the SHA-256 of these columns as stored, or None if the row is
gone. The actions are entries of the ledger, so a row that was changed without an action differs
from what the entries say (`audit.ledger.rows`).

Digests are always made from what the database returns: what was sent to it may be stored
otherwise (an instant without its nanoseconds, a document with its members in another order).
"""

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, date, datetime
from typing import Any
from uuid import UUID

from django.apps import apps
from django.db import DEFAULT_DB_ALIAS, models

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
    ids: dict[type[models.Model], list[Any]] = {}
    for row in rows:
        ids.setdefault(type(row), []).append(getattr(row, _id_of(type(row))))
    digests: RowDigests = {}
    for model, wanted in ids.items():
        digests |= {row_name(model, each): None for each in wanted}
        found = _stored(tenant_id, model, using).filter(**{f"{_id_of(model)}__in": wanted})
        digests |= {row_name(model, each): _digest(values) for each, *values in found}
    return digests


def stored_digests(
    tenant_id: UUID, model: type[models.Model], *, using: str = DEFAULT_DB_ALIAS
) -> Iterator[tuple[str, str]]:
    """Name and digest of each of the tenant's rows of a model. One query; needs the scope."""
    for row_id, *values in _stored(tenant_id, model, using).iterator():
        yield row_name(model, row_id), _digest(values)


def row_name(model: type[models.Model], row_id: Any) -> str:
    """The name of a row in the ledger, such as `api_key/0198c…`."""
    return f"{model._meta.db_table}/{row_id}"


def _stored(tenant_id: UUID, model: type[models.Model], using: str) -> models.QuerySet[Any, Any]:
    """Id and proved columns of the tenant's rows."""
    columns: Sequence[str] = model.in_ledger  # type: ignore[attr-defined]  # see `proved_models`
    tenant = "id" if model._meta.db_table == "tenant" else "tenant_id"
    rows = model._base_manager.using(using).filter(**{tenant: tenant_id})
    return rows.values_list(_id_of(model), *columns)


def _id_of(model: type[models.Model]) -> str:
    """The column that names a row within its tenant: `id`, unless `ledger_id` says otherwise."""
    return str(getattr(model, "ledger_id", "id"))


def _digest(values: Sequence[Any]) -> str:
    text = json.dumps(values, ensure_ascii=True, separators=(",", ":"), default=_plain)
    return hashlib.sha256(text.encode()).hexdigest()


def _plain(value: Any) -> str:
    match value:
        case datetime():
            return value.astimezone(UTC).isoformat()
        case date() | UUID():
            return str(value)
        case bytes() | memoryview():
            return bytes(value).hex()
        case _:
            raise TypeError(f"no digest of {type(value).__name__}")
