"""Long jobs of the worker, run in slices, so that other tasks get their turn.

A job is a row. The worker's task runs these steps:

1. Lock the row. Check that the job is neither cancelled nor finished.
2. Read the next part from the row's cursor and process it.
3. Write the results, advance the cursor and the counts, and commit. So a worker that is killed
   has either changed nothing or completed a whole step.
4. Repeat until the slice is over. Then defer the task again, or record the end.

A second worker on the same job waits at step 1 and continues where the first one stopped.
"""

import time
from collections.abc import Callable
from datetime import datetime
from typing import Any, Final

from django.db import models

SLICE_SECONDS: Final = 3.0


class JobState(models.TextChoices):
    """The state of a job.

    A job that waits for a confirmation between its two parts (an erasure, an import) has states
    of its own.
    """

    WAITING = "waiting", "Waiting"
    RUNNING = "running", "Running"
    DONE = "done", "Done"
    FULL = "full", "Full"
    """It stopped, because it reached the maximum number of results."""
    PASSED = "passed", "Passed"
    """A check without findings; a check with findings is FAILED."""
    CANCELLED = "cancelled", "Cancelled"
    FAILED = "failed", "Failed"


UNDER_WAY: Final = (JobState.WAITING, JobState.RUNNING)


def run_slice(step: Callable[[float], bool], seconds: float) -> bool:
    """Run steps until `seconds` have passed or the job is finished; True if more is to do.

    A step gets the end of the slice (`time.monotonic`) and returns whether more is to do.
    """
    deadline = time.monotonic() + seconds
    while step(deadline):
        if time.monotonic() >= deadline:
            return True
    return False


def end_jobs(jobs: models.QuerySet[Any], state: JobState, now: datetime, **values: Any) -> bool:
    """Set the end state of those of `jobs` that are waiting or running; False if none is."""
    under_way = jobs.filter(state__in=UNDER_WAY)
    return bool(under_way.update(state=state, finished_at=now, **values))


def end_older(jobs: models.QuerySet[Any], keep: int, now: datetime) -> None:
    """Make room for a new one: cancel those under way, delete all but the newest `keep - 1`."""
    end_jobs(jobs, JobState.CANCELLED, now)
    delete_older(jobs, keep)


def delete_older(jobs: models.QuerySet[Any], keep: int) -> None:
    """Make room for a new one beside those under way: delete all but the newest `keep - 1`."""
    old = jobs.order_by("-id").values_list("id", flat=True)[keep - 1 :]
    jobs.filter(id__in=list(old)).delete()


def percent(part: float, whole: float) -> int:
    """Progress of a running job, 0 to 99; only a finished job is at 100."""
    return max(0, min(99, int(100 * part / whole))) if whole > 0 else 0
