"""How long what is recorded is kept: payloads in the log and rows of the index, as a tenant says.

- **Payloads** are blanked by the keeper, in the order of the log; leaves stay, so that the ledger
  still proves, and `TenantSetting.erased_to` tells from which event on they are there. Refused
  lines, which are payloads, too, lose theirs at the same age.
- **The index** shares its day partitions among tenants, so the owner deletes rows, and drops a
  day when it is over for every tenant. `TenantSetting.index_from` moves first: before it
  `reindex` compares nothing.

A slice takes a few seconds in many short transactions. Each says what shall be gone, so whoever
is killed has lost nothing, and the next slice goes on. What went is on record with its count:
of payloads the span of the ledger, of the index the calls its counters counted, which go last.
"""

import time
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any
from uuid import UUID

from django.db import OperationalError, connections, transaction
from tooltrail.ledger import Kind

from audit import partitions, sql
from audit.ledger.entries import append_entry
from tenants.actions import THE_SERVER, record_action
from tenants.models import Tenant, TenantSetting
from tenants.scope import tenant_scope

KEEPER, OWNER = "keeper", "owner"
WARN_UNDER_DAYS = 183
"""The least a deployer of a high-risk system keeps its logs (EU AI Act, Article 26(6))."""
PAYLOAD_DAYS_MIN = 1
INDEX_DAYS_MIN = partitions.DAYS_BACK
"""Calls arrive that late: an index kept for less would take them in and lose them."""
DAYS_MAX = 36_500

SLICE_SECONDS = 3.0
_BATCHES = 200
_ROWS = 5_000
_SUMS = "rollup"
_LOCK_TIMEOUT = "2s"  # writers wait for whoever waits to drop a partition


class CannotExpireError(Exception):
    """The address of a role that erases is not known; the message says which."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What is over at some moment; None: nothing ever."""

    payloads: datetime | None
    """Those that came before."""
    index: date | None
    """The UTC days before."""


def limits(setting: TenantSetting, now: datetime) -> Limits:
    """What a tenant's settings say is over, in whole UTC days."""
    midnight = now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    payload_days, index_days = setting.payload_days, setting.index_days
    return Limits(
        None if payload_days is None else midnight - timedelta(days=payload_days),
        None if index_days is None else (midnight - timedelta(days=index_days)).date(),
    )


def run_slice(tenant_id: UUID, now: datetime, *, seconds: float = SLICE_SECONDS) -> bool:
    """Erase what is over for a while; True if there is more to do. Raises CannotExpireError."""
    setting = _setting(tenant_id)
    if setting is None:
        return False
    over = limits(setting, now)
    for alias, variable, limit in (
        (KEEPER, "DATABASE_KEEPER_URL", over.payloads),
        (OWNER, "DATABASE_OWNER_URL", over.index),
    ):
        if limit is not None and alias not in connections:
            raise CannotExpireError(f"{variable} is not set: retention cannot be applied")
    deadline = time.monotonic() + seconds
    if over.payloads is not None and (
        _erase_payloads(setting, over.payloads, now, deadline)
        or _blank_refused(setting, over.payloads, deadline)
    ):
        return True
    return over.index is not None and _thin_index(setting, over.index, deadline)


def drop_empty_days() -> list[partitions.Partition]:
    """Drop the partitions of days that are over for every tenant; as the owner.

    One that somebody uses just now is left to the next time.
    """
    kept_from = _kept_from()
    if kept_from is None:
        return []
    dropped = []
    for partition in sorted(partitions.existing(OWNER)):
        if partition.day >= kept_from:
            break
        try:
            if _drop_if_empty(partition):
                dropped.append(partition)
        except OperationalError:
            break
    return dropped


def _erase_payloads(
    setting: TenantSetting, before: datetime, now: datetime, deadline: float
) -> bool:
    first = erased_to = setting.erased_to
    is_over = False
    while not is_over and time.monotonic() < deadline:
        with tenant_scope(setting.tenant_id, using=KEEPER):
            ((end_index, count),) = _rows(
                KEEPER,
                "erase_payloads",
                tenant_id=setting.tenant_id,
                before=before,
                erased_to=erased_to,
                batch_limit=_BATCHES,
            )
        erased_to = end_index or erased_to
        is_over = count < _BATCHES
    if erased_to > first:
        _note_erased(setting, before, erased_to, now)
    return not is_over


