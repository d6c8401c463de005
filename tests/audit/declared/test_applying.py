"""`manage.py apply` and `export-config`: configuration as files."""

import getpass
import io
import json
import secrets
from copy import deepcopy
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from ruamel.yaml import YAML

from audit.declared.document import DeclaredTenant, Document
from audit.deliveries.channels import all_channels, secrets_of
from audit.models import LegalHold
from tenants.admin_acts import WantedKey, make_key
from tenants.keys import KeyRefused, authenticate, create_key, new_key_text
from tenants.models import (
    Action,
    ApiKey,
    Invitation,
    Membership,
    Role,
    Scope,
    Tenant,
    TenantSetting,
    User,
    new_id,
)
from tenants.scope import tenant_scope
from tenants.service_accounts import name_in, service_accounts
from tests.support.declared import apply, changes_of, export, write_config
from tests.support.documents import ROOT
from tests.support.factories import Cast, make_user
from tools_registry.models import Tool, ToolVersion

WITNESS = {
    "url": "https://w1.example",
    "key": "w1.example+befa920a+BAEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEB",
}
SCHEMA = ROOT / "docs" / "schemas" / "config.json"
ID_SECRET = "a client's swordfish"
WEBHOOK_SECRET = "whsec_" + "QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVo="
TOOL = {
    "name": "search",
    "description": "Searches.",
    "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}}},
    "outputSchema": {"type": "object"},
}
WINDOW = {
    "name": "Upgrade",
    "reason": "The catalogue is upgraded.",
    "starts_at": "2026-12-06T02:00:00Z",
    "minutes": 90,
    "repeats": "weekly",
    "time_zone": "Europe/Berlin",
    "rules": ["Calls fail"],
}


@pytest.fixture
def slug() -> str:
    """The slug of a tenant that does not exist yet."""
    return f"declared-{secrets.token_hex(4)}"


