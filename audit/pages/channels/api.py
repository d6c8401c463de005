"""Channels of alerts over the API: as on their pages, without ever showing a secret."""

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from django.http import HttpRequest
from ninja import Path, Query
from pydantic import Field

from audit.deliveries import channels
from audit.deliveries.addressing import RECIPIENTS_MAX, URL_MAX, ChannelError
from audit.models import AlertChannel, AlertDelivery, ChannelKind
from audit.pages.show.router import router
from config.boxes import BoxError
from config.http.problems import ProblemError
from tenants.api_acts import Act, Body, Stripped, acts, invalid
from tenants.api_reads import Answer, ListParams, Page, paged, reads, seal, unseal, utc
from tenants.models import Scope

_Text = Annotated[Stripped, Field(max_length=URL_MAX)]
_MEMBERS: Mapping[str, frozenset[str]] = {
    "email": frozenset(
        ("recipients", "sender", "host", "port", "security", "username", "password")
    ),
    "webhook": frozenset(("url", "secret")),
    "slack": frozenset(("url",)),
    "service": frozenset(("url",)),
}


class OneChannel(Answer):
    """Where alerts are sent, without its secrets."""

    id: UUID
    name: str
    kind: Literal["email", "webhook", "slack", "service"]
    settings: dict[str, Any]
    """Of an e-mail all but the password, of a webhook its `url`; of others the host, as their URL
    is a secret."""
    has_secret: bool
    """Whether a password, a signing secret or a secret URL is stored."""
    created_at: datetime
    created_by: str
    changed_at: datetime
    changed_by: str


class ChannelList(Page[OneChannel]):
    """All channels of the tenant, by name."""

    OLD_NAME = "channels"


class ChannelBody(Body):
    """What a channel of a kind needs. Secrets that are left out stay as they are."""

    kind: Literal["email", "webhook", "slack", "service"]
    """It cannot be changed: delete the channel, and create another."""
    url: _Text = ""
    """Of a webhook; of Slack and other services it is a secret."""
    secret: _Text = ""
    """Of a webhook's signatures: `whsec_` and the base64 of 24 to 64 bytes. A new channel needs
    one, as the answer shows none."""
    recipients: list[str] = Field(default_factory=list[str], max_length=RECIPIENTS_MAX)
    """Addresses of an e-mail."""
    sender: _Text = ""
    host: _Text = ""
    """The mail server."""
    port: int = Field(587, ge=1, le=65_535)
    security: Literal["starttls", "tls", "none"] = "starttls"
    username: _Text = ""
    password: _Text = ""


class ChannelTest(Answer):
    """A test message. The deliveries show how it went."""

    message_id: UUID


class DeliveryAttempt(Answer):
    """An attempt, and what the receiver answered."""

    at: datetime
    answer: str
    status: int | None
    """The HTTP status; null without one."""


class OneDelivery(Answer):
    """A message for a channel, and how far it is."""

    id: UUID
    message_id: UUID
    """The same in each attempt, and what the receiver sees."""
    kind: Literal["fired", "repeated", "resolved", "test"]
    rule: str
    title: str
    state: Literal["waiting", "delivered", "failed", "cancelled"]
    created_at: datetime
    finished_at: datetime | None
    next_attempt_at: datetime | None
    """null if it does not wait."""
    attempts: list[DeliveryAttempt]


class DeliveryPage(Page[OneDelivery]):
    """Deliveries of a channel, newest first."""

    OLD_NAME = "deliveries"


@reads(
    router,
    "/channels",
    ChannelList,
    tag="alerts",
    scope=Scope.ADMIN,
    problems=("cursor", "limit"),
)
def list_channels(request: HttpRequest, params: Query[ListParams]) -> dict[str, Any]:
    """List the channels that alerts are sent to."""
    stored = channels.all_channels()
    shown, after = paged("channels", stored, params, lambda channel: channel.name)
    return {"items": [_channel(one) for one in shown], "next": after}


@reads(
    router,
    "/channels/{name}",
    OneChannel,
    tag="alerts",
    scope=Scope.ADMIN,
    problems=("not_found",),
)
def read_channel(request: HttpRequest, name: Path[str]) -> dict[str, Any]:
    """Get a channel by its name or its id."""
    return _channel(_channel_of(name))


