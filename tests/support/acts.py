"""Acts of people and keys, through pages and commands, that change proved rows."""

import io
from collections.abc import Callable
from contextlib import suppress
from datetime import date, timedelta
from typing import Any
from unittest.mock import patch

from django.core.management import call_command
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from audit.alerts.evaluation import evaluate
from audit.alerts.quiet import all_windows
from audit.alerts.stored import all_rules
from audit.archive.archives import begin_archive, stop_archive
from audit.deliveries.channels import all_channels
from audit.models import Alert, AlertState, Sample, ShareLink, StoredReport, StoredServedDefinition
from audit.prices import units
from audit.queries.notes import NoteFilter, note_page
from audit.retention.floor import waiting_request
from audit.stream.streams import all_streams
from audit.tasks.reports import keep_reports
from audit.work.sharing import token_of
from tenants.identity.admission import Identity, RefusedError, admit
from tenants.identity.providers import all_providers, find_provider
from tenants.models import ApiKey, Invitation, Membership, provider_key
from tenants.scope import tenant_scope
from tests.support import otlp_requests
from tests.support.erasures import confirm_erasure, preview_erasure
from tests.support.factories import (
    Cast,
    make_call,
    make_definition,
    make_definitions,
    make_user,
    send_events,
)
from tests.support.floor import second_admin
from tests.support.identity.directory import Directory
from tests.support.incidents import make_incident
from tests.support.ledger_log import as_owner
from tests.support.legal_holds import set_hold
from tests.support.pages import signed_in
from tests.support.registered_tools import register_tool, weather_contract
from tests.support.registry_exchange import fill_registry
from tests.support.samples import sign_now, signed_sample
from tools_registry.changes import Publisher
from tools_registry.drafts import create_draft, discard_draft, find_draft, publish, save_draft
from tools_registry.models import Tool


def post(client: Client, route: str, /, *arguments: Any, **data: Any) -> None:
    """Post a form that must be taken."""
    answer = client.post(reverse(route, args=arguments), data)
    assert answer.status_code in (200, 302), answer.content.decode()
    assert b"errorlist" not in answer.content, answer.content.decode()


def operators_key(cast: Cast, scope: str) -> str:
    """The text of a key that an operator makes."""
    out = io.StringIO()
    call_command("key", "create", cast.tenant.slug, "--name", scope, "--scope", scope, stdout=out)
    return out.getvalue().strip()


def act_on_keys(cast: Cast) -> None:
    """Make, revoke and rotate keys, on the page and by command."""
    admin = signed_in(cast.admin)
    for name in ("one", "two", "three"):
        post(admin, "key_list", name=name, scopes=["read"])
    call_command("key", "create", cast.tenant.slug, "--name", "four", "--scope", "ingest")
    with tenant_scope(cast.tenant.id):
        keys = {key.name: key for key in ApiKey.objects.filter(tenant=cast.tenant)}
    post(admin, "key_revoke", keys["one"].pk)
    post(admin, "key_rotate", keys["two"].pk, overlap="day")
    call_command("key", "revoke", cast.tenant.slug, keys["four"].key_id)


def act_on_members(cast: Cast) -> None:
    """Invite, revoke, accept, change a role, remove a member."""
    admin = signed_in(cast.admin)
    invited = admin.post(reverse("member_list"), {"label": "Ann", "role": "editor"})
    post(admin, "member_list", label="Bob", role="editor")
    with tenant_scope(cast.tenant.id):
        bob = Invitation.objects.get(tenant=cast.tenant, label="Bob")
        viewer = Membership.objects.get(tenant=cast.tenant, user=cast.viewer)
    post(admin, "invitation_revoke", bob.pk)
    guest = Client()
    guest.force_login(make_user("ann"))
    assert guest.post(invited.context["new_link"].address).status_code == 302
    post(admin, "member_role", viewer.pk, role="editor")
    post(admin, "member_remove", viewer.pk)
    # Old ones are deleted with the next invitation.
    as_owner("UPDATE invitation SET expires_at = '2020-01-01' WHERE id = %s", [bob.pk])
    post(admin, "member_list", label="Cid", role="viewer")


