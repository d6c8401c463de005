"""The pages on which the registry is taken out as JSON, and tools are brought in."""

import json
from collections.abc import Iterator
from datetime import timedelta
from typing import Any
from uuid import UUID

from django import forms
from django.contrib import messages
from django.http import Http404, HttpResponse, HttpResponseBase, StreamingHttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from tenants.access import TenantRequest, tenant_page
from tenants.actions import record_action
from tenants.models import Role
from tools_registry.changes import REASON_MAX_LENGTH, Publisher
from tools_registry.contract_diff import Side
from tools_registry.exchange.applying import PlanChangedError, Way, apply_import
from tools_registry.exchange.export import current_contracts, export_registry
from tools_registry.exchange.planning import PlannedTool, fingerprint, plan_import
from tools_registry.exchange.providers import PROVIDERS, Definition, Provider, define
from tools_registry.exchange.reading import (
    DOCUMENT_MAX_BYTES,
    ReadDocument,
    UnreadableError,
    read_document,
)
from tools_registry.models import Tool, ToolImport
from tools_registry.schemas import ToolContract
from tools_registry.versions import contract_of, find_version
from tools_registry.views import LOOKS

ROWS_MAX, REMARKS_MAX = 300, 100
_KEPT_FOR = timedelta(days=1)
_ORDER = ("refused", "changed", "added", "unchanged")


class ImportForm(forms.Form):
    """A file of tools, or its text."""

    file = forms.FileField(
        required=False,
        widget=forms.FileInput(attrs={"class": "form-control", "accept": ".json,application/json"}),
        help_text=f"JSON, {DOCUMENT_MAX_BYTES // 2**20} MB at most.",
    )
    text = forms.CharField(
        label="Or its text",
        required=False,
        widget=forms.Textarea(
            attrs={"class": "form-control mono", "rows": 10, "spellcheck": "false"}
        ),
    )

    def clean(self) -> dict[str, Any]:
        """Read it; `text` then is what was sent, whichever way."""
        cleaned: dict[str, Any] = super().clean() or self.cleaned_data
        sent, field = cleaned.get("text", ""), "text"
        if file := cleaned.get("file"):
            field = "file"
            sent = file.read(DOCUMENT_MAX_BYTES + 1)
        if not sent:
            self.add_error("file", "Choose a file, or paste its text.")
            return cleaned
        try:
            read_document(sent)
        except UnreadableError as error:
            self.add_error(field, str(error))
            return cleaned
        cleaned["text"] = sent.decode("utf-8-sig") if isinstance(sent, bytes) else sent
        return cleaned


class ConfirmForm(forms.Form):
    """How a file is taken over, and why; `plan` is what was looked at."""

    reason = forms.CharField(max_length=REASON_MAX_LENGTH, required=False, strip=True)
    plan = forms.CharField(max_length=64, required=False)


@require_safe
@tenant_page()
def registry_export(request: TenantRequest) -> HttpResponseBase:
    """All tools with all versions as JSON: what an import takes. It is put on record."""
    if request.method != "HEAD":
        record_action(request.tenant, request.user, "registry.export", "registry")
    name = f"registry-{request.tenant.slug}-{timezone.now():%Y%m%dT%H%M%SZ}.json"
    return StreamingHttpResponse(
        export_registry(request.tenant.id),
        content_type="application/json",
        headers={"Content-Disposition": f'attachment; filename="{name}"'},
    )


@require_safe
@tenant_page()
def tool_definitions(
    request: TenantRequest, pk: UUID | None = None, provider: str | None = None
) -> HttpResponseBase:
    """Definitions for providers, of one tool or all current ones: the file, or what is in it.

    The page says what each provider cannot be told.
    """
    tool, contracts = _contracts(request, pk)
    if provider is None:
        offered = [_offered(name, one, contracts) for name, one in PROVIDERS.items()]
        context = {"tool": tool, "count": len(contracts), "offered": offered}
        return render(request, "tools_registry/definitions.html", context)
    if provider not in PROVIDERS:
        raise Http404("no such provider")
    chosen = PROVIDERS[provider]
    document = chosen.wrap([one.document for one in define(contracts, chosen)])
    return HttpResponse(
        json.dumps(document, indent=2),
        content_type="application/json",
        headers={"Content-Disposition": f'attachment; filename="tools-{provider}.json"'},
    )


@require_http_methods(["GET", "HEAD", "POST"])
@tenant_page(role=Role.EDITOR)
def registry_import(request: TenantRequest) -> HttpResponseBase:
    """Choose a file of tools; what is in it is looked at before anything is done."""
    if request.method != "POST":
        return render(request, "tools_registry/import.html", {"form": ImportForm()})
    form = ImportForm(request.POST, request.FILES)
    if not form.is_valid():
        return render(request, "tools_registry/import.html", {"form": form}, status=422)
    ToolImport.objects.filter(created_at__lt=timezone.now() - _KEPT_FOR).delete()
    kept = ToolImport.objects.create(
        tenant=request.tenant,
        created_by=request.user.get_username(),
        document=form.cleaned_data["text"],
    )
    return redirect("tool_import_review", kept.pk)


