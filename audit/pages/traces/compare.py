"""Two traces side by side, with the differences of one pair of calls."""

from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import Any, Final

from django.http import Http404, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.utils.safestring import SafeString
from django.views.decorators.http import require_safe

from audit.log.payload import LogPayloadError
from audit.pages.calls.payloads import read_payloads
from audit.pages.show.reveal import is_shown
from audit.pages.traces.alignment import ALIGNED_MAX, Pair, align
from audit.queries.call_events import read_call_events
from audit.queries.calls import Call, TraceDetail, detail_of
from audit.queries.calls import trace_detail as find_trace
from audit.show.json_tree import ABSENT, inline
from tenants.access import TenantRequest, tenant_page
from tenants.actions import record_view
from tools_registry.json_diff import json_diff

CHANGES_SHOWN: Final = 100
_WIDTH: Final = 300


@dataclass(frozen=True, slots=True)
class Change:
    """A place at which arguments or results differ, with both values; None: there is none."""

    part: str
    pointer: str
    before: SafeString | None
    after: SafeString | None


@require_safe
@tenant_page()
def trace_compare(request: TenantRequest, trace_id: str) -> HttpResponse:
    """Show the calls of two traces side by side (`?with=`), and one pair's changes (`?pair=`)."""
    left = find_trace(trace_id)
    if left is None:
        raise Http404("no such trace")
    other = request.GET.get("with", "").strip()
    right = find_trace(other) if other and "\x00" not in other else None
    context: dict[str, Any] = {"trace_id": trace_id, "other": other, "is_unknown": bool(other)}
    if right is not None:
        pairs = align(left.calls, right.calls)
        context |= _compared(left, right, pairs) | _opened(request, pairs, timezone.now())
    return render(request, "traces/trace_compare.html", context)


def _compared(left: TraceDetail, right: TraceDetail, pairs: list[Pair]) -> dict[str, Any]:
    both = [pair for pair in pairs if pair.left is not None and pair.right is not None]
    return {
        "is_unknown": False,
        "left": left,
        "right": right,
        "pairs": pairs,
        "only_left": sum(pair.right is None for pair in pairs),
        "only_right": sum(pair.left is None for pair in pairs),
        "other_arguments": sum(not pair.has_same_arguments for pair in both),
        "other_outcome": sum(not pair.has_same_outcome for pair in both),
        "both": len(both),
        "is_cut": max(len(left.calls), len(right.calls)) > ALIGNED_MAX or left.is_cut,
        "most_calls": ALIGNED_MAX,
    }


def _opened(request: TenantRequest, pairs: list[Pair], now: datetime) -> dict[str, Any]:
    """The changes of the pair that the URL opens, for members who see both calls' payloads."""
    number = request.GET.get("pair", "")
    opened = next((pair for pair in pairs if str(pair.number) == number), None)
    if opened is None or opened.left is None or opened.right is None:
        return {}
    calls = opened.left, opened.right
    context: dict[str, Any] = {"opened": opened}
    if not all(is_shown(request, "call.reveal", str(each.invocation_id), now) for each in calls):
        return context | {"is_withheld": True}
    try:
        values = [_values(request, each) for each in calls]
    except LogPayloadError:
        return context | {"is_damaged": True}
    changes = [
        Change(
            part,
            change.pointer or "/",
            None if change.kind == "add" else inline(change.before, width=_WIDTH),
            None if change.kind == "remove" else inline(change.after, width=_WIDTH),
        )
        for part in ("arguments", "result", "error")
        for change in islice(_differences(values[0][part], values[1][part]), CHANGES_SHOWN + 1)
    ]
    return context | {"changes": changes[:CHANGES_SHOWN], "more": len(changes) > CHANGES_SHOWN}


def _differences(before: Any, after: Any) -> Any:
    if before is ABSENT and after is ABSENT:
        return iter(())
    # An absent value is shown as added or removed with the object around it.
    old, new = ({} if value is ABSENT else {"": value} for value in (before, after))
    if old and new:
        return json_diff(before, after)
    return json_diff(old, new)


def _values(request: TenantRequest, call: Call) -> dict[str, Any]:
    """Arguments, result and error of a call, from the log. That they were shown is recorded.

    Raises LogPayloadError.
    """
    detail = detail_of(call)
    payloads = read_payloads(read_call_events(detail)) if detail else None
    record_view(
        request.tenant.id,
        request.user,
        "call.view",
        str(call.invocation_id),
        tool=call.tool_name,
        day=f"{call.started_on}",
    )
    return {
        "arguments": payloads.args if payloads else ABSENT,
        "result": payloads.data if payloads else ABSENT,
        "error": (payloads.error or ABSENT) if payloads else ABSENT,
    }
