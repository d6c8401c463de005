"""Clock skew is measured and shown, and times are never corrected."""

from datetime import UTC, datetime, timedelta

import pytest

from audit.models import Invocation
from tenants.scope import tenant_scope
from tests.support.event_requests import Answer, lines, post
from tests.support.factories import Cast, make_call, make_ingest_key
from tests.support.pages import signed_in, text
from tests.support.recount import assert_consistent

NOW = datetime.now(UTC)
HOUR = timedelta(hours=1)


def send(cast: Cast, started_at: datetime, ended_at: datetime) -> tuple[Answer, str]:
    """Send a call with these times; return the response and the call's id."""
    start, end = make_call(started_at=started_at)
    end |= {"ended_at": ended_at.isoformat()}
    return post(make_ingest_key(cast.tenant), lines([start, end])), start["invocation_id"]


def page_of(cast: Cast, started_at: datetime, invocation_id: str) -> str:
    day = started_at.date().isoformat()
    answer = signed_in(cast.viewer).get(f"/calls/{day}/{invocation_id}")
    assert answer.status_code == 200
    return text(answer.content.decode())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("started_at", "ended_at", "note"),
    [
        (NOW - HOUR, NOW - HOUR + timedelta(seconds=2), ""),
        (NOW + 2 * HOUR, NOW + 3 * HOUR, "the producer's clock is ahead"),
        (NOW - HOUR, NOW + HOUR, "the producer's clock is ahead"),
        (NOW - HOUR, NOW - 2 * HOUR, "the producer's clock was set back"),
        (NOW + 4 * HOUR, NOW + 2 * HOUR, "is ahead of the server's. It ended 2 h"),
    ],
)
def test_skewed_times_are_kept_and_noted_on_the_call_page(
    acme: Cast, started_at: datetime, ended_at: datetime, note: str
) -> None:
    answer, invocation_id = send(acme, started_at, ended_at)
    assert answer.json()["accepted"] == 2
    with tenant_scope(acme.tenant.id):
        call = Invocation.objects.for_tenant(acme.tenant.id).get(invocation_id=invocation_id)
    assert (call.started_at, call.ended_at) == (started_at, ended_at)
    page = page_of(acme, started_at, invocation_id)
    assert note in page
    assert ("Times are shown as reported." in page) is bool(note)
    assert_consistent(acme.tenant)


@pytest.mark.parametrize(
    ("started_at", "ended_at", "codes"),
    [
        (NOW + 25 * HOUR, NOW + 26 * HOUR, ["in_future", "in_future"]),
        (NOW + 20 * HOUR, NOW + 25 * HOUR, ["in_future"]),
        (NOW, NOW - 25 * HOUR, ["ended_before_started"]),
    ],
)
def test_skew_over_one_day_is_rejected(
    acme: Cast, started_at: datetime, ended_at: datetime, codes: list[str]
) -> None:
    answer, _ = send(acme, started_at, ended_at)
    assert [each["code"] for each in answer.json()["rejected"]] == codes
    assert answer.json()["accepted"] == 2 - len(codes)
