"""The worker's tasks for `audit`, periodic and deferred."""

import logging
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime, timedelta
from uuid import UUID

from django.core.management import call_command
from django.db import InterfaceError, OperationalError, connections
from django.utils import timezone
from procrastinate.contrib.django import app
from procrastinate.exceptions import AlreadyEnqueued, UniqueViolation
from procrastinate.jobs import Status

from audit.alerts import trying
from audit.alerts.evaluation import evaluate
from audit.alerts.notifying import notify_again
from audit.alerts.watching import watch
from audit.deliveries import delivering
from audit.deliveries.outbox import SOON
from audit.index import partitions
from audit.ledger import actions, checks, keys, signer
from audit.ledger.baseline import enter_baseline
from audit.ledger.hsm import TokenError
from audit.ledger.takeover import NoMemoryError
from audit.ledger.witnesses import bringing
from audit.log.payload import LogPayloadError
from audit.models import StoredReport
from audit.prices import units
from audit.queries import skipped_spans
from audit.reports.schedule import create_due, due, forget_old
from audit.reports.stored import of_one_moment, record_creation
from audit.retention import erasure, retention
from audit.retention.proved_holds import HoldsAlteredError
from audit.sampling import collecting
from audit.stream import sending
from audit.stream.trying import try_stream
from audit.work import argument_comparison, mcp_uses, payload_search
from audit.work.drift import job as drift_job
from audit.work.replay import job as replay_job
from audit.work.sightings import expire_ephemeral, note_tools
from config.postgresql import processes, schema
from config.postgresql.aliases import KEEPER, OWNER
from config.postgresql.retry import AGAIN
from config.private_files import PrivateFileError
from tenants.actions import THE_SERVER, record_action
from tenants.models import Tenant
from tenants.scope import tenant_scope

_log = logging.getLogger(__name__)

_LEDGER_SECONDS = 2.0
_LEFT_BEHIND = timedelta(minutes=5)
_LEFT_BEHIND_MAX = timedelta(hours=1)


# Hourly, although partitions exist two weeks ahead: a worker that was down for long catches up.
@app.periodic(cron="7 * * * *")
@app.task(queueing_lock="keep_partitions_ahead")
def keep_partitions_ahead(timestamp: int) -> None:
    """Create the missing day partitions. Needs DATABASE_OWNER_URL."""
    if OWNER not in connections:
        _log.warning("DATABASE_OWNER_URL is not set: this worker creates no partitions")
        return
    missing = partitions.missing(timezone.now().date())
    if made := partitions.apply(missing):
        _log.info("created %d partitions, up to %s", len(made), made[-1].day)
    if len(made) < len(missing):
        _log.warning(
            "%s is in use: the other partitions are created later", missing[len(made)].table
        )


@app.periodic(cron="* * * * *")
@app.task(queueing_lock="apply_waiting_migrations")
def apply_waiting_migrations(timestamp: int) -> None:
    """Apply migrations that waited for older processes, once these are gone."""
    if schema.is_complete() or OWNER not in connections:
        return
    todo = processes.pending(OWNER)
    if todo.count and todo.is_late:  # others are the operator's
        call_command("migrate", database=OWNER, verbosity=0)
        _log.info("applied the migrations that waited for older processes")


@app.task(retry=AGAIN)
def search_payloads(tenant_id: str, search_id: str) -> None:
    """Continue a payload search for a few seconds, then let other tasks run."""
    tenant, search = UUID(tenant_id), UUID(search_id)
    try:
        if payload_search.run_slice(tenant, search):
            search_payloads.defer(tenant_id=tenant_id, search_id=search_id)
    except LogPayloadError as error:
        _log.error("search %s stopped: a payload of the log %s", search_id, error)
        payload_search.fail_search(tenant, search)


