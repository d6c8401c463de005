"""What the worker does for `audit`, on its own time."""

import logging

from django.db import connections
from django.utils import timezone
from procrastinate.contrib.django import app

from audit import partitions

_log = logging.getLogger(__name__)


# Hourly, though two weeks lie ahead: a worker that was away for long catches up soon.
@app.periodic(cron="7 * * * *")
@app.task(queueing_lock="keep_partitions_ahead")
def keep_partitions_ahead(timestamp: int) -> None:
    """Make the day partitions that should exist and do not. Needs the owner's address."""
    if "owner" not in connections:
        _log.warning("DATABASE_OWNER_URL is not set: partitions must be made by others")
        return
    missing = partitions.missing(timezone.now().date())
    partitions.apply(missing)
    if missing:
        _log.info("made %d partitions, up to %s", len(missing), missing[-1].day)
