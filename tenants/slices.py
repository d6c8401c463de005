"""Long jobs of the worker, done in slices, so that other tasks get their turn.

A job is a row. The worker's task does one step after the other:

1. Lock the row. Is the job still wanted, and not over?
2. Read the next part from the row's cursor, and do it.
3. Write the results, move the cursor and the counts on, and commit: a worker that is killed
   anywhere has changed nothing, or done all of a step.
4. Go on until the slice is over. Then defer the task once more, or note the end.

A second worker on the same job waits at 1, and goes on where the first one was.
"""

import time
from collections.abc import Callable
from datetime import datetime
from typing import Any, Final

from django.db import models

SLICE_SECONDS: Final = 3.0


class JobState(models.TextChoices):
    """The state of a job. A job that waits for somebody's word between its two parts (an erasure,
    an import) has states of its own.
    """

    WAITING = "waiting", "Waiting"
    RUNNING = "running", "Running"
    DONE = "done", "Done"
    FULL = "full", "Full"
    """It found as much as it may."""
    PASSED = "passed", "Passed"
    """A check that found nothing wrong; one that did is FAILED."""
    CANCELLED = "cancelled", "Cancelled"
    FAILED = "failed", "Failed"


UNDER_WAY: Final = (JobState.WAITING, JobState.RUNNING)


def run_slice(step: Callable[[float], bool], seconds: float) -> bool:
    """Do one step after the other for a while; True if there is more to do.

    A step returns whether there is more to do. It is given the slice's end by `time.monotonic`.
    """
    deadline = time.monotonic() + seconds
    while step(deadline):
        if time.monotonic() >= deadline:
            return True
    return False


def end_jobs(jobs: models.QuerySet[Any], state: JobState, now: datetime, **values: Any) -> bool:
    """End those of some jobs that are under way; False if there are none."""
    under_way = jobs.filter(state__in=UNDER_WAY)
    return bool(under_way.update(state=state, finished_at=now, **values))


def percent(part: float, whole: float) -> int:
    """How far a job under way is, from 0 to 99: it is over before it is at 100."""
    return max(0, min(99, int(100 * part / whole))) if whole > 0 else 0