@app.task(retry=AGAIN)
def compare_arguments(tenant_id: str, comparison_id: str) -> None:
    """Continue a comparison of arguments for a few seconds, then let other tasks run."""
    tenant, comparison = UUID(tenant_id), UUID(comparison_id)
    try:
        if argument_comparison.run_slice(tenant, comparison):
            compare_arguments.defer(tenant_id=tenant_id, comparison_id=comparison_id)
    except LogPayloadError as error:
        _log.error("comparison %s stopped: a payload of the log %s", comparison, error)
        argument_comparison.fail_comparison(tenant, comparison, f"A payload of the log {error}.")


@app.task(retry=AGAIN)
def replay_calls(tenant_id: str, replay_id: str) -> None:
    """Continue a replay for a few seconds, then let other tasks run."""
    tenant, replay = UUID(tenant_id), UUID(replay_id)
    try:
        if replay_job.run_slice(tenant, replay):
            replay_calls.defer(tenant_id=tenant_id, replay_id=replay_id)
    except LogPayloadError as error:
        _log.error("replay %s stopped: a payload of the log %s", replay, error)
        replay_job.fail_replay(tenant, replay, f"A payload of the log {error}.")


@app.task(retry=AGAIN)
def analyze_drift(tenant_id: str, analysis_id: str) -> None:
    """Continue a drift analysis for a few seconds, then let other tasks run."""
    tenant, analysis = UUID(tenant_id), UUID(analysis_id)
    try:
        if drift_job.run_slice(tenant, analysis):
            analyze_drift.defer(tenant_id=tenant_id, analysis_id=analysis_id)
    except LogPayloadError as error:
        _log.error("drift analysis %s stopped: a payload of the log %s", analysis, error)
        drift_job.fail_analysis(tenant, analysis, f"A payload of the log {error}.")


@app.task(retry=AGAIN)
def collect_sample(tenant_id: str, sample_id: str) -> None:
    """Continue to list a sample's population for a few seconds, then let other tasks run."""
    if collecting.run_slice(UUID(tenant_id), UUID(sample_id)):
        collect_sample.defer(tenant_id=tenant_id, sample_id=sample_id)


@app.task(retry=AGAIN)
def try_alert_rule(tenant_id: str, trial_id: str) -> None:
    """Continue a trial of a rule for a few seconds, then let other tasks run."""
    if trying.run_slice(UUID(tenant_id), UUID(trial_id)):
        try_alert_rule.defer(tenant_id=tenant_id, trial_id=trial_id)


# The sixth field is seconds: an instant is judged 20 seconds after it (audit/alerts/evaluation.py),
# and 20 seconds later if the worker was busy.
@app.periodic(cron="* * * * * 20,40")
@app.task(queueing_lock="judge_alert_rules", priority=SOON)
def judge_alert_rules(timestamp: int) -> None:
    """Judge the rules of windows of each tenant: open alerts and end them."""
    _for_each_tenant("windows", evaluate)


@app.periodic(cron="* * * * *")
@app.task(queueing_lock="repeat_alerts")
def repeat_alerts(timestamp: int) -> None:
    """Notify again of alerts that nobody has acknowledged, where rules say so."""
    _for_each_tenant("repeats", notify_again)


# People are notified of an event within 15 seconds: it runs before other tasks, such as those that
# wait for a worker that has just started.
@app.periodic(cron="* * * * * */10")
@app.task(queueing_lock="watch_for_events", priority=SOON)
def watch_for_events(timestamp: int) -> None:
    """Judge the rules of events of each tenant."""
    _for_each_tenant("events", watch)


def _for_each_tenant(what: str, judge: Callable[[datetime], int]) -> None:
    """Judge rules of each tenant, in its scope. What fails for one is logged."""
    for tenant_id in Tenant.objects.filter(suspended_at=None).values_list("id", flat=True):
        try:
            with tenant_scope(tenant_id):
                judge(timezone.now())
        except (OperationalError, InterfaceError):
            raise  # the database is down for all tenants
        except Exception:
            _log.exception("%s of tenant %s: not judged", what, tenant_id)