@acts(
    router,
    "PUT",
    "/channels/{name}",
    OneChannel,
    scope=Scope.ADMIN,
    tag="alerts",
    body=ChannelBody,
    problems=("not_found", "conflict"),
)
def save_channel(act: Act, name: Path[str]) -> dict[str, Any]:
    """Create the channel of this name, or replace its settings. Sending it again changes nothing.

    An id instead of a name changes that channel.
    """
    stored = channels.find_named(name)
    if stored is None and channels.id_in(name) is not None:
        raise ProblemError("not_found", "Channel not found.")
    body = act.read(ChannelBody)
    given = _given(body)
    try:
        if stored is None:
            if body.kind == "webhook" and not body.secret:
                raise invalid("secret", "A new webhook needs one, as no answer shows it.")
            kind = ChannelKind(body.kind)
            stored, _ = channels.create_channel(act.tenant, act.actor, kind, name, given)
        elif stored.kind != body.kind:
            raise ProblemError("conflict", f"The channel is of the kind {stored.kind}.")
        else:
            channels.change_channel(act.tenant, act.actor, stored, stored.name, given)
    except ChannelError as error:
        raise invalid(error.field, str(error)) from error
    except BoxError as error:
        raise ProblemError("conflict", str(error)) from error
    return _channel(stored)


@acts(
    router,
    "DELETE",
    "/channels/{name}",
    OneChannel,
    scope=Scope.ADMIN,
    tag="alerts",
    problems=("not_found",),
)
def remove_channel(act: Act, name: Path[str]) -> dict[str, Any]:
    """Delete a channel and return it. Messages that wait for it are cancelled."""
    stored = _channel_of(name)
    channels.delete_channel(act.tenant, act.actor, stored)
    return _channel(stored)


@acts(
    router,
    "POST",
    "/channels/{name}/test",
    ChannelTest,
    scope=Scope.ADMIN,
    tag="alerts",
    problems=("not_found",),
)
def send_channel_test(act: Act, name: Path[str]) -> dict[str, Any]:
    """Send a test message. The deliveries of the channel show how it went."""
    return {"message_id": channels.send_test(act.tenant, act.actor, _channel_of(name))}


@reads(
    router,
    "/channels/{name}/deliveries",
    DeliveryPage,
    tag="alerts",
    scope=Scope.ADMIN,
    problems=("not_found", "cursor", "limit"),
)
def list_deliveries(
    request: HttpRequest, name: Path[str], params: Query[ListParams]
) -> dict[str, Any]:
    """List what was sent to a channel in the last 90 days, newest first."""
    stored = _channel_of(name)
    before = unseal("deliveries", params.cursor, lambda place: UUID(place[0]))
    rows, older = channels.deliveries_of(stored.id, before, params.limit)
    return {
        "items": [_delivery(row) for row in rows],
        "next": seal("deliveries", older) if older else None,
    }


def _channel_of(name: str) -> AlertChannel:
    stored = channels.find_named(name)
    if stored is None:
        raise ProblemError("not_found", "Channel not found.")
    return stored


def _given(body: ChannelBody) -> dict[str, Any]:
    """The settings for a kind of channel. Raises ProblemError for members of another kind."""
    members = _MEMBERS[body.kind]
    if others := sorted(body.model_fields_set - members - {"kind"}):
        raise invalid(others[0], f"A channel of the kind {body.kind} has none.")
    return body.model_dump(include=set(members))


def _channel(stored: AlertChannel) -> dict[str, Any]:
    return {
        "id": stored.id,
        "name": stored.name,
        "kind": str(stored.kind),
        "settings": dict(stored.settings),
        "has_secret": stored.secret_box is not None,
        "created_at": utc(stored.created_at),
        "created_by": stored.created_by,
        "changed_at": utc(stored.changed_at),
        "changed_by": stored.changed_by,
    }


def _delivery(row: AlertDelivery) -> dict[str, Any]:
    return {
        "id": row.id,
        "message_id": row.message_id,
        **{name: row.message[name] for name in ("kind", "rule", "title")},
        "state": str(row.state),
        "created_at": utc(row.created_at),
        "finished_at": row.finished_at and utc(row.finished_at),
        "next_attempt_at": None if row.finished_at else utc(row.next_attempt_at),
        "attempts": row.attempts,
    }
