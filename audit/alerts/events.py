"""The kinds of events that rules watch for. Each reads what happened, or which state lasts.

What happened has an occasion of its own, so it opens one alert however often it is read. A state
has a subject: its alert ends when the subject is no longer listed.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from shutil import disk_usage

from audit.alerts.rules import EventKind
from audit.index import partitions
from audit.ledger.erased_calls import CONFIRMED
from audit.ledger.status import ledger_status, unsigned_since
from audit.ledger.witnesses.states import witness_states
from audit.models import LedgerCheck, WitnessOutcome
from audit.queries.archives import LATE_AFTER as ARCHIVE_LATE_AFTER
from audit.queries.archives import archive_status
from audit.queries.call_query import quoted
from audit.queries.call_walk import SILENCE
from audit.queries.definitions import unapproved_use_in
from audit.queries.inbox import inbox_open_count
from audit.queries.over_time import day_of
from audit.queries.time_range import TimeRange
from audit.show.figures import counted
from audit.sql.run import rows
from audit.stream.lag import LATE_AFTER, lag_of
from audit.stream.streams import all_streams
from audit.work.sightings import note_tools
from config.instance import VAR
from tenants.models import Action
from tenants.scope import current_tenant_id
from tools_registry.contract_diff import compare_contracts
from tools_registry.models import ToolVersion
from tools_registry.versions import contract_of

READ_MAX = 100
"""Events of a kind that are read at once."""
UNSIGNED_FOR = timedelta(minutes=5)
FAILURES = 3
"""Minutes with failed sign-ins of a user, within `FAILURES_WITHIN`."""
FAILURES_WITHIN = timedelta(minutes=15)
ARCHIVE_FAILS_FOR = timedelta(hours=1)
"""Failed attempts are repeated within half an hour: a storage may be away for some time."""
PARTITIONS_LOW = 7
"""Days. The worker keeps 14; with fewer than 3 the server is not ready."""
DISK_FULL = 0.95
_HEARD_WITHIN = timedelta(days=1)
_USED_WITHIN = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened, or that is the case since a time."""

    subject: str
    """Names what it is about, within its kind."""
    at: datetime
    title: str
    query: str = ""
    """Of the calls that it is about."""


@dataclass(frozen=True, slots=True)
class Source:
    """Where events of a kind are read, and the route of the page that shows them, if one does."""

    read: Callable[[datetime, datetime], Iterator[Event]]
    """Reads what happened since a time, or what is the case now. Needs the scope."""
    page: str
    is_state: bool = False
    """Whether it is the case for a time, and ends."""


def _actions(since: datetime, *verbs: str) -> list[Action]:
    actions = Action.objects.filter(tenant_id=current_tenant_id(), at__gte=since, verb__in=verbs)
    return list(actions.order_by("at", "id")[:READ_MAX])


def _of_actions(what: str, *verbs: str) -> Callable[[datetime, datetime], Iterator[Event]]:
    def read(since: datetime, now: datetime) -> Iterator[Event]:
        for one in _actions(since, *verbs):
            yield Event(str(one.id), one.at, f"{one.user_name} {what}")

    return read


def _breaking_versions(since: datetime, now: datetime) -> Iterator[Event]:
    for one in _actions(since, "tool.publish"):
        number = one.details.get("version")
        if not isinstance(number, int) or number < 2:
            continue
        versions = ToolVersion.objects.filter(
            tenant_id=current_tenant_id(), tool__name=one.subject, number__in=(number - 1, number)
        )
        pair = list(versions.select_related("tool").order_by("number"))
        if len(pair) == 2 and compare_contracts(*map(contract_of, pair)).is_breaking:
            title = f"version {number} of {one.subject} may break callers or consumers"
            yield Event(str(one.id), one.at, title)