@pytest.fixture
def full(slug: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """A tenant with all sections, and its secrets."""
    (tmp_path / "password").write_text("correct horse battery staple\n")
    monkeypatch.setenv("HOOK_SECRET", WEBHOOK_SECRET)
    monkeypatch.setenv("ID_SECRET", ID_SECRET)
    ada = f"ada@{slug}"
    return {
        "slug": slug,
        "name": "Declared",
        "time_zone": "Europe/Berlin",
        "retention": {"payload_days": 90, "index_days": None},
        "redaction": {"names": ["iban"], "patterns": [r"\d{16}"]},
        "witnesses": {"needed": 1, "witnesses": [WITNESS]},
        "sign_in": {"second_factor_roles": ["admin"], "session_max_hours": 12},
        "identity_providers": [
            {
                "name": "Acme ID",
                "issuer": "https://id.acme.example",
                "client_id": "tooltrail",
                "secret": {"env": "ID_SECRET"},
                "role_by_group": {"owners": "admin", "platform": "editor"},
                "asks_second_factor": True,
            },
            {
                "name": "Old ID",
                "issuer": "https://old.acme.example",
                "client_id": "tooltrail",
                "default_role": "viewer",
                "is_disabled": True,
            },
        ],
        "sso_only": {"is_on": False},
        "service_accounts": [{"name": "ci"}, {"name": "old", "is_disabled": True}],
        "price_lists": [
            {
                "holds_from": "2026-11-01",
                "currency": "EUR",
                "prices": [
                    {"tool": "search", "amount": "0.004"},
                    {"tool": "pdf", "amount": "0.01", "path": "output.meta.pages"},
                ],
                "models": [{"model": "gpt-5", "input": "1.25", "output": "10", "cached": "0.1"}],
            }
        ],
        "members": [
            {"user": ada, "role": "admin", "password": {"file": "password"}},
            {"user": f"vic@{slug}", "role": "viewer"},
        ],
        "keys": [
            {
                "name": "agents",
                "scopes": ["read", "ingest"],
                "secret": {"file": "keys/agents"},
                "owner": ada,
                "purpose": "The agents.",
                "expires_at": "2099-01-31",
                "allowed_addresses": ["10.0.0.0/8"],
            }
        ],
        "channels": [
            {
                "name": "on call",
                "kind": "webhook",
                "url": "https://hooks.example/x",
                "secret": {"env": "HOOK_SECRET"},
            },
            {
                "name": "mail",
                "kind": "email",
                "recipients": ["ann@example.com"],
                "sender": "tooltrail@example.com",
                "host": "mail.example",
            },
        ],
        "alert_rules": [
            {
                "name": "Calls fail",
                "condition": {"measure": "failed_share", "alert": 50},
                "channels": ["on call"],
            },
            {"name": "New tools", "condition": {"on": "event", "event": "new_tool"}},
        ],
        "maintenance_windows": [WINDOW],
        "polling_tools": ["status", "watch"],
        "saved_views": [{"owner": ada, "name": "Failed", "q": "state:error"}],
        "boards": [{"name": "Failures", "panels": [{"shows": "errors", "threshold": "5 %"}]}],
        "reports": {"kinds": ["week"], "time_zone": "Europe/Berlin", "keep_days": 100},
        "tools": [TOOL],
        "checks_on_arrival": ["search"],
    }


@pytest.fixture
def tenant(full: dict[str, Any], tmp_path: Path) -> Tenant:
    """The tenant of `full`, applied."""
    apply(write_config(tmp_path, full))
    return Tenant.objects.get(slug=full["slug"])


def refused(*arguments: object) -> list[str]:
    """The problems with which `manage.py apply` ends."""
    with pytest.raises(CommandError) as error:
        call_command("apply", *map(str, arguments))
    return str(error.value).splitlines()


def verbs_of(tenant: Tenant) -> list[str]:
    with tenant_scope(tenant.pk):
        actions = Action.objects.filter(tenant=tenant).order_by("at", "pk")
        assert {one.user_name for one in actions} == {f"operator {getpass.getuser()}"}
        return [one.verb for one in actions]


@pytest.mark.slow
def test_files_make_a_tenant_and_a_second_time_change_nothing(
    full: dict[str, Any], tmp_path: Path
) -> None:
    path, slug = write_config(tmp_path, full), full["slug"]
    made = [
        f"create tenant {slug}",
        "change settings",
        "change redaction",
        "change witnesses",
        "change reports",
        "change sign-in",
        "create identity provider Acme ID",
        "create identity provider Old ID",
        "change identity provider Old ID",
        "create price list 2026-11-01",
        f"create member ada@{slug}",
        f"create member vic@{slug}",
        "create service account ci",
        "create service account old",
        "change service account old",
        "create key agents",
        "create view Failed",
        "create board Failures",
        "create channel on call",
        "create channel mail",
        "create alert rule Calls fail",
        "create alert rule New tools",
        "create maintenance window Upgrade",
        "create polling tool status",
        "create polling tool watch",
        "create tool search",
        "create check on arrival search",
    ]
    assert changes_of(path, "--dry-run") == made
    assert not Tenant.objects.filter(slug=slug).exists()
    assert not User.objects.filter(username=f"ada@{slug}").exists()
    assert not (tmp_path / "keys").exists()

    assert changes_of(path) == made
    tenant = Tenant.objects.get(slug=slug)
    verbs = verbs_of(tenant)
    assert verbs == [
        *("tenant.create", "tenant.settings", "tenant.redaction", "tenant.witnesses"),
        *("report.schedule", "tenant.sign-in"),
        *("provider.create", "provider.create", "provider.disable"),
        *("price_list.create", "member.add", "member.add"),
        *("service.create", "service.create", "service.disable"),
        *("key.create", "channel.create", "channel.create"),
        *("alert_rule.create", "alert_rule.create", "maintenance.create"),
        *("polling.add", "polling.add", "tool.create", "tool.publish", "tool.check-on-arrival"),
    ]
    assert changes_of(path) == []
    assert changes_of(path, "--prune") == []
    assert verbs_of(tenant) == verbs
    with tenant_scope(tenant.pk):
        ada = Membership.objects.get(tenant=tenant, user__username=f"ada@{slug}").user
        assert ada.check_password("correct horse battery staple")
        assert ada.has_initial_password
        [_, hook] = all_channels()
        assert secrets_of(hook) == {"secret": WEBHOOK_SECRET}


@pytest.mark.slow
def test_key_is_made_for_a_missing_file_and_taken_from_one_that_exists(
    full: dict[str, Any], tmp_path: Path
) -> None:
    path = write_config(tmp_path, full)
    apply(path)
    file = tmp_path / "keys" / "agents"
    assert file.stat().st_mode & 0o777 == 0o600
    first = file.read_text().strip()
    identity = authenticate(first, Scope.READ, "10.1.1.1")
    with pytest.raises(KeyRefused, match="address"):
        authenticate(first, Scope.READ, "192.0.2.1")

    file.write_text(new_key_text(identity.tenant_id))
    assert changes_of(path) == ["remove key agents", "create key agents"]
    assert authenticate(file.read_text(), Scope.READ, "10.1.1.1").key_id != identity.key_id
    with pytest.raises(KeyRefused, match="revoked"):
        authenticate(first, Scope.READ, "10.1.1.1")

    file.write_text(first)
    [problem, _] = refused(path)
    assert problem.endswith(
        ".keys[0].secret: this key was stored before: under another name, or revoked"
    )
    file.write_text(new_key_text(new_id()))
    assert refused(path)[0].endswith(".keys[0].secret: This API key is of another tenant")
    file.write_text("swordfish")
    assert "swordfish" not in refused(path)[0]


def test_stored_key_does_not_change(full: dict[str, Any], tmp_path: Path) -> None:
    apply(write_config(tmp_path, full))
    full["keys"][0]["scopes"] = ["ingest"]
    [problem, _] = refused(write_config(tmp_path, full))
    assert "keys[0]: differs from the stored key (scopes: [ingest, read] → [ingest])" in problem


@pytest.mark.slow
@pytest.mark.parametrize(
    ("section", "value", "problem"),
    [
        ("slug", "Not a slug", ".slug: not a slug"),
        ("time_zone", "Mars/Olympus", ".time_zone: Select a valid choice"),
        ("retention", {"payload_days": 0}, ".retention.payload_days: "),
        ("redaction", {"patterns": ["(?=x)"]}, ".redaction.patterns: "),
        ("redaction", {"names": ["a\nb"]}, ".redaction.names[0]: must be one line"),
        ("witnesses", {"needed": 1}, ".witnesses.needed: 1 of 0 witnesses cannot be required"),
        (
            "witnesses",
            {"needed": 1, "witnesses": [WITNESS | {"key": "no"}]},
            ".witnesses.witnesses[0]: Witness 1: a public key must have the form",
        ),
        ("reports", {"time_zone": "Mars"}, ".reports.time_zone: Unknown time zone"),
        ("sign_in", {"session_max_hours": 0}, ".sign_in.session_max_hours: "),
        ("service_accounts", [{"name": "No"}], ".service_accounts[0].name: Use at most"),
        (
            "price_lists",
            [{"holds_from": "2026-11-01", "currency": "eur"}],
            ".price_lists[0].currency: Enter a currency",
        ),
        (
            "price_lists",
            [
                {
                    "holds_from": "2026-11-01",
                    "currency": "EUR",
                    "prices": [{"tool": "a", "amount": "-1"}],
                }
            ],
            ".price_lists[0].amount: Enter an amount",
        ),
        (
            "maintenance_windows",
            [WINDOW],
            ".maintenance_windows[0].rules: There is no rule 'Calls fail'",
        ),
        ("polling_tools", [f"t{n}" for n in range(201)], ".polling_tools[200]: a tenant can have"),
        ("checks_on_arrival", ["no"], ".checks_on_arrival[0]: there is no tool 'no'"),
        ("members", [{"user": "no good"}], ".members[0].user: Enter a valid username"),
        (
            "members",
            [{"user": "x", "password": {"env": "NOT_SET"}}],
            ".members[0].password: the environment variable NOT_SET is not set",
        ),
        ("keys", [{"name": "k", "scopes": ["read"]}], ".keys[0].secret: is needed"),
        (
            "keys",
            [{"name": "k", "scopes": ["read"], "secret": {"file": "k"}, "owner": "nobody"}],
            ".keys[0].owner: 'nobody' is not a member",
        ),
        (
            "keys",
            [
                {
                    "name": "k",
                    "scopes": ["read"],
                    "secret": {"file": "k"},
                    "allowed_addresses": ["x"],
                }
            ],
            ".keys[0].allowed_addresses: 'x' is no address",
        ),
        (
            "channels",
            [{"name": "c", "kind": "slack", "url": {"file": "none"}}],
            ".channels[0].url: the file none does not exist",
        ),
        ("channels", [{"name": "c", "kind": "slack"}], ".channels[0].url: is needed"),
        (
            "alert_rules",
            [{"name": "r", "condition": {"measure": "calls", "alert": 1}, "channels": ["none"]}],
            ".alert_rules[0].channels: There is no channel 'none'",
        ),
        (
            "saved_views",
            [{"owner": "nobody", "name": "v", "q": "state:error"}],
            ".saved_views[0].owner: 'nobody' is not a member",
        ),
        ("tools", [{"name": "x"}], ".tools[0]"),
        ("tools", [{"file": "none.json"}], ".tools[0].file: none.json cannot be read"),
        ("tools", [TOOL, TOOL], ".tools[1]: has the name of tools[0]"),
    ],
)
def test_problem_names_file_path_and_reason_and_nothing_is_stored(
    slug: str, tmp_path: Path, section: str, value: Any, problem: str
) -> None:
    others = {"members": [{"user": f"first@{slug}", "role": "admin"}]}
    path = write_config(tmp_path, {"slug": slug} | others | {section: value})
    lines = refused(path)
    assert lines[0].startswith(f"{path}: tenants[0]{problem}"), lines
    assert lines[-1].startswith("nothing was changed in ")
    assert not Tenant.objects.filter(slug=slug).exists()
    assert not User.objects.filter(username=f"first@{slug}").exists()
    assert [each.name for each in tmp_path.iterdir()] == [path.name]


def test_all_problems_of_a_tenant_are_shown_and_other_tenants_are_applied(
    slug: str, tmp_path: Path
) -> None:
    wrong = {"slug": slug, "time_zone": "Mars", "keys": [{"name": "k", "scopes": ["read"]}]}
    good = {"slug": f"{slug}-2"}
    assert len(refused(write_config(tmp_path, wrong, good))) == 3
    assert [each.slug for each in Tenant.objects.filter(slug__startswith=slug)] == [f"{slug}-2"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("version: 2\ntenants: []", "version: Input should be 1"),
        ("version: 1", "tenants: Field required"),
        ("version: 1\ntenants: [{slug: a, colour: red}]", "tenants[0].colour: Extra inputs"),
        (
            "version: 1\ntenants: [{slug: a, channels: [{name: c, kind: webhook}]}]",
            "tenants[0].channels[0].url: Field required",
        ),
        (
            "version: 1\ntenants: [{slug: a, channels: [{name: c, kind: slack, url: https://x}]}]",
            "tenants[0].channels[0].url: Input should be an object",
        ),
        (
            "version: 1\ntenants: [{slug: a, keys: [{name: k, scopes: [all]}]}]",
            "tenants[0].keys[0].scopes[0]: Input should be 'ingest'",
        ),
        (
            "version: 1\ntenants: [{slug: a, keys: [{name: k, scopes: [read], secret: {}}]}]",
            "tenants[0].keys[0].secret: name either env or file",
        ),
        (
            "version: 1\ntenants: [{slug: a, alert_rules: [{name: r, condition: {measure: p50}}]}]",
            "tenants[0].alert_rules[0].condition: Enter a threshold",
        ),
        ("version: 1\ntenants: [{slug: a}, {slug: a}]", "tenants[1].slug: is already at "),
        (
            "version: 1\ntenants: [{slug: a, members: [{user: x}, {user: x}]}]",
            "tenants[0].members[1]: has the name of members[0]",
        ),
        ("version: 1\nversion: 1", "line 2, column 1: found duplicate key"),
        ("tenants: [", "line 1, column "),
        ("tenants: !!python/object:os.system x", "line 1, column 10: could not determine"),
        ("1: x", "document: the name 1 must be in quotes"),
        ("a: .nan", "a: nan is no value of JSON"),
        ("[" * 20_000, "is nested too deeply"),
        ('{"version": 1, "version": 1}', ""),
        ("\0", "unacceptable character"),
        ("", "document: "),
    ],
)
def test_unusable_file_is_refused_with_place_and_reason(
    tmp_path: Path, text: str, problem: str
) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(text)
    assert refused(path)[0].startswith(f"{path}: {problem}")


