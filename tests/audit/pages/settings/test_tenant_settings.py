"""Settings of a tenant: retention and redaction; and a viewer's preferences."""

from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from audit.retention.retention import WARN_UNDER_DAYS
from tenants.models import Action, Tenant, TenantSetting, User
from tenants.scope import tenant_scope
from tenants.theme import COOKIE
from tests.support.factories import (
    PASSWORD,
    Cast,
    make_call,
    send_events,
)
from tests.support.pages import signed_in
from tests.support.stored_events import stored_lines


@pytest.fixture
def client(acme: Cast) -> Client:
    return signed_in(acme.admin)


def save(client: Client, **wanted: Any) -> str:
    data = {"name": "Acme", "time_zone": "", "payload_days": "", "index_days": "", **wanted}
    return str(client.post(reverse("tenant_settings"), data, follow=True).content.decode())


def setting_of(cast: Cast) -> TenantSetting | None:
    with tenant_scope(cast.tenant.id):
        return TenantSetting.objects.filter(tenant=cast.tenant).first()


def is_default(cast: Cast) -> bool:
    """Whether no retention is stored. A form that was sent locks the row, and makes it for that."""
    setting = setting_of(cast)
    return setting is None or (setting.payload_days, setting.index_days) == (None, None)


def actions(cast: Cast, verb: str) -> list[dict[str, Any]]:
    with tenant_scope(cast.tenant.id):
        return [each.details for each in Action.objects.filter(verb=verb).order_by("at")]


def test_name_time_zone_and_retention_are_saved_and_logged(acme: Cast, client: Client) -> None:
    page = save(
        client, name="ACME Ltd", time_zone="Asia/Tokyo", payload_days=200, index_days=400, is_sure=1
    )
    assert "Saved." in page
    assert "Retention under" not in page
    tenant = Tenant.objects.get(pk=acme.tenant.pk)
    assert (tenant.name, tenant.time_zone, tenant.slug) == (
        "ACME Ltd",
        "Asia/Tokyo",
        acme.tenant.slug,
    )
    setting = setting_of(acme)
    assert setting is not None
    assert (setting.payload_days, setting.index_days) == (200, 400)
    (details,) = actions(acme, "tenant.settings")
    assert details["before"]["payload_days"] is None
    assert details["after"]["payload_days"] == 200
    save(client, name="ACME Ltd", time_zone="Asia/Tokyo", payload_days=200, index_days=400)
    assert len(actions(acme, "tenant.settings")) == 1, "an unchanged form records no action"


@pytest.mark.slow
def test_shorter_retention_needs_confirmation_and_longer_does_not(
    acme: Cast, client: Client
) -> None:
    page = save(client, payload_days=200)
    assert "Confirm that older data is erased" in page
    assert is_default(acme)
    save(client, payload_days=200, is_sure=1)
    assert "Saved." in save(client, payload_days=201)
    assert "Confirm" in save(client, payload_days=201, index_days=300)
    assert "Saved." in save(client)
    setting = setting_of(acme)
    assert setting is not None
    assert setting.payload_days is None


@pytest.mark.slow
@pytest.mark.parametrize(("days", "warns"), [(WARN_UNDER_DAYS - 1, True), (WARN_UNDER_DAYS, False)])
def test_retention_under_half_a_year_shows_a_warning(
    client: Client, days: int, warns: bool
) -> None:
    assert ("Retention under 183 days" in save(client, payload_days=days)) is warns
    save(client, payload_days=days, is_sure=1)
    shown = client.get(reverse("tenant_settings")).content.decode()
    assert ("Retention under 183 days" in shown) is warns


@pytest.mark.slow
@pytest.mark.parametrize(
    "wrong",
    [
        {"name": ""},
        {"name": "x" * 201},
        {"name": "a\x00b"},
        {"time_zone": "Mars/Olympus"},
        {"payload_days": "0"},
        {"payload_days": "1e9"},
        {"index_days": "34"},
        {"index_days": "99999999999999999999"},
        {"payload_days": "²"},
    ],
)
def test_invalid_form_changes_nothing_and_shows_errors(
    acme: Cast, client: Client, wrong: dict[str, str]
) -> None:
    assert "errorlist" in save(client, is_sure=1, **wrong)
    assert is_default(acme)
    assert Tenant.objects.get(pk=acme.tenant.pk).name == acme.tenant.name


def rules(client: Client, *, names: str = "", patterns: str = "", **more: str) -> str:
    data = {"names": names, "patterns": patterns, "sample": "", **more}
    return str(client.post(reverse("redaction_settings"), data, follow=True).content.decode())