# Not only at midnight: tenants have their own midnights, and a worker may have been down.
@app.periodic(cron="*/5 * * * *")
@app.task(queueing_lock="keep_reports")
def keep_reports(timestamp: int) -> None:
    """Delete old reports, and defer a task for each report that is due."""
    now = timezone.now()
    for tenant_id in Tenant.objects.filter(suspended_at=None).values_list("id", flat=True):
        with tenant_scope(tenant_id):
            forgotten = forget_old(now)
            if forgotten:
                record_action(
                    Tenant(id=tenant_id),
                    THE_SERVER,
                    "report.forget",
                    f"{len(forgotten)} old reports",
                    rows=[StoredReport(id=each) for each in forgotten],
                )
            kinds = list(due(now))
        for kind in kinds:
            with suppress(AlreadyEnqueued):  # it is queued already
                make_report.configure(queueing_lock=f"report {kind} {tenant_id}").defer(
                    tenant_id=str(tenant_id), kind=kind
                )


@app.task(queue="reports")
def make_report(tenant_id: str, kind: str) -> None:
    """Make the report of this kind that is due by the tenant's schedule."""
    with tenant_scope(UUID(tenant_id)):
        of_one_moment()
        made = create_due(kind, timezone.now())
        if made is not None:
            tenant = Tenant.objects.get(pk=tenant_id)
            record_creation(tenant, THE_SERVER, made)
    if made is not None:
        _log.info("created report %s for tenant %s", made.id, tenant_id)


@app.periodic(cron="*/5 * * * *")
@app.task(queueing_lock="keep_tools")
def keep_tools(timestamp: int) -> None:
    """Record which tools are called, and retire ephemeral tools that nobody calls any more."""
    now = timezone.now()
    for tenant_id in Tenant.objects.filter(suspended_at=None).values_list("id", flat=True):
        with tenant_scope(tenant_id):
            note_tools(now)
            retired = expire_ephemeral(now)
        if retired:
            _log.info("retired %d ephemeral tools of tenant %s", retired, tenant_id)


@app.task(queue="deliveries", priority=SOON)
def deliver(tenant_id: str) -> None:
    """Deliver a tenant's messages that are due, a few at once, then let other tasks run."""
    if delivering.run_slice(UUID(tenant_id)):
        deliver.defer(tenant_id=tenant_id)


# For messages that are tried again, and for those of a killed worker.
@app.periodic(cron="* * * * *")
@app.task(queue="deliveries", queueing_lock="keep_deliveries")
def keep_deliveries(timestamp: int) -> None:
    """Defer a task for each tenant with messages that are due."""
    now = timezone.now()
    for tenant_id in Tenant.objects.filter(suspended_at=None).values_list("id", flat=True):
        with tenant_scope(tenant_id):
            is_due = delivering.is_due(tenant_id, now)
        if is_due:
            with suppress(AlreadyEnqueued):  # it is queued already
                deliver.configure(queueing_lock=f"deliver {tenant_id}").defer(
                    tenant_id=str(tenant_id)
                )


@app.task(queue="deliveries")
def bring_checkpoint(tenant_id: str, size: int | None = None) -> None:
    """Bring a checkpoint to the tenant's witnesses that are due; without a size, the newest one."""
    bringing.bring(UUID(tenant_id), timezone.now(), size)


# Each witness is asked once an hour (`bringing.EVERY`).
@app.periodic(cron="*/5 * * * *")
@app.task(queue="deliveries", queueing_lock="keep_witnessed")
def keep_witnessed(timestamp: int) -> None:
    """Defer a task for each tenant with a witness that is due."""
    now = timezone.now()
    for tenant_id in Tenant.objects.filter(suspended_at=None).values_list("id", flat=True):
        with tenant_scope(tenant_id):
            is_due = bringing.is_due(tenant_id, now)
        if is_due:
            with suppress(AlreadyEnqueued):  # it is queued already
                bring_checkpoint.configure(queueing_lock=f"witnesses {tenant_id}").defer(
                    tenant_id=str(tenant_id)
                )


