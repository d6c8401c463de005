"""The channels of a tenant: create, change, test and delete them. Needs the tenant's scope."""

from uuid import UUID

from django.utils import timezone

from audit.deliveries.addressing import Address, ChannelError, Given, read
from audit.deliveries.message import Message
from audit.deliveries.outbox import enqueue
from audit.models import AlertChannel, AlertDelivery, ChannelKind, DeliveryState
from config.boxes import close_members, open_members
from tenants.actions import record_action
from tenants.models import Tenant, User, new_id
from tenants.scope import current_tenant_id

CHANNELS_MAX = 100
NAME_MAX = 100


def all_channels() -> list[AlertChannel]:
    """The tenant's channels by name."""
    return list(AlertChannel.objects.for_tenant(current_tenant_id()).order_by("name"))


def find_channel(channel_id: UUID) -> AlertChannel | None:
    """A channel of the tenant, or None."""
    return AlertChannel.objects.for_tenant(current_tenant_id()).filter(id=channel_id).first()


def find_named(name: str) -> AlertChannel | None:
    """The channel of this name, or of this id as text, or None."""
    if not name.isprintable():
        return None
    channels = AlertChannel.objects.for_tenant(current_tenant_id())
    channel = channels.filter(name=name).first()
    if channel is None and (channel_id := id_in(name)) is not None:
        return find_channel(channel_id)
    return channel


def id_in(text: str) -> UUID | None:
    """The id that a text is, or None."""
    try:
        return UUID(text)
    except ValueError:
        return None


def deliveries_of(
    channel_id: UUID, before: UUID | None, size: int
) -> tuple[list[AlertDelivery], str]:
    """A page of a channel's deliveries, newest first, and where older ones begin ("": none)."""
    rows = AlertDelivery.objects.for_tenant(current_tenant_id()).filter(channel_id=channel_id)
    if before is not None:
        rows = rows.filter(id__lt=before)
    page = list(rows.order_by("-id")[: size + 1])
    older = str(page[size - 1].id) if len(page) > size else ""
    return page[:size], older


def last_deliveries() -> dict[UUID, AlertDelivery]:
    """The newest delivery of each channel."""
    rows = AlertDelivery.objects.for_tenant(current_tenant_id())
    newest = rows.order_by("channel_id", "-id").distinct("channel_id")
    return {row.channel_id: row for row in newest}


def create_channel(
    tenant: Tenant,
    user: User | str,
    kind: ChannelKind,
    name: str,
    given: Given,
    *,
    channel_id: UUID | None = None,
) -> tuple[AlertChannel, Address]:
    """Store a new channel. Returns it with its address, whose secrets are not shown again.

    Raises ChannelError, BoxError.
    """
    _check_name(name)
    others = AlertChannel.objects.for_tenant(tenant.id)
    if others.filter(name=name).exists():
        raise ChannelError("name", "Another channel has this name.")
    if others.count() >= CHANNELS_MAX:
        raise ChannelError("name", f"A tenant has at most {CHANNELS_MAX} channels.")
    address, now, pk = read(kind, given, {}), timezone.now(), channel_id or new_id()
    channel = AlertChannel.objects.create(
        tenant_id=tenant.id,
        id=pk,
        name=name,
        kind=kind,
        settings=address.settings,
        secret_box=_box(tenant.id, pk, address),
        created_at=now,
        created_by=_name(user),
        changed_at=now,
        changed_by=_name(user),
    )
    record_action(
        tenant, user, "channel.create", name, rows=[channel], channel=str(pk), kind=str(kind)
    )
    return channel, address


def change_channel(
    tenant: Tenant, user: User | str, channel: AlertChannel, name: str, given: Given
) -> Address:
    """Change a channel's name and address; secrets that are left empty stay.

    Without a change nothing is recorded. Raises ChannelError, BoxError.
    """
    _check_name(name)
    others = AlertChannel.objects.for_tenant(tenant.id).exclude(id=channel.id)
    if others.filter(name=name).exists():
        raise ChannelError("name", "Another channel has this name.")
    kept = secrets_of(channel)
    address = read(ChannelKind(channel.kind), given, kept)
    changed = [
        field for field, value in address.settings.items() if channel.settings[field] != value
    ]
    changed += ["name"] if channel.name != name else []
    if address.secrets != kept:
        changed.append("secret")
        channel.secret_box = _box(tenant.id, channel.id, address)
    if not changed:
        return address
    before = channel.name
    channel.name, channel.settings = name, dict(address.settings)
    channel.changed_at, channel.changed_by = timezone.now(), _name(user)
    AlertChannel.objects.for_tenant(tenant.id).filter(id=channel.id).update(
        name=channel.name,
        settings=channel.settings,
        secret_box=channel.secret_box,
        changed_at=channel.changed_at,
        changed_by=channel.changed_by,
    )
    record_action(
        tenant,
        user,
        "channel.change",
        before,
        rows=[channel],
        channel=str(channel.id),
        changed=sorted(changed),
    )
    return address


def delete_channel(tenant: Tenant, user: User | str, channel: AlertChannel) -> None:
    """Delete a channel. Messages that wait for it are cancelled; its deliveries are kept."""
    AlertChannel.objects.for_tenant(tenant.id).filter(id=channel.id).delete()
    waiting = AlertDelivery.objects.for_tenant(tenant.id).filter(
        channel_id=channel.id, state=DeliveryState.WAITING
    )
    cancelled = waiting.update(state=DeliveryState.CANCELLED, finished_at=timezone.now())
    record_action(
        tenant,
        user,
        "channel.delete",
        channel.name,
        rows=[channel],
        channel=str(channel.id),
        cancelled=cancelled,
    )


def send_test(tenant: Tenant, user: User | str, channel: AlertChannel) -> UUID:
    """Send a test message. Returns its id."""
    message = Message(
        id=new_id(),
        kind="test",
        rule="Test",
        severity="warning",
        title=f"Test message of {tenant.name}",
        text=f"{_name(user)} tests the channel {channel.name}. No alert was fired.",
        link=f"/settings/channels/{channel.id}",
        facts={},
        at=timezone.now(),
    )
    enqueue(tenant.id, message, [channel.id])
    record_action(
        tenant, user, "channel.test", channel.name, channel=str(channel.id), message=str(message.id)
    )
    return message.id


def secrets_of(channel: AlertChannel) -> dict[str, str]:
    """The decrypted secrets of a channel. Raises BoxError."""
    return open_members(_place(channel.tenant_id, channel.id), channel.secret_box)


def _box(tenant_id: UUID, channel_id: UUID, address: Address) -> bytes | None:
    return close_members(_place(tenant_id, channel_id), address.secrets)


def _place(tenant_id: UUID, channel_id: UUID) -> bytes:
    return tenant_id.bytes + channel_id.bytes


def _check_name(name: str) -> None:
    if not 0 < len(name) <= NAME_MAX or not name.isprintable():
        raise ChannelError("name", f"Enter a name of 1 to {NAME_MAX} characters.")


def _name(user: User | str) -> str:
    return user.get_username() if isinstance(user, User) else user