def act_on_settings(cast: Cast) -> None:
    """Change every setting; suspend and resume the tenant."""
    admin = signed_in(cast.admin)
    post(admin, "tenant_settings", name="New", time_zone="", payload_days=30, is_sure="on")
    post(admin, "redaction_settings", names="password", patterns="", otlp="on")
    post(admin, "redaction_settings", person="ada", look_up="1")
    witness = "https://w1.example w1.example+befa920a+BAEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEB"
    post(admin, "witness_settings", witnesses=witness, needed=1)
    post(admin, "witness_settings", witnesses="", needed=0)  # bundles need not wait for it
    call_command("tenant", "suspend", cast.tenant.slug)
    call_command("tenant", "resume", cast.tenant.slug)
    editor = signed_in(cast.editor)
    post(editor, "polling_add", tool="poll")
    post(editor, "polling_add", tool="other")
    post(editor, "polling_remove", tool="poll")


def act_on_holds_and_erasures(cast: Cast) -> None:
    """Set two holds and release one; confirm an erasure of `case:gone`."""
    key = operators_key(cast, "ingest")
    send_events(cast.tenant, make_call(case_id="mine"), key=key)
    send_events(cast.tenant, make_call(case_id="gone", tool_name="unheld"), key=key)
    hold = set_hold(cast, case_id="other")
    set_hold(cast, tool_name="get_weather")
    post(signed_in(cast.auditor), "hold_release", hold.id, reason="over")
    confirm_erasure(cast, preview_erasure(cast, "case:gone").id)


def act_on_floor(cast: Cast) -> None:
    """Raise the retention floor; refuse a request to lower it, and approve another one."""
    admin, second = signed_in(cast.admin), signed_in(second_admin(cast))
    post(admin, "tenant_settings", name="New", time_zone="", payload_days=500, is_sure="on")
    post(admin, "floor_raise", **{"raise-days": 400, "raise-reason": "a law"})
    for act in ("floor_refuse", "floor_approve"):
        post(second, "floor_request", **{"lower-reason": "another law"})
        with tenant_scope(cast.tenant.id):
            request = waiting_request()
        assert request is not None
        post(admin, act, request.id, reason="seen")
    post(admin, "tenant_settings", name="New", time_zone="", payload_days=30, is_sure="on")


def act_on_reports(cast: Cast) -> None:
    """Schedule reports, make one, and let the worker delete it."""
    admin = signed_in(cast.admin)
    post(admin, "report_schedule", kinds=["day"], time_zone="UTC", keep_days=40)
    post(admin, "report_create", kind="day", day="2026-01-01")
    later = timezone.now() + timedelta(days=41)
    with patch("audit.tasks.reports.timezone.now", return_value=later):
        keep_reports(0)
    with tenant_scope(cast.tenant.id):
        assert not StoredReport.objects.for_tenant(cast.tenant.id).exists()


def act_on_tools(cast: Cast) -> None:
    """Register, draft, save, publish and discard."""
    fill_registry(cast)
    by = Publisher(cast.admin)
    with tenant_scope(cast.tenant.id):
        tool = Tool.objects.get(tenant=cast.tenant, name="get_weather")
        create_draft(tool, weather_contract(description="d"), by)
        draft = find_draft(tool)
        assert draft is not None
        save_draft(draft, weather_contract(description="e"), by, expected_revision=1)
        publish(draft, by, expected_revision=2, newly_violating=0, reason="because")
        draft = create_draft(tool, weather_contract(description="f"), by)
        discard_draft(draft, by, expected_revision=1)
    register_tool(cast, description="g", on_collision="throw")  # refused: an attempt


