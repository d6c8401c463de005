"""Kinds of tampering with a tenant's record, and who finds each."""

from tests.support.tampering import (
    entries,
    files,
    hosts,
    incidents,
    log,
    refusals,
    rows,
    samples,
    tree,
)
from tests.support.tampering.kinds import Tampering

PARTS = {
    "The log": log,
    "Derived from the log": tree,
    "Actions and entries": entries,
    "Rows": rows,
    "The host": hosts,
    "The file of a bundle": files,
    "A sample in a bundle": samples,
    "An incident in a bundle": incidents,
    "What the database refuses": refusals,
}
"""The parts of the table, and the modules with their kinds."""


def all_kinds() -> list[Tampering]:
    """Every kind. Needs the database: it says who may write what."""
    return [kind for module in PARTS.values() for kind in module.kinds()]
