"""Pages of samples: the list, one sample with its calls, and the acts on it."""

from collections.abc import Mapping
from datetime import datetime
from http import HTTPStatus
from typing import Any, NamedTuple
from uuid import UUID

from django.contrib import messages
from django.http import Http404, HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from audit.evidence.bundling import bundle
from audit.evidence.ledger_range import NotSignedError
from audit.models import Conclusion, Sample, SampledCall, SampleState
from audit.pages.samples.acts import ask_witnesses, begin_sample
from audit.pages.samples.forms import ConclusionForm, DrawForm, ReturnForm, SampleForm
from audit.pages.show.requested_query import mistakes
from audit.pages.show.sample_evidence import evidence_of
from audit.queries.call_list import calls_by_day
from audit.queries.call_query import MAX_LENGTH, Query, Reader, parse, parse_pinned
from audit.queries.listed_call import ListedCall
from audit.sampling.collecting import (
    UNDER_WAY,
    Wanted,
    all_samples,
    cancel_sample,
    find_sample,
)
from audit.sampling.drawing import CannotDrawError, draw_sample, seeding_of
from audit.sampling.working import (
    CannotWorkError,
    conclude,
    projection_of,
    return_sample,
    sampled_calls,
    sign,
)
from config.http.htmx import render_page
from config.http.ordering import Key, sorted_table
from config.http.streams import stream
from tenants.access import TenantRequest, tenant_page
from tenants.accounts.step_up import needs_fresh_factor
from tenants.actions import Person, record_view
from tenants.models import Role
from tenants.slices import percent

_LISTED = 100
_REFUSED = HTTPStatus.UNPROCESSABLE_ENTITY  # the name that Python 3.12 has


class ListedSample(NamedTuple):
    """A sample and the words for its state."""

    sample: Sample
    state: str
    tone: str


class Row(NamedTuple):
    """A drawn call as it is listed."""

    drawn: SampledCall
    call: ListedCall | None
    """None: it is no longer in the index."""
    label: str
    tone: str


_TONES = {
    SampleState.SIGNED: "ok",
    SampleState.FAILED: "failed",
    SampleState.CANCELLED: "cancelled",
}
_CONCLUDED = {"pass": "ok", "exception": "failed", "unjudged": "violation"}
_COLUMNS: Mapping[str, Key[ListedSample]] = {
    "sample": lambda one: one.sample.name.casefold(),
    "state": lambda one: one.state,
    "drawn": lambda one: one.sample.size if one.sample.drawn_at else None,
    "population": lambda one: one.sample.found_count,
    "begun": lambda one: one.sample.created_at,
}
_OF_CALLS: Mapping[str, Key[Row]] = {
    "place": lambda row: row.drawn.position,
    "call": lambda row: row.call and row.call.started_at,
    "tool": lambda row: row.call and row.call.tool_name,
    "entry": lambda row: row.drawn.ledger_index,
    "conclusion": lambda row: row.label or None,
}
"""The columns by which samples, and the calls of one, are sorted."""


@require_http_methods(["GET", "HEAD", "POST"])
@tenant_page(role=Role.AUDITOR)
def sample_list(request: TenantRequest) -> HttpResponseBase:
    """Show the samples, and begin one."""
    if request.method != "POST":
        return _list(request, SampleForm(), _query(request.GET.get("q", "")))
    form, query = SampleForm(request.POST), _query(request.POST.get("q", ""))
    if not form.is_valid() or query.problems:
        return _list(request, form, query)
    wanted = Wanted(
        name=form.cleaned_data["name"],
        query=query,
        size=form.cleaned_data["size"],
        plan=form.plan,
        commitment=form.cleaned_data["commitment"],
    )
    return redirect("sample_detail", begin_sample(request.tenant, request.user, wanted).id)


@require_safe
@tenant_page(role=Role.AUDITOR)
def sample_detail(request: TenantRequest, pk: UUID) -> HttpResponse:
    """Show a sample: how far it is, what to do next, and its calls. `call` opens one of them."""
    return _page(request, _own(pk))