def act_on_definitions(cast: Cast) -> None:
    """Lists that change, flap and arrive late; an approval, and one that is withdrawn."""
    key = operators_key(cast, "ingest")
    good = make_definition()
    worse = make_definition(annotations={"destructiveHint": True})
    lists = [(good, 90), (worse, 80), (good, 70), (worse, 60), (good, 95), (worse, 85)]
    lists += [(make_definition("other"), 90), *((make_definition(str(n)), n) for n in range(9))]
    for definition, seconds in lists:
        at = timezone.now() - timedelta(seconds=seconds)
        send_events(cast.tenant, [make_definitions(definition, seen_at=at)], key=key)
    editor = signed_in(cast.editor)
    with tenant_scope(cast.tenant.id):
        pending = StoredServedDefinition.objects.for_tenant(cast.tenant.id).filter(state="pending")
        ids = [one.id for one in pending.order_by("id")[:2]]
    for pk in ids:
        post(editor, "definition_approve", pk, reason="read")
    post(editor, "definition_withdraw", ids[0], reason="not read")


def act_on_alerts(cast: Cast) -> None:
    """Make, change, mute and delete rules; an alert is opened, acknowledged, resolved, worse."""
    editor = signed_in(cast.editor)
    rule = {"measure": "calls", "window_minutes": 60, "compare_with": "number", "for_minutes": 0}
    rule |= {"direction": "above", "warning": 0, "no_data": "nothing", "is_enabled": "on"}
    post(editor, "alert_rule_new", name="calls", **rule)
    post(editor, "alert_rule_new", name="other", **rule)
    send_events(cast.tenant, make_call(), key=operators_key(cast, "ingest"))
    with tenant_scope(cast.tenant.id):
        kept, gone = all_rules()
        evaluate(timezone.now() + timedelta(minutes=2))
        first, second = Alert.objects.for_tenant(cast.tenant.id).order_by("rule_name")
    post(editor, "alert_rule_edit", kept.id, name="calls", **rule | {"alert": 0})
    post(editor, "alert_rule_mute", kept.id, minutes=60, reason="maintenance")
    window = {"starts_at": "2026-01-01T02:00", "minutes": 60, "repeats": "daily"}
    post(editor, "maintenance_new", name="kept", reason="backup", **window)
    post(editor, "maintenance_new", name="gone", reason="backup", **window)
    with tenant_scope(cast.tenant.id):
        window_gone = all_windows()[0]
    post(editor, "maintenance_delete", window_gone.id)
    post(editor, "alert_acknowledge", first.id, note="seen")
    with tenant_scope(cast.tenant.id):
        evaluate(timezone.now() + timedelta(minutes=4))
    post(editor, "alert_resolve", first.id, note="done")
    post(editor, "alert_rule_delete", gone.id)
    with tenant_scope(cast.tenant.id):
        second.refresh_from_db()
    assert second.state == AlertState.RESOLVED


def act_on_notes(cast: Cast) -> None:
    """Write notes, change one and delete one."""
    editor = signed_in(cast.editor)
    about = {"about": "version", "tool_name": "search", "tool_version": "4", "state": "open"}
    post(editor, "note_new", text="seen", label="flaky", **about)
    post(editor, "note_new", text="twice", **about)
    with tenant_scope(cast.tenant.id):
        gone, kept = note_page(NoteFilter(), size=2).notes
    post(editor, "note_change", kept.id, text="seen again", state="fixed", fixed_in="5")
    post(editor, "note_delete", gone.id)


def act_on_share_links(cast: Cast) -> None:
    """Make two links; let one show payloads, open it, and revoke the other."""
    editor = signed_in(cast.editor)
    for _ in range(2):
        post(editor, "share_new", address="/latency/?range=24h", days=7)
    with tenant_scope(cast.tenant.id):
        kept, gone = ShareLink.objects.for_tenant(cast.tenant.id).order_by("id")
    post(signed_in(cast.auditor), "share_payloads", kept.id, reason="asked for")
    assert editor.get(reverse("shared", args=[token_of(kept)])).status_code == 200
    post(editor, "share_revoke", gone.id)


