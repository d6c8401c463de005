"""The pages of channels: list, create, change, test, delete, and the log of deliveries."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.http import Http404, HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.utils.dateparse import parse_datetime
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from audit.deliveries import channels
from audit.deliveries.addressing import Address, ChannelError
from audit.deliveries.sender.chats import OFFERED, is_installed
from audit.models import AlertChannel, AlertDelivery, ChannelKind, DeliveryState
from audit.pages.channels.forms import ChannelForm, form_for_new, form_of
from config.boxes import BoxError
from config.http.htmx import render_page
from config.http.ordering import (
    SORTED_MAX,
    Key,
    Order,
    page_in_order,
    requested_order,
    sorted_table,
)
from tenants.access import TenantRequest, tenant_page
from tenants.models import Role

_form_methods = require_http_methods(["GET", "HEAD", "POST"])
PAGE_SIZE = 50
_TONES = {
    DeliveryState.DELIVERED: "ok",
    DeliveryState.WAITING: "waiting",
    DeliveryState.FAILED: "failed",
    DeliveryState.CANCELLED: "cancelled",
}


@dataclass(frozen=True, slots=True)
class Attempt:
    """An attempt as a line of the log."""

    at: datetime | None
    answer: str
    status: int | None


@dataclass(frozen=True, slots=True)
class ListedDelivery:
    """A delivery as a row of the log."""

    delivery: AlertDelivery
    tone: str
    state: str
    attempts: list[Attempt]


@dataclass(frozen=True, slots=True)
class ListedChannel:
    """A channel as a row of the list."""

    channel: AlertChannel
    kind: str
    leads_to: str
    last: ListedDelivery | None


_COLUMNS: Mapping[str, Key[ListedChannel]] = {
    "channel": lambda one: one.channel.name.casefold(),
    "kind": lambda one: one.kind,
    "to": lambda one: one.leads_to,
    "last": lambda one: one.last and one.last.delivery.created_at,
}
_OF_DELIVERIES: Mapping[str, Key[AlertDelivery]] = {
    "message": lambda one: one.message.get("title", "").casefold() or None,
    "state": lambda one: one.state,
    "created": lambda one: one.created_at,
    "attempts": lambda one: len(one.attempts),
}
"""The columns by which channels, and the deliveries of one, are sorted."""


@require_safe
@tenant_page(role=Role.ADMIN)
def channel_list(request: TenantRequest) -> HttpResponse:
    """Show the channels, each with its newest delivery."""
    last = channels.last_deliveries()
    listed = [
        ListedChannel(
            channel,
            ChannelKind(channel.kind).label,
            leads_to(channel),
            _listed(last[channel.id]) if channel.id in last else None,
        )
        for channel in channels.all_channels()
    ]
    context = {"channels": sorted_table(request, listed, _COLUMNS, ""), "kinds": _kinds()}
    return render(request, "channels/channel_list.html", context)


@_form_methods
@tenant_page(role=Role.ADMIN)
def channel_new(request: TenantRequest, kind: str) -> HttpResponseBase:
    """Create a channel. Only the response shows the secret of a webhook, once."""
    if kind not in dict(_kinds()):
        raise Http404("no such kind of channel")
    of = ChannelKind(kind)
    form = form_for_new(of, request.POST or None)
    if form.is_valid():
        try:
            channel, address = channels.create_channel(
                request.tenant, request.user, of, form.cleaned_data["name"], form.given
            )
        except (ChannelError, BoxError) as error:
            _show_error(form, error)
        else:
            return _saved(request, channel, address)
    services = sorted({service.name for service in OFFERED.values()}, key=str.lower)
    context = {"form": form, "kind": kind, "label": of.label, "services": services}
    return render(request, "channels/channel_new.html", context)


@_form_methods
@tenant_page(role=Role.ADMIN)
def channel_detail(request: TenantRequest, pk: UUID) -> HttpResponseBase:
    """Show and change a channel, and show its deliveries."""
    channel = _channel_or_404(pk)
    form = form_of(channel, request.POST or None)
    if form.is_valid():
        try:
            before = channel.secret_box
            address = channels.change_channel(
                request.tenant, request.user, channel, form.cleaned_data["name"], form.given
            )
        except (ChannelError, BoxError) as error:
            _show_error(form, error)
        else:
            return _saved(request, channel, address if channel.secret_box != before else None)
    return _detail(request, channel, form)


@require_POST
@tenant_page(role=Role.ADMIN)
def channel_test(request: TenantRequest, pk: UUID) -> HttpResponseBase:
    """Send a test message. The log shows how it went."""
    channels.send_test(request.tenant, request.user, _channel_or_404(pk))
    return redirect("channel_detail", pk)


@require_POST
@tenant_page(role=Role.ADMIN)
def channel_delete(request: TenantRequest, pk: UUID) -> HttpResponseBase:
    """Delete a channel."""
    channel = _channel_or_404(pk)
    channels.delete_channel(request.tenant, request.user, channel)
    messages.success(request, f"{channel.name} was deleted. Nothing more is sent to it.")
    return redirect("channel_list")


def leads_to(channel: AlertChannel) -> str:
    """Where a channel leads, without secrets."""
    shown: Mapping[str, Any] = channel.settings
    match channel.kind:
        case ChannelKind.EMAIL:
            return ", ".join(shown["recipients"])
        case ChannelKind.WEBHOOK:
            return str(shown["url"])
        case ChannelKind.SLACK:
            return str(shown["host"])
        case _:
            return str(shown["shown"])


def _kinds() -> list[tuple[str, str]]:
    return [
        (kind.value, kind.label)
        for kind in ChannelKind
        if kind != ChannelKind.SERVICE or is_installed()
    ]


def _saved(
    request: TenantRequest, channel: AlertChannel, address: Address | None
) -> HttpResponseBase:
    """Show a new secret of a webhook; otherwise open the channel."""
    if address is None or channel.kind != ChannelKind.WEBHOOK:
        messages.success(request, f"{channel.name} was saved.")
        return redirect("channel_detail", channel.id)
    return _detail(request, channel, form_of(channel, None), address.secrets["secret"])


def _detail(
    request: TenantRequest, channel: AlertChannel, form: ChannelForm, secret: str = ""
) -> HttpResponse:
    order = requested_order(request, _OF_DELIVERIES, "")
    rows, pager = _deliveries(request, channel, order)
    context = {
        "channel": channel,
        "kind": ChannelKind(channel.kind).label,
        "form": form,
        "secret": secret,
        "deliveries": [_listed(row) for row in rows],
        "order": order,
        **pager,
        "is_waiting": any(row.state == DeliveryState.WAITING for row in rows[:1]),
    }
    return render_page(request, "channels/channel_detail.html", "deliveries", context)


def _deliveries(
    request: TenantRequest, channel: AlertChannel, order: Order
) -> tuple[list[AlertDelivery], dict[str, Any]]:
    """Return the deliveries of the page that the address names, and the context of its pager."""
    place = request.GET.get("before", "")
    if order.column:
        newest, _ = channels.deliveries_of(channel.id, None, SORTED_MAX + 1)
        page = page_in_order(
            newest, _OF_DELIVERIES, order, identify=lambda one: one.id, after=place, size=PAGE_SIZE
        )
        return page.rows, page.pager
    rows, older = channels.deliveries_of(channel.id, channels.id_in(place), PAGE_SIZE)
    return rows, {"older": older, "is_first_page": not place}


def _listed(delivery: AlertDelivery) -> ListedDelivery:
    state = DeliveryState(delivery.state)
    attempts = [
        Attempt(parse_datetime(each["at"]), each["answer"], each["status"])
        for each in delivery.attempts
    ]
    return ListedDelivery(delivery, _TONES[state], state.label, attempts)


def _show_error(form: ChannelForm, error: ChannelError | BoxError) -> None:
    field = error.field if isinstance(error, ChannelError) else None
    form.add_error(field if field in form.fields else None, str(error))


def _channel_or_404(pk: UUID) -> AlertChannel:
    channel = channels.find_channel(pk)
    if channel is None:
        raise Http404("no such channel")
    return channel