def test_existing_account_is_only_invited(acme: Cast, tmp_path: Path) -> None:
    stranger = make_user("stranger").get_username()
    wanted: dict[str, Any] = {
        "slug": acme.tenant.slug,
        "members": [{"user": stranger, "role": "editor"}],
        "saved_views": [{"owner": stranger, "name": "v", "q": "state:error"}],
    }
    path = write_config(tmp_path, wanted)
    [outcome] = apply(path)
    assert [one["kind"] for one in outcome["changes"]] == ["invitation"]
    assert outcome["invitations"][stranger].startswith("http")
    assert outcome["notes"] == [f"the view 'v' waits until {stranger} is a member"]
    with tenant_scope(acme.tenant.pk):
        assert not Membership.objects.filter(tenant=acme.tenant, user__username=stranger).exists()
    assert changes_of(path) == []
    wanted["members"][0]["role"] = "viewer"
    assert changes_of(write_config(tmp_path, wanted)) == [f"create invitation {stranger}"]
    with tenant_scope(acme.tenant.pk):
        roles = Invitation.objects.filter(tenant=acme.tenant, revoked_at=None)
        assert [one.role for one in roles] == [Role.VIEWER]


def test_last_admin_keeps_the_role_until_another_has_it(acme: Cast, tmp_path: Path) -> None:
    admin, editor = acme.admin.get_username(), acme.editor.get_username()
    wanted: dict[str, Any] = {
        "slug": acme.tenant.slug,
        "members": [{"user": admin, "role": "viewer"}],
    }
    [problem, _] = refused(write_config(tmp_path, wanted))
    assert problem.endswith(f"members[0].role: {admin} is the last admin")
    wanted["members"].append({"user": editor, "role": "admin"})
    path = write_config(tmp_path, wanted)
    assert changes_of(path) == [f"change member {editor}", f"change member {admin}"]