def act_on_channels(cast: Cast) -> None:
    """Create, change and test channels of alerts, and delete one."""
    admin = signed_in(cast.admin)
    for name in ("on call", "old"):
        post(admin, "channel_new", "webhook", name=name, url="https://alerts.example/")
    with tenant_scope(cast.tenant.id):
        channels = {channel.name: channel for channel in all_channels()}
    post(admin, "channel_detail", channels["on call"].id, name="on duty", url="https://b.example/")
    post(admin, "channel_test", channels["on call"].id)
    post(admin, "channel_delete", channels["old"].id)


def act_on_streams(cast: Cast) -> None:
    """Create, change, test, pause, resume and replay streams, with payloads, and delete one."""
    admin, auditor = signed_in(cast.admin), signed_in(cast.auditor)
    given = {"of": "calls", "format": "ocsf", "begin": "all", "has_proofs": "on"}
    for name in ("siem", "old"):
        post(admin, "stream_new", "https", name=name, url="https://siem.example/", **given)
    with tenant_scope(cast.tenant.id):
        streams = {stream.name: stream.id for stream in all_streams()}
    pk = streams["siem"]
    post(admin, "stream_change", pk, name="soc", url="https://soc.example/", format="ecs")
    post(admin, "stream_test", pk)
    post(admin, "stream_pause", pk)
    post(admin, "stream_replay", pk, index=0)
    post(auditor, "stream_payloads", pk, reason="asked for")
    post(auditor, "stream_no_payloads", pk)
    post(auditor, "stream_payloads", pk, reason="asked for again")
    post(admin, "stream_resume", pk)
    post(admin, "stream_delete", streams["old"])


def act_on_archive(cast: Cast) -> None:
    """Archive the tenant, stop that, and go on with another time for payloads."""
    with tenant_scope(cast.tenant.id):
        begin_archive(cast.tenant, "operator", 30)
        assert stop_archive(cast.tenant, "operator")
        begin_archive(cast.tenant, "operator", 90)


def act_on_providers(cast: Cast) -> None:
    """Add an identity provider, change, disable and enable it; it makes a member and ends one."""
    admin = signed_in(cast.admin)
    given = {"name": "Acme ID", "issuer": "https://id.acme.example", "client_id": "tooltrail"}
    given |= {"secret": "a secret", "groups_claim": "groups", "roles": "staff = viewer"}
    post(admin, "provider_new", **given)
    with tenant_scope(cast.tenant.id):
        (stored,) = all_providers(cast.tenant)
    post(admin, "provider_detail", stored.pk, **{**given, "roles": "staff = editor"})
    post(admin, "provider_disable", stored.pk)
    post(admin, "provider_enable", stored.pk)
    with tenant_scope(cast.tenant.id):
        provider = find_provider(cast.tenant.pk, stored.pk)
    assert provider is not None
    key = provider_key(cast.tenant.pk, provider.pk)
    for subject in ("ada", "eve"):
        claims = {"preferred_username": subject, "groups": ["staff"]}
        user = admit(provider, Identity(key, subject, claims), None)
    post(admin, "sso_only_settings", sso_only="on", break_glass=cast.admin.username)
    post(admin, "sso_only_settings", break_glass="")
    with suppress(RefusedError):
        admit(provider, Identity(key, "eve", {"groups": []}), user)


def act_on_directory(cast: Cast) -> None:
    """Add a provider with a directory, which sends people and groups, changes and removes them."""
    given = {"name": "Directory", "issuer": "https://id.acme.example", "client_id": "tooltrail"}
    given |= {"groups_claim": "groups", "roles": "staff = viewer\nowners = editor", "scim": "on"}
    post(signed_in(cast.admin), "provider_new", **given)
    with tenant_scope(cast.tenant.id):
        row = next(one for one in all_providers(cast.tenant) if one.name == "Directory")
    directory = Directory(row, operators_key(cast, "scim"))
    ada, eve = directory.add_user("ada"), directory.add_user("eve")
    staff, owners = directory.add_group("staff", ada, eve), directory.add_group("owners", eve)
    sent = [
        directory.patch(f"Users/{ada}", {"op": "replace", "path": "displayName", "value": "Ada"}),
        directory.patch(f"Groups/{staff}", {"op": "add", "path": "externalId", "value": "s"}),
        directory.send("DELETE", f"Groups/{owners}"),
        directory.send("DELETE", f"Users/{eve}"),
    ]
    assert [answer.status_code for answer in sent] == [200, 200, 204, 204]


