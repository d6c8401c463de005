"""Compare the tenant's rows with what the entries of the ledger say about them.

Actions name the rows that they changed, with digests, and so do entries about definitions; the
baseline names those of before. The last entry that names a row is what the row must be. So a row
that somebody changed, inserted or deleted in the database, without an action, differs. Without a
baseline nothing is compared.
"""

from collections.abc import Collection, Iterator
from contextlib import suppress
from uuid import UUID

import msgspec
from django.db import models
from tooltrail.ledger import Kind

from audit.ledger.own_entries import own_entries
from tenants.models import Action
from tenants.row_digests import RowDigests, ledger_id, proved_models, row_name, stored_digests

_TABLES = {
    "alert": "alert",
    "alert_rule": "alert rule",
    "alert_channel": "channel of alerts",
    "api_key": "API key",
    "archive": "archive",
    "audit_sample": "sample",
    "audit_sample_call": "drawn call of a sample",
    "definition": "definition",
    "definition_change": "change of a definition",
    "erasure": "erasure",
    "floor_request": "request to lower the retention floor",
    "incident": "incident",
    "invitation": "invitation",
    "legal_hold": "legal hold",
    "maintenance_window": "maintenance window",
    "membership": "membership",
    "note": "note",
    "polling_tool": "polling tool",
    "price_list": "price list",
    "report": "report",
    "report_schedule": "schedule of reports",
    "served_definition": "definition of a server",
    "share_link": "share link",
    "stream": "stream",
    "tenant": "tenant",
    "tenant_setting": "settings of the tenant",
    "tool": "tool",
    "tool_change": "change of a tool",
    "tool_draft": "draft of a tool",
    "tool_version": "version of a tool",
}
"""What a table's rows are, for messages."""


class _Named(msgspec.Struct):
    rows: dict[str, str | None] = {}


def unexplained(tenant_id: UUID, models: Collection[type[models.Model]] | None = None) -> list[str]:
    """One message for each row that differs from what the entries say. Needs the tenant's scope.

    Reads all entries that the server itself made, and all proved rows, or those of some models.
    Rows may change while this reads, so differences count only if a second reading finds them,
    too.
    """
    of = proved_models() if models is None else models
    first = set(_differences(tenant_id, of))
    return sorted(first.intersection(_differences(tenant_id, of))) if first else []


def _differences(tenant_id: UUID, of: Collection[type[models.Model]]) -> Iterator[str]:
    stored: dict[type[models.Model], dict[str, str]] = {}
    for model in of:
        try:
            stored[model] = dict(stored_digests(tenant_id, model))
        except ValueError:  # only who writes to the database directly can store such a row
            kind = _TABLES.get(model._meta.db_table, model._meta.db_table)
            yield f"a {kind} was changed: it has a document that is no JSON"
    named: RowDigests = {}
    baselines: list[RowDigests] = []
    for entry in own_entries(tenant_id, {Kind.ACTION, Kind.DEFINITION, Kind.BASELINE}):
        with suppress(msgspec.MsgspecError, ValueError, RecursionError):
            digests = msgspec.json.decode(entry.raw, type=_Named).rows
            if entry.kind is not Kind.BASELINE:
                named |= digests
                continue
            baselines.append(digests)
            if len(baselines) > 1:  # it would explain what was forged before it
                yield f"entry {entry.index:,} is a second baseline, which does not count"
    if not baselines:
        return
    waiting = Action.objects.filter(tenant_id=tenant_id, ledger_index=None).order_by("at", "id")
    for digests in waiting.values_list("rows", flat=True):
        named |= digests
    expected = baselines[0] | named
    for model, rows in stored.items():
        new = {name for name in rows if expected.get(name) is None}
        for name in new - (_exempt(tenant_id, model) if new else set()):
            yield _message(name, "was inserted")
        changed = (name for name in rows if expected.get(name) not in (None, rows[name]))
        for name in changed:
            yield _message(name, "was changed")
    there = set().union(*stored.values())
    tables = {model._meta.db_table for model in stored}
    for name, digest in expected.items():
        if digest is not None and name not in there and name.partition("/")[0] in tables:
            yield _message(name, "was deleted")


def _exempt(tenant_id: UUID, model: type[models.Model]) -> set[str]:
    """The rows of a model that no entry needs to name."""
    exempt = getattr(model, "ledger_exempt", None)
    if exempt is None:
        return set()
    rows = model._base_manager.filter(exempt, tenant_id=tenant_id)
    return {row_name(model, each) for each in rows.values_list(*ledger_id(model))}


def _message(name: str, what: str) -> str:
    table, _, row_id = name.partition("/")
    return f"the {_TABLES.get(table, table)} {row_id} {what}, and no entry of the ledger says so"
