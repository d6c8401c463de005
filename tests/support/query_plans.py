"""What a query plan of PostgreSQL reads."""

import re
from datetime import UTC, date, datetime


def days_read(plan: str, table: str = "invocation") -> set[date]:
    """The days whose partitions a plan reads."""
    return {
        datetime.strptime(day, "%Y%m%d").replace(tzinfo=UTC).date()
        for day in re.findall(rf" on {table}_(\d{{8}})", plan)
    }


def index_conditions(plan: str) -> str:
    """The index conditions of a plan, a line each."""
    return "\n".join(re.findall(r"Index Cond: .*", plan))
