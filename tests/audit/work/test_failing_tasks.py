"""Failing tasks: a real worker retries those that may succeed later."""

import asyncio
import inspect
import uuid
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import OperationalError, connection, connections
from procrastinate.contrib.django import app
from procrastinate.contrib.django.models import ProcrastinateJob, ProcrastinateWorker
from procrastinate.exceptions import ConnectorException
from procrastinate.jobs import Job
from procrastinate.tasks import Task

from audit.models import PayloadSearch
from audit.tasks import requested, tenants
from audit.tasks.installation import retry_stalled_jobs
from audit.work import payload_search
from config.instance import BASE_DIR
from config.postgresql.retry import AGAIN
from config.templatetags import worker
from tenants.scope import tenant_scope
from tests.support.factories import Cast
from tests.support.pages import signed_in
from tools_registry.tasks import import_tools

TAKEN_UP_BY_NOBODY_ELSE: list[Task[Any, Any, Any]] = [
    requested.search_payloads,
    requested.compare_arguments,
    requested.replay_calls,
    requested.analyze_drift,
    requested.erase_calls,
    requested.check_ledger,
    import_tools,
]


def as_worker(do: Callable[[], Awaitable[None]]) -> None:
    """Await `do()` as a worker does, on a new connection."""
    connections.close_all()

    async def run() -> None:
        # The connector of `procrastinate worker`; the base class does not declare it.
        connector = app.connector.get_worker_connector()  # type: ignore[attr-defined]  # what its types leave out
        with app.replace_connector(connector) as worker_app:
            async with worker_app.open_async():
                await do()

    asyncio.run(run())


def work(queue: str) -> None:
    """Run a worker until this queue is empty. Tasks of other tests are in other queues."""

    async def run() -> None:
        await app.run_worker_async(
            queues=[queue], wait=False, listen_notify=False, install_signal_handlers=False
        )

    as_worker(run)


def searched(cast: Cast, monkeypatch: pytest.MonkeyPatch, failing: Exception) -> tuple[str, str]:
    """Run a search whose first attempt fails; return its state and that of its task."""
    answer = signed_in(cast.editor).post("/calls/search", {"text": "bath"})
    pk = uuid.UUID(answer["Location"].rpartition("/")[2])
    slices = [failing]
    whole = payload_search.run_slice

    def run_slice(*args: Any) -> bool:
        if slices:
            raise slices.pop()
        try:
            return whole(*args)
        finally:
            connections.close_all()  # the thread ends without closing them

    monkeypatch.setattr(payload_search, "run_slice", run_slice)
    queue = str(pk)
    given = ProcrastinateJob.objects.filter(args__search_id=str(pk)).get()
    job = requested.search_payloads.configure(queue=queue).defer(**given.args)
    work(queue)
    with tenant_scope(cast.tenant.id):
        search = PayloadSearch.objects.get(tenant_id=cast.tenant.id, id=pk)
    return search.state, ProcrastinateJob.objects.get(id=job).status


@pytest.mark.parametrize(
    "failing",
    [OperationalError("deadlock detected"), ConnectorException(), ValueError("a mistake of ours")],
    ids=["deadlock", "database-away", "mistake"],
)
def test_failed_task_succeeds_at_the_next_attempt(
    acme: Cast, monkeypatch: pytest.MonkeyPatch, failing: Exception
) -> None:
    assert searched(acme, monkeypatch, failing) == ("done", "succeeded")


def search_page(cast: Cast) -> tuple[ProcrastinateJob, Callable[[], str]]:
    """The task of a waiting search, and a function that loads its page."""
    client = signed_in(cast.editor)
    address = client.post("/calls/search", {"text": "bath"})["Location"]
    job = ProcrastinateJob.objects.filter(args__search_id=address.rpartition("/")[2]).get()
    return job, lambda: client.get(address).content.decode()


def test_page_shows_repeated_failures_of_a_running_task(acme: Cast) -> None:
    job, page = search_page(acme)
    assert "Failed 3 times" not in page()
    ProcrastinateJob.objects.filter(id=job.id).update(
        attempts=3, scheduled_at=datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    )
    assert "Failed 3 times, next attempt at" in page()
    assert 'datetime="2026-01-02T03:04:05' in page()
    ProcrastinateJob.objects.filter(id=job.id).update(status="doing")
    assert "Failed 3 times" not in page()