def test_saved_rules_apply_to_the_next_event(acme: Cast, client: Client) -> None:
    send_events(acme.tenant, make_call(args={"iban": "DE89"}))
    assert "Saved." in rules(client, names="iban\r\n\r\n iban \r\niban", patterns="[a-z]+@x")
    send_events(acme.tenant, make_call(args={"iban": "FR12", "m": "ada@x"}))
    text = b"".join(stored_lines(acme))
    assert b"DE89" in text, "stored events do not change"
    assert b"FR12" not in text
    assert b"ada@x" not in text
    (details,) = actions(acme, "tenant.redaction")
    assert details == {
        "names": ["iban", " iban "],
        "patterns": ["[a-z]+@x"],
        "otlp_defaults": False,
        "clear_principals": False,
    }
    assert "[a-z]+@x" in client.get(reverse("redaction_settings")).content.decode()


@pytest.mark.parametrize(
    ("sample", "shown", "count"),
    [
        ('{"iban": "DE89", "n": 1.50}', '{"iban": "[redacted]", "n": 1.50}', "1 value would"),
        ("write to ada@x", '"[redacted]"', "1 value would"),
        ('[{"a": "b"}]', '[{"a": "b"}]', "No values would"),
        ("{ no JSON", '"{ no JSON"', "No values would"),
        ("", '""', "No values would"),
        ('"<script>alert(1)</script>"', '"<script>alert(1)</script>"', "No values would"),
        ('"}, {"', '"}, {"', "No values would"),
        ("1}, {", '"1}, {"', "No values would"),
    ],
)
def test_rules_are_tried_on_a_sample_without_saving(
    acme: Cast, client: Client, sample: str, shown: str, count: str
) -> None:
    answer = client.post(
        reverse("redaction_settings"),
        {"names": "iban", "patterns": "[a-z]+@x", "sample": sample, "try": "1"},
    )
    assert answer.context["result"] == shown
    page = answer.content.decode()
    assert count in page
    assert "<script>alert" not in page
    assert setting_of(acme) is None


@pytest.mark.parametrize(
    "wrong",
    [
        {"patterns": "("},
        {"patterns": r"(a)\1"},
        {"patterns": "(?<=a)b"},
        {"patterns": ".*"},
        {"patterns": r"((\w{100}){100}){100}"},
        {"names": "…"},
        {"names": "\n".join(f"n{number}" for number in range(51))},
        {"names": "x" * 301},
    ],
)
def test_invalid_rule_is_rejected_with_a_reason(
    acme: Cast, client: Client, wrong: dict[str, str]
) -> None:
    assert "errorlist" in rules(client, **wrong)
    assert setting_of(acme) is None


def test_preferences_belong_to_the_account(acme: Cast) -> None:
    client = signed_in(acme.viewer)
    wanted = {"time_zone": "Asia/Kathmandu", "theme": "dark", "default_range": "7d"}
    answer = client.post(reverse("preferences"), wanted)
    assert answer.status_code == 302
    assert answer.cookies[COOKIE].value == "dark"
    page = client.get("/")
    assert 'data-theme="dark"' in page.content.decode()
    assert page.context["range"].name == "7d"
    assert str(page.context["range"].zone) == "Asia/Kathmandu"
    assert client.get("/?range=1h").context["range"].name == "1h"
    shown = client.get("/?from=2026-11-01&to=2026-11-02").context["range"]
    assert shown.name == ""
    other = signed_in(acme.editor).get("/")
    assert other.context["range"].name == "24h"
    assert "data-theme" not in other.content.decode()


def test_theme_is_restored_after_signing_in_with_another_browser(acme: Cast) -> None:
    signed_in(acme.viewer).post(reverse("theme"), {"theme": "light"})
    assert User.objects.get(pk=acme.viewer.pk).theme == "light"
    answer = Client().post("/login", {"username": acme.viewer.username, "password": PASSWORD})
    assert answer.cookies[COOKIE].value == "light"
    signed_in(acme.viewer).post(reverse("theme"), {"theme": "auto"})
    answer = Client().post("/login", {"username": acme.viewer.username, "password": PASSWORD})
    assert COOKIE not in answer.cookies


@pytest.mark.parametrize(
    "wrong", [{"time_zone": "../etc"}, {"theme": "pink"}, {"default_range": "9y"}]
)
def test_invalid_preferences_change_nothing(acme: Cast, wrong: dict[str, str]) -> None:
    answer = signed_in(acme.viewer).post(reverse("preferences"), wrong)
    assert answer.status_code == 200
    assert answer.context["form"].errors
    user = User.objects.get(pk=acme.viewer.pk)
    assert (user.time_zone, user.theme, user.default_range) == ("", "", "")


def test_hostile_tenant_name_is_escaped(acme: Cast, client: Client) -> None:
    page = save(client, name="<script>alert(1)</script>")
    assert "<script>alert" not in page
    assert "&lt;script&gt;" in page
