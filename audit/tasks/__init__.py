"""The worker's tasks for `audit`, periodic and deferred.

A task keeps its name, `audit.tasks.NAME`, wherever it lies: during an upgrade old workers run new
jobs, and new workers old ones.
"""

from audit.tasks import (
    alerts,
    archives,
    installation,
    ledgers,
    reports,
    requested,
    streams,
    tenants,
)

__all__ = [
    "alerts",
    "archives",
    "installation",
    "ledgers",
    "reports",
    "requested",
    "streams",
    "tenants",
]
