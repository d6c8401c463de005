"""The inbox: rejected lines, what is wrong with each, and how it was resolved."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.http import Http404, HttpResponse, HttpResponseBase
from django.shortcuts import redirect
from django.utils import timezone
from django.views.decorators.http import require_POST, require_safe

from audit.exports import inbox as exports
from audit.models import RejectedEvent, Resolution
from audit.pages.inbox.forms import DiscardAllForm, DiscardForm, InboxFilterForm
from audit.pages.show.reveal import RevealForm, is_shown, reveal, reveals
from audit.queries.inbox import InboxFilter, InboxRow, inbox_line, inbox_page
from audit.show import raw_view
from audit.show.figures import counted
from audit.work import inbox
from config.http.htmx import render_page
from config.http.ordering import SORTED_MAX, Key, Order, page_in_order, requested_order
from config.http.streams import stream
from tenants.access import TenantRequest, has_role, tenant_page
from tenants.accounts.step_up import needs_fresh_factor
from tenants.actions import record_view
from tenants.models import Role

PAGE_SIZE = 50
_COLUMNS: Mapping[str, Key[InboxRow]] = {
    "received": lambda row: row.id,
    "reason": lambda row: inbox.CODES.get(row.code, row.code),
    "size": lambda row: row.raw_length,
    "outcome": lambda row: row.resolution,
}
"""The columns by which lines are sorted. Their ids are in the order of time."""
_NEWEST = Order("received")

_SENT = {
    Resolution.ACCEPTED: "Event stored.",
    Resolution.DUPLICATE: "The same event was already stored. Nothing was lost.",
    Resolution.REFUSED: "Rejected again. The event waits with the new reason.",
}


@dataclass(frozen=True, slots=True)
class ListedLine:
    """A rejected line as a row of the list."""

    row: InboxRow
    why: str
    excerpt: str
    outcome: str


@require_safe
@tenant_page()
def inbox_list(request: TenantRequest) -> HttpResponse:
    """Show a page of the rejected lines that match the URL's filters, newest first."""
    form = InboxFilterForm(request.GET)
    is_valid = form.is_valid()
    now = timezone.now()
    wanted = form.wanted(now)
    order = requested_order(request, _COLUMNS, "received")
    rows: list[InboxRow] = []  # half a filter may match the opposite of what was meant
    pager: dict[str, Any] = {"is_first_page": True}
    if is_valid:
        rows, pager = _page(request, form, wanted, order)
    if request.membership.sees_payloads and rows:
        query = request.GET.urlencode()
        record_view(request.tenant.id, request.user, "inbox.view", "beginnings", query=query)
    context = {
        "form": form,
        "wanted": wanted,
        "codes": inbox.CODES,
        "lines": [
            ListedLine(
                row=row,
                why=inbox.CODES.get(row.code, row.code),
                excerpt=raw_view.excerpt(row.excerpt) if row.excerpt is not None else "",
                outcome=Resolution(row.resolution).label if row.resolution else "",
            )
            for row in rows
        ],
        "newest_id": max((row.id for row in rows), default=None),
        "order": order,
        **pager,
        "is_filtered": wanted != InboxFilter(),
        "may_discard": has_role(request.membership, Role.EDITOR),
        "may_export": has_role(request.membership, Role.AUDITOR),
    }
    return render_page(request, "inbox/inbox_list.html", "inbox-list", context)


def _page(
    request: TenantRequest, form: InboxFilterForm, wanted: InboxFilter, order: Order
) -> tuple[list[InboxRow], dict[str, Any]]:
    """Return the lines of the page that the address names, and the context of its pager."""
    before, after = form.cleaned_data.get("before"), form.cleaned_data.get("after")
    with_raw = request.membership.sees_payloads
    if order != _NEWEST:
        newest = inbox_page(wanted, size=SORTED_MAX + 1, with_raw=with_raw).rows
        page = page_in_order(
            newest,
            _COLUMNS,
            order,
            identify=lambda row: row.id,
            after=str(before or ""),
            size=PAGE_SIZE,
        )
        return page.rows, page.pager
    listed = inbox_page(wanted, before=before, after=after, size=PAGE_SIZE, with_raw=with_raw)
    return listed.rows, {
        "newer": listed.newer,
        "older": listed.older,
        "is_first_page": not before and not after,
    }


@require_safe
@tenant_page()
def inbox_detail(request: TenantRequest, pk: UUID) -> HttpResponse:
    """Show one line: why it was rejected, where the problem is, and how it was resolved."""
    return _detail(request, _line_or_404(inbox_line(pk)), DiscardForm())


@require_POST
@tenant_page(role=Role.AUDITOR)
@needs_fresh_factor
def inbox_reveal(request: TenantRequest, pk: UUID) -> HttpResponseBase:
    """Show the member this line for an hour. The audit log records their reason."""
    line = _line_or_404(inbox_line(pk))
    form = RevealForm(request.POST)
    if form.is_valid():
        reveal(request, "inbox.reveal", str(line.id), form.cleaned_data["reason"], code=line.code)
    else:
        messages.error(request, "Nothing revealed. Enter a reason of 3 to 500 characters.")
    return redirect("inbox_detail", pk)


