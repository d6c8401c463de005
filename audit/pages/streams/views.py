"""The pages of streams: list, create, change, test, pause, resume, replay, payloads, delete."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.utils import timezone
from django.utils.dateparse import parse_datetime
from django.views.decorators.cache import cache_control
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from audit.ledger.status import LedgerStatus, ledger_status
from audit.models import Stream, StreamFormat, StreamOf, StreamWay
from audit.pages.show.reveal import RevealForm
from audit.pages.streams.forms import ReplayForm, StreamForm, form_for_new, form_of
from audit.stream import streams
from audit.stream.addressing import StreamError, leads_to
from audit.stream.lag import Lag, lag_of
from config.boxes import BoxError
from config.http.htmx import render_page
from config.http.ordering import Key, sorted_table
from config.instance import BASE_DIR
from tenants.access import TenantRequest, has_role, tenant_page
from tenants.accounts.step_up import needs_fresh_factor
from tenants.models import Role, Tenant, User

_form_methods = require_http_methods(["GET", "HEAD", "POST"])
_SCHEMAS = BASE_DIR / "docs" / "schemas"
_TONES = {"current": "ok", "behind": "violation", "failing": "failed", "paused": "waiting"}


@dataclass(frozen=True, slots=True)
class ListedStream:
    """A stream as a row of the list."""

    stream: Stream
    of: str
    format: str
    way: str
    leads_to: str
    lag: Lag
    tone: str


_COLUMNS: Mapping[str, Key[ListedStream]] = {
    "stream": lambda one: one.stream.name.casefold(),
    "sends": lambda one: one.of,
    "to": lambda one: one.leads_to,
    "state": lambda one: one.lag.state,
    "waiting": lambda one: one.lag.entries,
    "sent": lambda one: one.stream.sent_at,
}
"""The columns by which streams are sorted."""


@require_safe
@tenant_page(role=Role.AUDITOR)
def stream_list(request: TenantRequest) -> HttpResponse:
    """Show the streams, and how each stands."""
    status, now = ledger_status(request.tenant.id), timezone.now()
    listed = [_listed(one, status, now) for one in streams.all_streams()]
    context = {
        "streams": sorted_table(request, listed, _COLUMNS, ""),
        "ways": StreamWay.choices,
        "may_edit": has_role(request.membership, Role.ADMIN),
    }
    return render(request, "streams/stream_list.html", context)


@_form_methods
@tenant_page(role=Role.ADMIN)
def stream_new(request: TenantRequest, way: str) -> HttpResponseBase:
    """Create a stream."""
    if way not in StreamWay.values:
        raise Http404("no such way")
    of = StreamWay(way)
    form = form_for_new(of, request.POST or None)
    if form.is_valid():
        begin = 0 if form.cleaned_data["begin"] == "all" else None
        try:
            stream = streams.create_stream(
                request.tenant, request.user, form.wanted(of), from_index=begin
            )
        except (StreamError, BoxError) as error:
            _show_error(form, error)
        else:
            messages.success(request, f"{stream.name} was created. Send a test record.")
            return redirect("stream_detail", stream.id)
    return render(request, "streams/stream_new.html", {"form": form, "label": of.label})


@require_safe
@tenant_page(role=Role.AUDITOR)
def stream_detail(request: TenantRequest, pk: UUID) -> HttpResponseBase:
    """Show a stream: its cursor, its lag, its last failure, and what can be done."""
    stream = _stream_or_404(pk)
    return _detail(request, stream, form_of(stream, None))


@require_POST
@tenant_page(role=Role.ADMIN)
def stream_change(request: TenantRequest, pk: UUID) -> HttpResponseBase:
    """Change a stream."""
    stream = _stream_or_404(pk)
    form = form_of(stream, request.POST)
    if form.is_valid():
        try:
            streams.change_stream(
                request.tenant, request.user, stream, form.wanted(StreamWay(stream.way))
            )
        except (StreamError, BoxError) as error:
            _show_error(form, error)
        else:
            messages.success(request, f"{stream.name} was saved.")
            return redirect("stream_detail", stream.id)
    return _detail(request, stream, form)


def _act(
    act: Callable[[Tenant, User, Stream], object], message: str
) -> Callable[[TenantRequest, UUID], HttpResponseBase]:
    """A view that does something with a stream, and says so."""

    def view(request: TenantRequest, pk: UUID) -> HttpResponseBase:
        stream = _stream_or_404(pk)
        act(request.tenant, request.user, stream)
        messages.success(request, message.format(stream.name))
        return redirect("stream_detail", pk)

    return view


stream_test = require_POST(
    tenant_page(role=Role.ADMIN)(
        _act(streams.ask_test, "A test record is sent. The answer is below in some seconds.")
    )
)
stream_pause = require_POST(
    tenant_page(role=Role.ADMIN)(
        _act(streams.pause_stream, "{} is paused. What arrives waits in the ledger.")
    )
)
stream_resume = require_POST(
    tenant_page(role=Role.ADMIN)(_act(streams.resume_stream, "{} continues from its cursor."))
)
stream_no_payloads = require_POST(
    tenant_page(role=Role.AUDITOR)(
        _act(streams.stop_payloads, "Payloads do not leave with {} any more.")
    )
)


@require_POST
@tenant_page(role=Role.AUDITOR)
@needs_fresh_factor
def stream_payloads(request: TenantRequest, pk: UUID) -> HttpResponseBase:
    """Let payloads leave with a stream, for a reason that stays in the ledger."""
    stream = _stream_or_404(pk)
    form = RevealForm(request.POST)
    if not form.is_valid():
        messages.error(request, "Nothing was changed. Enter a reason of at least 3 characters.")
    elif streams.allow_payloads(request.tenant, request.user, stream, form.cleaned_data["reason"]):
        messages.success(request, f"Payloads leave with {stream.name} from now on.")
    return redirect("stream_detail", pk)


@require_POST
@tenant_page(role=Role.ADMIN)
def stream_replay(request: TenantRequest, pk: UUID) -> HttpResponseBase:
    """Send a stream again from an index."""
    stream = _stream_or_404(pk)
    form = ReplayForm(request.POST)
    try:
        if not form.is_valid():
            raise StreamError("index", "Enter an index of the ledger.")
        index: int = form.cleaned_data["index"]
        streams.replay_stream(request.tenant, request.user, stream, index)
    except StreamError as error:
        messages.error(request, f"Nothing was changed. {error}")
    else:
        messages.success(request, f"{stream.name} is sent again from entry {index:,}.")
    return redirect("stream_detail", pk)


@require_POST
@tenant_page(role=Role.ADMIN)
def stream_delete(request: TenantRequest, pk: UUID) -> HttpResponseBase:
    """Delete a stream."""
    stream = _stream_or_404(pk)
    streams.delete_stream(request.tenant, request.user, stream)
    messages.success(request, f"{stream.name} was deleted. Nothing more is sent.")
    return redirect("stream_list")


@require_safe
@cache_control(max_age=3600, public=True)
def stream_schema(request: HttpRequest, name: str) -> HttpResponse:
    """The published JSON Schema of a format of records."""
    file = _SCHEMAS / f"{name}.json"
    if name not in ("stream-ocsf-1", "stream-ecs-1"):
        raise Http404("no such schema")
    return HttpResponse(file.read_bytes(), content_type="application/schema+json")


def _detail(request: TenantRequest, stream: Stream, form: StreamForm) -> HttpResponse:
    now = timezone.now()
    listed = _listed(stream, ledger_status(request.tenant.id), now)
    tested: dict[str, Any] = stream.last_test or {}
    context = {
        "one": listed,
        "stream": stream,
        "lag_seconds": listed.lag.seconds(now),
        "is_sending": stream.claimed_until is not None and stream.claimed_until > now,
        "test": {
            "at": parse_datetime(tested.get("at") or tested.get("asked_at", "")),
            "answer": tested.get("answer", ""),
            "is_taken": tested.get("is_taken"),
        }
        if tested
        else None,
        "is_waiting": bool(tested) and "at" not in tested,
        "form": form,
        "may_edit": has_role(request.membership, Role.ADMIN),
    }
    return render_page(request, "streams/stream_detail.html", "standing", context)


def _listed(stream: Stream, status: LedgerStatus, now: datetime) -> ListedStream:
    lag = lag_of(stream, status, now)
    return ListedStream(
        stream,
        StreamOf(stream.of).label,
        StreamFormat(stream.format).label,
        StreamWay(stream.way).label,
        leads_to(stream.way, stream.settings),
        lag,
        _TONES[lag.state],
    )


def _show_error(form: StreamForm, error: StreamError | BoxError) -> None:
    field = error.field if isinstance(error, StreamError) else None
    form.add_error(field if field in form.fields else None, str(error))


def _stream_or_404(pk: UUID) -> Stream:
    stream = streams.find_stream(pk)
    if stream is None:
        raise Http404("no such stream")
    return stream
