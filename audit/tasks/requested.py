"""Tasks that a person or a program started: each continues for a few seconds at a time."""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from uuid import UUID

from django.db import connections
from procrastinate.contrib.django import app

from audit.alerts import trying
from audit.archive.storage import AWAY
from audit.incidents import making
from audit.ledger import checks
from audit.log.payload import LogPayloadError
from audit.retention import erasure
from audit.sampling import collecting
from audit.work import argument_comparison, payload_search
from audit.work.drift import job as drift_job
from audit.work.replay import job as replay_job
from config.postgresql.aliases import KEEPER
from config.postgresql.retry import AGAIN

_log = logging.getLogger(__name__)


@app.task(name="audit.tasks.search_payloads", retry=AGAIN)
def search_payloads(tenant_id: str, search_id: str) -> None:
    """Continue a payload search for a few seconds, then let other tasks run."""
    tenant, search = UUID(tenant_id), UUID(search_id)
    with _stopped_by_a_payload(
        f"search {search}", lambda _: payload_search.fail_search(tenant, search)
    ):
        if payload_search.run_slice(tenant, search):
            search_payloads.defer(tenant_id=tenant_id, search_id=search_id)


@app.task(name="audit.tasks.compare_arguments", retry=AGAIN)
def compare_arguments(tenant_id: str, comparison_id: str) -> None:
    """Continue a comparison of arguments for a few seconds, then let other tasks run."""
    tenant, comparison = UUID(tenant_id), UUID(comparison_id)
    with _stopped_by_a_payload(
        f"comparison {comparison}",
        lambda reason: argument_comparison.fail_comparison(tenant, comparison, reason),
    ):
        if argument_comparison.run_slice(tenant, comparison):
            compare_arguments.defer(tenant_id=tenant_id, comparison_id=comparison_id)


@app.task(name="audit.tasks.replay_calls", retry=AGAIN)
def replay_calls(tenant_id: str, replay_id: str) -> None:
    """Continue a replay for a few seconds, then let other tasks run."""
    tenant, replay = UUID(tenant_id), UUID(replay_id)
    with _stopped_by_a_payload(
        f"replay {replay}", lambda reason: replay_job.fail_replay(tenant, replay, reason)
    ):
        if replay_job.run_slice(tenant, replay):
            replay_calls.defer(tenant_id=tenant_id, replay_id=replay_id)


@app.task(name="audit.tasks.analyze_drift", retry=AGAIN)
def analyze_drift(tenant_id: str, analysis_id: str) -> None:
    """Continue a drift analysis for a few seconds, then let other tasks run."""
    tenant, analysis = UUID(tenant_id), UUID(analysis_id)
    with _stopped_by_a_payload(
        f"drift analysis {analysis}",
        lambda reason: drift_job.fail_analysis(tenant, analysis, reason),
    ):
        if drift_job.run_slice(tenant, analysis):
            analyze_drift.defer(tenant_id=tenant_id, analysis_id=analysis_id)


@contextmanager
def _stopped_by_a_payload(what: str, fail: Callable[[str], object]) -> Iterator[None]:
    """End a job that meets a payload which the log cannot give; to try again would not help."""
    try:
        yield
    except LogPayloadError as error:
        _log.error("%s stopped: a payload of the log %s", what, error)
        fail(f"A payload of the log {error}.")


@app.task(name="audit.tasks.collect_sample", retry=AGAIN)
def collect_sample(tenant_id: str, sample_id: str) -> None:
    """Continue to list a sample's population for a few seconds, then let other tasks run."""
    if collecting.run_slice(UUID(tenant_id), UUID(sample_id)):
        collect_sample.defer(tenant_id=tenant_id, sample_id=sample_id)


@app.task(name="audit.tasks.make_incident", retry=AGAIN)
def make_incident(tenant_id: str, incident_id: str) -> None:
    """Continue to hold and read the traces of an incident, then let other tasks run."""
    if making.run_slice(UUID(tenant_id), UUID(incident_id)):
        make_incident.defer(tenant_id=tenant_id, incident_id=incident_id)


@app.task(name="audit.tasks.try_alert_rule", retry=AGAIN)
def try_alert_rule(tenant_id: str, trial_id: str) -> None:
    """Continue a trial of a rule for a few seconds, then let other tasks run."""
    if trying.run_slice(UUID(tenant_id), UUID(trial_id)):
        try_alert_rule.defer(tenant_id=tenant_id, trial_id=trial_id)


@app.task(name="audit.tasks.erase_calls", retry=AGAIN)
def erase_calls(tenant_id: str, erasure_id: str) -> None:
    """Continue an erasure or its dry run for a few seconds, then let other tasks run."""
    if KEEPER not in connections:
        _log.warning("DATABASE_KEEPER_URL is not set: this worker erases nothing")
        return
    try:
        if erasure.run_slice(UUID(tenant_id), UUID(erasure_id)):
            erase_calls.defer(tenant_id=tenant_id, erasure_id=erasure_id)
    except AWAY as error:
        _log.warning("erasure %s waits for the archive: %s", erasure_id, error)
        erase_calls.configure(schedule_in={"minutes": 1}).defer(
            tenant_id=tenant_id, erasure_id=erasure_id
        )


@app.task(name="audit.tasks.check_ledger", retry=AGAIN)
def check_ledger(tenant_id: str, check_id: str) -> None:
    """Continue the check of a whole ledger for a few seconds, then let other tasks run."""
    if checks.run_slice(UUID(tenant_id), UUID(check_id)):
        check_ledger.defer(tenant_id=tenant_id, check_id=check_id)