@require_safe
@tenant_page(role=Role.EDITOR)
def import_review(request: TenantRequest, pk: UUID) -> HttpResponseBase:
    """What an import would add, change, leave and refuse: `?as=drafts` or `published`."""
    kept = get_object_or_404(ToolImport, tenant=request.tenant, pk=pk)
    return _review(request, kept, request.GET.get("as", ""))


@require_POST
@tenant_page(role=Role.EDITOR)
def import_confirm(request: TenantRequest, pk: UUID) -> HttpResponseBase:
    """Do what was looked at; where the registry has changed since it is shown anew."""
    kept = get_object_or_404(ToolImport, tenant=request.tenant, pk=pk)
    form, as_drafts = ConfirmForm(request.POST), request.POST.get("as") != "published"
    way = "drafts" if as_drafts else "published"
    if not form.is_valid() or not (as_drafts or form.cleaned_data["reason"]):
        said = "Publishing asks for a reason" if form.is_valid() else "The reason is too long"
        return _review(request, kept, way, problem=f"Nothing was imported: {said}.", status=422)
    reason = form.cleaned_data["reason"]
    try:
        plan = apply_import(
            request.tenant,
            _document(kept),
            Way(as_drafts, Publisher(request.user), reason),
            expected=form.cleaned_data["plan"],
        )
    except PlanChangedError as error:
        return _review(request, kept, way, problem=f"Nothing was imported: {error}", status=409)
    ToolImport.objects.filter(tenant=request.tenant, pk=kept.pk).delete()
    messages.success(request, f"Imported: {_counted(plan)}.")
    return redirect("tool_list")


@require_POST
@tenant_page(role=Role.EDITOR)
def import_discard(request: TenantRequest, pk: UUID) -> HttpResponseBase:
    """Forget a file that was to be imported."""
    kept = get_object_or_404(ToolImport, tenant=request.tenant, pk=pk)
    ToolImport.objects.filter(tenant=request.tenant, pk=kept.pk).delete()
    messages.success(request, "Nothing was imported.")
    return redirect("tool_list")


def _review(
    request: TenantRequest, kept: ToolImport, way: str, *, problem: str = "", status: int = 200
) -> HttpResponse:
    document = _document(kept)
    as_drafts = way == "drafts" if way in ("drafts", "published") else not document.is_own
    plan = plan_import(request.tenant.id, document.tools, as_drafts=as_drafts)
    rows = sorted(plan, key=lambda one: _ORDER.index(one.status))
    listed = [one for one in rows if one.status != "unchanged"]
    context = {
        "kept": kept,
        "document": document,
        "as_drafts": as_drafts,
        "fingerprint": fingerprint(plan),
        "counts": [(status, sum(one.status == status for one in plan)) for status in _ORDER],
        "doing": sum(one.status in ("added", "changed") for one in plan),
        "rows": [_row(one) for one in listed[:ROWS_MAX]],
        "more": len(listed) - ROWS_MAX,
        "unchanged": [one.read.name for one in plan if one.status == "unchanged"][:ROWS_MAX],
        "problem": problem,
        "reason": request.POST.get("reason", ""),
    }
    return render(request, "tools_registry/import_review.html", context, status=status)


def _document(kept: ToolImport) -> ReadDocument:
    try:
        return read_document(kept.document)
    except UnreadableError as error:  # by the rules of a release between
        raise Http404(str(error)) from error


def _row(one: PlannedTool) -> dict[str, Any]:
    diff = one.diff
    return {
        "one": one,
        "steps": [] if one.problems else [step.said for step in one.steps],
        "verdicts": [
            (LOOKS[diff.verdict(side)], diff.verdict(side), concerned)
            for side, concerned in ((Side.INPUT, "callers"), (Side.OUTPUT, "consumers"))
        ]
        if diff
        else [],
        "changes": diff.changes[:5] if diff else [],
        "more_changes": max(0, len(diff.changes) - 5) if diff else 0,
    }


def _counted(plan: list[PlannedTool]) -> str:
    counts = ((sum(one.status == status for one in plan), status) for status in _ORDER)
    return ", ".join(f"{count:,} {status}" for count, status in counts if count) or "nothing"


def _contracts(request: TenantRequest, pk: UUID | None) -> tuple[Tool | None, list[ToolContract]]:
    if pk is None:
        return None, current_contracts(request.tenant.id)
    tool = get_object_or_404(Tool, tenant=request.tenant, pk=pk)
    version = find_version(tool, tool.current_number) if tool.current_number else None
    return tool, [contract_of(version)] if version else []


def _offered(name: str, provider: Provider, contracts: list[ToolContract]) -> dict[str, Any]:
    defined = define(contracts, provider)
    remarks = list(_remarks(defined))
    return {
        "name": name,
        "provider": provider,
        "remarks": remarks[:REMARKS_MAX],
        "more": max(0, len(remarks) - REMARKS_MAX),
    }


def _remarks(defined: list[Definition]) -> Iterator[tuple[str, str]]:
    for one in defined:
        for remark in one.remarks:
            yield one.name, remark