def _note_erased(setting: TenantSetting, before: datetime, erased_to: int, now: datetime) -> None:
    with tenant_scope(setting.tenant_id):
        # Locked: two workers at once blanked the same payloads, which are told once.
        known = TenantSetting.objects.select_for_update().get(tenant_id=setting.tenant_id)
        if known.erased_to >= erased_to:
            return
        TenantSetting.objects.filter(tenant_id=setting.tenant_id).update(erased_to=erased_to)
        record_action(
            setting.tenant,
            THE_SERVER,
            "retention.payloads",
            f"payloads received before {before:%Y-%m-%d}",
            received_before=before.isoformat(),
            first_index=known.erased_to,
            end_index=erased_to,
            events=erased_to - known.erased_to,
        )
        # In the ledger, too: without it whoever verifies takes the payloads for removed.
        append_entry(
            setting.tenant_id,
            Kind.RETENTION,
            {
                "ranges": [[known.erased_to, erased_to]],
                "reason": f"payloads received before {before:%Y-%m-%d}, by the tenant's settings",
                "actor": THE_SERVER,
            },
            now,
        )


def _blank_refused(setting: TenantSetting, before: datetime, deadline: float) -> bool:
    # The least UUIDv7 of that moment: ids of lines are of the moment they came.
    before_id = UUID(int=int(before.timestamp() * 1000) << 80)
    count = _ROWS
    while count == _ROWS and time.monotonic() < deadline:
        # The keeper cannot write actions: whoever is killed in between has blanked lines untold.
        with tenant_scope(setting.tenant_id, using=KEEPER):
            blanked = _rows(
                KEEPER,
                "blank_refused",
                tenant_id=setting.tenant_id,
                before=before,
                before_id=before_id,
                row_limit=_ROWS,
            )
        count = len(blanked)
        if count:
            with tenant_scope(setting.tenant_id):
                record_action(
                    setting.tenant,
                    THE_SERVER,
                    "retention.inbox",
                    f"refused lines received before {before:%Y-%m-%d}",
                    received_before=before.isoformat(),
                    lines=count,
                )
    return count == _ROWS


def _thin_index(setting: TenantSetting, before: date, deadline: float) -> bool:
    tenant_id = setting.tenant_id
    if setting.index_from is None or setting.index_from < before:
        with tenant_scope(tenant_id):
            TenantSetting.objects.filter(tenant_id=tenant_id).update(index_from=before)
    for table in partitions.PARTITIONED_TABLES:
        while table != _SUMS and (day := _oldest_day(tenant_id, table, before)) is not None:
            if time.monotonic() >= deadline:
                return True
            with tenant_scope(tenant_id, using=OWNER), connections[OWNER].cursor() as cursor:
                statement = sql.QUERIES["delete_of_day"].format(table=table)
                values: dict[str, Any] = {"tenant_id": tenant_id, "day": day, "row_limit": _ROWS}
                cursor.execute(statement, values)
    with tenant_scope(tenant_id, using=OWNER):
        ((calls,),) = _rows(OWNER, "delete_expired_rollups", tenant_id=tenant_id, before=before)
        if calls:
            record_action(
                setting.tenant,
                THE_SERVER,
                "retention.index",
                f"calls started before {before}",
                using=OWNER,
                started_before=before.isoformat(),
                calls=calls,
            )
    return False


def _oldest_day(tenant_id: UUID, table: str, before: date) -> date | None:
    with tenant_scope(tenant_id, using=OWNER), connections[OWNER].cursor() as cursor:
        cursor.execute(
            sql.QUERIES["oldest_day"].format(table=table),
            {"tenant_id": tenant_id, "before": before},
        )
        day: date | None = cursor.fetchone()[0]
        return day


def _drop_if_empty(partition: partitions.Partition) -> bool:
    # The parent first, as whoever writes to the partition does.
    with transaction.atomic(using=OWNER), connections[OWNER].cursor() as cursor:
        cursor.execute(f"SET LOCAL lock_timeout = '{_LOCK_TIMEOUT}'")
        cursor.execute(f"LOCK TABLE {partition.table} IN ACCESS EXCLUSIVE MODE")
        cursor.execute(f"SELECT EXISTS (SELECT FROM {partition.name})")  # noqa: S608  of ours
        (is_used,) = cursor.fetchone()
        if not is_used:
            cursor.execute(f"DROP TABLE {partition.name}")
        return not is_used


def _setting(tenant_id: UUID) -> TenantSetting | None:
    with tenant_scope(tenant_id):
        settings = TenantSetting.objects.filter(tenant_id=tenant_id)
        return settings.select_related("tenant").first()


def _kept_from() -> date | None:
    """The day before which no tenant has an index; None while one keeps its for ever."""
    days = TenantSetting.objects.using(OWNER).values_list("index_from", flat=True)
    known = [day for day in days if day is not None]
    return min(known) if known and len(known) == Tenant.objects.using(OWNER).count() else None


def _rows(using: str, name: str, **parameters: Any) -> list[tuple[Any, ...]]:
    with connections[using].cursor() as cursor:
        cursor.execute(sql.QUERIES[name], parameters)
        return list(cursor.fetchall())
