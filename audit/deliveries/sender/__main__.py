"""`python -m audit.deliveries.sender`: reads jobs, one a line, and writes an answer for each.

It has no secrets but those in the jobs, and nothing of the environment but what
`audit.deliveries.process` passes on. It ends within `DEADLINE_S`.
"""

import json
import os
import sys
import threading
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import asdict

from audit.deliveries.sender import guard
from config import env

DEADLINE_S = 10.0
_print_lock = threading.Lock()


def main() -> None:
    """Send all jobs at once, and do not wait longer than the deadline."""
    # Before the libraries are loaded: what they do at import is guarded, too.
    guard.install(env.openings("TOOLTRAIL_DELIVERY_ALLOW"))
    from audit.deliveries.sender.attempt import attempt
    from audit.deliveries.sender.job import Job

    jobs = [Job(**json.loads(line)) for line in sys.stdin]

    def run(job: Job) -> None:
        answer = json.dumps(asdict(attempt(job)))
        with _print_lock:
            sys.stdout.write(f"{answer}\n")
            sys.stdout.flush()

    pool = ThreadPoolExecutor(max_workers=max(1, len(jobs)))
    wait([pool.submit(run, job) for job in jobs], timeout=DEADLINE_S)
    os._exit(0)  # a thread that still waits for its receiver must not keep us


if __name__ == "__main__":
    main()
