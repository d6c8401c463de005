"""Review of a draft: what it would break, and publishing it with a reason."""

from typing import Any
from uuid import UUID

from django.contrib import messages
from django.http import HttpResponse, HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_POST, require_safe

from audit.models import Replay
from audit.pages.tools.acts import last_replay, newly_violating, publish_draft
from audit.pages.tools.forms import PublishForm, ReplayForm
from audit.pages.tools.replays import replay_context
from audit.show.figures import count, counted
from tenants.access import TenantRequest, has_role, tenant_page
from tenants.models import Role
from tools_registry.changes import Publisher
from tools_registry.contract_diff import ContractDiff, Verdict
from tools_registry.drafts import (
    ReasonNeededError,
    StaleDraftError,
    compare_with_current,
    find_draft,
    needs_reason,
)
from tools_registry.models import Tool, ToolDraft
from tools_registry.versions import AlreadyPublishedError

CHANGES_SHOWN = 30
PLACES_MAX = 5
"""Maximum of places named per possible break, beside the button."""


@require_safe
@tenant_page()
def draft_review(request: TenantRequest, pk: UUID) -> HttpResponse:
    """Show what the draft changes and would break, by its schemas and by the last replay."""
    tool = get_object_or_404(Tool, tenant=request.tenant, pk=pk)
    return _page(request, tool, find_draft(tool))


@require_POST
@tenant_page(role=Role.EDITOR)
def draft_publish(request: TenantRequest, pk: UUID) -> HttpResponseBase:
    """Publish the draft if it is still the reviewed revision. A breaking one needs a reason."""
    tool = get_object_or_404(Tool, tenant=request.tenant, pk=pk)
    draft = find_draft(tool)
    if draft is None:
        messages.error(request, "Nothing was published: the tool has no draft.")
        return redirect("draft_review", tool.pk)
    form = PublishForm(request.POST, revision=draft.revision)
    if not form.is_valid():
        return _page(request, tool, draft, form, status=422)
    try:
        version = publish_draft(
            draft,
            Publisher(request.user),
            revision=form.cleaned_data["revision"],
            reason=form.cleaned_data["reason"],
        )
    except ReasonNeededError as error:
        form.add_error("reason", str(error))
        return _page(request, tool, draft, form, status=422)
    except (StaleDraftError, AlreadyPublishedError) as error:
        messages.error(request, str(error))
        return redirect("draft_review", tool.pk)
    messages.success(request, f"Version {version.number} published and now current.")
    return redirect(version)


def _breaking(diff: ContractDiff | None, replay: Replay | None, new: int) -> list[str]:
    """Return what is known to break if the draft is published, one line each."""
    places: dict[str, dict[str, None]] = {}
    for one in diff.changes if diff else ():
        if one.verdict is not Verdict.COMPATIBLE:
            sentence = f"{one.side.capitalize()}: {one.reason.rstrip('.')}"
            places.setdefault(sentence, {})[one.change.path] = None
    lines = [f"{sentence} ({_listed(list(paths))})." for sentence, paths in places.items()]
    if replay is not None and new:
        read = counted(replay.read_count, "call")
        lines.append(f"Replay: new violations in {count(new)} of {read}.")
    return lines


def _listed(paths: list[str]) -> str:
    more = len(paths) - PLACES_MAX
    return ", ".join(paths[:PLACES_MAX]) + (
        f" and {counted(more, 'more path')}" if more > 0 else ""
    )


def _page(
    request: TenantRequest,
    tool: Tool,
    draft: ToolDraft | None,
    form: PublishForm | None = None,
    *,
    status: int = 200,
) -> HttpResponse:
    replay = last_replay(tool)
    diff = compare_with_current(draft) if draft else None
    new = newly_violating(replay, draft) if draft else 0
    if form is None:
        form = PublishForm(revision=draft.revision if draft else 0)
    form.fields["reason"].required = needs_reason(diff, new)
    context: dict[str, Any] = {
        "tool": tool,
        "draft": draft,
        "breaking": _breaking(diff, replay, new),
        "changes": diff.changes[:CHANGES_SHOWN] if diff else [],
        "change_count": len(diff.changes) if diff else 0,
        "may_edit": has_role(request.membership, Role.EDITOR),
        "replay_form": ReplayForm(now=timezone.now(), zone=timezone.get_current_timezone()),
        "publish_form": form,
    }
    if replay is not None:
        context |= replay_context(
            request, replay, tool, draft, page=reverse("draft_review", args=[tool.pk])
        )
        is_known = context["is_of_draft"] and context["has_judged"]
        context["is_safe"] = is_known and not context["breaking"]
    return render(request, "tools/draft_review.html", context, status=status)