@require_POST
@tenant_page(role=Role.EDITOR)
def inbox_send(request: TenantRequest, pk: UUID) -> HttpResponseBase:
    """Send the line again, as it is or as `line` was edited."""
    now = timezone.now()
    edited = request.POST.get("line")
    try:
        line = _line_or_404(inbox.send_again(request.tenant, request.user, pk, edited, now))
    except inbox.DealtWithError:
        return _dealt_with(request, pk)
    except inbox.NotSentError as error:
        return _detail(
            request,
            _line_or_404(inbox_line(pk)),
            DiscardForm(),
            {"send_error": str(error), "edited": edited},
        )
    resolution = Resolution(str(line.resolution))
    notify = messages.warning if resolution is Resolution.REFUSED else messages.success
    notify(request, _SENT[resolution])
    return redirect("inbox_detail", pk)


@require_POST
@tenant_page(role=Role.EDITOR)
def inbox_discard(request: TenantRequest, pk: UUID) -> HttpResponseBase:
    """Discard the line, with a reason. It stays in the list under Discarded."""
    form = DiscardForm(request.POST)
    if not form.is_valid():
        return _detail(request, _line_or_404(inbox_line(pk)), form)
    now, reason = timezone.now(), form.cleaned_data["reason"]
    try:
        _line_or_404(inbox.discard(request.tenant, request.user, pk, reason, now))
    except inbox.DealtWithError:
        return _dealt_with(request, pk)
    messages.success(request, "Event discarded. It stays in the list under Discarded.")
    return redirect("inbox_detail", pk)


@require_POST
@tenant_page(role=Role.EDITOR)
def inbox_discard_all(request: TenantRequest) -> HttpResponseBase:
    """Discard all waiting lines of one code up to the newest that was seen, with one reason."""
    form = DiscardAllForm(request.POST)
    now = timezone.now()
    if not form.is_valid():
        messages.error(request, "Nothing discarded. A code and a reason are required.")
        return redirect("inbox_list")
    until, reason = form.cleaned_data["until"], form.cleaned_data["reason"]
    wanted = form.wanted(now)
    count = inbox.discard_all(
        tenant=request.tenant,
        actor=request.user,
        wanted=wanted,
        until=until,
        reason=reason,
        now=now,
    )
    messages.success(request, f"Discarded {counted(count, 'event')}, still listed under Discarded.")
    return redirect("inbox_list")


@require_safe
@tenant_page(role=Role.AUDITOR)
def inbox_export(request: TenantRequest, kind: str) -> HttpResponseBase:
    """Export every line that matches the URL's filters as a file."""
    if kind not in exports.FORMS:
        raise Http404("no such form of export")
    form = InboxFilterForm(request.GET)
    if not form.is_valid():  # an export must not hold more than was requested
        raise Http404("no such filter")
    written = exports.FORMS[kind]
    wanted = form.wanted(timezone.now())
    if request.method != "HEAD":
        record_view(
            request.tenant.id,
            request.user,
            "inbox.export",
            kind,
            apart=request.GET.urlencode(),
            state=wanted.state,
            code=wanted.code,
            since=wanted.since and wanted.since.isoformat(),
        )
    name = f"inbox-{request.tenant.slug}-{timezone.now():%Y%m%dT%H%M%SZ}.{kind}"
    return stream(
        request.tenant.id,
        written.write(exports.chunks(request.tenant.id, wanted)),
        written.content_type,
        file_name=name,
    )


def _detail(
    request: TenantRequest,
    line: RejectedEvent,
    discard_form: DiscardForm,
    more: dict[str, object] | None = None,
) -> HttpResponse:
    now = timezone.now()
    with_raw = is_shown(request, "inbox.reveal", str(line.id), now)
    entry = inbox.gather(line, with_raw=with_raw, now=now)
    if with_raw:
        record_view(request.tenant.id, request.user, "inbox.view", str(line.id), code=line.code)
    context: dict[str, object] = {
        "entry": entry,
        "line": line,
        "may_reveal": request.membership.may_reveal and not with_raw,
        "reveals": reveals(request, "inbox.reveal", str(line.id)),
        "why": inbox.CODES.get(line.code, line.code),
        "may_deal": line.resolution is None and has_role(request.membership, Role.EDITOR),
        "discard_form": discard_form,
        "edited": None,
        **(more or {}),
    }
    return render_page(request, "inbox/inbox_detail.html", "inbox-line", context)


def _dealt_with(request: TenantRequest, pk: UUID) -> HttpResponseBase:
    messages.warning(request, "Nothing changed. This event was already resent or discarded.")
    return redirect("inbox_detail", pk)


def _line_or_404(line: RejectedEvent | None) -> RejectedEvent:
    if line is None:
        raise Http404("no such line in the inbox")
    return line
