"""Who finds a tampering: the signer, the server's checks, and the auditor's commands.

Each runs what the product runs: nothing is patched.
"""

from collections.abc import Callable
from datetime import timedelta
from enum import StrEnum
from pathlib import Path

from django.utils import timezone
from tooltrail.evidence import Archive, UnreadableError, verify
from tooltrail.evidence.watch import Watch
from tooltrail.ledger import LedgerError

from audit.evidence.bundling import Wanted, bundle
from audit.evidence.ledger_range import NotSignedError, ledger_range_of
from audit.index.reindex import reindex
from audit.index.shadow import KEYS
from audit.ledger import checks
from audit.ledger.status import ledger_status
from audit.reports import queries
from tenants.scope import tenant_scope
from tests.support.tampering.published import NothingPublishedError, Published
from tests.support.tampering.record import Record


class Finder(StrEnum):
    """What can find a tampering, in the order in which it runs."""

    DATABASE = "database"
    """It refuses the statement."""
    SIGNER = "signer"
    """The worker refuses to sign (`manage.py ledger status`)."""
    CHECK = "check"
    """*Verify this tenant now*."""
    INDEX = "index"
    """`manage.py reindex --check`."""
    BUNDLE = "bundle"
    """`tooltrail verify` of a bundle made afterwards, with a key kept from before."""
    KEPT = "kept"
    """The same with checkpoints kept from before, if nothing else in the bundle shows it."""
    RECEIPT = "receipt"
    """The same with what the server acknowledged to an executor, likewise."""
    WATCH = "watch"
    """`tooltrail watch`, which ran before and runs again."""


_KEPT_BY = {"previous": Finder.KEPT, "acknowledged": Finder.RECEIPT}
"""Checks of a bundle that need more than the bundle and a key."""
_READ_BY_REINDEX = {"batch", "ledger_head", "tenant_setting", *KEYS}
"""What `reindex` reads. In a sample it does not run if none of these was touched: it is slow."""

type Explain = Callable[[str], None]
"""Takes what a finder says."""


def found_by(record: Record, explain: Explain) -> set[Finder]:
    """Who finds something in the record as it is now. The worker must have run before."""
    finders = set()
    with tenant_scope(record.tenant_id):
        refusal = ledger_status(record.tenant_id).refusal
    if refusal is not None:
        explain(f"signer: {refusal}")
        finders.add(Finder.SIGNER)
    for finder, find in ((Finder.CHECK, _check), (Finder.INDEX, _reindex), (Finder.WATCH, _watch)):
        if findings := find(record):
            explain(f"{finder}: {findings}")
            finders.add(finder)
    return finders | verified(record, make_bundle(record), explain)


def verified(record: Record, path: Path | None, explain: Explain) -> set[Finder]:
    """What `tooltrail verify` finds in a bundle, with the auditor's key and checkpoints."""
    if path is None:
        explain("bundle: none can be made")
        return {Finder.BUNDLE}
    try:
        with Archive(path) as archive:
            kept = list(record.kept.values())
            verdict = verify(
                archive,
                trusted=[record.key],
                previous=kept,
                acknowledged=record.acknowledged,
            )
    except (UnreadableError, LedgerError) as error:
        explain(f"bundle: {error}")
        return {Finder.BUNDLE}
    failed = {check.name for check in verdict.checks if check.problem_count}
    if failed:
        explain("\n".join(verdict.lines()))
    if failed - _KEPT_BY.keys():
        return {Finder.BUNDLE}
    return {_KEPT_BY[name] for name in failed}


def _check(record: Record) -> list[str]:
    record.run("DELETE FROM ledger_check WHERE tenant_id = %(tenant)s")  # none is under way
    with tenant_scope(record.tenant_id):
        started = checks.start_check("auditor", timezone.now())
    assert started is not None
    while checks.run_slice(record.tenant_id, started.id):
        pass
    with tenant_scope(record.tenant_id):
        check = checks.find_check(started.id)
    assert check is not None
    return list(check.findings)


def _reindex(record: Record) -> list[str]:
    if not (record.is_thorough or record.touched & _READ_BY_REINDEX):
        return []
    report = reindex(record.tenant_id, repair=False, progress=lambda done, size: None)
    return [*report.log_faults, *report.index_faults, *map(str, report.comparison.examples)]


def _watch(record: Record) -> list[str]:
    try:
        seen = Watch(record.watched).observe(Published(record.tenant_id), timezone.now())
    except NothingPublishedError as error:
        return [str(error)]
    return [seen.message] if seen.outcome in ("restarted", "altered") else []


def make_bundle(record: Record, *, age: timedelta = timedelta(0)) -> Path | None:
    """Make a bundle of everything, as if it was made `age` ago; None if the server cannot."""
    path = record.bundle.with_name("later.zip")
    try:
        with tenant_scope(record.tenant_id):
            ledger_range = ledger_range_of(record.of)
            report = queries.find_report(record.report_id) if record.report_id else None
        wanted = Wanted(
            record.cast.tenant,
            ledger_range,
            record.of,
            "auditor",
            timezone.now() - age,
            report=report,
            previous=list(record.kept),
        )
        path.write_bytes(b"".join(bundle(wanted)))
    except NotSignedError:
        return None
    return path
