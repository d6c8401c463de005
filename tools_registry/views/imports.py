"""The pages for importing tools: choose a file, preview, confirm, watch the progress."""

from collections.abc import Mapping
from typing import Any, NamedTuple
from uuid import UUID

from django import forms
from django.contrib import messages
from django.http import HttpResponse, HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from config.http.htmx import render_page
from config.http.ordering import Key, Table, sorted_table
from tenants.access import TenantRequest, tenant_page
from tenants.models import Role
from tenants.slices import percent
from tools_registry.changes import REASON_MAX_LENGTH, Publisher
from tools_registry.exchange import job
from tools_registry.exchange.applying import Way
from tools_registry.exchange.reading import (
    DOCUMENT_MAX_BYTES,
    UnreadableError,
    open_document,
)
from tools_registry.exchange.summary import STATUSES, count
from tools_registry.models import ImportState, ToolImport
from tools_registry.tasks import import_tools

ROWS_MAX, STEPS_MAX, SENT_MAX = 300, 12, 10
STATUS_LABELS: dict[str, str] = {
    "refused": "rejected",
    "changed": "changed",
    "added": "added",
    "unchanged": "unchanged",
}
_COLUMNS: Mapping[str, Key[dict[str, Any]]] = {
    "tool": lambda one: one["name"].casefold(),
    "status": lambda one: -STATUSES.index(one["status"]),
    "changes": lambda one: len(one["changes"]) + one["more_changes"] + len(one["steps"]),
}
"""The columns by which the tools of an import are sorted."""
_STATUS_CLASSES = {"refused": "state is-failed", "added": "state is-ok"}


class Change(NamedTuple):
    """A change of a contract, as the summary of a tool lists it."""

    path: str
    keyword: str
    reason: str


class ImportForm(forms.Form):
    """A file of tools, or its text."""

    file = forms.FileField(
        required=False,
        widget=forms.FileInput(attrs={"class": "form-control", "accept": ".json,application/json"}),
        help_text=f"JSON, {DOCUMENT_MAX_BYTES // 2**20} MB maximum.",
    )
    text = forms.CharField(
        label="Or paste the text",
        required=False,
        widget=forms.Textarea(
            attrs={"class": "form-control mono", "rows": 10, "spellcheck": "false"}
        ),
    )

    def clean(self) -> dict[str, Any]:
        """Open the sent file or text as `document`."""
        cleaned: dict[str, Any] = super().clean() or self.cleaned_data
        sent, field = cleaned.get("text", ""), "text"
        if file := cleaned.get("file"):
            field = "file"
            sent = file.read(DOCUMENT_MAX_BYTES + 1)
        if not sent:
            self.add_error("file", "Choose a file or paste its text.")
            return cleaned
        try:
            cleaned["document"] = open_document(sent)
        except UnreadableError as error:
            self.add_error(field, str(error))
        return cleaned


class ConfirmForm(forms.Form):
    """The confirmation of an import: its reason; `plan` identifies the preview seen."""

    reason = forms.CharField(max_length=REASON_MAX_LENGTH, required=False, strip=True)
    plan = forms.CharField(max_length=64, required=False)


@require_http_methods(["GET", "HEAD", "POST"])
@tenant_page(role=Role.EDITOR)
def registry_import(request: TenantRequest) -> HttpResponseBase:
    """Choose a file of tools for a preview; also lists recent imports."""
    if request.method != "POST":
        return _choose(request, ImportForm())
    form = ImportForm(request.POST, request.FILES)
    if not form.is_valid():
        return _choose(request, form, status=422)
    document = form.cleaned_data["document"]
    kept = job.start_import(request.tenant, document, request.user.get_username())
    _go_on(kept)
    return redirect("tool_import_page", kept.pk)


@require_safe
@tenant_page(role=Role.EDITOR)
def import_page(request: TenantRequest, pk: UUID) -> HttpResponse:
    """The preview of an import (`?as=drafts` or `published`), its progress, or its outcome."""
    return _page(request, _own(request, pk))


@require_POST
@tenant_page(role=Role.EDITOR)
def import_confirm(request: TenantRequest, pk: UUID) -> HttpResponseBase:
    """Start the import as previewed."""
    kept = _own(request, pk)
    form, as_drafts = ConfirmForm(request.POST), request.POST.get("as") != "published"
    if not form.is_valid() or not (as_drafts or form.cleaned_data["reason"]):
        reason = "Publishing requires a reason" if form.is_valid() else "The reason is too long"
        return _page(request, kept, problem=f"Nothing was imported. {reason}.", status=422)
    way = Way(as_drafts, Publisher(request.user), form.cleaned_data["reason"])
    if _name(kept) != form.cleaned_data["plan"] or not job.confirm_import(kept, way):
        reason = "The preview has changed, or the import is running. This is the current state."
        return _page(request, kept, problem=f"Nothing was imported. {reason}", status=409)
    kept.refresh_from_db()
    _go_on(kept)
    return redirect("tool_import_page", kept.pk)


