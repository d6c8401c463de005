"""Imports: a file is previewed and, after a confirmation, imported tool by tool.

An import is a job in slices (`tenants.slices`). Each tool of its file has a row of its own. A step
previews the next few tools, or imports the next one. A small file is processed within the request.

A tool is imported exactly as previewed. If the plan has changed since, the tool is refused and can
be previewed again. Contracts that already exist change nothing; so after a cancelled import or
refused tools, preview and confirm the same import again.
"""

import json
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

from django.utils import timezone

from tenants import slices
from tenants.models import Tenant, User
from tenants.scope import tenant_scope
from tenants.slices import SLICE_SECONDS
from tools_registry.changes import Publisher
from tools_registry.exchange.applying import Way, import_tool
from tools_registry.exchange.document import ReadTool
from tools_registry.exchange.planning import plan_tool, stored_tools
from tools_registry.exchange.reading import Entry, OpenDocument
from tools_registry.exchange.summary import summarize
from tools_registry.models import ImportedTool, ImportState, ToolImport

AT_ONCE_BYTES: Final = 256 * 1024
AT_ONCE_TOOLS: Final = 50
"""Limits of a file that is processed within the request; they are of size, not of time."""
KEPT_FOR: Final = timedelta(days=1)
CHUNK: Final = 20
"""Tools previewed in one transaction."""
UNDER_WAY: Final = (ImportState.PREVIEWING, ImportState.IMPORTING)

_ROWS_AT_ONCE: Final = 500


def is_large(document: OpenDocument) -> bool:
    """Whether the file is too large to be processed within the request."""
    return document.size > AT_ONCE_BYTES or len(document.entries) > AT_ONCE_TOOLS


def start_import(
    tenant: Tenant,
    document: OpenDocument,
    created_by: str,
    *,
    as_drafts: bool | None = None,
    way: Way | None = None,
) -> ToolImport:
    """Store a file for a preview or, with `way`, for import without one. Needs the tenant's scope.

    The caller continues: it defers the task, or calls `run_at_once` for a small file. `as_drafts`
    is the preselected choice; default: drafts, unless the file is an export of a registry.
    Deletes imports older than `KEPT_FOR`.
    """
    ToolImport.objects.filter(created_at__lt=timezone.now() - KEPT_FOR).delete()
    kept = ToolImport(
        tenant=tenant,
        created_by=created_by,
        forms=list(document.forms),
        note=document.note,
        is_large=is_large(document),
        as_drafts=not document.is_own if as_drafts is None else as_drafts,
        state=ImportState.PREVIEWING,
        tool_count=len(document.entries),
    )
    if way is not None:
        _enter(kept, way)
    if not document.entries:
        _finish(kept)
    kept.save(force_insert=True)
    in_turn = sorted(enumerate(document.entries), key=lambda pair: pair[1].name)
    ImportedTool.objects.bulk_create(
        [
            ImportedTool(
                tenant_id=tenant.pk,
                import_id=kept.pk,
                ordinal=ordinal,
                position=position,
                path=entry.path,
                twin=entry.twin,
                is_own=entry.is_own,
                content=json.dumps(entry.content),
            )
            for ordinal, (position, entry) in enumerate(in_turn)
        ],
        batch_size=_ROWS_AT_ONCE,
        ignore_conflicts=True,
    )
    return kept


def preview_again(kept: ToolImport) -> bool:
    """Restart the preview; False while preview or import is running. Needs the tenant's scope."""
    again = ToolImport.objects.filter(pk=kept.pk).exclude(state__in=UNDER_WAY)
    nobody = {"user_id": None, "user_name": "", "key_id": "", "reason": ""}
    if not again.update(state=ImportState.PREVIEWING, done_count=0, finished_at=None, **nobody):
        return False
    _tools(kept).update(drafts=None, published=None, outcome=None)
    return True


def confirm_import(kept: ToolImport, way: Way) -> bool:
    """Start importing as previewed; False unless it waits for that. Needs the tenant's scope."""
    waiting = ToolImport.objects.filter(pk=kept.pk, finished_at=kept.finished_at)
    locked = waiting.filter(state=ImportState.PREVIEWED).select_for_update().first()
    if locked is None:
        return False
    _enter(locked, way)
    locked.save()
    return True


def cancel_import(kept: ToolImport, now: datetime) -> bool:
    """Cancel a running import or preview; imported tools stay. False if none is running."""
    changed = ToolImport.objects.filter(pk=kept.pk, state__in=UNDER_WAY).update(
        state=ImportState.CANCELLED, finished_at=now
    )
    return bool(changed)


