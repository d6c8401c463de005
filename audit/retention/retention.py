"""Retention: erases payloads in the log and rows of the index after the tenant's set time.

- **Payloads**: the keeper blanks them in the order of the log. Leaves stay, so the ledger's proofs
  still hold. From the event `TenantSetting.erased_to` on, payloads are still there. Rejected lines
  are payloads too and are blanked at the same age.
- **Index**: tenants share its day partitions. So the owner's role deletes rows, and drops a day
  once it has expired for every tenant. `TenantSetting.index_from` moves first, with an action:
  `reindex` misses no row before it.

Retention skips what a hold covers (`audit.retention.holds`), and the figures of its day. After the
release, the index's rows go in the next pass. The log's payloads go too, because the release sets
`erased_to` back.

A slice takes a few seconds in many short transactions. Each transaction records what it erased, so
a killed worker loses nothing and the next slice continues. The record has counts: for payloads the
ledger ranges, for the index the calls that the counters (erased last) had counted.
"""

import time
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import cast
from uuid import UUID

from django.db import DEFAULT_DB_ALIAS, OperationalError, connections, transaction
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
from audit.retention.holds import held_positions, lock_record
from audit.retention.proved_holds import holds_to_keep
from audit.sql.run import rows
from config.postgresql.aliases import KEEPER, OWNER
from tenants.actions import THE_SERVER, record_action
from tenants.models import Tenant, TenantSetting
from tenants.scope import tenant_scope
from tenants.slices import SLICE_SECONDS

WARN_UNDER_DAYS = 183
"""Six months: the minimum for logs of a high-risk AI system (EU AI Act, Article 26(6))."""
PAYLOAD_DAYS_MIN = 1
INDEX_DAYS_MIN = partitions.DAYS_BACK
"""Calls may arrive this late: an index kept for less would store them and lose them."""
DAYS_MAX = 36_500

_BATCHES = 1_000
_READ_BATCHES = 20
"""Batches per step if each must be read: a hold may cover events, or some are erased already."""
_ROWS = 5_000
_READ_LINES = 200
_IS_OWN, _HAS_PAYLOAD = 4, 5
_EXPIRING = (
    ("oldest_day_of_calls", "delete_day_of_calls"),
    ("oldest_day_of_decisions", "delete_day_of_decisions"),
    ("oldest_day_of_violations", "delete_day_of_violations"),
    ("oldest_day_of_units", "delete_day_of_units"),
    ("oldest_day_of_cases", "delete_day_of_cases"),
    ("oldest_day_of_usage", "delete_day_of_usage"),
    ("oldest_day_of_traces", "delete_day_of_traces"),
    ("oldest_day_of_quarters", "delete_day_of_quarters"),
    ("oldest_day_of_errors", "delete_day_of_errors"),
    ("oldest_day_of_spans", "delete_day_of_spans"),
    ("oldest_day_of_violation_days", "delete_day_of_violation_days"),
)
"""For each table of the index: a statement that finds its oldest day, and one that deletes a
day's rows that no hold covers. Calls come first, because they decide about all other rows.
`rollup` goes last, in whole days, and says how many calls there were."""


class CannotExpireError(Exception):
    """The database URL of a role that erases is not set; the message says which."""


class _SettingChangedError(Exception):
    """Retention was changed during a slice, so its limits are no longer those in force."""


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits before which data has expired; None if it never expires."""

    payloads: datetime | None
    """Payloads received before it have expired."""
    index: date | None
    """UTC days before it have expired."""


def limits(setting: TenantSetting, now: datetime) -> Limits:
    """The limits by a tenant's settings, in whole UTC days."""
    midnight = now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    payload_days, index_days = setting.payload_days, setting.index_days
    return Limits(
        None if payload_days is None else midnight - timedelta(days=payload_days),
        None if index_days is None else (midnight - timedelta(days=index_days)).date(),
    )


def run_slice(tenant_id: UUID, now: datetime, *, seconds: float = SLICE_SECONDS) -> bool:
    """Erase expired data for about `seconds`. True if there is more to do.

    Raises CannotExpireError.
    """
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
    try:
        if over.payloads is not None and (
            _erase_payloads(setting, over.payloads, now, deadline)
            or _blank_refused(setting, over.payloads, deadline)
        ):
            return True
        return over.index is not None and _thin_index(setting, over.index, deadline)
    except _SettingChangedError:
        return True


