"""The pages of a tool: one of its versions, its history, and a comparison of two contracts."""

import json
from collections.abc import Mapping
from typing import Any, NamedTuple
from uuid import UUID

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.http import require_safe

from config.http.ordering import Key, sorted_table
from tenants.access import TenantRequest, has_role, tenant_page
from tenants.models import Role
from tools_registry.changes import timeline, version_states
from tools_registry.contract_diff import ContractChange, Side, compare_contracts
from tools_registry.drafts import find_draft
from tools_registry.forms import DescriptionForm
from tools_registry.json_diff import JSONChange
from tools_registry.models import State, Tool, ToolVersion
from tools_registry.schema_diff.effect import ABSENT
from tools_registry.schemas import compile_for_arrival
from tools_registry.sides import DRAFT, find_side
from tools_registry.versions import find_version
from tools_registry.views.version_actions import possible_actions

CHANGES_SHOWN, DIFFERENCES_SHOWN, VALUE_LENGTH = 20, 300, 160
_CONCERNED = {Side.INPUT: "callers", Side.OUTPUT: "consumers", Side.REST: "nobody"}


class VersionRow(NamedTuple):
    """A version in the list of a tool's versions."""

    version: ToolVersion
    state: State
    diff_url: str
    """URL of its comparison with the current version."""


_VERSIONS: Mapping[str, Key[VersionRow]] = {
    "version": lambda row: row.version.number,
    "state": lambda row: row.state.label,
    "published": lambda row: row.version.created_at,
}
"""The columns by which versions are sorted."""


@require_safe
@tenant_page()
def tool_detail(request: TenantRequest, pk: UUID, number: int | None = None) -> HttpResponseBase:
    """One version of a tool (default: the current one), and the list of all versions."""
    tool = get_object_or_404(Tool, tenant=request.tenant, pk=pk)
    versions = list(
        ToolVersion.objects.filter(tenant=request.tenant, tool=tool)
        .defer("input_schema", "output_schema", "meta")
        .order_by("-number")
    )
    if not versions and number is None:
        return render(request, "tools/tool_detail.html", _context(request, tool))
    shown = get_object_or_404(
        ToolVersion,
        tenant=request.tenant,
        tool=tool,
        number=tool.current_number if number is None else number,
    )
    states = version_states(request.tenant.id, [tool.pk])

    def state(version: ToolVersion) -> State:
        return states.get((tool.pk, version.number), State.PUBLISHED)

    is_current = shown.number == tool.current_number
    context = {
        "version": shown,
        "state": state(shown),
        "actions": possible_actions(state(shown), is_current=is_current),
        "compared_to": tool.current_number if not is_current else _before(versions, shown),
        "versions": sorted_table(
            request,
            [VersionRow(each, state(each), _diff_url(tool, each)) for each in versions],
            _VERSIONS,
            "version",
        ),
        "unchecked_because": _unchecked(tool, shown) if tool.is_checked_on_arrival else "",
    }
    return render(request, "tools/tool_detail.html", _context(request, tool) | context)


@require_safe
@tenant_page()
def tool_diff(request: TenantRequest, pk: UUID) -> HttpResponseBase:
    """Compare two contracts: `?from=…&to=…`, as in `find_side`.

    By default it compares the current version with the one before it.
    """
    tool = get_object_or_404(Tool, tenant=request.tenant, pk=pk)
    numbers = list(
        ToolVersion.objects.filter(tenant=request.tenant, tool=tool)
        .order_by("-number")
        .values_list("number", flat=True)
    )
    earlier = [number for number in numbers if number < tool.current_number]
    default_from = str(earlier[0] if earlier else tool.current_number)
    old = find_side(tool, request.GET.get("from", default_from))
    new = find_side(tool, request.GET.get("to", str(tool.current_number)))
    if old is None or new is None:
        raise Http404("no such version, draft or attempt")
    diff = compare_contracts(old.contract, new.contract)
    by_side = {
        side: [one for one in diff.changes if one.side is side][:DIFFERENCES_SHOWN] for side in Side
    }
    raw = diff.raw
    context = {
        "tool": tool,
        "old": old,
        "new": new,
        "choices": [
            *([(DRAFT, "draft")] if find_draft(tool) else []),
            *((str(number), f"version {number}") for number in numbers),
        ],
        "diff": diff,
        "sides": [
            {
                "side": side,
                "concerned": _CONCERNED[side],
                "verdict": diff.verdict(side),
                "rows": [_difference(one) for one in by_side[side]],
                "more": sum(one.side is side for one in diff.changes) - len(by_side[side]),
            }
            for side in Side
        ],
        "raw": [_raw_row(one) for one in raw[:DIFFERENCES_SHOWN]],
        "more_raw": max(0, len(raw) - DIFFERENCES_SHOWN),
    }
    return render(request, "tools/tool_diff.html", context)