@require_POST
@tenant_page(role=Role.EDITOR)
def import_preview(request: TenantRequest, pk: UUID) -> HttpResponseBase:
    """Preview the file again, if tools have changed since or the import was stopped."""
    kept = _own(request, pk)
    if job.preview_again(kept):
        _go_on(kept)
    return redirect("tool_import_page", kept.pk)


@require_POST
@tenant_page(role=Role.EDITOR)
def import_cancel(request: TenantRequest, pk: UUID) -> HttpResponseBase:
    """Cancel the preview or import; tools that are already imported stay."""
    job.cancel_import(_own(request, pk), timezone.now())
    return redirect("tool_import_page", pk)


@require_POST
@tenant_page(role=Role.EDITOR)
def import_discard(request: TenantRequest, pk: UUID) -> HttpResponseBase:
    """Delete an import and its file."""
    kept = _own(request, pk)
    ToolImport.objects.filter(tenant=request.tenant, pk=kept.pk).delete()
    messages.success(request, "File deleted.")
    return redirect("tool_list")


def _choose(request: TenantRequest, form: ImportForm, *, status: int = 200) -> HttpResponse:
    kept = ToolImport.objects.filter(tenant=request.tenant).order_by("-created_at")[:SENT_MAX]
    sent = [(each, ImportState(each.state).label) for each in kept]
    context = {"form": form, "sent": sent}
    return render(request, "tools/import.html", context, status=status)


def _own(request: TenantRequest, pk: UUID) -> ToolImport:
    return get_object_or_404(ToolImport, tenant=request.tenant, pk=pk)


def _go_on(kept: ToolImport) -> None:
    if kept.is_large:
        import_tools.defer(tenant_id=str(kept.tenant_id), import_id=str(kept.pk))
    else:
        job.run_at_once(kept)


def _name(kept: ToolImport) -> str:
    """An identifier of the preview; a new preview gets a new one."""
    return kept.finished_at.isoformat() if kept.finished_at else ""


def _page(
    request: TenantRequest, kept: ToolImport, *, problem: str = "", status: int = 200
) -> HttpResponse:
    is_under_way = kept.state in job.UNDER_WAY
    context: dict[str, Any] = {
        "kept": kept,
        "state": ImportState(kept.state).label,
        "is_under_way": is_under_way,
        "percent": percent(kept.done_count, kept.tool_count),
        "problem": problem,
    }
    if not is_under_way:
        way = (request.POST if request.method == "POST" else request.GET).get("as", "")
        is_open = kept.state == ImportState.PREVIEWED and way in ("drafts", "published")
        as_drafts = way == "drafts" if is_open else kept.as_drafts
        context |= _tools(request, kept, as_drafts=as_drafts)
        context |= {"plan": _name(kept), "reason": request.POST.get("reason", "")}
    response = render_page(request, "tools/import_page.html", "import", context)
    response.status_code = status
    return response


def _tools(request: TenantRequest, kept: ToolImport, *, as_drafts: bool) -> dict[str, Any]:
    rows = job.outcomes(kept, as_drafts=as_drafts)
    summaries = [one for one, _ in rows if one is not None]
    counts = count(summaries)
    listed = [one for one in summaries if one["status"] != "unchanged"]
    page = reverse("tool_import_page", args=[kept.pk])
    shown = sorted_table(request, listed, _COLUMNS, "status", most=ROWS_MAX, page=page)
    return {
        "as_drafts": as_drafts,
        "counts": {STATUS_LABELS[status]: number for status, number in counts.items()},
        "doing": counts["added"] + counts["changed"],
        "refused": counts["refused"],
        "rows": Table([_row(one) for one in shown.rows], shown.order),
        "more": len(listed) - ROWS_MAX,
        "unchanged": [one["name"] for one in summaries if one["status"] == "unchanged"][:ROWS_MAX],
        "left": [path for one, path in rows if one is None],
    }


def _row(one: dict[str, Any]) -> dict[str, Any]:
    return {
        "one": one,
        "status": STATUS_LABELS[one["status"]],
        "status_class": _STATUS_CLASSES.get(one["status"], "is-plain"),
        "changes": [Change(*each) for each in one["changes"]],
        "steps": one["steps"][:STEPS_MAX],
        "more_steps": len(one["steps"]) - STEPS_MAX,
        "verdicts": {whom: one[whom] for whom in ("callers", "consumers") if one[whom]},
    }
