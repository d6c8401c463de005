"""Comparisons of arguments: start, progress, cancel, and what was found."""

import json
import re
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.http import Http404, HttpResponse, HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse
from django.utils import timezone
from django.utils.http import urlencode
from django.utils.safestring import SafeString
from django.views.decorators.http import require_POST, require_safe

from audit.apart.arguments import FoundArgument, Part, Path, value_at
from audit.apart.finding import CannotCompareError, within
from audit.events.outputs import Value, read_args
from audit.log.payload import LogPayloadError, read_events
from audit.models import ArgumentComparison
from audit.pages.show.requested_query import invalid, reader_of
from audit.queries.call_query import ANYBODY, Query, parse, parse_pinned, quoted
from audit.queries.replays import sampled_calls
from audit.queries.time_range import TimeRange, read
from audit.show.charts import range_query
from audit.show.json_tree import inline
from audit.tasks.requested import compare_arguments
from audit.work import argument_comparison as job
from config.http.htmx import render_page
from config.instants import iso_exact
from tenants.access import TenantRequest, tenant_page
from tenants.actions import Actor, name_of, record_action, record_view
from tenants.models import Role, Tenant
from tenants.slices import UNDER_WAY, JobState, percent

_WIDTH = 80
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")


@dataclass(frozen=True, slots=True)
class ShownPart:
    """A path, and what is there: a type, or a value from a call that has it."""

    path: Path
    type: str
    value: Any
    """None: a type, or the arguments of that call are erased."""

    @property
    def name(self) -> str:
        """The path as in a query, without `args.`."""
        return ".".join(self.path)

    @property
    def shown(self) -> SafeString:
        """The value."""
        return inline(self.value, width=_WIDTH)

    @property
    def term(self) -> str:
        """The query term for calls that have it; '' if there is none."""
        if self.value is None or not all(_PLAIN.fullmatch(name) for name in self.path):
            return ""
        text = self.value if isinstance(self.value, str) else json.dumps(self.value)
        return f"args.{self.name}:{quoted(text)}"


@dataclass(frozen=True, slots=True)
class ShownDifference:
    """A row of the page."""

    difference: FoundArgument
    parts: list[ShownPart]
    also: list[list[ShownPart]]
    query: str
    """The selected calls that have it; '' if no query finds them."""
    example: str
    """The address of one of them."""

    @property
    def share_selected(self) -> float:
        """The share of the selected calls that have it."""
        return self.difference.selected / self.difference.sides[0]

    @property
    def share_rest(self) -> float:
        """The share of the other calls that have it."""
        return self.difference.rest / self.difference.sides[1]

    @property
    def lift(self) -> float | None:
        """How many times as frequent it is in the selection; None: no other call has it."""
        return self.share_selected / self.share_rest if self.difference.rest else None


@require_POST
@tenant_page(role=Role.EDITOR)
def arguments_start(request: TenantRequest) -> HttpResponseBase:
    """Let the worker compare the arguments of a query's calls with those of the tool's others."""
    now = timezone.now()
    query = parse(request.POST.get("q", ""), reader_of(request))
    params = {name: request.POST[name] for name in ("range", "from", "to") if name in request.POST}
    back = f"{reverse('apart_page')}?{urlencode({'q': query.text} | params)}"
    requested = read(params, now=now, zone=timezone.get_current_timezone())
    if query.problems or requested.problem:
        why = invalid(query, "compared") if query.problems else requested.problem
        messages.error(request, why)
        return redirect(back)
    try:
        one = begin_comparison(request.tenant, request.user, query, requested.range, now)
    except CannotCompareError as error:
        messages.error(request, str(error))
        return redirect(back)
    return redirect("arguments_detail", one.id)


def begin_comparison(
    tenant: Tenant, actor: Actor, query: Query, of: TimeRange, now: datetime
) -> ArgumentComparison:
    """Let the worker compare. The pages and the API use this. Raises CannotCompareError."""
    one = job.start_comparison(query, of, now, name_of(actor))
    record_action(tenant, actor, "payload.compare", str(one.id), query=query.on_record(now))
    compare_arguments.defer(tenant_id=str(tenant.id), comparison_id=str(one.id))
    return one


@require_safe
@tenant_page(role=Role.EDITOR)
def arguments_detail(request: TenantRequest, pk: UUID) -> HttpResponse:
    """Show the progress of a comparison, and what it found."""
    one = _existing(pk)
    differences = job.differences_of(one)
    if differences:
        record_view(request.tenant.id, request.user, "payload.compared", str(one.id))
    context = {
        "comparison": one,
        "is_under_way": one.state in UNDER_WAY,
        "state": JobState(one.state).label,
        "percent": percent(one.read_count, one.call_count),
        "rows": shown_rows(one, differences),
        "back": f"{reverse('apart_page')}?{urlencode(_range_of(one))}",
        "side_calls": job.SIDE_CALLS,
    }
    return render_page(request, "apart/arguments.html", "arguments", context)


@require_POST
@tenant_page(role=Role.EDITOR)
def arguments_cancel(request: TenantRequest, pk: UUID) -> HttpResponseBase:
    """Cancel a comparison."""
    one = _existing(pk)
    job.cancel_comparison(one.id, timezone.now())
    return redirect("arguments_detail", pk)


def _range_of(one: ArgumentComparison) -> dict[str, str]:
    return {"q": one.query, "from": iso_exact(one.since), "to": iso_exact(one.until)}


def _existing(pk: UUID) -> ArgumentComparison:
    one = job.find_comparison(pk)
    if one is None:
        raise Http404("no such comparison")
    return one


def shown_rows(one: ArgumentComparison, differences: list[FoundArgument]) -> list[ShownDifference]:
    """What was found with its values, which are read from a call that has them."""
    calls = sampled_calls(
        {(date.fromisoformat(each.day), UUID(each.invocation_id)) for each in differences}
    )
    places = {pk: call.start_place for pk, call in calls.items() if call.start_place is not None}
    try:
        events = read_events(one.tenant_id, places.values())
    except LogPayloadError:
        events = {}
    query = parse_pinned(one.query, ANYBODY)
    terms = [each.closed for each in query.terms if each.name not in ("since", "until")]
    bounds = within(query.wanted, TimeRange(one.since, one.until, UTC), one.created_at)
    start, end = bounds.from_instant(one.created_at), bounds.to_instant(one.created_at)
    selected = " ".join([range_query(start or one.since, end or one.until), *terms])
    rows = []
    for each in differences:
        day, pk = date.fromisoformat(each.day), UUID(each.invocation_id)
        event = events.get(places[pk]) if pk in places else None
        stored = read_args(None if event is None else event.raw)
        arguments = stored.value if isinstance(stored, Value) else None
        parts = [_shown(part, arguments) for part in each.parts]
        has_query = all(part.term for part in parts)
        rows.append(
            ShownDifference(
                difference=each,
                parts=parts,
                also=[[_shown(part, arguments) for part in other] for other in each.also],
                query=" ".join([selected, *(part.term for part in parts)]) if has_query else "",
                example=reverse("call_detail", args=[day, pk]),
            )
        )
    return rows


def _shown(part: Part, arguments: Any) -> ShownPart:
    try:
        value = None if part.type else value_at(arguments, part.path)
    except LookupError:
        value = None
    return ShownPart(part.path, part.type, value)