@require_safe
@tenant_page()
def tool_find(request: TenantRequest) -> HttpResponseBase:
    """Redirect from a call to its tool: `?name=…&version=…`; the version is a number or a digest.

    An unknown version redirects to the tool's page with a warning; an unknown tool gets 404.
    """
    name = request.GET.get("name", "").replace("\0", "")
    tool = get_object_or_404(Tool, tenant=request.tenant, name=name)
    wanted = request.GET.get("version", "").replace("\0", "")
    versions = ToolVersion.objects.filter(tenant=request.tenant, tool=tool)
    if wanted.isascii() and wanted.isdigit() and len(wanted) < 10:
        version = versions.filter(number=int(wanted)).first()
    else:
        version = versions.filter(digest=wanted).first()
    if tool.current_number == 0:
        raise Http404("no version yet")
    if wanted and version is None:
        named = wanted[:VALUE_LENGTH]
        messages.warning(
            request,
            f"Version {named if named.isprintable() else ascii(named)} is not registered."
            f" Showing the current version, {tool.current_number}.",
        )
    return redirect(version or tool)


def _diff_url(tool: Tool, version: ToolVersion) -> str:
    address = reverse("tool_diff", args=[tool.pk])
    return f"{address}?from={version.number}&to={tool.current_number}"


def _context(request: TenantRequest, tool: Tool) -> dict[str, Any]:
    """Template context of a tool that does not depend on the version."""
    before = _ordinal(request)
    changes = timeline(tool, before=before, size=CHANGES_SHOWN + 1)
    may_edit = has_role(request.membership, Role.EDITOR)
    return {
        "tool": tool,
        "draft": find_draft(tool),
        "changes": changes[:CHANGES_SHOWN],
        "next_before": changes[CHANGES_SHOWN - 1].ordinal if len(changes) > CHANGES_SHOWN else None,
        "is_earlier": before is not None,
        "may_edit": may_edit,
        "may_use_admin": may_edit and request.user.is_staff,
        "describing": DescriptionForm(instance=tool) if may_edit else None,
    }


def _unchecked(tool: Tool, shown: ToolVersion) -> str:
    """Why outputs are not validated on arrival; '' if they are."""
    is_current = shown.number == tool.current_number
    current = shown if is_current else find_version(tool, tool.current_number)
    try:
        compile_for_arrival(current.output_schema if current else None)
    except ValueError as error:
        return str(error)
    return ""


def _ordinal(request: HttpRequest) -> int | None:
    text = request.GET.get("before", "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else None


def _before(versions: list[ToolVersion], shown: ToolVersion) -> int | None:
    earlier = [version.number for version in versions if version.number < shown.number]
    return earlier[0] if earlier else None


def _difference(one: ContractChange) -> dict[str, Any]:
    return {
        "one": one,
        "before": _text(one.change.before),
        "after": _text(one.change.after),
    }


def _raw_row(one: JSONChange) -> dict[str, Any]:
    return {
        "one": one,
        "before": None if one.kind == "add" else _text(one.before),
        "after": None if one.kind == "remove" else _text(one.after),
    }


def _text(value: Any) -> str | None:
    """A value as one line of JSON; None if there is no value."""
    if value is ABSENT:
        return None
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= VALUE_LENGTH else f"{text[:VALUE_LENGTH]}…"