def run_slice(tenant_id: UUID, pk: UUID, *, seconds: float = SLICE_SECONDS) -> bool:
    """Continue an import for `seconds`; True if more is to do."""
    return slices.run_slice(lambda _: _run_chunk(tenant_id, pk), seconds)


def run_at_once(kept: ToolImport) -> None:
    """Finish a small import in the caller's transaction, and reload `kept`."""
    while _run_chunk(kept.tenant_id, kept.pk):
        pass
    kept.refresh_from_db()


def outcomes(kept: ToolImport, *, as_drafts: bool) -> list[tuple[dict[str, Any] | None, str]]:
    """Summary and path of each tool, in the file's order. One query.

    Before the confirmation the summary is the preview, as drafts or published; afterwards it is
    the outcome. None: not processed yet.
    """
    wanted = "outcome" if kept.is_confirmed else "drafts" if as_drafts else "published"
    return list(_tools(kept).order_by("position").values_list(wanted, "path"))


def _enter(kept: ToolImport, way: Way) -> None:
    """Set the state of a confirmed import, with its publisher and reason."""
    kept.state, kept.done_count, kept.finished_at = ImportState.IMPORTING, 0, None
    kept.as_drafts, kept.reason = way.as_drafts, way.reason
    kept.user_id = way.by.user.pk if way.by.user else None
    kept.user_name, kept.key_id = way.by.user_name, way.by.key_id


def _run_chunk(tenant_id: UUID, pk: UUID) -> bool:
    """Preview the next few tools, or import the next one, in one transaction; False at the end."""
    with tenant_scope(tenant_id):
        kept = ToolImport.objects.filter(tenant_id=tenant_id, pk=pk).select_for_update().first()
        if kept is None or kept.state not in UNDER_WAY:
            return False
        left = _tools(kept).filter(ordinal__gte=kept.done_count).order_by("ordinal")
        if kept.state == ImportState.PREVIEWING:
            kept.done_count += _preview(kept, list(left[:CHUNK]))
        else:
            kept.done_count += _carry_out(kept, list(left[:1]))
        if kept.done_count >= kept.tool_count:
            _finish(kept)
        kept.save()
        return kept.state in UNDER_WAY


def _preview(kept: ToolImport, tools: list[ImportedTool]) -> int:
    """Store the previews of some tools, both as drafts and published; returns their number."""
    read = [_read(tool) for tool in tools]
    stored = stored_tools(kept.tenant_id, {one.name for one in read})
    for tool, one in zip(tools, read, strict=True):
        here = stored.get(one.name)
        drafts, published = (plan_tool(one, here, as_drafts=way) for way in (True, False))
        if drafts.becomes is not None and published.becomes is drafts.becomes:
            published.diff = drafts.diff  # computing it may take long
        tool.drafts, tool.published = summarize(drafts), summarize(published)
        tool.save(update_fields=["drafts", "published"])
    return len(tools)


def _carry_out(kept: ToolImport, tools: list[ImportedTool]) -> int:
    """Import or refuse some tools and store the outcomes; returns their number."""
    by = Publisher(key_id=kept.key_id)
    if kept.user_name:
        user = User.objects.filter(pk=kept.user_id).first() if kept.user_id else None
        by = Publisher(user) if user else Publisher(operator=kept.user_name)
    way = Way(kept.as_drafts, by, kept.reason)
    for tool in tools:
        previewed = tool.drafts if way.as_drafts else tool.published
        expected = previewed["fingerprint"] if previewed else None
        imported = import_tool(kept.tenant, _read(tool), way, expected=expected)
        if previewed and imported.tool and not imported.problems and imported.steps:  # as previewed
            tool.outcome = {**previewed, "tool": str(imported.tool.pk)}
        else:
            tool.outcome = summarize(imported)
        tool.save(update_fields=["outcome"])
    return len(tools)


def _read(tool: ImportedTool) -> ReadTool:
    return Entry(tool.path, "", json.loads(tool.content), tool.is_own, tool.twin).read()


def _finish(kept: ToolImport) -> None:
    is_preview = kept.state == ImportState.PREVIEWING
    kept.state = ImportState.PREVIEWED if is_preview else ImportState.DONE
    kept.finished_at = timezone.now()


def _tools(kept: ToolImport) -> Any:
    return ImportedTool.objects.filter(tenant_id=kept.tenant_id, import_id=kept.pk)