@require_POST
@tenant_page(role=Role.AUDITOR)
def sample_cancel(request: TenantRequest, pk: UUID) -> HttpResponseBase:
    """Stop a sample. It stays on record."""
    _own(pk)
    cancel_sample(request.tenant, request.user, pk, timezone.now())
    return redirect("sample_detail", pk)


@require_POST
@tenant_page(role=Role.AUDITOR)
def sample_witness(request: TenantRequest, pk: UUID) -> HttpResponseBase:
    """Ask the witnesses to sign the newest checkpoint now."""
    try:
        ask_witnesses(request.tenant, request.user, _own(pk))
    except NotSignedError as error:
        messages.error(request, str(error))
    return redirect("sample_detail", pk)


@require_POST
@tenant_page(role=Role.AUDITOR)
def sample_draw(request: TenantRequest, pk: UUID) -> HttpResponseBase:
    """Draw the calls."""
    sample, form = _own(pk), DrawForm(request.POST)
    if form.is_valid():
        try:
            nonce = form.cleaned_data["nonce"]
            draw_sample(request.tenant, request.user, pk, nonce, timezone.now())
        except CannotDrawError as error:
            form.add_error("nonce", str(error))
    if form.errors:
        return _page(request, sample, draw=form, status=_REFUSED)
    return redirect("sample_detail", pk)


@require_POST
@tenant_page(role=Role.AUDITOR)
def sample_conclude(request: TenantRequest, pk: UUID, position: int) -> HttpResponseBase:
    """Conclude about a drawn call, and go on to the next one without a conclusion."""
    sample, form = _own(pk), ConclusionForm(request.POST)
    if not any(call.position == position for call in sampled_calls(sample)):
        raise Http404("no such call")
    if form.is_valid():
        try:
            conclude(request.tenant, request.user, pk, position, form.judged, timezone.now())
        except CannotWorkError as error:
            form.add_error(None, str(error))
    if form.errors:
        return _page(request, sample, concluding=form, position=position, status=_REFUSED)
    following = next((c.position for c in sampled_calls(sample) if not c.conclusion), None)
    address = reverse("sample_detail", args=[pk])
    return redirect(f"{address}?call={following}#call" if following else address)


@require_POST
@tenant_page(role=Role.AUDITOR)
@needs_fresh_factor
def sample_sign(request: TenantRequest, pk: UUID) -> HttpResponseBase:
    """Sign all conclusions."""
    _own(pk)
    try:
        sign(request.tenant, Person(request.user, request.user), pk, timezone.now())
    except CannotWorkError as error:
        messages.error(request, f"Not signed. {error}")
    return redirect("sample_detail", pk)


@require_POST
@tenant_page(role=Role.AUDITOR)
def sample_return(request: TenantRequest, pk: UUID) -> HttpResponseBase:
    """Return a prepared sample to be worked again."""
    sample, form = _own(pk), ReturnForm(request.POST)
    if form.is_valid():
        try:
            return_sample(request.tenant, request.user, pk, form.cleaned_data["reason"])
        except CannotWorkError as error:
            form.add_error("reason", str(error))
    if form.errors:
        return _page(request, sample, returning=form, status=_REFUSED)
    return redirect("sample_detail", pk)


@require_safe
@tenant_page(role=Role.AUDITOR)
def sample_evidence(request: TenantRequest, pk: UUID) -> HttpResponseBase:
    """Export the evidence bundle of a drawn sample. The audit log records it."""
    sample = _own(pk)
    try:
        wanted = evidence_of(request.tenant, sample, request.user.get_username(), timezone.now())
    except NotSignedError as error:
        messages.error(request, f"No bundle created. {error}")
        return redirect("sample_detail", pk)
    if request.method != "HEAD":
        record_view(
            request.tenant.id, request.user, "evidence.export", f"sample {pk}", sample=str(pk)
        )
    name = f"sample-{request.tenant.slug}-{pk}.zip"
    return stream(request.tenant.id, bundle(wanted), "application/zip", file_name=name)


def _query(text: str) -> Query:
    """The query of a population: of the index, whoever asks, as the worker reads it."""
    return parse(text, Reader(timezone.get_current_timezone())).of_index()


def _own(pk: UUID) -> Sample:
    sample = find_sample(pk)
    if sample is None:
        raise Http404("no such sample")
    return sample


