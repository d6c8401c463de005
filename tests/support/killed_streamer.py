"""`python -m tests.support.killed_streamer TENANT STEP`: a worker that is killed while it sends.

It sends what the tenant's streams have to send, and kills itself (SIGKILL) before the given line
that it runs of `audit/stream`, in any thread. With step 0 it lives, and prints how many it ran.
"""

import os
import sys
from uuid import UUID

import django

from tests.support.killed_at_line import die_at_line


def main() -> None:
    """Do the work once."""
    tenant_id, last = UUID(sys.argv[1]), int(sys.argv[2])
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    django.setup()
    from django.utils import timezone

    from audit import stream
    from audit.stream.sending import due_streams, run_slice
    from tenants.scope import tenant_scope

    count = die_at_line(stream, last)
    while True:
        with tenant_scope(tenant_id):
            due = due_streams(tenant_id, timezone.now())
        if not due or not run_slice([(tenant_id, pk) for pk in due], seconds=30):
            break
    sys.stdout.write(f"{count()}\n")


if __name__ == "__main__":
    main()
