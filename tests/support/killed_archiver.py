"""`python -m tests.support.killed_archiver TENANT STEP`: a worker that is killed while it archives.

It archives what is sealed four days later, and kills itself (SIGKILL) before the given line that it
runs of `audit/archive`. With step 0 it lives, and prints how many it ran.
"""

import os
import sys
from datetime import timedelta
from uuid import UUID

import django

from tests.support.killed_at_line import die_at_line


def main() -> None:
    """Do the work once."""
    tenant_id, last = UUID(sys.argv[1]), int(sys.argv[2])
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    django.setup()
    from django.utils import timezone

    from audit import archive
    from audit.archive.archiving import run_slice

    count = die_at_line(archive, last)
    while run_slice(tenant_id, timezone.now() + timedelta(days=4)):
        pass
    sys.stdout.write(f"{count()}\n")


if __name__ == "__main__":
    main()
