"""Python and the SQL function `call_is_held` agree on which calls a hold covers."""

import random
from datetime import UTC, datetime, timedelta
from itertools import product
from typing import Any
from uuid import UUID

import pytest

from audit.models import Invocation, LegalHold
from audit.retention.hold_match import covers_call
from audit.sql import arrays
from audit.sql.run import run
from tenants.models import new_id
from tenants.scope import tenant_scope
from tests.support.factories import Cast, make_call, send_events

NOW = datetime.now(UTC).replace(microsecond=0)
TEXTS = ("a", "b")
INSTANTS = tuple(NOW - timedelta(hours=1, microseconds=n) for n in range(3))
HOLDS = 200


def some_hold(tenant_id: UUID, chance: random.Random) -> LegalHold:
    """A random hold; at least one of its members is set."""
    while True:
        texts = (None, *TEXTS, "of no call")
        members: dict[str, Any] = {
            **{name: chance.choice(texts) for name in ("trace_id", "case_id", "tool_name")},
            **{name: chance.choice((None, None, *INSTANTS)) for name in ("since", "until")},
        }
        if any(value is not None for value in members.values()):
            break
    return LegalHold(
        tenant_id=tenant_id, id=new_id(), name="n", reason="r", set_at=NOW, set_by="x", **members
    )


@pytest.mark.sampled("arbitrary input to the database", 2)
@pytest.mark.slow
def test_python_and_sql_agree_on_held_calls(acme: Cast) -> None:
    calls = product(TEXTS, (None, *TEXTS), TEXTS, INSTANTS)
    send_events(
        acme.tenant,
        [
            event
            for trace_id, case_id, tool_name, at in calls
            for event in make_call(
                trace_id=trace_id, case_id=case_id, tool_name=tool_name, started_at=at
            )
        ],
    )
    chance = random.Random(7)
    covered = 0
    with tenant_scope(acme.tenant.id):
        stored = list(Invocation.objects.for_tenant(acme.tenant.id))
        ids = arrays.uuids([call.invocation_id for call in stored])
        for _ in range(HOLDS):
            hold = some_hold(acme.tenant.id, chance)
            by_python = {
                call.invocation_id
                for call in stored
                if covers_call(hold, call.trace_id, call.case_id, call.tool_name, call.started_at)
            }
            hold.save(force_insert=True)
            by_sql = run(
                "held_calls",
                tenant_id=acme.tenant.id,
                first_day=(NOW - timedelta(days=1)).date(),
                last_day=NOW.date(),
                invocation_ids=ids,
            )
            assert {row[0] for row in by_sql} == by_python, hold.__dict__
            LegalHold.objects.for_tenant(acme.tenant.id).filter(id=hold.id).update(
                released_at=NOW, released_by="x", release_reason="r"
            )
            covered += bool(by_python)
    assert len(stored) == 36
    assert HOLDS // 10 < covered < HOLDS, "the holds cover all calls or none"
