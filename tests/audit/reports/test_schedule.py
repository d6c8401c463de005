"""Scheduled reports: due times, exactly one each, after downtime; and their retention."""

import subprocess
import sys
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.conf import settings
from django.db import connection, connections
from django.utils import timezone
from procrastinate.contrib.django.models import ProcrastinateJob

from audit.reports import schedule as schedules
from audit.reports.queries import Report, report_page
from audit.reports.schedule import Schedule, change_schedule, create_due, due, forget_old, schedule
from audit.reports.stored import create_report, of_one_moment
from audit.tasks import reports as tasks
from tenants.models import Action
from tenants.scope import tenant_scope
from tests.support.factories import Cast
from tests.support.pages import signed_in, text
from tests.support.reports import days_ago, make

NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)  # a Sunday
ALL = ("day", "week", "month")


def decide(cast: Cast, *kinds: str, zone: str = "UTC", keep: int = 400) -> None:
    with tenant_scope(cast.tenant.id):
        change_schedule(Schedule(kinds, zone, keep))


def due_at(cast: Cast, now: datetime) -> dict[str, str]:
    with tenant_scope(cast.tenant.id):
        return {kind: day.isoformat() for kind, day in due(now).items()}


def create(cast: Cast, kind: str, now: datetime) -> Report | None:
    with tenant_scope(cast.tenant.id):
        of_one_moment()
        return create_due(kind, now)


def reports(cast: Cast) -> list[Report]:
    with tenant_scope(cast.tenant.id):
        return report_page(size=200).reports


def jobs(cast: Cast, status: str = "todo") -> list[str]:
    waiting = ProcrastinateJob.objects.filter(
        task_name="audit.tasks.make_report", args__tenant_id=str(cast.tenant.id), status=status
    )
    return sorted(job.args["kind"] for job in waiting)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[datetime]]:
    """The tasks' clock: the only element of the list, which tests may change."""
    now = [NOW]

    class Clock:
        @staticmethod
        def now() -> datetime:
            return now[0]

    monkeypatch.setattr(tasks, "timezone", Clock)
    yield now


def test_no_report_is_created_by_default(acme: Cast) -> None:
    with tenant_scope(acme.tenant.id):
        assert schedule() == Schedule((), "UTC", 400)
    assert due_at(acme, NOW) == {}
    assert create(acme, "day", NOW) is None


def test_last_whole_periods_are_due_once(acme: Cast) -> None:
    decide(acme, *ALL)
    assert due_at(acme, NOW) == {"day": "2026-11-21", "week": "2026-11-09", "month": "2026-10-01"}
    for kind in ALL:
        assert create(acme, kind, NOW) is not None
        assert create(acme, kind, NOW) is None
    assert due_at(acme, NOW) == {}
    assert {(one.kind, one.made_as, one.made_by) for one in reports(acme)} == {
        (kind, "schedule", "") for kind in ALL
    }


def test_day_is_due_shortly_after_the_midnight_of_the_tenant(acme: Cast) -> None:
    decide(acme, "day", zone="Asia/Kathmandu")
    midnight = datetime(2026, 11, 21, 18, 15, tzinfo=UTC)
    assert due_at(acme, midnight) == {"day": "2026-11-20"}
    assert due_at(acme, midnight + timedelta(minutes=14, seconds=59)) == {"day": "2026-11-20"}
    now = midnight + timedelta(minutes=15)
    assert due_at(acme, now) == {"day": "2026-11-21"}
    report = create(acme, "day", now)
    assert report is not None
    assert (report.of.start, report.of.end) == (midnight - timedelta(days=1), midnight)


def test_only_the_last_period_is_created_after_downtime(acme: Cast) -> None:
    decide(acme, "day")
    create(acme, "day", NOW)
    create(acme, "day", NOW + timedelta(days=9))
    assert [f"{one.of.start:%Y-%m-%d}" for one in reports(acme)] == ["2026-11-30", "2026-11-21"]


def test_changed_time_zone_creates_no_second_report_of_a_day(acme: Cast) -> None:
    decide(acme, "day")
    assert create(acme, "day", NOW) is not None
    decide(acme, "day", zone="Europe/Berlin")
    assert due_at(acme, NOW) == {}


