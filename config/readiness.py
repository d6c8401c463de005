"""Whether this server may serve: what `/readyz` says, and the check at start.

The server is ready if the database answers, row-level security binds its role, and calls of the
next days have partitions. This module imports nothing of the intake, so that `manage.py up` starts
half a second sooner.
"""

from django.db import DatabaseError, connection
from django.utils import timezone

from audit.index import partitions
from config.instance import DRAINING
from config.postgresql.database import ROLE_QUERY, unfit_role
from config.postgresql.schema import SCHEMA, SchemaError

PARTITIONS_AHEAD_MIN = 3
"""Days. The worker keeps 14. With fewer than 3, an operator must find out why."""


def why_not_ready() -> list[str]:
    """Return why this server is not ready, one line each; empty if it is. Three queries.

    A server that is about to stop still serves, but is not ready: a load balancer should send
    requests elsewhere.
    """
    if DRAINING.exists():
        return ["stopping"]
    try:
        reasons = [reason] if (reason := why_unfit()) else []
        ahead = partitions.days_ahead(timezone.now().date(), using="default")
    except DatabaseError:
        # Anybody may read this, so the driver's text, which names hosts and users, is left out.
        return ["the database cannot be reached"]
    if ahead < PARTITIONS_AHEAD_MIN:
        reasons.append(
            f"partitions exist for {ahead} days ahead; at least {PARTITIONS_AHEAD_MIN} are needed"
        )
    return reasons


def why_unfit() -> str | None:
    """Return why this server must not serve: its role, or a schema newer than its code; or None.

    Raises DatabaseError.
    """
    try:
        SCHEMA.check()
    except SchemaError as error:
        return str(error)
    with connection.cursor() as cursor:
        cursor.execute(ROLE_QUERY)
        if (reason := unfit_role(*cursor.fetchone())) or not SCHEMA.is_distributed:
            return reason
        cursor.execute("SHOW citus.propagate_set_commands")
        (propagated,) = cursor.fetchone()
        if propagated != "local":
            return (
                "the database is distributed, and citus.propagate_set_commands is not 'local': its"
                " nodes would show no rows; run `distribute apply` again"
            )
        return None