def _list(request: TenantRequest, form: SampleForm, query: Query) -> HttpResponse:
    listed = [
        ListedSample(each, SampleState(each.state).label, _tone(each))
        for each in all_samples()[:_LISTED]
    ]
    context = {
        "form": form,
        "q": query.text[:MAX_LENGTH],
        "mistakes": mistakes(query),
        "hint": "Without values of payloads. Empty: all calls. It is fixed when you begin.",
        "samples": sorted_table(request, listed, _COLUMNS, "begun"),
    }
    status = _REFUSED if form.is_bound else HTTPStatus.OK
    return render(request, "samples/sample_list.html", context, status=status)


def _tone(sample: Sample) -> str:
    return _TONES.get(SampleState(sample.state), "open")


def _page(
    request: TenantRequest,
    sample: Sample,
    *,
    draw: DrawForm | None = None,
    concluding: ConclusionForm | None = None,
    returning: ReturnForm | None = None,
    position: int | None = None,
    status: int = HTTPStatus.OK,
) -> HttpResponse:
    calls = sampled_calls(sample)
    listed = {
        call.invocation_id: call
        for call in calls_by_day((call.started_on, call.invocation_id) for call in calls)
    }
    rows = [_row(call, listed.get(call.invocation_id)) for call in calls]
    if position is None:
        requested = request.GET.get("call", "")
        position = int(requested) if requested.isdecimal() and len(requested) < 9 else None
    opened = next((row for row in rows if row.drawn.position == position), None)
    seeding = seeding_of(sample) if sample.fixed_at else None
    checkpoint = seeding and seeding.checkpoint
    projection = projection_of(sample, calls) if calls else None
    context: dict[str, Any] = {
        "sample": sample,
        "state": SampleState(sample.state).label,
        "tone": _tone(sample),
        "is_under_way": sample.state in UNDER_WAY,
        "percent": _percent(sample, timezone.now()),
        "plan": _plan(sample),
        "seeding": seeding,
        "steerable": seeding.why_steerable(sample) if seeding else [],
        "draw": draw or DrawForm(),
        "drawn": sorted_table(
            request, rows, _OF_CALLS, "-place", page=reverse("sample_detail", args=[sample.id])
        ),
        "opened": opened,
        "conclusion": concluding or (opened and _conclusion_form(opened.drawn)),
        "root": bytes(checkpoint.root).hex() if checkpoint else "",
        "projection": projection,
        "confidence": projection and f"{projection.confidence / 100:g} %",
        "limit_rate": projection and projection.limit / projection.population,
        "returning": returning or ReturnForm(),
        "may_review": sample.prepared_person != request.user.pk,
        "may_stop": sample.finished_at is None,
    }
    response = render_page(request, "samples/sample_detail.html", "sample", context)
    response.status_code = status
    return response


def _row(drawn: SampledCall, call: ListedCall | None) -> Row:
    if not drawn.conclusion:
        return Row(drawn, call, "", "")
    return Row(drawn, call, Conclusion(drawn.conclusion).label, _CONCLUDED[drawn.conclusion])


def _conclusion_form(drawn: SampledCall) -> ConclusionForm:
    names = ("conclusion", "exception", "note")
    return ConclusionForm(initial={name: getattr(drawn, name) for name in names})


def _plan(sample: Sample) -> str:
    """How the number of calls was chosen."""
    if sample.wanted_size is not None:
        return "a plain number"
    confidence, tolerable, expected = (
        f"{(each or 0) / 100:g} %"
        for each in (sample.confidence, sample.tolerable, sample.expected)
    )
    return f"{confidence} confidence, {tolerable} tolerable, {expected} expected"


def _percent(sample: Sample, now: datetime) -> int:
    """Progress of the list of calls, which is read from the newest to the oldest."""
    wanted = parse_pinned(sample.query, Reader()).readable
    newest = min(wanted.to_instant(now) or now, sample.created_at)
    oldest = wanted.from_instant(now)
    if sample.cursor_at is None or oldest is None:
        return 0
    return percent((newest - sample.cursor_at).total_seconds(), (newest - oldest).total_seconds())