def act_on_prices(cast: Cast) -> None:
    """Create two price lists, change one, delete one, count a call's units, send an answer."""
    admin = signed_in(cast.admin)
    output = {"status": "ok", "data": {}, "meta": {"pages": 3}}
    key = operators_key(cast, "ingest")
    send_events(cast.tenant, make_call(tool_name="read_pdf", output=output), key=key)
    tokens = {"gen_ai.operation.name": "chat", "gen_ai.usage.input_tokens": {"intValue": 3}}
    answered = otlp_requests.span("chat", attributes=tokens)
    otlp_requests.post(key, otlp_requests.request(answered), otlp_requests.JSON)
    row = {"price-TOTAL_FORMS": "2", "price-INITIAL_FORMS": "0", "currency": "EUR"}
    row |= {"price-0-tool": "old", "price-0-amount": "0.01", "price-1-tool": "read_pdf"}
    row |= {"price-1-amount": "0.1", "price-1-path": "output.meta.pages"}
    row |= {"model-TOTAL_FORMS": "1", "model-INITIAL_FORMS": "0", "model-0-model": "gpt-5"}
    row |= {"model-0-input": "1.25", "model-0-output": "10"}
    for day in ("2026-01-01", "2026-02-01"):
        post(admin, "price_list_new", holds_from=day, **row)
    post(admin, "price_list_detail", date(2026, 1, 1), **(row | {"price-0-amount": "0.02"}))
    post(admin, "price_list_delete", date(2026, 2, 1))
    while units.run_slice(cast.tenant.id):
        pass


def act_on_samples(cast: Cast, sign: Callable[[Cast], None] = sign_now) -> None:
    """Draw a sample, conclude about its calls, return it, sign it by two; stop another one."""
    calls = [event for _ in range(3) for event in make_call()]
    send_events(cast.tenant, calls, key=operators_key(cast, "ingest"))
    pk = signed_sample(cast, "tool:get_weather", sign=sign, size=2)
    auditor = signed_in(cast.auditor)
    post(auditor, "sample_list", name="other", q="", size=1)
    with tenant_scope(cast.tenant.id):
        other = Sample.objects.for_tenant(cast.tenant.id).exclude(id=pk).get()
    post(auditor, "sample_cancel", other.id)


def act_on_incidents(cast: Cast) -> None:
    """Begin an incident of the calls of a trace, and make its timeline."""
    send_events(cast.tenant, make_call(trace_id="theft"), key=operators_key(cast, "ingest"))
    make_incident(cast, "trace:theft")


def row_of_each_table(cast: Cast, sign: Callable[[Cast], None] = sign_now) -> None:
    """At least one row of each proved model."""
    act_on_alerts(cast)
    act_on_keys(cast)
    act_on_members(cast)
    act_on_settings(cast)
    act_on_floor(cast)
    act_on_channels(cast)
    act_on_streams(cast)
    act_on_archive(cast)
    act_on_notes(cast)
    act_on_share_links(cast)
    act_on_providers(cast)
    act_on_directory(cast)
    act_on_prices(cast)
    act_on_holds_and_erasures(cast)
    act_on_definitions(cast)
    act_on_samples(cast, sign)
    act_on_incidents(cast)
    fill_registry(cast)
    admin = signed_in(cast.admin)
    post(admin, "report_schedule", kinds=["day"], time_zone="UTC", keep_days=40)
    post(admin, "report_create", kind="day", day="2026-01-01")
    with tenant_scope(cast.tenant.id):
        tool = Tool.objects.get(tenant=cast.tenant, name="get_weather")
        create_draft(tool, weather_contract(description="d"), Publisher(cast.admin))