def test_page_reports_that_no_worker_runs(acme: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    _, page = search_page(acme)
    monkeypatch.setattr(worker, "_SILENCE", timedelta())  # every heartbeat is older than now
    assert "No worker is running" in page()
    soon = datetime.now(UTC) + timedelta(hours=1)
    insert = "INSERT INTO procrastinate_workers (last_heartbeat) VALUES (%s) RETURNING id"
    with connection.cursor() as cursor:
        cursor.execute(insert, [soon])
        (pk,) = cursor.fetchone()
    try:
        assert "No worker is running" not in page()
    finally:
        ProcrastinateWorker.objects.filter(id=pk).delete()


@pytest.mark.parametrize("task", TAKEN_UP_BY_NOBODY_ELSE, ids=lambda task: task.name)
def test_every_task_with_progress_has_a_page_reporting_worker_problems(
    task: Task[Any, Any, Any],
) -> None:
    (argument,) = set(inspect.signature(task.func).parameters) - {"tenant_id"}
    texts = [path.read_text() for path in (BASE_DIR / "templates").rglob("*.html")]
    under_way = [text for text in texts if f"{{% worker_trouble {argument}=" in text]
    assert len(under_way) == 1
    assert "components/_progress_row.html" in under_way[0]


@pytest.mark.parametrize("task", TAKEN_UP_BY_NOBODY_ELSE, ids=lambda task: task.name)
def test_tasks_with_progress_use_the_retry_strategy(task: Task[Any, Any, Any]) -> None:
    assert task.retry_strategy is AGAIN


@pytest.mark.parametrize("attempts", [0, 1, 12, 13, 1_000])
def test_retries_continue_without_limit_and_with_growing_delay(attempts: int) -> None:
    job = Job(id=1, queue="", lock=None, queueing_lock=None, task_name="any", attempts=attempts)
    before = datetime.now(UTC)
    decision = AGAIN.get_retry_decision(exception=ConnectorException(), job=job)
    assert decision is not None
    assert decision.retry_at is not None
    assert 0 <= (decision.retry_at - before).total_seconds() - 5 * attempts < 10


def test_stalled_duplicate_task_does_not_block_other_stalled_tasks(acme: Cast) -> None:
    """Two equal tasks cannot wait; the stalled one is dropped."""
    tenant_id, lock = str(acme.tenant.id), f"expire {acme.tenant.id}"
    expire = tenants.expire.configure(queueing_lock=lock, queue=tenant_id)
    left = [
        expire.defer(tenant_id=tenant_id),
        requested.search_payloads.configure(queue=tenant_id).defer(
            tenant_id=tenant_id, search_id=tenant_id
        ),
    ]
    ProcrastinateJob.objects.filter(id__in=left).update(status="doing", worker_id=None)
    waiting = expire.defer(tenant_id=tenant_id)

    async def run() -> None:
        await retry_stalled_jobs(timestamp=0)

    as_worker(run)
    jobs = ProcrastinateJob.objects.filter(queue_name=tenant_id).order_by("id")
    assert list(jobs.values_list("id", "status")) == [(left[1], "todo"), (waiting, "todo")]


@pytest.mark.parametrize(("attempts", "minutes"), [(0, 0), (1, 5), (4, 20), (300, 60)])
def test_stalled_tasks_are_retried_with_growing_delay_up_to_an_hour(
    acme: Cast, attempts: int, minutes: int
) -> None:
    tenant_id = str(acme.tenant.id)
    task = requested.search_payloads.configure(queue=tenant_id)
    job = task.defer(tenant_id=tenant_id, search_id=tenant_id)
    ProcrastinateJob.objects.filter(id=job).update(
        status="doing", worker_id=None, attempts=attempts
    )

    async def run() -> None:
        await retry_stalled_jobs(timestamp=0)

    before = datetime.now(UTC)
    as_worker(run)
    stored = ProcrastinateJob.objects.get(id=job)
    assert (stored.status, stored.attempts) == ("todo", attempts + 1)
    waits = (stored.scheduled_at or before) - before
    assert timedelta() <= waits - timedelta(minutes=minutes) < timedelta(seconds=30)