# A record leaves within seconds of its signature.
@app.periodic(cron="* * * * * */10")
@app.task(queue="streams", queueing_lock="keep_streams")
def keep_streams(timestamp: int) -> None:
    """Send what each tenant's streams have to send."""
    send_streams()


@app.task(queue="streams")
def send_streams() -> None:
    """Send the streams that are due for a few seconds, then let other tasks run."""
    now, due = timezone.now(), []
    for tenant_id in Tenant.objects.filter(suspended_at=None).values_list("id", flat=True):
        with tenant_scope(tenant_id):
            due += [(tenant_id, pk) for pk in sending.due_streams(tenant_id, now)]
    if due and sending.run_slice(due):
        with suppress(AlreadyEnqueued):  # it is queued already
            send_streams.configure(queueing_lock="send_streams").defer()


@app.task(queue="streams", priority=SOON)
def test_stream(tenant_id: str, stream_id: str) -> None:
    """Send a test record to a stream's receiver."""
    try_stream(UUID(tenant_id), UUID(stream_id))


# A call's units are in its costs within seconds.
@app.periodic(cron="* * * * * */10")
@app.task(queueing_lock="keep_units_counted")
def keep_units_counted(timestamp: int) -> None:
    """Defer a task for each tenant with events whose units are not counted yet."""
    for tenant_id in Tenant.objects.filter(suspended_at=None).values_list("id", flat=True):
        with tenant_scope(tenant_id):
            is_behind = units.is_behind()
        if is_behind:
            _count_units_soon(str(tenant_id))


@app.task(retry=AGAIN)
def count_units(tenant_id: str) -> None:
    """Count the units of a tenant's calls for a few seconds, then let other tasks run."""
    if units.run_slice(UUID(tenant_id)):
        _count_units_soon(tenant_id)


def _count_units_soon(tenant_id: str) -> None:
    with suppress(AlreadyEnqueued):  # it is queued already
        count_units.configure(queueing_lock=f"units {tenant_id}").defer(tenant_id=tenant_id)


@app.periodic(cron="* * * * *")
@app.task(queueing_lock="record_mcp_uses")
def record_mcp_uses(timestamp: int) -> None:
    """Record what each tenant's keys and people used of `/mcp` in the minutes that are over."""
    for tenant_id in Tenant.objects.order_by("id").values_list("id", flat=True):
        mcp_uses.record_uses(tenant_id, timezone.now())


# Hourly, although limits are whole days: work that was not finished continues.
@app.periodic(cron="37 * * * *")
@app.task(queueing_lock="keep_to_retention")
def keep_to_retention(timestamp: int) -> None:
    """Defer a task to erase each tenant's expired data; drop days that expired for all tenants.

    Whatever the settings are, also deletes payload searches, comparisons of arguments and
    trials of alert rules older than a day, the names of skipped spans that have not arrived for a
    month, and deliveries of alerts older than 90 days.
    """
    now = timezone.now()
    for tenant_id in Tenant.objects.order_by("id").values_list("id", flat=True):
        with tenant_scope(tenant_id):
            payload_search.forget_old(now)
            argument_comparison.forget_old(now)
            trying.forget_old(now)
            skipped_spans.forget_old(now)
            delivering.forget_old(tenant_id, now)
        _expire_soon(str(tenant_id))
    if OWNER in connections and (dropped := retention.drop_empty_days()):
        _log.info("dropped %d partitions, up to %s", len(dropped), dropped[-1].day)


@app.task
def expire(tenant_id: str) -> None:
    """Erase a tenant's expired data for a few seconds, then let other tasks run."""
    actions.enter_all_actions(UUID(tenant_id))
    try:
        if retention.run_slice(UUID(tenant_id), timezone.now()):
            _expire_soon(tenant_id)
    except (retention.CannotExpireError, HoldsAlteredError) as error:
        _log.warning("tenant %s: %s", tenant_id, error)


