"""`python -m tests.support.killed_streamer TENANT STEP`: a worker that is killed while it sends.

It sends what the tenant's streams have to send, and kills itself (SIGKILL) before the given line
that it runs of `audit/stream`, in any thread. With step 0 it lives, and prints how many it ran.
"""

import os
import signal
import sys
import threading
from pathlib import Path
from types import FrameType
from typing import Any
from uuid import UUID

import django


def main() -> None:
    """Do the work once."""
    tenant_id, last = UUID(sys.argv[1]), int(sys.argv[2])
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    django.setup()
    from django.utils import timezone

    from audit import stream
    from audit.stream.sending import due_streams, run_slice
    from tenants.scope import tenant_scope

    folder = str(Path(stream.__file__ or "").parent)
    count = 0

    def trace(frame: FrameType, event: str, _argument: Any) -> Any:
        nonlocal count
        if not frame.f_code.co_filename.startswith(folder):
            return None
        if event == "line":
            count += 1
            if count == last:
                os.kill(os.getpid(), signal.SIGKILL)
        return trace

    threading.settrace(trace)
    sys.settrace(trace)
    while True:
        with tenant_scope(tenant_id):
            due = due_streams(tenant_id, timezone.now())
        if not due or not run_slice([(tenant_id, pk) for pk in due], seconds=30):
            break
    sys.settrace(None)
    sys.stdout.write(f"{count}\n")


if __name__ == "__main__":
    main()
