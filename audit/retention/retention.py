"""How long what is recorded is kept: payloads in the log and rows of the index, as a tenant says.

- **Payloads** are blanked by the keeper, in the order of the log; leaves stay, so that the ledger
  still proves, and `TenantSetting.erased_to` tells from which event on they are there. Refused
  lines, which are payloads, too, lose theirs at the same age.
- **The index** shares its day partitions among tenants, so the owner deletes rows, and drops a
  day when it is over for every tenant. `TenantSetting.index_from` moves first: before it
  `reindex` compares nothing.

What a hold covers (`audit.retention.holds`) is passed by and left, with the figures of its day; of
the index it goes as soon as it is released, of the log because its release sets `erased_to` back.

A slice takes a few seconds in many short transactions. Each says what it did, so whoever is
killed has lost nothing, and the next slice goes on. What went is on record with its count: of
payloads the spans of the ledger, of the index the calls its counters counted, which go last.
"""

import time
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import cast
from uuid import UUID

from django.db import OperationalError, connections, transaction
from tooltrail.ledger import Kind

from audit.index import partitions
from audit.models import LedgerErasure
from audit.retention.event_removal import (
    Removed,
    declare,
    merged,
    remove_events,
)
from audit.retention.hold_match import covers_line
from audit.retention.holds import held_positions, holds_in_force, lock_record
from audit.sql.run import rows
from config.postgresql.aliases import KEEPER, OWNER
from tenants.actions import THE_SERVER, record_action
from tenants.models import Tenant, TenantSetting
from tenants.scope import tenant_scope
from tenants.slices import SLICE_SECONDS

WARN_UNDER_DAYS = 183
"""The least a deployer of a high-risk system keeps its logs (EU AI Act, Article 26(6))."""
PAYLOAD_DAYS_MIN = 1
INDEX_DAYS_MIN = partitions.DAYS_BACK
"""Calls arrive that late: an index kept for less would take them in and lose them."""
DAYS_MAX = 36_500

_BATCHES = 1_000
_READ_BATCHES = 20
"""As many where each has to be read: some of its events are held, or gone already."""
_ROWS = 5_000
_READ_LINES = 200
_IS_OWN, _HAS_PAYLOAD = 4, 5
_EXPIRING = (
    ("oldest_day_of_calls", "delete_day_of_calls"),
    ("oldest_day_of_violations", "delete_day_of_violations"),
    ("oldest_day_of_traces", "delete_day_of_traces"),
    ("oldest_day_of_quarters", "delete_day_of_quarters"),
    ("oldest_day_of_errors", "delete_day_of_errors"),
    ("oldest_day_of_spans", "delete_day_of_spans"),
    ("oldest_day_of_violation_days", "delete_day_of_violation_days"),
)
"""By table of the index, the statements that find its oldest day and delete of a day what no hold
covers: calls first, which decide about all others. `rollup` goes last, whole days at once, and
tells how many calls that were."""


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
    is_over = False
    while not is_over and time.monotonic() < deadline:
        with tenant_scope(setting.tenant_id, using=KEEPER):
            is_over = _erase_next(setting, before, now)
    return not is_over


def _erase_next(setting: TenantSetting, before: datetime, now: datetime) -> bool:
    """Blank the next payloads and say so, in one transaction; True if there are no more.

    Gone, told, and where to go on stand or fall together, whoever is killed.
    """
    tenant_id = setting.tenant_id
    erased_to = lock_record(tenant_id, using=KEEPER)
    holds = holds_in_force(tenant_id, using=KEEPER)
    found = rows(
        "expired_batches",
        {"before": before, "erased_to": erased_to, "batch_limit": _BATCHES},
        using=KEEPER,
    )
    if not found:
        return True
    is_last = len(found) < _BATCHES
    must_read = bool(holds) or _is_holey(tenant_id, found[0][2], found[-1][2] + found[-1][3])
    if must_read:
        is_last &= len(found) <= _READ_BATCHES
        found = found[:_READ_BATCHES]
    whole = [row for row in found if row[_HAS_PAYLOAD] and not row[_IS_OWN]]
    removed = Removed()
    if must_read:
        removed = remove_events(
            tenant_id,
            [row[1] for row in whole],
            lambda _, events: held_positions(tenant_id, holds, events, using=KEEPER),
            using=KEEPER,
        )
        # A damaged payload may be of what is held, and goes whole where nothing is.
        whole = [] if holds else [row for row in whole if row[1] in removed.unread]
    ranges, count = removed.ranges, removed.event_count
    if whole:
        rows(
            "erase_payloads",
            {"days": [row[0] for row in whole], "batch_ids": [row[1] for row in whole]},
            using=KEEPER,
        )
        spans = ((first, first + events) for _, _, first, events, _, _ in whole)
        ranges = merged([*ranges, *spans])
        count += sum(row[3] for row in whole)
    end_index = found[-1][2] + found[-1][3]
    rows("note_erased_to", {"erased_to": end_index}, using=KEEPER)
    if ranges:
        record_action(
            setting.tenant,
            THE_SERVER,
            "retention.payloads",
            f"payloads received before {before:%Y-%m-%d}",
            using=KEEPER,
            received_before=before.isoformat(),
            first_index=ranges[0][0],
            end_index=ranges[-1][1],
            events=count,
        )
        declare(
            tenant_id,
            Kind.RETENTION,
            ranges,
            f"payloads received before {before:%Y-%m-%d}, by the tenant's settings",
            THE_SERVER,
            now,
            using=KEEPER,
        )
    return is_last