def _expire_soon(tenant_id: str) -> None:
    with suppress(AlreadyEnqueued):  # it is queued already
        expire.configure(queueing_lock=f"expire {tenant_id}").defer(tenant_id=tenant_id)


# The sixth field is seconds: entries are signed within a minute, even on a busy worker.
@app.periodic(cron="* * * * * */10")
@app.task(queue="ledger", queueing_lock="keep_ledgers")
def keep_ledgers(timestamp: int) -> None:
    """For each tenant: add new actions to the ledger, fold new entries, and sign when due."""
    if KEEPER not in connections:
        _log.warning("DATABASE_KEEPER_URL is not set: this worker signs no ledgers")
        return
    for tenant_id in Tenant.objects.order_by("id").values_list("id", flat=True):
        try:
            _keep_ledger(tenant_id)
        except (OperationalError, InterfaceError):
            raise  # the database is down for all tenants
        except Exception:
            _log.exception("ledger of tenant %s: not signed", tenant_id)  # the others are signed


@app.task(queue="ledger")
def keep_ledger(tenant_id: str) -> None:
    """Continue with one tenant's ledger after many entries arrived at once."""
    _keep_ledger(UUID(tenant_id))


def _keep_ledger(tenant_id: UUID) -> None:
    now = timezone.now()
    waiting = actions.enter_actions(tenant_id, now) == actions.BATCH
    try:
        keys.of_this_machine(now)  # the first key is in the baseline
        enter_baseline(tenant_id, now)
        has_more = signer.keep(tenant_id, now, seconds=_LEDGER_SECONDS)
    except (keys.NoKeyError, NoMemoryError, PrivateFileError, TokenError) as error:
        is_late = signer.note_unsigned(tenant_id, str(error), now)
        if is_late or isinstance(error, PrivateFileError | TokenError):
            _log.error("ledger of tenant %s: not signed: %s", tenant_id, error)
        return
    if has_more or waiting:
        with suppress(AlreadyEnqueued):  # it is queued already
            keep_ledger.configure(queueing_lock=f"ledger {tenant_id}").defer(
                tenant_id=str(tenant_id)
            )


@app.task(retry=AGAIN)
def erase_calls(tenant_id: str, erasure_id: str) -> None:
    """Continue an erasure or its dry run for a few seconds, then let other tasks run."""
    if KEEPER not in connections:
        _log.warning("DATABASE_KEEPER_URL is not set: this worker erases nothing")
        return
    if erasure.run_slice(UUID(tenant_id), UUID(erasure_id)):
        erase_calls.defer(tenant_id=tenant_id, erasure_id=erasure_id)


@app.task(retry=AGAIN)
def check_ledger(tenant_id: str, check_id: str) -> None:
    """Continue the check of a whole ledger for a few seconds, then let other tasks run."""
    if checks.run_slice(UUID(tenant_id), UUID(check_id)):
        check_ledger.defer(tenant_id=tenant_id, check_id=check_id)


# The task of a killed worker stays marked as running for ever. All our tasks can be run again.
@app.periodic(cron="* * * * *")
@app.task(queueing_lock="retry_stalled_jobs")
async def retry_stalled_jobs(timestamp: int) -> None:
    """Retry the tasks of workers that are gone.

    The delay grows with each attempt, up to an hour: the task itself may have killed the workers.
    """
    for job in await app.job_manager.get_stalled_jobs():
        try:
            again_at = timezone.now() + min(job.attempts * _LEFT_BEHIND, _LEFT_BEHIND_MAX)
            await app.job_manager.retry_job(job, again_at)
        except UniqueViolation:  # the same task is queued already
            await app.job_manager.finish_job(job, Status.ABORTED, delete_job=True)
        _log.warning("task %s was abandoned by a stopped worker: retrying it", job.task_name)
