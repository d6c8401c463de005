"""Applies channels, alert rules and maintenance windows."""

from audit.alerts.maintenance import Maintenance
from audit.alerts.quiet import (
    TooManyWindowsError,
    UnknownRuleError,
    all_windows,
    delete_window,
    save_window,
)
from audit.alerts.rules import Rule
from audit.alerts.stored import (
    TooManyRulesError,
    UnknownChannelError,
    all_rules,
    delete_rule,
    save_rule,
)
from audit.declared.document import Channel, EmailChannel, WebhookChannel
from audit.declared.work import ChangeAction, Work
from audit.deliveries.addressing import ChannelError
from audit.deliveries.channels import all_channels, change_channel, create_channel, delete_channel
from audit.models import AlertChannel, ChannelKind
from config.boxes import BoxError

_SECRETS = {"email": "password", "webhook": "secret", "slack": "url", "service": "url"}


def apply_channels(work: Work, wanted: list[Channel]) -> None:
    """Create channels, and change those whose settings or secrets differ."""
    stored = {channel.name: channel for channel in all_channels()}
    for index, one in enumerate(wanted):
        _apply_channel(work, f"channels[{index}]", one, stored.get(one.name))


def apply_rules(work: Work, wanted: list[Rule]) -> None:
    """Create or change alert rules."""
    stored = {rule.name: rule for rule in all_rules()}
    for index, rule in enumerate(wanted):
        path, known = f"alert_rules[{index}]", stored.pop(rule.name, None)
        try:
            is_changed = save_rule(work.tenant, work.actor, rule, work.now)
        except UnknownChannelError as error:
            work.refuse(f"{path}.channels", str(error))
        except TooManyRulesError as error:
            work.refuse(path, str(error))
        else:
            if is_changed:
                work.did("change" if known else "create", "alert rule", rule.name)
    if work.options.prunes:
        for known in stored.values():
            delete_rule(work.tenant, work.actor, known, work.now)
            work.did("remove", "alert rule", known.name)


def apply_windows(work: Work, wanted: list[Maintenance]) -> None:
    """Create or change maintenance windows. After the rules that they name."""
    stored = {window.name: window for window in all_windows()}
    for index, window in enumerate(wanted):
        path, known = f"maintenance_windows[{index}]", stored.pop(window.name, None)
        try:
            is_changed = save_window(work.tenant, work.actor, window, work.now)
        except UnknownRuleError as error:
            work.refuse(f"{path}.rules", str(error))
        except TooManyWindowsError as error:
            work.refuse(path, str(error))
        else:
            if is_changed:
                action: ChangeAction = "change" if known else "create"
                work.did(action, "maintenance window", window.name)
    if work.options.prunes:
        for known in stored.values():
            delete_window(work.tenant, work.actor, known)
            work.did("remove", "maintenance window", known.name)


def prune_channels(work: Work, wanted: list[Channel]) -> None:
    """Delete channels that the file does not name and that no rule uses. After the rules."""
    named = {one.name for one in wanted}
    used = {channel_id for rule in all_rules() for channel_id in rule.channel_ids}
    for channel in all_channels():
        if channel.name in named:
            continue
        if channel.id in used:
            work.note(f"the channel {channel.name!r} stays: an alert rule uses it")
            continue
        delete_channel(work.tenant, work.actor, channel)
        work.did("remove", "channel", channel.name)


def _apply_channel(work: Work, path: str, one: Channel, stored: AlertChannel | None) -> None:
    if stored is not None and stored.kind != one.kind:
        work.refuse(f"{path}.kind", f"the channel is of the kind {stored.kind}")
        return
    problems = len(work.outcome.problems)
    given = one.model_dump(exclude={"name", "kind"})
    member = _SECRETS[one.kind]
    is_optional = isinstance(one, EmailChannel) and one.password is None
    given[member] = work.secret(
        f"{path}.{member}", getattr(one, member), is_needed=stored is None and not is_optional
    )
    if len(work.outcome.problems) > problems:
        return
    try:
        if stored is None:
            create_channel(work.tenant, work.actor, ChannelKind(one.kind), one.name, given)
            work.did("create", "channel", one.name, one.kind)
            return
        before = stored.changed_at
        change_channel(work.tenant, work.actor, stored, one.name, given)
        if stored.changed_at != before:
            work.did("change", "channel", one.name, _shown(one))
    except ChannelError as error:
        work.refuse(f"{path}.{error.field}", str(error))
    except BoxError as error:
        work.refuse(path, str(error))


def _shown(one: Channel) -> str:
    """Where a channel leads, without its secrets."""
    if isinstance(one, EmailChannel):
        return ", ".join(one.recipients)
    return one.url if isinstance(one, WebhookChannel) else ""