def _is_holey(tenant_id: UUID, first_index: int, end_index: int) -> bool:
    """Whether some of these events were erased before: told is only what goes now."""
    told = LedgerErasure.objects.using(KEEPER).for_tenant(tenant_id)
    return told.filter(begin_index__lt=end_index, end_index__gt=first_index).exists()


def _blank_refused(setting: TenantSetting, before: datetime, deadline: float) -> bool:
    # The least UUIDv7 of that moment: ids of lines are of the moment they came.
    before_id = UUID(int=int(before.timestamp() * 1000) << 80)
    after, has_more = UUID(int=0), True
    ids: list[UUID] = []
    # What is held is read again each time: the clock is looked at where something went.
    while has_more and not (ids and time.monotonic() >= deadline):
        with tenant_scope(setting.tenant_id, using=KEEPER):
            lock_record(setting.tenant_id, using=KEEPER)
            holds = holds_in_force(setting.tenant_id, using=KEEPER)
            limit = _READ_LINES if holds else _ROWS
            found = rows(
                "expired_refused",
                {
                    "before": before,
                    "before_id": before_id,
                    "after": after,
                    "with_raw": bool(holds),
                    "row_limit": limit,
                },
                using=KEEPER,
            )
            ids = [
                pk for pk, raw, at in found if not (holds and covers_line(holds, bytes(raw), at))
            ]
            has_more = len(found) == limit
            after = found[-1][0] if found else after
            if ids:
                rows("blank_lines", {"ids": ids}, using=KEEPER)
                record_action(
                    setting.tenant,
                    THE_SERVER,
                    "retention.inbox",
                    f"refused lines received before {before:%Y-%m-%d}",
                    using=KEEPER,
                    received_before=before.isoformat(),
                    lines=len(ids),
                )
    return has_more


def _thin_index(setting: TenantSetting, before: date, deadline: float) -> bool:
    tenant_id = setting.tenant_id
    if setting.index_from is None or setting.index_from < before:
        with tenant_scope(tenant_id):
            TenantSetting.objects.filter(tenant_id=tenant_id).update(index_from=before)
    for oldest_day, delete_day in _EXPIRING:
        day = _oldest_day(tenant_id, oldest_day, date.min, before)
        while day is not None:
            if time.monotonic() >= deadline:
                return True
            with tenant_scope(tenant_id, using=OWNER):
                lock_record(tenant_id, using=OWNER)
                ((deleted,),) = rows(delete_day, {"day": day, "row_limit": _ROWS}, using=OWNER)
            if deleted < _ROWS:  # what is left is held
                day = _oldest_day(tenant_id, oldest_day, day + timedelta(days=1), before)
    with tenant_scope(tenant_id, using=OWNER):
        ((calls,),) = rows("delete_expired_rollups", {"before": before}, using=OWNER)
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


def _oldest_day(tenant_id: UUID, statement: str, since: date, before: date) -> date | None:
    with tenant_scope(tenant_id, using=OWNER):
        ((day,),) = rows(statement, {"from": since, "before": before}, using=OWNER)
    return cast(date | None, day)


def _drop_if_empty(partition: partitions.Partition) -> bool:
    # The parent first, as whoever writes to the partition does.
    with transaction.atomic(using=OWNER), connections[OWNER].cursor() as cursor:
        cursor.execute(f"SET LOCAL lock_timeout = '{partitions.LOCK_TIMEOUT}'")
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
