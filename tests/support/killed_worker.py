"""`python -m tests.support.killed_worker TENANT STEP`: a worker that is killed while it alerts.

It judges the rules of windows and of events, repeats messages of open alerts, and delivers. It
kills itself (SIGKILL) before the given line that it runs of `audit/alerts` and `audit/deliveries`;
with step 0 it lives, and prints how many lines it ran. With `--only-deliver` it only delivers.
"""

import os
import sys
from uuid import UUID

import django

from tests.support.killed_at_line import die_at_line


def main() -> None:
    """Do the work once."""
    tenant_id, last = UUID(sys.argv[1]), int(sys.argv[2])
    only_deliver = "--only-deliver" in sys.argv
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    django.setup()
    from audit import alerts, deliveries
    from audit.deliveries.delivering import run_slice
    from tests.support.alerts import judge_all

    end = die_at_line(alerts, last, deliveries)
    if not only_deliver:
        judge_all(tenant_id)
    run_slice(tenant_id)
    sys.stdout.write(f"{end()}\n")


if __name__ == "__main__":
    main()
