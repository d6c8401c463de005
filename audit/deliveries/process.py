"""Run the process that sends, with an environment that has only what it needs."""

import json
import logging
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict

from audit.deliveries.sender.__main__ import DEADLINE_S
from audit.deliveries.sender.job import Answer, Job
from config.instance import BASE_DIR

_log = logging.getLogger(__name__)
# Neither addresses of databases nor keys. No proxy, and no home with a .netrc: both would be used
# without our asking.
_PASSED_ON = (
    *("TOOLTRAIL_DELIVERY_ALLOW", "TOOLTRAIL_DELIVERY_ALLOW_FILE"),
    *("SSL_CERT_FILE", "SSL_CERT_DIR", "LD_LIBRARY_PATH"),
)
_START_S = 20.0
"""How long it may take to start on a busy machine, beside its own deadline."""


def send(jobs: Sequence[Job]) -> dict[str, Answer]:
    """Send all jobs at once, each in a thread. Returns the answers by job; some may be missing.

    Takes at most half a minute. A job without an answer may have been delivered.
    """
    if not jobs:
        return {}
    lines = "".join(f"{json.dumps(asdict(job))}\n" for job in jobs)
    try:
        done = subprocess.run(  # our own module
            [sys.executable, "-B", "-m", "audit.deliveries.sender"],
            cwd=BASE_DIR,
            env=environment(),
            input=lines.encode(),
            stdout=subprocess.PIPE,
            timeout=DEADLINE_S + _START_S,
            check=False,
        )
        output = done.stdout
    except subprocess.TimeoutExpired as error:
        _log.error("the process that sends did not end, so it was killed")
        output = error.stdout or b""
    whole = output.split(b"\n")[:-1]  # a killed process may leave half a line
    answers = [Answer(**json.loads(line)) for line in whole]
    return {answer.id: answer for answer in answers}


def environment() -> Mapping[str, str]:
    """The environment of the process that sends."""
    kept = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
    return {**kept, "HOME": "/nonexistent", "PYTHONUTF8": "1"}