def _first_violations(since: datetime, now: datetime) -> Iterator[Event]:
    days = {"first_day": day_of(since), "last_day": day_of(now + timedelta(days=1))}
    for kind, tool, version, path, code, at in rows(
        "alert_first_violations", {**days, "since": since, "limit": READ_MAX}
    ):
        query = f"tool:{quoted(tool)} violation:{quoted(code)} path:{quoted(path)}"
        if version:
            query += f" version:{quoted(version)}"
        yield Event(str(kind), at, f"first violation {code} at {path} of {tool}", query)


def _new_tools(since: datetime, now: datetime) -> Iterator[Event]:
    note_tools(now)
    days = {"first_day": day_of(since), "last_day": day_of(now + timedelta(days=1))}
    parameters = {**days, "since": since, "limit": READ_MAX}
    for tool, at in rows("alert_new_tools", parameters):
        if at is not None and at >= since:
            yield Event(tool, at, f"first call of {tool}", f"tool:{quoted(tool)}")


def _gaps(since: datetime, now: datetime) -> Iterator[Event]:
    for producer, first, last, reason, lost, at in rows(
        "alert_gaps", {"since": since, "limit": READ_MAX}
    ):
        title = f"{producer} lost {counted(lost, 'event')}: {reason}"
        yield Event(f"{first}-{last} {producer}", at, title, f"producer:{quoted(producer)}")


def _failed_checks(since: datetime, now: datetime) -> Iterator[Event]:
    checks = LedgerCheck.objects.for_tenant(current_tenant_id())
    for one in checks.filter(finished_at__gte=since, finding_count__gt=0)[:READ_MAX]:
        assert one.finished_at is not None
        title = f"a check of the ledger has {counted(one.finding_count, 'finding')}"
        yield Event(str(one.id), one.finished_at, title)


def _silent(since: datetime, now: datetime) -> Iterator[Event]:
    parameters = {"since": now - _HEARD_WITHIN, "until": now - SILENCE, "limit": READ_MAX}
    for producer, at in rows("alert_silent_producers", parameters):
        yield Event(producer, at, f"{producer} is silent", f"producer:{quoted(producer)}")


def _inbox(since: datetime, now: datetime) -> Iterator[Event]:
    if number := inbox_open_count():
        yield Event("inbox", now, f"{counted(number, 'rejected event')} in the inbox")


def _refusal(since: datetime, now: datetime) -> Iterator[Event]:
    status = ledger_status(current_tenant_id())
    if status.refusal is not None:
        yield Event("ledger", now, f"the signer refuses the ledger: {status.refusal}")


def _unsigned(since: datetime, now: datetime) -> Iterator[Event]:
    status = ledger_status(current_tenant_id())
    oldest = None
    if status.size != status.signed_size:
        oldest = unsigned_since(current_tenant_id(), status)
    if oldest is not None and now - oldest > UNSIGNED_FOR:
        yield Event("ledger", oldest, f"entries since {oldest:%Y-%m-%d %H:%M} UTC are not signed")


def _missing_witnesses(since: datetime, now: datetime) -> Iterator[Event]:
    stands = witness_states(current_tenant_id())
    for one in stands.missing:
        assert one.answered is not None, "it was asked"
        who = "time authority" if one == stands.authority else "witness"
        outcome = WitnessOutcome(one.answered.outcome)
        what = "refused" if outcome is WitnessOutcome.REFUSED else "did not answer"
        title = f"the {who} {one.name} {what}: {one.answered.problem}"
        yield Event(one.key, one.answered.at, title)


def _streams(since: datetime, now: datetime) -> Iterator[Event]:
    status = ledger_status(current_tenant_id())
    for one in all_streams():
        lag = lag_of(one, status, now)
        if lag.oldest_at is None or now - lag.oldest_at <= LATE_AFTER:
            continue
        why = one.failure or ("it is paused" if lag.state == "paused" else "no worker sends it")
        title = f"the stream {one.name} is {lag.entries:,} entries behind: {why}"
        yield Event(str(one.id), lag.oldest_at, title)