SECTIONS = (
    *("members", "keys", "channels", "alert_rules", "maintenance_windows", "polling_tools"),
    *("saved_views", "boards", "tools", "checks_on_arrival"),
)
EMPTY: dict[str, Any] = {section: [] for section in SECTIONS}


def test_what_files_do_not_name_stays(tenant: Tenant, tmp_path: Path) -> None:
    before = export(tenant.slug)
    absent = write_config(tmp_path, {"slug": tenant.slug}, name="absent.json")
    empty = write_config(tmp_path, {"slug": tenant.slug} | EMPTY)
    assert changes_of(absent) == changes_of(empty) == changes_of(absent, "--prune") == []
    assert export(tenant.slug) == before


def test_prune_removes_what_sections_do_not_name_and_refuses_the_rest(
    tenant: Tenant, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ada, slug = f"ada@{tenant.slug}", tenant.slug
    monkeypatch.setattr(getpass, "getuser", lambda: "me")
    people = [{"user": f"{name}@{slug}", "role": "admin"} for name in ("ada", "me")]
    apply(write_config(tmp_path, {"slug": slug, "members": people}))
    stranger = make_user("stranger").get_username()
    apply(write_config(tmp_path, {"slug": slug, "members": [{"user": stranger}]}))
    with tenant_scope(tenant.pk):
        hold = LegalHold.objects.create(
            tenant_id=tenant.pk,
            id=new_id(),
            name="Court",
            reason="Court.",
            tool_name="search",
            set_at=timezone.now(),
            set_by="ada",
        )
    views = [{"owner": ada, "name": "Kept", "q": "tool:search"}]
    sections = {"slug": slug} | EMPTY
    [outcome] = apply(write_config(tmp_path, sections), "--prune", "--dry-run")
    assert f"me@{slug} stays a member: it is you" in outcome["notes"]

    sections |= {"members": [{"user": ada, "role": "viewer"}], "saved_views": views}
    path = write_config(tmp_path, sections)
    assert changes_of(path, "--prune") == [
        f"change member {ada}",
        f"remove member vic@{slug}",
        f"remove invitation {stranger}",
        "remove key agents",
        "create view Kept",
        "remove view Failed",
        "remove board Failures",
        "remove alert rule Calls fail",
        "remove alert rule New tools",
        "remove channel mail",
        "remove channel on call",
        "remove maintenance window Upgrade",
        "remove polling tool status",
        "remove polling tool watch",
        "remove check on arrival search",
    ]
    # Alone: me is now the last admin, and another machine account prunes.
    monkeypatch.setattr(getpass, "getuser", lambda: "somebody")
    [outcome] = apply(write_config(tmp_path, {"slug": slug, "members": []}), "--prune")
    assert [one["name"] for one in outcome["changes"]] == [ada]
    assert outcome["notes"] == [f"me@{slug} stays a member: it is the last admin"]
    with tenant_scope(tenant.pk):
        assert Tool.objects.filter(tenant=tenant).count() == 1
        assert ToolVersion.objects.filter(tenant=tenant).count() == 1
        assert LegalHold.objects.get(tenant_id=tenant.pk, id=hold.id).released_at is None
        assert ApiKey.objects.filter(tenant=tenant, revoked_at=None).count() == 0
    other = write_config(tmp_path, {"slug": f"{slug}-2"})
    apply(other, "--prune")
    assert Tenant.objects.filter(slug=slug).exists()


def test_output_for_people_is_one_line_for_each_change(slug: str, tmp_path: Path) -> None:
    stranger = make_user("stranger").get_username()
    hostile = f"x\x1b[2J{slug}"
    wanted = {
        "slug": slug,
        "members": [{"user": stranger}],
        "alert_rules": [{"name": hostile, "condition": {"measure": "calls", "alert": 1}}],
    }
    path = write_config(tmp_path, wanted)
    for options, end in ((["--dry-run"], "3 changes to make"), ([], "3 changes made"), ([], "0 ")):
        out, err = io.StringIO(), io.StringIO()
        call_command("apply", str(path), *options, stdout=out, stderr=err)
        lines = out.getvalue().splitlines()
        assert lines[-1].startswith(end)
        assert "\x1b" not in out.getvalue() + err.getvalue()
        if lines[0] != "0 changes made":
            assert lines[:3] == [
                f"{slug}  + tenant {slug}",
                f"{slug}  + invitation {stranger}: as viewer, as the account exists",
                f"{slug}  + alert rule x\\x1b[2J{slug}",
            ]
        assert len(lines) == (5 if end == "3 changes made" else 4 if options else 1)
    assert err.getvalue() == f"{slug}: {stranger} has not accepted the invitation yet\n"


def test_channel_that_a_rule_uses_is_not_pruned(tenant: Tenant, tmp_path: Path) -> None:
    [outcome] = apply(write_config(tmp_path, {"slug": tenant.slug, "channels": []}), "--prune")
    assert [one["name"] for one in outcome["changes"]] == ["mail"]
    assert outcome["notes"] == ["the channel 'on call' stays: an alert rule uses it"]


def test_shorter_retention_needs_a_confirmation(tenant: Tenant, tmp_path: Path) -> None:
    wanted = {"slug": tenant.slug, "retention": {"payload_days": 30}}
    path = write_config(tmp_path, wanted)
    assert refused(path)[0].endswith("with --erase-older")
    [outcome] = apply(path, "--erase-older")
    assert [one["detail"] for one in outcome["changes"]] == ["payload_days: 90 → 30"]
    longer = {"slug": tenant.slug, "retention": {"payload_days": None}}
    assert changes_of(write_config(tmp_path, longer)) == ["change settings"]


def test_file_raises_the_floor_and_never_lowers_it(tenant: Tenant, tmp_path: Path) -> None:
    def wanted(**days: int | None) -> Path:
        return write_config(tmp_path, {"slug": tenant.slug, "retention": days})

    assert refused(wanted(floor_days=200))[0].endswith(
        "floor_days: Payloads: kept for 90 days only. Make retention longer first"
    )
    assert changes_of(wanted(payload_days=400, floor_days=365)) == [
        "change settings",
        "change retention floor",
    ]
    assert changes_of(wanted(floor_days=365)) == []
    for lower in (200, None):
        [problem, _] = refused(wanted(floor_days=lower))
        assert "a file can only raise it: two admins lower it" in problem
    with tenant_scope(tenant.pk):
        assert TenantSetting.objects.get(tenant=tenant).floor_days == 365


def test_channel_and_rule_change(
    full: dict[str, Any], tenant: Tenant, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("HOOK_SECRET")  # a stored channel keeps its secret
    assert changes_of(write_config(tmp_path, full)) == []
    full["channels"][1]["recipients"].append("bob@example.com")
    full["alert_rules"][0]["condition"]["alert"] = 60
    wanted = write_config(tmp_path, full)
    assert changes_of(wanted) == ["change channel mail", "change alert rule Calls fail"]
    monkeypatch.setenv("HOOK_SECRET", "whsec_" + "QUJD" * 10)
    assert changes_of(wanted) == ["change channel on call"]
    full["channels"][0] = full["channels"][1] | {"name": "on call"}
    assert refused(write_config(tmp_path, full))[0].endswith(
        ".channels[0].kind: the channel is of the kind webhook"
    )


def test_window_of_a_deleted_rule_stays_as_it_is(
    full: dict[str, Any], tenant: Tenant, tmp_path: Path
) -> None:
    full["maintenance_windows"] = [
        WINDOW | {"rules": ["Calls fail", "New tools"]},
        WINDOW | {"name": "Of one", "rules": ["Calls fail"]},
        WINDOW | {"name": "Of all", "rules": []},
    ]
    apply(write_config(tmp_path, full))
    del full["alert_rules"][0]
    full["maintenance_windows"][0]["rules"] = ["New tools"]
    del full["maintenance_windows"][1]
    assert changes_of(write_config(tmp_path, full), "--prune") == [
        "remove alert rule Calls fail",
        "remove maintenance window Of one",
    ]
    exported = export(tenant.slug)["maintenance_windows"]
    assert [(one["name"], one["rules"]) for one in exported] == [
        ("Of all", []),
        ("Upgrade", ["New tools"]),
    ]


def test_outputs_without_a_schema_cannot_be_checked(slug: str, tmp_path: Path) -> None:
    tool = {name: value for name, value in TOOL.items() if name != "outputSchema"}
    wanted = {"slug": slug, "tools": [tool], "checks_on_arrival": ["search"]}
    path = write_config(tmp_path, wanted)
    for options in ([], ["--dry-run"]):
        [problem, _] = refused(path, *options)
        assert ".checks_on_arrival[0]: outputs of search " in problem


def test_dry_run_of_many_tools_needs_few_statements(slug: str, tmp_path: Path) -> None:
    """One by one, they would need 18 statements each."""
    tools = [TOOL | {"name": f"tool-{n}"} for n in range(450)]
    path = write_config(tmp_path, {"slug": slug, "tools": tools})
    with CaptureQueriesContext(connection) as captured:
        made = changes_of(path, "--dry-run")
    assert made == [f"create tenant {slug}", *(f"create tool tool-{n}" for n in range(450))]
    assert len(captured) < 60
    assert not Tenant.objects.filter(slug=slug).exists()


def test_new_contract_becomes_the_next_version(tenant: Tenant, tmp_path: Path) -> None:
    changed = deepcopy(TOOL) | {"description": "Searches better."}
    exported = export(tenant.slug)["tools"]
    (tmp_path / "tools.json").write_text(json.dumps([changed]))
    path = write_config(tmp_path, {"slug": tenant.slug, "tools": [{"file": "tools.json"}]})
    [outcome] = apply(path)
    assert [one["detail"] for one in outcome["changes"]] == ["version 2 published"]
    assert changes_of(path) == []
    # The export of before makes its version current again, and removes none.
    back = write_config(tmp_path, {"slug": tenant.slug, "tools": exported}, name="back.json")
    [outcome] = apply(back)
    assert [one["detail"] for one in outcome["changes"]] == ["version 1 made current"]
    assert len(export(tenant.slug)["tools"][0]["versions"]) == 2


def test_export_has_no_secret_and_changes_nothing_when_applied(
    tenant: Tenant, tmp_path: Path
) -> None:
    text = (tmp_path / "keys" / "agents").read_text().strip()
    document = export(tenant.slug)
    shown = json.dumps(document)
    assert text.split("_")[3] not in shown
    assert WEBHOOK_SECRET not in shown
    assert ID_SECRET not in shown
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    assert changes_of(write_config(folder, document)) == []
    assert changes_of(write_config(folder, document), "--prune") == []
    assert [each.name for each in folder.iterdir()] == ["config.json"]
    assert document["keys"] == [
        {
            "name": "agents",
            "scopes": ["ingest", "read"],
            "secret": {"file": f"secrets/{tenant.slug}/key-agents"},
            "purpose": "The agents.",
            "owner": f"ada@{tenant.slug}",
            "expires_at": "2099-01-31T00:00:00Z",
            "allowed_addresses": ["10.0.0.0/8"],
        }
    ]
    with tenant_scope(tenant.pk):
        assert Action.objects.filter(tenant=tenant, verb="config.export").count() == 1


def test_of_keys_with_one_name_the_newest_is_exported(acme: Cast, tmp_path: Path) -> None:
    with tenant_scope(acme.tenant.pk):
        for scope in (Scope.READ, Scope.INGEST):
            make_key(acme.tenant, "test", WantedKey("twin", [scope]))
    exported = export(acme.tenant.slug)
    assert [one["scopes"] for one in exported["keys"]] == [["ingest"]]
    [problem, _] = refused(write_config(tmp_path, exported))
    assert problem.endswith("keys[0]: 2 keys of this name work; revoke all but one")


def test_id_of_another_or_of_a_deleted_tenant_is_refused(
    acme: Cast, slug: str, tmp_path: Path
) -> None:
    taken = write_config(tmp_path, {"slug": slug, "id": str(acme.tenant.pk)})
    assert refused(taken)[0].endswith(f".id: is the id of the tenant {acme.tenant.slug}")
    wrong = write_config(tmp_path, {"slug": acme.tenant.slug, "id": str(new_id())})
    assert refused(wrong)[0].endswith(f"has the id {acme.tenant.pk}")


def test_published_schema_is_that_of_the_models(full: dict[str, Any], tenant: Tenant) -> None:
    schema = json.loads(SCHEMA.read_text())
    assert schema == Document.model_json_schema(), (
        "run manage.py export-config --schema --output docs/schemas/config.json"
    )
    validator = jsonschema_rs.validator_for(schema)
    for one in (full, export(tenant.slug)):
        assert [e.message for e in validator.iter_errors({"version": 1, "tenants": [one]})] == []
    assert not validator.is_valid({"version": 1, "tenants": [full | {"colour": "red"}]})


def test_documented_example_is_applied(
    slug: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = (ROOT / "docs" / "configuration.md").read_text()
    example = text.partition("```yaml\n")[2].partition("```")[0].replace("acme", slug)
    monkeypatch.setenv("ON_CALL_SECRET", WEBHOOK_SECRET)
    for name in ("secrets", "tools"):
        (tmp_path / name).mkdir()
    (tmp_path / "secrets" / "ada-password").write_text("correct horse battery staple")
    (tmp_path / "secrets" / "identity").write_text("the client's")
    (tmp_path / "tools" / "more.json").write_text(json.dumps([TOOL | {"name": "more"}]))
    path = tmp_path / "acme.yaml"
    path.write_text(example)
    (declared,) = YAML(typ="safe", pure=True).load(example)["tenants"]
    assert declared.keys() == DeclaredTenant.model_fields.keys() - {"id"}
    assert f"create tenant {slug}" in changes_of(path)
    assert changes_of(path, "--prune") == []


def test_pruning_ends_service_accounts_and_price_lists_and_no_section_means_no_change(
    full: dict[str, Any], tenant: Tenant, tmp_path: Path
) -> None:
    del full["members"]
    full["service_accounts"] = [{"name": "old"}]
    full["price_lists"] = [{"holds_from": "2026-12-01", "currency": "USD"}]
    path = write_config(tmp_path, full)
    with tenant_scope(tenant.pk):
        (ci,) = [one for one in service_accounts(tenant) if name_in(one) == "ci"]
        _, key = create_key(tenant, "of ci", [Scope.READ], owner=ci.user)
    assert changes_of(path, "--prune") == [
        "remove price list 2026-11-01",
        "create price list 2026-12-01",
        "change service account old",
        "remove service account ci",
    ]
    with pytest.raises(KeyRefused, match="revoked"):
        authenticate(key, Scope.READ)
    del full["service_accounts"], full["price_lists"], full["sign_in"]
    assert changes_of(write_config(tmp_path, full), "--prune") == []


def test_pruning_members_keeps_service_accounts(
    full: dict[str, Any], tenant: Tenant, tmp_path: Path
) -> None:
    full["members"] = full["members"][:1]
    del full["service_accounts"]
    path = write_config(tmp_path, full)
    assert changes_of(path, "--prune") == [f"remove member vic@{tenant.slug}"]
    with tenant_scope(tenant.pk):
        assert {name_in(one) for one in service_accounts(tenant)} == {"ci", "old"}
