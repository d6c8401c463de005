"""Count the units of calls: read the log from each path's place on, and note what each call took.

A job in slices (`tenants.slices`) that never ends: it follows the log. A step reads the next
batches, and of them the end events of the tools whose units are counted. An event counts if the
index says that it is the end of its call, so repeated events and earlier accounts do not, whatever
their order. Reading a part of the log again changes nothing.
"""

from collections.abc import Iterable, Iterator, Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal, InvalidOperation
from typing import Any, Final, NamedTuple
from uuid import UUID

from tooltrail.ledger import Kind

from audit.events.body import Line
from audit.events.candidates import Candidate, read_logged
from audit.events.json_values import Number, parse
from audit.events.limits import LimitExceededError
from audit.events.payload_paths import PayloadPath, read_path, values_at
from audit.events.reported import calls_of
from audit.log.payload import LogPayloadError, unpack
from audit.models import UnitPath
from audit.prices.lists import named_paths, use_counted_lists
from audit.sql.run import rows
from tenants import slices
from tenants.scope import current_tenant_id, tenant_scope
from tenants.slices import SLICE_SECONDS

BATCHES: Final = 50
"""Batches of the log per step, one of which is unpacked at a time."""
_ROWS: Final = 5_000
_UNITS_MAX: Final = Decimal(10) ** 15
_DECIMALS: Final = Decimal(1).scaleb(-12)
_TEXT_MAX: Final = 60
_EPOCH: Final = date(1970, 1, 1)


class _Batch(NamedTuple):
    batch_id: UUID
    received_at: datetime
    first_index: int
    event_count: int
    payload: bytes | None
    is_own: bool


class _Counted(NamedTuple):
    """What a call took by one path; None if its result does not say."""

    day: date
    unit_path_id: UUID
    invocation_id: UUID
    started_at: datetime
    tool_version: str
    units: Decimal | None


def is_behind() -> bool:
    """Whether the log has events whose units are not counted. Needs the scope."""
    if rows("unit_paths_behind", {}):
        return True
    tenant_id = current_tenant_id()
    paths = set(UnitPath.objects.for_tenant(tenant_id).values_list("id", flat=True))
    return bool(paths and paths - named_paths(tenant_id))


def run_slice(tenant_id: UUID, *, seconds: float = SLICE_SECONDS) -> bool:
    """Count for about `seconds`. True if there is more to do."""
    return slices.run_slice(lambda _: _step(tenant_id), seconds)


def units_in(raw: bytes, path: PayloadPath) -> Decimal | None:
    """How many units an end event reports: the numbers at the path, or lengths of lists, added up.

    None if there is none, or one of them is no number, negative or above 10^15. More than twelve
    decimals are rounded.
    """
    try:
        document = parse(raw)
    except ValueError:
        return None
    output = document.get("output") if isinstance(document, dict) else None
    reported = [_units(value) for value in values_at(output, path.steps)]
    usable = [units for units in reported if units is not None]
    return sum(usable, Decimal(0)) if usable and len(usable) == len(reported) else None


def _units(value: Any) -> Decimal | None:
    if isinstance(value, list):
        return Decimal(len(value))
    if not isinstance(value, Number) or len(value) > _TEXT_MAX:
        return None
    try:
        units = Decimal(value)
        if not units.is_finite() or not 0 <= units <= _UNITS_MAX:
            return None
        exponent = units.as_tuple().exponent
        is_long = isinstance(exponent, int) and exponent < -12
        return units.quantize(_DECIMALS) if is_long else units
    except InvalidOperation:
        return None


def _step(tenant_id: UUID) -> bool:
    """Read the next batches, in one transaction. False if all is counted."""
    with tenant_scope(tenant_id):
        paths = list(
            UnitPath.objects.for_tenant(tenant_id).order_by("next_index", "id").select_for_update()
        )
        named = named_paths(tenant_id) if paths else set()
        if unnamed := [path for path in paths if path.id not in named]:
            _forget_path(unnamed[0])
            return True
        if not paths:
            return False
        begin = paths[0].next_index
        together = [path for path in paths if path.next_index == begin]
        others = [path.next_index for path in paths if path.next_index > begin]
        size = int(next((size for (size,) in rows("log_size", {})), 0))
        end = min([size, *others])
        batches = [
            _Batch(*row)
            for row in rows(
                "batches_with_units",
                {"from_index": begin, "to_index": end, "batch_limit": BATCHES},
            )
        ]
        if len(batches) == BATCHES:
            end = batches[-1].first_index + batches[-1].event_count
        erased = _count(together, batches)
        for path in together:
            path.next_index, path.erased_count = end, path.erased_count + erased
            path.save(update_fields=["next_index", "erased_count"])
        use_counted_lists(tenant_id)
        return end < size