def _archive(since: datetime, now: datetime) -> Iterator[Event]:
    status = archive_status(now)
    archive = status.archive
    if archive is None or status.state not in ("failing", "behind"):
        return
    began = now - status.behind
    if archive.failing_since is not None:
        began = min(began, archive.failing_since)
    if status.behind > ARCHIVE_LATE_AFTER or now - began >= ARCHIVE_FAILS_FOR:
        why = archive.failure or "no worker archives it"
        left = status.size - archive.next_index
        yield Event("archive", began, f"{left:,} entries of the ledger are not archived: {why}")


def _unapproved(since: datetime, now: datetime) -> Iterator[Event]:
    use = unapproved_use_in(TimeRange(now - _USED_WITHIN, now, UTC))
    if use.calls and use.first_at is not None:
        title = f"{counted(use.calls, 'call')} under definitions that are not approved"
        yield Event("definitions", use.first_at, title, "is:unapproved since:1h")


def _sign_ins(since: datetime, now: datetime) -> Iterator[Event]:
    by_user: dict[str, list[datetime]] = {}
    for one in _actions(now - FAILURES_WITHIN, "session.refuse"):
        by_user.setdefault(one.user_name, []).append(one.at)
    for user, times in by_user.items():
        if len(times) >= FAILURES:
            yield Event(user, times[0], f"sign-ins as {user} fail again and again")


def _storage(since: datetime, now: datetime) -> Iterator[Event]:
    ahead = partitions.days_ahead(now.date(), using="default")
    if ahead < PARTITIONS_LOW:
        title = f"days after today with partitions: {max(ahead, 0)}, usually 14"
        yield Event("partitions", now, title)
    if not VAR.exists():  # this host stores nothing
        return
    disk = disk_usage(VAR)
    if disk.used > DISK_FULL * (disk.used + disk.free):  # what only root may use is not free
        free = f"{disk.free / 1e9:,.1f} GB"
        yield Event("disk", now, f"the disk of the worker's host is nearly full: {free} are free")


SOURCES: Mapping[EventKind, Source] = {
    EventKind.FIRST_VIOLATION: Source(_first_violations, "violation_list"),
    EventKind.NEW_TOOL: Source(_new_tools, "tool_list"),
    EventKind.VERSION_BREAKS: Source(_breaking_versions, "tool_list"),
    EventKind.UNAPPROVED_USED: Source(_unapproved, "definition_list", is_state=True),
    EventKind.EXECUTOR_SILENT: Source(_silent, "open_list", is_state=True),
    EventKind.GAP_REPORTED: Source(_gaps, "open_list"),
    EventKind.INBOX_WAITING: Source(_inbox, "inbox_list", is_state=True),
    EventKind.LEDGER_REFUSED: Source(_refusal, "ledger_page", is_state=True),
    EventKind.CHECK_FAILED: Source(_failed_checks, "ledger_page"),
    EventKind.SIGNING_LATE: Source(_unsigned, "ledger_page", is_state=True),
    EventKind.WITNESS_MISSING: Source(_missing_witnesses, "ledger_page", is_state=True),
    EventKind.STREAM_BEHIND: Source(_streams, "stream_list", is_state=True),
    EventKind.ARCHIVE_BEHIND: Source(_archive, "tenant_settings", is_state=True),
    EventKind.PAYLOAD_REVEALED: Source(
        _of_actions("revealed payloads", "call.reveal", "inbox.reveal", "payload.search"),
        "action_list",
    ),
    EventKind.ERASURE_CONFIRMED: Source(
        _of_actions("confirmed an erasure", CONFIRMED), "erasure_list"
    ),
    EventKind.HOLD_RELEASED: Source(
        _of_actions("released a legal hold", "hold.release"), "hold_list"
    ),
    EventKind.GLASS_BROKEN: Source(
        _of_actions("got in without the tenant's provider", "session.break-glass"), "action_list"
    ),
    EventKind.SIGN_INS_FAIL: Source(_sign_ins, "action_list", is_state=True),
    EventKind.STORAGE_LOW: Source(_storage, "", is_state=True),
}
"""The source of each kind."""