def test_concurrent_workers_create_one_report(acme: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    decide(acme, "week")
    both = threading.Barrier(2, timeout=20)
    original = create_report
    results: list[Report | None] = []

    def together(*given: Any, **more: Any) -> Report | None:
        both.wait()
        return original(*given, **more)

    monkeypatch.setattr(schedules, "create_report", together)

    def work() -> None:
        try:
            results.append(create(acme, "week", NOW))
        finally:
            connections.close_all()

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sorted(one is None for one in results) == [False, True]
    assert len(reports(acme)) == 1


@pytest.mark.sampled("scheduled reports", 1)
@pytest.mark.slow
def test_tasks_create_due_reports_and_delete_expired_reports(
    acme: Cast, globex: Cast, clock: list[datetime]
) -> None:
    decide(acme, "day", "month", keep=40)
    old = make(signed_in(acme.editor), kind="day", day=days_ago(timezone.now(), 0))
    clock[0] = timezone.now() + timedelta(days=39)
    tasks.keep_reports(timestamp=0)
    tasks.keep_reports(timestamp=1)
    assert jobs(acme) == ["day", "month"]
    assert jobs(globex) == []
    assert old in {one.id for one in reports(acme)}
    for kind in ("day", "month", "month"):  # the second "month" is a stalled task that runs again
        tasks.make_report(str(acme.tenant.id), kind)
    assert sorted(one.kind for one in reports(acme)) == ["day", "day", "month"]
    clock[0] = timezone.now() + timedelta(days=41)
    tasks.keep_reports(timestamp=2)
    assert old not in {one.id for one in reports(acme)}
    assert len(reports(acme)) == 2


@pytest.mark.sampled("scheduled reports", 1)
@pytest.mark.slow
def test_worker_process_creates_scheduled_reports(acme: Cast) -> None:
    decide(acme, "day")
    tasks.keep_reports(timestamp=0)
    assert jobs(acme) == ["day"]
    # Only this queue: the worker must not work for tenants of other tests.
    worker = ["manage.py", "procrastinate", "worker", "--one-shot", "--queues", "reports"]
    command = [sys.executable, *worker]
    subprocess.run(command, cwd=settings.BASE_DIR, check=True, timeout=120, capture_output=True)
    assert jobs(acme) == []
    assert [one.made_as for one in reports(acme)] == ["schedule"]


def test_reports_are_deleted_after_400_days_by_default(acme: Cast) -> None:
    pk = make(signed_in(acme.editor), kind="day", day=days_ago(timezone.now(), 0))
    now = timezone.now()
    with tenant_scope(acme.tenant.id):
        assert forget_old(now + timedelta(days=399)) == []
    assert [one.id for one in reports(acme)] == [pk]
    with tenant_scope(acme.tenant.id):
        assert len(forget_old(now + timedelta(days=401))) == 1
    assert reports(acme) == []


def test_stored_report_cannot_be_changed(acme: Cast) -> None:
    from django.db import ProgrammingError

    make(signed_in(acme.editor), kind="day", day=days_ago(timezone.now(), 0))
    with (
        pytest.raises(ProgrammingError, match="permission denied"),
        tenant_scope(acme.tenant.id),
        connection.cursor() as cursor,
    ):
        cursor.execute("UPDATE report SET figures = '{}' WHERE tenant_id = %s", [acme.tenant.id])


def test_admin_changes_the_schedule_and_the_change_is_logged(acme: Cast) -> None:
    params = {"kinds": ["day", "month"], "time_zone": "Europe/Berlin", "keep_days": "90"}
    assert signed_in(acme.auditor).post("/reports/schedule", params).status_code == 403
    page = signed_in(acme.admin).post("/reports/schedule", params, follow=True)
    assert "daily, monthly" in text(page.content.decode())
    with tenant_scope(acme.tenant.id):
        assert schedule() == Schedule(["day", "month"], "Europe/Berlin", 90)
        action = Action.objects.get(tenant=acme.tenant, verb="report.schedule")
    assert (action.user_name, action.subject) == (acme.admin.username, "day, month")
    shown = text(signed_in(acme.viewer).get("/reports/").content.decode())
    assert "Daily, monthly, after midnight in Europe/Berlin." in shown
    assert "kept for 90 days" in shown
    signed_in(acme.admin).post("/reports/schedule", params | {"kinds": []})
    with tenant_scope(acme.tenant.id):
        assert schedule().kinds == []


@pytest.mark.parametrize(
    "wrong",
    [
        {"time_zone": "Mars/Olympus"},
        {"time_zone": "../../etc/passwd"},
        {"keep_days": "39"},
        {"keep_days": "99999999999"},
        {"kinds": ["hour"]},
        {"time_zone": "\x00"},
    ],
)
def test_invalid_schedule_changes_nothing(acme: Cast, wrong: dict[str, Any]) -> None:
    params = {"kinds": ["day"], "time_zone": "UTC", "keep_days": "400"} | wrong
    page = signed_in(acme.admin).post("/reports/schedule", params, follow=True)
    assert "Nothing changed." in text(page.content.decode())
    with tenant_scope(acme.tenant.id):
        assert schedule() == Schedule()
