"""The pages for editing a tool's next version."""

from typing import Any
from uuid import UUID

from django.contrib import messages
from django.http import Http404, HttpResponse, HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_http_methods, require_POST

from tenants.access import TenantRequest, tenant_page
from tenants.models import Role
from tools_registry.changes import Publisher
from tools_registry.draft_form import DraftForm, differing
from tools_registry.drafts import (
    DraftExistsError,
    StaleDraftError,
    begin_draft,
    discard_draft,
    find_draft,
    store_draft,
)
from tools_registry.models import Tool, ToolDraft
from tools_registry.schemas import ToolContract
from tools_registry.versions import contract_of, contracts_in_use


@require_POST
@tenant_page(role=Role.EDITOR)
def draft_begin(request: TenantRequest, pk: UUID) -> HttpResponseBase:
    """Create a draft from version `number` (default: the current one; without one, empty)."""
    tool = get_object_or_404(Tool, tenant=request.tenant, pk=pk)
    number = _number(request.POST.get("number", ""))
    try:
        begin_draft(tool, Publisher(request.user), number=number)
    except LookupError as error:
        raise Http404("no such version") from error
    except DraftExistsError as error:
        messages.warning(request, str(error))
    return redirect("draft_edit", tool.pk)


@require_http_methods(["GET", "HEAD", "POST"])
@tenant_page(role=Role.EDITOR)
def draft_edit(request: TenantRequest, pk: UUID) -> HttpResponseBase:
    """Edit the tool's draft; a save names the revision that it is based on.

    If somebody else has saved since, nothing is stored: both texts are shown, and the next save is
    based on the revision shown then. *Review and publish* saves first, but not if the stored text
    is the same: then its replay stays valid.
    """
    tool = get_object_or_404(Tool, tenant=request.tenant, pk=pk)
    draft = find_draft(tool)
    known = contracts_in_use(tool)
    if request.method != "POST":
        form = DraftForm.of(draft, known) if draft else None
        return _page(request, tool, draft, form)
    form = DraftForm(request.POST, name=tool.name, known=known)
    contract = form.checked.contract if form.is_valid() else None
    if contract is None or "check" in request.POST:
        return _page(request, tool, draft, form)
    read = form.cleaned_data["revision"] or 0
    try:
        _save(request, tool, draft, contract, read)
    except StaleDraftError as stale:
        return _conflict(request, tool, form, stale.draft)
    except DraftExistsError as error:
        return _conflict(request, tool, form, error.draft)
    if "review" in request.POST:
        return redirect("draft_review", tool.pk)
    messages.success(request, "Draft saved.")
    return redirect("draft_edit", tool.pk)


@require_POST
@tenant_page(role=Role.EDITOR)
def draft_check(request: TenantRequest, pk: UUID) -> HttpResponse:
    """An HTML fragment with the problems of the typed contract and the results of the examples."""
    tool = get_object_or_404(Tool, tenant=request.tenant, pk=pk)
    form = DraftForm(request.POST, name=tool.name, known=contracts_in_use(tool))
    form.is_valid()
    return render(request, "tools/draft_edit.html#check", {"tool": tool, "checked": form.checked})


@require_POST
@tenant_page(role=Role.EDITOR)
def draft_discard(request: TenantRequest, pk: UUID) -> HttpResponseBase:
    """Delete the draft, if it has not changed since it was read."""
    tool = get_object_or_404(Tool, tenant=request.tenant, pk=pk)
    draft = find_draft(tool)
    if draft is None:
        messages.warning(request, "Nothing was discarded: the tool has no draft.")
        return redirect("draft_edit", tool.pk)
    try:
        discard_draft(
            draft,
            Publisher(request.user),
            expected_revision=_number(request.POST.get("revision", "")),
            reason=request.POST.get("reason", "").replace("\0", ""),
        )
    except StaleDraftError as stale:
        messages.error(request, str(stale))
        return redirect("draft_edit", tool.pk)
    messages.success(request, "Draft discarded.")
    return redirect(tool if tool.current_number else "tool_list")


def _save(
    request: TenantRequest, tool: Tool, draft: ToolDraft | None, contract: ToolContract, read: int
) -> None:
    is_stored = draft and draft.revision == read and contract_of(draft) == contract
    if not (is_stored and "review" in request.POST):
        store_draft(tool, contract, Publisher(request.user), expected_revision=read)


def _conflict(
    request: TenantRequest, tool: Tool, form: DraftForm, stored: ToolDraft | None
) -> HttpResponse:
    """The sent form beside the stored draft; saving it again overwrites the draft deliberately."""
    form.data = request.POST.copy()
    form.data["revision"] = str(stored.revision if stored else 0)
    extra = {
        "is_conflict": True,
        "theirs": stored,
        "differing": differing(form.cleaned_data, stored) if stored else [],
    }
    return _page(request, tool, stored, form, status=409, **extra)


def _page(
    request: TenantRequest,
    tool: Tool,
    draft: ToolDraft | None,
    form: DraftForm | None,
    *,
    status: int = 200,
    **extra: Any,
) -> HttpResponse:
    context = {"tool": tool, "draft": draft, "form": form, "checked": form and form.checked}
    return render(request, "tools/draft_edit.html", context | extra, status=status)


def _number(text: str) -> int:
    """A number from a URL or form; 0 if it is not a number."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else 0
