"""Applies a tenant's settings: name, time zone, retention, redaction, sign-in, reports,
and polling tools.
"""

from collections.abc import Mapping
from typing import Any

from django.forms import Form

from audit.declared.document import DeclaredTenant, RedactionRules, Reports, SignIn, Witnesses
from audit.declared.work import Work, differences
from audit.ledger.witnesses.policy import (
    AuthorityError,
    WitnessError,
    can_ask_authorities,
    read_policy,
)
from audit.ledger.witnesses.states import policy_of
from audit.pages.repeats.acts import exclude_tool, include_tool
from audit.pages.reports.acts import save_schedule
from audit.pages.reports.forms import ScheduleForm
from audit.pages.settings.acts import (
    Settings,
    current_settings,
    save_redaction,
    save_settings,
    save_witnesses,
    setting_of,
)
from audit.pages.settings.forms import RedactionForm, TenantForm
from audit.queries.polling import MAX_TOOLS, TooManyPollingToolsError, polling_tools
from audit.reports.schedule import schedule
from audit.retention.floor import FloorError, locked_setting, raise_floor
from tenants.accounts import settings as sign_in

_RETENTION = ("payload_days", "index_days")


def apply_settings(work: Work, wanted: DeclaredTenant) -> None:
    """Make name, time zone and retention those of the file. A file raises the floor only."""
    setting = locked_setting(work.tenant)
    current = current_settings(work.tenant, setting)
    given: dict[str, Any] = {}
    if wanted.name is not None:
        given["name"] = wanted.name
    if wanted.time_zone is not None:
        given["time_zone"] = wanted.time_zone
    if wanted.retention is not None:
        given |= {
            name: getattr(wanted.retention, name)
            for name in _RETENTION
            if wanted.retention.is_given(name)
        }
    before = current._asdict()
    # A new tenant has no data that a shorter retention could erase.
    is_sure = work.options.may_erase or work.is_new
    form = TenantForm({**before, **given, "is_sure": is_sure}, setting=setting)
    if "is_sure" in form.errors:
        reason = "becomes shorter: older data is erased within an hour; confirm with --erase-older"
        work.refuse("retention", reason)
        return
    places = {name: f"retention.{name}" for name in _RETENTION}
    if not _is_valid(work, form, places):
        return
    after = Settings(*(form.cleaned_data[name] for name in Settings._fields))
    if changed := differences(before, after._asdict()):
        save_settings(work.tenant, work.actor, current, after)
        work.tenant.refresh_from_db()
        work.did("change", "settings", "", changed)
    if wanted.retention is not None and wanted.retention.is_given("floor_days"):
        _apply_floor(work, setting.floor_days, wanted.retention.floor_days)


def _apply_floor(work: Work, before: int | None, after: int | None) -> None:
    if before == after:
        return
    if after is None or after < (before or 0):
        reason = "a file can only raise it: two admins lower it, on the page of the retention floor"
        work.refuse("retention.floor_days", reason)
        return
    try:
        raise_floor(work.tenant, work.actor, after, "A file of configuration says so.")
    except FloorError as error:
        work.refuse("retention.floor_days", str(error))
    else:
        changed = differences({"floor_days": before}, {"floor_days": after})
        work.did("change", "retention floor", "", changed)


def apply_redaction(work: Work, wanted: RedactionRules) -> None:
    """Make the rules of redaction those of the file."""
    for member in ("names", "patterns"):
        for index, text in enumerate(getattr(wanted, member)):
            if "\n" in text or not text.strip():
                work.refuse(f"redaction.{member}[{index}]", "must be one line of text")
                return
    form = RedactionForm(
        {
            "names": "\n".join(wanted.names),
            "patterns": "\n".join(wanted.patterns),
            "otlp": wanted.otlp,
            "clear_principals": wanted.clear_principals,
        }
    )
    if not _is_valid(work, form, {name: f"redaction.{name}" for name in form.fields}):
        return
    setting = setting_of(work.tenant)
    before = {
        "names": setting.redact_names,
        "patterns": setting.redact_patterns,
        "otlp": setting.redact_otlp,
        "clear_principals": setting.clear_principals,
    }
    after = {name: form.cleaned_data[name] for name in before}
    if changed := differences(before, after):
        save_redaction(work.tenant, work.actor, after)
        work.did("change", "redaction", "", changed)


def apply_witnesses(work: Work, wanted: Witnesses) -> None:
    """Make the witnesses of the ledger those of the file."""
    try:
        given = [each.model_dump() for each in wanted.witnesses]
        policy = read_policy(wanted.needed, given, wanted.timestamp_url)
        if policy.timestamp_url and not can_ask_authorities():
            raise AuthorityError("the extra timestamp is not installed")
    except AuthorityError as error:
        work.refuse("witnesses.timestamp_url", str(error))
        return
    except WitnessError as error:
        place = "needed" if error.place is None else f"witnesses[{error.place}]"
        work.refuse(f"witnesses.{place}", str(error))
        return
    before = policy_of(work.tenant.pk).stored()
    if changed := differences(before, policy.stored()):
        save_witnesses(work.tenant, work.actor, policy)
        work.did("change", "witnesses", "", changed)


def apply_sign_in(work: Work, wanted: SignIn) -> None:
    """Make what the tenant asks of a sign-in that of the file."""
    before = sign_in.current(work.tenant)
    given = {
        name: value
        for name, value in wanted.model_dump(mode="json").items()
        if wanted.is_given(name)
    }
    form = sign_in.SignInSettingsForm(before | given)
    if not _is_valid(work, form, {name: f"sign_in.{name}" for name in form.fields}):
        return
    if sign_in.save(work.tenant, work.actor, form.cleaned_data):
        changed = differences(before, sign_in.current(work.tenant))
        work.did("change", "sign-in", "", changed)


def apply_reports(work: Work, wanted: Reports) -> None:
    """Make the schedule of reports that of the file."""
    form = ScheduleForm(wanted.model_dump())
    if not _is_valid(work, form, {name: f"reports.{name}" for name in form.fields}):
        return
    before, after = schedule(), form.schedule
    names = ("kinds", "time_zone", "keep_days")
    changed = differences(
        {name: _listed(getattr(before, name)) for name in names},
        {name: _listed(getattr(after, name)) for name in names},
    )
    if changed:
        save_schedule(work.tenant, work.actor, after)
        work.did("change", "reports", "", changed)


def apply_polling_tools(work: Work, wanted: list[str]) -> None:
    """Exclude these tools from the repeats."""
    stored = polling_tools()
    if work.options.prunes:  # first: there is a maximum
        for name in stored:
            if name not in wanted:
                include_tool(work.tenant, work.actor, name)
                work.did("remove", "polling tool", name)
    for index, name in enumerate(wanted):
        if name in stored:
            continue
        try:
            exclude_tool(work.tenant, work.actor, name)
        except TooManyPollingToolsError:
            work.refuse(f"polling_tools[{index}]", f"a tenant can have at most {MAX_TOOLS}")
        else:
            work.did("create", "polling tool", name)


def _listed(value: Any) -> Any:
    return value if isinstance(value, str | int) else sorted(value)


def _is_valid(work: Work, form: Form, places: Mapping[str, str]) -> bool:
    for name, errors in form.errors.items():
        work.refuse(places.get(name, name), str(errors[0]))
    return form.is_valid()
