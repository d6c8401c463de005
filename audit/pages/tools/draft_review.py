"""A draft before it is published: what it would break, and publishing it with a reason."""

from typing import Any
from uuid import UUID

from django.contrib import messages
from django.http import HttpResponse, HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.views.decorators.http import require_POST, require_safe

from audit.models import Replay, ReplayState
from audit.pages.tools.forms import PublishForm, ReplayForm
from audit.pages.tools.replays import proposal_of, replay_context
from audit.show.figures import count, counted
from audit.work.replay import job
from tenants.access import TenantRequest, has_role, tenant_page
from tenants.models import Role
from tools_registry.changes import Publisher
from tools_registry.contract_diff import ContractDiff, Verdict, compare_contracts
from tools_registry.drafts import StaleDraftError, find_draft, publish
from tools_registry.models import Tool, ToolDraft, ToolVersion
from tools_registry.versions import AlreadyPublishedError, contract_of

CHANGES_SHOWN = 30
PLACES_MAX = 5
"""Where something may break, that are named beside the button."""


@require_safe
@tenant_page()
def draft_review(request: TenantRequest, pk: UUID) -> HttpResponse:
    """What the draft changes and would break, by its schemas and by the last replay."""
    tool = get_object_or_404(Tool, tenant=request.tenant, pk=pk)
    return _page(request, tool, find_draft(tool))


@require_POST
@tenant_page(role=Role.EDITOR)
def draft_publish(request: TenantRequest, pk: UUID) -> HttpResponseBase:
    """Publish the draft, if it is the revision that was read; what breaks needs a reason."""
    tool = get_object_or_404(Tool, tenant=request.tenant, pk=pk)
    draft = find_draft(tool)
    if draft is None:
        messages.error(request, "There is no draft to publish.")
        return redirect("draft_review", tool.pk)
    breaking = breaks(tool, draft, _diff(tool, draft))
    form = PublishForm(request.POST, revision=draft.revision, needs_reason=bool(breaking))
    if not form.is_valid():
        return _page(request, tool, draft, form, status=422)
    try:
        version = publish(
            draft,
            Publisher(request.user),
            expected_revision=form.cleaned_data["revision"],
            reason=form.cleaned_data["reason"],
        )
    except (StaleDraftError, AlreadyPublishedError) as error:
        messages.error(request, str(error))
        return redirect("draft_review", tool.pk)
    messages.success(request, f"Version {version.number} is published, and the current one.")
    return redirect(version)


def breaks(tool: Tool, draft: ToolDraft, diff: ContractDiff | None) -> list[str]:
    """What is known to break if the draft is published, a line each."""
    places: dict[str, dict[str, None]] = {}
    for one in diff.changes if diff else ():
        if one.verdict is not Verdict.COMPATIBLE:
            said = f"{one.side.capitalize()}: {one.reason.rstrip('.')}"
            places.setdefault(said, {})[one.change.path] = None
    lines = [f"{said} at {_listed(list(paths))}." for said, paths in places.items()]
    replay = _last_replay(tool)
    if replay is None or not job.is_of(replay, tool, proposal_of(draft)):
        return lines
    if replay.newly_violating_count:
        read = counted(replay.read_count, "call")
        new = count(replay.newly_violating_count)
        lines.append(f"Of {read} replayed, {new} would newly violate.")
    return lines


def _listed(paths: list[str]) -> str:
    more = len(paths) - PLACES_MAX
    return ", ".join(paths[:PLACES_MAX]) + (
        f" and {counted(more, 'place')} more" if more > 0 else ""
    )


def _diff(tool: Tool, draft: ToolDraft) -> ContractDiff | None:
    """What the draft changes of the current version; None if there is none."""
    versions = ToolVersion.objects.filter(tenant=tool.tenant_id, tool__tenant=tool.tenant_id)
    current = versions.filter(tool=tool, number=tool.current_number).select_related("tool").first()
    return None if current is None else compare_contracts(contract_of(current), contract_of(draft))


def _last_replay(tool: Tool) -> Replay | None:
    """The newest replay that has come to its end, or is on its way."""
    replays = Replay.objects.for_tenant(tool.tenant_id).filter(tool_id=tool.id)
    return replays.exclude(state=ReplayState.CANCELLED, read_count=0).order_by("-id").first()


def _page(
    request: TenantRequest,
    tool: Tool,
    draft: ToolDraft | None,
    form: PublishForm | None = None,
    *,
    status: int = 200,
) -> HttpResponse:
    replay = _last_replay(tool)
    diff = _diff(tool, draft) if draft else None
    breaking = breaks(tool, draft, diff) if draft else []
    context: dict[str, Any] = {
        "tool": tool,
        "draft": draft,
        "breaking": breaking,
        "changes": diff.changes[:CHANGES_SHOWN] if diff else [],
        "change_count": len(diff.changes) if diff else 0,
        "may_edit": has_role(request.membership, Role.EDITOR),
        "replay_form": ReplayForm(now=timezone.now(), zone=timezone.get_current_timezone()),
        "publish_form": form
        or PublishForm(revision=draft.revision if draft else 0, needs_reason=bool(breaking)),
    }
    if replay is not None:
        context |= replay_context(replay, tool, draft, request.membership)
    return render(request, "tools/draft_review.html", context, status=status)
