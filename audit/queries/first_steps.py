"""What a tenant has done of the first steps: from rows that exist, so that nothing is stored."""

from dataclasses import dataclass
from datetime import date, datetime
from uuid import UUID

from audit.sql.run import rows


@dataclass(frozen=True, slots=True)
class NewestCall:
    """The call that started last."""

    tool_name: str
    trace_id: str
    invocation_id: UUID
    started_on: date
    started_at: datetime


@dataclass(frozen=True, slots=True)
class Progress:
    """Which steps are done."""

    has_key: bool
    """A key works that may send events."""
    has_sent: bool
    """Such a key was used, whatever came of it."""
    has_schema: bool
    """A tool has a published version."""
    has_alert_rule: bool
    has_company: bool
    """Another person is a member or is invited."""
    newest: NewestCall | None


def progress_of(user_id: int, now: datetime) -> Progress:
    """The progress of the open scope's tenant, as this member sees it. One statement."""
    ((has_key, has_sent, has_schema, has_alert_rule, has_company, *call),) = rows(
        "first_steps", {"user_id": user_id, "now": now}
    )
    newest = None if call[0] is None else NewestCall(*call)
    return Progress(has_key, has_sent, has_schema, has_alert_rule, has_company, newest)