def _count(paths: Sequence[UnitPath], batches: Sequence[_Batch]) -> int:
    """Note the units in these batches. Returns how many events have no payload."""
    read = {path.id: read_path(path.path) for path in paths}
    names = [path.tool_name.encode() for path in paths]
    erased = 0
    ends: dict[tuple[UUID, int], Candidate] = {}
    for batch in batches:
        if batch.is_own:
            continue
        try:
            events = [] if batch.payload is None else unpack(bytes(batch.payload))
        except LogPayloadError:
            events = []
        raws = [raw for _, raw in events]
        erased += batch.event_count - sum(map(bool, raws))
        if any(_may_name(raw, names) for raw in raws):
            ends |= {(end.batch_id, end.line - 1): end for end in _ends(batch, raws)}
    counted = [
        _Counted(
            day, path.id, invocation_id, at, version, units_in(ends[batch_id, position].raw, steps)
        )
        for batch_id, position, day, invocation_id, at, tool, version in _calls_of(ends)
        for path in paths
        if path.tool_name == tool and (steps := read[path.id]) is not None
    ]
    _write([one for one in counted if one.units is not None])
    _forget([one for one in counted if one.units is None])
    _forget_parts(ends.values())
    return erased


def _may_name(raw: bytes, names: Sequence[bytes]) -> bool:
    """Whether a line may be about one of the tools: it has a name, or could spell it otherwise."""
    return b"\\" in raw or any(name in raw for name in names)


def _ends(batch: _Batch, raws: Sequence[bytes]) -> Iterator[Candidate]:
    lines = [Line(at, raw) for at, raw in enumerate(raws, 1) if raw]
    try:
        candidates = read_logged(lines, batch.batch_id, batch.received_at).candidates
    except LimitExceededError:
        return
    yield from (one for one in candidates if one.kind is Kind.END)


def _calls_of(ends: dict[tuple[UUID, int], Candidate]) -> list[tuple[Any, ...]]:
    """The completed calls that these events end, with the place of the event."""
    if not ends:
        return []
    days = [_EPOCH + timedelta(days=end.day) for end in ends.values()]
    near = {day + timedelta(days=away) for day in days for away in (-1, 0, 1)}
    return rows(
        "calls_ended_by",
        {
            "days": days,
            "near_days": sorted(near),
            "invocation_ids": [end.invocation_id for end in ends.values()],
            "batch_ids": [batch_id for batch_id, _ in ends],
            "positions": [position for _, position in ends],
        },
    )


def _key_columns(counted: Sequence[_Counted]) -> dict[str, Any]:
    return {
        "days": [one.day for one in counted],
        "unit_path_ids": [one.unit_path_id for one in counted],
        "invocation_ids": [one.invocation_id for one in counted],
    }


def _write(counted: Sequence[_Counted]) -> None:
    if counted:
        ordered = sorted(counted, key=lambda one: one[:3])
        columns = _key_columns(ordered) | {
            "started_at": [one.started_at for one in ordered],
            "tool_versions": [one.tool_version for one in ordered],
            "units": [one.units for one in ordered],
        }
        rows("upsert_call_units", columns)


def _forget(counted: Sequence[_Counted]) -> None:
    if counted:
        rows("forget_call_units", _key_columns(counted))


def _forget_parts(ends: Iterable[Candidate]) -> None:
    parts = sorted({part for end in ends for part in calls_of(end.raw)})
    if parts:
        rows(
            "forget_units_of_parts",
            {
                "days": [_EPOCH + timedelta(days=day) for day, _ in parts],
                "invocation_ids": [invocation_id for _, invocation_id in parts],
            },
        )


def _forget_path(path: UnitPath) -> None:
    """Delete some of what was counted for a path, at last the path. If a list names it again
    meanwhile, it is counted from its beginning.
    """
    stored = UnitPath.objects.for_tenant(path.tenant_id).filter(id=path.id)
    ((count,),) = rows("forget_units_of_path", {"path_id": path.id, "row_limit": _ROWS})
    if count < _ROWS:
        stored.delete()
    else:
        stored.update(next_index=path.from_index)