def drop_empty_days() -> list[partitions.Partition]:
    """Drop the partitions of days that have expired for every tenant, as the owner.

    If a partition is in use, it and all later ones are left for the next run.
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
    """Blank the next payloads and declare it, in one transaction. True if there are no more.

    The erasure, its declaration and the new `erased_to` are committed together, so a killed worker
    leaves none of them without the others.
    """
    tenant_id = setting.tenant_id
    erased_to = _lock(setting, using=KEEPER)
    holds = holds_to_keep(tenant_id, using=KEEPER)
    batches = rows(
        "expired_batches",
        {"before": before, "erased_to": erased_to, "batch_limit": _BATCHES},
        using=KEEPER,
    )
    if not batches:
        return True
    is_last = len(batches) < _BATCHES
    must_read = bool(holds) or _is_holey(tenant_id, batches[0][2], batches[-1][2] + batches[-1][3])
    if must_read:
        is_last &= len(batches) <= _READ_BATCHES
        batches = batches[:_READ_BATCHES]
    whole = [row for row in batches if row[_HAS_PAYLOAD] and not row[_IS_OWN]]
    removed = Removed()
    if must_read:
        removed = remove_events(
            tenant_id,
            [row[1] for row in whole],
            lambda _, events: held_positions(tenant_id, holds, events, using=KEEPER),
            using=KEEPER,
        )
        # A damaged payload may hold events under a hold. Without any hold it is erased whole.
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
    end_index = batches[-1][2] + batches[-1][3]
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
            tenant_id=tenant_id,
            kind=Kind.RETENTION,
            ranges=ranges,
            reason=f"payloads received before {before:%Y-%m-%d}, by the tenant's settings",
            actor=THE_SERVER,
            now=now,
            using=KEEPER,
        )
    return is_last


def _is_holey(tenant_id: UUID, first_index: int, end_index: int) -> bool:
    """Whether some of these events were erased before: only what goes now is to be declared."""
    erasures = LedgerErasure.objects.using(KEEPER).for_tenant(tenant_id)
    return erasures.filter(begin_index__lt=end_index, end_index__gt=first_index).exists()


def _blank_refused(setting: TenantSetting, before: datetime, deadline: float) -> bool:
    # The smallest UUIDv7 of that moment: the id of a line has the time of its arrival.
    before_id = UUID(int=int(before.timestamp() * 1000) << 80)
    after, has_more = UUID(int=0), True
    ids: list[UUID] = []
    # A slice starts at the first line again and rereads held lines. So it checks the clock only
    # after it has erased something; otherwise it might never get past the held ones.
    while has_more and not (ids and time.monotonic() >= deadline):
        with tenant_scope(setting.tenant_id, using=KEEPER):
            _lock(setting, using=KEEPER)
            holds = holds_to_keep(setting.tenant_id, using=KEEPER)
            limit = _READ_LINES if holds else _ROWS
            lines = rows(
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
                pk for pk, raw, at in lines if not (holds and covers_line(holds, bytes(raw), at))
            ]
            has_more = len(lines) == limit
            after = lines[-1][0] if lines else after
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
            _lock(setting, using=DEFAULT_DB_ALIAS)
            TenantSetting.objects.filter(tenant_id=tenant_id).update(index_from=before)
            record_action(
                setting.tenant,
                THE_SERVER,
                "retention.begin",
                f"calls started before {before}",
                rows=[setting],
                started_before=before.isoformat(),
            )
    for oldest_day, delete_day in _EXPIRING:
        day = _oldest_day(tenant_id, oldest_day, date.min, before)
        while day is not None:
            if time.monotonic() >= deadline:
                return True
            with tenant_scope(tenant_id, using=OWNER):
                _lock(setting, using=OWNER)
                holds_to_keep(tenant_id, using=OWNER)
                ((deleted,),) = rows(delete_day, {"day": day, "row_limit": _ROWS}, using=OWNER)
            if deleted < _ROWS:  # a hold covers what is left
                day = _oldest_day(tenant_id, oldest_day, day + timedelta(days=1), before)
    with tenant_scope(tenant_id, using=OWNER):
        _lock(setting, using=OWNER)
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


def _lock(setting: TenantSetting, *, using: str) -> int:
    """Lock out others that erase, and changes of the settings. Returns `erased_to`.

    So once a longer retention or a floor is stored, nothing goes by the shorter one. Raises
    _SettingChangedError.
    """
    erased_to = lock_record(setting.tenant_id, using=using)
    days = {"payload_days": setting.payload_days, "index_days": setting.index_days}
    if not TenantSetting.objects.using(using).filter(pk=setting.pk, **days).exists():
        raise _SettingChangedError
    return erased_to


def _oldest_day(tenant_id: UUID, statement: str, since: date, before: date) -> date | None:
    with tenant_scope(tenant_id, using=OWNER):
        ((day,),) = rows(statement, {"from": since, "before": before}, using=OWNER)
    return cast(date | None, day)


def _drop_if_empty(partition: partitions.Partition) -> bool:
    # Lock the parent first, in the same order as writers to the partition.
    with transaction.atomic(using=OWNER), connections[OWNER].cursor() as cursor:
        cursor.execute(f"SET LOCAL lock_timeout = '{partitions.LOCK_TIMEOUT}'")
        cursor.execute(f"LOCK TABLE {partition.table} IN ACCESS EXCLUSIVE MODE")
        cursor.execute(f"SELECT EXISTS (SELECT 1 FROM {partition.name})")  # noqa: S608  # our own name
        (is_used,) = cursor.fetchone()
        if not is_used:
            cursor.execute(f"DROP TABLE {partition.name}")
        return not is_used


def _setting(tenant_id: UUID) -> TenantSetting | None:
    with tenant_scope(tenant_id):
        settings = TenantSetting.objects.filter(tenant_id=tenant_id)
        return settings.select_related("tenant").first()


def _kept_from() -> date | None:
    """The day before which no tenant has an index; None while a tenant keeps its index for ever."""
    days = TenantSetting.objects.using(OWNER).values_list("index_from", flat=True)
    known = [day for day in days if day is not None]
    return min(known) if known and len(known) == Tenant.objects.using(OWNER).count() else None
